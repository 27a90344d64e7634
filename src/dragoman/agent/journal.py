"""Persist, say, send, in that order: what the client saw, the disk has.

A journal stands between a session and its client. What the session says is appended to its log; once that is
committed, it is said, in the same order. Committing goes on in the store's thread while the session goes on speaking:
the pieces of a message that come meanwhile are gathered, kept as one entry, and said as the pieces they were. A
session that speaks too fast for the disk or the client waits.

A log also has notes among the events: the options as they were left, the MCP servers the session was begun with, and
the answers to permission requests that count for the rest of it (`read_settings`). Of the servers only a fingerprint is
kept: their settings hold secrets.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Iterable
from typing import Final, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from dragoman.agent.event_sink import EventSink, TextSink
from dragoman.agent.history import History
from dragoman.agent.permission import NOTE as PERMISSIONS
from dragoman.agent.session import Session
from dragoman.errors import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, NOT_FOUND, LinkClosed, RequestFailed, echo
from dragoman.store.contract import (
    BadCursor,
    Log,
    SessionDamaged,
    SessionHeld,
    SessionMissing,
    SessionOpenHere,
    StoreFailed,
)
from dragoman.store.entries import Entry, EventEntry, NoteEntry, TextEntry
from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.asking import Note, R, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import ClientCapabilities
from dragoman.vocabulary.options import Option, Select, Toggle

T = TypeVar("T")


async def told(session_id: str, work: Awaitable[T]) -> T:
    """What the store does; if it fails, `RequestFailed` with what the client is told."""
    try:
        return await work
    except StoreFailed as error:
        raise as_told(session_id, error) from error


def as_told(session_id: str, error: StoreFailed) -> RequestFailed:
    """One failure of a store, in the client's words."""
    match error:
        case SessionMissing():
            return missing(session_id)
        case SessionOpenHere():
            return open_here("The session is already open in this process, on another connection: close it there first")
        case SessionHeld():
            message = "The session is open in another process: close it there first"
            return RequestFailed(INVALID_REQUEST, message, {"reason": "held"})
        case SessionDamaged():
            return RequestFailed(INTERNAL_ERROR, "The session cannot be read", {"reason": "damaged"})
        case BadCursor():
            return RequestFailed(INVALID_PARAMS, "Bad cursor")
        case _:
            return RequestFailed(INTERNAL_ERROR, str(error).capitalize(), {"reason": "store"})


def open_here(message: str) -> RequestFailed:
    """Return the error for a session that is open, opening or closing here; `message` says where and what to do."""
    return RequestFailed(INVALID_REQUEST, message, {"reason": "open"})


def missing(session_id: str) -> RequestFailed:
    """Return the error for a session id that is neither open nor stored."""
    return RequestFailed(NOT_FOUND, "Session not found", {"sessionId": echo(session_id)})


# What may wait for the disk or the wire: entries, and the pieces of text among them, each by itself.
WAITING: Final = 1024


class _Pieces(NamedTuple):
    """Pieces of one message that were kept together."""

    kind: str
    message_id: str
    texts: list[str]


