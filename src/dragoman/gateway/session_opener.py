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

from dragoman import limits
from dragoman.dialects.contract import Id
from dragoman.errors import INTERNAL_ERROR, INVALID_REQUEST, RequestFailed
from dragoman.gateway.agent_pool import AgentPool
from dragoman.gateway.agent_restart import AMBIGUOUS, ID_IN_USE
from dragoman.gateway.agent_side import AgentSide
from dragoman.gateway.logbook import connection_name, principal_name
from dragoman.gateway.metrics import method_of
from dragoman.gateway.monitor import BackgroundTasks
from dragoman.gateway.places import HERE, NodePlace
from dragoman.gateway.principal_usage import Reservation
from dragoman.gateway.read_only import with_first_opening
from dragoman.gateway.session_streams import STREAMS
from dragoman.gateway.shared_session import SharedSession
from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.asking import Reply, Request
from dragoman.vocabulary.identity import with_identity
from dragoman.vocabulary.session_ids import session_of

if TYPE_CHECKING:
    from dragoman.gateway.client_side import ClientSide

# Sessions open on one connection: as many as can have a stream of their own.
SESSIONS: Final = STREAMS


class SessionOpener:
    """Open sessions for one client, and count them against `SESSIONS`."""

    def __init__(self, client_side: "ClientSide", pool: AgentPool, background: BackgroundTasks) -> None:
        self._client_side = client_side
        self._pool = pool
        self._sessions = pool.sessions
        self._access = pool.access
        self._monitor = pool.monitor
        self._background = background
        self._opening = 0

    async def open(self, request: ask.NewSession | ask.ForkSession, id: Id) -> Reply:
        """Make a session, or a copy of one. Waits for the agent and the disk."""
        with self._count(), self._reserved(request) as reservation:
            return await self._open(request, id, reservation)

    async def resume(self, request: ask.ResumeSession, id: Id) -> Reply:
        """Open a stored session, or join one that is open. Waits for the agent, or for a running replay."""
        with self._count(request.session_id):
            if request.session_id in self._sessions:
                return await self._resume(request, id)
            with self._reserved(request) as reservation:
                return await self._resume(request, id, reservation)

    @contextmanager
    def _count(self, session_id: str = "") -> Iterator[None]:
        """Count a session while it is being opened. Raise `RequestFailed` past the limit of a connection."""
        sessions = self._client_side.sessions
        # Those that are being opened count too: a client that sends a thousand `session/new` at once must not get past
        # the limit.
        if session_id not in sessions and len(sessions) + self._opening >= SESSIONS:
            raise RequestFailed(INVALID_REQUEST, f"A connection has at most {SESSIONS} sessions open; close one first")
        self._opening += 1
        try:
            yield
        finally:
            self._opening -= 1

    @contextmanager
    def _reserved(self, request: Request) -> Iterator[Reservation]:
        """Count a session for its principal while it is being opened. Raise `RequestFailed` past the limit of that."""
        reservation = self._sessions.usage.reserve_session(self._client_side.principal_for(request))
        try:
            yield reservation
        finally:
            reservation.release()

    async def _open(self, request: ask.NewSession | ask.ForkSession, id: Id, reservation: Reservation) -> Reply:
        source = session_of(request)
        if source is not None:
            agent_side = self._client_side.agent_side_of(source)  # a copy is made where its source is
            # Or here, from the log: its node is away, and what shows the log there makes nothing.
            if agent_side.away_node:
                agent_side = self._client_side.own_agent_side()
        else:
            agent_side = await self._reserve_agent_side()
        agent_id, shared, refused = "", None, None
        task = asyncio.current_task()

        def on_reply(reply: ask.SessionOpened) -> None:
            # Called by the link while it receives the reply, before anything behind it is looked at: the id is claimed
            # and the session registered in the same step, so that no event of it is lost and no other reply can take
            # the id. Nothing here may wait; the disk comes later (`_persist`).
            nonlocal agent_id, shared, refused
            agent_id = reply.session_id
            try:
                principal = self._client_side.principal_for(request)
                session_id = self._access.claim(agent_side, agent_id, principal, request.cwd)
            except RequestFailed as failed:
                refused = failed
                return
            # Events that came before this reply are sent behind it, and so are those behind it.
            self._client_side.hold_events_until(task, session_id)
            reservation.release()
            shared = agent_side.add_new_session(session_id, agent_id, self._client_side, principal)
            known = replace(reply, session_id=session_id)
            resume_request = self._resume_request(agent_id, request)
            shared.on_opened(resume_request, known, is_new=isinstance(request, ask.NewSession))

        try:
            reply = await self._client_side.forward(agent_side, request, id, on_reply)
            if refused is not None:
                raise refused
            assert shared is not None
            await self._persist(shared)
            self._monitor.counts["sessions"] += 1
            self._log_opened(shared.id, request)
            return replace(reply, session_id=shared.id)
        except BaseException:
            # Also when the client has cancelled: the agent has made a session that no client knows.
            if shared is not None:
                shared.end("The session was closed")
                agent_side.remove_session(shared)
            if agent_id:
                self._background.start(agent_side.close_refused(agent_id))
            raise
        finally:
            agent_side.release()

    async def _persist(self, shared: SharedSession) -> None:
        """Write the session's owner to the directory, before any client gets the session's id.

        Waits for it. Raise `RequestFailed` if the write fails, or if another principal has the session meanwhile.
        """
        try:
            is_ours = await self._access.directory.persist(shared.id)
        except OSError as error:
            self._monitor.report(error)
            raise RequestFailed(INTERNAL_ERROR, "The session cannot be kept; it was not opened") from None
        if not is_ours:
            raise RequestFailed(INTERNAL_ERROR, ID_IN_USE)

    async def _resume(self, request: ask.ResumeSession, id: Id, reservation: Reservation | None = None) -> Reply:
        is_first = False
        while True:
            # After every wait: another client may have opened or closed it.
            if await self._sessions.wait_until_closed(request.session_id):
                continue
            shared = self._sessions.get(request.session_id)
            if shared is None:
                shared = await self._new_shared_session(request)
                if shared is None:
                    continue
                if reservation is not None:
                    reservation.release()
                is_first = True
                break
            shared.refuse_if_full(self._client_side)
            if shared.replay is not None:
                await asyncio.shield(shared.replay)  # until the replay to another request is over
            elif not shared.is_running:
                break
            else:
                opened = shared.join(self._client_side, replay=bool(request.replay_from))
                # What is received from here on comes behind the reply.
                self._client_side.hold_events_until(asyncio.current_task(), shared.id)
                self._log_opened(shared.id, request)
                return opened
        return await self._replay(shared, request, id, is_first=is_first)

    async def _new_shared_session(self, request: ask.ResumeSession) -> SharedSession | None:
        """Return a new `SharedSession` for a session that is not open; None if it was opened during the wait.

        Waits for an agent. Raise `RequestFailed` if this token may not open it first, or if the agent has another
        session of this id open.
        """
        directory = self._access.directory
        if not self._client_side.may("prompt") and self._access.renames and not directory.cwd(request.session_id):
            # Our own agent opens a session in its own folder only; others may do whatever they find in another.
            raise RequestFailed(INVALID_REQUEST, "A token that may prompt has to open this session first")
        await self._pool.wait_until_closed(request.session_id)
        place = await self._find_place(request.session_id)
        if place.is_here or self._pool.nodes is None:
            agent_side = await self._reserve_agent_side()
            agent_id = directory.agent_id(request.session_id)
        else:
            agent_side, agent_id = await self._pool.nodes.side(place), request.session_id
        if request.session_id in self._sessions:
            agent_side.release()
            return None
        if agent_id in agent_side.sessions:
            # Whether it was opened or not: where each session has its own agent, one without a session is closed.
            agent_side.release()
            raise RequestFailed(INTERNAL_ERROR, AMBIGUOUS)
        return agent_side.add_session(request.session_id, agent_id, self._client_side.principal_for(request))

    async def _replay(self, shared: SharedSession, request: ask.ResumeSession, id: Id, *, is_first: bool) -> Reply:
        """Have the agent open a session, and replay its history where that is asked for."""
        # Subscribed before the agent is asked, so that no event between its reply and ours is missed; undone where it
        # fails.
        was_subscribed = self._client_side in shared.subscribers
        shared.subscribe(self._client_side)
        resume_request = None
        if self._client_side.may("prompt"):
            resume_request = self._resume_request(shared.agent_id, request)
        else:
            request = with_first_opening(request, shared.resume_request, self._access.directory.cwd(shared.id))

        def on_reply(reply: ask.SessionOpened) -> None:
            shared.end_replay()
            shared.on_reopened(self._client_side, resume_request, reply)
            self._log_opened(shared.id, request)

        async def work() -> ask.SessionOpened:
            if resume_request is not None and shared.resume_request is None:
                # A read-only client has opened it without its MCP servers, and an agent does not add them to a session
                # that is open.
                await shared.agent_side.close_unopened(shared)
            return await self._client_side.forward(shared.agent_side, request, id, on_reply)

        try:
            reply = await shared.replay_to(self._client_side, work)
            # It may have been lost meanwhile, as when this node is fenced: then what was replayed went nowhere.
            if self._sessions.get(shared.id) is not shared:
                raise RequestFailed(INTERNAL_ERROR, "The session ended while it was opened", {"retry": True})
            return reply
        except BaseException:
            if not was_subscribed:
                shared.unsubscribe(self._client_side)
            if is_first and not shared.subscribers:
                shared.agent_side.remove_session(shared)
            raise

    def _log_opened(self, session_id: str, request: Request) -> None:
        client = {
            "connection": connection_name(self._client_side.connection.id),
            "principal": principal_name(self._client_side.principal),
        }
        self._monitor.log.info(
            "session_opened", session=session_id[limits.SHORT_ID], method=method_of(request), **client
        )

    async def _reserve_agent_side(self) -> AgentSide:
        """Return the agent for one more session: the connection's own, or where each session has its own, a new one.

        It is reserved, so that a second session which is opened meanwhile gets another; the caller has to `release` it.
        """
        own = self._client_side.own_agent_side()
        if not self._pool.source.each_session or own.reserve():
            return own
        assert self._client_side.hello is not None
        agent_side = await self._pool.start(self._client_side, self._client_side.hello)
        agent_side.reserve()
        return agent_side

    async def _find_place(self, session_id: str) -> NodePlace:
        """Return which node works on a session. What a node asks for is here: it has looked."""
        if self._pool.nodes is None or self._client_side.is_node:
            return HERE
        return await self._pool.nodes.places.find(session_id)

    def _resume_request(
        self, session_id: str, request: "ask.NewSession | ask.ForkSession | ask.ResumeSession"
    ) -> ask.ResumeSession:
        """Return what opens the same session in another process of its agent, by the same right, without a replay."""
        resume = ask.ResumeSession(session_id, request.cwd, request.additional_directories, request.mcp_servers)
        if not self._access.ceilings.trusted:
            return resume
        return with_identity(resume, self._client_side.identity_for(request))
