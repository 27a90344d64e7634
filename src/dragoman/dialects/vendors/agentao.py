"""The dialect of Agentao's ACP appendix: version 1 with a strict beginning, open modes and free-form models.

Five updates, each as the appendix has it: a call is announced pending, and its content is sent once, when it ends,
because its clients append what others replace. A failure is sent as a thought.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from dragoman import limits
from dragoman.dialects.codec.transcriber import plain
from dragoman.dialects.contract import DecodedNotification, Id, Out, RequestMessage, ResultMessage, SessionEvent
from dragoman.dialects.handshake.initialize import (
    DecodedClientHello,
    client_hello_1,
    requested_version,
)
from dragoman.dialects.handshake.json_fields import JsonDict, object_field
from dragoman.dialects.v1 import codec as v1
from dragoman.dialects.v1 import notices
from dragoman.dialects.v1.client import ClientV1
from dragoman.dialects.vendors import vendor_agent
from dragoman.dialects.vendors.extensions import ASK_USER, EXTENSIONS, SET_MODEL, SET_MODEL_ADAPTER, of_provider
from dragoman.dialects.vendors.named import NamedDialect
from dragoman.dialects.vendors.vendor_agent import VendorAgent, VendorPermissionOption
from dragoman.errors import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PeerMistake, WireError, echo
from dragoman.vocabulary import content, events, options, requests, services, tools
from dragoman.vocabulary.asking import Note, Reply, Request
from dragoman.vocabulary.dialect_rules import DialectRules
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.wire import types as wire
from dragoman.wire import v1 as w

NAME: Final = "agentao"
# The error before `initialize` (row 8.4.6). Elsewhere the code means that a resource was not found.
NOT_INITIALIZED: Final = -32002
# The modes with a meaning (row 8.4.20); any other is the client's own name for something, recorded and echoed.
PRESETS: Final = ("read-only", "workspace-write", "full-access", "plan")
_CATEGORY: Final = "model"
# The fields of an announced call. Content is not among them: it follows when the call ends.
_CALL: Final = frozenset({"toolCallId", "title", "kind", "status", "rawInput"})
_FINAL: Final = ("completed", "failed")
# Calls that go on at once, and items of one: an agent that sends more is not shown whole.
_CALLS: Final = 64
_ITEMS: Final = 4096
# Of a long output the program cuts out the middle, and repeats so much of its beginning.
_BEGINNING: Final = 4000


# -- initialize ------------------------------------------------------------------------------------------------------


def decode_client(params: Raw) -> DecodedClientHello:
    """Decode `initialize`; `PeerMistake` without capabilities, which the appendix requires (row 8.4.1)."""
    _, body = requested_version(params)
    if not isinstance(body.get("clientCapabilities"), dict):
        raise PeerMistake(INVALID_PARAMS, "clientCapabilities must be an object")
    hello = client_hello_1(body)
    # Read as version 1 first, so that a client with the protocol's names is served as well.
    can, fs = hello.capabilities, object_field(object_field(body, "clientCapabilities"), "fs")
    can = replace(
        can,
        # The appendix's names (row 8.4.2). Only in this dialect: elsewhere an unknown key must mean unsupported.
        read_text_file=can.read_text_file or fs.get("readFile") is True,
        write_text_file=can.write_text_file or fs.get("writeFile") is True,
        # Questions are asked by the appendix's own method, which every client of it has: they need not advertise it.
        elicitation_form=False,
        elicitation_url=False,
        meta={**(can.meta or {}), EXTENSIONS: [{"method": ASK_USER}]},
    )
    return DecodedClientHello(1, replace(hello, capabilities=can), NAME)


def encode_agent(agent: AgentHello, client: ClientHello) -> bytes:
    """Encode the answer to `initialize`: text only, no way to log in, the extensions in `_meta` (row 8.4.4)."""
    can = agent.capabilities
    capabilities = {
        "loadSession": can.load,
        "promptCapabilities": {"image": False, "audio": False, "embeddedContext": False},
        "mcpCapabilities": {"sse": can.mcp_sse, "http": False},
    }
    extensions = [
        {"method": ASK_USER, "description": "Ask the user a question in free text"},
        {"method": SET_MODEL, "description": "Use a model by any name its provider knows"},
    ]
    return vendor_agent.encode_agent(agent, capabilities, _meta={EXTENSIONS: extensions})


# -- the agent -------------------------------------------------------------------------------------------------------


class AgentAgentao(VendorAgent):
    """The agent's side."""

    methods = frozenset(
        {
            *("session/new", "session/load", "session/prompt", "session/cancel"),
            *("session/set_mode", "session/set_config_option"),
        }
    )
    update_fields = {  # noqa: RUF012  # never changed
        **dict.fromkeys(events.CHUNK_TYPES, frozenset({"content"})),
        "tool_call": _CALL,
        "tool_call_update": frozenset({"toolCallId", "status", "content"}),
    }
    opened_fields = frozenset({"sessionId", "configOptions"})
    permission_options = (
        VendorPermissionOption("allow_once", "allow", "Allow"),
        VendorPermissionOption("allow_always", "allow_always", "Always allow"),
        VendorPermissionOption("reject_once", "reject", "Reject"),
    )

    def __init__(self, client: ClientHello, agent: AgentHello) -> None:
        super().__init__(client, vendor_agent.limited_agent(agent))
        # `session/set_mode` by id, until it is answered with the mode that it named, not with an empty object.
        self._modes_asked: dict[Id, str] = {}

    # -- requests of the client --------------------------------------------------------------------------------------

    def decode_named_request(self, id: Id, method: str, params: Raw) -> Request | Note:
        """Decode as `super()` does, but modes, models and MCP servers follow the document's own rules."""
        if method == "session/set_mode":
            return self._decode_set_mode(id, params)
        if method == "session/set_config_option":
            return self._decode_option(params)
        if method == SET_MODEL:
            return self._decode_model(id, params)
        # Before `super()`, whose tolerance would correct what the appendix refuses.
        if method in ("session/new", "session/load"):
            _check_servers(params)
        request = super().decode_named_request(id, method, params)
        if isinstance(request, (requests.NewSession, requests.ResumeSession)):
            refuse_servers(request, requests.McpHttp, requests.McpAcp)
        return request

    def _decode_set_mode(self, id: Id, params: Raw) -> Request:
        body = _fields(params, "sessionId", "modeId")
        session_id, mode = body["sessionId"], body["modeId"]
        self._modes_asked[id] = mode
        if mode not in PRESETS:
            # Also a mode of ours that is none of the appendix's, such as `ask`: its client cannot mean that.
            return requests.RecordNote(session_id, "mode name", mode)
        session = self._sessions.get(session_id)
        if session is not None and not session.mode[1]:
            # The document's error for an agent without permission modes.
            del self._modes_asked[id]
            raise PeerMistake(INVALID_REQUEST, "The session has no permission modes")
        return requests.SetOption(session_id, session.mode[0] if session is not None else "mode", mode)

    def _decode_option(self, params: Raw) -> Request:
        body = _fields(params, "sessionId", "configId", "value", closed=True)
        # The appendix has one option, and rejects every other field: `apiKey` and `baseUrl` in particular (row 8.4.17).
        if body["configId"] != "model":
            raise PeerMistake(INVALID_REQUEST, "configId must be model")
        # Split at the first slash, because models of some providers have one in their own name (row 8.4.16).
        provider, slash, model = body["value"].partition("/")
        named = f"{provider.lower()}/{model}" if slash else self._of_provider(body["sessionId"], body["value"])
        return requests.SetOption(body["sessionId"], self._model_id(body["sessionId"]), named)

    def _decode_model(self, id: Id, params: Raw) -> Request:
        body = _fields(params, "sessionId", "model", closed=True)
        session_id, model = body["sessionId"], body["model"].strip()
        if not model:
            raise PeerMistake(INVALID_PARAMS, "model must not be empty")
        # A known session without a model option: the method is then one that this agent does not have.
        if session_id in self._sessions and not self._sessions[session_id].model[0]:
            raise PeerMistake(METHOD_NOT_FOUND, "Method not found")
        self._extension_requests[id] = SET_MODEL_ADAPTER
        return requests.SetOption(session_id, self._model_id(session_id), self._of_provider(session_id, model))

    def _of_provider(self, session_id: str, model: str) -> str:
        """Return a bare model name with the provider of the session's current model."""
        known = self._sessions.get(session_id)
        return model if known is None else of_provider(model, known.model[1])

    def _model_id(self, session_id: str) -> str:
        known = self._sessions.get(session_id)
        return known.model[0] if known is not None and known.model[0] else "model"

    # -- replies -----------------------------------------------------------------------------------------------------

    def encode_reply(self, id: Id, request: Request, reply: Reply) -> Sequence[Out]:
        """Reply as `super()` does, but `session/set_mode` is answered with the mode it named."""
        if (mode := self._modes_asked.pop(id, None)) is None:
            return super().encode_reply(id, request, reply)
        if isinstance(reply, requests.OptionsSet) and isinstance(request, requests.SetOption):
            self._learn_options(request.session_id, reply.config_options)
        return [ResultMessage(id, msgspec.json.encode({"modeId": mode}))]

    def encode_failure(self, id: Id, request: Request, error: WireError) -> Sequence[Out]:
        """Fail as `super()` does, and forget the mode that the request named."""
        self._modes_asked.pop(id, None)
        return super().encode_failure(id, request, error)

    def encode_opened(self, reply: requests.SessionOpened, kind: Any, encoded_options: Any) -> bytes:
        """Encode as `super()` does; `configOptions` is always there, if only as an empty list."""
        body = plain(Raw(super().encode_opened(reply, kind, encoded_options)))
        return msgspec.json.encode({"configOptions": [], **body})

    def _encode_options(self, found: list[options.Option]) -> Any:
        """Encode the model option, and no other: the appendix has only that."""
        return super()._encode_options([one for one in found if options.category_of(one) == _CATEGORY])

    def encode_request(self, request: Request) -> RequestMessage:
        """Encode as `super()` does, but the tool call of a permission is `pending` and always has a kind."""
        call = super().encode_request(request)
        if not isinstance(request, services.RequestPermission):
            return call
        params = plain(Raw(call.params))
        params["toolCall"] = {"kind": "other", **params["toolCall"], "status": "pending"}
        return replace(call, params=msgspec.json.encode(params))

    # -- events ------------------------------------------------------------------------------------------------------

    def encode_event(self, session_id: str, event: events.AnyEvent) -> Sequence[Out]:
        """Encode as `super()` does, but a tool call that ends carries its whole content."""
        return super().encode_event(
            session_id,
            self.with_whole_content(session_id, event) if isinstance(event, events.ToolCallUpdate) else event,
        )

    def encode_notice(self, notice: events.Notice, call_id: str) -> Sequence[wire.WireValue]:
        """Encode a notice as a thought, as the appendix does errors; on its own lines, because thoughts are joined."""
        text = w.TextContent(text=f"\n{notices.text_of(notice)}\n")
        return [w.SessionUpdateAgentThoughtChunk(content=text)]

    def encode_failed_turn(self, session_id: str, id: Id, error: WireError) -> Sequence[Out]:
        """Encode the failure twice: as a thought, which the user reads, and as the error of the prompt."""
        thought = self.text_message(session_id, "agent_thought_chunk", error.message)
        return [*thought, *super().encode_failed_turn(session_id, id, error)]

    def reshape(self, session_id: str, update: JsonDict) -> Sequence[JsonDict]:
        """Return a call pending first, its content once at its end, and any other block of a message as text."""
        if update["sessionUpdate"] == "tool_call":
            announced = {"kind": "other", **update, "status": "pending"}
            if update.get("status", "pending") == "pending":
                return [announced]
            return [announced, *self.reshape(session_id, {**update, "sessionUpdate": "tool_call_update"})]
        if update["sessionUpdate"] == "tool_call_update":
            if "status" not in update or update["status"] == "pending":
                return []
            # Its clients append content (row 8.4.10): sent whole at every update, it would be shown again each time.
            rest = {name: value for name, value in update.items() if name != "content"}
            return [update if update["status"] in _FINAL and update.get("content") else rest]
        if isinstance(update.get("content"), dict) and update["content"].get("type") != "text":
            return [{**update, "content": {"type": "text", "text": as_text(update["content"])}}]
        return [update]


