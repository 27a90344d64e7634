"""What waits to be written on one link: gathered, bounded, in order.

Producers that can wait do so when it is full; whatever must be said at once (an answer to bad input) is put anyway
and counted, and the link stops reading before that grows. An empty outbox takes one frame of any legal size.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Literal

from dragoman import limits
from dragoman.errors import LinkClosed
from dragoman.transports.contract import Transport
from dragoman.wire.framing import Style, frame

# What a waiting payload costs beside its bytes: the object's head and the list's pointer.
_OVERHEAD: Final = 64


class Outbox:
    """The writer's side of a link. Its owner calls `put`, `room` and `writable`; nobody else writes."""

    def __init__(
        self,
        transport: Transport,
        *,
        limit: int = limits.OUTBOX_BYTES,
        trace: Callable[[Literal["in", "out"], bytes], None] | None = None,
    ) -> None:
        self.size = 0
        self.style: Style = "ndjson"
        self._trace = trace
        self._transport = transport
        self._limit = limit
        self._parts: list[bytes] = []
        self._rest: memoryview | None = None
        self._scheduled = False
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._closed: LinkClosed | None = None
        self._loop = asyncio.get_running_loop()

    def put(self, payload: bytes) -> None:
        """Queue a payload; it is written at the end of this turn of the loop at the latest."""
        if self._closed is not None:
            return
        self._parts.append(payload)
        self.size += len(payload) + _OVERHEAD
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush_scheduled)

    def has_room_for(self, payload: bytes) -> bool:
        """Whether a producer may put this now."""
        return not self.size or self.size + len(payload) <= self._limit

    async def put_when_room(self, payload: bytes) -> None:
        """Queue a payload as soon as there is room for it."""
        while not self.has_room_for(payload):
            await self._wait()
        if self._closed is not None:
            raise self._closed
        self.put(payload)
        if self.size >= limits.WRITE_BYTES:
            await self.breathe()

    async def breathe(self) -> None:
        """Write what is gathered and let the loop turn once, so that a busy producer can be told to stop."""
        self.flush()
        if self._closed is not None:
            raise self._closed
        if self.size < self._limit:
            await asyncio.sleep(0)
        while self.size >= self._limit:
            await self._wait()

    def flush(self) -> None:
        """Hand the transport as much as it takes now."""
        if self._rest is not None:
            return
        while self._parts:
            data, cost = self._gather()
            taken = self._transport.write(data)
            if taken < len(data):
                self._rest = memoryview(data)[taken:]
                # The overhead of the gathered parts is gone; what is left counts by its bytes.
                self.size -= cost - len(self._rest)
                return
            self.size -= cost
        self._wake()

    def writable(self) -> None:
        """The transport has room again."""
        if self._rest is not None:
            taken = self._transport.write(self._rest)
            self.size -= taken
            if taken < len(self._rest):
                self._rest = self._rest[taken:]
                return
            self._rest = None
        self.flush()
        self._wake()

    def close(self, error: LinkClosed) -> None:
        """Nothing more can be written: drop what waits, and wake every producer with the reason."""
        self._closed = error
        self._parts.clear()
        self._rest = None
        self.size = 0
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_exception(error)

    async def drained(self, seconds: float) -> None:
        """Wait until everything is written, but no longer than that."""
        self.flush()
        deadline = self._loop.time() + seconds
        while self.size and self._closed is None and self._loop.time() < deadline:
            try:
                async with asyncio.timeout_at(deadline):
                    await self._wait()
            except (TimeoutError, LinkClosed):
                return

    def _flush_scheduled(self) -> None:
        self._scheduled = False
        self.flush()

    def _gather(self) -> tuple[bytes, int]:
        """The next bytes to write, about a pipe's worth, and what they cost in the account."""
        parts = self._parts
        if self.size > 2 * limits.WRITE_BYTES:
            count = total = 0
            while count < len(parts) and total < limits.WRITE_BYTES:
                total += len(parts[count])
                count += 1
            self._parts = parts[count:]
            del parts[count:]
        else:
            self._parts = []
        cost = sum(map(len, parts)) + _OVERHEAD * len(parts)
        if self._trace is not None:
            for part in parts:
                self._trace("out", part)
        if self.style == "ndjson":
            parts.append(b"")
            return b"\n".join(parts), cost
        return b"".join([frame(part, self.style) for part in parts]), cost

    async def _wait(self) -> None:
        if self._closed is not None:
            raise self._closed
        waiter = self._loop.create_future()
        self._waiters.append(waiter)
        await waiter

    def _wake(self) -> None:
        """Let every producer look again: each checks for itself whether its payload fits."""
        if self.size * 2 > self._limit:
            return
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
