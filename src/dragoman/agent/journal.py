"""Persist, say, send, in that order: what the client saw, the disk has.

A journal stands between a session and its client. What the session says is appended to its log; once that is
committed, it is said, in the same order. Committing goes on in the store's thread while the session goes on speaking,
so a flood is committed and said in groups; a session that speaks too fast for the disk or the client waits.
"""

import asyncio
from collections import deque
from typing import Final

from dragoman.agent.speech import Speech, TextStream
from dragoman.agent.story import Story
from dragoman.errors import LinkClosed
from dragoman.store.contract import Log, StoreFailed
from dragoman.store.entries import Entry, Happened, Noted, Said
from dragoman.vocabulary.asking import Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import ClientCapabilities

# Entries that may wait for the disk or the wire, and pieces of text among them count like everything else.
WAITING: Final = 1024


class Journal:
    """The speech of a session that is kept."""

    def __init__(self, log: Log, speech: Speech) -> None:
        self.log: Final = log
        self._speech = speech
        self._unsaid: deque[Entry] = deque()
        self._committed = 0
        self._failed: StoreFailed | None = None
        self._speaking: asyncio.Task[None] | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._streams: dict[tuple[str, str], TextStream] = {}

    @property
    def client(self) -> ClientCapabilities:
        """What the client can do for us."""
        return self._speech.client

    async def tell(self, session_id: str, event: AnyEvent) -> None:
        """Keep an event, then say it. Returns when it is on its way, waits when too much is."""
        self.put(Happened(event))
        await self.room()

    def text_stream(self, session_id: str, kind: str, message_id: str) -> "JournalStream":
        """A message to be kept and said in pieces."""
        return JournalStream(self, kind, message_id)

    async def ask(self, request: Request) -> Reply:
        """Ask after everything before it was said."""
        await self.said()
        return await self._speech.ask(request)

    async def note(self, note: Note) -> None:
        """Tell after everything before it was said."""
        await self.said()
        await self._speech.note(note)

    async def remember(self, kind: str, value: object) -> None:
        """Keep something of the brain's own, in its place among the events."""
        self.put(Noted(kind, value))
        await self.room()

    async def recall(self, kind: str) -> list[object]:
        """What the brain has kept under this name, in order."""
        found: list[object] = []
        async for records in self.log.read():
            for record in records:
                if isinstance(record.entry, Noted) and record.entry.kind == kind:
                    found.append(record.entry.value)
        return found

    def put(self, entry: Entry) -> bool:
        """Append an entry; it is said when it is on disk. True: much is waiting."""
        if self._failed is not None:
            raise self._failed
        self._unsaid.append(entry)
        self.log.append((entry,), self._on_committed)
        return len(self._unsaid) >= WAITING

    async def room(self) -> None:
        """Wait until not too much is waiting."""
        while len(self._unsaid) >= WAITING and self._failed is None:
            await self._wait()
        if self._failed is not None:
            raise self._failed

    async def said(self) -> None:
        """Wait until everything kept was said; what is being said waits for the client."""
        while (self._unsaid or self._speaking is not None) and self._failed is None:
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
        story = Story()
        async for records in self.log.read():
            story.take(record.entry for record in records)
        self.log.append(story.repairs(), lambda error: None)
        await self.log.flush()
        self._failed = None

    def _on_committed(self, error: StoreFailed | None) -> None:
        if error is not None:
            # What is not on disk is not said; what was committed before it still is.
            if self._failed is None:
                self._failed = error
                while len(self._unsaid) > self._committed:
                    self._unsaid.pop()
            self._wake()
            return
        self._committed += 1
        if self._speaking is None:
            self._speaking = asyncio.get_running_loop().create_task(self._speak())

    async def _speak(self) -> None:
        """Say what is committed, in order."""
        unsaid = self._unsaid
        message: tuple[str, str] | None = None
        try:
            while self._committed:
                entry = unsaid.popleft()
                self._committed -= 1
                if entry.__class__ is Said:
                    kind, message_id, text = entry
                    if message != (kind, message_id):
                        message = (kind, message_id)
                        stream = self._stream(kind, message_id)
                    if stream.put(text):
                        await stream.breathe()
                elif isinstance(entry, Happened):
                    await self._speech.tell(self.log.meta.id, entry.event)
                if self._waiters and len(unsaid) < WAITING // 2:
                    self._wake()
        except LinkClosed:
            # Nobody listens any more; the log goes on without them.
            self._unsaid.clear()
            self._committed = 0
        finally:
            self._speaking = None
            self._wake()
            if self._committed:
                self._speaking = asyncio.get_running_loop().create_task(self._speak())

    def _stream(self, kind: str, message_id: str) -> TextStream:
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
        return self._journal.put(Said(self._kind, self._message_id, text))

    async def breathe(self) -> None:
        """Let the disk and the wire catch up."""
        await self._journal.room()
