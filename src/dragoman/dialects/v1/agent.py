"""Version 1, as the agent: decode a client's requests, encode events and replies.

What this wire lacks is kept here: the request that a turn is answered under (`PendingPrompt`), and which option the
client knows as its mode. How an event is encoded, given what was sent before, is in `updates`.

The vocabulary has version 2's meaning of a prompt: it is accepted, and its turn ends later, with an `Idle` event. On
this wire there is one answer, and it ends the turn. So the reply `PromptAccepted` sends nothing, and `Idle` sends the
answer.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw

from dragoman.dialects.codec.dialect_base import (
    TEXT_FRAME_TAIL,
    DialectBase,
    busy_error,
    message_id_field,
    text_frame_head,
    with_login,
)
from dragoman.dialects.codec.rewinding import rewind_routes
from dragoman.dialects.codec.steering import steering_routes
from dragoman.dialects.codec.transcriber import decode_extras, encode_extras, encode_outer
from dragoman.dialects.contract import ErrorMessage, Id, NotificationMessage, Out, RequestMessage, ResultMessage
from dragoman.dialects.handshake import air
from dragoman.dialects.v1 import codec as v1
from dragoman.dialects.v1 import notices, permissions, routes, session_failures, updates
from dragoman.dialects.v1.air_profile import RENAME, AirProfile, renamed
from dragoman.dialects.v1.file_reports import FileReport
from dragoman.dialects.v1.live_terminals import output_key
from dragoman.dialects.v1.updates import REMEMBERED, V1SessionMemory
from dragoman.dialects.vendors.extensions import OPTION_EXTENSIONS, OptionExtension
from dragoman.errors import AUTH_REQUIRED, CANCELLED, INTERNAL_ERROR, WireError
from dragoman.vocabulary import events, options, requests, services
from dragoman.vocabulary.asking import Extension, Note, Reply, Request
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.wire import types as wire
from dragoman.wire import v1 as w

if TYPE_CHECKING:
    from dragoman.dialects.codec.relayed_updates import RelayedUpdate, Speech
    from dragoman.dialects.v1.relayed_calls import RelayedCalls

_decode_mode: Final = wire.decoder(w.SetSessionModeRequest).decode
_OPENING: Final = (requests.NewSession, requests.ForkSession, requests.ResumeSession)


class PendingPrompt:
    """A prompt that waits for its turn to end.

    | state | `message_id` | `is_running` | an `Idle` of the session |
    |---|---|---|---|
    | not accepted | None | False | belongs to a turn before; kept if it follows an echo of this prompt |
    | accepted | the agent's id, or "" | False | ends the turn only with a stop reason |
    | running | the agent's id, or "" | True | ends the turn |
    """

    __slots__ = ("_echoes", "_ends", "id", "is_running", "message_id", "operation", "repeats", "report")

    def __init__(self, id: Id) -> None:
        self.id = id
        self.repeats: list[Id] = []  # further requests of the same operation, answered as this one
        self.operation: object = None  # under which the client may send it again
        self.report: FileReport | None = None  # of the files that the turn changes, where the client asks for it
        self.message_id: str | None = None
        self.is_running = False
        # Agents exist that accept a prompt only when its turn is over: the user messages that came before that, and the
        # end that came after each of them.
        self._echoes: set[str] = set()
        self._ends: dict[str, events.Idle] = {}

    def __repr__(self) -> str:
        state = "not accepted" if self.message_id is None else "running" if self.is_running else "accepted"
        return f"<PendingPrompt {self.id!r} {state}>"

    def is_repeated_by(self, request: requests.PromptRequest) -> bool:
        """Return whether a prompt names the operation of this one; whether it is the same, the layer above compares."""
        return isinstance(self.operation, str) and requests.operation_id(request) == self.operation

    def is_echo(self, message_id: str) -> bool:
        """Return whether a user message is this very prompt, which the client knows already."""
        if self.message_id is None:
            # Which of them it is will be known when the prompt is accepted, and none of them can be taken back then.
            self._echoes.add(message_id)
            return True
        return self.message_id in ("", message_id)

    def accept(self, message_id: str) -> events.Idle | None:
        """Note that the prompt is message `message_id` of the conversation; return its end if that came before."""
        self.message_id = message_id
        if message_id:
            return self._ends.get(message_id)
        return next(iter(self._ends.values()), None)

    def ends_with(self, idle: events.Idle) -> bool:
        """Return whether this is the end of the prompt's turn: it gives a reason, or work had begun."""
        if self.message_id is None:
            if isinstance(idle.stop_reason, str):
                self._ends = dict.fromkeys(self._echoes, idle)
            return False
        # An agent may be idle, without a reason, between accepting a prompt and working on it.
        return isinstance(idle.stop_reason, str) or self.is_running


