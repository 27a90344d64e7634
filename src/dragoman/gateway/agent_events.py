"""Route an agent's events, requests and notifications to the clients they are for.

- An event goes to the `SharedSession` of its session; one of a session that is being opened is held until its id is
  known.
- A request about a session goes to its `SharedSession`; an elicitation about a request goes to the client that made
  that request; any other request goes to the client the agent was started for. Where no client can answer, the agent
  gets a rejection.
- A notification that belongs to no session goes only to clients of the principal the agent was started for.
"""

from collections.abc import Awaitable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from dragoman import limits
from dragoman.bridge.questions import scope_at_client, with_scope
from dragoman.dialects.codec.relayed_text import RelayedText
from dragoman.dialects.codec.relayed_updates import RelayedUpdate
from dragoman.dialects.contract import Id
from dragoman.errors import LinkClosed, UsageError
from dragoman.gateway.open_questions import answer_for_absent_clients
from dragoman.gateway.replay_buffer import ReplayBuffer
from dragoman.gateway.shared_session import SHORT_BYTES
from dragoman.link.pending_events import PendingEvents
from dragoman.vocabulary.asking import Extension, Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.vocabulary.identity import Identity, without_ours
from dragoman.vocabulary.mcp_messages import MCP_MESSAGE
from dragoman.vocabulary.services import Elicit, ElicitationAnswer, RequestScope
from dragoman.vocabulary.session_ids import session_of, with_session

if TYPE_CHECKING:
    from dragoman.gateway.agent_side import AgentSide
    from dragoman.gateway.client_side import ClientSide


