"""The bytes that wait to be written on one link: gathered, bounded, in order; and the text streams that fill it.

How it works. Payloads are put into one list and written together at the end of the loop's turn, about a pipe's worth at
a time. A producer that can wait (an event, a reply, a request) is queued while the outbox is full; producers are
admitted in the order they came, so none overtakes and none starves. A payload that must not wait (an error reply, a
cancel) is put whatever the size is, and counted like any other: the link stops reading before such payloads pile up.

An empty outbox accepts one frame of any legal size, however small its limit is, because a limit below the largest frame
would otherwise refuse that frame for ever.

Invariant: `written + size` is the position of the next payload in everything this outbox ever writes. The link uses it
to know which of its error replies have left.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

from msgspec.json import Encoder

from dragoman import limits
from dragoman.dialects.contract import NotificationMessage, Out, ResultMessage
from dragoman.errors import LinkClosed
from dragoman.surrogates import replace_lone_surrogates
from dragoman.transports.contract import Transport
from dragoman.wire.framing import Style, frame
from dragoman.wire.jsonrpc import encode_error, notification_size, too_large

Trace = Callable[[Literal["in", "out"], bytes], None]

# What a waiting payload costs beside its bytes: the object's head and the list's pointer.
_OVERHEAD: Final = 64
# From here on a payload is handed to the transport as it is: a copy with its newline would cost as much again.
_LARGE: Final = 1 * limits.MIB
# More than an envelope has, without the name of a method: ids have at most 1,024 characters, each up to six bytes.
# A message that leaves so much room in a frame fits, and need not be measured.
_AMPLE: Final = 8 * 1024
# Beside its body a reply or an update has an envelope; this only decides which producer has to wait.
_ENVELOPE: Final = 128
# As numbers: looking for a byte is ten times faster than for a `bytes` of one.
_encode: Final = Encoder().encode
# Stands for an empty deque until something is put in: an empty one takes 700 bytes, and most outboxes need neither.
_NONE: "Final[deque[Any]]" = deque(maxlen=0)


class _QueuedBatch(NamedTuple):
    """The payloads of one producer that waits for room. They may be made as late as when they are put."""

    cost: int
    payloads: Iterable[bytes]
    admitted: "asyncio.Future[None]"


class Outbox:
    """The only writer to a link's transport.

    `size` is how many bytes wait. From `wait_above` on a producer is queued before it puts more: so a busy one lets the
    loop turn once for every pipe's worth, and all of them wait while the outbox is full or others were there first.
    """

    def __init__(self, transport: Transport, *, limit: int = limits.OUTBOX_BYTES, trace: Trace | None = None) -> None:
        self.size = 0
        self.wait_above = limits.WRITE_BYTES
        # How frames are delimited. A link sets it to the style of its peer's first bytes, before it answers any.
        self.style: Style = "ndjson"
        # Everything ever written, counted as `size` is.
        self.written = 0
        # Called after each turn of writing, when there may be room; a link sets it while it has stopped reading.
        self.on_room: Callable[[], None] | None = None
        self._trace = trace
        self._transport = transport
        self._limit = limit
        self._parts: list[bytes] = []
        # What is left of a write that the transport cut short. While it is there, nothing else may be written.
        self._rest: memoryview | None = None
        # A write is scheduled for the end of this turn.
        self._scheduled = False
        self._producers: deque[_QueuedBatch] = _NONE
        self._error_replies: deque[tuple[int, int]] = _NONE  # those that wait: (position of the end, bytes)
        self._drained: asyncio.Future[None] | None = None
        self._closed: LinkClosed | None = None
        # Whether a frame is written as it is put: no trace or adapter has to see it, and the outbox is not closed.
        self._is_bare = trace is None
        self._loop = asyncio.get_running_loop()

    def __repr__(self) -> str:
        state = "closed" if self._closed is not None else f"{self.size} bytes queued"
        return f"<Outbox {state}, {self.written} written, {len(self._producers)} producers waiting>"

    @property
    def has_waiting_producers(self) -> bool:
        """Whether at least one producer waits for room."""
        return bool(self._producers)

    def put(self, payload: bytes) -> None:
        """Queue a payload at once; it is written at the end of this turn of the loop at the latest."""
        if self._closed is not None:
            return
        self._parts.append(payload)
        self.size += len(payload) + _OVERHEAD
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush_scheduled)

    # For a payload that is written as its wire has it already, also where the outbox has an adapter.
    put_as_is = put

    def put_error_reply(self, payload: bytes) -> None:
        """Put an error reply, and count it in `error_reply_bytes` until it is written.

        Error replies are the only payloads that a peer can make us queue without limit. They are remembered in runs of
        about a pipe's worth, so the list of them stays short.
        """
        if self._error_replies is _NONE:
            self._error_replies = deque()
        replies, before = self._error_replies, self.size
        self.put(payload)
        size, end = self.size - before, self.written + self.size
        while replies and replies[0][0] <= self.written:
            replies.popleft()
        if replies and end - replies[-1][0] < limits.WRITE_BYTES:
            size += replies.pop()[1]
        replies.append((end, size))
        if self.size > limits.REFUSAL_BYTES:
            self.flush()

    @property
    def error_reply_bytes(self) -> int:
        """How many bytes of error replies wait to be written."""
        return sum(size for end, size in self._error_replies if end > self.written)

    def put_and_flush(self, payload: bytes) -> None:
        """Put a payload, and write it now if nothing else waits: a lone request leaves one turn of the loop earlier."""
        is_first = not (self.size or self._scheduled or self._producers)
        if not is_first or len(payload) >= _LARGE or not self._is_bare or self.style != "ndjson":
            self.put(payload)
            return
        # Nothing waits, so nothing is overtaken, and `size` stays 0 unless the pipe is full.
        data = payload + b"\n"
        taken = self._transport.write(data)
        self.written += taken + _OVERHEAD
        if taken < len(data):
            self._rest = memoryview(data)[taken:]
            self.size = len(data) - taken

    def has_room(self, cost: int) -> bool:
        """Return whether `cost` more bytes may be put now: no producer waits, and the outbox is not full."""
        return self.size < self.wait_above and (not self.size or self.size + cost <= self._limit)

    def enqueue(self, cost: int, payloads: Iterable[bytes]) -> "asyncio.Future[None] | None":
        """Queue payloads of about `cost` bytes together when there is room, behind every producer that waits.

        Return None if they were put now, or a future that is done once they are; cancelling it before that takes the
        batch out of the queue. Raise `LinkClosed` after `close`.
        """
        if self._closed is not None:
            raise self._closed
        if self.has_room(cost):
            for payload in payloads:
                self.put(payload)
            return None
        admitted: asyncio.Future[None] = self._loop.create_future()
        if self._producers is _NONE:
            self._producers = deque()
        self._producers.append(_QueuedBatch(cost, payloads, admitted))
        self.wait_above = 0  # the next producer has to queue behind this one, even with a small payload
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush_scheduled)
        return admitted

    def flush(self) -> None:
        """Hand the transport as many bytes as it takes now."""
        while self._parts and self._rest is None:
            data, cost = self._gather()
            taken = self._transport.write(data)
            if taken < len(data):
                self._rest = memoryview(data)[taken:]
                # The overhead of the gathered parts is gone; what is left counts by its bytes.
                cost -= len(self._rest)
            self.size -= cost
            self.written += cost

    def flush_all(self) -> bool:
        """Write what waits, and return whether nothing is left: then another may write a whole frame."""
        if self.size:
            self.flush()
        return not (self.size or self._producers)

    def writable(self) -> None:
        """Go on writing: the transport has room again."""
        # The rest first: it is the end of a frame whose beginning has left.
        if self._rest is not None:
            taken = self._transport.write(self._rest)
            self.size -= taken
            self.written += taken
            self._rest = self._rest[taken:] if taken < len(self._rest) else None
        self.flush()
        self._admit_producers()

    def close(self, error: LinkClosed) -> None:
        """Drop every byte that waits, and fail every producer that waits with `error`."""
        self._closed = error
        self._is_bare = False
        self._parts.clear()
        self._rest = None
        # With `wait_above` at 0 no producer finds room, so each goes through `enqueue`, which raises.
        self.size = self.wait_above = 0
        while self._producers:
            admitted = self._producers.popleft().admitted
            if not admitted.done():
                admitted.set_exception(error)
                admitted.exception()  # retrieved, as the producer may have stopped waiting
        self._set_drained()

    async def wait_until_drained(self, seconds: float) -> None:
        """Wait until everything is written, but no longer than `seconds`."""
        self.flush()
        self._admit_producers()
        if not self.size and not self._producers:
            return
        if self._drained is None:
            self._drained = self._loop.create_future()
        await asyncio.wait([self._drained], timeout=seconds)

    def _flush_scheduled(self) -> None:
        self._scheduled = False
        self.flush()
        self._admit_producers()

    def _admit_producers(self) -> None:
        """Put the payloads of waiting producers, in order, while they fit; then call `on_room`."""
        producers = self._producers
        if not self.size and not producers and self.on_room is None and self._drained is None and self._closed is None:
            self.wait_above = limits.WRITE_BYTES  # the usual case: everything is written, no producer waits
            return
        while producers:
            batch = producers[0]
            if not batch.admitted.done() and self.size and self.size + batch.cost > self._limit:
                break
            producers.popleft()
            if batch.admitted.done():  # its producer was cancelled while it waited
                continue
            try:
                for payload in batch.payloads:
                    self.put(payload)
            except Exception as error:
                # Payloads are made here, so a message that cannot be encoded fails its own producer and no other.
                batch.admitted.set_exception(error)
            else:
                batch.admitted.set_result(None)
        if self._closed is None:
            above = max(limits.WRITE_BYTES, min(self._limit, self.size + limits.WRITE_BYTES))
            self.wait_above = 0 if producers else above
        if not self.size and not producers:
            self._set_drained()
        if self.on_room is not None:
            self.on_room()

    def _set_drained(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._drained = None

    def _gather(self) -> tuple[bytes, int]:
        """Return the next bytes to write, about a pipe's worth, and what they cost in `size`."""
        parts = self._parts
        count = len(parts)
        if count == 1 and self._trace is None and self.style == "ndjson" and len(parts[0]) < _LARGE:
            self._parts = []
            return parts[0] + b"\n", len(parts[0]) + _OVERHEAD
        if self.size > 2 * limits.WRITE_BYTES:
            # Not everything at once: a copy of all that waits would double the memory, to be cut short by the pipe.
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


