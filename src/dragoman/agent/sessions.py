"""The sessions of one client: opened, found again, listed, forked, closed. With a store they outlive it.

A session is its log. Opening one reads the log as a story, mends what a crash has cut off, tells it again where that
is asked for, and goes on. Without a store a session lives as long as its connection and there is nothing to find.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from dragoman.agent.announced import Announced
from dragoman.agent.identity import new_session_id
from dragoman.agent.journal import Journal
from dragoman.agent.session import Session
from dragoman.agent.speech import Speech
from dragoman.agent.story import Story
from dragoman.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_FOUND,
    LinkClosed,
    RequestFailed,
)
from dragoman.store.contract import (
    ArchiveFilter,
    BadCursor,
    Log,
    SessionDamaged,
    SessionHeld,
    SessionMeta,
    SessionMissing,
    Store,
    StoreFailed,
)
from dragoman.store.entries import Noted
from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.asking import Done
from dragoman.vocabulary.events import Idle, Notice, Running, SessionInfoChanged
from dragoman.vocabulary.options import Option, Select, Toggle

if TYPE_CHECKING:
    from dragoman.agent.agent import Agent

T = TypeVar("T")
# What a session's author may take to free what it holds.
_LET_GO_SECONDS: Final = 2.0
_OPTIONS: Final = "options"
# Sessions in one answer where a client wants all of them: some MiB, and more than anybody looks through.
_LISTED: Final = 10_000
# Under a name that no option has: it is kept beside them.
_SERVERS: Final = "mcp servers"
# How long a client that is gone is waited for; a process that ends with it ends its leases, whatever is left of them.
_LEAVE_SECONDS: Final = 0.5
_freeing: Final[set["asyncio.Task[None]"]] = set()
_FILTERS: Final[dict[object, ArchiveFilter]] = {"include": "include", "only": "only"}


class Sessions:
    """Every session of one client."""

    def __init__(self, agent: "Agent", speech: Speech, announced: Announced) -> None:
        self.open: Final[dict[str, Session]] = {}
        self._agent = agent
        self._speech = speech
        self._announced = announced
        self._to_resume = agent.resume

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
            session = await self._opened(session_id, request, log)
        if self._agent.manner.same_servers:
            await told(session_id, session.remember(_SERVERS, _fingerprint(request)))
        self._announced.announce_next(session_id)
        return _answer(session)

    async def _resumed(self, request: ask.NewSession) -> ask.SessionOpened | None:
        """The stored session that this new one is to be; None if there is none, and then a fresh one is opened."""
        wanted, self._to_resume = self._to_resume, None
        store = self._store
        if store is None:
            return None
        try:
            session_id = wanted or await _newest(store, request.cwd)
            if session_id is None or not _same((await store.look(session_id)).cwd, request.cwd):
                return None
            session, story = await self._from_log(session_id, request, await store.open(session_id))
        except (StoreFailed, RequestFailed):
            return None
        self._announced.announce_next(session_id)
        # The client learns the id from the answer, so the story comes after it; a prompt waits for its end.
        session.retelling = asyncio.get_running_loop().create_task(self._retell_behind(session, story))
        return _answer(session)

    async def resume(self, request: ask.ResumeSession) -> ask.SessionOpened:
        """Open a stored session, or one that is open here; tell its story first where that is asked for."""
        if request.replay_from and not isinstance(request.replay_from, ask.ReplayFromStart):
            raise RequestFailed(INVALID_PARAMS, "There is no such place to replay from")
        session = self.open.get(request.session_id)
        if session is not None and session.turn is not None and request.replay_from:
            raise RequestFailed(INVALID_REQUEST, "The session is busy", {"reason": "busy"})
        story = None
        if session is None:
            session, story = await self._reopen(request)
        elif not _same(session.cwd, request.cwd):
            raise RequestFailed(INVALID_PARAMS, "The session has another cwd")
        else:
            self._check_servers(_fingerprint(session.opening), request)
            check_folders(request.cwd, request.additional_directories)
            session.reroot(request.additional_directories)
        # The client has named it, so it may be spoken of before the answer.
        self._announced.announce(session.id)
        if request.replay_from:
            if session.retelling is not None:
                await asyncio.wait([session.retelling])
            await self._retell(session, story)
        await self._tell_of_damage(session)
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
        """A session that was just made and cannot be opened is taken away again: nobody has ever seen it."""
        try:
            yield
        except BaseException:
            if self._store is not None:
                with suppress(StoreFailed):
                    await self._store.delete(session_id)
            raise

    async def _reopen(self, request: ask.ResumeSession) -> tuple[Session, Story]:
        store = self._stored(request.session_id)
        meta = await told(request.session_id, store.look(request.session_id))
        if not _same(meta.cwd, request.cwd):
            raise RequestFailed(INVALID_PARAMS, "The session has another cwd")
        check_folders(request.cwd, request.additional_directories)
        log = await told(request.session_id, store.open(request.session_id))
        opening = ask.NewSession(request.cwd, request.additional_directories, request.mcp_servers)
        return await self._from_log(request.session_id, opening, log, again=True)

    async def _from_log(
        self, session_id: str, opening: ask.NewSession, log: Log, *, again: bool = False
    ) -> tuple[Session, Story]:
        """A session as its log tells it, mended, and its story. `again`: the client has named it."""
        try:
            story, notes = await _read(session_id, log)
            servers = notes.pop(_SERVERS, None)
            if again:
                self._check_servers(servers, opening)
            mended = story.repairs()
            if mended:
                log.append(mended, lambda error: None)
                await told(session_id, log.flush())
                story.take(mended)
            session = await self._opened(session_id, opening, log)
        except BaseException:
            await _give_back(log)
            raise
        session.title = log.meta.title
        session.options = [_restored(option, notes) for option in session.options]
        return session, story

    async def _opened(self, session_id: str, request: ask.NewSession, log: Log | None) -> Session:
        journal = None if log is None else Journal(log, self._speech)
        session = Session(session_id, request, journal or self._speech, self._agent.options)
        session.journal = journal
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
        return session

    def _check_servers(self, known: object, request: ask.NewSession | ask.ResumeSession) -> None:
        """Where that is asked of us, a session is opened again only with the servers it was begun with."""
        if self._agent.manner.same_servers and known not in (None, _fingerprint(request)):
            raise RequestFailed(INVALID_PARAMS, "The MCP servers are not those that the session was begun with")

    async def _retell(self, session: Session, story: Story | None) -> None:
        """The story, read from the log unless it was just read. To the client only: the log has it."""
        if session.journal is None:
            raise RequestFailed(INVALID_PARAMS, "This agent keeps no history to replay")
        if story is None:
            story, _ = await _read(session.id, session.journal.log)
        for event in story.retold():
            await self._speech.tell(session.id, event)
        if session.title:
            await self._speech.tell(session.id, SessionInfoChanged(title=session.title))

    async def _retell_behind(self, session: Session, story: Story) -> None:
        try:
            await self._retell(session, story)
            await self._tell_of_damage(session)
            if session.turn is None:  # else it waits for us, and tells how things stand
                await self._speech.tell(session.id, Idle())
        except (LinkClosed, RequestFailed):
            pass  # nobody is left to tell, or the log cannot be read any more: the next turn says so

    async def _tell_of_damage(self, session: Session) -> None:
        """What was lost of a log before it was opened, the user hears once."""
        log = None if session.journal is None else session.journal.log
        if log is not None and log.salvaged is not None:
            from dragoman.agent.serve import complain

            lost, log.salvaged = log.salvaged, None
            complain(f"dragoman: session {session.id}: {lost}\n")  # not every client can show a notice
            await self._speech.tell(session.id, Notice("warning", lost[:1].upper() + lost[1:]))

    # -- closing -----------------------------------------------------------------------------------------------------

    async def close(self, session_id: str) -> Done:
        """End a session's work and free it. One that is not open is closed already."""
        session = self.open.pop(session_id, None)  # nothing new begins in it
        if session is not None:
            await session.finish()
            await self._let_go([session])
            self._announced.forget(session_id)
            if session.journal is not None:
                await told(session_id, session.journal.log.release())
        return Done()

    async def delete(self, session_id: str) -> Done:
        """Forget a session for good. One that is not there is deleted already."""
        store = self._stored()
        session = self.open.pop(session_id, None)
        if session is not None:
            await session.finish()
            await self._let_go([session])
            self._announced.forget(session_id)
        await told(session_id, store.delete(session_id))
        return Done()

    async def leave(self) -> None:
        """The client is gone: what it opened is freed, and can be found again. Thousands are freed behind this."""
        logs = [session.journal.log for session in self.open.values() if session.journal is not None]
        sessions = list(self.open.values())
        self.open.clear()
        await self._let_go(sessions)
        if logs:
            freeing = asyncio.get_running_loop().create_task(_free(logs))
            _freeing.add(freeing)
            freeing.add_done_callback(_freeing.discard)
            await asyncio.wait([freeing], timeout=_LEAVE_SECONDS)

    async def _let_go(self, sessions: Sequence[Session]) -> None:
        """Tell the author's handlers, within a bound: whoever closes does not wait for what does not end."""
        work = [
            asyncio.ensure_future(handler(session)) for session in sessions for handler in self._agent.closing_handlers
        ]
        if work:
            done, late = await asyncio.wait(work, timeout=_LET_GO_SECONDS)
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
        cursor = request.cursor or None
        found: list[SessionMeta] = []
        while True:
            archived = _FILTERS.get(request.archived, "exclude")
            page = await told("", self._store.list(cwd=request.cwd or None, cursor=cursor, archived=archived))
            found.extend(page.sessions)
            cursor = page.cursor
            if not request.whole or not cursor or len(found) >= _LISTED:
                return ask.SessionList([info_of(meta) for meta in found], cursor or UNSET)

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
            raise _missing(session_id)
        return session

    def _stored(self, session_id: str | None = None) -> Store:
        if self._store is None:
            raise RequestFailed(METHOD_NOT_FOUND, "Method not found") if session_id is None else _missing(session_id)
        return self._store


