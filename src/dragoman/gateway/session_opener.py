"""How a client opens sessions: new ones, copies, stored ones, and those that another client has open.

Promises
- A session's owner is on disk before any client gets the session's id; if the write fails, the session is closed.
- A client that resumes an open session joins it; what was true before a wait is checked again after it.
- Nothing that a read-only client wrote decides how a session is opened, now or later.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from dragoman.dialects.contract import Id
from dragoman.errors import INTERNAL_ERROR, INVALID_REQUEST, RequestFailed
from dragoman.gateway.agent_restart import UNCLEAR
from dragoman.gateway.agent_side import AgentSide
from dragoman.gateway.connection import STREAMS
from dragoman.gateway.logbook import connection_name, principal_name, session_name
from dragoman.gateway.metrics import method_of
from dragoman.gateway.read_only import as_opened
from dragoman.gateway.shared_session import SharedSession
from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.asking import Reply, Request
from dragoman.vocabulary.identity import with_identity
from dragoman.vocabulary.session_ids import session_of

if TYPE_CHECKING:
    from dragoman.gateway.client_side import ClientSide
    from dragoman.gateway.hub import Hub

# Sessions open on one connection: as many as can have a stream of their own.
SESSIONS: Final = STREAMS


class SessionOpener:
    """Open sessions for one client, and count them against `SESSIONS`."""

    def __init__(self, client_side: "ClientSide", hub: "Hub") -> None:
        self._client_side = client_side
        self._hub = hub
        self._running = 0

    async def open(self, request: ask.NewSession | ask.ForkSession, id: Id) -> Reply:
        """A session that was not there before."""
        with self._one_more():
            return await self._opened(request, id)

    async def resume(self, request: ask.ResumeSession, id: Id) -> Reply:
        """A session that was."""
        with self._one_more(request.session_id):
            return await self._resumed(request, id)

    @contextmanager
    def _one_more(self, session_id: str = "") -> Iterator[None]:
        """While a session is being opened; not more than a connection may have."""
        if session_id not in self._client_side.sessions and len(self._client_side.sessions) + self._running >= SESSIONS:
            raise RequestFailed(INVALID_REQUEST, f"A connection has at most {SESSIONS} sessions open; close one first")
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    async def _opened(self, request: ask.NewSession | ask.ForkSession, id: Id) -> Reply:
        source = session_of(request)
        # A copy is made where the session is that it is copied from.
        if source is not None:
            agent_side = self._client_side.agent_side_of(source)
        else:
            agent_side = await self._agent_side_for_session()
        agent_id, shared, refused = "", None, None

        def opened(reply: ask.SessionOpened) -> None:
            nonlocal agent_id, shared, refused
            agent_id = reply.session_id
            try:
                session_id = self._hub.claim(agent_side, agent_id, self._client_side.principal, request.cwd)
            except RequestFailed as failed:
                refused = failed
                return
            # What was heard of it before this answer is said behind it.
            shared = agent_side.adopt(session_id, agent_id, self._client_side)
            known = replace(reply, session_id=session_id)
            shared.is_open(self._opening(agent_id, request), known, fresh=isinstance(request, ask.NewSession))

        try:
            reply = await self._client_side.ask(agent_side, request, id, opened)
            if refused is not None:
                raise refused
            assert shared is not None
            await self._keep(shared)
            self._hub.counts["sessions"] += 1
            self._note_session(shared.id, request)
            return replace(reply, session_id=shared.id)
        except BaseException:
            if shared is not None:
                shared.end("The session was closed")
                agent_side.drop(shared)
            if agent_id:
                self._hub.soon(agent_side.forsake(agent_id))
            raise
        finally:
            agent_side.untake()

    async def _keep(self, shared: SharedSession) -> None:
        """Write the session's owner to disk, before any client gets the session's id.

        Waits for the disk, in a thread. Raise `RequestFailed` if the write fails.
        """
        try:
            await asyncio.to_thread(self._hub.owners.keep, shared.id)
        except OSError as error:
            self._hub.report(error)
            raise RequestFailed(INTERNAL_ERROR, "The session cannot be kept; it was not opened") from None

    async def _resumed(self, request: ask.ResumeSession, id: Id) -> Reply:
        fresh = False
        while True:
            # After every wait: another client may have opened or closed it.
            shared = self._hub.sessions.get(request.session_id)
            if shared is None:
                shared = await self._new_shared_session(request)
                if shared is None:
                    continue
                fresh = True
                break
            shared.refuse_if_full(self._client_side)
            if shared.retelling is not None:
                await asyncio.shield(shared.retelling)  # until the replay to another request is over
            elif not shared.running:
                break
            elif self._client_side.answering:
                await asyncio.sleep(0)  # behind the answers that are on their way
            else:
                opened = shared.join(self._client_side, replay=bool(request.replay_from))
                self._client_side.hold(asyncio.current_task())  # what is heard from here on comes behind the answer
                self._note_session(shared.id, request)
                return opened
        return await self._tell(shared, request, id, fresh=fresh)

    async def _new_shared_session(self, request: ask.ResumeSession) -> SharedSession | None:
        """Return a new `SharedSession` for a session that is not open; None if it was opened during the wait.

        Waits for an agent. Raise `RequestFailed` if this token may not open it first, or if the agent has another
        session of this id open.
        """
        owners = self._hub.owners
        if not self._client_side.may("prompt") and self._hub.renames and not owners.cwd(request.session_id):
            # Our own agent opens a session in its own folder only; others may do whatever they find in another.
            raise RequestFailed(INVALID_REQUEST, "A token that may prompt has to open this session first")
        agent_side = await self._agent_side_for_session()
        agent_id = owners.agent_id(request.session_id)
        if request.session_id in self._hub.sessions:
            agent_side.untake()
            return None
        if agent_id in agent_side.sessions:
            agent_side.untake()
            raise RequestFailed(INTERNAL_ERROR, UNCLEAR)
        return agent_side.shared(request.session_id, agent_id)

    async def _tell(self, shared: SharedSession, request: ask.ResumeSession, id: Id, *, fresh: bool) -> Reply:
        """Have the agent open a session, and tell its story where that is asked for."""
        was_here = self._client_side in shared.subscribers
        shared.enter(self._client_side)
        opening = None
        if self._client_side.may("prompt"):
            opening = self._opening(shared.agent_id, request)
        else:
            request = as_opened(request, shared.opening, self._hub.owners.cwd(shared.id))

        def told(reply: ask.SessionOpened) -> None:
            shared.story_told()
            shared.is_open_again(self._client_side, opening, reply)
            self._note_session(shared.id, request)

        async def work() -> Reply:
            if opening is not None and shared.opening is None:
                await shared.agent_side.close_unopened(shared)
            return await self._client_side.ask(shared.agent_side, request, id, told)

        try:
            return await shared.told_to(self._client_side, work)
        except BaseException:
            if not was_here:
                shared.leave(self._client_side)
            if fresh and not shared.subscribers:
                shared.agent_side.drop(shared)
            raise

    def _note_session(self, session_id: str, request: Request) -> None:
        who = {
            "connection": connection_name(self._client_side.connection.id),
            "principal": principal_name(self._client_side.principal),
        }
        self._hub.log.info("session_opened", session=session_name(session_id), method=method_of(request), **who)

    async def _agent_side_for_session(self) -> AgentSide:
        """The agent for one more session: the connection's own, or where each session has its own, a new one."""
        own = self._client_side.own()
        if not self._hub.each_session or own.take():
            return own
        assert self._client_side.hello is not None
        agent_side = await self._hub.new_agent_side(self._client_side, self._client_side.hello)
        agent_side.take()
        return agent_side

    def _opening(
        self, session_id: str, request: "ask.NewSession | ask.ForkSession | ask.ResumeSession"
    ) -> ask.ResumeSession:
        """What opens the same session in another process of its agent, without a word, and by the same right."""
        opening = ask.ResumeSession(session_id, request.cwd, request.additional_directories, request.mcp_servers)
        return with_identity(opening, self._client_side.identity) if self._hub.ceilings.trusted else opening
