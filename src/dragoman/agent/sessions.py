"""The sessions of one client: opened, found again, forked, closed. With a store they outlive it.

A session is its log. Opening one reads the log as a story, mends what a crash has cut off, tells it again where that
is asked for, and goes on. Without a store a session lives as long as its connection and there is nothing to find.

Opening takes a while: the log is read and replayed. A second request for the same session meanwhile is rejected if it
would open the session, and waits if it would end it (`Transitions`).
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Final, Literal

from msgspec import UNSET

from dragoman.agent.event_sink import EventSink
from dragoman.agent.history import History
from dragoman.agent.journal import (
    Journal,
    as_told,
    fingerprint,
    keep_servers,
    missing,
    open_here,
    read_settings,
    told,
)
from dragoman.agent.listing import listed, newest
from dragoman.agent.replay import replay_after_reply, replay_history, report_damage
from dragoman.agent.session import Session, new_session_id
from dragoman.errors import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, RequestFailed
from dragoman.link.deadline import LOGS, SESSIONS, Deadline
from dragoman.store.contract import Log, SessionMeta, SessionOpenHere, Store, StoreFailed
from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.asking import Done
from dragoman.vocabulary.events import Idle, Running, SessionInfoChanged

if TYPE_CHECKING:
    from dragoman.agent.agent import Agent
    from dragoman.agent.connection import AnnouncedEvents


def check_folders(cwd: str, more: object) -> None:
    """Refuse a session whose folders are not all there."""
    for path in [cwd, *(more if isinstance(more, list) else [])]:
        if not os.path.isdir(path):
            raise RequestFailed(INVALID_PARAMS, f"Not a folder on the agent's machine: {path}", {"path": path})


def check_same(known: str, cwd: str) -> None:
    """Refuse to open a session again in another folder than its own, and say which one that is.

    A client that may not know the folder is not told of the session: a gateway has refused it before.
    """
    if not is_same(known, cwd):
        message = f"The session belongs to another folder: open it with the cwd {known}"
        raise RequestFailed(INVALID_PARAMS, message, {"cwd": known})


def is_same(one: str, other: str) -> bool:
    """Whether two paths are one folder."""
    return one == other or os.path.realpath(one) == os.path.realpath(other)


Change = Literal["opened", "closed", "deleted"]


class Transitions:
    """The changes that are under way, by session id."""

    def __init__(self) -> None:
        self._changes: dict[str, tuple[Change, asyncio.Future[None]]] = {}

    def __repr__(self) -> str:
        return f"<Transitions {[f'{id} {change}' for id, (change, _) in self._changes.items()]}>"

    @contextmanager
    def begin(self, session_id: str, change: Change) -> Iterator[None]:
        """Mark a session as changing inside the `with` block; `RequestFailed` if another change is under way."""
        if session_id in self._changes:
            now = self._changes[session_id][0]
            raise open_here(f"The session is just being {now} on this connection: wait for that answer, then ask again")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._changes[session_id] = (change, done)
        try:
            yield
        finally:
            del self._changes[session_id]
            done.set_result(None)

    async def wait(self, session_id: str) -> None:
        """Wait until nothing changes about this session."""
        while session_id in self._changes:
            await asyncio.wait([self._changes[session_id][1]])


# What a session's author may take to free what it holds, when the client closes it. At the end there is less.
_CLOSED_SECONDS: Final = 2.0
_freeing: Final[set["asyncio.Task[None]"]] = set()


class OpenSessions:
    """Every session of one client."""

    def __init__(
        self, agent: "Agent", speech: EventSink, announced: "AnnouncedEvents", *, trusted: bool = False
    ) -> None:
        self.open: Final[dict[str, Session]] = {}
        self._agent = agent
        self._speech = speech
        self._announced = announced
        self._trusted = trusted
        self._to_resume = agent.resume
        self._transitions = Transitions()

    @property
    def _store(self) -> Store | None:
        return self._agent.store

    # -- opening -----------------------------------------------------------------------------------------------------

    async def new(self, request: ask.NewSession) -> ask.SessionOpened:
        """Open a fresh session; with a store it is on disk before it is named."""
        check_folders(request.cwd, request.additional_directories)
        if self._to_resume is not None:
            resumed = await self._resumed(request)
            if resumed is not None:
                return resumed
        session_id = new_session_id()
        log = None
        if self._store is not None:
            with_roots = SessionMeta(session_id, request.cwd, tuple(request.additional_directories or ()))
            log = await told(session_id, self._store.create(with_roots))
        async with self._made(session_id):
            session = await self._opened(session_id, request, log, {})
        if self._agent.rules.requires_same_servers:
            await keep_servers(session)
        self._announced.announce_next(session_id)
        return _answer(session)

    async def _resumed(self, request: ask.NewSession) -> ask.SessionOpened | None:
        """The stored session that this new one is to be; None if there is none, and then a fresh one is opened.

        One that was named by its id and cannot be had in this folder is refused, each time it is asked for.
        """
        store = self._store
        wanted, self._to_resume = self._to_resume, None
        is_named = bool(wanted) and not self._agent.rules.opens_missing_session
        if store is None:
            return None
        try:
            session_id = wanted or await newest(store, request.cwd)
            if session_id is None:
                return None
            check_same((await told(session_id, store.look(session_id))).cwd, request.cwd)
            log = await told(session_id, store.open(session_id))
            session, story = await self._from_log(session_id, request, log)
        except (StoreFailed, RequestFailed):
            if not is_named:
                return None
            self._to_resume = wanted
            raise
        self._announced.announce_next(session_id)
        # The client learns the id from the answer, so the story comes after it; a prompt waits for its end.
        session.retelling = asyncio.get_running_loop().create_task(replay_after_reply(session, self._speech, story))
        return _answer(session)

    async def resume(self, request: ask.ResumeSession) -> ask.SessionOpened:
        """Open a stored session, or one that is open here; tell its story first where that is asked for."""
        if request.replay_from and not isinstance(request.replay_from, ask.ReplayFromStart):
            raise RequestFailed(INVALID_PARAMS, "There is no such place to replay from")
        with self._transitions.begin(request.session_id, "opened"):
            return await self._resume(request)

    async def _resume(self, request: ask.ResumeSession) -> ask.SessionOpened:
        session = self.open.get(request.session_id)
        if session is not None and session.turn is not None and request.replay_from:
            raise RequestFailed(INVALID_REQUEST, "The session is busy", {"reason": "busy"})
        story = None
        if session is None:
            session, story = await self._reopen(request)
        else:
            check_same(session.cwd, request.cwd)
            self._check_servers(fingerprint(session.opening), request)
            check_folders(request.cwd, request.additional_directories)
            session.reroot(request.additional_directories)
        # The client has named it, so it may be spoken of before the answer.
        self._announced.announce(session.id)
        if request.replay_from:
            if session.retelling is not None:
                await asyncio.wait([session.retelling])
            await replay_history(session, self._speech, story)
        await report_damage(session, self._speech)
        await self._speech.tell(session.id, Idle() if session.turn is None else Running())
        return _answer(session)

    async def fork(self, request: ask.ForkSession) -> ask.SessionOpened:
        """Copy a session into a new one."""
        store = self._stored()
        check_folders(request.cwd, request.additional_directories)
        source = self.open.get(request.session_id)
        if source is not None and source.journal is not None:
            await told(source.id, source.journal.log.flush())
        meta = await told(request.session_id, store.look(request.session_id))
        session_id = new_session_id()
        copy = SessionMeta(session_id, request.cwd, tuple(request.additional_directories or ()), meta.title)
        log = await told(request.session_id, store.fork(request.session_id, copy))
        opening = ask.NewSession(request.cwd, request.additional_directories, request.mcp_servers)
        async with self._made(session_id):
            session, _ = await self._from_log(session_id, opening, log)
        self._announced.announce_next(session_id)
        return _answer(session)

    @asynccontextmanager
    async def _made(self, session_id: str) -> AsyncIterator[None]:
        """Delete a session from the store again if the block raises: the client never got its id."""
        try:
            yield
        except BaseException:
            if self._store is not None:
                with suppress(StoreFailed):
                    await self._store.delete(session_id)
            raise

    async def _reopen(self, request: ask.ResumeSession) -> tuple[Session, History]:
        store = self._stored(request.session_id)
        meta = await told(request.session_id, store.look(request.session_id))
        check_same(meta.cwd, request.cwd)
        check_folders(request.cwd, request.additional_directories)
        log = await told(request.session_id, store.open(request.session_id))
        opening = ask.NewSession(request.cwd, request.additional_directories, request.mcp_servers)
        return await self._from_log(request.session_id, opening, log, again=True)

    async def _from_log(
        self, session_id: str, opening: ask.NewSession, log: Log, *, again: bool = False
    ) -> tuple[Session, History]:
        """A session as its log tells it, mended, and its story. `again`: the client has named it."""
        try:
            found = await read_settings(session_id, log)
            story = found.story
            if again:
                self._check_servers(found.servers, opening)
            mended = story.repairs()
            if mended:
                log.append(mended, lambda error: None)
                await told(session_id, log.flush())
                story.apply(mended)
            session = await self._opened(session_id, opening, log, found.options, found.permissions)
        except BaseException:
            await _give_back(log)
            raise
        session.title = log.meta.title
        session.options = found.restored(session.options)
        return session, story

    async def _opened(
        self,
        session_id: str,
        request: ask.NewSession,
        log: Log | None,
        left_with: Mapping[str, object],
        permissions: Iterable[object] = (),
    ) -> Session:
        journal = None if log is None else Journal(log, self._speech)
        session = Session(session_id, request, journal or self._speech, self._agent.options)
        session.journal = journal
        session.trusts_identities = self._trusted
        session.left_with = left_with
        session.answers.restore(permissions)
        session.commands = self._agent.command_list()
        try:
            for handler in self._agent.session_handlers:
                await handler(session)
        except BaseException:
            self._announced.forget(session_id)
            if log is not None:
                await _give_back(log)
            raise
        self.open[session_id] = session
        self._agent.open_sessions.add(session_id)
        return session

    def _check_servers(self, known: object, request: ask.NewSession | ask.ResumeSession) -> None:
        """Where that is asked of us, a session is opened again only with the servers it was begun with."""
        if self._agent.rules.requires_same_servers and known not in (None, fingerprint(request)):
            raise RequestFailed(INVALID_PARAMS, "The MCP servers are not those that the session was begun with")

    # -- closing -----------------------------------------------------------------------------------------------------

    async def close(self, session_id: str) -> Done:
        """End a session's work and free it. One that is not open is closed already."""
        await self._transitions.wait(session_id)
        with self._transitions.begin(session_id, "closed"):
            session = self._take_out(session_id)
            if session is not None:
                await self._finish(session)
                if session.journal is not None:
                    await told(session_id, session.journal.log.release())
        return Done()

    def _take_out(self, session_id: str) -> Session | None:
        """Remove a session from the open ones, so that nothing new begins in it; None if it is not open here."""
        session = self.open.pop(session_id, None)
        if session is not None:
            self._agent.open_sessions.discard(session_id)
        return session

    async def _finish(self, session: Session) -> None:
        await session.finish()
        await self._let_go([session])
        self._announced.forget(session.id)

    async def delete(self, session_id: str) -> Done:
        """Forget a session for good. One that is not there is deleted already."""
        store = self._stored()
        await self._transitions.wait(session_id)
        with self._transitions.begin(session_id, "deleted"):
            session = self._take_out(session_id)
            if session is not None:
                await self._finish(session)
            elif session_id in self._agent.open_sessions:
                raise as_told(session_id, SessionOpenHere())
            await told(session_id, store.delete(session_id))
        return Done()

    async def leave(self, deadline: Deadline) -> None:
        """Release the sessions of a client that is gone; a task goes on with those that the deadline leaves.

        A process that ends with its client ends its leases, whatever is left of them.
        """
        logs = [session.journal.log for session in self.open.values() if session.journal is not None]
        sessions = list(self.open.values())
        self._agent.open_sessions.difference_update(self.open)
        self.open.clear()
        await self._let_go(sessions, deadline.left(SESSIONS))
        if logs:
            freeing = asyncio.get_running_loop().create_task(_free(logs))
            _freeing.add(freeing)
            freeing.add_done_callback(_freeing.discard)
            await asyncio.wait([freeing], timeout=deadline.left(LOGS))

    async def _let_go(self, sessions: Sequence[Session], seconds: float = _CLOSED_SECONDS) -> None:
        """Run the agent's closing handlers for these sessions; cancel those that still run after `seconds`.

        Exceptions of a handler are reported to the agent, not raised.
        """
        work = [
            asyncio.ensure_future(handler(session)) for session in sessions for handler in self._agent.closing_handlers
        ]
        if work:
            done, late = await asyncio.wait(work, timeout=seconds)
            for task in late:
                task.cancel()
            for task in done:
                error = task.exception() if not task.cancelled() else None
                if isinstance(error, Exception):
                    self._agent.report(error)

    # -- looking -----------------------------------------------------------------------------------------------------

    async def list(self, request: ask.ListSessions) -> ask.SessionList:
        """A page of sessions, newest first."""
        if self._store is None:
            return ask.SessionList([ask.SessionInfo(s.id, s.cwd, title=s.title or UNSET) for s in self.open.values()])
        return await listed(self._store, request, all_pages=self._agent.rules.lists_all_sessions)

    async def status(self, session_id: str) -> ask.SessionStatus:
        """What a session is doing."""
        session = self.open.get(session_id)
        if session is not None:
            return ask.SessionStatus("open", Running() if session.turn is not None else Idle())
        await told(session_id, self._stored(session_id).look(session_id))
        return ask.SessionStatus("saved")

    async def set_title(self, session_id: str, title: str) -> ask.TitleSet:
        """Name a session."""
        await self._change(session_id, title=title)
        session = self.open.get(session_id)
        if session is not None:
            session.title = title
            await told(session_id, session.record(SessionInfoChanged(title=title)))
        return ask.TitleSet(title)

    async def archive(self, session_id: str, archived: bool) -> Done:
        """Put a session away, or take it back out."""
        await self._change(session_id, archived=archived)
        return Done()

    async def _change(self, session_id: str, *, title: str | None = None, archived: bool | None = None) -> None:
        session = self.open.get(session_id)
        if session is not None and session.journal is not None:
            await told(session_id, session.journal.log.change(title=title, archived=archived))
        else:
            await told(session_id, self._stored(session_id).change(session_id, title=title, archived=archived))

    def find(self, session_id: str) -> Session:
        """A session that is open here."""
        session = self.open.get(session_id)
        if session is None:
            raise missing(session_id)
        return session

    def _stored(self, session_id: str | None = None) -> Store:
        if self._store is None:
            raise RequestFailed(METHOD_NOT_FOUND, "Method not found") if session_id is None else missing(session_id)
        return self._store


async def _give_back(log: Log) -> None:
    """Release a log whatever the disk says: the lease is given back even when the flush before it fails."""
    try:
        await log.release()
    except StoreFailed:
        pass  # the `committed` callback of each lost entry got the error


async def _free(logs: Iterable[Log]) -> None:
    for log in logs:
        await _give_back(log)


def _answer(session: Session) -> ask.SessionOpened:
    return ask.SessionOpened(session.id, session.options or UNSET, session.commands or UNSET)
