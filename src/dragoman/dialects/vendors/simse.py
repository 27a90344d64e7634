"""The dialect of simse's ACP reference, in both roles: three updates, and notifications for what others ask.

An update stands beside its session and, once more, where the protocol has it. A permission is an update that is
answered with a notification: one of four words, and any other is a no. In this document the client runs the tools:
- as an agent we run our own, and never name them as something to be run;
- as a client we run none, unless the application registered a callback for it (`extensions={TOOL: …}`).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from dragoman.dialects.codec.dialect_base import text_chunk_head, text_frame_head
from dragoman.dialects.contract import DecodedNotification, Id, Out, RequestMessage
from dragoman.dialects.handshake.initialize import DecodedClientHello
from dragoman.dialects.handshake.json_fields import JsonDict, as_object, decode_json
from dragoman.dialects.v1 import notices
from dragoman.dialects.v1.client import ClientV1
from dragoman.dialects.v1.permissions import subject_call
from dragoman.dialects.vendors import vendor_agent
from dragoman.dialects.vendors.named import NamedDialect
from dragoman.dialects.vendors.vendor_agent import VendorAgent, VendorPermissionOption
from dragoman.dialects.vendors.wire_adapter import (
    AdaptedFrames,
    as_dict,
    notification_frame,
    read_envelope,
    request_frame,
    result_frame,
)
from dragoman.errors import METHOD_NOT_FOUND
from dragoman.vocabulary import content, events, options, requests, services
from dragoman.vocabulary.asking import Note, Request
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.wire import types as wire
from dragoman.wire import v1 as w
from dragoman.wire.envelope import ErrorResponse, Notification, RequestEnvelope, ResultResponse
from dragoman.wire.jsonrpc import CANCEL_REQUEST

NAME: Final = "simse"
# The document leaves open how a permission is answered, so the name of the notification is ours.
PERMISSION: Final = "_simse/permission"
# The extension request by which the application is asked to run a tool for a backend.
TOOL: Final = "_simse/tool"
# The id of the `initialize` that the adapter supplies: none that a peer would choose.
_OUR_INITIALIZE: Final = "\0initialize"
# The four answers to a permission (row 8.5.7), which are also the kinds of the protocol's options.
OUTCOMES: Final = ("allow_once", "allow_always", "reject_once", "reject_always")
_UPDATE: Final = "session/update"
_ENDS: Final = ("completed", "failed")


def decode_client(params: Raw) -> DecodedClientHello:
    """Decode `initialize`: the document has none, but a client may send it."""
    return vendor_agent.decode_client(params, NAME)


def encode_agent(agent: AgentHello, client: ClientHello) -> bytes:
    """Encode the answer to `initialize`, for clients that send one; the document has no capabilities."""
    return vendor_agent.encode_agent(agent, {})


# -- the agent -------------------------------------------------------------------------------------------------------


class AgentSimse(VendorAgent):
    """The agent's side."""

    # Three methods and three updates: the document has no more (row 8.5.5).
    methods = frozenset({"session/new", "session/prompt", "session/cancel"})
    update_fields = {  # noqa: RUF012  # never changed
        "agent_message_chunk": frozenset({"type", "content", "text"}),
        "tool_call": frozenset({"type", "toolCallId", "title", "kind", "status"}),
        "tool_call_update": frozenset({"type", "toolCallId", "status", "output", "error"}),
    }
    opened_fields = frozenset({"sessionId"})
    permission_options = tuple(
        VendorPermissionOption(word, word, word.replace("_", " ").capitalize()) for word in OUTCOMES
    )

    def __init__(self, client: ClientHello, agent: AgentHello) -> None:
        # One plan, in words: the document has no update for plans.
        plain_client = replace(client, capabilities=replace(client.capabilities, plans=False))
        super().__init__(plain_client, vendor_agent.limited_agent(agent, load=False))
        self._questions = 0  # permission requests so far: each has its own `requestId`

    def decode_notification(self, method: str, params: Raw) -> Sequence[DecodedNotification]:
        """Decode as `super()` does, but ignore updates: they are about tools that we asked no client to run."""
        return [] if method == _UPDATE else super().decode_notification(method, params)

    def encode_request(self, request: Request) -> RequestMessage:
        """Encode as `super()` does, but a permission is an update, which `SimseAgentAdapter` sends without an id."""
        if not isinstance(request, services.RequestPermission):
            return super().encode_request(request)
        self._questions += 1
        id = f"permission-{self._questions}"
        # All that the user sees is one text: the title, and what the question says beside it.
        call = subject_call(request, [])
        notes = [item.content.text for item in call.content or () if _is_text(item)]  # type: ignore[union-attr]
        update = {
            "sessionUpdate": "request_permission",
            "type": "request_permission",
            "action": call.kind if isinstance(call.kind, str) else "other",
            "description": "\n".join([request.title, *notes]),
            "requestId": id,
        }
        params = msgspec.json.encode(self.update_params(request.session_id, update))
        return RequestMessage(_UPDATE, params)

    def encode_event(self, session_id: str, event: events.AnyEvent) -> Sequence[Out]:
        """Encode as `super()` does, but a plan is a message, and a call that ends has its whole content."""
        match event:
            case events.PlanUpdate(plan=options.PlanItems(entries=entries)):
                steps = [f"- [{'x' if step.status == 'completed' else ' '}] {step.content}\n" for step in entries]
                return self.text_message(session_id, "agent_message_chunk", "".join(steps)) if steps else []
            case events.ToolCallUpdate():
                return super().encode_event(session_id, self.with_whole_content(session_id, event))
            case _:
                return super().encode_event(session_id, event)

    def encode_notice(self, notice: events.Notice, call_id: str) -> Sequence[wire.WireValue]:
        """Encode a notice as a message: a tool call would be something for the client to run."""
        text = w.TextContent(text=f"\n[{notices.text_of(notice)}]\n")
        return [w.SessionUpdateAgentMessageChunk(content=text)]

    def reshape(self, session_id: str, update: JsonDict) -> Sequence[JsonDict]:
        """Return an update as the document has it: a call ends `completed`, with an output or an error (row 8.5.10)."""
        # Without `toolName` and `input`, which tell a client of this document to run the tool (row 8.5.8).
        name = update["sessionUpdate"]
        if name == "agent_message_chunk" and update["content"].get("type") == "text":
            return [{**update, "text": update["content"]["text"]}]
        if name == "tool_call":
            ended = update.get("status") in _ENDS
            first = {**update, "status": "in_progress"}
            return [
                first,
                *(self.reshape(session_id, {**update, "sessionUpdate": "tool_call_update"}) if ended else ()),
            ]
        if name == "tool_call_update":
            if update.get("status") not in _ENDS:
                return [{**update, "status": "in_progress"}] if update.get("status") == "in_progress" else []
            # What a call shows is what its user would see: nothing else here carries that.
            shown = vendor_agent.shown_text(update) or update.get("rawOutput", "")
            end = {"error": _in_words(shown)} if update["status"] == "failed" else {"output": shown}
            return [{**update, "status": "completed", **end}]
        return [update]

    def only_known_fields(self, update: JsonDict) -> JsonDict:
        """Return an update with the document's fields only, and its second name (row 8.5.6)."""
        return super().only_known_fields({**update, "type": update["sessionUpdate"]})

    def update_params(self, session_id: str, update: JsonDict) -> JsonDict:
        """Return the update beside its session (row 8.5.4), and once more where the protocol has it."""
        return {"sessionId": session_id, **update, "update": update}

    def text_frame(self, session_id: str, kind: str, message_id: str) -> tuple[bytes, ...]:
        """Return the frame around the text in three parts: it is there in the update, and beside the session."""
        self._session(session_id).message_ids[message_id] = None
        if kind not in self.update_fields:
            return ()
        more = vendor_agent.type_field(kind)
        return text_frame_head(session_id, kind, more), b"}}," + text_chunk_head(kind, more), b"}}}"