async def _newest(store: Store, cwd: str) -> str | None:
    """The session of a folder in which something happened last."""
    page = await store.list(cwd=cwd)
    return page.sessions[0].id if page.sessions else None


async def told(session_id: str, work: Awaitable[T]) -> T:
    """What the store does, with its failures as the client is told of them."""
    try:
        return await work
    except SessionMissing:
        raise _missing(session_id) from None
    except SessionHeld as error:
        raise RequestFailed(INVALID_REQUEST, "The session is open in another process", {"reason": "held"}) from error
    except SessionDamaged as error:
        raise RequestFailed(INTERNAL_ERROR, "The session cannot be read", {"reason": "damaged"}) from error
    except BadCursor as error:
        raise RequestFailed(INVALID_PARAMS, "Bad cursor") from error
    except StoreFailed as error:
        raise RequestFailed(INTERNAL_ERROR, str(error).capitalize(), {"reason": "store"}) from error


async def keep_option(session: Session, config_id: str, value: object) -> None:
    """Remember an option over restarts; it is on disk when this returns."""
    if session.journal is not None:
        await told(session.id, _keep(session, session.journal, {config_id: value}))


async def _keep(session: Session, journal: Journal, options: dict[str, object]) -> None:
    if session.turn is None:
        await journal.mend()  # a running turn is told of the failure itself
    await journal.remember(_OPTIONS, options)
    await journal.log.flush()