class Journal:
    """The speech of a session that is kept."""

    def __init__(self, log: Log, speech: EventSink) -> None:
        self.log: Final = log
        self._speech = speech
        self._unsaid: deque[Entry | _Pieces] = deque()  # appended to the log, and not said yet
        self._committed = 0  # so many of them are on disk
        self._committing = 0  # and of so many we do not know
        self._gathered: _Pieces | None = None  # said by the session while something is being committed
        self._waiting = 0
        self._heard = True
        self._failed: StoreFailed | None = None
        self._speaking: asyncio.Task[None] | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._streams: dict[tuple[str, str], TextSink] = {}

    @property
    def speech(self) -> EventSink:
        """Where what is kept is said, for what is not to be kept."""
        return self._speech

    @property
    def client(self) -> ClientCapabilities:
        """What the client can do for us."""
        return self._speech.client

    async def tell(self, session_id: str, event: AnyEvent) -> None:
        """Keep an event, then say it. Returns when it is on its way, waits when too much is."""
        self.put(EventEntry(event))
        await self.room()

    def text_stream(self, session_id: str, kind: str, message_id: str) -> "JournalStream":
        """A message to be kept and said in pieces."""
        return JournalStream(self, kind, message_id)

    async def ask(self, request: Request[R]) -> R:
        """Ask after everything before it was said."""
        await self.said()
        return await self._speech.ask(request)

    async def note(self, note: Note) -> None:
        """Tell after everything before it was said."""
        await self.said()
        await self._speech.note(note)

    async def remember(self, kind: str, value: object) -> None:
        """Keep something of the brain's own, in its place among the events."""
        self.put(NoteEntry(kind, value))
        await self.room()

    async def recall(self, kind: str) -> list[object]:
        """What the brain has kept under this name, in order."""
        found: list[object] = []
        async for records in self.log.read():
            for record in records:
                if isinstance(record.entry, NoteEntry) and record.entry.kind == kind:
                    found.append(record.entry.value)
        return found

    async def keep(self, event: AnyEvent) -> None:
        """Keep an event that is said later, by `say_kept`; it is on disk when this returns."""
        if self._failed is not None:
            raise self._failed
        self._append_gathered()
        self.log.append((EventEntry(event),), lambda error: None)
        await self.log.flush()

    async def say_kept(self, event: AnyEvent) -> None:
        """Say an event that is on disk, after everything before it was said."""
        await self.said()
        await self._speech.tell(self.log.meta.id, event)

    def put(self, entry: Entry) -> None:
        """Append an entry; it is said when it is on disk."""
        if self._failed is not None:
            raise self._failed
        self._append_gathered()
        self._waiting += 1
        self._append(entry, entry)

    def put_text(self, kind: str, message_id: str, text: str) -> bool:
        """Append a piece of a message's text; it is sent when it is on disk. True: the queue is full, wait for `room`.

        Pieces that come during a commit are gathered into one entry. Raise `StoreFailed` after a failed commit.
        """
        if self._failed is not None:
            raise self._failed
        self._waiting += 1
        gathered = self._gathered
        if gathered is not None and gathered.message_id == message_id and gathered.kind == kind:
            gathered.texts.append(text)
        else:
            self._append_gathered()
            self._gathered = _Pieces(kind, message_id, [text])
            if not self._committing:
                self._append_gathered()
        return self._waiting >= WAITING

    async def room(self) -> None:
        """Wait until not too much is waiting."""
        while self._waiting >= WAITING and self._failed is None:
            await self._wait()
        if self._failed is not None:
            raise self._failed

    async def said(self) -> None:
        """Wait until everything kept was said; what is being said waits for the client."""
        while (self._waiting or self._speaking is not None) and self._failed is None:
            await self._wait()
        if self._failed is not None:
            raise self._failed

    async def say_unkept(self, event: AnyEvent) -> None:
        """The last word when nothing can be kept any more: that it could not be kept."""
        while self._speaking is not None:
            await self._wait()
        await self._speech.tell(self.log.meta.id, event)

    async def mend(self) -> None:
        """After a failure: end in the log what was cut off, before anything new is kept. Raises while it lasts."""
        if self._failed is None:
            return
        story = History()
        async for records in self.log.read():
            story.apply(record.entry for record in records)
        self.log.append(story.repairs(), lambda error: None)
        await self.log.flush()
        self._failed = None

    def _append_gathered(self) -> None:
        pieces, self._gathered = self._gathered, None
        if pieces is not None:
            self._append(TextEntry(pieces.kind, pieces.message_id, "".join(pieces.texts)), pieces)

    def _append(self, entry: Entry, unsaid: "Entry | _Pieces") -> None:
        self._unsaid.append(unsaid)
        self._committing += 1
        self.log.append((entry,), self._on_committed)

    def _on_committed(self, error: StoreFailed | None) -> None:
        self._committing -= 1
        if error is not None:
            # What is not on disk is not said; what was committed before it still is.
            if self._failed is None:
                self._failed = error
                if self._gathered is not None:
                    self._waiting -= len(self._gathered.texts)
                    self._gathered = None
                while len(self._unsaid) > self._committed:
                    self._waiting -= _count(self._unsaid.pop())
            self._wake()
            return
        self._committed += 1
        if not self._committing:
            self._append_gathered()
        if self._speaking is None:
            self._speaking = asyncio.get_running_loop().create_task(self._speak())

    async def _speak(self) -> None:
        """Say what is committed, in order."""
        try:
            while self._committed:
                entry = self._unsaid.popleft()
                self._committed -= 1
                try:
                    if self._heard:
                        await self._say(entry)
                except LinkClosed:
                    self._heard = False  # the client is gone: the rest is written to the log and not sent
                finally:
                    self._waiting -= _count(entry)
                if self._waiters and self._waiting < WAITING // 2:
                    self._wake()
        finally:
            self._speaking = None
            self._wake()
            if self._committed:
                self._speaking = asyncio.get_running_loop().create_task(self._speak())

    async def _say(self, entry: "Entry | _Pieces") -> None:
        if isinstance(entry, _Pieces):
            stream = self._stream(entry.kind, entry.message_id)
            put = stream.put
            for text in entry.texts:
                if put(text):
                    await stream.breathe()
        elif isinstance(entry, EventEntry):
            await self._speech.tell(self.log.meta.id, entry.event)

    def _stream(self, kind: str, message_id: str) -> TextSink:
        stream = self._streams.get((kind, message_id))
        if stream is None:
            stream = self._speech.text_stream(self.log.meta.id, kind, message_id)
            self._streams = {(kind, message_id): stream}
        return stream

    async def _wait(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


class JournalStream:
    """One message being kept and said in pieces."""

    __slots__ = ("_journal", "_kind", "_message_id")

    def __init__(self, journal: Journal, kind: str, message_id: str) -> None:
        self._journal = journal
        self._kind = kind
        self._message_id = message_id

    def put(self, text: str) -> bool:
        """Say a piece. True: much is waiting, `breathe` before the next one."""
        return self._journal.put_text(self._kind, self._message_id, text)

    async def breathe(self) -> None:
        """Let the disk and the wire catch up."""
        await self._journal.room()


def _count(unsaid: "Entry | _Pieces") -> int:
    return len(unsaid.texts) if isinstance(unsaid, _Pieces) else 1


_OPTIONS: Final = "options"
_SERVERS: Final = "mcp servers"


class StoredSettings(NamedTuple):
    """A log that was read."""

    story: History
    options: dict[str, object]  # values by the id of their option
    servers: object  # the fingerprint, or None if the log has none
    permissions: list[object]  # notes of answers that count for the rest of the session

    def restored(self, options: Iterable[Option]) -> list[Option]:
        """The options with the values they were left with, where they still have them."""
        return [_restored(option, self.options) for option in options]


async def read_settings(session_id: str, log: Log) -> StoredSettings:
    """Everything a log keeps, read in one go."""
    story = History()
    options: dict[str, object] = {}
    servers: object = None
    permissions: list[object] = []
    try:
        async for records in log.read():
            entries = [record.entry for record in records]
            story.apply(entries)
            for entry in entries:
                if isinstance(entry, NoteEntry) and entry.kind == _OPTIONS and isinstance(entry.value, dict):
                    options.update(entry.value)
                elif isinstance(entry, NoteEntry) and entry.kind == _SERVERS:
                    servers = entry.value
                elif isinstance(entry, NoteEntry) and entry.kind == PERMISSIONS:
                    permissions.append(entry.value)
    except StoreFailed as error:
        raise as_told(session_id, error) from error
    return StoredSettings(story, options, servers, permissions)


async def keep_option(session: Session, config_id: str, value: object) -> None:
    """Remember an option over restarts; it is on disk when this returns."""
    if session.journal is not None:
        await told(session.id, _keep(session, session.journal, {config_id: value}))


async def _keep(session: Session, journal: Journal, options: dict[str, object]) -> None:
    if session.turn is None:
        await journal.mend()  # a running turn is told of the failure itself
    await journal.remember(_OPTIONS, options)
    await journal.log.flush()


async def keep_servers(session: Session) -> None:
    """Remember with which servers the session was begun."""
    await told(session.id, session.record_note(_SERVERS, fingerprint(session.opening)))


def fingerprint(request: ask.NewSession | ask.ResumeSession) -> str:
    """The servers as one short text that tells nothing of their secrets; their order counts."""
    import hashlib

    return hashlib.sha256(msgspec.json.encode(request.mcp_servers or [])).hexdigest()


def _restored(option: Option, values: dict[str, object]) -> Option:
    """An option with the value it was left with, if it still has that value."""
    if not isinstance(option, (Select, Toggle)) or option.config_id not in values:
        return option
    value = values[option.config_id]
    if isinstance(option, Toggle):
        return replace(option, current_value=value) if isinstance(value, bool) else option
    return replace(option, current_value=value) if any(c.value == value for c in option.choices()) else option