def _key(session_id: object, request_id: object) -> str:
    return f"{session_id}\n{request_id}"


def _is_text(item: object) -> bool:
    return isinstance(getattr(item, "content", None), content.Text)


def _in_words(shown: Any) -> str:
    text = shown if isinstance(shown, str) else msgspec.json.encode(shown).decode()
    return text if shown else "It failed"


# -- the client ------------------------------------------------------------------------------------------------------


def _prompt_text(blocks: list[content.Content]) -> str:
    """Return the prompt as one text (row 8.5.2).

    A file or a link at its beginning is marked as such: the agent reads a slash command from the first character on,
    and cannot tell what the user typed from what was attached.
    """
    text = content.text_of(blocks)
    is_typed = bool(blocks) and isinstance(blocks[0], content.Text) and bool(blocks[0].text.strip())
    return text if is_typed or not text.lstrip().startswith("/") else f"[attached]\n{text}"


class ClientSimse(ClientV1):
    """The client's side."""

    def encode_request(self, request: Request) -> RequestMessage:
        """Encode as `super()` does, but a prompt is one text."""
        call = super().encode_request(request)
        if not isinstance(request, requests.PromptRequest):
            return call
        body = {"sessionId": request.session_id, "prompt": _prompt_text(request.prompt)}
        return replace(call, params=msgspec.json.encode(body))

    def decode_request(self, id: Id, method: str, params: Raw) -> Request | Note:
        """Decode as `super()` does, and the update that asks for a permission, which comes from the adapter."""
        if method == PERMISSION:
            body = as_object(decode_json(params))
            return _question(str(body["sessionId"]), _update_in(body))
        return super().decode_request(id, method, params)


