"""The client's side of the gateway: one connection, whose requests go to the agent of the session they name."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.dialects.contract import Id
from dragoman.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    TOO_MANY_IN_FLIGHT,
    LinkClosed,
    RequestFailed,
    UsageError,
)
from dragoman.gateway.agent_restart import GONE, UNCLEAR, missing
from dragoman.gateway.agent_side import AgentSide
from dragoman.gateway.ceilings import OPERATOR
from dragoman.gateway.connection import GatewayConnection
from dragoman.gateway.cursors import Cursors
from dragoman.gateway.guard import Scope
from dragoman.gateway.in_flight import InFlightRequest, WatchedRequest
from dragoman.gateway.logbook import connection_name, principal_name, session_name
from dragoman.gateway.metrics import method_of
from dragoman.gateway.read_only import hello_to_read, reads, to_read
from dragoman.gateway.session_opener import SessionOpener
from dragoman.gateway.shared_session import SharedSession
from dragoman.link import Link
from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.asking import Done, Note, R, Reply, Request
from dragoman.vocabulary.events import AnyEvent, OptionsChanged
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.vocabulary.identity import Identity, needs_in, with_identity, without_ours
from dragoman.vocabulary.session_ids import session_of, with_session

if TYPE_CHECKING:
    from dragoman.gateway.hub import Hub

# Pages of an agent's list that one request may go through to find something of its principal's; ours have fifty each.
_PAGES: Final = 100
# They open or delete a session, so an agent that was restarted need not open it again before them.
_OPENING: Final = (ask.NewSession, ask.ResumeSession, ask.ForkSession, ask.DeleteSession)


class ClientSide:
    """The handler of a link in the role of the agent."""

    def __init__(self, hub: "Hub", connection: GatewayConnection) -> None:
        self.connection: Final = connection
        self.agent_side: AgentSide | None = None
        self.sessions: Final[dict[str, SharedSession]] = {}
        self.ended = False
        self._hub = hub
        self.hello: ClientHello | None = None
        self._unsaid: deque[tuple[str, AnyEvent]] = deque()
        self._cursors = Cursors()
        self._openings = SessionOpener(self, hub)
        self.answering = 0  # answers that are known and not said yet: what comes after them waits
        self._loop = asyncio.get_running_loop()
        self.link: Final = Link(connection, self, "agent", dialect=connection.dialect)
        connection.on_reader_change = self.looked
        self.link.start()

    def may(self, scope: Scope) -> bool:
        """Whether the token of this connection allows it."""
        return self.connection.token_identity.may(scope)

    @property
    def principal(self) -> str:
        """Who it is."""
        return self.connection.token_identity.principal

    @property
    def identity(self) -> Identity:
        """Who it is for an agent, and within which limits."""
        return self._hub.ceilings.identity(self.connection.token_identity)

    def may_answer(self, request: Request) -> bool:
        """Whether a question is put to it: it could do itself what it would say yes to."""
        return self.may("prompt") and self._hub.ceilings.may_answer(self.identity, needs_in(request))

    @property
    def connected(self) -> bool:
        """Return whether the connection is open and one of its streams has a reader."""
        return not self.ended and self.connection.readers > 0

    async def end(self, *, with_work: bool) -> None:
        """The connection is over. `with_work`: what only it watches is stopped as well, if it may prompt; else it goes
        on."""
        if self.ended:
            return
        self.ended = True
        with_work = with_work and self.may("prompt")
        sessions = list(self.sessions.values())
        for shared in sessions:
            shared.leave(self)
        own = {one for one in self._hub.agent_sides if one.origin is self}
        for agent_side in {shared.agent_side for shared in sessions} | own:
            agent_side.settle(now=with_work)
        for shared in sessions:
            if with_work and shared.running and not shared.subscribers and not shared.agent_side.closing:
                shared.cancel()  # its agent stays, for other sessions that have subscribers
        await self.link.close()

    # -- what is said to the client ----------------------------------------------------------------------------------

    def tell(self, session_id: str, event: AnyEvent) -> None:
        """Say an event, behind every answer that is on its way."""
        if self.answering:
            self._unsaid.append((session_id, event))
        elif not self.link.closed:
            if event.__class__ is OptionsChanged:
                event = self._hub.ceilings.shown(event, self.identity)
            try:
                self.link.enqueue_event(session_id, event)
            except UsageError:
                self.on_noise("in the client's version this message is too large")

    def note(self, note: Note) -> None:
        """Send a note, unless the link is closed or the client has not been initialized."""
        if self.link.can_send:
            self.link.send_notification_now(note)

    async def answer(self, request: Request) -> Reply:
        """Ask the client; the answer says who has given it."""
        reply = without_ours(await self.link.ask(without_ours(request)))
        return with_identity(reply, self.identity) if self._hub.ceilings.trusted else reply

    def hold(self, task: "asyncio.Task[Any] | None") -> None:
        """An answer was heard here; it is said when this task is done."""
        if task is None:
            return
        self.answering += 1

        def said(_: object) -> None:
            self.answering -= 1
            while self._unsaid and not self.answering:
                self.tell(*self._unsaid.popleft())

        task.add_done_callback(said)

    # -- the link calls these ----------------------------------------------------------------------------------------

    def on_initialize(self, hello: ClientHello) -> Awaitable[AgentHello]:
        return self._meet(hello)

    async def _meet(self, hello: ClientHello) -> AgentHello:
        if not reads(self.connection.token_identity):
            raise RequestFailed(INVALID_REQUEST, "This token may neither read nor prompt", {"reason": "scope"})
        self._hub.ceilings.check_hello(self.connection.token_identity)
        if not self.may("prompt"):
            hello = hello_to_read(hello)
        hello = without_ours(hello)
        self.hello = hello
        self.agent_side = await self._hub.new_agent_side(self, hello)
        if self.ended:  # its client has left meanwhile
            self.agent_side.settle(now=True)
        return self.agent_side.agent

    def on_request(self, request: Request, id: Id) -> Awaitable[Reply]:
        return self._timed(request, id)

    def on_notification(self, note: Note) -> None:
        # In its place behind the requests that were heard before it: those have tasks that begin first.
        self._loop.call_soon(self._pass_on, note)

    def on_event(self, session_id: str, event: AnyEvent) -> None:
        self.on_noise("a client sent a session event")

    def on_noise(self, reason: str) -> None:
        self._hub.counts["noise"] += 1

    def on_bug(self, error: Exception) -> None:
        self._hub.report(error)

    def on_closed(self, error: LinkClosed) -> None:
        self._hub.end_soon(self)

    # -- requests ----------------------------------------------------------------------------------------------------

    async def _timed(self, request: Request, id: Id) -> Reply:
        began = self._loop.time()
        status: object = "ok"
        try:
            return self._hub.ceilings.shown(await self._carry(without_ours(request), id), self.identity)
        except RequestFailed as failed:
            status = failed.code
            raise
        except asyncio.CancelledError:
            status = "cancelled"
            raise
        finally:
            seconds = self._loop.time() - began
            method = method_of(request)
            self._hub.measured.answered(method, seconds)
            if self._hub.log.tells("debug"):
                who = {"connection": connection_name(self.connection.id), "principal": principal_name(self.principal)}
                self._hub.log.debug("request", **who, method=method, status=status, seconds=round(seconds, 4))

    async def _carry(self, request: Request, id: Id) -> Reply:
        if not self.may("prompt"):
            request = to_read(request)
        session_id = session_of(request)
        if session_id is not None:
            await self._hub.learn_folder(session_id, self.connection.token_identity)
            if not self._hub.is_mine(session_id, self.connection.token_identity):
                raise missing(session_id)
        self._hub.ceilings.check(request, self.identity)
        match request:
            case ask.NewSession() | ask.ForkSession():
                return await self._openings.open(request, id)
            case ask.ResumeSession():
                return await self._openings.resume(request, id)
            case ask.ListSessions():
                return await self._list(request, id)
            case ask.CloseSession() | ask.DeleteSession():
                return await self._close(request, id, request.session_id)
            case _:
                return await self._pass(request, id, session_id)

    async def _list(self, request: ask.ListSessions, id: Id) -> Reply:
        """A page with something of this principal's, or the end; and no cursor that says what else there is."""
        place = self._cursors.place(request.cursor)
        for _ in range(_PAGES):
            page = await self.ask(self.own(), replace(request, cursor=place), id)
            seen = [self._hub.listed(info, self.connection.token_identity) for info in page.sessions]
            mine = [info for info in seen if info is not None]
            place = page.next_cursor or UNSET
            if mine or not place:
                break
        return replace(page, sessions=mine, next_cursor=self._cursors.given(place))

    async def _close(self, request: Request, id: Id, session_id: str) -> Reply:
        shared = self._hub.sessions.get(session_id)
        if shared is not None and isinstance(request, ask.CloseSession) and not shared.agent_side.is_awake(shared):
            reply: Reply = Done()  # no process has it open
        else:
            reply = await self.ask(self.agent_side_of(session_id), request, id)
        if isinstance(request, ask.DeleteSession):  # its decision log went with it, so it is told here
            whose = principal_name(self.principal)
            self._hub.log.info("session_deleted", session=session_name(session_id), principal=whose)
        if shared is not None:
            shared.end("The session was closed")
            shared.agent_side.drop(shared)
        return reply

    async def _pass(self, request: Request, id: Id, session_id: str | None) -> Reply:
        shared = None if session_id is None else self._hub.sessions.get(session_id)
        on_reply = None
        if shared is not None:
            shared.refuse_if_full(self)
            if isinstance(request, ask.PromptRequest):
                if self._hub.closing:
                    raise RequestFailed(INTERNAL_ERROR, "The server is stopping", {"retry": True})
                while shared is not None and shared.retelling is not None:
                    await asyncio.shield(shared.retelling)
                    shared = self._hub.sessions.get(request.session_id)
                if shared is None or not self._hub.is_mine(shared.id, self.connection.token_identity):
                    raise missing(request.session_id)  # it was closed meanwhile, or has got another folder
                self._hub.counts["turns"] += 1
                shared.prompted_by = self.principal
            elif isinstance(request, (ask.SetOption, ask.SetTitle)):
                on_reply = partial(shared.on_setting_reply, self)
            shared.enter(self)
        elif isinstance(request, ask.PromptRequest) and not self.own().is_spent:
            # From an agent of version 1 the error would come as an event of this session, which has no subscriber.
            raise missing(request.session_id)
        return await self.ask(self.agent_side_of(session_id), request, id, on_reply)

    async def ask(
        self,
        agent_side: AgentSide,
        request: Request[R],
        id: Id,
        on_reply: Callable[[R], None] | None = None,
    ) -> R:
        task = asyncio.current_task()
        watched = WatchedRequest(agent_side, InFlightRequest(self, id, request))

        def replied(reply: R) -> None:
            self.hold(task)
            if on_reply is not None:
                on_reply(reply)

        failed = True
        shared = None if isinstance(request, _OPENING) else self._hub.sessions.get(session_of(request) or "")
        if not agent_side.is_awake(shared):
            await agent_side.wake(shared)
        try:
            if agent_side.link.busy and not isinstance(request, (ask.CloseSession, ask.ListSessions)):
                raise RequestFailed(TOO_MANY_IN_FLIGHT, "Too many requests in flight", {"retry": True})
            reply = await agent_side.link.ask(self._for_agent(agent_side, request), watched, replied)
            failed = False
            return reply
        except LinkClosed:
            raise RequestFailed(INTERNAL_ERROR, GONE) from None
        except UsageError:
            raise RequestFailed(INVALID_REQUEST, "In the agent's version this message is too large") from None
        finally:
            watched.over(failed=failed)

    def _for_agent(self, agent_side: AgentSide, request: Request[R]) -> Request[R]:
        """The request in the agent's words for the session; never about another one that it calls the same."""
        if self._hub.ceilings.trusted:
            # What a token that may only read has asked was put together here (`reading`).
            request = with_identity(request, self.identity if self.may("prompt") else OPERATOR)
        session_id = session_of(request)
        if session_id is None:
            return request
        agent_id = self._hub.agent_id(session_id)
        shared = agent_side.sessions.get(agent_id)
        if shared is None or shared.life != agent_side.life:
            unclear = self._hub.owners.is_unclear(session_id)
        else:
            unclear = shared.id != session_id
        if unclear:
            raise RequestFailed(INTERNAL_ERROR, UNCLEAR)
        return with_session(request, agent_id)

    def _pass_on(self, note: Note) -> None:
        if not self.may("prompt"):
            return
        note = without_ours(note)
        session_id = session_of(note)
        shared = self._hub.sessions.get(session_id or "")
        if shared is not None and not self._hub.is_mine(shared.id, self.connection.token_identity):
            return
        agent_side = self.agent_side if shared is None else shared.agent_side
        if agent_side is None or not agent_side.link.can_send:
            return
        if shared is not None:
            agent_side.link.send_notification_now(with_session(note, shared.agent_id))
        elif session_id not in agent_side.sessions:  # what only the agent calls so is no name here
            agent_side.link.send_notification_now(note)

    # -- small steps -------------------------------------------------------------------------------------------------

    def own(self) -> AgentSide:
        if self.agent_side is None:
            raise RequestFailed(INTERNAL_ERROR, GONE)
        return self.agent_side

    def agent_side_of(self, session_id: str | None) -> AgentSide:
        shared = None if session_id is None else self._hub.sessions.get(session_id)
        return self.own() if shared is None else shared.agent_side

    def looked(self) -> None:
        """A reader came, went, or has caught up."""
        for shared in list(self.sessions.values()):
            shared.looked()
            shared.agent_side.pace()
