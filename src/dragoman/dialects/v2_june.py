"""The draft of version 2 of June 2026: the shapes of version 2 as they were then, around the turns of version 1.

A prompt is answered when its turn ends; there are no states. Permissions, diffs, options and commands are those of
version 1, tool calls and whole messages are patched by id as in version 2. Nothing is asked of the client but
permission.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from dragoman.dialects import v1
from dragoman.dialects.contract import Heard, Out, Told
from dragoman.dialects.handshake import (
    JUNE,
    HeardAgent,
    HeardClient,
    client_hello_june,
    hear_agent_1,
    implementation,
    requested_version,
    say_implementation,
    session_markers,
)
from dragoman.dialects.logins import hear_method_2, say_method_2
from dragoman.dialects.loose import as_object, items, loosely, marked, meta_of, part, present, whole
from dragoman.dialects.named import Named
from dragoman.dialects.seed import Json, Offered, SeedAgent
from dragoman.dialects.transcribe import plain
from dragoman.dialects.v1_client import ClientV1
from dragoman.errors import WireError
from dragoman.vocabulary import content, events, options, requests, tools
from dragoman.vocabulary.hello import (
    AgentAuth,
    AgentCapabilities,
    AgentHello,
    AuthMethod,
    ClientHello,
    Implementation,
    UnknownAuth,
)
from dragoman.wire import types as wire
from dragoman.wire import v1 as w

_MARKERS: Final = ("load", "list", "resume", "close")
_MESSAGES: Final[dict[type, str]] = {
    events.UserMessage: "user_message",
    events.AgentMessage: "agent_message",
    events.AgentThought: "agent_thought",
}
_WHOLE: Final[dict[str, Any]] = {name: kind for kind, name in _MESSAGES.items()}
_CHUNK: Final = frozenset({"messageId", "content", "_meta"})


# -- initialize ------------------------------------------------------------------------------------------------------


def hear_client(params: Raw) -> HeardClient:
    """A client that was chosen to speak this draft."""
    return HeardClient(2, client_hello_june(requested_version(params)[1]), JUNE)


def say_agent(agent: AgentHello, client: ClientHello) -> bytes:
    """Markers for everything, also for what today's draft implies; a login method has an `id`."""
    can = agent.capabilities
    known: Json = {"auth": {"logout": {}} if can.logout and agent.auth_methods else {}}
    if can.sessions:
        prompt = (("image", can.image), ("audio", can.audio), ("embeddedContext", can.embedded_context))
        mcp = (("stdio", can.mcp_stdio), ("http", can.mcp_http))
        there = [(name, getattr(can, name)) for name in _MARKERS]
        there += [(name, it) for name, it in session_markers(can) if name in ("delete", "additionalDirectories")]
        known["session"] = {
            "prompt": {name: {} for name, it in prompt if it},
            "mcp": {name: {} for name, it in mcp if it},
        } | {name: {} for name, it in there if it}
    methods = [_old_id(say_method_2(method)) for method in agent.auth_methods if isinstance(method, AgentAuth)]
    body: Json = {"protocolVersion": 2, "capabilities": whole(known, can), "authMethods": methods}
    if agent.info is not None:
        body["agentInfo"] = say_implementation(agent.info)
    return msgspec.json.encode(whole(body, agent))


def say_client(hello: ClientHello) -> bytes:
    """The shape of this draft only."""
    info = hello.info or Implementation("dragoman", "0")
    return msgspec.json.encode({"protocolVersion": 2, "capabilities": {}, "clientInfo": say_implementation(info)})


def hear_agent(result: Raw) -> HeardAgent:
    """An agent of this draft; one that answers with version 1 is heard as that."""
    body = as_object(loosely(result))
    if body.get("protocolVersion") == 1:
        return HeardAgent(1, hear_agent_1(body))
    known = part(body, "capabilities")
    session, auth = part(known, "session"), part(known, "auth")
    prompt, mcp = part(session, "prompt"), part(session, "mcp")
    capabilities = AgentCapabilities(
        sessions=marked(known, "session"),
        load=marked(session, "load"),
        list=marked(session, "list"),
        resume=marked(session, "resume"),
        close=marked(session, "close"),
        delete=marked(session, "delete"),
        additional_directories=marked(session, "additionalDirectories"),
        image=marked(prompt, "image"),
        audio=marked(prompt, "audio"),
        embedded_context=marked(prompt, "embeddedContext"),
        mcp_stdio=marked(mcp, "stdio"),
        mcp_http=marked(mcp, "http"),
        logout=marked(auth, "logout"),
        meta=meta_of(known),
    )
    heard: list[AuthMethod] = present([hear_method_2(method) for method in items(body.get("authMethods"))])
    known_methods: list[AuthMethod] = [method for method in heard if not isinstance(method, UnknownAuth)]
    info = implementation(body.get("agentInfo"))
    return HeardAgent(2, AgentHello(info, capabilities, known_methods, meta=meta_of(body)), JUNE)


def _old_id(method: Any) -> Json:
    return {("id" if name == "methodId" else name): value for name, value in method.items()}


# -- the agent -------------------------------------------------------------------------------------------------------


