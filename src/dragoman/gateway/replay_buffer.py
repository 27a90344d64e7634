"""The last messages of one stream, numbered, for its current reader and for a reader that comes back.

Promises
- Messages have numbers 1, 2, 3, …; a reader that comes back names the last one it has and gets the next.
- At most `WINDOW_BYTES` are kept (an empty window takes one message of any size). What was let go before a reader
  had it is a gap, and the reader is told how many messages it misses.
- A reader that stops reading is ended with a stated code; the window stays, and it can come back.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Final, NamedTuple

from dragoman import limits
from dragoman.gateway.budget import ByteBudget

# All that is held for one stream, with or without a reader.
BUFFER_BYTES: Final = limits.OUTBOX_BYTES
# A reader that is behind by half of the window makes the agent wait; the other half is left for coming back.
LAG: Final = 2
LAG_BYTES: Final = BUFFER_BYTES // LAG
# What an agent may still say after it was asked to wait: even a small window keeps it for a reader that is here.
BURST_BYTES: Final = 512 * limits.KIB
# Taken by one write: what a socket takes at once, and few enough to be fair.
BATCH_BYTES: Final = 64 * limits.KIB
# A reader that is behind and takes less than a batch in this time has stopped reading.
STALL_SECONDS: Final = 10.0
# What all streams of one principal hold together, and those of all principals; some more, if many of them are new: a
# stream that speaks while it is too much keeps an equal share, and what others hold is let go when they speak.
HELD_EACH_BYTES: Final = 256 * limits.MIB
HELD_ALL_BYTES: Final = 1024 * limits.MIB
# What a message costs beside its bytes.
_OVERHEAD: Final = 64

# Close codes: WebSocket sends them, event streams name them in a comment.
TOO_SLOW: Final = 4008
REPLACED: Final = 4009
GOING_AWAY: Final = 1001
GONE: Final = 4004


class StreamMessage(NamedTuple):
    """A message as it stands in a stream."""

    number: int
    frame: bytes


class StreamPosition(NamedTuple):
    """Where the numbers of a window are: the newest message, and the last one that was given to a reader."""

    last: int
    seen: int


class StreamBatch(NamedTuple):
    """What a reader is given: how many messages it misses, then those that come next."""

    missed: int
    messages: list[StreamMessage]


class StreamReader:
    """The current reader of a `ReplayBuffer`: its position, and the code it was ended with. One at most."""

    def __init__(self, buffer: "ReplayBuffer", after: int) -> None:
        self.after = after
        self.code = 0  # not 0: it was ended, and why
        self.taken = 0  # bytes, ever
        self.moved = 0  # grows with every step in which something reaches it
        self.catching_up = False  # it came to a full window: what it gets too late is a gap, and does not end it
        self.nudged = False
        self.ended: Final = asyncio.Event()
        self._buffer = buffer
        self._since = 0.0  # when the oldest message of the batch on its way was put

    async def batch(self) -> StreamBatch | None:
        """Wait for the next messages and return them; None if the reader was ended, or nudged while there are none.

        A call means that the batch before it has been sent: that ends the time which `on_sent` gets.
        """
        buffer = self._buffer
        if self._since:
            buffer.sent(self._since)
            self._since = 0.0
        if not buffer.has_after(self.after):
            await buffer.wait(self)
        nudged, self.nudged = self.nudged, False
        if self.code or (nudged and not buffer.has_after(self.after)):
            return None
        self._since, buffer.since = buffer.since, 0.0
        return buffer.take(self)

    def nudge(self) -> None:
        """Let it look up, though there is nothing: a stream that is silent for too long is taken for dead."""
        self.nudged = True
        self._buffer.wake()

    def end(self, code: int) -> None:
        """No more for this one."""
        if not self.code:
            self.code = code
            self.ended.set()
            self._buffer.leave(self)

    def leave(self) -> None:
        """It went away by itself."""
        self.end(GONE)


class ReplayBuffer:
    """One stream. `on_room` is called when a reader that was behind has caught up, or is gone; `on_sent` with the
    seconds that the oldest message of a batch took from here through the socket."""

    def __init__(
        self,
        on_reader_change: Callable[[], None],
        *,
        limit: int = BUFFER_BYTES,
        on_sent: Callable[[float], None] | None = None,
        held: ByteBudget | None = None,
        place: StreamPosition | None = None,
    ) -> None:
        self.reader: StreamReader | None = None
        self.opened = False
        self.last = 0 if place is None else place.last  # the number of the newest message
        self.size = 0
        self.limit = limit
        self.since = 0.0  # when the oldest message that a reader waits for was put; 0: none, or there was no reader
        self._on_reader_change = on_reader_change
        self._on_sent = on_sent
        self._frames: deque[bytes] = deque()
        self._held = ByteBudget(HELD_EACH_BYTES) if held is None else held
        self._held.join()
        self._released = False
        self._seen = 0 if place is None else place.seen  # the last message that was given to a reader
        self._unread = 0  # bytes behind `_seen`
        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._awaited_until = self._loop.time() + STALL_SECONDS
        self._watch: asyncio.TimerHandle | None = None

    # -- writing -----------------------------------------------------------------------------------------------------

    def put(self, frame: bytes) -> None:
        """The next message. Takes everything; what no longer fits is let go from the other end."""
        cost = len(frame) + _OVERHEAD
        self._frames.append(frame)
        self.last += 1
        self.size += cost
        self._unread += cost
        too_much = self._held.add(cost) if not self._released else False
        if self.size > self.limit:
            self._let_go(self.limit)
        if too_much:
            self._let_go(min(self._held.share, self.limit))
        if self.reader is not None:
            if not self.since:
                self.since = self._loop.time()
            self._wake.set()
            if self._watch is None and self._unread * LAG > self.limit:
                self._watch_reader(self.reader)
        elif self._watch is None and self.behind:
            self._watch = self._loop.call_at(self._awaited_until, self._on_reader_timeout)

    @property
    def unread(self) -> int:
        """Return the bytes that no reader has been given yet, with the overhead of each message."""
        return self._unread

    @property
    def behind(self) -> bool:
        """Whether a reader that is here, or is about to come for the first time, should be waited for."""
        if self._unread * LAG <= self.limit:
            return False
        return self.reader is not None or (not self.opened and self._loop.time() < self._awaited_until)

    def drain(self) -> list[bytes]:
        """Return every unread frame and count it as read; the caller puts them into another stream."""
        frames = list(islice(self._frames, max(self._seen + 1 - self._first, 0), None))
        self._seen, self._unread = self.last, 0
        return frames

    # -- reading -----------------------------------------------------------------------------------------------------

    def read(self, after: int | None) -> StreamReader:
        """Read from behind a message; None, or a number we never gave: from where the last reader was."""
        if self.reader is not None:
            self.reader.end(REPLACED)
        if after is not None and 0 <= after <= self.last:
            self._seen = after
        start = max(self._seen + 1 - self._first, 0)
        self._unread = sum(len(frame) + _OVERHEAD for frame in islice(self._frames, start, None))
        self.opened = True
        self.since = 0.0  # what waited for a reader was not on its way
        self.reader = StreamReader(self, self._seen)
        self.reader.catching_up = self._unread * LAG > self.limit
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        return self.reader

    def has_after(self, number: int) -> bool:
        """Whether there is a newer message than this."""
        return number < self.last

    async def wait(self, reader: StreamReader) -> None:
        """Until there may be something new for this reader, or it was ended."""
        while not (reader.code or reader.nudged or self.has_after(reader.after)):
            self._wake.clear()
            await self._wake.wait()

    def wake(self) -> None:
        """There may be something new."""
        self._wake.set()

    def take(self, reader: StreamReader) -> StreamBatch:
        """The next messages for a reader."""
        missed = max(self._first - 1 - reader.after, 0)
        number = reader.after + missed
        messages: list[StreamMessage] = []
        size = 0
        for frame in islice(self._frames, number + 1 - self._first, None):
            if messages and size + len(frame) > BATCH_BYTES:
                break
            number += 1
            messages.append(StreamMessage(number, frame))
            size += len(frame)
        reader.after = self._seen = number
        reader.taken += size
        reader.moved += 1
        was_behind = self.behind
        self._unread -= size + _OVERHEAD * len(messages)
        if was_behind and not self.behind:
            reader.catching_up = False
            self._on_reader_change()
        return StreamBatch(missed, messages)

    def sent(self, since: float) -> None:
        """A batch has left, whose oldest message was put then."""
        if self._on_sent is not None:
            self._on_sent(self._loop.time() - since)

    def leave(self, reader: StreamReader) -> None:
        """This reader is gone."""
        if self.reader is reader:
            self.reader = None
            self._wake.set()
            self._loop.call_soon(self._on_reader_change)

    def close(self, code: int) -> None:
        """End the reader."""
        if self.reader is not None:
            self.reader.end(code)

    @property
    def place(self) -> "StreamPosition":
        """Where its numbers are, for a window that is made in its place."""
        return StreamPosition(self.last, self._seen)

    def release(self) -> None:
        """Give the bytes of this stream back to its `ByteBudget`, and leave it. A second call does nothing."""
        if not self._released:
            self._released = True
            self._held.add(-self.size)
            self._held.join(-1)

    # -- small steps -------------------------------------------------------------------------------------------------

    @property
    def _first(self) -> int:
        return self.last - len(self._frames) + 1

    def _let_go(self, limit: int) -> None:
        frames = self._frames
        reader = self.reader
        burst = BATCH_BYTES if self._held.over else BURST_BYTES
        before = self.size
        while self.size > limit and len(frames) > 1:
            number = self._first
            if reader is not None and number > reader.after and self.size <= burst:
                break
            cost = len(frames.popleft()) + _OVERHEAD
            self.size -= cost
            if number > self._seen:
                self._unread -= cost
        if not self._released:
            self._held.add(self.size - before)
        if reader is not None and not reader.catching_up and reader.after + 1 < self._first:
            reader.end(TOO_SLOW)

    def _on_reader_timeout(self) -> None:
        """The first reader was waited for long enough."""
        self._watch = None
        self._on_reader_change()

    def _watch_reader(self, reader: StreamReader) -> None:
        taken = reader.taken

        def look() -> None:
            self._watch = None
            if self.reader is reader and self.behind:
                if reader.taken - taken < BATCH_BYTES:
                    reader.end(TOO_SLOW)
                else:
                    self._watch_reader(reader)

        self._watch = self._loop.call_later(STALL_SECONDS, look)
