"""The dialect of iac-code's protocol reference: version 1 with `models`, and every update in two forms.

An update has `sessionUpdate` and `type`, `content` and `text`, `rawInput` and `raw_input`: the reference names the one,
the program it is about sends the other. Errors and compaction are sent as messages. Fork and resume work although
only list and close are advertised.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from dragoman.dialects.codec.dialect_base import text_frame_head
from dragoman.dialects.codec.transcriber import plain
from dragoman.dialects.contract import DecodedReply, Id, Out, RequestMessage, ResultMessage, SessionEvent
from dragoman.dialects.handshake.initialize import DecodedClientHello
from dragoman.dialects.handshake.json_fields import JsonDict
from dragoman.dialects.tolerance import updates as tolerance
from dragoman.dialects.v1 import notices
from dragoman.dialects.v1.client import ClientV1
from dragoman.dialects.vendors import refusals, vendor_agent, wire_adapter
from dragoman.dialects.vendors.named import NamedDialect
from dragoman.dialects.vendors.vendor_agent import VendorAgent, VendorPermissionOption
from dragoman.dialects.vendors.wire_adapter import AdaptedFrames
from dragoman.errors import (
    AUTH_REQUIRED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    NOT_FOUND,
    PeerMistake,
    WireError,
)
from dragoman.vocabulary import events, options, requests, services
from dragoman.vocabulary.asking import Note, Reply, Request
from dragoman.vocabulary.dialect_rules import DialectRules
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.wire import types as wire
from dragoman.wire import v1 as w
from dragoman.wire.envelope import ErrorResponse, Notification, RequestEnvelope, ResultResponse
from dragoman.wire.jsonrpc import CANCEL_REQUEST

NAME: Final = "iac-code"
# The protocol had this method before it had options; iac-code's program still has it (row 8.1.4).
SET_MODEL: Final = "session/set_model"
_CATEGORY: Final = "model"
# The fields of its updates, in both forms: `type` is the second name of an update, `text` the second of its content.
_MESSAGE: Final = frozenset({"content", "text", "type"})
_CALL: Final = frozenset({"toolCallId", "title", "kind", "status", "content", "locations", "type"})
_RAW: Final = {"rawInput": "raw_input", "rawOutput": "raw_output"}
_ENDS: Final = ("completed", "failed")
# What the reference calls otherwise than the protocol and the program do (rows 8.1.12 and 8.1.13).
_CONFIG_SET: Final = "config/set"
_OTHERWISE: Final = {
    "session/list": "sessions/list",
    **dict.fromkeys(("session/set_config_option", "session/set_mode", SET_MODEL), _CONFIG_SET),
}
# Methods that set one option: its id, and the param that has the value.
_SETTERS: Final = {"session/set_mode": ("mode", "modeId"), SET_MODEL: (_CATEGORY, "modelId")}


def decode_client(params: Raw) -> DecodedClientHello:
    """Decode `initialize`; whatever version is asked for, it is answered with 1."""
    return vendor_agent.decode_client(params, NAME)


def encode_agent(agent: AgentHello, client: ClientHello) -> bytes:
    """Encode the answer to `initialize`: the capabilities of the reference's table, as far as the agent has them."""
    # Fork and resume are not advertised there, and are served all the same (row 8.1.5).
    can = agent.capabilities
    capabilities = {
        "loadSession": can.load,
        "promptCapabilities": {"embeddedContext": True, "image": False, "audio": False},
        "sessionCapabilities": {name: {} for name in ("list", "close") if getattr(can, name)},
    }
    return vendor_agent.encode_agent(agent, capabilities)


def models_of(found: list[options.Option]) -> JsonDict:
    """Return the model option as the `models` field, as the protocol once had it."""
    for option in found:
        if isinstance(option, options.Select) and option.category == _CATEGORY:
            listed = [
                {"modelId": choice.value, "name": choice.name}
                | ({"description": choice.description} if isinstance(choice.description, str) else {})
                for choice in option.choices()
            ]
            return {"models": {"currentModelId": option.current_value, "availableModels": listed}}
    return {}


# -- the agent -------------------------------------------------------------------------------------------------------