class AgentJune(SeedAgent):
    """The agent's side."""

    null_ids = True
    methods = frozenset(
        {
            *("authenticate", "logout", "session/new", "session/load", "session/resume", "session/list"),
            *("session/close", "session/delete", "session/prompt", "session/cancel", "session/set_config_option"),
        }
    )
    updates = {  # noqa: RUF012  # never changed
        **dict.fromkeys(("user_message_chunk", "agent_message_chunk", "agent_thought_chunk"), _CHUNK),
        **dict.fromkeys(_WHOLE, _CHUNK),
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
    opened = frozenset({"sessionId", "configOptions", "_meta"})
    permission = (
        Offered("allow_once", "allow_once", "Allow once"),
        Offered("allow_always", "allow_always", "Always allow"),
        Offered("reject_once", "reject_once", "Reject"),
        Offered("reject_always", "reject_always", "Always reject"),
    )

    def offers(self, request: Any) -> Any:
        """Ids and names are the question's own here."""
        return [option for option in request.options if option.kind in [one.kind for one in self.permission]]

    def _meant(self, request: Any, answer: Any) -> Any:
        return answer

    def error(self, error: WireError) -> WireError:
        """The codes are those of the standard."""
        return error

    def tell(self, session_id: str, event: events.AnyEvent) -> Sequence[Out]:
        """As in version 1; whole messages, appended content and an emptied plan are told as such."""
        match event:
            case events.Message() if not self._is_echo_of(session_id, event):
                body: Json = {"sessionUpdate": _MESSAGES[type(event)], "messageId": event.message_id}
                if event.content is None or isinstance(event.content, list):
                    body["content"] = _said(v1.WORDS.say(event.content))
                return self._notify(session_id, [_Ready(body)])
            case events.ToolCallContentChunk() if self._appends(session_id, event):
                (item,) = _said(v1.say_items([event.content])) or [None]
                self._session(session_id).call(event.tool_call_id).content.append(event.content)
                body = {"toolCallId": event.tool_call_id, "content": item}
                return self._notify(session_id, [_Ready({"sessionUpdate": "tool_call_content_chunk", **body})])
            case events.PlanRemoved():
                return super().tell(session_id, events.PlanUpdate(options.PlanItems(event.plan_id, [])))
            case _:
                return super().tell(session_id, event)

    def _is_echo_of(self, session_id: str, event: events.Message) -> bool:
        return isinstance(event, events.UserMessage) and self._is_echo(session_id, event.message_id)

    def _appends(self, session_id: str, event: events.ToolCallContentChunk) -> bool:
        """Whether it can be said by itself: the call is known, and the item is one thing on this wire."""
        known = event.tool_call_id in self._session(session_id).calls
        return known and not isinstance(event.content, tools.TerminalItem) and len(v1.say_items([event.content])) == 1

    def shaped(self, session_id: str, update: Json) -> Sequence[Json]:
        """A call that is announced is an update like any other; a plan has an `id`."""
        if update["sessionUpdate"] == "tool_call":
            return [{**update, "sessionUpdate": "tool_call_update"}]
        if update["sessionUpdate"] == "plan_update":
            plan = {("id" if name == "planId" else name): value for name, value in update["plan"].items()}
            return [{**update, "plan": plan}] if plan.get("type") == "items" else []
        return [update]


class _Ready(wire.Unknown):
    """An update that is said already."""

    def __init__(self, body: Json) -> None:
        super().__init__(body["sessionUpdate"], Raw(msgspec.json.encode(body)))


def _said(value: Any) -> Any:
    return None if value is None else [plain(Raw(wire.encode(item))) for item in value]


# -- the client ------------------------------------------------------------------------------------------------------


class ClientJune(ClientV1):
    """The client's side."""

    def hear_note(self, method: str, params: Raw) -> Sequence[Heard]:
        """As in version 1; whole messages and appended content are heard as what they are."""
        body: Any = plain(params) if method == "session/update" else None
        update = body.get("update") if isinstance(body, dict) else None
        if not isinstance(update, dict) or not isinstance(body.get("sessionId"), str):
            return super().hear_note(method, params)
        event = self._own(update)
        if event is not None:
            session = self._session(body["sessionId"])
            session.answering = session.answering or not isinstance(event, events.UserMessage)
            return [] if session.muted else [Told(body["sessionId"], event)]
        plan = update.get("plan")
        if isinstance(plan, dict) and "planId" not in plan and "id" in plan:
            update["plan"] = {("planId" if name == "id" else name): value for name, value in plan.items()}
            params = Raw(msgspec.json.encode(body))
        return super().hear_note(method, params)

    def _own(self, update: Json) -> events.AnyEvent | None:
        """What version 1 does not have."""
        name = update.get("sessionUpdate")
        if name in _WHOLE and isinstance(update.get("messageId"), str):
            found = update.get("content", msgspec.UNSET)
            blocks = [self._block(block) for block in found] if isinstance(found, list) else found
            return _WHOLE[name](update["messageId"], blocks)  # type: ignore[no-any-return]
        if name == "tool_call_content_chunk" and isinstance(update.get("toolCallId"), str):
            item = wire.decode(msgspec.json.encode([update.get("content")]), _Items)
            return events.ToolCallContentChunk(update["toolCallId"], v1.WORDS.hear(item, tools.UnknownItem)[0])
        return None

    def _block(self, block: Any) -> Any:
        return v1.WORDS.hear(wire.decode(msgspec.json.encode(block), w.ContentBlock), content.UnknownContent)

    def _is_bare_mode(self, request: requests.SetOption) -> bool:
        """There is no other way to set a mode than its option."""
        return False


_Items = tuple[w.ToolCallContent, ...]

DIALECT: Final = Named(hear_client, say_agent, AgentJune, say_client, hear_agent, ClientJune)

__all__ = ["DIALECT", "AgentJune", "ClientJune"]