# -- text, which comes in a hundred thousand pieces ------------------------------------------------------------------


class TextStream:
    """One message that is sent in pieces: only the text of each is encoded, the rest of the frame is ready."""

    __slots__ = ("_head", "_outbox", "_tail")

    def __init__(self, outbox: Outbox, head: bytes, tail: bytes) -> None:
        self._outbox = outbox
        self._head = head
        self._tail = tail

    def put(self, text: str) -> bool:
        """Send a piece. Return whether much is waiting: then `wait_for_room` before the next one."""
        try:
            piece = _encode(text)
        except UnicodeEncodeError:
            piece = _encode_lossy(text)
        outbox = self._outbox
        outbox.put_as_is(self._head + piece + self._tail)
        return outbox.size >= outbox.wait_above

    async def wait_for_room(self) -> None:
        """Wait until there is room in the outbox, and let the loop turn."""
        admitted = self._outbox.enqueue(0, ())
        if admitted is not None:
            await admitted


class _TwofoldTextStream(TextStream):
    """A stream whose frame holds the text in two places: iac-code's updates have `content` and `text`."""

    __slots__ = ("_middle",)

    def __init__(self, outbox: Outbox, head: bytes, middle: bytes, tail: bytes) -> None:
        super().__init__(outbox, head, tail)
        self._middle = middle

    def put(self, text: str) -> bool:
        """Send a piece, in both places."""
        piece = _encode_lossy(text)
        outbox = self._outbox
        outbox.put_as_is(self._head + piece + self._middle + piece + self._tail)
        return outbox.size >= outbox.wait_above


