"""The client's side of the gateway: one connection, whose requests go to the agent of the session they name."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec.structs import replace

from dragoman.dialects.contract import Id
from dragoman.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    NOT_FOUND,
    TOO_MANY_IN_FLIGHT,
    LinkClosed,
    RequestFailed,
    UsageError,
)
from dragoman.gateway.back import Asked, Back, Watched
from dragoman.gateway.connection import Connection
from dragoman.gateway.guard import Scope
from dragoman.gateway.logbook import connection_name, principal_name, session_name
from dragoman.gateway.methods import method_of
from dragoman.gateway.rooms import Room
from dragoman.gateway.waking import GONE
from dragoman.link import Link
from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.asking import Done, Extension, ExtensionNote, Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientHello

if TYPE_CHECKING:
    from dragoman.gateway.hub import Hub

# What a token with no more than `read` may ask.
_READING: Final = (ask.ListSessions, ask.ResumeSession, ask.GetSessionStatus, ask.GetAuthStatus)
# They open a session, so it need not be open for them; or nobody will need it any more.
_OPENING: Final = (ask.NewSession, ask.ResumeSession, ask.ForkSession, ask.DeleteSession)


class Front:
    """The handler of a link in the role of the agent."""

    def __init__(self, hub: "Hub", connection: Connection) -> None:
        self.connection: Final = connection
        self.back: Back | None = None
        self.rooms: Final[dict[str, Room]] = {}
        self.ended = False
        self._hub = hub
        self._hello: ClientHello | None = None
        self._unsaid: deque[tuple[str, AnyEvent]] = deque()
        self._answering = 0  # answers that are known and not said yet: what comes after them waits
        self._loop = asyncio.get_running_loop()
        self.link: Final = Link(connection, self, "agent", dialect=connection.dialect)
        connection.on_room = self.looked
        self.link.start()

    def may(self, scope: Scope) -> bool:
        """Whether the token of this connection allows it."""
        return self.connection.entrance.may(scope)

    @property
    def principal(self) -> str:
        """Who it is."""
        return self.connection.entrance.principal

    @property
    def connected(self) -> bool:
        """Whether somebody reads."""
        return not self.ended and self.connection.readers > 0

    async def end(self, *, with_work: bool) -> None:
        """The connection is over. `with_work`: what only it watches is stopped as well; else it goes on."""
        if self.ended:
            return
        self.ended = True
        for room in list(self.rooms.values()):
            room.leave(self)
        if self.back is not None:
            self.back.settle(now=with_work)
        await self.link.close()

    # -- what is said to the client ----------------------------------------------------------------------------------

    def tell(self, session_id: str, event: AnyEvent) -> None:
        """Say an event, behind every answer that is on its way."""
        if self._answering:
            self._unsaid.append((session_id, event))
        elif not self.link.closed:
            try:
                self.link.tell_in_turn(session_id, event)
            except UsageError:
                self.on_noise("in the client's version this message is too large")

    def note(self, note: Note) -> None:
        """Say a note, if there is anybody to say it to."""
        if not self.link.closed and self.link.version:
            self.link.note_now(note)

    async def answer(self, request: Request) -> Reply:
        """Ask the client."""
        return await self.link.ask(request)

    def _hold(self, task: "asyncio.Task[Any] | None") -> None:
        """An answer was heard here; it is said when this task is done."""
        if task is None:
            return
        self._answering += 1

        def said(_: object) -> None:
            self._answering -= 1
            while self._unsaid and not self._answering:
                self.tell(*self._unsaid.popleft())

        task.add_done_callback(said)

    # -- the link calls these ----------------------------------------------------------------------------------------

    def on_hello(self, hello: ClientHello) -> Awaitable[AgentHello]:
        return self._meet(hello)

    async def _meet(self, hello: ClientHello) -> AgentHello:
        self._hello = hello
        self.back = await self._hub.new_back(self, hello)
        if self.ended:  # its client has left meanwhile
            self.back.settle(now=True)
        return self.back.agent

    def on_request(self, request: Request, id: Id) -> Awaitable[Reply]:
        return self._timed(request, id)

    def on_note(self, note: Note) -> None:
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
            return await self._carry(request, id)
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
        if not self.may("prompt") and not isinstance(request, _READING):
            raise RequestFailed(INVALID_REQUEST, "This token may only read", {"reason": "scope"})
        session_id = _session_of(request)
        if session_id is not None and not self._hub.is_mine(session_id, self.connection.entrance):
            raise _missing(session_id)
        match request:
            case ask.NewSession() | ask.ForkSession():
                return await self._open(request, id, session_id)
            case ask.ResumeSession():
                return await self._resume(request, id)
            case ask.ListSessions():
                return await self._list(request, id)
            case ask.CloseSession() | ask.DeleteSession():
                return await self._close(request, id, request.session_id)
            case _:
                return await self._pass(request, id, session_id)

    async def _open(self, request: ask.NewSession | ask.ForkSession, id: Id, source: str | None) -> Reply:
        # A copy is made where the session is that it is copied from.
        back = self._back_of(source) if source is not None else await self._back_for_one_more()

        def opened(reply: Reply) -> None:
            assert isinstance(reply, ask.SessionOpened)
            self._hub.owners.add(reply.session_id, self.principal)
            self._hub.counts["sessions"] += 1
            self._note_session(reply.session_id, request)
            # What was heard of it before this answer is said behind it.
            room = back.adopt(reply.session_id, self)
            room.is_open(_opening(reply.session_id, request), reply, fresh=isinstance(request, ask.NewSession))

        try:
            return await self._ask(back, request, id, opened)
        finally:
            back.untake()

    async def _resume(self, request: ask.ResumeSession, id: Id) -> Reply:
        room = self._hub.rooms.get(request.session_id)
        while room is not None and (room.retelling is not None or (room.running and self._answering)):
            # Behind whoever is told the story now, and behind the answers that are on their way.
            await (asyncio.sleep(0) if room.retelling is None else asyncio.shield(room.retelling))
            room = self._hub.rooms.get(request.session_id)
        if room is not None and room.running:
            opened = room.join(self, replay=bool(request.replay_from))
            self._hold(asyncio.current_task())  # what is heard from here on comes behind the answer
            self._note_session(room.id, request)
            return opened
        fresh = room is None
        if room is None:
            back = await self._back_for_one_more()
            room = self._hub.rooms.get(request.session_id)  # somebody else may have opened it meanwhile
            if room is None:
                room = back.room(request.session_id)
            else:
                back.untake()
        was_here = self in room.fronts
        room.enter(self)
        opening = _opening(request.session_id, request)

        def told(reply: Reply) -> None:
            assert isinstance(reply, ask.SessionOpened)
            room.story_told()
            room.is_open(opening, reply, fresh=False)
            self._note_session(room.id, request)

        try:
            return await room.told_to(self, lambda: self._ask(room.back, request, id, told))
        except BaseException:
            if not was_here:
                room.leave(self)
            if fresh and not room.fronts:
                room.back.drop(room)
            raise

    def _note_session(self, session_id: str, request: Request) -> None:
        who = {"connection": connection_name(self.connection.id), "principal": principal_name(self.principal)}
        self._hub.log.info("session_opened", session=session_name(session_id), method=method_of(request), **who)

    async def _back_for_one_more(self) -> Back:
        """The agent for one more session: the connection's own, or where each session has its own, a new one."""
        own = self._own()
        if not self._hub.each_session or own.take():
            return own
        assert self._hello is not None
        back = await self._hub.new_back(self, self._hello)
        back.take()
        return back

    async def _list(self, request: ask.ListSessions, id: Id) -> Reply:
        page = cast(ask.SessionList, await self._ask(self._own(), request, id))
        mine = [info for info in page.sessions if self._hub.is_mine(info.session_id, self.connection.entrance)]
        return replace(page, sessions=mine)

    async def _close(self, request: Request, id: Id, session_id: str) -> Reply:
        room = self._hub.rooms.get(session_id)
        if room is not None and isinstance(request, ask.CloseSession) and not room.back.is_awake(room):
            reply: Reply = Done()  # no process has it open
        else:
            reply = await self._ask(self._back_of(session_id), request, id)
        if room is not None:
            room.end("The session was closed")
            room.back.drop(room)
        return reply

    async def _pass(self, request: Request, id: Id, session_id: str | None) -> Reply:
        room = None if session_id is None else self._hub.rooms.get(session_id)
        on_reply = None
        if room is not None:
            if isinstance(request, ask.Prompt):
                if self._hub.closing:
                    raise RequestFailed(INTERNAL_ERROR, "The server is stopping", {"retry": True})
                while room.retelling is not None:
                    await asyncio.shield(room.retelling)
                self._hub.counts["turns"] += 1
            elif isinstance(request, ask.SetOption):
                on_reply = room.options_set
            room.enter(self)
        elif isinstance(request, ask.Prompt):
            raise _missing(request.session_id)  # an agent of version 1 would say so to a session nobody hears
        return await self._ask(self._back_of(session_id), request, id, on_reply)

    async def _ask(
        self,
        back: Back,
        request: Request,
        id: Id,
        on_reply: Callable[[Reply], None] | None = None,
    ) -> Reply:
        task = asyncio.current_task()
        watched = Watched(back, Asked(self, id, request))

        def replied(reply: Reply) -> None:
            self._hold(task)
            if on_reply is not None:
                on_reply(reply)

        failed = True
        room = None if isinstance(request, _OPENING) else self._hub.rooms.get(_session_of(request) or "")
        if not back.is_awake(room):
            await back.wake(room)
        try:
            if back.link.busy and not isinstance(request, (ask.CloseSession, ask.ListSessions)):
                raise RequestFailed(TOO_MANY_IN_FLIGHT, "Too many requests in flight", {"retry": True})
            reply = await back.link.ask(request, watched, replied)
            failed = False
            return reply
        except LinkClosed:
            raise RequestFailed(INTERNAL_ERROR, GONE) from None
        except UsageError:
            raise RequestFailed(INVALID_REQUEST, "In the agent's version this message is too large") from None
        finally:
            watched.over(failed=failed)

    def _pass_on(self, note: Note) -> None:
        session_id = getattr(note, "session_id", None)
        if isinstance(note, ExtensionNote) and isinstance(note.params, dict):
            session_id = note.params.get("sessionId")
        if not self.may("prompt"):
            return
        room = self._hub.rooms.get(session_id) if isinstance(session_id, str) else None
        if room is not None and not self._hub.is_mine(room.id, self.connection.entrance):
            return
        back = self.back if room is None else room.back
        if back is not None and not back.link.closed and back.link.version:
            back.link.note_now(note)

    # -- small steps -------------------------------------------------------------------------------------------------

    def _own(self) -> Back:
        if self.back is None:
            raise RequestFailed(INTERNAL_ERROR, GONE)
        return self.back

    def _back_of(self, session_id: str | None) -> Back:
        room = None if session_id is None else self._hub.rooms.get(session_id)
        return self._own() if room is None else room.back

    def looked(self) -> None:
        """A reader came, went, or has caught up."""
        for room in list(self.rooms.values()):
            room.looked()
            room.back.pace()


def _missing(session_id: str) -> RequestFailed:
    return RequestFailed(NOT_FOUND, "Session not found", {"sessionId": session_id})


def _opening(session_id: str, request: "ask.NewSession | ask.ForkSession | ask.ResumeSession") -> ask.ResumeSession:
    """What opens the same session in another process of its agent, without a word."""
    return ask.ResumeSession(session_id, request.cwd, request.additional_directories, request.mcp_servers)


def _session_of(request: Request) -> str | None:
    """The session a request names."""
    if isinstance(request, Extension):
        found = request.params.get("sessionId") if isinstance(request.params, dict) else None
    else:
        found = getattr(request, "session_id", None)
    return found if isinstance(found, str) else None