def _question(session_id: str, update: JsonDict) -> services.RequestPermission:
    """Return the permission request that an update stands for, with the document's four options."""
    action, about = update.get("action"), update.get("description")
    title = about if isinstance(about, str) and about else str(action or "Permission needed")
    call = events.ToolCallUpdate(f"permission: {update['requestId']}", title=title, kind="other")
    four = [services.PermissionOption(word, word.replace("_", " ").capitalize(), word) for word in OUTCOMES]
    meta = {"requestId": update["requestId"], "action": action}
    return services.RequestPermission(session_id, title, four, subject=services.ToolCallSubject(call), meta=meta)


# -- the wire --------------------------------------------------------------------------------------------------------


class SimseAgentAdapter:
    """Our end is the agent: supplies the `initialize` that clients never send, and asks permission by an update.

    A permission request leaves as an update with a `requestId`; the notification that names it comes in as the reply.
    """

    def __init__(self) -> None:
        self._is_initialized = False
        self._initialize_id: Id = _OUR_INITIALIZE
        self._asked: dict[str, Id] = {}  # permission requests in flight, by session and `requestId`

    def receive(self, frame: bytes) -> AdaptedFrames:
        """Deliver `initialize` before the first request, and an answering notification as a response."""
        message = read_envelope(frame)
        if isinstance(message, RequestEnvelope) and not self._is_initialized:
            # Until an `initialize` has succeeded, each request is preceded by one: the client's own may be malformed.
            if message.method != "initialize":
                return AdaptedFrames([request_frame(_OUR_INITIALIZE, "initialize", {"protocolVersion": 1}), frame])
            self._initialize_id = message.id
        if not isinstance(message, Notification) or message.method != PERMISSION:
            return AdaptedFrames([frame])
        # Each request is answered once. A key that is not known was answered, withdrawn, or made up.
        body = as_dict(message.params)
        id = self._asked.pop(_key(body.get("sessionId"), body.get("requestId")), None)
        if id is None:
            return AdaptedFrames([])
        # Fail closed: a text that is none of the four is a no.
        word = body.get("outcome")
        chosen = {"outcome": "selected", "optionId": word} if word in OUTCOMES else {"outcome": "cancelled"}
        return AdaptedFrames([result_frame(id, {"outcome": chosen})])

    def send(self, frame: bytes) -> Sequence[bytes]:
        """Send a permission request as a notification; drop the answer to an `initialize` that was ours."""
        message = read_envelope(frame)
        if isinstance(message, RequestEnvelope) and message.method == _UPDATE:
            body = as_dict(message.params)
            self._asked[_key(body.get("sessionId"), body.get("requestId"))] = message.id
            return [notification_frame(_UPDATE, message.params)]
        if isinstance(message, Notification) and message.method == CANCEL_REQUEST:
            return [] if self._forget(as_dict(message.params).get("requestId")) else [frame]
        if isinstance(message, (ResultResponse, ErrorResponse)):
            if isinstance(message, ResultResponse) and message.id in (_OUR_INITIALIZE, self._initialize_id):
                self._is_initialized = True
            return [] if message.id == _OUR_INITIALIZE else [frame]
        return [frame]

    def _forget(self, id: object) -> bool:
        """Forget a permission request whose caller is gone; this wire has no message to withdraw it."""
        keys = [key for key, asked in self._asked.items() if asked == id]
        for key in keys:
            del self._asked[key]
        return bool(keys)


