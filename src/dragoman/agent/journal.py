"""Persist, then send, in that order: what the client saw, the disk has.

A journal stands between a session and its client's sink. What the session emits is appended to its log; once that is
committed, it is sent, in the same order. Committing goes on in the store's thread while the session goes on emitting:
the pieces of a message that come meanwhile are gathered, stored as one entry, and sent as the pieces they were. A
session that emits faster than the disk or the client can take waits.

An entry goes through these states, and a kill of the process leaves behind:

    gathered    text only, while another commit is under way      nothing: the client has not seen it either
    committing  appended to the log, in the store's thread        nothing, or the whole entry
    committed   on disk, waiting for its turn to be sent          the entry; a client that loads the session gets it
    sent        in the link's outbox                              the entry

After a failed commit nothing more is sent but what was committed before it (`_failed`), so the client never knows more
than the log. The next turn repairs the log, and raises while that fails.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from dragoman import limits
from dragoman.agent.client_services import EventSink, TextSink
from dragoman.agent.history import History
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
from dragoman.vocabulary.asking import Note, R, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import ClientCapabilities

if TYPE_CHECKING:
    from dragoman.agent.lent_servers import LentServers

_log: Final = logging.getLogger(__name__)

# What may wait for the disk or the wire: entries, and the pieces of text among them, each by itself.
WAITING: Final = 1024


class _Pieces(NamedTuple):
    """Pieces of one message that are stored as one entry and sent as they were emitted."""

    kind: str
    message_id: str
    texts: list[str]


class Journal:
    """The sink of a session that is stored: it writes to the log, and sends what is committed to the client's sink.

    Used in the event loop only; the log calls `_on_committed` there as well, once for each append and in order.
    """

    def __init__(self, log: Log, sink: EventSink) -> None:
        self.log: Final = log
        self._sink = sink
        # Appended to the log and not sent yet. The first `_committed` of them are on disk; of the `_committing` behind
        # them that is not known.
        self._unsent: deque[Entry | _Pieces] = deque()
        self._committed = 0
        self._committing = 0
        # Text emitted while something is being committed. One entry of many pieces costs the disk as much as one of
        # one piece, so a fast model cannot outrun a slow disk. Not in `_unsent` yet.
        self._gathered: _Pieces | None = None
        self._waiting = 0  # all of the above, counted in pieces
        self._is_connected = True  # False: the client is gone, entries are stored and not sent
        self._failed: StoreFailed | None = None
        self._sender: asyncio.Task[None] | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._streams: dict[tuple[str, str], TextSink] = {}

    def __repr__(self) -> str:
        state = "failed" if self._failed is not None else "open" if self._is_connected else "disconnected"
        counts = f"waiting={self._waiting} committing={self._committing} committed={self._committed}"
        return f"<Journal {self.log.meta.id} {state} {counts}>"

    @property
    def client(self) -> ClientCapabilities:
        """What the client can do for the agent."""
        return self._sink.client

    def lent_servers(self) -> "LentServers":
        """Return the MCP servers that the client lends; what they say is no part of the log."""
        return self._sink.lent_servers()

    # -- the sink of a session ---------------------------------------------------------------------------------------

    async def send_event(self, session_id: str, event: AnyEvent) -> None:
        """Store an event, then send it. Returns when it is appended; waits while too much is waiting."""
        self.append(EventEntry(event))
        await self.wait_for_room()

    def text_stream(self, session_id: str, kind: str, message_id: str) -> "JournalStream":
        """Return a sink for a message that is stored and sent in pieces."""
        return JournalStream(self, kind, message_id)

    async def ask(self, request: Request[R]) -> R:
        """Send a request once everything before it was sent, and wait for its reply."""
        await self.drain()
        return await self._sink.ask(request)

    async def send_notification(self, note: Note) -> None:
        """Send a notification once everything before it was sent."""
        await self.drain()
        await self._sink.send_notification(note)

    # -- notes and prompts -------------------------------------------------------------------------------------------

    async def record_note(self, kind: str, value: object) -> None:
        """Write a note to the log, in its place among the events. It is not sent."""
        self.append(NoteEntry(kind, value))
        await self.wait_for_room()

    async def read_notes(self, kind: str) -> list[object]:
        """Return the values of all notes of this kind, in order. Reads the whole log."""
        found: list[object] = []
        async for records in self.log.read():
            for record in records:
                if isinstance(record.entry, NoteEntry) and record.entry.kind == kind:
                    found.append(record.entry.value)
        return found

    async def persist(self, event: AnyEvent) -> None:
        """Write an event that `send_persisted` sends later; it is on disk when this returns."""
        self._raise_failure()
        self._append_gathered()
        # Past `_unsent`: its reply has to be sent between the commit and the event itself.
        self.log.append((EventEntry(event),), lambda error: None)
        await self.log.flush()

    async def send_persisted(self, event: AnyEvent) -> None:
        """Send an event that is on disk, after everything before it was sent."""
        await self.drain()
        await self._sink.send_event(self.log.meta.id, event)

    async def send_unstored(self, event: AnyEvent) -> None:
        """Send an event that is not in the log: the end of a turn, when nothing can be stored any more."""
        while self._sender is not None:
            await self._wait()
        await self._sink.send_event(self.log.meta.id, event)

    # -- entries -----------------------------------------------------------------------------------------------------

    def append(self, entry: Entry) -> None:
        """Append an entry; it is sent when it is on disk. Raise `StoreFailed` after a failed commit."""
        self._raise_failure()
        self._append_gathered()
        self._waiting += 1
        self._append(entry, entry)

    def append_text(self, kind: str, message_id: str, text: str) -> bool:
        """Append a piece of a message's text; it is sent when it is on disk. True: full, wait for room.

        Pieces that come during a commit are gathered into one entry. Raise `StoreFailed` after a failed commit.
        """
        if self._failed is not None:  # not `_raise_failure`: this is called for every piece of text
            raise self._failed
        self._waiting += 1
        gathered = self._gathered
        if gathered is not None and gathered.message_id == message_id and gathered.kind == kind:
            gathered.texts.append(text)
        else:
            self._append_gathered()
            self._gathered = _Pieces(kind, message_id, [text])
            # The disk is idle: a lone piece is committed at once, so a slow model is not made slower.
            if not self._committing:
                self._append_gathered()
        return self._waiting >= WAITING

    async def wait_for_room(self) -> None:
        """Wait while too much is waiting for the disk or the client. Raise `StoreFailed` after a failed commit."""
        while self._waiting >= WAITING and self._failed is None:
            await self._wait()
        self._raise_failure()

    async def drain(self) -> None:
        """Wait until everything appended was sent; the sender waits for the client."""
        while (self._waiting or self._sender is not None) and self._failed is None:
            await self._wait()
        self._raise_failure()

    async def repair(self) -> None:
        """After a failure: end in the log what was cut off, before anything new is appended. Raises while it lasts.

        What failed was never sent, so the log alone says what the client saw: it is read again and completed like one
        that a kill has cut off.
        """
        if self._failed is None:
            return
        _log.warning("session %s: repairing the log after a failed commit", self.log.meta.id[limits.SHORT_ID])
        history = History()
        async for records in self.log.read():
            history.apply(record.entry for record in records)
        self.log.append(history.repairs(), lambda error: None)
        await self.log.flush()
        self._failed = None

    def _raise_failure(self) -> None:
        if self._failed is not None:
            raise self._failed

    def _append_gathered(self) -> None:
        pieces, self._gathered = self._gathered, None
        if pieces is not None:
            self._append(TextEntry(pieces.kind, pieces.message_id, "".join(pieces.texts)), pieces)

    def _append(self, entry: Entry, unsent: "Entry | _Pieces") -> None:
        self._unsent.append(unsent)
        self._committing += 1
        self.log.append((entry,), self._on_committed)

    def _on_committed(self, error: StoreFailed | None) -> None:
        self._committing -= 1
        if error is not None:
            # What is not on disk is not sent; what was committed before it still is. Later appends fail with the same
            # commit (a log has no holes), so this is called again for each of them and finds nothing left to drop.
            if self._failed is None:
                _log.warning("session %s: a commit failed: %s", self.log.meta.id[limits.SHORT_ID], error)
                self._failed = error
                if self._gathered is not None:
                    self._waiting -= len(self._gathered.texts)
                    self._gathered = None
                while len(self._unsent) > self._committed:
                    self._waiting -= _count(self._unsent.pop())
            self._wake()
            return
        self._committed += 1
        if not self._committing:
            # The disk is idle: what was gathered meanwhile is the next entry.
            self._append_gathered()
        if self._sender is None:
            self._sender = asyncio.get_running_loop().create_task(self._send_committed())

    async def _send_committed(self) -> None:
        """Send what is committed, in order, until nothing is left."""
        try:
            while self._committed:
                entry = self._unsent.popleft()
                self._committed -= 1
                try:
                    if self._is_connected:
                        await self._send(entry)
                except LinkClosed:
                    self._is_connected = False  # the client is gone: the rest is written to the log and not sent
                finally:
                    self._waiting -= _count(entry)
                # At half of the bound: waking a session for each free place would have it wait again at once.
                if self._waiters and self._waiting < WAITING // 2:
                    self._wake()
        finally:
            self._sender = None
            self._wake()
            # Left by an exception: what is still committed must not wait for the next commit to be sent.
            if self._committed:
                self._sender = asyncio.get_running_loop().create_task(self._send_committed())

    async def _send(self, entry: "Entry | _Pieces") -> None:
        if isinstance(entry, _Pieces):
            stream = self._stream(entry.kind, entry.message_id)
            put = stream.put
            for text in entry.texts:
                if put(text):
                    await stream.wait_for_room()
        elif isinstance(entry, EventEntry):
            await self._sink.send_event(self.log.meta.id, entry.event)

    def _stream(self, kind: str, message_id: str) -> TextSink:
        """Return the sink of the message that is being sent. One is enough: messages come one after the other."""
        stream = self._streams.get((kind, message_id))
        if stream is None:
            stream = self._sink.text_stream(self.log.meta.id, kind, message_id)
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
    """One message being stored and sent in pieces."""

    __slots__ = ("_journal", "_kind", "_message_id")

    def __init__(self, journal: Journal, kind: str, message_id: str) -> None:
        self._journal = journal
        self._kind = kind
        self._message_id = message_id

    def put(self, text: str) -> bool:
        """Append a piece. True: the queue is full, `wait_for_room` before the next one."""
        return self._journal.append_text(self._kind, self._message_id, text)

    async def wait_for_room(self) -> None:
        """Wait until the disk and the client have caught up."""
        await self._journal.wait_for_room()


def _count(unsent: "Entry | _Pieces") -> int:
    return len(unsent.texts) if isinstance(unsent, _Pieces) else 1


# -- failures of a store, as the client is told of them --------------------------------------------------------------


@contextmanager
def client_errors(session_id: str) -> Iterator[None]:
    """Raise a `StoreFailed` of the block as the `RequestFailed` that the client gets as its reply."""
    try:
        yield
    except StoreFailed as error:
        raise client_error(session_id, error) from error


def client_error(session_id: str, error: StoreFailed) -> RequestFailed:
    """Return the reply for a failure of the store: a code, a sentence, and a reason that a program can read."""
    match error:
        case SessionMissing():
            return session_not_found(session_id)
        case SessionOpenHere():
            message = "The session is already open in this process, on another connection: close it there first"
            return session_is_open(message)
        case SessionHeld():
            message = "The session is open in another process: close it there first"
            return RequestFailed(INVALID_REQUEST, message, {"reason": "held"})
        case SessionDamaged():
            return RequestFailed(INTERNAL_ERROR, "The session cannot be read", {"reason": "damaged"})
        case BadCursor():
            return RequestFailed(INVALID_PARAMS, "Bad cursor")
        case _:
            return RequestFailed(INTERNAL_ERROR, str(error).capitalize(), {"reason": "store"})


def session_is_open(message: str) -> RequestFailed:
    """Return the error for a session that is open, opening or closing here; `message` says where and what to do."""
    return RequestFailed(INVALID_REQUEST, message, {"reason": "open"})


def session_not_found(session_id: str) -> RequestFailed:
    """Return the error for a session id that is neither open nor stored."""
    return RequestFailed(NOT_FOUND, "Session not found", {"sessionId": echo(session_id)})


def session_is_busy() -> RequestFailed:
    """Return the error for a request that a running turn excludes."""
    return RequestFailed(INVALID_REQUEST, "The session is busy", {"reason": "busy"})
