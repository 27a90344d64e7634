"""The sessions of one client: opened, found again, forked, closed. With a store they outlive it.

A session is its log. Opening one acquires the lease of the log, reads the log once as a history, ends in it what a
crash has cut off, replays it where that is asked for, and goes on. The lease is released when the session is closed or
its client is gone; a kill releases it too. Without a store a session lives as long as its connection, and there is
nothing to find.

Opening takes a while: the log is read and replayed. A second request for the same session meanwhile is rejected if it
would open the session, and waits if it would end it (`Transitions`).
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Final, Literal

from msgspec import UNSET
from msgspec.structs import replace

from dragoman import limits
from dragoman.agent.author_handlers import AgentCore
from dragoman.agent.history import (
    History,
    StoredSettings,
    fingerprint,
    read_settings,
    replay_after_reply,
    replay_history,
    report_damage,
)
from dragoman.agent.journal import (
    Journal,
    client_error,
    client_errors,
    session_is_busy,
    session_is_open,
    session_not_found,
)
from dragoman.agent.session import new_session_id
from dragoman.agent.session_core import SessionCore, store_servers
from dragoman.errors import INVALID_PARAMS, METHOD_NOT_FOUND, RequestFailed, echo
from dragoman.link.deadline import LOGS, SESSIONS, Deadline
from dragoman.store.contract import Log, SessionMeta, SessionOpenHere, Store, StoreFailed
from dragoman.store.log_places import MessageTakenOut, end_of_counted_message
from dragoman.store.session_list import list_sessions, newest_session
from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.asking import Done
from dragoman.vocabulary.events import Idle, Running, SessionInfoChanged

if TYPE_CHECKING:
    from dragoman.agent.connection import ClientSink

_log: Final = logging.getLogger(__name__)

# What a session's author may take to free what it holds, when the client closes it. At the end there is less.
_CLOSED_SECONDS: Final = 2.0
# Releases that outlive their connection. The event loop has weak references only.
_releasing: Final[set["asyncio.Task[None]"]] = set()

Change = Literal["opened", "closed", "deleted"]


class Transitions:
    """The sessions of one connection that are being opened, closed or deleted right now, by their ids."""

    def __init__(self) -> None:
        self._changes: dict[str, tuple[Change, asyncio.Future[None]]] = {}

    def __repr__(self) -> str:
        return f"<Transitions {[f'{id} {change}' for id, (change, _) in self._changes.items()]}>"

    @contextmanager
    def begin(self, session_id: str, change: Change) -> Iterator[None]:
        """Mark a session as changing inside the `with` block; `RequestFailed` if another change is under way."""
        if session_id in self._changes:
            now = self._changes[session_id][0]
            message = f"The session is just being {now} on this connection: wait for that answer, then ask again"
            raise session_is_open(message)
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


class OpenSessions:
    """Every session of one client."""

    def __init__(self, agent: AgentCore, sink: "ClientSink", *, trusted: bool = False) -> None:
        self.open: Final[dict[str, SessionCore]] = {}
        self._agent = agent
        self._sink = sink
        self._trusted = trusted
        self._to_resume = agent.resume
        self._transitions = Transitions()

    def __repr__(self) -> str:
        return f"<OpenSessions open={len(self.open)} {self._transitions!r}>"

    # -- opening -----------------------------------------------------------------------------------------------------

    async def new(self, request: ask.NewSession) -> ask.SessionOpened:
        """Open a new session; with a store it is on disk before the client knows its id."""
        # Before anything is made: a session in a folder that is not there would fail at its first tool call.
        check_folders(request.cwd, request.additional_directories)
        # `--resume`: for clients that can open new sessions only. It counts for the first one of a connection.
        if self._to_resume is not None:
            resumed = await self._resume_in_place(request)
            if resumed is not None:
                return resumed
        named = request.cwd
        if self._agent.folders is not None:
            request = _in_folder(request, await self._agent.folders.choose(request))
        session_id = new_session_id()
        store = self._agent.store or self._agent.open_store()
        log = None
        if store is not None:
            meta = SessionMeta(session_id, request.cwd, tuple(request.additional_directories or ()))
            meta = meta._replace(home=ask.home_of(request))
            with client_errors(session_id):
                log = await store.create(meta)
        # On disk, held, and unknown to the client: if a handler of the author's fails, only we can delete it.
        async with self._deleted_if_it_fails(session_id):
            core = await self._start(session_id, request, log)
        core.is_elsewhere = request.cwd != named
        if self._agent.rules.requires_same_servers:
            await store_servers(core)
        # From here on nothing may fail: the reply names the session.
        self._sink.announce_next(session_id)
        return _reply(core)

    async def _resume_in_place(self, request: ask.NewSession) -> ask.SessionOpened | None:
        """Open the stored session that the first new session is to be; None if there is none: a new one is opened.

        One that was named by its id and cannot be opened in this folder is an error, each time it is asked for.
        """
        store = self._agent.store or self._agent.open_store()
        wanted, self._to_resume = self._to_resume, None
        is_named = bool(wanted) and not self._agent.rules.opens_missing_session
        if store is None:
            return None
        try:
            session_id = wanted or await newest_session(store, request.cwd, await self._related_folders(request.cwd))
            if session_id is None:
                return None
            core, history = await self._from_store(store, session_id, request)
        except (StoreFailed, RequestFailed):
            if not is_named:
                return None
            self._to_resume = wanted
            raise
        self._sink.announce_next(session_id)
        # The client learns the id from the reply, so the history comes behind it; a prompt waits for its end.
        core.replay_task = asyncio.get_running_loop().create_task(replay_after_reply(core, self._sink, history))
        return _reply(core)

    async def resume(self, request: ask.ResumeSession) -> ask.SessionOpened:
        """Open a stored session, or one that is open here; replay its history first where that is asked for."""
        if request.replay_from and not isinstance(request.replay_from, ask.ReplayFromStart):
            raise RequestFailed(INVALID_PARAMS, "There is no such place to replay from")
        with self._transitions.begin(request.session_id, "opened"):
            return await self._resume(request)

    async def _resume(self, request: ask.ResumeSession) -> ask.SessionOpened:
        core = self.open.get(request.session_id)
        # Replayed messages between those of a running turn could not be told apart on a wire without ids.
        if core is not None and core.turn is not None and request.replay_from:
            raise session_is_busy()
        history = None
        if core is None:
            store = self._store(request.session_id)
            opening = ask.NewSession(request.cwd, request.additional_directories, request.mcp_servers)
            core, history = await self._from_store(store, request.session_id, opening, again=True)
        else:
            if core.cwd not in await self._related_folders(request.cwd):
                check_same_folder(core.cwd, request.cwd)
            self._check_servers(fingerprint(core.request), request)
            check_folders(request.cwd, request.additional_directories)
            # It is open on this connection and stays as it is, with its turn if one runs; only the folders may be
            # others.
            core.set_directories(request.additional_directories)
        # The client has named it, so events may be sent before the reply.
        self._sink.announce(core.id)
        if request.replay_from:
            if core.replay_task is not None:
                # A replay behind the reply to `session/new` is under way: two at once would be mixed.
                await asyncio.wait([core.replay_task])
            if history is None:
                history = await self._read_again(core)
            await replay_history(core, self._sink, history)
        await report_damage(core, self._sink)
        await self._sink.send_event(core.id, Idle() if core.turn is None else Running())
        return _reply(core)

    async def _read_again(self, core: SessionCore) -> History:
        """Read the history of a session that is open already. `RequestFailed` without a store: there is none."""
        if core.journal is None:
            raise RequestFailed(INVALID_PARAMS, "This agent keeps no history to replay")
        with client_errors(core.id):
            return (await read_settings(core.journal.log)).history

    async def fork(self, request: ask.ForkSession) -> ask.SessionOpened:
        """Copy a session into a new one, up to what is on disk now, or up to a message of it."""
        store = self._store()
        check_folders(request.cwd, request.additional_directories)
        session_id = new_session_id()
        with client_errors(request.session_id):
            source = self.open.get(request.session_id)
            if source is not None and source.journal is not None:
                # The store copies what is on disk; what the client has seen is, what is being written may not be.
                await source.journal.log.flush()
            meta = await store.read_meta(request.session_id)
            cwd = meta.cwd if meta.cwd in await self._related_folders(request.cwd) else request.cwd
            copy = SessionMeta(session_id, cwd, tuple(request.additional_directories or ()), meta.title)
            log = await store.fork(request.session_id, copy, await self._fork_end(store, request))
        opening = ask.NewSession(cwd, request.additional_directories, request.mcp_servers)
        async with self._deleted_if_it_fails(session_id):
            core, _ = await self._from_log(session_id, opening, log)
        self._sink.announce_next(session_id)
        return _reply(core)

    async def _fork_end(self, store: Store, request: ask.ForkSession) -> int | None:
        """Return the number of the last entry to copy; None: all of them. `RequestFailed` for an unknown message."""
        if request.message_id is None:
            return None
        named = {ask.FORK_AT: echo(str(request.message_id))}
        try:
            end = await end_of_counted_message(lambda: store.read(request.session_id), str(request.message_id))
        except MessageTakenOut:
            sentence = "A rewind has taken this message out of the conversation; undo the rewind to fork there"
            raise RequestFailed(INVALID_PARAMS, sentence, {**named, "reason": "rewound"}) from None
        if end is None:
            raise RequestFailed(INVALID_PARAMS, "The session has no such message", named)
        return end

    @asynccontextmanager
    async def _deleted_if_it_fails(self, session_id: str) -> AsyncIterator[None]:
        """Delete a session from the store again if the block raises: the client never got its id."""
        try:
            yield
        except BaseException:
            store = self._agent.store or self._agent.open_store()
            if store is not None:
                with suppress(StoreFailed):
                    await store.delete(session_id)
            raise

    async def _from_store(
        self, store: Store, session_id: str, opening: ask.NewSession, *, again: bool = False
    ) -> tuple[SessionCore, History]:
        """Acquire a stored session and read it. Its folder is checked before the lease is acquired."""
        related = await self._related_folders(opening.cwd)

        def check(meta: SessionMeta) -> None:
            if meta.cwd not in related:
                check_same_folder(meta.cwd, opening.cwd)
            check_folders(meta.cwd, opening.additional_directories)

        with client_errors(session_id):
            log = await store.open(session_id, check)
        is_related = log.meta.cwd in related
        placed = _in_folder(opening, log.meta.cwd) if is_related else opening
        core, history = await self._from_log(session_id, placed, log, again=again)
        core.is_elsewhere = placed.cwd != opening.cwd
        return core, history

    async def _related_folders(self, cwd: str) -> Sequence[str]:
        """Return the folders whose sessions a client may open by naming this one."""
        return () if self._agent.folders is None else await self._agent.folders.related(cwd)

    async def _from_log(
        self, session_id: str, opening: ask.NewSession, log: Log, *, again: bool = False
    ) -> tuple[SessionCore, History]:
        """Read a log, repair it, and open its session. The lease is released if that fails.

        `again`: the client has opened it before, so its MCP servers must be the same where a dialect wants that.
        """
        try:
            with client_errors(session_id):
                found = await read_settings(log)
            history = found.history
            if again:
                # After the lease was acquired, because the fingerprint stands in the log; a mismatch releases it
                # again.
                self._check_servers(found.servers, opening)
            # A turn or a terminal without an end was cut off by a kill. Its end is written before anything new, so that
            # a kill while we do this leaves a log that is repaired in the same way the next time.
            repairs = history.repairs()
            if repairs:
                _log.warning("session %s was cut off; %d entries added", session_id[limits.SHORT_ID], len(repairs))
                # `flush` raises what the callback would get.
                log.append(repairs, lambda error: None)
                with client_errors(session_id):
                    await log.flush()
                history.apply(repairs)
            core = await self._start(session_id, opening, log, found)
        except BaseException:
            await _release(log)
            raise
        core.title = log.meta.title
        # After the handlers of `session_opened`, which may have set other options.
        core.options = found.restore_options(core.options)
        return core, history

    async def _start(
        self, session_id: str, request: ask.NewSession, log: Log | None, found: StoredSettings | None = None
    ) -> SessionCore:
        """Make a session, have the author's handlers prepare it, and add it to the open ones."""
        journal = None if log is None else Journal(log, self._sink)
        core = SessionCore(session_id, request, self._sink, journal=journal, options=self._agent.options)
        # Everything is set before the handlers run: they see the session as the client left it.
        core.trusts_identities = self._trusted
        core.commands = [command for command, _ in self._agent.commands.values()]
        if found is not None:
            core.stored_options = found.options
            core.is_stored_again = True
            if found.permissions:
                core.answers.restore(found.permissions)
        try:
            for handler in self._agent.session_handlers:
                await handler(core.session)
        except BaseException:
            self._sink.forget(session_id)
            if log is not None:
                await _release(log)
            raise
        # Only now: a request that names it while the handlers prepare it is "Session not found", not a turn in a
        # session that is half open.
        self.open[session_id] = core
        self._agent.open_sessions.add(session_id)
        _log.debug("session %s opened%s", session_id[limits.SHORT_ID], " with a log" if log is not None else "")
        return core

    def _check_servers(self, known: object, request: ask.NewSession | ask.ResumeSession) -> None:
        """Reject other MCP servers than the session was begun with, where a dialect has that rule."""
        if self._agent.rules.requires_same_servers and known not in (None, fingerprint(request)):
            raise RequestFailed(INVALID_PARAMS, "The MCP servers are not those that the session was begun with")

    # -- closing -----------------------------------------------------------------------------------------------------

    async def close(self, session_id: str) -> Done:
        """End a session's work and release it. One that is not open is closed already."""
        await self._transitions.wait(session_id)
        with self._transitions.begin(session_id, "closed"):
            # Out of the table first: no request that comes while we wait can find it and begin something in it.
            core = self._remove(session_id)
            if core is not None:
                await self._finish(core)
                if core.journal is not None:
                    with client_errors(session_id):
                        await core.journal.log.release()
                _log.debug("session %s closed", session_id[limits.SHORT_ID])
        return Done()

    def _remove(self, session_id: str) -> SessionCore | None:
        """Remove a session from the open ones, so that nothing new begins in it; None if it is not open here."""
        core = self.open.pop(session_id, None)
        if core is not None:
            self._agent.open_sessions.discard(session_id)
        return core

    async def _finish(self, core: SessionCore) -> None:
        await core.close()
        await self._run_closing_handlers([core])
        self._sink.forget(core.id)

    async def delete(self, session_id: str) -> Done:
        """Delete a session for good. One that is not there is deleted already."""
        store = self._store()
        await self._transitions.wait(session_id)
        with self._transitions.begin(session_id, "deleted"):
            core = self._remove(session_id)
            if core is not None:
                await self._finish(core)
            # The store would delete it: its lease is ours. But it is another client's, whose turn may run.
            elif session_id in self._agent.open_sessions:
                raise client_error(session_id, SessionOpenHere())
            with client_errors(session_id):
                await store.delete(session_id)
            for handler in self._agent.deletion_handlers:
                await handler(session_id)
        return Done()

    async def close_all(self, deadline: Deadline) -> None:
        """Release the sessions of a client that is gone; a task goes on with those that the deadline leaves.

        A process that ends with its client ends its leases, whatever is left of them.
        """
        # No turn runs any more: `ClientConnection.run` has ended or cancelled them.
        logs = [core.journal.log for core in self.open.values() if core.journal is not None]
        cores = list(self.open.values())
        self._agent.open_sessions.difference_update(self.open)
        self.open.clear()
        # Handlers first: they may still write notes to the log.
        await self._run_closing_handlers(cores, deadline.left(SESSIONS))
        if logs:
            releasing = asyncio.get_running_loop().create_task(_release_all(logs))
            _releasing.add(releasing)
            releasing.add_done_callback(_releasing.discard)
            # Not cancelled when the time is up: a release that has begun is finished by the store's thread in any
            # case.
            await asyncio.wait([releasing], timeout=deadline.left(LOGS))

    async def _run_closing_handlers(self, cores: Sequence[SessionCore], seconds: float = _CLOSED_SECONDS) -> None:
        """Run the agent's closing handlers for these sessions; cancel those that still run after `seconds`.

        Exceptions of a handler are reported to the agent, not raised.
        """
        work = [
            asyncio.ensure_future(handler(core.session)) for core in cores for handler in self._agent.closing_handlers
        ]
        if work:
            done, late = await asyncio.wait(work, timeout=seconds)
            for task in late:
                task.cancel()
            for task in done:
                error = task.exception() if not task.cancelled() else None
                if isinstance(error, Exception):
                    self._agent.report(error)

    # -- list, status, title, archive --------------------------------------------------------------------------------

    async def list(self, request: ask.ListSessions) -> ask.SessionList:
        """Return a page of sessions, newest first; without a store, those that are open here."""
        store = self._agent.store or self._agent.open_store()
        if store is None:
            return ask.SessionList([ask.SessionInfo(s.id, s.cwd, title=s.title or UNSET) for s in self.open.values()])
        related = await self._related_folders(request.cwd) if request.cwd else ()
        with client_errors(""):
            found = await list_sessions(store, request, related, all_pages=self._agent.rules.lists_all_sessions)
        if self._agent.folders is None:
            return found
        return replace(found, sessions=await self._agent.folders.marked(found.sessions))

    async def status(self, session_id: str) -> ask.SessionStatus:
        """Return what a session is doing."""
        core = self.open.get(session_id)
        if core is not None:
            return ask.SessionStatus("open", Running() if core.turn is not None else Idle())
        with client_errors(session_id):
            await self._store(session_id).read_meta(session_id)
        return ask.SessionStatus("saved")

    async def set_title(self, session_id: str, title: str) -> ask.TitleSet:
        """Name a session, whether it is open here or only stored. Clients hear of the title before the answer."""
        await self._change(session_id, title=title)
        core = self.open.get(session_id)
        if core is not None:
            core.title = title
            with client_errors(session_id):
                await core.record(SessionInfoChanged(title=title))
                if core.journal is not None:
                    await core.journal.drain()
        return ask.TitleSet(title)

    async def archive(self, session_id: str, archived: bool) -> Done:
        """Put a session into the archive, or take it out."""
        await self._change(session_id, archived=archived)
        return Done()

    async def _change(self, session_id: str, *, title: str | None = None, archived: bool | None = None) -> None:
        core = self.open.get(session_id)
        with client_errors(session_id):
            if core is not None and core.journal is not None:
                await core.journal.log.change(title=title, archived=archived)
            else:
                await self._store(session_id).change(session_id, title=title, archived=archived)

    def _store(self, session_id: str | None = None) -> Store:
        """Return the store. Without one, a session that is not open cannot exist, and other requests are unknown."""
        store = self._agent.store or self._agent.open_store()
        if store is None:
            no_method = RequestFailed(METHOD_NOT_FOUND, "Method not found")
            raise no_method if session_id is None else session_not_found(session_id)
        return store


