"""The last messages of one stream, numbered, for its current reader and for a reader that comes back.

Promises
- Messages have numbers 1, 2, 3, …; a reader that comes back names the last one it has and gets the next.
- At most `BUFFER_BYTES` are kept (an empty buffer takes one message of any size). What was evicted before a reader had
  it is a gap, and the reader is sent how many messages it misses.
- A reader that stops reading is ended with a stated code; the buffer stays, and it can come back.

    evicted │ given to the reader, kept for coming back │ unread
            ^ _first                                    ^ _given          ^ last

A reader is one of these: keeping up; behind (more than half of the buffer is unread: the agent waits for it); catching
up (it came to a full buffer: what it gets too late is a gap, and does not end it); stalled (behind, and takes less than
a batch in `STALL_SECONDS`: it is ended with `TOO_SLOW`). Before its first reader a stream counts as behind for
`STALL_SECONDS`, because the client is probably on its way.
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
# A reader that is behind by half of the buffer makes the agent wait; the other half is left for coming back.
LAG: Final = 2
# What an agent may still send after it was held: even a small buffer keeps it for a reader that is here.
BURST_BYTES: Final = 512 * limits.KIB
# Taken by one write: what a socket takes at once, and few enough to be fair.
BATCH_BYTES: Final = 64 * limits.KIB
# A reader that is behind and takes less than a batch in this time has stopped reading.
STALL_SECONDS: Final = 10.0
# What all streams of one principal hold together, and those of all principals; some more, if many of them are new: a
# stream that is written while it is too much keeps an equal share, and what others hold is evicted when they are.
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
    """Where the numbers of a stream are: the newest message, and the last one that was given to a reader."""

    last: int
    given: int


class StreamBatch(NamedTuple):
    """What a reader is given: how many messages it misses, then those that come next."""

    missed: int
    messages: list[StreamMessage]


class StreamReader:
    """The current reader of a `ReplayBuffer`: its position, and the code it was ended with. One at most."""

    def __init__(self, buffer: "ReplayBuffer", after: int) -> None:
        self.after = after
        self.code = 0  # not 0: it was ended, and why
        self.sent_bytes = 0  # ever
        self.steps = 0  # grows whenever something reaches it, however slowly
        self.is_catching_up = False  # see above
        self.is_nudged = False
        self.on_end: Callable[[], None] | None = None  # called once, when it is ended
        self.send_now: Callable[[StreamBatch], None] | None = None  # sends in this step; used while `batch` waits
        self._buffer = buffer
        self._since = 0.0  # when the oldest message of the batch on its way was appended
        self._waiter: asyncio.Future[None] | None = None  # of `batch`, while there is nothing to give

    async def batch(self) -> StreamBatch | None:
        """Wait for the next messages and return them; None if the reader was ended, or nudged while there are none.

        A call means that the batch before it has been sent: that ends the time which `on_sent` gets.
        """
        buffer = self._buffer
        if self._since:
            buffer.sent(self._since)
            self._since = 0.0
        while not (self.code or self.is_nudged or self.after < buffer.last):
            self._waiter = buffer.new_waiter()
            await self._waiter
        is_nudged, self.is_nudged = self.is_nudged, False
        if self.code or (is_nudged and not buffer.has_after(self.after)):
            return None
        self._since, buffer.since = buffer.since, 0.0
        return buffer.next_batch(self)

    def nudge(self) -> None:
        """Let `batch` return, though there may be no message: a stream that is silent for long is taken for dead."""
        self.is_nudged = True
        self.wake()

    def flush(self) -> None:
        """Send what is there in this step of the loop, if `batch` waits; else let it look again."""
        buffer = self._buffer
        if self._waiter is None or self.send_now is None or self.code or self.is_nudged or self.after >= buffer.last:
            self.wake()
            return
        since, buffer.since = buffer.since, 0.0
        self.send_now(buffer.next_batch(self))
        if since and not self.is_nudged:  # else the write is not over yet, and its time is not known
            buffer.sent(since)
        if self.after < buffer.last:
            self.wake()  # it was more than a batch

    def wake(self) -> None:
        """Let `batch` look again: there is a message, or the reader was ended or nudged."""
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def end(self, code: int) -> None:
        """End the reader with a code; a second call does nothing."""
        if not self.code:
            self.code = code
            self._buffer.detach(self)
            self.wake()
            if self.on_end is not None:
                self.on_end()

    def leave(self) -> None:
        """End the reader because its client has gone."""
        self.end(GONE)


# Of every stream that nothing was sent on: a deque takes 700 bytes, and there are thousands of silent streams.
_NO_FRAMES: Final[deque[bytes]] = deque(maxlen=0)


class ReplayBuffer:
    """The messages of one stream. `on_reader_change` is called when a reader that was behind has caught up, or is gone;
    `on_sent` with the seconds that the oldest message of a batch took from here through the socket. `budget` is shared
    with other streams; `position` continues the numbers of an earlier buffer of the same stream."""

    def __init__(
        self,
        on_reader_change: Callable[[], None],
        *,
        limit: int = BUFFER_BYTES,
        on_sent: Callable[[float], None] | None = None,
        budget: ByteBudget | None = None,
        position: StreamPosition | None = None,
    ) -> None:
        self.reader: StreamReader | None = None
        self.was_opened = False
        self.last = 0 if position is None else position.last  # the number of the newest message
        self.size = 0
        self.limit = limit
        self.since = (
            0.0  # when the oldest message that a reader waits for was appended; 0: none, or there was no reader
        )
        self._on_reader_change = on_reader_change
        self._on_sent = on_sent
        self._frames: deque[bytes] = _NO_FRAMES
        self._budget = ByteBudget(HELD_EACH_BYTES) if budget is None else budget
        self._budget.join()
        self._released = False
        self._given = 0 if position is None else position.given  # the last message that was given to a reader
        self._unread = 0  # bytes behind `_given`
        self._loop = asyncio.get_running_loop()
        self._first_reader_until = self._loop.time() + STALL_SECONDS
        self._timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        state = "new" if not self.was_opened else "unread" if self.reader is None else "read"
        return (
            f"<ReplayBuffer {state} last={self.last} kept={len(self._frames)} bytes={self.size} unread={self._unread}>"
        )

    # -- writing -----------------------------------------------------------------------------------------------------

    def append(self, frame: bytes, *, wake: bool = True) -> None:
        """Append a message. Takes everything; what no longer fits is evicted at the other end. Without `wake` the
        reader is not told before `flush`."""
        cost = len(frame) + _OVERHEAD
        if self._frames is _NO_FRAMES:
            self._frames = deque()
        self._frames.append(frame)
        self.last += 1
        self.size += cost
        self._unread += cost
        too_much = self._budget.add(cost) if not self._released else False
        if self.size > self.limit:
            self._evict(self.limit)
        if too_much:
            self._evict(min(self._budget.share, self.limit))
        reader = self.reader
        if reader is not None:
            if not self.since:
                self.since = self._loop.time()
            if wake:
                reader.wake()
            if self._timer is None and self._unread * LAG > self.limit:
                self._check_reader_later(reader)
        elif self._timer is None and self.is_behind:
            self._timer = self._loop.call_at(self._first_reader_until, self._on_reader_timeout)

    def flush(self) -> None:
        """Let the reader send, in this step of the loop if it can, what it was not told of."""
        if self.reader is not None:
            self.reader.flush()

    @property
    def unread(self) -> int:
        """Return the bytes that no reader has been given yet, with the overhead of each message."""
        return self._unread

    @property
    def is_half_unread(self) -> bool:
        """Return whether more is unread than a reader that keeps up leaves."""
        return self._unread * LAG > self.limit

    @property
    def is_behind(self) -> bool:
        """Return whether a reader that is here, or is about to come for the first time, should be waited for."""
        if not self.is_half_unread:
            return False
        return self.reader is not None or (not self.was_opened and self._loop.time() < self._first_reader_until)

    def drain(self) -> list[bytes]:
        """Return every unread frame and count it as read; the caller puts them into another stream."""
        frames = list(islice(self._frames, max(self._given + 1 - self._first, 0), None))
        self._given, self._unread = self.last, 0
        return frames

    # -- reading -----------------------------------------------------------------------------------------------------

    def read(self, after: int | None) -> StreamReader:
        """Return a new reader, behind the message number `after`; None, or a number that was never given: from where
        the last reader was. A reader that is here is ended: two would each get a part."""
        if self.reader is not None:
            self.reader.end(REPLACED)
        if after is not None and 0 <= after <= self.last:
            self._given = after
        start = max(self._given + 1 - self._first, 0)
        self._unread = sum(len(frame) + _OVERHEAD for frame in islice(self._frames, start, None))
        self.was_opened = True
        self.since = 0.0  # what waited for a reader was not on its way, so `on_sent` must not measure it
        self.reader = StreamReader(self, self._given)
        self.reader.is_catching_up = self._unread * LAG > self.limit
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return self.reader

    def holds(self, after: int) -> bool:
        """Return whether a reader could begin behind the message number `after` and miss nothing."""
        return self._first - 1 <= after <= self.last

    def has_after(self, number: int) -> bool:
        """Return whether there is a message newer than this number."""
        return number < self.last

    def new_waiter(self) -> "asyncio.Future[None]":
        """Return a future for a reader that waits."""
        return self._loop.create_future()

    def next_batch(self, reader: StreamReader) -> StreamBatch:
        """Return the next messages for a reader, of about `BATCH_BYTES`, and count them as given."""
        missed = max(self._first - 1 - reader.after, 0)
        number = reader.after + missed
        messages: list[StreamMessage] = []
        size = 0
        frames = self._frames
        was_behind = self.is_behind
        # From the newest end: a reader that keeps up would else pass over everything that is kept, for each message.
        for index in range(number - self.last, 0):
            frame = frames[index]
            if messages and size + len(frame) > BATCH_BYTES:
                break
            number += 1
            messages.append(StreamMessage(number, frame))
            size += len(frame)
        reader.after = self._given = number
        reader.sent_bytes += size
        reader.steps += 1
        self._unread -= size + _OVERHEAD * len(messages)
        if was_behind and not self.is_behind:
            reader.is_catching_up = False
            self._on_reader_change()
        return StreamBatch(missed, messages)

    def sent(self, since: float) -> None:
        """Report that a batch has left, whose oldest message was appended at the loop time `since`."""
        if self._on_sent is not None:
            self._on_sent(self._loop.time() - since)

    def detach(self, reader: StreamReader) -> None:
        """Remove a reader that was ended, unless another has replaced it."""
        if self.reader is reader:
            self.reader = None
            # Not at once: a reader that is replaced would look like one that is gone, and stop a question's clock anew.
            self._loop.call_soon(self._on_reader_change)

    def close(self, code: int) -> None:
        """End the reader, if there is one, with a code."""
        if self.reader is not None:
            self.reader.end(code)

    @property
    def position(self) -> "StreamPosition":
        """Return where its numbers are, for a buffer that is made in its place."""
        return StreamPosition(self.last, self._given)

    def release(self) -> None:
        """Give the bytes of this stream back to its `ByteBudget`, and leave it. A second call does nothing."""
        if not self._released:
            self._released = True
            self._budget.add(-self.size)
            self._budget.join(-1)

    # -- small steps -------------------------------------------------------------------------------------------------

    @property
    def _first(self) -> int:
        return self.last - len(self._frames) + 1

    def _evict(self, limit: int) -> None:
        frames = self._frames
        reader = self.reader
        # A reader that is here gets what the agent sends before it notices that it is held, however small the share.
        burst = BATCH_BYTES if self._budget.over else BURST_BYTES
        before = self.size
        while self.size > limit and len(frames) > 1:
            number = self._first
            if reader is not None and number > reader.after and self.size <= burst:
                break
            cost = len(frames.popleft()) + _OVERHEAD
            self.size -= cost
            if number > self._given:
                self._unread -= cost
        if not self._released:
            self._budget.add(self.size - before)
        if reader is not None and not reader.is_catching_up and reader.after + 1 < self._first:
            reader.end(TOO_SLOW)

    def _on_reader_timeout(self) -> None:
        """Let the agent go on: the first reader was waited for long enough."""
        self._timer = None
        self._on_reader_change()

    def _check_reader_later(self, reader: StreamReader) -> None:
        sent_bytes = reader.sent_bytes

        def check() -> None:
            self._timer = None
            if self.reader is reader and self.is_behind:
                if reader.sent_bytes - sent_bytes < BATCH_BYTES:
                    reader.end(TOO_SLOW)
                else:
                    self._check_reader_later(reader)

        self._timer = self._loop.call_later(STALL_SECONDS, check)