class AgentV1(DialectBase):
    """The agent's side of version 1."""

    replies_to_prompt_at_turn_end = True

    def __init__(self, client: ClientHello, agent: AgentHello) -> None:
        super().__init__(
            v1.CODEC,
            incoming=[
                *with_login(routes.CLIENT_REQUESTS, agent, requests.Login),
                *(routes.LOAD, routes.RESUME),
                *steering_routes(agent, w.PromptRequest),
                *rewind_routes(agent),
            ],
            outgoing=[permissions.PERMISSION, *routes.AGENT_REQUESTS],
            incoming_notes=routes.CLIENT_NOTES,
            outgoing_notes=routes.AGENT_NOTES,
            offered=agent.capabilities,
            granted=client.capabilities,
        )
        self._client = client.capabilities
        # The schema forbids the `notice` update without the capability `session.notices`.
        self._takes_notices = client.capabilities.notices
        # How the output of display terminals is sent to a client that draws them itself; empty: as text.
        self._output_key = output_key(client.capabilities)
        self._air = AirProfile(client.capabilities, agent)
        self._sessions: dict[str, V1SessionMemory] = {}
        self._relayed: RelayedCalls | None = None  # made with the first update that passes as it came
        self._prompts: dict[str, PendingPrompt] = {}  # at most one for each session: this wire cannot end two turns
        self._queued: dict[str, list[PendingPrompt]] = {}  # those behind it, which the layer above holds back
        # Requests that came as `session/set_mode`: they are answered with nothing, not with all options.
        self._mode_requests: set[Id] = set()
        # Requests that came as `_session/rename`: they are answered with nothing, not with the title.
        self._renames: set[Id] = set()
        # Requests of a vendor's own method (`vendors/extensions`), which has its own form of an answer.
        self._extension_requests: dict[Id, OptionExtension] = {}
        # Options that the client was sent in the agent's place (`_send_options`), until the agent sends any itself.
        self._sent_options: dict[str, list[options.Option]] = {}

    # -- requests of the client --------------------------------------------------------------------------------------

    def decode_request(self, id: Id, method: str, params: Raw) -> Request | Note:
        """Decode as `super()` does, but `session/set_mode` sets the mode option.

        Raise `PeerMistake` for a second prompt while one is open in the session.
        """
        if method == "session/set_mode":
            return self._decode_set_mode(id, params)
        if method == RENAME and self._air.renames:
            asked = renamed(super().decode_request(id, "session/set_title", params))
            self._renames.add(id)
            return asked
        request = super().decode_request(id, method, params)
        match request:
            case requests.PromptRequest():
                # The schema leaves open what a second prompt does. elephant.ai's document has this error for it, and
                # with two prompts open no `Idle` could be said to belong to either.
                if (open_one := self._prompts.get(request.session_id)) is not None:
                    if self.takes_repeats and open_one.is_repeated_by(request):
                        open_one.repeats.append(id)
                        return request
                    if not self.queues_prompts:
                        raise busy_error()
                pending = PendingPrompt(id)
                if open_one is None:
                    self._prompts[request.session_id] = pending
                else:
                    self._queued.setdefault(request.session_id, []).append(pending)
                if self.takes_repeats:
                    pending.operation = requests.operation_id(request)
                if self._air.reports:
                    pending.report = self._air.report_for(request, self._session(request.session_id).roots)
            case Extension(method=method) if method in OPTION_EXTENSIONS:
                return self._decode_extension(id, request)
            case requests.ResumeSession() if request.replay_from:
                # `session/load` replays everything: a call that is not announced again would not be shown. Notices that
                # still wait are live and no part of the replay, so they are carried over.
                before = self._sessions.pop(request.session_id, None)
                self._forget_relayed(request.session_id)
                self._sent_options.pop(request.session_id, None)
                if before is not None and before.notices:
                    self._session(request.session_id).add_notices(before.notices)
            case _:
                pass
        return request

    def decode_cancel(self, id: Id) -> Note | None:
        """Return `CancelTurn` for a `$/cancel_request` of a prompt: on this wire the prompt is the turn."""
        for session_id, prompt in self._prompts.items():
            if prompt.id == id:
                return requests.CancelTurn(session_id)
        return None

    def _decode_set_mode(self, id: Id, params: Raw) -> Request:
        try:
            asked = _decode_mode(params)
        except ValueError:  # `read_params` keeps unknown fields, corrects what peers are known for, and names the fault
            asked = self.read_params(routes.SET_MODE, params)
        # A session that this link has not opened (another client's, or one that does not exist) is for the layer above
        # to judge; "mode" is the id that most agents give the option.
        session = self._sessions.get(asked.session_id)
        config_id = session.mode[0] if session is not None else "mode"
        self._mode_requests.add(id)
        if asked.meta is UNSET and asked.extras is UNSET:
            return requests.SetOption(asked.session_id, config_id, asked.mode_id)
        extras = decode_extras(asked)
        return requests.SetOption(asked.session_id, config_id, asked.mode_id, meta=asked.meta, extras=extras)

    def _decode_extension(self, id: Id, request: Extension) -> Request:
        """Decode a vendor's method that sets an option; where it fits no session here, it stays an extension."""
        extension = OPTION_EXTENSIONS[request.method]
        asked = extension.decode(request.params, self._sessions)
        if asked is None:
            return request
        self._extension_requests[id] = extension
        return asked

    def offered_options(self, request: services.RequestPermission) -> list[services.PermissionOption]:
        """Return the options of this wire's four kinds: only these were sent, so only these can be chosen."""
        return permissions.known_options(request)

    # -- requests and replies of ours --------------------------------------------------------------------------------

    def encode_request(self, request: Request) -> RequestMessage:
        """Encode as `super()` does, but a permission carries its tool call as the client was shown it."""
        if not isinstance(request, services.RequestPermission):
            return super().encode_request(request)
        # A patch of the call may have no content; the user is asked about all of it, so what was sent before is put in.
        # The client reads `toolCall` as an update, and an update without content leaves what it shows; one with the
        # notes of the question alone would replace it.
        session = self._session(request.session_id)
        shown = session.calls.get(permissions.call_id(request))
        call = permissions.subject_call(request, shown.content if shown is not None else (), session.lean)
        if isinstance(call.content, list):
            call = msgspec.structs.replace(call, content=session.drawn(call.content))
        return RequestMessage(permissions.PERMISSION.method, wire.encode(permissions.encode_permission(request, call)))

    def encode_reply(self, id: Id, request: Request, reply: Reply) -> Sequence[Out]:
        """Reply as `super()` does, but an accepted prompt is answered when its turn ends."""
        match reply:
            case requests.OptionsSet() if isinstance(request, requests.SetOption):
                return self._reply_options_set(id, request, reply)
            case requests.PromptAccepted() if isinstance(request, requests.PromptRequest):
                return self._reply_accepted(request.session_id, reply.message_id)
            case requests.Steered() if isinstance(request, requests.SteerTurn):
                # The client shows its own words, as it shows a prompt: their echo is not sent.
                if reply.message_id:
                    self._session(request.session_id).message_ids[reply.message_id] = None
                return super().encode_reply(id, request, msgspec.structs.replace(reply, message_id=UNSET))
            case requests.TitleSet() if id in self._renames:
                self._renames.discard(id)
                return [ResultMessage(id, b"{}")]
            case requests.SessionOpened() if isinstance(request, _OPENING):
                return self._reply_opened(id, request, reply)
            case _ if isinstance(request, (requests.CloseSession, requests.DeleteSession)):
                # Closing cancels the work as `session/cancel` would, and a cancelled prompt must be answered so. That
                # answer goes out first: nothing of a session follows the answer that closes it.
                ended = self._end_turn(request.session_id, events.Idle(stop_reason="cancelled"), force=True)
                self._forget_relayed(request.session_id)
                self._sessions.pop(request.session_id, None)
                self._sent_options.pop(request.session_id, None)
                return [*ended, *super().encode_reply(id, request, reply)]
            case _:
                return super().encode_reply(id, request, reply)

    def encode_failure(self, id: Id, request: Request, error: WireError) -> Sequence[Out]:
        """Encode as `super()` does, and forget the request; nothing for a prompt that was answered already."""
        self._mode_requests.discard(id)
        self._extension_requests.pop(id, None)
        self._renames.discard(id)
        reported: Sequence[Out] = ()
        if isinstance(request, requests.PromptRequest):
            pending = self._prompts.get(request.session_id)
            if pending is not None and id in pending.repeats:
                pending.repeats.remove(id)
                return super().encode_failure(id, request, error)
            queued = next((one for one in self._queued.get(request.session_id, ()) if one.id == id), None)
            if queued is not None:
                self._queued[request.session_id].remove(queued)
                if error.code == CANCELLED:  # as the schema has it for a prompt whose turn was cancelled
                    return [ResultMessage(id, self.encode_end(events.Idle(stop_reason="cancelled")))]
                return super().encode_failure(id, request, error)
            if pending is None or pending.id != id:
                return []  # it was answered when its session was closed
            self._drop_prompt(request.session_id)
            if pending.report is not None:
                reported = self._info(request.session_id, pending.report.unavailable("notReported"))
        return [*reported, *super().encode_failure(id, request, error)]

    def _reply_opened(
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
        self._learn_options(session_id, reply.config_options or [])
        self._session(session_id).shrink()  # a replay has ended
        self._session(session_id).roots = (request.cwd, *(request.additional_directories or ()))
        encoded: Any = reply.config_options
        if isinstance(reply.config_options, list):
            encoded = self._encode_options(reply.config_options)
        outs: list[Out] = []
        if kind is w.LoadSessionResponse and self._air.ends_replays:
            outs.extend(self._info(session_id, air.with_air(None, air.LOAD_REPLAY_END, True)))
        outs.append(ResultMessage(id, self.encode_opened(reply, kind, encoded)))
        # Version 2 has the commands in the answer. Here they are an update, which must come behind it: before it, the
        # client of a new session does not know the id.
        if reply.available_commands:
            outs.extend(self.encode_event(session_id, events.CommandsChanged(reply.available_commands)))
        return outs

    def _reply_options_set(self, id: Id, request: requests.SetOption, reply: requests.OptionsSet) -> Sequence[Out]:
        self._sent_options.pop(request.session_id, None)
        session = self._session(request.session_id)
        model_before = session.model[1]
        new_mode = self._learn_options(request.session_id, reply.config_options)
        if (extension := self._extension_requests.pop(id, None)) is not None:
            is_changed = bool(new_mode) or session.model[1] != model_before
            answer = extension.encode_result(session)
            return [ResultMessage(id, answer), *self._send_options(request, reply, is_changed)]
        if id in self._mode_requests:
            self._mode_requests.discard(id)
            # Both answers without options are followed by an update with all of them, if they have changed: the schema
            # has agents keep `modes` and `configOptions` in step, and this client may show either.
            answer = b"{}"
            if not (reply.meta is UNSET and reply.extras is UNSET):
                extras = encode_extras(reply, w.SetSessionModeResponse)
                answer = wire.encode(w.SetSessionModeResponse(meta=reply.meta, extras=extras))
            return [ResultMessage(id, answer), *self._send_options(request, reply, bool(new_mode))]
        result = w.SetSessionConfigOptionResponse(
            config_options=self._encode_options(reply.config_options),
            meta=reply.meta,
            extras=encode_extras(reply, w.SetSessionConfigOptionResponse),
        )
        return [ResultMessage(id, wire.encode(result)), *self._notify(request.session_id, _mode_updates(new_mode))]

    def _send_options(self, request: requests.SetOption, reply: requests.OptionsSet, is_changed: bool) -> Sequence[Out]:
        """Send the options behind an answer that has none in it: the client was shown them when it opened the session.

        Sends nothing unless `is_changed`. An update of the agent's own that says the same is left out after this.
        """
        if not is_changed:
            return []
        self._sent_options[request.session_id] = reply.config_options
        update = w.ConfigOptionUpdate(config_options=self._encode_options(reply.config_options))
        return self._notify(request.session_id, [update])

    # -- events ------------------------------------------------------------------------------------------------------

    def encode_event(self, session_id: str, event: events.AnyEvent) -> Sequence[Out]:
        """Encode an event as no update, one or several; an `Idle` that ends a turn as the answer to its prompt."""
        if isinstance(event, events.Idle):
            return self._end_turn(session_id, event)
        return self._notify(
            session_id, self._updates(session_id, self._session(session_id), event), **encode_outer(event)
        )

    def _notify(self, session_id: str, updates: Sequence[wire.WireValue], **outer: Any) -> Sequence[Out]:
        # The type of `update` is the union of all known ones. Dialects of vendors pass values of their own, which are
        # encoded as they are.
        carrier: Any = w.SessionNotification
        return [
            NotificationMessage("session/update", wire.encode(carrier(session_id=session_id, update=update, **outer)))
            for update in updates
        ]

    def _info(self, session_id: str, meta: dict[str, object]) -> Sequence[Out]:
        """Send `_meta` about a session, and nothing else of it."""
        return self._notify(session_id, [w.SessionInfoUpdate(meta=meta)])

    def encode_opened(self, reply: requests.SessionOpened, kind: Any, encoded_options: Any) -> bytes:
        """Encode the answer to a request that opens a session, of the wire type `kind`."""
        return wire.encode(updates.encode_opened(reply, kind, encoded_options))

    def encode_end(self, event: events.Idle) -> bytes:
        """Encode the answer to a prompt whose turn has ended."""
        reason = event.stop_reason if isinstance(event.stop_reason, str) else "end_turn"
        meta = event.meta
        # The list is closed: a strict client would refuse the whole answer. The reason itself goes into `_meta`.
        if reason not in events.STOP_REASONS:
            meta = {**(event.meta or {}), "stopReason": reason}
            reason = "end_turn"
        result = w.PromptResponse(
            stop_reason=reason,  # type: ignore[arg-type]
            usage=v1.CODEC.encode(event.usage),
            meta=meta,
            extras=encode_extras(event, w.PromptResponse),
        )
        return wire.encode(result)

    def text_frame(self, session_id: str, kind: str, message_id: str) -> tuple[bytes, ...]:
        """Return the frame around the text, in two parts; see `Dialect.text_frame`."""
        # The message counts as sent already: a whole message that repeats it must not be sent again.
        self._session(session_id).message_ids[message_id] = None
        return text_frame_head(session_id, kind, message_id_field(message_id)), TEXT_FRAME_TAIL

    def _updates(self, session_id: str, session: V1SessionMemory, event: events.AnyEvent) -> Sequence[wire.WireValue]:
        match event:
            case events.Running() | events.RequiresAction():
                pending = self._prompts.get(session_id)
                if pending is not None:
                    # Before the prompt is accepted, this is the work of another turn.
                    pending.is_running = pending.message_id is not None
                session.running = True
                return self._waiting_notices(session_id, session)
            case events.UnknownState():
                return []  # this wire has no states; an unknown one must not be taken for an update
            case events.UserMessage() | events.UserMessageChunk() if self._is_echo(session_id, event.message_id):
                return []
            # The order of these cases: a subclass before its base, a client without a capability before the plain way.
            case events.Message():
                return updates.whole_message(session, event)
            case events.Chunk():
                return [updates.chunk(session, event)]
            case events.ToolCallUpdate() | events.ToolCallContentChunk():
                found = updates.tool_call(session, event)
                pending = self._prompts.get(session_id)
                if pending is not None and pending.report is not None:
                    pending.report.note(session.calls[event.tool_call_id])
                return found
            case events.TerminalUpdate() | events.TerminalOutputChunk():
                return updates.terminal(session, event)
            case events.OptionsChanged():
                return self._options_changed(session_id, event)
            case events.PlanUpdate() | events.PlanRemoved() if not self._client.plans:
                return updates.only_plan(session, event)
            case events.Notice() if not self._takes_notices:
                session.add_notices([event])
                return self._waiting_notices(session_id, session)
            case events.CompactionUpdate() if not self._client.compaction:
                # Between two turns it is left out: as a notice it would wait, and tell of something long over.
                notice = notices.of_compaction(event) if session.running else None
                return [] if notice is None else self._updates(session_id, session, notice)
            case _:
                return updates.plainly(event, self._client)

    def note_relayed(self, session_id: str, update: "RelayedUpdate") -> None:
        """Keep what was sent as it came until it is needed here."""
        if self._relayed is None:
            from dragoman.dialects.v1.relayed_calls import RelayedCalls  # no agent of its own needs it

            self._relayed = RelayedCalls()
        if self._relayed.add(session_id, update):
            self._read_ends(session_id)

    def _read_ends(self, session_id: str) -> None:
        if self._relayed is not None and session_id in self._relayed:
            for event in self._relayed.take_ends(session_id):
                self.encode_event(session_id, event)  # for what it remembers: it was sent

    def _forget_relayed(self, session_id: str) -> None:
        if self._relayed is not None:
            self._relayed.take_ends(session_id)

    @cached_property
    def speech(self) -> "Speech | None":
        """Return that of version 1 to a client that can do the same; None for a vendor's dialect, and for a client that
        is told which files a turn has changed: that is read from its calls."""
        from dragoman.dialects.codec.relayed_updates import speech  # no agent of its own needs it

        is_plain = type(self) is AgentV1 and not self._air.reports
        return speech("v1", self._client) if is_plain else None

    # -- notices -----------------------------------------------------------------------------------------------------

    def _waiting_notices(self, session_id: str, session: V1SessionMemory) -> Sequence[wire.WireValue]:
        """Return the notices that can be shown now: all in a turn, none between two."""
        pending = self._prompts.get(session_id)
        if not session.notices or not (pending or session.running):
            return []
        # An id that the agent has given keeps it apart from the notices of another process; the salt does so as well.
        turn = (pending.message_id if pending is not None else session.last_message) or self.salt.rstrip("-")
        updates: list[wire.WireValue] = []
        while session.notices:
            session.shown_notices += 1
            call_id = f"notice-{turn}-{session.shown_notices}"
            updates.extend(self.encode_notice(session.notices.pop(0), call_id))
        return updates

    def encode_notice(self, notice: events.Notice, call_id: str) -> Sequence[wire.WireValue]:
        """Return the updates that show a notice to a client that takes none."""
        return [notices.as_call(notice, call_id)]

    def _is_echo(self, session_id: str, message_id: str) -> bool:
        """Return whether a user message is the prompt of the running turn: the client has shown it already."""
        pending = self._prompts.get(session_id)
        return pending is not None and pending.is_echo(message_id)

    # -- options -----------------------------------------------------------------------------------------------------

    def _encode_options(self, found: list[options.Option]) -> Any:
        """Encode the options; the schema forbids switches unless the client has the capability for them."""
        return v1.CODEC.encode(
            [option for option in found if self._client.boolean_options or not isinstance(option, options.Toggle)]
        )

    def _options_changed(self, session_id: str, event: events.OptionsChanged) -> Sequence[wire.WireValue]:
        new_mode = self._learn_options(session_id, event.config_options)
        sent = self._sent_options.pop(session_id, None)
        if sent == event.config_options and event.meta is event.extras is event.outer is UNSET:
            return []
        update = w.ConfigOptionUpdate(
            config_options=self._encode_options(event.config_options),
            meta=event.meta,
            extras=encode_extras(event, w.ConfigOptionUpdate),
        )
        # Twice, because clients exist that read only one of the two.
        return [update, *_mode_updates(new_mode)]

    def _learn_options(self, session_id: str, found: list[options.Option]) -> str:
        """Remember which option is the mode and which the model; return the new mode if it has changed, else ""."""
        mode = updates.mode_option(found)
        session = self._session(session_id)
        for option in found:
            if isinstance(option, options.Select) and option.category == "model":
                session.model = (option.config_id, option.current_value)
        if mode is None:
            return ""
        before = session.mode[1]
        session.mode = (mode.config_id, mode.current_value)
        return mode.current_value if before not in ("", mode.current_value) else ""

    # -- the end of a turn -------------------------------------------------------------------------------------------

    def _reply_accepted(self, session_id: str, message_id: str) -> Sequence[Out]:
        """Send nothing, unless the turn has ended before its prompt was accepted."""
        pending = self._prompts.get(session_id)
        if pending is None:
            return []  # the session was closed meanwhile, and the prompt answered
        end = pending.accept(message_id)
        return [] if end is None else self._end_turn(session_id, end)

    def _end_turn(self, session_id: str, event: events.Idle, *, force: bool = False) -> Sequence[Out]:
        """Answer the prompt that waits for this end; `force`: even if its turn has not begun.

        Nothing is sent for the end of a turn that another client of the session has begun: this wire has no states.
        """
        if (session := self._sessions.get(session_id)) is not None:
            session.running = False
        pending = self._prompts.get(session_id)
        if pending is None:
            return []
        if not force and not pending.ends_with(event):
            return []
        self._drop_prompt(session_id)
        self._read_ends(session_id)
        session = self._session(session_id)
        # After a turn of text alone there is nothing to drop.
        if session.calls or session.terminals or len(session.message_ids) > REMEMBERED:
            session.shrink()
        reported = () if pending.report is None else self._info(session_id, pending.report.ended(event))
        return [*reported, *self._answers(session_id, pending, event)]

    def _drop_prompt(self, session_id: str) -> None:
        """Remove the prompt that is over; the first one behind it is the next whose turn ends."""
        del self._prompts[session_id]
        queued = self._queued.get(session_id)
        if queued:
            self._prompts[session_id] = queued.pop(0)
        else:
            self._queued.pop(session_id, None)

    def _answers(self, session_id: str, pending: PendingPrompt, event: events.Idle) -> Sequence[Out]:
        # Version 1 has no stop reason for a failure; an error answer is what its clients show as one, unless they have
        # declared a record for it.
        if event.stop_reason == "error" and self._air.records_failures:
            turn = pending.message_id or f"{self.salt}{pending.id}"
            event = session_failures.recorded_end(event, turn)
        elif event.stop_reason == "error":
            failure = failure_of(event.error)
            ids = [pending.id, *pending.repeats]
            return [out for id in ids for out in self.encode_failed_turn(session_id, id, failure)]
        return [ResultMessage(id, self.encode_end(event)) for id in (pending.id, *pending.repeats)]

    def encode_failed_turn(self, session_id: str, id: Id, error: WireError) -> Sequence[Out]:
        """Encode the answer to a prompt whose turn has failed."""
        return [ErrorMessage(id, error)]

    def _session(self, session_id: str) -> V1SessionMemory:
        if self._relayed is not None and session_id in self._relayed:
            for event in self._relayed.take(session_id):
                self.encode_event(session_id, event)  # for what it remembers: it was sent
        found = self._sessions.get(session_id)
        if found is None:
            found = V1SessionMemory(self._output_key, self._air.lean, self._air.call_fields)
            self._sessions[session_id] = found
        return found


def _mode_updates(mode: str) -> Sequence[wire.WireValue]:
    return [w.CurrentModeUpdate(current_mode_id=mode)] if mode else []


def failure_of(error: "events.Failure | None | msgspec.UnsetType") -> WireError:
    """Return the error of a failed turn: -32000 where a login helps, else the code it carries.

    Our own agents give -32603.
    """
    if not isinstance(error, events.Failure):
        return WireError(INTERNAL_ERROR, "Internal error")
    data = None if error.data is UNSET else error.data
    reason = data.get("reason") if isinstance(data, dict) else None
    return WireError(AUTH_REQUIRED if reason == "auth" else error.code, error.message, data)
