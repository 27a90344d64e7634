"""The draft of version 2 of June 2026: the shapes of version 2 as they were then, around the turns of version 1.

A prompt is answered when its turn ends; there are no states. Permissions, diffs, options and commands are those of
version 1, tool calls and whole messages are patched by id as in version 2. Nothing is asked of the client but
permission.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from dragoman.dialects.codec.transcriber import plain
from dragoman.dialects.contract import NotificationMessage, Out, RequestMessage
from dragoman.dialects.handshake.initialize import (
    JUNE,
    DecodedAgentHello,
    DecodedClientHello,
    client_hello_june,
    decode_agent_1,
    encode_implementation,
    implementation,
    requested_version,
    session_markers,
)
from dragoman.dialects.handshake.json_fields import (
    JsonDict,
    as_object,
    decode_json,
    has_marker,
    items,
    meta_of,
    object_field,
    optional_field,
    with_unknown_fields,
    without_none,
)
from dragoman.dialects.handshake.logins import decode_method_2, encode_method_2
from dragoman.dialects.v1 import codec as v1
from dragoman.dialects.v1 import updates
from dragoman.dialects.v2_june.client import ClientJune
from dragoman.dialects.vendors.named import NamedDialect
from dragoman.dialects.vendors.vendor_agent import VendorAgent, VendorPermissionOption
from dragoman.errors import WireError
from dragoman.vocabulary import events, options, tools
from dragoman.vocabulary.asking import Request
from dragoman.vocabulary.hello import (
    AgentAuth,
    AgentCapabilities,
    AgentHello,
    AuthMethod,
    ClientHello,
    Implementation,
    UnknownAuth,
)
from dragoman.vocabulary.services import RequestPermission, ToolCallSubject
from dragoman.wire import types as wire

# Capabilities that this draft marks one by one, and today's implies by `session` (row 8.2.5).
_MARKERS: Final = ("load", "list", "resume", "close")
_MESSAGES: Final[dict[type, str]] = {
    events.UserMessage: "user_message",
    events.AgentMessage: "agent_message",
    events.AgentThought: "agent_thought",
}
# The fields of messages and their chunks; `messageId` is required in this draft.
_CHUNK: Final = frozenset({"messageId", "content", "_meta"})
# Fields of a call that null clears, as in today's version 2; in version 1, whose encoder is used here, it does not.
_CLEARED: Final = ("title", "kind", "status", "raw_input", "raw_output")


# -- initialize ------------------------------------------------------------------------------------------------------


def decode_client(params: Raw) -> DecodedClientHello:
    """Decode `initialize` on a link whose dialect was chosen by name; otherwise `handshake.initialize` finds it out."""
    return DecodedClientHello(2, client_hello_june(requested_version(params)[1]), JUNE)


def encode_agent(agent: AgentHello, client: ClientHello) -> bytes:
    """Encode the answer to `initialize`, with a marker for every capability and `id` in login methods (row 8.2.3)."""
    can = agent.capabilities
    known: JsonDict = {"auth": {"logout": {}} if can.logout and agent.auth_methods else {}}
    if can.sessions:
        prompt = (("image", can.image), ("audio", can.audio), ("embeddedContext", can.embedded_context))
        mcp = (("stdio", can.mcp_stdio), ("http", can.mcp_http))
        there = [(name, getattr(can, name)) for name in _MARKERS]
        there += [(name, it) for name, it in session_markers(can) if name in ("delete", "additionalDirectories")]
        known["session"] = {
            "prompt": {name: {} for name, it in prompt if it},
            "mcp": {name: {} for name, it in mcp if it},
        } | {name: {} for name, it in there if it}
    # A terminal login came with a later draft, and would be taken for the agent's own.
    methods = [_old_id(encode_method_2(method)) for method in agent.auth_methods if isinstance(method, AgentAuth)]
    body: JsonDict = {"protocolVersion": 2, "capabilities": with_unknown_fields(known, can), "authMethods": methods}
    if agent.info is not None:
        body["agentInfo"] = encode_implementation(agent.info)
    return msgspec.json.encode(with_unknown_fields(body, agent))


def encode_client(hello: ClientHello) -> bytes:
    """Encode `initialize` in the shape of this draft only: `clientInfo` and no `info` (row 8.2.1)."""
    info = hello.info or Implementation("dragoman", "0")
    return msgspec.json.encode({"protocolVersion": 2, "capabilities": {}, "clientInfo": encode_implementation(info)})


def decode_agent(result: Raw) -> DecodedAgentHello:
    """Decode an agent of this draft; one that answers with version 1 is taken as that."""
    body = as_object(decode_json(result))
    if body.get("protocolVersion") == 1:
        return DecodedAgentHello(1, decode_agent_1(body))
    known = object_field(body, "capabilities")
    session, auth = object_field(known, "session"), object_field(known, "auth")
    prompt, mcp = object_field(session, "prompt"), object_field(session, "mcp")
    capabilities = AgentCapabilities(
        sessions=has_marker(known, "session"),
        load=has_marker(session, "load"),
        list=has_marker(session, "list"),
        resume=has_marker(session, "resume"),
        close=has_marker(session, "close"),
        delete=has_marker(session, "delete"),
        additional_directories=has_marker(session, "additionalDirectories"),
        image=has_marker(prompt, "image"),
        audio=has_marker(prompt, "audio"),
        embedded_context=has_marker(prompt, "embeddedContext"),
        mcp_stdio=has_marker(mcp, "stdio"),
        mcp_http=has_marker(mcp, "http"),
        logout=has_marker(auth, "logout"),
        meta=meta_of(known),
    )
    # An unknown type is today's; in this draft it cannot be used.
    methods: list[AuthMethod] = without_none([decode_method_2(method) for method in items(body.get("authMethods"))])
    known_methods: list[AuthMethod] = [method for method in methods if not isinstance(method, UnknownAuth)]
    info = implementation(body.get("agentInfo"))
    return DecodedAgentHello(2, AgentHello(info, capabilities, known_methods, meta=meta_of(body)), JUNE)


def _old_id(method: Any) -> JsonDict:
    return {("id" if name == "methodId" else name): value for name, value in method.items()}


# -- the agent -------------------------------------------------------------------------------------------------------


class AgentJune(VendorAgent):
    """The agent's side: version 1's turns (row 8.2.6) and permissions (row 8.2.12) in version 2's updates."""

    null_ids = True  # today's version 2 forbids them, this draft did not
    methods = frozenset(
        {
            *("authenticate", "logout", "session/new", "session/load", "session/resume", "session/list"),
            *("session/close", "session/delete", "session/prompt", "session/cancel", "session/set_config_option"),
        }
    )
    update_fields = {  # noqa: RUF012  # never changed
        **dict.fromkeys(events.CHUNK_TYPES, _CHUNK),
        **dict.fromkeys(_MESSAGES.values(), _CHUNK),
        "tool_call_update": frozenset(
            {"toolCallId", "title", "kind", "status", "content", "locations", "rawInput", "rawOutput", "_meta"}
        ),
        "tool_call_content_chunk": frozenset({"toolCallId", "content", "_meta"}),
        "plan_update": frozenset({"plan", "_meta"}),
        "available_commands_update": frozenset({"availableCommands", "_meta"}),
        "config_option_update": frozenset({"configOptions", "_meta"}),
        "session_info_update": frozenset({"title", "updatedAt", "_meta"}),
        "usage_update": frozenset({"used", "size", "cost", "_meta"}),
    }
    opened_fields = frozenset({"sessionId", "configOptions", "_meta"})  # without `modes`: a mode is an option
    # Only the kinds count here, see `offered_options`.
    permission_options = (
        VendorPermissionOption("allow_once", "allow_once", "Allow once"),
        VendorPermissionOption("allow_always", "allow_always", "Always allow"),
        VendorPermissionOption("reject_once", "reject_once", "Reject"),
        VendorPermissionOption("reject_always", "reject_always", "Always reject"),
    )

    def offered_options(self, request: Any) -> Any:
        """Return the options of version 1's four kinds, with the question's own ids and names."""
        return [option for option in request.options if option.kind in [one.kind for one in self.permission_options]]

    def _own_option(self, request: Any, answer: Any) -> Any:
        return answer  # the ids that were sent are the request's own

    def encode_request(self, request: Request) -> RequestMessage:
        """Encode as version 1 does, but the call of a permission keeps its kind and status: the lists are open here."""
        call = super().encode_request(request)
        if not isinstance(request, RequestPermission) or not isinstance(request.subject, ToolCallSubject):
            return call
        params = plain(Raw(call.params))
        params["toolCall"] |= _words(request.subject.tool_call)
        return replace(call, params=msgspec.json.encode(params))

    def vendor_error(self, error: WireError) -> WireError:
        """Return the error as it is: this draft has the protocol's own codes."""
        return error

    def encode_event(self, session_id: str, event: events.AnyEvent) -> Sequence[Out]:
        """Encode as version 1 does, but whole messages, appended content and an emptied plan are sent as such.

        Kinds, statuses and priorities are open here. An unknown update is passed on, unless it has a known name.
        """
        match event:
            # Version 1 would send these as chunks, once; here a whole message replaces what was sent before.
            case events.Message() if not self._is_echo_of(session_id, event):
                body: JsonDict = {
                    "sessionUpdate": _MESSAGES[type(event)],
                    "messageId": event.message_id,
                    **_meta(event),
                }
                if event.content is None or isinstance(event.content, list):
                    body["content"] = _encoded_items(v1.CODEC.encode(event.content))
                return self._notify(session_id, [_Ready(body)])
            # The memory of version 1 must have it too: a later update of the call may be sent whole.
            case events.ToolCallContentChunk() if self._appends(session_id, event):
                (item,) = _encoded_items(v1.encode_items([event.content])) or [None]
                self._session(session_id).call(event.tool_call_id).apply(event)
                body = {"toolCallId": event.tool_call_id, "content": item, **_meta(event)}
                return self._notify(session_id, [_Ready({"sessionUpdate": "tool_call_content_chunk", **body})])
            case events.ToolCallUpdate():
                return self._notify(session_id, [_open_call(self._session(session_id), event)])
            case events.PlanUpdate(plan=options.PlanItems() as plan):
                steps = [_step(entry) for entry in plan.entries]
                items_ = {"type": "items", "id": plan.plan_id, "entries": steps, **_meta(plan)}
                return self._notify(
                    session_id, [_Ready({"sessionUpdate": "plan_update", "plan": items_, **_meta(event)})]
                )
            case events.UnknownEvent():
                return self._encode_unknown(session_id, event)
            # This draft has no `plan_removed`; a plan without steps is the nearest.
            case events.PlanRemoved():
                return super().encode_event(session_id, events.PlanUpdate(options.PlanItems(event.plan_id, [])))
            case _:
                return super().encode_event(session_id, event)

    def _encode_unknown(self, session_id: str, event: events.UnknownEvent) -> Sequence[Out]:
        # It may be an event of today's version 2. Its name may mean something in this draft, in another form.
        encoded = v1.encode_unknown_event(event, subagents=False)
        if encoded is None or event.name in self.update_fields:
            return []  # it would be taken for something else
        return [
            NotificationMessage(
                "session/update", msgspec.json.encode({"sessionId": session_id, "update": plain(encoded.raw)})
            )
        ]

    def encode_end(self, event: events.Idle) -> bytes:
        """Encode the stop reason, which may be any text here, and `_meta`."""
        reason = event.stop_reason if isinstance(event.stop_reason, str) else "end_turn"
        return msgspec.json.encode({"stopReason": reason, **_meta(event)})

    def _is_echo_of(self, session_id: str, event: events.Message) -> bool:
        return isinstance(event, events.UserMessage) and self._is_echo(session_id, event.message_id)

    def _appends(self, session_id: str, event: events.ToolCallContentChunk) -> bool:
        """Return whether content can be appended by an update of its own: the call was sent, and the item is one here.

        A terminal is no item on this wire (row 8.2.15), and a diff of several files is several (row 8.2.14).
        """
        known = event.tool_call_id in self._session(session_id).calls
        return (
            known and not isinstance(event.content, tools.TerminalItem) and len(v1.encode_items([event.content])) == 1
        )

    def reshape(self, session_id: str, update: JsonDict) -> Sequence[JsonDict]:
        """Return an announced call as an update like any other, and a plan with its `id` (row 8.2.10)."""
        if update["sessionUpdate"] == "tool_call":
            return [{**update, "sessionUpdate": "tool_call_update"}]
        if update["sessionUpdate"] == "plan_update":
            plan = {("id" if name == "planId" else name): value for name, value in update["plan"].items()}
            return [{**update, "plan": plan}] if plan.get("type") == "items" else []
        return [update]