class AgentEvents:
    """The handler of an agent's link, in the role of the client; the same for all its processes."""

    def __init__(self, agent_side: "AgentSide") -> None:
        self.pending_events: Final = PendingEvents(
            max_bytes=limits.EARLY_UPDATE_BYTES,
            max_each=limits.EARLY_UPDATES,
            max_sessions=limits.IN_FLIGHT,  # so many can be opened at once
        )
        self._agent_side = agent_side
        self._monitor = agent_side.pool.monitor
        self._recorder = agent_side.pool.recorder
        self._sessions = agent_side.sessions
        self._was_active = False
        self._streams: dict[ReplayBuffer, None] = {}  # that pieces of text of this read were appended to

    def was_active(self) -> bool:
        """Return whether an event has come since the last call."""
        was_active, self._was_active = self._was_active, False
        return was_active

    # -- the link calls these ----------------------------------------------------------------------------------------

    def on_initialize(self, hello: ClientHello) -> AgentHello:
        raise UsageError("a client is not greeted")

    def on_event(self, session_id: str, event: AnyEvent) -> None:
        self.on_sized_event(session_id, event, SHORT_BYTES)

    def on_sized_event(self, session_id: str, event: AnyEvent, size: int) -> None:
        """Pass an event of `size` bytes to its shared session. Where there is none, hold it while a session is being
        opened; else discard it and all held events."""
        # At once: what a slow client has not read waits in its own bounded buffer, and holds the gate (`is_behind`).
        self._agent_side.link.consume()
        self._was_active = True
        # By the agent's own id; `SharedSession` sends it to clients under theirs.
        shared = self._sessions.get(session_id)
        if shared is not None:
            shared.receive(event, size)
            if shared.is_behind:
                self._agent_side.update_reading()
        elif self._agent_side.in_flight.is_opening_session():
            self.pending_events.hold(session_id, event, size)
        else:
            # A session that was never opened here, or one that was just closed. No reply can name it any more.
            self.pending_events.clear()

    def on_text(self, piece: RelayedText) -> None:
        """Pass a piece of a message to its shared session as it came; else do with it what is done with any event."""
        shared = self._sessions.get(piece.message.session_id)
        if shared is None:
            self.on_sized_event(piece.message.session_id, piece.event(), piece.size)
            return
        self._agent_side.link.consume()
        self._was_active = True
        shared.receive_text(piece, self._streams)

    def on_update(self, update: RelayedUpdate) -> None:
        """Pass an update to its shared session as it came; where there is none, do with it what is done with events."""
        shared = self._sessions.get(update.session_id)
        if shared is None:
            event = update.event()
            if event is not None:
                self.on_sized_event(update.session_id, event, update.size)
            return
        self._agent_side.link.consume()
        self._was_active = True
        shared.receive_update(update, self._streams)
        if shared.is_behind:
            self._agent_side.update_reading()

    def on_read_end(self) -> None:
        """Send what the pieces of one read have become, in one write for each stream."""
        if not self._streams:
            return
        streams, self._streams = self._streams, {}
        for stream in streams:
            stream.flush()
        if any(stream.is_half_unread for stream in streams):
            self._agent_side.update_reading()

    def unread_bytes(self) -> int:
        """Return 0: events are passed on at once. A session that is behind pauses the agent's transport by itself."""
        return 0

    def on_request(self, request: Request, id: Id) -> Awaitable[Reply]:
        if isinstance(request, Elicit) and isinstance(request.scope, RequestScope):
            return self._ask_about_request(request, request.scope)
        if isinstance(request, Extension) and request.method == MCP_MESSAGE:
            return self._agent_side.lenders.ask(request)
        shared = self._sessions.get(session_of(request) or "")
        if shared is None:
            return self._ask_client(self._agent_side.origin, request)
        return shared.ask(with_session(request, shared.id))

    def on_notification(self, note: Note) -> None:
        shared = self._sessions.get(session_of(note) or "")
        if shared is not None:
            note, clients = with_session(note, shared.id), set(shared.subscribers)
        else:
            origin = self._agent_side.origin
            # Started for no client: there is none whose principal could be meant.
            if origin is None:
                return
            subscribers = (one for shared in self._sessions.values() for one in shared.subscribers)
            # A session made without this gateway may have subscribers of several principals (`SessionAccess`); a note
            # without a session is for the agent's own principal only.
            clients = {one for one in (origin, *subscribers) if one.principal == origin.principal}
        for client_side in clients:
            client_side.send_notification(note)

    def on_noise(self, reason: str) -> None:
        self._monitor.counts["noise"] += 1

    def on_bug(self, error: Exception) -> None:
        self._monitor.report(error)

    def on_closed(self, error: LinkClosed) -> None:
        self._agent_side.on_link_closed(error)

    # -- asking one client -------------------------------------------------------------------------------------------

    async def _ask_about_request(self, request: Elicit, scope: RequestScope) -> Reply:
        """Ask the client that made the request in `scope`, by that client's own id for it. For a prompt that was
        answered when it was accepted, the scope becomes the session. Return `cancel` if no such request is in flight.
        """
        asked = self._agent_side.in_flight.find(scope.request_id)
        if asked is None:
            return ElicitationAnswer("cancel")
        # A prompt counts as answered from the start: its reply may overtake the question on the way to the client.
        there = scope_at_client(asked.request, asked.id, asked.client_side.link, is_answered=True)
        return await self._ask_client(asked.client_side, with_scope(request, there))

    async def _ask_client(self, client_side: "ClientSide | None", request: Request) -> Reply:
        """Ask only this client, record the answer and return it; if there is none, or it may not answer, the answer
        is that of `answer_for_absent_clients`, which raises `RequestFailed` for what is no question to a user."""
        reply = None
        if client_side is not None and not client_side.is_closed and client_side.may_answer(request):
            with suppress(LinkClosed):
                reply = await client_side.ask(request)
        is_answered = reply is not None
        reply = reply or answer_for_absent_clients(request)
        identity = Identity() if client_side is None else client_side.identity
        await self._recorder.record(request, reply, identity, is_answered=is_answered)
        return without_ours(reply) if self._agent_side.origin is not None and not self._believes else reply

    @property
    def _believes(self) -> bool:
        """Return whether the agent is sent who has answered: it is ours."""
        return self._agent_side.pool.access.ceilings.trusted
