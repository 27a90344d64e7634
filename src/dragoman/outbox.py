"""What waits to be written on one link: gathered, bounded, in order.

Producers that can wait stand in one line while it is full, so none overtakes and none starves. Messages that must be
sent at once (an error reply, a cancel) are put anyway and counted, and the link stops reading before they pile up. An
empty outbox accepts one frame of any legal size.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Literal, NamedTuple

from msgspec.json import Encoder

from dragoman import limits
from dragoman.errors import LinkClosed
from dragoman.transports.contract import Transport
from dragoman.wire.framing import Style, frame

Trace = Callable[[Literal["in", "out"], bytes], None]

# What a waiting payload costs beside its bytes: the object's head and the list's pointer.
_OVERHEAD: Final = 64
# From here on a payload is handed to the transport as it is: a copy with its newline would cost as much again.
_LARGE: Final = 1 * limits.MIB
_encode: Final = Encoder().encode


class _Place(NamedTuple):
    """One producer's place in the line. The payloads may be made as late as when they are put."""

    cost: int
    payloads: Iterable[bytes]
    turn: "asyncio.Future[None]"


class Outbox:
    """The writer's side of a link, and the only writer to its transport.

    `size` is what waits, in bytes. From `mark` on a producer stands in line before it says more: so a busy one lets
    the loop turn once for every pipe's worth, and all of them wait while the outbox is full or others stand before.
    """

    def __init__(self, transport: Transport, *, limit: int = limits.OUTBOX_BYTES, trace: Trace | None = None) -> None:
        self.size = 0
        self.mark = limits.WRITE_BYTES
        self.style: Style = "ndjson"
        # Everything ever written, in the account of `size`: written + size is the place of the next payload.
        self.written = 0
        # Called after each turn of writing, when there may be room; the reader sets it while it has stopped reading.
        self.on_room: Callable[[], None] | None = None
        self._trace = trace
        self._transport = transport
        self._limit = limit
        self._parts: list[bytes] = []
        self._rest: memoryview | None = None
        self._scheduled = False
        self._line: deque[_Place] = deque()
        self._drained: asyncio.Future[None] | None = None
        self._closed: LinkClosed | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def crowded(self) -> bool:
        """Return whether a producer stands in line."""
        return bool(self._line)

    def put(self, payload: bytes) -> None:
        """Queue a payload at once; it is written at the end of this turn of the loop at the latest."""
        if self._closed is not None:
            return
        self._parts.append(payload)
        self.size += len(payload) + _OVERHEAD
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush_scheduled)

    def put_alone(self, payload: bytes) -> None:
        """Put a payload, and write it now if nothing waits: a lone request leaves one turn of the loop earlier."""
        if self.size or self._scheduled or self._line or self._trace is not None or self.style != "ndjson":
            self.put(payload)
            return
        if self._closed is not None or len(payload) >= _LARGE:
            self.put(payload)
            return
        data = payload + b"\n"
        taken = self._transport.write(data)
        self.written += taken + _OVERHEAD
        if taken < len(data):
            self._rest = memoryview(data)[taken:]
            self.size = len(data) - taken

    def hold(self) -> bool:
        """Schedule no write until the caller calls `release`. Return False if a write is scheduled already."""
        if self._scheduled:
            return False
        self._scheduled = True
        return True

    def release(self) -> None:
        """Write what was put meanwhile, now and together."""
        self._scheduled = False
        if self._parts or self._line:
            self.flush()
            self._serve()

    def has_room(self, cost: int) -> bool:
        """Return whether `cost` more bytes may be put now: no producer stands in line, and the outbox is not full."""
        return self.size < self.mark and (not self.size or self.size + cost <= self._limit)

    def enqueue(self, cost: int, payloads: Iterable[bytes]) -> "asyncio.Future[None] | None":
        """Queue payloads of about `cost` bytes together when there is room, behind every producer in line.

        Return None if they were put now, or a future that is done once they are; cancelling it before that leaves the
        line. Raise `LinkClosed` after `close`.
        """
        if self._closed is not None:
            raise self._closed
        if self.has_room(cost):
            for payload in payloads:
                self.put(payload)
            return None
        turn: asyncio.Future[None] = self._loop.create_future()
        self._line.append(_Place(cost, payloads, turn))
        self.mark = 0
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush_scheduled)
        return turn

    async def put_when_room(self, payload: bytes) -> None:
        """Queue a payload as soon as there is room for it."""
        turn = self.enqueue(len(payload), (payload,))
        if turn is not None:
            await turn

    def flush(self) -> None:
        """Hand the transport as much as it takes now."""
        while self._parts and self._rest is None:
            data, cost = self._gather()
            taken = self._transport.write(data)
            if taken < len(data):
                self._rest = memoryview(data)[taken:]
                # The overhead of the gathered parts is gone; what is left counts by its bytes.
                cost -= len(self._rest)
            self.size -= cost
            self.written += cost

    def writable(self) -> None:
        """The transport has room again."""
        if self._rest is not None:
            taken = self._transport.write(self._rest)
            self.size -= taken
            self.written += taken
            self._rest = self._rest[taken:] if taken < len(self._rest) else None
        self.flush()
        self._serve()

    def close(self, error: LinkClosed) -> None:
        """Nothing more can be written: drop what waits, and tell every producer why."""
        self._closed = error
        self._parts.clear()
        self._rest = None
        self.size = self.mark = 0
        while self._line:
            turn = self._line.popleft().turn
            if not turn.done():
                turn.set_exception(error)
                turn.exception()  # retrieved, as the producer may have stopped waiting
        self._tell_drained()

    async def drained(self, seconds: float) -> None:
        """Wait until everything is written, but no longer than that."""
        self.flush()
        self._serve()
        if not self.size and not self._line:
            return
        if self._drained is None:
            self._drained = self._loop.create_future()
        await asyncio.wait([self._drained], timeout=seconds)

    def _flush_scheduled(self) -> None:
        self._scheduled = False
        self.flush()
        self._serve()

    def _serve(self) -> None:
        """Put the payloads of the producers in line, first come, first served, while they fit; then call `on_room`."""
        line = self._line
        if not self.size and not line and self.on_room is None and self._drained is None and self._closed is None:
            self.mark = limits.WRITE_BYTES  # the usual case: everything is written, no producer waits
            return
        while line:
            place = line[0]
            if not place.turn.done() and self.size and self.size + place.cost > self._limit:
                break
            line.popleft()
            if place.turn.done():
                continue
            try:
                for payload in place.payloads:
                    self.put(payload)
            except Exception as error:
                place.turn.set_exception(error)
            else:
                place.turn.set_result(None)
        if self._closed is None:
            self.mark = 0 if line else max(limits.WRITE_BYTES, min(self._limit, self.size + limits.WRITE_BYTES))
        if not self.size and not line:
            self._tell_drained()
        if self.on_room is not None:
            self.on_room()

    def _tell_drained(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._drained = None

    def _gather(self) -> tuple[bytes, int]:
        """The next bytes to write, about a pipe's worth, and what they cost in the account."""
        parts = self._parts
        count = len(parts)
        if count == 1 and self._trace is None and self.style == "ndjson" and len(parts[0]) < _LARGE:
            self._parts = []
            return parts[0] + b"\n", len(parts[0]) + _OVERHEAD
        if self.size > 2 * limits.WRITE_BYTES:
            count = total = 0
            while count < len(parts) and total < limits.WRITE_BYTES:
                if count and len(parts[count]) >= _LARGE:
                    break
                total += len(parts[count])
                count += 1
        self._parts = parts[count:]
        del parts[count:]
        if self._trace is not None:
            for part in parts:
                if part:
                    self._trace("out", part)
        cost = sum(map(len, parts)) + _OVERHEAD * len(parts)
        if self.style != "ndjson":
            return b"".join([frame(part, self.style) for part in parts]), cost
        if len(parts[0]) >= _LARGE:
            # It goes alone. Its newline goes first in what follows: an empty part is exactly that.
            self._parts.insert(0, b"")
            self.size += _OVERHEAD
            return parts[0], cost
        parts.append(b"")
        return b"\n".join(parts), cost


class TextStream:
    """One message being said in pieces: only the text is encoded anew, the rest of the frame is ready."""

    __slots__ = ("_head", "_outbox", "_tail")

    def __init__(self, outbox: Outbox, head: bytes, tail: bytes) -> None:
        self._outbox = outbox
        self._head = head
        self._tail = tail

    def put(self, text: str) -> bool:
        """Say a piece. True: much is waiting, `breathe` before the next one."""
        try:
            piece = _encode(text)
        except UnicodeEncodeError:
            # Half of a surrogate pair, as a model cut in the middle gives it, is no text on any wire.
            piece = _encode(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
        outbox = self._outbox
        outbox.put(self._head + piece + self._tail)
        return outbox.size >= outbox.mark

    async def breathe(self) -> None:
        """Let the wire catch up and the loop turn."""
        turn = self._outbox.enqueue(0, ())
        if turn is not None:
            await turn
