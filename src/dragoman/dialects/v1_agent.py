"""Version 1, as the agent: hears a client, tells events.

What this wire lacks is kept here: the request a turn is answered under, which tool calls were announced and what
they show (their content is replaced, never appended to), and which option the client knows as its mode.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from dragoman.dialects import v1
from dragoman.dialects.contract import Answer, AnswerError, Id, Notify, Out
from dragoman.dialects.screens import Screen, without_screens
from dragoman.dialects.speaker import Route, Speaker, busy, refuse_empty
from dragoman.errors import AUTH_REQUIRED, INTERNAL_ERROR, PeerMistake, WireError
from dragoman.vocabulary import events, options, requests
from dragoman.vocabulary.asking import Note, Reply, Request
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.vocabulary.tools import FINAL_STATUSES, TerminalItem, ToolContent
from dragoman.wire import types as wire
from dragoman.wire import v1 as w

_TEXT_TAIL: Final = b"}}}}"
_STOP_REASONS: Final = frozenset({"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"})
# Announced calls remembered per session: an update of an older one announces it again.
_REMEMBERED_CALLS: Final = 4096
_SET_MODE: Final = Route("session/set_mode", requests.SetOption, w.SetSessionModeRequest, w.SetSessionModeResponse)


class _Session:
    """What was told of one session, as far as this wire needs it."""

    __slots__ = ("calls", "mode", "screens", "spoken")

    def __init__(self) -> None:
        self.calls: dict[str, list[ToolContent]] = {}
        self.screens: dict[str, Screen] = {}
        self.spoken: set[str] = set()
        self.mode: tuple[str, str] = ("mode", "")

    def end_turn(self) -> None:
        """Keep what later updates may refer to, and nothing of its weight."""
        for call_id in list(self.calls)[:-_REMEMBERED_CALLS]:
            del self.calls[call_id]
        for content in self.calls.values():
            content.clear()
        self.screens = {id: screen for id, screen in self.screens.items() if not screen.done}
        self.spoken.clear()


class _Prompt:
    """A prompt that waits for its turn to end."""

    __slots__ = ("id", "message_id")

    def __init__(self, id: Id) -> None:
        self.id = id
        self.message_id = ""


class AgentV1(Speaker):
    """The agent's side of version 1."""

    def __init__(self, client: ClientHello, agent: AgentHello) -> None:
        super().__init__(
            v1.WORDS,
            hears=[*v1.CLIENT_ASKS, v1.LOAD, v1.RESUME],
            says=v1.AGENT_ASKS,
            hears_notes=v1.CLIENT_NOTES,
            says_notes=v1.AGENT_NOTES,
            offered=agent.capabilities,
        )
        self._client = client.capabilities
        self._sessions: dict[str, _Session] = {}
        self._prompts: dict[str, _Prompt] = {}
        self._mode_requests: set[Id] = set()

    # -- hearing -----------------------------------------------------------------------------------------------------

    def hear_request(self, id: Id, method: str, params: Raw) -> Request | Note:
        """As everywhere; `set_mode` sets the mode option, and a session has one prompt at a time."""
        if method == "session/set_mode":
            return self._hear_set_mode(id, params)
        request = super().hear_request(id, method, params)
        if isinstance(request, requests.Prompt):
            refuse_empty(request)
            if request.session_id in self._prompts:
                raise busy()
            self._prompts[request.session_id] = _Prompt(id)
        return request

    def read_params(self, route: Route, params: Raw) -> Any:
        """Clients exist that leave out `mcpServers` or send a prompt as a string; neither can mean anything else."""
        try:
            return super().read_params(route, params)
        except PeerMistake:
            mended = _mended(route.method, params)
            if mended is None:
                raise
            return super().read_params(route, mended)

    def hear_cancel(self, id: Id) -> Note | None:
        """The prompt is the turn: giving up on it cancels the turn."""
        for session_id, prompt in self._prompts.items():
            if prompt.id == id:
                return requests.CancelTurn(session_id)
        return None

    def _hear_set_mode(self, id: Id, params: Raw) -> Request:
        asked = wire.decode(params or b"{}", w.SetSessionModeRequest)
        session = self._sessions.get(asked.session_id)
        config_id = session.mode[0] if session is not None else "mode"
        self._mode_requests.add(id)
        return requests.SetOption(asked.session_id, config_id, asked.mode_id, meta=asked.meta)

    # -- answering ---------------------------------------------------------------------------------------------------

    def reply(self, id: Id, request: Request, reply: Reply) -> Sequence[Out]:
        """As everywhere; an accepted prompt is answered when its turn ends."""
        match request, reply:
            case requests.Prompt(), requests.PromptAccepted():
                held = self._prompts.get(request.session_id)
                if held is not None:
                    held.message_id = reply.message_id
                return []
            case (
                (requests.NewSession() | requests.ForkSession() | requests.ResumeSession()),
                requests.SessionOpened(),
            ):
                return self._opened(id, request, reply)
            case requests.SetOption(), requests.OptionsSet():
                return self._options_set(id, request, reply)
            case ((requests.CloseSession() | requests.DeleteSession()), _):
                self._sessions.pop(request.session_id, None)
        return super().reply(id, request, reply)

    def fail(self, id: Id, request: Request, error: WireError) -> Sequence[Out]:
        """A refused prompt waits for nothing."""
        self._mode_requests.discard(id)
        if isinstance(request, requests.Prompt):
            self._prompts.pop(request.session_id, None)
        return super().fail(id, request, error)

    def _opened(
        self,
        id: Id,
        request: requests.NewSession | requests.ForkSession | requests.ResumeSession,
        reply: requests.SessionOpened,
    ) -> Sequence[Out]:
        session_id = reply.session_id
        kind: Any = w.NewSessionResponse
        if isinstance(request, requests.ForkSession):
            kind = w.ForkSessionResponse
        elif isinstance(request, requests.ResumeSession):
            session_id = request.session_id
            kind = w.LoadSessionResponse if request.replay_from else w.ResumeSessionResponse
        self._learn_mode(session_id, reply.config_options or [])
        said = UNSET if not reply.config_options else self._say_options(reply.config_options)
        outs: list[Out] = [Answer(id, wire.encode(v1.say_opened(reply, kind, said)))]
        if reply.available_commands:
            outs.extend(self.tell(session_id, events.CommandsChanged(reply.available_commands)))
        return outs

    def _options_set(self, id: Id, request: requests.SetOption, reply: requests.OptionsSet) -> Sequence[Out]:
        moved = self._learn_mode(request.session_id, reply.config_options)
        if id in self._mode_requests:
            self._mode_requests.discard(id)
            return [Answer(id, b"{}")]
        result = w.SetSessionConfigOptionResponse(
            config_options=self._say_options(reply.config_options), meta=reply.meta
        )
        return [Answer(id, wire.encode(result)), *self._mode_update(request.session_id, moved)]

    # -- telling -----------------------------------------------------------------------------------------------------

    def tell(self, session_id: str, event: events.AnyEvent) -> Sequence[Out]:
        """One event: no update, one, or several."""
        session = self._sessions.setdefault(session_id, _Session())
        match event:
            case events.Idle():
                return self._end(session_id, session, event)
            case events.Running() | events.RequiresAction() | events.UnknownState():
                return []
            case events.ToolCallUpdate():
                return [self._update(session_id, self._call(session, event))]
            case events.ToolCallContentChunk():
                return self._append(session_id, session, event)
            case events.TerminalUpdate():
                session.screens.setdefault(event.terminal_id, Screen()).patch(event)
                return self._redraw(session_id, session, event.terminal_id)
            case events.TerminalOutputChunk():
                grown = session.screens.setdefault(event.terminal_id, Screen()).feed(event)
                return self._redraw(session_id, session, event.terminal_id) if grown else []
            case events.UserMessage() | events.AgentMessage() | events.AgentThought():
                return self._whole_message(session_id, session, event)
            case events.OptionsChanged():
                return self._options_changed(session_id, event)
            case _:
                return [self._update(session_id, said) for said in self._plainly(session, event)]

    def text_frame(self, session_id: str, kind: str, message_id: str) -> tuple[bytes, bytes]:
        """Everything but the text."""
        self._sessions.setdefault(session_id, _Session()).spoken.add(message_id)
        encode = msgspec.json.encode
        head = (
            b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%b,"update":'
            b'{"sessionUpdate":%b,"messageId":%b,"content":{"type":"text","text":'
        )
        return head % (encode(session_id), encode(kind), encode(message_id)), _TEXT_TAIL

    def _update(self, session_id: str, update: Any) -> Notify:
        return Notify("session/update", wire.encode(w.SessionNotification(session_id=session_id, update=update)))

    def _plainly(self, session: _Session, event: events.AnyEvent) -> Sequence[Any]:
        """What is the same on this wire, if the client takes it at all."""
        match event:
            case events.Chunk():
                session.spoken.add(event.message_id)
            case events.PlanUpdate() if not self._client.plans:
                return self._only_plan(event)
            case events.PlanRemoved() if not self._client.plans:
                return [w.Plan(entries=())]
            case events.Notice() if not self._client.notices:
                return []
            case events.CompactionUpdate() | events.CompactionSummaryChunk() if not self._client.compaction:
                return []
            case events.CommandsChanged():
                known: list[options.AnyCommand] = [
                    command for command in event.available_commands if isinstance(command, options.Command)
                ]
                event = events.CommandsChanged(known, meta=event.meta, extras=event.extras)
            case events.UnknownEvent():
                body = {"sessionUpdate": event.name, **event.fields}
                return [wire.Unknown(event.name, Raw(msgspec.json.encode(body)))]
            case _:
                pass
        return [v1.WORDS.say(event)]

    def _only_plan(self, event: events.PlanUpdate) -> Sequence[Any]:
        if not isinstance(event.plan, options.PlanItems):
            return []
        return [w.Plan(entries=v1.WORDS.say(event.plan.entries), meta=event.meta)]

    def _whole_message(
        self, session_id: str, session: _Session, event: events.UserMessage | events.AgentMessage | events.AgentThought
    ) -> Sequence[Out]:
        """This wire has only chunks: a message is told once, and can be neither replaced nor cleared."""
        held = self._prompts.get(session_id)
        if held is not None and held.message_id == event.message_id:
            return []  # the client knows what it has just said
        if event.message_id in session.spoken or not isinstance(event.content, list):
            return []
        session.spoken.add(event.message_id)
        kind: Any = {
            events.UserMessage: w.SessionUpdateUserMessageChunk,
            events.AgentMessage: w.SessionUpdateAgentMessageChunk,
            events.AgentThought: w.SessionUpdateAgentThoughtChunk,
        }[type(event)]
        return [
            self._update(session_id, kind(content=v1.WORDS.say(block), message_id=event.message_id, meta=event.meta))
            for block in event.content
        ]

    # -- tool calls --------------------------------------------------------------------------------------------------

    def _call(self, session: _Session, event: events.ToolCallUpdate) -> Any:
        known = session.calls.get(event.tool_call_id)
        if isinstance(event.content, list):
            content = list(event.content)
        elif event.content is None:
            content = []
        else:
            content = known or []
        session.calls[event.tool_call_id] = content
        if event.content is not UNSET or (event.status in FINAL_STATUSES and _shows_screen(content)):
            event = msgspec.structs.replace(event, content=without_screens(content, session.screens))
        if known is not None:
            return v1.say_call(event, w.SessionUpdateToolCallUpdate)
        if not isinstance(event.title, str):
            title = event.name if isinstance(event.name, str) else event.tool_call_id
            event = msgspec.structs.replace(event, title=title)
        return v1.say_call(event, w.ToolCall)

    def _append(self, session_id: str, session: _Session, event: events.ToolCallContentChunk) -> Sequence[Out]:
        content = session.calls.get(event.tool_call_id, [])
        whole = events.ToolCallUpdate(event.tool_call_id, content=[*content, event.content])
        return [self._update(session_id, self._call(session, whole))]

    def _redraw(self, session_id: str, session: _Session, terminal_id: str) -> Sequence[Out]:
        outs: list[Out] = []
        for call_id, content in session.calls.items():
            if any(isinstance(item, TerminalItem) and item.terminal_id == terminal_id for item in content):
                drawn = events.ToolCallUpdate(call_id, content=without_screens(content, session.screens))
                outs.append(self._update(session_id, v1.say_call(drawn, w.SessionUpdateToolCallUpdate)))
        return outs

    # -- options -----------------------------------------------------------------------------------------------------

    def _say_options(self, found: list[options.Option]) -> Any:
        """The options this client can show."""
        known: list[Any] = [
            option
            for option in found
            if isinstance(option, options.Select)
            or (isinstance(option, options.Toggle) and self._client.boolean_options)
        ]
        return v1.WORDS.say(known)

    def _options_changed(self, session_id: str, event: events.OptionsChanged) -> Sequence[Out]:
        moved = self._learn_mode(session_id, event.config_options)
        said = w.ConfigOptionUpdate(config_options=self._say_options(event.config_options), meta=event.meta)
        return [self._update(session_id, said), *self._mode_update(session_id, moved)]

    def _learn_mode(self, session_id: str, found: list[options.Option]) -> str:
        """Remember which option is the mode; the new mode if it has changed."""
        mode = options.mode_option(found)
        session = self._sessions.setdefault(session_id, _Session())
        if mode is None:
            return ""
        before = session.mode[1]
        session.mode = (mode.config_id, mode.current_value)
        return mode.current_value if before not in ("", mode.current_value) else ""

    def _mode_update(self, session_id: str, mode: str) -> Sequence[Out]:
        return [self._update(session_id, w.CurrentModeUpdate(current_mode_id=mode))] if mode else []

    # -- the end of a turn -------------------------------------------------------------------------------------------

    def _end(self, session_id: str, session: _Session, event: events.Idle) -> Sequence[Out]:
        held = self._prompts.get(session_id)
        if held is None or not isinstance(event.stop_reason, str):
            return []
        del self._prompts[session_id]
        session.end_turn()
        if event.stop_reason == "error":
            return [AnswerError(held.id, _failure(event.error))]
        known = event.stop_reason in _STOP_REASONS
        result = w.PromptResponse(
            stop_reason=event.stop_reason if known else "end_turn",  # type: ignore[arg-type]
            usage=v1.WORDS.say(event.usage),
            meta=event.meta if known else {"stopReason": event.stop_reason},
        )
        return [Answer(held.id, wire.encode(result))]


def _failure(error: "events.Failure | None | msgspec.UnsetType") -> WireError:
    """A failed turn on this wire: -32000 where a login helps, else -32603 or the code it carries."""
    if not isinstance(error, events.Failure):
        return WireError(INTERNAL_ERROR, "Internal error")
    data = None if error.data is UNSET else error.data
    reason = data.get("reason") if isinstance(data, dict) else None
    code = AUTH_REQUIRED if reason == "auth" or error.code == AUTH_REQUIRED else error.code
    return WireError(code, error.message, data)


def _shows_screen(content: list[ToolContent]) -> bool:
    return any(isinstance(item, TerminalItem) for item in content)


def _mended(method: str, params: Raw) -> Raw | None:
    try:
        body = msgspec.json.decode(params or b"{}")
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict):
        return None
    if method in ("session/new", "session/load") and not isinstance(body.get("mcpServers"), list):
        return Raw(msgspec.json.encode({**body, "mcpServers": []}))
    if method == "session/prompt" and isinstance(body.get("prompt"), str):
        return Raw(msgspec.json.encode({**body, "prompt": [{"type": "text", "text": body["prompt"]}]}))
    return None
