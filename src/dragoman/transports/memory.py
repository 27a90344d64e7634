"""A connection inside one process, with a bounded buffer each way and faults on demand. For tests, ours and yours.

    left, right = memory_pair(64 * 1024)
    left, right = memory_pair(64 * 1024, to_right=Faults(pieces=1), to_left=Faults(dropped_after=100))

It behaves as a pair of pipes does: a full buffer makes writes short, bytes are delivered in a later iteration of the
loop, a half close is seen after the bytes before it, and closing one end is the end of file of the other.
There is no clock and no chance in it: the same calls give the same pieces, in the same iterations, every time.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from dragoman import limits
from dragoman.errors import LinkClosed, UsageError
from dragoman.transports.contract import Receiver


class Faults(NamedTuple):
    """What goes wrong in one direction. Without arguments: nothing.

    Slow:    `per_turn=n`        at most n bytes arrive in each iteration of the event loop.
    Torn:    `pieces=n`          bytes arrive in pieces of at most n; 1 tears every frame everywhere.
             `torn_at=(3, 17)`   a piece ends before byte 3 and before byte 17 of the stream.
    Dropped: `dropped_after=n`   n bytes arrive, then both ends lose the connection with `LinkClosed`; what was still
                                 under way, in either direction, is lost. 0 drops it at the first byte.
    """

    per_turn: int | None = None
    pieces: int | None = None
    torn_at: Sequence[int] = ()
    dropped_after: int | None = None


NO_FAULTS = Faults()


def memory_pair(
    capacity: int, *, to_right: Faults = NO_FAULTS, to_left: Faults = NO_FAULTS
) -> "tuple[MemoryTransport, MemoryTransport]":
    """Return two connected transports: what one writes, the other receives.

    `capacity` is how many bytes each direction holds before a write is short (a Linux pipe: 64 KiB). It has no
    default, because a test that does not choose it does not know whether it tests a full pipe. `to_right` and
    `to_left` are the faults of each direction. Raise `UsageError` for a size below 1.
    """
    sizes = (capacity, *(size for faults in (to_right, to_left) for size in (faults.per_turn, faults.pieces)))
    if any(size is not None and size < 1 for size in sizes):
        raise UsageError("capacity, per_turn and pieces are numbers of bytes, 1 or more.")
    left, right = MemoryTransport(), MemoryTransport()
    left._out = right._in = _Direction(capacity, to_right, left, right)
    right._out = left._in = _Direction(capacity, to_left, right, left)
    return left, right


class MemoryTransport:
    """One end of a `memory_pair`; a `Transport`."""

    _out: "_Direction"
    _in: "_Direction"

    def __init__(self) -> None:
        self._receiver: Receiver | None = None
        self._paused = False
        self._lost = False
        self._closed = False
        self._dropped = False
        self._other_end: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        state = "closed" if self._closed else "lost" if self._lost else "paused" if self._paused else "open"
        return f"<MemoryTransport {state} incoming={len(self._in)}>"

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._in.schedule()

    def write(self, data: bytes | memoryview) -> int:
        return self._out.accept(data)

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False
        self._in.schedule()

    def close_writing(self) -> None:
        self._out.end()

    def wait_on_close(self, task: "asyncio.Task[None]") -> None:
        """Have `close` wait for the task that serves the other end, and cancel it where it does not end by itself: what
        closing a child process does."""
        self._other_end = task

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._lose(None)
            self._out.end()
            self._in.discard()
        if self._other_end is not None:
            await asyncio.wait({self._other_end}, timeout=2 * limits.END_SECONDS)
            self._other_end.cancel()

    @property
    def _reads(self) -> bool:
        return self._receiver is not None and not self._paused and not self._lost

    def _deliver(self, data: bytes) -> None:
        if self._receiver is not None:
            self._receiver.data_received(data)

    def _on_room(self) -> None:
        if self._receiver is not None and not self._closed and not self._dropped:
            self._receiver.writable()

    def _on_peer_closed(self) -> None:
        """Report the loss after a write to a closed peer, if reading is paused; else end of file reports it."""
        if self._paused and not self._closed:
            self._lose(LinkClosed("The peer is gone."))

    def _lose(self, error: LinkClosed | None) -> None:
        self._dropped = error is not None
        if not self._lost and self._receiver is not None:
            self._lost = True
            self._receiver.connection_lost(error)


class _Direction:
    """One way of a pair: a bounded buffer between a source and a sink."""

    def __init__(self, capacity: int, faults: Faults, source: MemoryTransport, sink: MemoryTransport) -> None:
        self._capacity = capacity
        self._faults = faults
        self._source = source
        self._sink = sink
        self._buffer = bytearray()
        self._passed = 0
        self._ended = False  # the source has closed writing
        self._discards = False  # the sink has closed
        self._short = False  # the source waits for room
        self._is_scheduled = False

    def __len__(self) -> int:
        return len(self._buffer)

    def accept(self, data: bytes | memoryview) -> int:
        if self._discards:
            asyncio.get_running_loop().call_soon(self._source._on_peer_closed)
        if self._ended or self._discards:
            return len(data)
        if self._short:
            return 0
        count = min(len(data), self._capacity - len(self._buffer))
        self._buffer += data[:count]
        self._short = count < len(data)
        self.schedule()
        return count

    def end(self) -> None:
        self._ended = True
        self.schedule()

    def discard(self) -> None:
        self._discards = True
        self._buffer.clear()
        self._report_room()

    def schedule(self) -> None:
        """Deliver what the sink accepts in the next iteration of the loop."""
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._deliver)

    def _deliver(self) -> None:
        self._is_scheduled = False
        if self._faults is NO_FAULTS and 0 < len(self._buffer) <= limits.READ_BYTES and self._sink._reads:
            # All at once, as the loop below would: an agent of this process sends one chunk after the other.
            piece = bytes(self._buffer)
            self._buffer.clear()
            self._passed += len(piece)
            self._sink._deliver(piece)
        budget = self._faults.per_turn or self._capacity
        while budget and self._buffer and self._sink._reads and not self._drops:
            size = self._next_piece(budget)
            piece = bytes(self._buffer[:size])
            del self._buffer[:size]
            self._passed += size
            budget -= size
            self._sink._deliver(piece)
        if self._drops:
            self._drop()
            return
        if len(self._buffer) < self._capacity:
            self._report_room()
        if self._buffer and self._sink._reads:
            self.schedule()
        elif self._ended and not self._buffer and self._sink._reads:
            self._sink._lose(None)

    def _next_piece(self, budget: int) -> int:
        """Return how many bytes are delivered next: up to the nearest of all bounds."""
        faults = self._faults
        bounds = [budget, len(self._buffer), limits.READ_BYTES]
        bounds += [at - self._passed for at in faults.torn_at if at > self._passed]
        if faults.pieces is not None:
            bounds.append(faults.pieces)
        if faults.dropped_after is not None:
            bounds.append(faults.dropped_after - self._passed)
        return min(bounds)

    @property
    def _drops(self) -> bool:
        after = self._faults.dropped_after
        return after is not None and self._passed >= after and (after > 0 or bool(self._buffer))

    def _drop(self) -> None:
        for end in (self._source, self._sink):
            end._out.discard()
            end._lose(LinkClosed(f"The connection was dropped, as ordered, after {self._passed} bytes."))

    def _report_room(self) -> None:
        if self._short:
            self._short = False
            asyncio.get_running_loop().call_soon(self._source._on_room)
