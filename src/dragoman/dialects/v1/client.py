"""Version 1, as the client: encode requests to an agent, decode its answers and events.

What this wire does not send is added here, so that the layers above see version 2's meaning: that a prompt was accepted
and the session runs, that it waits for the user, that it is idle; ids for messages that have none; the mode as an
option.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from dragoman.dialects.codec.dialect_base import DialectBase, Route, busy_error, not_offered, null_as_object, with_login
from dragoman.dialects.codec.relayed_updates import RelayedUpdate, Speech, read_update, speech
from dragoman.dialects.codec.rewinding import REWIND
from dragoman.dialects.codec.steering import steering_route
from dragoman.dialects.codec.text_chunks import text_chunk
from dragoman.dialects.codec.transcriber import decode_extras, decode_outer, encode_extras
from dragoman.dialects.contract import (
    DecodedNotification,
    DecodedReply,
    Id,
    Out,
    RequestMessage,
    ResultMessage,
    SessionEvent,
)
from dragoman.dialects.tolerance import updates as tolerance
from dragoman.dialects.v1 import answers, permissions, routes
from dragoman.dialects.v1 import codec as v1
from dragoman.dialects.v1.replay import ReplayedMessages
from dragoman.dialects.v1.updates import mode_option
from dragoman.dialects.vendors import refusals
from dragoman.errors import CANCELLED, INVALID_PARAMS, PeerMistake, WireError
from dragoman.vocabulary import events, options, requests, services
from dragoman.vocabulary.asking import Reply, Request
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.wire import types as wire
from dragoman.wire import v1 as w

_force: Final = msgspec.structs.force_setattr
# Sessions that an agent may send updates of before we know their ids: some send the commands of a new session before
# they have answered the request that opens it. More than these can only be made up.
_UNOPENED: Final = 64
# What a replay consists of. The rest (options, commands, usage, titles) is also true without it.
_REPLAYED: Final = (events.Chunk, events.ToolCallUpdate, events.PlanUpdate, events.PlanRemoved, events.UnknownEvent)

# A turn as every agent might send it; decoding it makes the decoders, and has no other effect.
_FIRST_UPDATE: Final = (
    b'{"sessionId":"","update":{"sessionUpdate":"tool_call_update","toolCallId":"","content":'
    b'[{"type":"diff","path":"/","newText":""},{"type":"content","content":{"type":"text","text":""}}]}}'
)
_FIRST_END: Final = Raw(b'{"stopReason":"end_turn"}')


# Updates that only their reader needs, and that depend on none before them.
_RELAYED: Final = frozenset({"tool_call", "tool_call_update", "plan"})


def _check_update(params: Raw) -> object:
    return wire.decoder(w.SessionNotification).decode(params)


def _decode_params(params: Raw) -> events.AnyEvent:
    carrier = wire.decode(params, w.SessionNotification)
    return decode_outer(carrier, v1.decode_event(carrier.update))


class _Session:
    """What is known of one session, as far as this wire needs it to decode the next message.

    The state is in four fields. Idle: `prompt_id` is "". Running: `prompt_id` is the id that we gave the prompt, and
    `questions` is 0. Waiting for the user: `questions` is not 0. Loading: `is_loading`, with a `replay` if the client
    has asked for one; a prompt is not sent meanwhile.
    """

    __slots__ = (
        *("chunk_type", "has_answered", "is_loading", "is_opened", "message_id", "mode", "options", "prompt_id"),
        *("questions", "replay"),
    )

    def __init__(self) -> None:
        self.is_opened = False  # by a request of ours
        self.prompt_id = ""  # the message id that was given to the running prompt
        self.has_answered = False  # the agent has sent something since the prompt
        self.questions = 0  # what the agent has asked of the user, and has no answer to
        self.is_loading = False  # the agent replays the conversation
        self.replay: ReplayedMessages | None = None  # None while loading: the client has not asked for a replay
        self.chunk_type: type[events.Chunk] | None = None  # of the last chunk; None: the next one begins a message
        self.message_id = ""
        self.mode: options.Select | None = None  # the mode, where the agent sends it only as `modes`
        self.options: list[options.Option] = []

    @property
    def is_muted(self) -> bool:
        """Return whether the agent replays what the client has not asked for."""
        return self.is_loading and self.replay is None

    def appends(self, chunk: events.Chunk) -> bool:
        """Return whether a chunk of a replay continues the message before it, which was sent already."""
        if (
            self.replay is None
            or self.chunk_type is not chunk.__class__
            or chunk.message_id not in ("", self.message_id)
        ):
            return False
        return self.replay.is_sent(chunk.__class__, self.message_id)

    def state(self) -> events.AnyEvent:
        """Return the state of the session, as the events and answers so far imply it."""
        if not self.prompt_id:
            return events.Idle()
        return events.RequiresAction() if self.questions else events.Running()

    def all_options(self) -> list[options.Option]:
        """Return the options with the mode among them, also where the agent sends it only as `modes`."""
        return [*self.options, self.mode] if self.mode is not None else self.options


class ClientV1(DialectBase):
    """The client's side of version 1."""

    replies_to_prompt_at_turn_end = True

    def __init__(self, client: ClientHello, agent: AgentHello) -> None:
        super().__init__(
            v1.CODEC,
            incoming=[permissions.PERMISSION, *routes.AGENT_REQUESTS],
            outgoing=[
                *with_login(routes.CLIENT_REQUESTS, agent, requests.Login),
                steering_route(w.PromptRequest),
                REWIND,
            ],
            incoming_notes=routes.AGENT_NOTES,
            outgoing_notes=routes.CLIENT_NOTES,
            offered=client.capabilities,
            granted=agent.capabilities,
        )
        self._agent = agent.capabilities
        # Whatever the dialect: the defect is the program's, and a bridge may reach it by plain version 1.
        self._runs_rejected_calls = refusals.runs_rejected_calls(agent)
        self._sessions: dict[str, _Session] = {}
        self._made_ids = 0
        self._client = client.capabilities

    # -- requests of ours --------------------------------------------------------------------------------------------

    def encode_request(self, request: Request) -> RequestMessage:
        """Encode as `super()` does, but a prompt counts as accepted when it is sent, and its turn begins then."""
        match request:
            # An agent that sends only `modes` has no `session/set_config_option`.
            case requests.SetOption(value=str() as mode_id) if self._is_bare_mode(request):
                asked = w.SetSessionModeRequest(
                    session_id=request.session_id,
                    mode_id=mode_id,
                    meta=request.meta,
                    extras=encode_extras(request, w.SetSessionModeRequest),
                )
                return RequestMessage(routes.SET_MODE.method, wire.encode(asked))
            case requests.PromptRequest():
                return self._encode_prompt(request)
            case requests.ResumeSession():
                return self._encode_resume(request)
            case _:
                return super().encode_request(request)

    def _encode_prompt(self, request: requests.PromptRequest) -> RequestMessage:
        session = self._session(request.session_id)
        # The answer to a prompt ends its turn: with two open ones, what belongs to which turn would not be known.
        if session.prompt_id:
            raise busy_error()
        call = super().encode_request(request)
        session.is_opened = True
        session.prompt_id = self._new_id()
        session.has_answered = False
        session.chunk_type = None
        # A version 2 agent sends these two by itself. One of this wire sends nothing until it has something to say, and
        # the user's own message at most as an echo, which is dropped (`_is_echo`).
        implied = [
            SessionEvent(request.session_id, events.UserMessage(session.prompt_id, request.prompt)),
            SessionEvent(request.session_id, events.Running()),
        ]
        return RequestMessage(call.method, call.params, requests.PromptAccepted(session.prompt_id), implied)

    def _encode_resume(self, request: requests.ResumeSession) -> RequestMessage:
        """Encode a resume as `session/load` if a replay is wanted, else as `session/resume`.

        An agent without `session/resume` gets `session/load`, and its replay is muted. Raise `PeerMistake` if it has
        neither, or for a replay that does not begin at the start.
        """
        if isinstance(request.replay_from, requests.UnknownReplay):
            raise PeerMistake(INVALID_PARAMS, "Sessions of this agent are replayed from the start")
        route = routes.RESUME if self._agent.resume and not request.replay_from else routes.LOAD
        if route is routes.LOAD and not self._agent.load:
            raise not_offered()
        session = self._session(request.session_id)
        session.is_opened = True
        session.is_loading = route is routes.LOAD
        session.replay = ReplayedMessages() if request.replay_from else None
        session.chunk_type = None
        encode = route.encode_params or (lambda asked: v1.CODEC.encode_as(asked, route.params))
        return RequestMessage(route.method, wire.encode(encode(request)))

    def _is_bare_mode(self, request: requests.SetOption) -> bool:
        mode = self._session(request.session_id).mode
        return mode is not None and mode.config_id == request.config_id

    def encode_reply(self, id: Id, request: Request, reply: Reply) -> Sequence[Out]:
        """Reply as `super()` does, but refuse by `cancelled` where the agent takes any chosen option for a yes."""
        if self._runs_rejected_calls and isinstance(request, services.RequestPermission):
            assert isinstance(reply, services.PermissionAnswer)
            if (no := refusals.encode_refusal(request, reply)) is not None:
                return [ResultMessage(id, no)]
        return super().encode_reply(id, request, reply)

    # -- answers to ours ---------------------------------------------------------------------------------------------

    def decode_reply(self, request: Request, result: Raw) -> DecodedReply:
        """Decode as `super()` does, but the response to a prompt ends its turn. Updates the session memory."""
        match request:
            case requests.SetOption():
                return self._decode_option_set(request, result)
            case requests.PromptRequest():
                return self._end_turn(request, answers.decode_end(result))
            case requests.NewSession():
                return self._decode_opened("", answers.decode_opened(result, w.NewSessionResponse))
            case requests.ForkSession():
                return self._decode_opened("", answers.decode_opened(result, w.ForkSessionResponse))
            case requests.ResumeSession():
                return self._decode_resumed(request.session_id, result)
            case requests.CloseSession() | requests.DeleteSession():
                self._sessions.pop(request.session_id, None)
        return super().decode_reply(request, result)

    def decode_failure(self, request: Request, error: WireError) -> DecodedReply | None:
        """Return the end of the turn for a prompt that failed: the session is idle and usable."""
        if isinstance(request, requests.ResumeSession):
            # It may have replayed a part; what comes after a second attempt must not be joined to that.
            self._sessions.pop(request.session_id, None)
        if not isinstance(request, requests.PromptRequest):
            return super().decode_failure(request, error)
        # The schema has cancelled prompts end with the stop reason `cancelled`; some agents answer the error instead.
        if error.code == CANCELLED:
            return self._end_turn(request, events.Idle(stop_reason="cancelled"))
        failure = events.Failure(error.code, error.message, UNSET if error.data is None else error.data)
        return self._end_turn(request, events.Idle(stop_reason="error", error=failure))

    def _end_turn(self, request: requests.PromptRequest, end: events.Idle) -> DecodedReply:
        session = self._session(request.session_id)
        session.prompt_id = ""
        session.questions = 0  # what the agent still asks is of no turn any more
        session.chunk_type = None  # the next chunk begins a message, even if it is of the same kind
        return DecodedReply(None, [SessionEvent(request.session_id, end)])

    def _decode_resumed(self, session_id: str, result: Raw) -> DecodedReply:
        """Return the answer, and before it the rest of the replay and the current state: version 2 requires both."""
        replied = self._decode_opened(session_id, answers.decode_opened(result, w.LoadSessionResponse))
        session = self._session(session_id)
        implied = [*(session.replay.take() if session.replay is not None else ()), session.state()]
        session.is_loading, session.replay, session.chunk_type = False, None, None
        return DecodedReply(replied.reply, [SessionEvent(session_id, event) for event in implied])

    def _decode_opened(self, session_id: str, value: Any) -> DecodedReply:
        opened = v1.CODEC.decode_as(value, requests.SessionOpened)
        session = self._session(session_id or opened.session_id)
        session.is_opened = True
        session.options = opened.config_options or []
        # iac-code sends `models`, which the protocol once had, beside no option for them (row 8.1.4).
        model = tolerance.model_option(opened.extras, session.options)
        if model is not None:
            session.options = [*session.options, model]
        # An agent with both sends the same mode twice; the option is the newer form, and the other is to be ignored.
        has_mode = mode_option(session.options) is not None
        session.mode = None if has_mode else v1.decode_modes(value.modes)
        if session.mode is not None or model is not None:
            opened = msgspec.structs.replace(opened, config_options=session.all_options())
        return DecodedReply(msgspec.structs.replace(opened, session_id=session_id or opened.session_id))

    def _decode_option_set(self, request: requests.SetOption, result: Raw) -> DecodedReply:
        """Return every option as it is now.

        Setting a mode is answered with nothing, and so is every option by some agents; then the options are those
        before, with the new value.
        """
        session = self._session(request.session_id)
        answer = bytes(null_as_object(result))
        if not answers.names_options(answer):
            mode = session.mode
            if mode is not None and mode.config_id == request.config_id and mode.current_value != request.value:
                session.mode = msgspec.structs.replace(mode, current_value=str(request.value))
            session.options = [answers.with_value(option, request) for option in session.options]
            if answer == b"{}":
                return DecodedReply(requests.OptionsSet(session.all_options()))
            done = wire.decode(answer, w.SetSessionModeResponse)
            return DecodedReply(requests.OptionsSet(session.all_options(), meta=done.meta, extras=decode_extras(done)))
        replied = super().decode_reply(request, tolerance.with_complete_options(result))
        assert isinstance(replied.reply, requests.OptionsSet)
        session.options = replied.reply.config_options
        if session.mode is None:
            return replied
        return DecodedReply(msgspec.structs.replace(replied.reply, config_options=session.all_options()))

    # -- events of the agent -----------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Make the decoders and encoders of a first turn: updates alone have fifty types, which take a millisecond."""
        v1.decode_event(wire.decode(_FIRST_UPDATE, w.SessionNotification).update)
        answers.decode_end(_FIRST_END)
        super().encode_request(requests.PromptRequest("", [Text("")]))

    def decode_notification(self, method: str, params: Raw) -> Sequence[DecodedNotification]:
        """Decode `session/update` into an event, or several in a replay; another notification as `super()` does."""
        if method != "session/update":
            return super().decode_notification(method, params)
        carrier = self._read_update(params)
        event = self._decode_event(self._session(carrier.session_id), carrier.update)
        return [] if event is None else self._session_events(carrier.session_id, decode_outer(carrier, event))

    def _session_events(self, session_id: str, event: events.AnyEvent) -> Sequence[DecodedNotification]:
        """Return an event, or what a replay makes of it."""
        replay = self._session(session_id).replay
        return [SessionEvent(session_id, one) for one in ([event] if replay is None else replay.feed(event))]

    def _decode_update(self, params: Raw) -> w.SessionNotification:
        # Incomplete options are looked for only in an update that has options, or that cannot be read: looking for them
        # in every update would pass over a diff of megabytes once more.
        try:
            found = wire.decode(params, w.SessionNotification)
        except PeerMistake:
            return wire.decode(tolerance.with_complete_options(params), w.SessionNotification)
        if isinstance(found.update, w.ConfigOptionUpdate):
            return wire.decode(tolerance.with_complete_options(params), w.SessionNotification)
        return found

    def _read_update(self, params: Raw) -> w.SessionNotification:
        # Three outcomes: an update that the schema knows; one that it does not know, under a name that peers are known
        # to use for another; one that it refuses. Only the last two are corrected; what stays wrong stays an error.
        try:
            found = self._decode_update(params)
            if not isinstance(found.update, wire.UnknownVariant) or found.update.tag not in tolerance.UPDATE_ALIASES:
                return found
        except PeerMistake:
            meant = tolerance.corrected_update(params)
            if meant is None:
                raise
        else:
            meant = tolerance.corrected_update(params)
        return found if meant is None else wire.decode(meant, w.SessionNotification)

    def read_params(self, route: Route, params: Raw) -> Any:
        """Decode as `super()` does; if that fails for a permission, correct its tool call and decode again."""
        try:
            return super().read_params(route, params)
        except PeerMistake:
            meant = tolerance.corrected_permission(params) if route is permissions.PERMISSION else None
            if meant is None:
                raise
            return wire.decode(meant, route.params)

    def _decode_event(self, session: _Session, update: Any) -> events.AnyEvent | None:
        if isinstance(update, w.CurrentModeUpdate):
            return self._mode_changed(session, update)
        event = v1.decode_event(update)
        # The agent has only `session/load`, and the client has asked for a session without its history.
        if session.is_muted and isinstance(event, _REPLAYED):
            return None
        match event:
            case events.Chunk():
                if self._is_echo(session, event):
                    return None
                if event.message_id:
                    self._note_chunk(session, event)
                else:
                    return msgspec.structs.replace(event, message_id=self._message_id(session, type(event)))
            case events.OptionsChanged():
                session.options = event.config_options
                if mode_option(session.options) is not None:
                    session.mode = None
                return msgspec.structs.replace(event, config_options=session.all_options())
            case events.ToolCallUpdate() | events.PlanUpdate():
                # Text behind a call or a plan is shown below it, so it is another message.
                session.chunk_type = None
                session.has_answered = True
            case _:
                pass
        return event

    @cached_property
    def speech(self) -> Speech | None:
        """Return that of version 1 to a client that can do the same; None for a vendor's dialect, which has updates of
        its own."""
        return speech("v1", self._client) if type(self) is ClientV1 else None

    def relayed_update(self, params: Raw) -> RelayedUpdate | None:
        """Return a tool call or a plan of a session that replays nothing now."""
        return read_update(params, self.speech, self._relays, _check_update, _decode_params)

    def _relays(self, session_id: str, kind: str) -> bool:
        session = self._sessions.get(session_id)
        if kind not in _RELAYED or session is None or session.is_loading:
            return False
        # As in `_decode_event`.
        session.chunk_type = None
        session.has_answered = True
        return True

    def decode_text_update(self, frame: bytes) -> tuple[str, events.AnyEvent] | None:
        """Decode a frame that is a plain text chunk in one step; None for anything else.

        It must come to what `decode_notification` makes of the same frame; whatever needs more than an id is left to
        that: a session that is not known, an echo, a replay that is muted or gathered.
        """
        params = text_chunk(frame)
        if params is None:
            return None
        chunk = params.update
        session = self._sessions.get(params.session_id)
        if session is None or chunk.__class__ is events.UserMessageChunk:
            return None
        if session.is_loading and not session.appends(chunk):
            return None
        if chunk.message_id:
            if session.chunk_type is not chunk.__class__ or session.message_id != chunk.message_id:
                self._note_chunk(session, chunk)
        else:
            # The chunk was decoded just above and is not shared yet, so it may be changed in place.
            _force(chunk, "message_id", self._message_id(session, chunk.__class__))
        return params.session_id, chunk

    def continues(self, session_id: str, kind: type[events.Chunk], message_id: str) -> bool:
        """Return whether the last chunk of the session was of this message, and no replay has begun since."""
        session = self._sessions.get(session_id)
        return (
            session is not None
            and session.chunk_type is kind
            and session.message_id == message_id
            and not session.is_loading
        )

    def events_at_request(self, request: Request) -> Sequence[SessionEvent]:
        """Return `RequiresAction` for a question to the user: this wire has no update for it."""
        return [self._count_question(session_id, 1) for session_id in self._waiting_session(request)]

    def events_at_reply(self, request: Request) -> Sequence[SessionEvent]:
        """Return `Running` when the last open question is answered, else `RequiresAction` again."""
        return [self._count_question(session_id, -1) for session_id in self._waiting_session(request)]

    def _count_question(self, session_id: str, more: int) -> SessionEvent:
        session = self._session(session_id)
        session.questions = max(session.questions + more, 0)
        return SessionEvent(session_id, session.state())

    def _waiting_session(self, request: Request) -> list[str]:
        """Return the session whose turn waits for the answer to a request, if any does."""
        session_id = ""
        if isinstance(request, services.RequestPermission):
            session_id = request.session_id
        elif isinstance(request, services.Elicit) and isinstance(request.scope, services.SessionScope):
            session_id = request.scope.session_id
        session = self._sessions.get(session_id)
        return [session_id] if session is not None and session.prompt_id else []

    def _mode_changed(self, session: _Session, update: w.CurrentModeUpdate) -> events.AnyEvent:
        mode = session.mode or mode_option(session.options)
        # Agentao sends this update although it has listed no modes: then the mode is the one that is known.
        if mode is None:
            choice = options.Choice(update.current_mode_id, update.current_mode_id)
            mode = options.Select("mode", "Mode", update.current_mode_id, [choice], category=options.MODE_CATEGORY)
        changed = msgspec.structs.replace(mode, current_value=update.current_mode_id)
        if session.mode is not None or mode not in session.options:
            session.mode = changed
        else:
            session.options = [changed if option is mode else option for option in session.options]
        return events.OptionsChanged(session.all_options(), meta=update.meta, extras=decode_extras(update))

    def _is_echo(self, session: _Session, event: events.Chunk) -> bool:
        """Return whether a chunk repeats the prompt, as some agents do before they answer it."""
        if isinstance(event, events.UserMessageChunk):
            return bool(session.prompt_id) and not session.has_answered
        session.has_answered = True
        return False

    def _note_chunk(self, session: _Session, event: events.Chunk) -> None:
        """Note that the agent has sent a chunk with an id of its own."""
        session.chunk_type = type(event)
        session.message_id = event.message_id
        session.has_answered = True

    def _message_id(self, session: _Session, kind: type[events.Chunk]) -> str:
        """Return the current message's id while chunks of the same kind follow; make a new id after anything else."""
        if session.chunk_type is not kind:
            session.chunk_type = kind
            session.message_id = self._new_id() if session.replay is None else session.replay.new_id()
            session.has_answered = True
        return session.message_id

    def _new_id(self) -> str:
        # The salt is another in every process, so that a client that keeps messages of two never finds one id twice.
        self._made_ids += 1
        return f"dragoman-{self.salt}{self._made_ids}"

    def _session(self, session_id: str) -> _Session:
        found = self._sessions.get(session_id)
        if found is None:
            unopened = [id for id, session in self._sessions.items() if not session.is_opened]
            if len(unopened) >= _UNOPENED:
                del self._sessions[unopened[0]]
            found = self._sessions[session_id] = _Session()
        return found