class AgentIacCode(VendorAgent):
    """The agent's side."""

    methods = frozenset(
        {
            *("session/new", "session/load", "session/fork", "session/resume", "session/close", "session/list"),
            *("session/prompt", "session/cancel", "session/set_config_option"),
            # Not in the reference; the program has them, and its results have what they set.
            *("session/set_mode", SET_MODEL),
        }
    )
    update_fields = {  # noqa: RUF012  # never changed
        **dict.fromkeys(events.CHUNK_TYPES, _MESSAGE),
        "tool_call": _CALL,
        "tool_call_update": _CALL | set(_RAW) | set(_RAW.values()),
    }
    opened_fields = frozenset({"sessionId", "modes"})
    permission_options = (
        VendorPermissionOption("allow_once", "allow_once", "Allow once"),
        VendorPermissionOption("allow_always", "allow_always", "Always allow in this session"),
        VendorPermissionOption("reject_once", "reject_once", "Reject once"),
        VendorPermissionOption("reject_always", "reject_always", "Always reject in this session"),
    )

    def __init__(self, client: ClientHello, agent: AgentHello) -> None:
        can = agent.capabilities
        limited = vendor_agent.limited_agent(agent, resume=can.resume, fork=can.fork, list=can.list, close=can.close)
        super().__init__(client, limited)
        # `session/set_model` by id: answered with an empty object, not with all options.
        self._plain_models: set[Id] = set()

    # -- requests of the client --------------------------------------------------------------------------------------

    def decode_named_request(self, id: Id, method: str, params: Raw) -> Request | Note:
        """Decode as `super()` does, but `session/set_model` sets the model option.

        Raise `PeerMistake` for a list of sessions without `cwd`.
        """
        if method == SET_MODEL:
            return self._decode_model(id, params)
        request = super().decode_named_request(id, method, params)
        # The reference's list is of one folder, without pages (row 8.1.12); its rules have the agent send all at once.
        if isinstance(request, requests.ListSessions) and not isinstance(request.cwd, str):
            raise PeerMistake(INVALID_PARAMS, "cwd is required")
        return request

    def _decode_model(self, id: Id, params: Raw) -> Request:
        body: Any = plain(params) if params else None
        if not isinstance(body, dict) or not all(isinstance(body.get(key), str) for key in ("sessionId", "modelId")):
            raise PeerMistake(INVALID_PARAMS, "sessionId and modelId must be texts")
        self._plain_models.add(id)
        known = self._sessions.get(body["sessionId"])
        option = known.model[0] if known is not None and known.model[0] else "model"
        return requests.SetOption(body["sessionId"], option, body["modelId"])

    def vendor_error(self, error: WireError) -> WireError:
        """Return an error with the reference's codes, which has none for a login (rows 8.1.20 and 8.1.21)."""
        if error.code == NOT_FOUND:
            return WireError(INVALID_PARAMS, "Invalid params", {"session_id": "Session not found"})
        return error._replace(code=INTERNAL_ERROR) if error.code == AUTH_REQUIRED else error

    # -- replies -----------------------------------------------------------------------------------------------------

    def encode_reply(self, id: Id, request: Request, reply: Reply) -> Sequence[Out]:
        """Reply as `super()` does, but `session/set_model` is answered with an empty object."""
        if id in self._plain_models:
            self._plain_models.discard(id)
            return [ResultMessage(id, b"{}")]
        return super().encode_reply(id, request, reply)

    def encode_failure(self, id: Id, request: Request, error: WireError) -> Sequence[Out]:
        """Fail as `super()` does, and forget that the request was a `session/set_model`."""
        self._plain_models.discard(id)
        return super().encode_failure(id, request, error)

    def encode_opened(self, reply: requests.SessionOpened, kind: Any, encoded_options: Any) -> bytes:
        """Encode as `super()` does, with the models in their own field."""
        body = plain(Raw(super().encode_opened(reply, kind, encoded_options)))
        return msgspec.json.encode(body | models_of(reply.config_options or []))

    def encode_end(self, event: events.Idle) -> bytes:
        """Encode the stop reason and the tokens of the turn; zeros where the model counts none (row 8.1.10)."""
        body = plain(Raw(super().encode_end(event)))
        used = event.usage if isinstance(event.usage, events.Usage) else events.Usage(0, 0, 0)
        tokens = (("inputTokens", used.input_tokens), ("outputTokens", used.output_tokens))
        body["usage"] = dict([*tokens, ("totalTokens", used.total_tokens)])
        return msgspec.json.encode(body)

    def encode_request(self, request: Request) -> RequestMessage:
        """Encode as `super()` does; the tool call of a permission has its `rawInput` as `input` too."""
        call = super().encode_request(request)
        if not isinstance(request, services.RequestPermission):
            return call
        params = plain(Raw(call.params))
        # The reference calls it `input` (row 8.1.18); the protocol's name stays, for the program itself.
        about = params["toolCall"]
        if "rawInput" in about:
            about["input"] = about["rawInput"]
        return replace(call, params=msgspec.json.encode(params))

    # -- events ------------------------------------------------------------------------------------------------------

    def encode_event(self, session_id: str, event: events.AnyEvent) -> Sequence[Out]:
        """Encode as `super()` does; a compaction becomes a message, a call that ends has its whole content."""
        match event:
            # The reference has no update for it, and sends a message of its own (row 8.1.16).
            case events.CompactionUpdate(status="completed"):
                return self.text_message(session_id, "agent_message_chunk", "[The conversation was summarised]\n")
            case events.CompactionUpdate() | events.CompactionSummaryChunk():
                return []
            case events.ToolCallUpdate():
                return super().encode_event(session_id, self.with_whole_content(session_id, event))
            case _:
                return super().encode_event(session_id, event)

    def encode_notice(self, notice: events.Notice, call_id: str) -> Sequence[wire.WireValue]:
        """Encode an error as a message, as the reference does; another notice as a thought, no part of the answer."""
        text = notices.text_of(notice)
        if notice.severity == "error":
            return [w.SessionUpdateAgentMessageChunk(content=w.TextContent(text=f"[Error] {text}\n"))]
        return [w.SessionUpdateAgentThoughtChunk(content=w.TextContent(text=f"\n[{notice.severity.title()}] {text}\n"))]

    def encode_failed_turn(self, session_id: str, id: Id, error: WireError) -> Sequence[Out]:
        """Encode the failure twice: as a message, which the user reads, and as the error of the prompt."""
        message = self.text_message(session_id, "agent_message_chunk", f"[Error] {error.message}\n")
        return [*message, *super().encode_failed_turn(session_id, id, error)]

    def reshape(self, session_id: str, update: JsonDict) -> Sequence[JsonDict]:
        """Return a call `in_progress` first (row 8.1.17), then its input, and at its end its result."""
        if update["sessionUpdate"] == "tool_call":
            first = {**update, "status": "in_progress"}
            later = {name: value for name, value in update.items() if name in ("toolCallId", "rawInput")}
            follow = {"sessionUpdate": "tool_call_update", **later, "status": "in_progress"}
            outs = [first, follow] if "rawInput" in update else [first]
            ended = update.get("status") in _ENDS
            return [
                *outs,
                *(self.reshape(session_id, {**update, "sessionUpdate": "tool_call_update"}) if ended else ()),
            ]
        if update["sessionUpdate"] == "tool_call_update":
            if update.get("status", "pending") == "pending":
                return [{**update, "status": "in_progress"}]
            # The reference has the result as raw output; what the call shows is the nearest, where it has none.
            if update.get("status") in _ENDS and "rawOutput" not in update:
                shown = vendor_agent.shown_text(update) or ("It failed" if update["status"] == "failed" else "")
                return [{**update, "rawOutput": shown} if shown else update]
        return [update]

    def only_known_fields(self, update: JsonDict) -> JsonDict:
        """Return an update with the reference's fields only, each under both names."""
        return super().only_known_fields(twice(update))

    def text_frame(self, session_id: str, kind: str, message_id: str) -> tuple[bytes, ...]:
        """Return the frame around the text in three parts: it is there in `content` and in `text`."""
        self._session(session_id).message_ids[message_id] = None
        if kind not in self.update_fields:
            return ()
        return text_frame_head(session_id, kind, vendor_agent.type_field(kind)), b'},"text":', b"}}}"