class SimseClientAdapter:
    """Our end is the client: updates that want an answer come in as requests, and their replies leave as notifications.

    An agent that does not know `initialize` counts as one that was initialized without any capability.
    """

    def __init__(self) -> None:
        self._initialize_id: Id = 0  # none of ours: they begin at 1
        self._last = 0
        self._permissions: dict[Id, JsonDict] = {}  # what they are answered with, but for the outcome
        self._tools: dict[Id, JsonDict] = {}  # the updates about their progress, but for the status

    def receive(self, frame: bytes) -> AdaptedFrames:
        """Deliver an update that asks for a permission or a tool run as a request."""
        message = read_envelope(frame)
        if isinstance(message, ErrorResponse) and (message.id, message.code) == (self._initialize_id, METHOD_NOT_FOUND):
            return AdaptedFrames([result_frame(message.id, {"protocolVersion": 1})])
        if not isinstance(message, Notification) or message.method != _UPDATE:
            return AdaptedFrames([frame])
        body = as_dict(message.params)
        session_id, update = body.get("sessionId"), _update_in(body)
        if not isinstance(session_id, str):
            return AdaptedFrames([frame])
        # A permission is handed up only as a request: as an update it would be an unknown one, and never answered.
        if update.get("type", update.get("sessionUpdate")) == "request_permission":
            return AdaptedFrames(self._permission(session_id, update, message.params))
        # A tool run is both: an update for the screen, and a request to the application, which may serve it or not.
        return AdaptedFrames([frame, *self._tool(session_id, update)])

    def send(self, frame: bytes) -> Sequence[bytes]:
        """Send the reply to such a request as a notification, or as updates about a tool run."""
        message = read_envelope(frame)
        if isinstance(message, RequestEnvelope) and message.method == "initialize":
            self._initialize_id = message.id
        if not isinstance(message, (ResultResponse, ErrorResponse)):
            return [frame]
        if (permission := self._permissions.pop(message.id, None)) is not None:
            return [notification_frame(PERMISSION, {**permission, "outcome": _outcome(message)})]
        if (progress := self._tools.pop(message.id, None)) is not None:
            return [notification_frame(_UPDATE, {**progress, **end}) for end in _tool_ends(message)]
        return [frame]

    def _permission(self, session_id: str, update: JsonDict, params: Raw) -> Sequence[bytes]:
        if not isinstance(update.get("requestId"), str):
            return []  # it could not be answered
        id = self._next_id()
        self._permissions[id] = {"sessionId": session_id, "requestId": update["requestId"]}
        return [request_frame(id, PERMISSION, params)]

    def _tool(self, session_id: str, update: JsonDict) -> Sequence[bytes]:
        name, call_id = update.get("toolName"), update.get("toolCallId")
        is_call = update.get("sessionUpdate", update.get("type")) == "tool_call"
        if not is_call or not isinstance(name, str) or not isinstance(call_id, str):
            return []
        id = self._next_id()
        kind = {"sessionUpdate": "tool_call_update", "type": "tool_call_update"}
        self._tools[id] = {"sessionId": session_id, **kind, "toolCallId": call_id}
        wanted = {"sessionId": session_id, "toolCallId": call_id, "toolName": name, "input": update.get("input", {})}
        return [request_frame(id, TOOL, wanted)]

    def _next_id(self) -> str:
        self._last += 1
        return f"\0simse {self._last}"  # no id that a peer would choose


def _update_in(body: JsonDict) -> JsonDict:
    """Return the update of a notification: it stands beside its session, or where the protocol has it."""
    update = body.get("update")
    return update if isinstance(update, dict) else body


def _outcome(message: ResultResponse | ErrorResponse) -> str:
    """Return the word that answers a permission; anything but a known choice is a no."""
    outcome: Any = as_dict(message.result).get("outcome") if isinstance(message, ResultResponse) else None
    word = outcome.get("optionId") if isinstance(outcome, dict) else None
    return word if word in OUTCOMES else "reject_once"


def _tool_ends(message: ResultResponse | ErrorResponse) -> Sequence[JsonDict]:
    if isinstance(message, ErrorResponse):
        return [{"status": "completed", "error": message.message}]
    return [{"status": "in_progress"}, {"status": "completed", "output": message.result}]


DIALECT: Final = NamedDialect(
    decode_client,
    encode_agent,
    AgentSimse,
    vendor_agent.encode_client,
    partial(vendor_agent.decode_agent, name=NAME),
    ClientSimse,
    agent_adapter=SimseAgentAdapter,
    client_adapter=SimseClientAdapter,
)
