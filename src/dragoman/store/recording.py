"""Record the session of another agent, as it passes: its events go into a log of our own form, in a store of its own.

The agent keeps its session as it likes; this is a copy to read, to search and to hand to another agent. So nothing
waits for it and nothing fails with it: `record` only puts the event into a list, and one task writes what is there.

A recorder is in one of these states:

    opening      its log is being opened or made; events wait in the list
    recording    events are written as they come, those that came during one commit together
    ended        the log is full, another process records this session, or the disk fails; later events are dropped

What was dropped while the disk was behind is a note in the log (`GAP`), so a reader knows that something is missing.
"""

import asyncio
import hashlib
import logging
import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from dragoman.limits import MIB
from dragoman.store.contract import Log, SessionHeld, SessionMeta, SessionMissing, Store, StoreFailed
from dragoman.store.entries import (
    Entry,
    EventEntry,
    NoteEntry,
    TextEntry,
    UnwritableEntry,
    encode_entry,
    join_texts,
)
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import (
    CHUNK_TYPES,
    AnyEvent,
    Chunk,
    CommandsChanged,
    OptionsChanged,
    SessionInfoChanged,
    UserMessage,
    UserMessageChunk,
)

_log: Final = logging.getLogger(__name__)

# Notes in the log: whose session it is, that events are missing, and that the log is full.
ORIGIN: Final = "recorded"
GAP: Final = "recording gap"
FULL: Final = "recording full"
# Of one session, as its rows have them. What comes later is not recorded.
SESSION_BYTES: Final = 64 * MIB
# What may wait for the disk; beyond that events are dropped until it has caught up.
WAITING_BYTES: Final = 16 * MIB
# Sessions that were used for the last time so many days ago are deleted, and the oldest of more than so many.
KEPT_SESSIONS: Final = 1000
# The end of a process waits so long for the disk.
CLOSE_SECONDS: Final = 2.0
_DAY: Final = 24 * 3600 * 1_000_000
_TITLE_CHARACTERS: Final = 80
_KINDS: Final = {chunk: kind for kind, chunk in CHUNK_TYPES.items()}
# About what the agent offers, which another agent does not; every turn may repeat them.
_NOT_RECORDED: Final = (CommandsChanged, OptionsChanged)


def recorded_id(agent: str, session_id: str) -> str:
    """Return the id of the recording of a session: the same for every client that records it on this machine."""
    digest = hashlib.sha256(f"{agent}\0{session_id}".encode("utf-8", "surrogatepass")).hexdigest()
    name = re.sub("[^a-z0-9]+", "-", agent.lower()).strip("-")[:24].strip("-") or "agent"
    return f"{name}-{digest[:24]}"


def recorded_agent(session_id: str) -> str:
    """Return whose session a recording is, as far as its id has the name; empty: it is no recording."""
    return "" if session_id.startswith("sess_") else session_id.rpartition("-")[0]