def twice(update: JsonDict) -> JsonDict:
    """Return an update with every field under the reference's name and the program's."""
    doubled = {**update, "type": update["sessionUpdate"]}
    inner = update.get("content")
    if isinstance(inner, dict) and inner.get("type") == "text":
        doubled["text"] = inner["text"]
    return doubled | {theirs: update[ours] for ours, theirs in _RAW.items() if ours in update}


# -- the client ------------------------------------------------------------------------------------------------------


class ClientIacCode(ClientV1):
    """The client's side: it forks and resumes without the capabilities, and sets models with `session/set_model`.

    An agent that asks for permission with the reference's `request_permission` gets a flat reply.
    """

    def __init__(self, client: ClientHello, agent: AgentHello) -> None:
        # The agent serves both without advertising them (row 8.1.5); one that does not answers "method not found".
        super().__init__(client, replace(agent, capabilities=replace(agent.capabilities, resume=True, fork=True)))
        self._models: dict[str, options.Select] = {}  # of sessions that were opened with `models`
        self._runs_rejected_calls = True  # whatever it calls itself
        self._flat: set[Id] = set()  # permissions that are answered with a plain word

    def encode_request(self, request: Request) -> RequestMessage:
        """Encode as `super()` does, but the model of a session that has `models` is set with `session/set_model`."""
        if isinstance(request, requests.SetOption) and request.config_id == _CATEGORY:
            known = self._models.get(request.session_id)
            if known is not None:
                body = {"sessionId": request.session_id, "modelId": request.value}
                return RequestMessage(SET_MODEL, msgspec.json.encode(body))
        return super().encode_request(request)

    def decode_reply(self, request: Request, result: Raw) -> DecodedReply:
        """Decode as `super()` does; read a turn's tokens from `_meta` too, remember an opened session's models."""
        if isinstance(request, requests.ListSessions) and isinstance(request.cwd, str):
            result = _placed(result, request.cwd)
        replied = super().decode_reply(request, result)
        if isinstance(request, requests.PromptRequest):
            return replace(
                replied, events=[SessionEvent(one.session_id, _counted(one.event)) for one in replied.events]
            )
        if isinstance(replied.reply, requests.SessionOpened):
            model = tolerance.model_option(replied.reply.extras, [])
            if model is not None:
                self._models[replied.reply.session_id] = model
        return replied

    # -- permission --------------------------------------------------------------------------------------------------

    def decode_request(self, id: Id, method: str, params: Raw) -> Request | Note:
        """Decode as `super()` does, and remember that a `request_permission` needs a flat reply."""
        request = super().decode_request(id, method, params)
        if method == "request_permission":
            self._flat.add(id)
        return request

    def encode_reply(self, id: Id, request: Request, reply: Reply) -> Sequence[Out]:
        """Reply as `super()` does; a flat reply is `allowed` with its option, or `denied` without one."""
        if id not in self._flat or not isinstance(request, services.RequestPermission):
            return super().encode_reply(id, request, reply)
        self._flat.discard(id)
        assert isinstance(reply, services.PermissionAnswer)
        # Fail closed: only a choice that allows, among the options of the request, is sent as `allowed`.
        answer = {"outcome": "denied"}
        if refusals.encode_refusal(request, reply) is None and isinstance(reply.outcome, services.Selected):
            answer = {"outcome": "allowed", "option_id": reply.outcome.option_id}
        return [ResultMessage(id, msgspec.json.encode(answer))]

    def encode_failure(self, id: Id, request: Request, error: WireError) -> Sequence[Out]:
        """Fail as `super()` does, and forget that the request needs a flat reply."""
        self._flat.discard(id)
        return super().encode_failure(id, request, error)