def check_folders(cwd: str, more: object) -> None:
    """Raise `RequestFailed` unless all folders of a session exist on this machine."""
    for path in [cwd, *(more if isinstance(more, list) else [])]:
        if not os.path.isdir(path):
            raise RequestFailed(INVALID_PARAMS, f"Not a folder on the agent's machine: {path}", {"path": path})


def check_same_folder(known: str, cwd: str) -> None:
    """Raise `RequestFailed`, with the session's own folder, for another one. A link to a folder is that folder.

    A client that may not know the folder does not get here: a gateway has refused it before.
    """
    # `realpath` only where the texts differ: it asks the file system for every part of the path.
    if known != cwd and os.path.realpath(known) != os.path.realpath(cwd):
        message = f"The session belongs to another folder: open it with the cwd {known}"
        raise RequestFailed(INVALID_PARAMS, message, {"cwd": known})


async def _release(log: Log) -> None:
    """Release a log whatever the disk says: the lease is released even when the flush before it fails."""
    try:
        await log.release()
    except StoreFailed:
        pass  # the `committed` callback of each lost entry got the error


async def _release_all(logs: Iterable[Log]) -> None:
    for log in logs:
        await _release(log)


def _in_folder(request: ask.NewSession, cwd: str) -> ask.NewSession:
    return request if request.cwd == cwd else replace(request, cwd=cwd)


def _reply(core: SessionCore) -> ask.SessionOpened:
    return ask.SessionOpened(core.id, core.options or UNSET, core.commands or UNSET)
