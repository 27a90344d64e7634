"""Version 1, as the agent: hears a client, tells events.

What this wire lacks is kept here: the request a turn is answered under, and which option the client knows as its
mode. What an event comes to, given what was told before, is in `v1_updates`.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from dragoman.dialects.codec.dialect_base import (
    TEXT_FRAME_TAIL,
    DialectBase,
    busy_error,
    check_prompt,
    message_id_field,
    text_frame_head,
    with_login,
)
from dragoman.dialects.codec.terminal_display import without_terminals
from dragoman.dialects.codec.transcriber import decode_extras, encode_extras, encode_outer
from dragoman.dialects.contract import ErrorMessage, Id, NotificationMessage, Out, RequestMessage, ResultMessage
from dragoman.dialects.v1 import codec as v1
from dragoman.dialects.v1 import notices, permissions, routes, updates
from dragoman.dialects.v1.memory import PendingPrompt, V1SessionMemory
from dragoman.dialects.vendors.extensions import OPTION_EXTENSIONS, OptionExtension
from dragoman.errors import AUTH_REQUIRED, INTERNAL_ERROR, WireError
from dragoman.vocabulary import events, options, requests, services
from dragoman.vocabulary.asking import Extension, Note, Reply, Request
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.wire import types as wire
from dragoman.wire import v1 as w

_decode_mode: Final = wire.decoder(w.SetSessionModeRequest).decode
_OPENING: Final = (requests.NewSession, requests.ForkSession, requests.ResumeSession)


class AgentV1(DialectBase):
    """The agent's side of version 1."""

    replies_to_prompt_at_turn_end = True

    def __init__(self, client: ClientHello, agent: AgentHello) -> None:
        super().__init__(
            v1.CODEC,
            incoming=[*with_login(routes.CLIENT_ASKS, agent, requests.Login), routes.LOAD, routes.RESUME],
            outgoing=[permissions.PERMISSION, *routes.AGENT_ASKS],
            incoming_notes=routes.CLIENT_NOTES,
            outgoing_notes=routes.AGENT_NOTES,
            offered=agent.capabilities,
            granted=client.capabilities,
        )
        self._client = client.capabilities
        self._takes_notices = client.capabilities.notices
        self._sessions: dict[str, V1SessionMemory] = {}
        self._prompts: dict[str, PendingPrompt] = {}
        self._mode_requests: set[Id] = set()
        # Requests of a vendor's own method (`vendors/extensions`), which has its own form of an answer.
        self._extension_requests: dict[Id, OptionExtension] = {}
        # Options that the client was sent in the agent's place (`_send_options`), until the agent sends any itself.
        self._sent_options: dict[str, list[options.Option]] = {}

    # -- hearing -----------------------------------------------------------------------------------------------------

    def decode_request(self, id: Id, method: str, params: Raw) -> Request | Note:
        """Decode as `super()` does, but `session/set_mode` sets the mode option.

        Raise `PeerMistake` for an empty prompt and for a second prompt while one is open in the session.
        """
        if method == "session/set_mode":
            return self._decode_set_mode(id, params)
        request = super().decode_request(id, method, params)
        match request:
            case requests.PromptRequest():
                check_prompt(request)
                if request.session_id in self._prompts:
                    raise busy_error()
                self._prompts[request.session_id] = PendingPrompt(id)
            case Extension(method=method) if method in OPTION_EXTENSIONS:
                return self._decode_extension(id, request)
            case requests.ResumeSession() if request.replay_from:
                # Its story is told from the start: nothing of it counts as told before.
                before = self._sessions.pop(request.session_id, None)
                self._sent_options.pop(request.session_id, None)
                if before is not None and before.notices:
                    self._session(request.session_id).notices.extend(before.notices)
            case _:
                pass
        return request

    def decode_cancel(self, id: Id) -> Note | None:
        """The prompt is the turn: giving up on it cancels the turn."""
        for session_id, prompt in self._prompts.items():
            if prompt.id == id:
                return requests.CancelTurn(session_id)
        return None

    def _decode_set_mode(self, id: Id, params: Raw) -> Request:
        try:
            asked = _decode_mode(params)
        except ValueError:  # the long way keeps what is unknown, and says what is wrong
            asked = self.read_params(routes.SET_MODE, params)
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
        """Only what has one of this wire's four kinds was offered."""
        return permissions.known_options(request)

    # -- asking and answering ----------------------------------------------------------------------------------------

    def encode_request(self, request: Request) -> RequestMessage:
        """Encode as `super()` does, but a permission carries its tool call as the client was shown it."""
        if not isinstance(request, services.RequestPermission):
            return super().encode_request(request)
        session = self._session(request.session_id)
        shown = session.calls.get(permissions.call_id(request))
        call = permissions.subject_call(request, shown.content if shown is not None else ())
        if isinstance(call.content, list):
            call = msgspec.structs.replace(call, content=without_terminals(call.content, session.terminals))
        return RequestMessage(permissions.PERMISSION.method, wire.encode(permissions.encode_permission(request, call)))

    def encode_reply(self, id: Id, request: Request, reply: Reply) -> Sequence[Out]:
        """Reply as `super()` does, but an accepted prompt is answered when its turn ends."""
        match reply:
            case requests.OptionsSet() if isinstance(request, requests.SetOption):
                return self._options_set(id, request, reply)
            case requests.PromptAccepted() if isinstance(request, requests.PromptRequest):
                return self._accepted(request.session_id, reply.message_id)
            case requests.SessionOpened() if isinstance(request, _OPENING):
                return self._opened(id, request, reply)
            case _ if isinstance(request, (requests.CloseSession, requests.DeleteSession)):
                # A turn that is still open ends with its session.
                ended = self._end(request.session_id, events.Idle(stop_reason="cancelled"), whatever=True)
                self._sessions.pop(request.session_id, None)
                self._sent_options.pop(request.session_id, None)
                return [*ended, *super().encode_reply(id, request, reply)]
            case _:
                return super().encode_reply(id, request, reply)

    def encode_failure(self, id: Id, request: Request, error: WireError) -> Sequence[Out]:
        """A refused prompt waits for nothing."""
        self._mode_requests.discard(id)
        self._extension_requests.pop(id, None)
        if isinstance(request, requests.PromptRequest):
            held = self._prompts.get(request.session_id)
            if held is None or held.id != id:
                return []  # it was answered when its session was closed
            del self._prompts[request.session_id]
        return super().encode_failure(id, request, error)

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
        self._session(session_id).shrink()
        said: Any = reply.config_options
        if isinstance(reply.config_options, list):
            said = self._encode_options(reply.config_options)
        outs: list[Out] = [ResultMessage(id, self.encode_opened(reply, kind, said))]
        if reply.available_commands:
            outs.extend(self.encode_event(session_id, events.CommandsChanged(reply.available_commands)))
        return outs

    def _options_set(self, id: Id, request: requests.SetOption, reply: requests.OptionsSet) -> Sequence[Out]:
        self._sent_options.pop(request.session_id, None)
        session = self._session(request.session_id)
        model_before = session.model[1]
        moved = self._learn_mode(request.session_id, reply.config_options)
        if (extension := self._extension_requests.pop(id, None)) is not None:
            is_changed = bool(moved) or session.model[1] != model_before
            answer = extension.encode_result(session)
            return [ResultMessage(id, answer), *self._send_options(request, reply, is_changed)]
        if id in self._mode_requests:
            self._mode_requests.discard(id)
            answer = b"{}"
            if not (reply.meta is UNSET and reply.extras is UNSET):
                extras = encode_extras(reply, w.SetSessionModeResponse)
                answer = wire.encode(w.SetSessionModeResponse(meta=reply.meta, extras=extras))
            return [ResultMessage(id, answer), *self._send_options(request, reply, bool(moved))]
        result = w.SetSessionConfigOptionResponse(
            config_options=self._encode_options(reply.config_options),
            meta=reply.meta,
            extras=encode_extras(reply, w.SetSessionConfigOptionResponse),
        )
        return [ResultMessage(id, wire.encode(result)), *self._notify(request.session_id, _moved(moved))]

    def _send_options(self, request: requests.SetOption, reply: requests.OptionsSet, is_changed: bool) -> Sequence[Out]:
        """Send the options behind an answer that has none in it: the client was shown them when it opened the session.

        Sends nothing unless `is_changed`. An update of the agent's own that says the same is left out after this.
        """
        if not is_changed:
            return []
        self._sent_options[request.session_id] = reply.config_options
        update = w.ConfigOptionUpdate(config_options=self._encode_options(reply.config_options))
        return self._notify(request.session_id, [update])

    # -- telling -----------------------------------------------------------------------------------------------------

    def encode_event(self, session_id: str, event: events.AnyEvent) -> Sequence[Out]:
        """One event: no update, one, or several."""
        if isinstance(event, events.Idle):
            return self._end(session_id, event)
        return self._notify(
            session_id, self._updates(session_id, self._session(session_id), event), **encode_outer(event)
        )

    def _notify(self, session_id: str, updates: Sequence[Any], **outer: Any) -> Sequence[Out]:
        carrier = w.SessionNotification
        return [
            NotificationMessage("session/update", wire.encode(carrier(session_id=session_id, update=update, **outer)))
            for update in updates
        ]

    def encode_opened(self, reply: requests.SessionOpened, kind: Any, encoded_options: Any) -> bytes:
        """What is told of a session when it is opened."""
        return wire.encode(v1.encode_opened(reply, kind, encoded_options))

    def encode_end(self, event: events.Idle) -> bytes:
        """What a prompt is answered with when its turn has ended."""
        reason = event.stop_reason if isinstance(event.stop_reason, str) else "end_turn"
        meta = event.meta
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
        """Everything but the text."""
        self._session(session_id).spoken[message_id] = None
        return text_frame_head(session_id, kind, message_id_field(message_id)), TEXT_FRAME_TAIL

    def _updates(self, session_id: str, session: V1SessionMemory, event: events.AnyEvent) -> Sequence[Any]:
        match event:
            case events.Running() | events.RequiresAction():
                held = self._prompts.get(session_id)
                if held is not None:
                    held.running = held.message_id is not None
                session.running = True
                return self._waiting_notices(session_id, session)
            case events.UnknownState():
                return []
            case events.UserMessage() | events.UserMessageChunk() if self._is_echo(session_id, event.message_id):
                return []
            case events.Message():
                return updates.whole_message(session, event)
            case events.Chunk():
                return [updates.chunk(session, event)]
            case events.ToolCallUpdate() | events.ToolCallContentChunk():
                return [updates.tool_call(session, event)]
            case events.TerminalUpdate() | events.TerminalOutputChunk():
                return updates.terminal(session, event)
            case events.OptionsChanged():
                return self._options_changed(session_id, event)
            case events.PlanUpdate() | events.PlanRemoved() if not self._client.plans:
                return updates.only_plan(session, event)
            case events.Notice() if not self._takes_notices:
                session.notices.append(event)
                return self._waiting_notices(session_id, session)
            case events.CompactionUpdate() if not self._client.compaction:
                notice = notices.of_compaction(event) if session.running else None
                return [] if notice is None else self._updates(session_id, session, notice)
            case _:
                return updates.plainly(event, self._client)

    # -- notices -----------------------------------------------------------------------------------------------------

    def _waiting_notices(self, session_id: str, session: V1SessionMemory) -> Sequence[Any]:
        """Return the notices that can be shown now: all in a turn, none between two."""
        held = self._prompts.get(session_id)
        if not session.notices or not (held or session.running):
            return []
        # An id that the agent has given keeps it apart from the notices of another process; the salt does so as well.
        turn = (held.message_id if held is not None else session.last_message) or self.salt.rstrip("-")
        updates: list[Any] = []
        while session.notices:
            session.shown_notices += 1
            call_id = f"notice-{turn}-{session.shown_notices}"
            updates.extend(self.encode_notice(session.notices.popleft(), call_id))
        return updates

    def encode_notice(self, notice: events.Notice, call_id: str) -> Sequence[Any]:
        """Return the updates that show a notice to a client that takes none."""
        return [notices.as_call(notice, call_id)]

    def _is_echo(self, session_id: str, message_id: str) -> bool:
        """The client knows what it has just said."""
        held = self._prompts.get(session_id)
        return held is not None and held.is_echo(message_id)

    # -- options -----------------------------------------------------------------------------------------------------

    def _encode_options(self, found: list[options.Option]) -> Any:
        """The options; a switch only where the client has said that it knows switches."""
        return v1.CODEC.encode(
            [option for option in found if self._client.boolean_options or not isinstance(option, options.Toggle)]
        )

    def _options_changed(self, session_id: str, event: events.OptionsChanged) -> Sequence[Any]:
        moved = self._learn_mode(session_id, event.config_options)
        sent = self._sent_options.pop(session_id, None)
        if sent == event.config_options and event.meta is event.extras is event.outer is UNSET:
            return []
        said = w.ConfigOptionUpdate(
            config_options=self._encode_options(event.config_options),
            meta=event.meta,
            extras=encode_extras(event, w.ConfigOptionUpdate),
        )
        return [said, *_moved(moved)]

    def _learn_mode(self, session_id: str, found: list[options.Option]) -> str:
        """Remember which option is the mode, and which the model; the new mode if it has changed."""
        mode = options.mode_option(found)
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

    def _accepted(self, session_id: str, message_id: str) -> Sequence[Out]:
        held = self._prompts.get(session_id)
        if held is None:
            return []
        end = held.accept(message_id)
        return [] if end is None else self._end(session_id, end)

    def _end(self, session_id: str, event: events.Idle, *, whatever: bool = False) -> Sequence[Out]:
        """Answer the prompt that waits for this end; `whatever`: even if its turn has not begun."""
        if (session := self._sessions.get(session_id)) is not None:
            session.running = False
        held = self._prompts.get(session_id)
        if held is None:
            return []
        if not whatever and not held.ends_with(event):
            return []
        del self._prompts[session_id]
        self._session(session_id).shrink()
        if event.stop_reason == "error":
            return self.encode_failed_turn(session_id, held.id, failure_of(event.error))
        return [ResultMessage(held.id, self.encode_end(event))]

    def encode_failed_turn(self, session_id: str, id: Id, error: WireError) -> Sequence[Out]:
        """What a prompt is answered with when its turn has failed."""
        return [ErrorMessage(id, error)]

    def _session(self, session_id: str) -> V1SessionMemory:
        found = self._sessions.get(session_id)
        if found is None:
            found = self._sessions[session_id] = V1SessionMemory()
        return found


def _moved(mode: str) -> Sequence[Any]:
    return [w.CurrentModeUpdate(current_mode_id=mode)] if mode else []


def failure_of(error: "events.Failure | None | msgspec.UnsetType") -> WireError:
    """A failed turn on this wire: -32000 where a login helps, else the code it carries (-32603 from our own agents)."""
    if not isinstance(error, events.Failure):
        return WireError(INTERNAL_ERROR, "Internal error")
    data = None if error.data is UNSET else error.data
    reason = data.get("reason") if isinstance(data, dict) else None
    return WireError(AUTH_REQUIRED if reason == "auth" else error.code, error.message, data)