def _placed(result: Raw, cwd: str) -> Raw:
    """Return a list of the sessions of one folder, with that folder in each: the reference leaves it out."""
    body: Any = plain(result)
    if not isinstance(body, dict) or not isinstance(body.get("sessions"), list):
        return result
    whole = [{"cwd": cwd, **one} if isinstance(one, dict) else one for one in body["sessions"]]
    return Raw(msgspec.json.encode({**body, "sessions": whole}))


def _counted(event: events.AnyEvent) -> events.AnyEvent:
    """Return the end of a turn with its tokens from `_meta`, where the program has them, in snake case."""
    if not isinstance(event, events.Idle) or isinstance(event.usage, events.Usage):
        return event
    used = event.meta.get("usage") if isinstance(event.meta, dict) else None
    named = used if isinstance(used, dict) else {}
    # All three or none: a sum that does not fit its parts would be worse than no count.
    counts = [named.get(f"{kind}_tokens") for kind in ("total", "input", "output")]
    total, read, written = (count if type(count) is int and count >= 0 else None for count in counts)
    if total is None or read is None or written is None:
        return event
    return replace(event, usage=events.Usage(total, read, written))


# -- the wire --------------------------------------------------------------------------------------------------------


class IacCodeAdapter:
    """Asks an agent again with the reference's method name, if it does not know the protocol's.

    The reference and the program that it is about differ in these names, and only asking shows which one an agent has
    read. From the first "method not found" on, that method is asked under the other name at once. The id stays, so the
    link knows of one request. A second refusal is the answer.
    """

    def __init__(self) -> None:
        self._unknown: set[str] = set()  # methods that the agent does not know by the protocol's name
        self._asked: dict[Id, tuple[str, Raw]] = {}  # requests under the protocol's name
        self._renamed: set[Id] = set()  # requests for an option under the reference's name

    def send(self, frame: bytes) -> Sequence[bytes]:
        """Rename a request for which the agent has only the reference's name."""
        message = wire_adapter.read_envelope(frame)
        if isinstance(message, RequestEnvelope) and message.method in _OTHERWISE:
            if message.method in self._unknown:
                return [self._with_other_name(message.id, message.method, message.params)]
            self._asked[message.id] = (message.method, message.params)
        elif isinstance(message, Notification) and message.method == CANCEL_REQUEST:
            # The caller is gone, and would not see the reply to a second request.
            self._forget(wire_adapter.as_dict(message.params).get("requestId"))
        return [frame]

    def receive(self, frame: bytes) -> AdaptedFrames:
        """Answer "method not found" with the other name, and a reply of an unknown form with an empty object."""
        message = wire_adapter.read_envelope(frame)
        if not isinstance(message, (ResultResponse, ErrorResponse)):
            return AdaptedFrames([frame])
        asked, renamed = self._asked.get(message.id), message.id in self._renamed
        self._forget(message.id)
        if asked is not None and isinstance(message, ErrorResponse) and message.code == METHOD_NOT_FOUND:
            self._unknown.add(asked[0])
            return AdaptedFrames([], [self._with_other_name(message.id, *asked)])
        if renamed and isinstance(message, ResultResponse) and not isinstance(plain(message.result), dict):
            # The reference does not say what `config/set` is answered with.
            return AdaptedFrames([wire_adapter.result_frame(message.id, {})])
        return AdaptedFrames([frame])

    def _with_other_name(self, id: Id, method: str, params: Raw) -> bytes:
        name = _OTHERWISE[method]
        body: object = params
        if name == _CONFIG_SET:
            self._renamed.add(id)
            body = _config_set(method, params)
        return wire_adapter.request_frame(id, name, body)

    def _forget(self, id: Any) -> None:
        self._asked.pop(id, None)
        self._renamed.discard(id)


def _config_set(method: str, params: Raw) -> object:
    """Return the params of `config/set`; those of a value whose type the reference does not have stay as they are."""
    given = wire_adapter.as_dict(params)
    if method in _SETTERS:
        option, key = _SETTERS[method]
        return {"sessionId": given.get("sessionId"), "configId": option, "value": given.get(key)}
    if given.get("type", "boolean") != "boolean":
        return params
    return {name: given.get(name) for name in ("sessionId", "configId", "value")}


DIALECT: Final = NamedDialect(
    decode_client,
    encode_agent,
    AgentIacCode,
    vendor_agent.encode_client,
    partial(vendor_agent.decode_agent, name=NAME),
    ClientIacCode,
    DialectRules(fetches_as_reading=True, lists_all_sessions=True),
    client_adapter=IacCodeAdapter,
)
