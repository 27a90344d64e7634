"""Route an agent's events, requests and notes to the clients they are for.

- An event goes to the `SharedSession` of its session; one of a session that is being opened is held until its id is
  known.
- A request about a session goes to its `SharedSession`; an elicitation about a request goes to the client that made
  that request; any other request goes to the client the agent was started for. Where no client can answer, the agent
  gets a refusal.
- A note that belongs to no session goes only to clients of the principal the agent was started for.
"""

from collections.abc import Awaitable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from dragoman.dialects.contract import Id
from dragoman.errors import LinkClosed, UsageError
from dragoman.gateway.open_questions import refusal
from dragoman.gateway.pending_events import PendingEvents
from dragoman.gateway.session_ids import session_of, with_session
from dragoman.gateway.shared_session import SHORT_BYTES
from dragoman.vocabulary.asking import Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.vocabulary.requests import ForkSession, NewSession, PromptRequest
from dragoman.vocabulary.services import Elicit, ElicitationAnswer, RequestScope, SessionScope

if TYPE_CHECKING:
    from dragoman.gateway.agent_side import AgentSide
    from dragoman.gateway.client_side import ClientSide


class AgentEvents:
    """The handler of an agent's link, in the role of the client; the same for all its processes."""

    def __init__(self, back: "AgentSide") -> None:
        self.early: Final = PendingEvents()
        self._back = back
        self._rooms = back.rooms
        self._has_stirred = False

    def stirred(self) -> bool:
        """Whether the agent has said anything since this was asked last."""
        stirred, self._has_stirred = self._has_stirred, False
        return stirred

    # -- the link calls these ----------------------------------------------------------------------------------------

    def on_initialize(self, hello: ClientHello) -> AgentHello:
        raise UsageError("a client is not greeted")

    def on_event(self, session_id: str, event: AnyEvent) -> None:
        self.on_sized_event(session_id, event, SHORT_BYTES)

    def on_sized_event(self, session_id: str, event: AnyEvent, size: int) -> None:
        """Pass an event of `size` bytes to its shared session. Where there is none, hold it while a session is being
        opened; else discard it and all held events."""
        self._back.link.consume()
        self._has_stirred = True
        room = self._rooms.get(session_id)
        if room is not None:
            room.hear(event, size)
            if room.behind:
                self._back.pace()
            return
        if any(isinstance(asked.request, (NewSession, ForkSession)) for asked in self._back.asked.values()):
            self.early.hold(session_id, event, size)
        else:
            self.early.forget()

    def on_request(self, request: Request, id: Id) -> Awaitable[Reply]:
        if isinstance(request, Elicit) and isinstance(request.scope, RequestScope):
            return self._ask_about(request, request.scope)
        room = self._rooms.get(session_of(request) or "")
        if room is None:
            return self._ask_one(self._back.origin, request)
        return room.ask(with_session(request, room.id))

    def on_notification(self, note: Note) -> None:
        room = self._rooms.get(session_of(note) or "")
        if room is not None:
            note, fronts = with_session(note, room.id), set(room.fronts)
        else:
            clients = {self._back.origin, *(front for room in self._rooms.values() for front in room.fronts)}
            # A session made without this gateway may have subscribers of several principals (`Hub.is_mine`); a note
            # without a session is for the agent's own principal only.
            fronts = {front for front in clients if front.principal == self._back.origin.principal}
        for front in fronts:
            front.note(note)

    def on_noise(self, reason: str) -> None:
        self._back.hub.counts["noise"] += 1

    def on_bug(self, error: Exception) -> None:
        self._back.hub.report(error)

    def on_closed(self, error: LinkClosed) -> None:
        self._back.link_closed()

    # -- asking one of them ------------------------------------------------------------------------------------------

    async def _ask_about(self, request: Elicit, scope: RequestScope) -> Reply:
        """Ask the client that made the request in `scope`, by that client's own id for it. For a prompt of a client
        that does not speak version 1, the scope becomes the session. Return `cancel` if no such request is in flight.
        """
        number = scope.request_id
        asked = self._back.asked.get(number) if isinstance(number, int) else None
        if asked is None:
            return ElicitationAnswer("cancel")
        there: RequestScope | SessionScope = RequestScope(asked.id)
        if isinstance(asked.request, PromptRequest) and asked.front.link.version != 1:
            there = SessionScope(asked.request.session_id)
        return await self._ask_one(asked.front, replace(request, scope=there))

    async def _ask_one(self, front: "ClientSide", request: Request) -> Reply:
        """Ask only this client, record the answer and return it; if the client may not answer or is gone, the answer
        is a `refusal`, which raises `RequestFailed` for what is neither a permission nor an elicitation."""
        reply = None
        if not front.ended and front.may_answer(request):
            with suppress(LinkClosed):
                reply = await front.answer(request)
        is_answered = reply is not None
        reply = reply or refusal(request)
        await self._back.hub.record_answer(request, reply, front.identity, is_answered=is_answered)
        return reply