def _open_call(session: updates.V1SessionMemory, event: events.ToolCallUpdate) -> Any:
    """Return the update of a call with its own kind and status, and null for the fields that are cleared."""
    # Before `updates.tool_call`, which notes the call as announced. Null in an announcement would clear nothing.
    announced = event.tool_call_id in session.calls
    encoded: Any
    (encoded,) = updates.tool_call(session, event)
    cleared = {name: None for name in _CLEARED if announced and getattr(event, name) is None}
    return replace(encoded, **_words(event), **cleared)


def _words(call: events.ToolCallUpdate) -> JsonDict:
    return {name: getattr(call, name) for name in ("kind", "status") if isinstance(getattr(call, name), str)}


def _step(entry: options.PlanEntry) -> JsonDict:
    return {"content": entry.content, "priority": entry.priority, "status": entry.status, **_meta(entry)}


def _meta(word: Any) -> JsonDict:
    return optional_field("_meta", word.meta)


class _Ready(wire.UnknownVariant):
    """An update that is encoded already, in a form that no type of version 1 has."""

    def __init__(self, body: JsonDict) -> None:
        super().__init__(body["sessionUpdate"], Raw(msgspec.json.encode(body)))


def _encoded_items(value: Any) -> Any:
    return None if value is None else [plain(Raw(wire.encode(item))) for item in value]


DIALECT: Final = NamedDialect(decode_client, encode_agent, AgentJune, encode_client, decode_agent, ClientJune)

__all__ = ["DIALECT", "AgentJune", "ClientJune"]