class SessionRecorder:
    """Records one session of the agent called `agent`. Made inside a running loop, used from there alone.

    `on_failure` is called once, with a sentence, if the disk does not take the recording.
    """

    def __init__(
        self, store: Store, agent: str, session_id: str, cwd: str, *, on_failure: Callable[[str], None]
    ) -> None:
        self.id: Final = recorded_id(agent, session_id)
        self._store = store
        self._meta = SessionMeta(self.id, cwd)
        self._origin: Final = NoteEntry(ORIGIN, {"agent": agent, "session": session_id})
        self._on_failure = on_failure
        # `_replayed` is empty once the log is open: until then nothing says whether the replay is new to us. A replay
        # comes before every other event of a session, so the order of the two lists is the order of the events.
        self._waiting: list[Entry] = []
        self._replayed: list[Entry] = []
        self._takes_replay: bool | None = None  # None until the log is open
        self._waiting_bytes = 0
        self._dropped = 0
        self._written_bytes = 0
        self._title = ""
        self._is_used = False
        self._has_ended = False
        self._is_closing = False
        self._news = asyncio.Event()
        self._all_written = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._write())

    def __repr__(self) -> str:
        state = "ended" if self._has_ended else "closing" if self._is_closing else "recording"
        return f"<SessionRecorder {self.id} {state} waiting={len(self._waiting)} written={self._written_bytes} bytes>"

    def record(self, event: AnyEvent, *, is_replay: bool = False) -> None:
        """Record an event; do not wait. One of a replay counts only if the session was not recorded before."""
        if self._has_ended or self._is_closing or isinstance(event, _NOT_RECORDED):
            return
        # A session that is opened and never used is not recorded.
        self._is_used = self._is_used or is_replay or isinstance(event, UserMessage | UserMessageChunk)
        if not self._is_used or (is_replay and self._takes_replay is False):
            return
        entry = _entry_of(event)
        size = _size_of(entry)
        if size is None or self._waiting_bytes + size > WAITING_BYTES:
            self._dropped += 1
            return
        self._waiting_bytes += size
        (self._replayed if is_replay and self._takes_replay is None else self._waiting).append(entry)
        self._note_title(event)
        self._news.set()

    async def flush(self) -> None:
        """Wait until everything recorded so far is on disk, or the recording has ended."""
        if self._has_ended:
            return
        self._all_written.clear()
        self._news.set()
        await self._all_written.wait()

    @property
    def has_ended(self) -> bool:
        """Return whether nothing more is recorded, and the log is released."""
        return self._task.done()

    def end(self) -> None:
        """Record nothing more, and release the log when everything is written; do not wait."""
        self._is_closing = True
        self._news.set()

    async def close(self) -> None:
        """`end`, and wait for it. A second call waits as well."""
        self.end()
        await asyncio.shield(self._task)

    # -- the task --------------------------------------------------------------------------------------------------

    async def _write(self) -> None:
        log = None
        try:
            while not self._is_used and not self._is_closing:
                await self._wait_for_news()
            if self._is_used:
                log = await self._open()
                await self._write_until_closed(log)
        except SessionHeld:
            _log.debug("%s is recorded by another process", self.id)
        except StoreFailed as failure:
            self._on_failure(f"the session is not recorded any more: {failure}")
        finally:
            self._has_ended = True
            self._waiting.clear()
            self._replayed.clear()
            self._all_written.set()
            if log is not None:
                await self._release(log)

    async def _write_until_closed(self, log: Log) -> None:
        while not self._has_ended:
            await self._write_waiting(log)
            # Before the end is looked at: events that came during the commit are written too.
            if self._waiting:
                continue
            if self._is_closing:
                return
            await self._wait_for_news()

    async def _wait_for_news(self) -> None:
        self._all_written.set()
        await self._news.wait()
        self._news.clear()

    async def _open(self) -> Log:
        try:
            log = await self._store.open(self.id)
            self._takes_replay = False
        except SessionMissing:
            try:
                log = await self._store.create(self._meta)
            except StoreFailed as failure:
                return await self._open_of_other(failure)
            self._takes_replay = True
            self._waiting[:0] = [self._origin, *self._replayed]
        # Already recorded, when it was new: the agent only tells it again.
        self._replayed.clear()
        return log

    async def _open_of_other(self, failure: StoreFailed) -> Log:
        """Return the log that another process has made since it was missing: `SessionHeld` as long as it writes it.
        Raise `failure` if there is none."""
        try:
            log = await self._store.open(self.id)
        except SessionMissing:
            raise failure from None
        self._takes_replay = False
        self._replayed.clear()
        return log

    async def _write_waiting(self, log: Log) -> None:
        entries, self._waiting = self._waiting, []
        dropped, self._dropped = self._dropped, 0
        self._waiting_bytes = 0
        if dropped:
            entries.append(NoteEntry(GAP, {"events": dropped}))
        entries = join_texts(entries)
        self._written_bytes += sum(_size_of(entry) or 0 for entry in entries)
        if self._written_bytes > SESSION_BYTES:
            # The entries that would go over the bound are left out whole: half of a turn helps no reader.
            self._has_ended = True
            entries = [NoteEntry(FULL, {})]
        if entries:
            log.append(entries, _ignore)
            await log.flush()
        if self._title and self._title != log.meta.title:
            await log.change(title=self._title)

    async def _release(self, log: Log) -> None:
        try:
            await log.release()
        except StoreFailed as failure:
            _log.debug("%s: %s", self.id, failure)

    def _note_title(self, event: AnyEvent) -> None:
        if isinstance(event, SessionInfoChanged) and isinstance(event.title, str):
            self._title = event.title[:_TITLE_CHARACTERS]
        elif not self._title and isinstance(event, UserMessage | UserMessageChunk):
            content = [event.content] if isinstance(event, UserMessageChunk) else event.content or []
            texts = [block.text.strip() for block in content if isinstance(block, Text) and block.text.strip()]
            self._title = texts[0].partition("\n")[0][:_TITLE_CHARACTERS] if texts else ""


