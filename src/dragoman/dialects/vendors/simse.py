"""The dialect of simse's ACP reference, in both roles: three updates, and notifications for what others ask.

An update stands beside its session and, once more, where the protocol has it. A permission is an update that is
answered with a notification: one of four words, and any other is a no. In this document the client runs the tools:
- as an agent we run our own, and never name them as something to be run;
- as a client we run none, unless the application registered a callback for it (`extensions={TOOL: …}`).
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from dragoman.dialects.codec.dialect_base import text_chunk_head, text_frame_head
from dragoman.dialects.codec.transcriber import plain
from dragoman.dialects.contract import (
    AnswerByNotification,
    DecodedNotification,
    Id,
    NotificationMessage,
    Out,
    RequestMessage,
)
from dragoman.dialects.handshake.initialize import DecodedAgentHello, DecodedClientHello, decode_agent_1
from dragoman.dialects.handshake.initialize import encode_client as encode_any_client
from dragoman.dialects.handshake.json_fields import JsonDict, as_object, decode_json
from dragoman.dialects.v1 import notices
from dragoman.dialects.v1.client import ClientV1
from dragoman.dialects.v1.permissions import subject_call
from dragoman.dialects.vendors import vendor_agent
from dragoman.dialects.vendors.named import NamedDialect
from dragoman.dialects.vendors.vendor_agent import VendorAgent, VendorPermissionOption
from dragoman.errors import WireError
from dragoman.vocabulary import content, events, options, requests, services
from dragoman.vocabulary.asking import Extension, ExtensionResult, Reply, Request
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.wire import v1 as w

NAME: Final = "simse"
PERMISSION: Final = "_simse/permission"
# The extension request by which the application is asked to run a tool for a backend.
TOOL: Final = "_simse/tool"
OUTCOMES: Final = ("allow_once", "allow_always", "reject_once", "reject_always")
_UPDATE: Final = "session/update"
_ENDS: Final = ("completed", "failed")


def decode_client(params: Raw) -> DecodedClientHello:
    """Decode `initialize`: the document has none, but a client may send it."""
    return vendor_agent.decode_client(params, NAME)


def encode_agent(agent: AgentHello, client: ClientHello) -> bytes:
    """The document claims nothing."""
    return vendor_agent.encode_agent(agent, {})


# -- the agent -------------------------------------------------------------------------------------------------------


class AgentSimse(VendorAgent):
    """The agent's side."""

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
        plain_client = replace(client, capabilities=replace(client.capabilities, plans=False))
        super().__init__(plain_client, vendor_agent.limited_agent(agent, load=False))
        self._questions = 0

    def decode_notification(self, method: str, params: Raw) -> Sequence[DecodedNotification]:
        """Decode as `super()` does, but `_simse/permission` is the reply to a permission.

        Updates are ignored: they are about tools that we have not asked the client to run.
        """
        if method == _UPDATE:
            return []
        if method != PERMISSION:
            return super().decode_notification(method, params)
        body: Any = plain(params) if params else None
        if not isinstance(body, dict):
            return []
        word = body.get("outcome")
        chosen = {"outcome": "selected", "optionId": word} if word in OUTCOMES else {"outcome": "cancelled"}
        key = _key(body.get("sessionId"), body.get("requestId"))
        return [AnswerByNotification(key, Raw(msgspec.json.encode({"outcome": chosen})))]

    def encode_request(self, request: Request) -> RequestMessage:
        """A permission is asked by an update; everything else as everywhere."""
        if not isinstance(request, services.RequestPermission):
            return super().encode_request(request)
        self._questions += 1
        id = f"permission-{self._questions}"
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
        return RequestMessage(_UPDATE, params, answered_as=_key(request.session_id, id))

    def encode_event(self, session_id: str, event: events.AnyEvent) -> Sequence[Out]:
        """Three updates; a plan is told in words."""
        match event:
            case events.PlanUpdate(plan=options.PlanItems(entries=entries)):
                steps = [f"- [{'x' if step.status == 'completed' else ' '}] {step.content}\n" for step in entries]
                return self.text_message(session_id, "agent_message_chunk", "".join(steps)) if steps else []
            case events.ToolCallUpdate():
                return super().encode_event(session_id, self.with_whole_content(session_id, event))
            case _:
                return super().encode_event(session_id, event)

    def encode_notice(self, notice: events.Notice, call_id: str) -> Sequence[Any]:
        """Encode a notice as a message: a tool call would be something for the client to run."""
        text = w.TextContent(text=f"\n[{notices.text_of(notice)}]\n")
        return [w.SessionUpdateAgentMessageChunk(content=text)]

    def reshape(self, session_id: str, update: JsonDict) -> Sequence[JsonDict]:
        """A call is told as ours; it ends completed, with an output or an error."""
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
        """Only the document's fields, and the second name of the update."""
        return super().only_known_fields({**update, "type": update["sessionUpdate"]})

    def update_params(self, session_id: str, update: JsonDict) -> JsonDict:
        """The update beside its session, and where the protocol has it."""
        return {"sessionId": session_id, **update, "update": update}

    def text_frame(self, session_id: str, kind: str, message_id: str) -> tuple[bytes, ...]:
        """The text stands in it twice: in the update, and beside the session."""
        self._session(session_id).spoken[message_id] = None
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
    """The prompt as one text. A file or a link at its beginning is marked as such: the agent reads a slash command from
    the first character on, and cannot tell what the user typed from what went along."""
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

    def decode_notification(self, method: str, params: Raw) -> Sequence[DecodedNotification]:
        """Decode as `super()` does, but an update that wants a permission or a tool run is a request."""
        body: Any = plain(params) if method == _UPDATE else None
        if not isinstance(body, dict) or not isinstance(body.get("sessionId"), str):
            return super().decode_notification(method, params)
        update = body["update"] if isinstance(body.get("update"), dict) else body
        if update.get("type", update.get("sessionUpdate")) == "request_permission":
            return [_question(body["sessionId"], update)] if isinstance(update.get("requestId"), str) else []
        heard = list(super().decode_notification(method, params))
        wanted = update.get("toolName"), update.get("toolCallId")
        if update.get("sessionUpdate", update.get("type")) == "tool_call" and all(isinstance(it, str) for it in wanted):
            named = {"sessionId": body["sessionId"], "toolCallId": wanted[1], "toolName": wanted[0]}
            heard.append(Extension(TOOL, {**named, "input": update.get("input", {})}))
        return heard

    def encode_reply(self, id: Id, request: Request, reply: Reply) -> Sequence[Out]:
        """What was asked by a notification is answered by one."""
        if isinstance(request, services.RequestPermission) and isinstance(reply, services.PermissionAnswer):
            outcome = reply.outcome
            return [_answer(request, outcome.option_id if isinstance(outcome, services.Selected) else "reject_once")]
        if isinstance(request, Extension) and request.method == TOOL and isinstance(reply, ExtensionResult):
            result = None if reply.result is msgspec.UNSET else reply.result
            return [_progress(request, "in_progress"), _progress(request, "completed", output=result)]
        return super().encode_reply(id, request, reply)

    def encode_failure(self, id: Id, request: Request, error: WireError) -> Sequence[Out]:
        """Send `reject_once` for a failed permission, and an error as the end of a failed tool run."""
        if isinstance(request, services.RequestPermission):
            return [_answer(request, "reject_once")]
        if isinstance(request, Extension) and request.method == TOOL:
            return [_progress(request, "completed", error=error.message)]
        return super().encode_failure(id, request, error)