def as_text(block: JsonDict) -> str:
    """Return a block that is no text in words, such as the uri of a link."""
    decoded = v1.CODEC.decode(wire.decode(msgspec.json.encode(block), w.ContentBlock), content.UnknownContent)
    return content.text_of([decoded])


def refuse_servers(request: "requests.NewSession | requests.ResumeSession", *kinds: type) -> None:
    """Raise `PeerMistake` for an MCP server of these kinds, which a document does not have."""
    servers = request.mcp_servers or []
    if any(isinstance(server, (*kinds, requests.UnknownMcp)) for server in servers):
        raise PeerMistake(INVALID_PARAMS, "This agent cannot reach an MCP server of that type")


def _check_servers(params: Raw) -> None:
    """Raise `PeerMistake` unless the servers are a list, each with a name.

    The plain dialect fills in a missing list; the appendix has this error for it.
    """
    body: Any = plain(params) if params else {}
    servers = body.get("mcpServers") if isinstance(body, dict) else None
    if not isinstance(servers, list):
        raise PeerMistake(INVALID_PARAMS, "mcpServers must be a list")
    if any(isinstance(server, dict) and server.get("name") == "" for server in servers):
        raise PeerMistake(INVALID_PARAMS, "An MCP server needs a name")


def _fields(params: Raw, *names: str, closed: bool = False) -> dict[str, str]:
    """Return these fields, each a text that is not empty; `PeerMistake` otherwise, and for more fields if `closed`."""
    body: Any = plain(params) if params else {}
    if not isinstance(body, dict):
        raise PeerMistake(INVALID_PARAMS, "Invalid params")
    for name in names:
        if not isinstance(body.get(name), str) or not body[name]:
            raise PeerMistake(INVALID_PARAMS, f"{name} must be a text that is not empty")
    if closed and (more := sorted(body.keys() - set(names))):
        unexpected = [echo(name) for name in more[:10]]
        raise PeerMistake(INVALID_PARAMS, "Only these are taken: " + ", ".join(names), {"unexpected": unexpected})
    return {name: body[name] for name in names}