class Recordings:
    """The recordings of one agent's sessions in one process.

    Deletes what was not used for `days`. `on_failure` as of `SessionRecorder`.
    """

    def __init__(self, store: Store, agent: str, *, days: int, on_failure: Callable[[str], None]) -> None:
        self._store = store
        self._agent = agent
        self._days = days
        self._on_failure = on_failure
        self._recorders: set[SessionRecorder] = set()
        self._cleaning: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Recordings {self._agent} sessions={len(self._recorders)}>"

    def of(self, session_id: str, cwd: str) -> SessionRecorder:
        """Return a recorder of a session."""
        if self._cleaning is None:
            self._cleaning = asyncio.ensure_future(self._clean())
        # Sessions of a server come and go for months: those that are closed are forgotten with the next one.
        self._recorders = {one for one in self._recorders if not one.has_ended}
        recorder = SessionRecorder(self._store, self._agent, session_id, cwd, on_failure=self._on_failure)
        self._recorders.add(recorder)
        return recorder

    async def close(self) -> None:
        """Write what waits and close the store; waits for the disk for at most `CLOSE_SECONDS`."""
        # What is old is deleted the next time.
        if self._cleaning is not None:
            self._cleaning.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                for recorder in self._recorders:
                    await recorder.close()
                await self._store.close()

    async def _clean(self) -> None:
        with suppress(StoreFailed):
            await delete_old_recordings(self._store, time.time_ns() // 1000, self._days)


async def delete_old_recordings(store: Store, now: int, days: int) -> None:
    """Delete recordings that were not used for so many days, and the oldest beyond `KEPT_SESSIONS`; `now` in
    microseconds. Those that are held, or cannot be deleted, stay."""
    seen = 0
    cursor = None
    old: list[str] = []
    while True:
        page = await store.list(cursor=cursor, archived="include")
        for meta in page.sessions:
            seen += 1
            if seen > KEPT_SESSIONS or meta.activity < now - days * _DAY:
                old.append(meta.id)
        cursor = page.cursor
        if cursor is None:
            break
    for session_id in old:
        with suppress(StoreFailed):
            await store.delete(session_id)


def _entry_of(event: AnyEvent) -> Entry:
    if isinstance(event, Chunk) and (kind := _KINDS.get(event.__class__)) is not None:
        text = event.text
        # Only a piece of plain text is a `TextEntry`; one with annotations or `_meta` is kept as the event that it is.
        if event == CHUNK_TYPES[kind](Text(text), message_id=event.message_id):
            return TextEntry(kind, event.message_id, text)
    return EventEntry(event)


def _size_of(entry: Entry) -> int | None:
    """Return about how many bytes an entry takes; None: it cannot be written."""
    if isinstance(entry, TextEntry):
        return len(entry.text) + 64
    try:
        return len(encode_entry(entry)[1]) + 64
    except UnwritableEntry:
        return None


def _ignore(failure: StoreFailed | None) -> None:
    """Do nothing when a commit ends: `Log.flush` raises its failure."""