def _question(session_id: str, update: JsonDict) -> services.RequestPermission:
    """The four answers are the document's; what it is about is one text."""
    action, about = update.get("action"), update.get("description")
    title = about if isinstance(about, str) and about else str(action or "Permission needed")
    call = events.ToolCallUpdate(f"permission: {update['requestId']}", title=title, kind="other")
    four = [services.PermissionOption(word, word.replace("_", " ").capitalize(), word) for word in OUTCOMES]
    meta = {"requestId": update["requestId"], "action": action}
    return services.RequestPermission(session_id, title, four, subject=services.ToolCallSubject(call), meta=meta)


def _answer(request: services.RequestPermission, word: str) -> NotificationMessage:
    meta = request.meta or {}
    known = word if word in OUTCOMES else "reject_once"
    body = {"sessionId": request.session_id, "requestId": meta.get("requestId"), "outcome": known}
    return NotificationMessage(PERMISSION, msgspec.json.encode(body))


def _progress(request: Extension, status: str, **end: object) -> NotificationMessage:
    asked: Any = request.params
    body = {"sessionId": asked["sessionId"], "sessionUpdate": "tool_call_update", "type": "tool_call_update"}
    body |= {"toolCallId": asked["toolCallId"], "status": status, **end}
    return NotificationMessage(_UPDATE, msgspec.json.encode(body))


def encode_client(hello: ClientHello) -> bytes:
    """Encode `initialize` of version 1, for agents that know it."""
    return encode_any_client(hello, (1,))


def decode_agent(result: Raw) -> DecodedAgentHello:
    """An agent of version 1."""
    return DecodedAgentHello(1, decode_agent_1(as_object(decode_json(result))), NAME)


DIALECT: Final = NamedDialect(
    decode_client, encode_agent, AgentSimse, encode_client, decode_agent, ClientSimse, needs_no_hello=True
)