# -- the client ------------------------------------------------------------------------------------------------------


class ClientAgentao(ClientV1):
    """The client's side: content of a call is added to what was there, unless it repeats that.

    The appendix has it added; the program, since it was written, sends the whole of it each time, longer than before.
    """

    def __init__(self, client: ClientHello, agent: AgentHello) -> None:
        super().__init__(client, agent)
        # The content so far of calls that have not ended, by session and call.
        self._shown: dict[tuple[str, str], list[tools.ToolContent]] = {}

    def decode_notification(self, method: str, params: Raw) -> Sequence[DecodedNotification]:
        """Decode as `super()` does, but each update of a tool call carries the whole content so far."""
        return [
            self._with_earlier_content(one) if isinstance(one, SessionEvent) else one
            for one in super().decode_notification(method, params)
        ]

    def _with_earlier_content(self, update: SessionEvent) -> SessionEvent:
        event = update.event
        if not isinstance(event, events.ToolCallUpdate) or not isinstance(event.content, list):
            return update
        key = (update.session_id, event.tool_call_id)
        # Both forms are in use and neither says which it is: content that repeats what was there replaces it.
        before = self._shown.pop(key, [])
        whole = event.content if repeats(event.content, before) else [*before, *event.content]
        if event.status not in tools.FINAL_STATUSES:
            self._shown[key] = whole[:_ITEMS]
            # Re-inserted at every update, so the first one is the call that has been silent for longest.
            limits.evict_oldest(self._shown, _CALLS)
        return SessionEvent(update.session_id, replace(event, content=whole[:_ITEMS]))


def repeats(now: Sequence[tools.ToolContent], before: Sequence[tools.ToolContent]) -> bool:
    """Return whether content begins as the content before did, with each text at least as long as it was."""
    return len(now) >= len(before) and all(map(_goes_on, now, before))


def _goes_on(now: tools.ToolContent, before: tools.ToolContent) -> bool:
    match now, before:
        case tools.ContentItem(content.Text(text)), tools.ContentItem(content.Text(earlier)):
            return text.startswith(earlier[:_BEGINNING])
        case _:
            return now == before


DIALECT: Final = NamedDialect(
    decode_client,
    encode_agent,
    AgentAgentao,
    vendor_agent.encode_client,
    partial(vendor_agent.decode_agent, name=NAME),
    ClientAgentao,
    DialectRules(requires_same_servers=True, accepts_unlisted_models=True, opens_missing_session=True),
    NOT_INITIALIZED,
)