def info_of(meta: SessionMeta) -> ask.SessionInfo:
    """A session as a list shows it."""
    when = datetime.fromtimestamp(meta.activity / 1_000_000, UTC).isoformat().replace("+00:00", "Z")
    return ask.SessionInfo(
        meta.id,
        meta.cwd,
        list(meta.directories) or UNSET,
        title=meta.title or UNSET,
        updated_at=when,
        archived=True if meta.archived else UNSET,
    )


def _fingerprint(request: ask.NewSession | ask.ResumeSession) -> str:
    """The servers as one short text that tells nothing of their secrets; their order counts."""
    import hashlib

    return hashlib.sha256(msgspec.json.encode(request.mcp_servers or [])).hexdigest()


def check_folders(cwd: str, more: object) -> None:
    """The folders of a session exist, here."""
    for path in [cwd, *(more if isinstance(more, list) else [])]:
        if not os.path.isdir(path):
            raise RequestFailed(INVALID_PARAMS, f"Not a folder on the agent's machine: {path}", {"path": path})


def _same(one: str, other: str) -> bool:
    """Whether two paths are one folder: a link to it is not another folder."""
    return one == other or os.path.realpath(one) == os.path.realpath(other)


async def _read(session_id: str, log: Log) -> tuple[Story, dict[str, object]]:
    """The story in a log, and the options remembered in it; among them which servers it was begun with."""
    story = Story()
    options: dict[str, object] = {}
    try:
        async for records in log.read():
            entries = [record.entry for record in records]
            story.take(entries)
            for entry in entries:
                if isinstance(entry, Noted) and entry.kind == _OPTIONS and isinstance(entry.value, dict):
                    options.update(entry.value)
                elif isinstance(entry, Noted) and entry.kind == _SERVERS:
                    options[_SERVERS] = entry.value
    except StoreFailed as error:
        await told(session_id, _raise(error))
    return story, options


async def _give_back(log: Log) -> None:
    """Release a log whatever the disk says: the lease is given back even when the flush before it fails."""
    try:
        await log.release()
    except StoreFailed:
        pass  # whoever appended was told


async def _free(logs: Iterable[Log]) -> None:
    for log in logs:
        await _give_back(log)


async def _raise(error: StoreFailed) -> None:
    raise error


def _answer(session: Session) -> ask.SessionOpened:
    return ask.SessionOpened(session.id, session.options or UNSET, session.commands or UNSET)


def _restored(option: Option, notes: dict[str, object]) -> Option:
    """An option with the value it was left with, if it still has that value."""
    if not isinstance(option, (Select, Toggle)) or option.config_id not in notes:
        return option
    value = notes[option.config_id]
    if isinstance(option, Toggle):
        return replace(option, current_value=value) if isinstance(value, bool) else option
    return replace(option, current_value=value) if any(c.value == value for c in option.choices()) else option


def _missing(session_id: str) -> RequestFailed:
    return RequestFailed(NOT_FOUND, "Session not found", {"sessionId": session_id})