class _SilentTextStream(TextStream):
    """A stream that sends nothing: the dialect has no update for this text. A session log may still record it."""

    __slots__ = ()

    def put(self, text: str) -> bool:
        """Return False: nothing waits to be written."""
        return False


def text_stream(outbox: Outbox, around: Sequence[bytes]) -> TextStream:
    """Return a stream that sends texts inside `around`, the dialect's bytes around a text.

    Two parts enclose one text, three parts hold the text twice; without parts the stream sends nothing.
    """
    if len(around) == 2:
        return TextStream(outbox, *around)
    return _TwofoldTextStream(outbox, *around) if around else _SilentTextStream(outbox, b"", b"")


def _encode_lossy(text: str) -> bytes:
    # Half of a surrogate pair, as a model that was cut in the middle gives it, is no text on any wire.
    return _encode(replace_lone_surrogates(text))


# -- what a payload must be before it is put -------------------------------------------------------------------------


def cost(out: Out) -> int:
    """Return about how many bytes a message has; raise `UsageError` for a notification that no peer takes."""
    if isinstance(out, ResultMessage):
        return len(out.result) + _ENVELOPE
    if isinstance(out, NotificationMessage):
        _check_size(out.method, out.params)
        return len(out.params) + _ENVELOPE
    return len(encode_error(*out.error)) + _ENVELOPE


def _check_size(method: str, params: bytes) -> None:
    if len(params) + 6 * len(method) + _AMPLE <= limits.FRAME_BYTES:
        return
    size = notification_size(method, params)
    if size > limits.FRAME_BYTES:
        raise too_large(size)


def guarded_trace(trace: Trace, on_bug: Callable[[Exception], None]) -> Trace:
    """Return a trace that reports its first exception and then does nothing: it must not harm the connection."""
    failed = False

    def guarded(direction: Literal["in", "out"], frame: bytes) -> None:
        nonlocal failed
        if not failed:
            try:
                trace(direction, frame)
            except Exception as error:
                failed = True
                on_bug(error)

    return guarded
