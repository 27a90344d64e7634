"""How a link says things: what a dialect gives becomes frames, in order, when there is room for them.

A request of theirs counts as unanswered until its answer has its place in the outbox. What refuses a message is said
at once, room or not, and counted: a peer that does not even read refusals is `choked`, and the link stops reading it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from dragoman import limits
from dragoman.dialects.contract import ErrorMessage, Id, NotificationMessage, Out, ResultMessage
from dragoman.errors import INTERNAL_ERROR, UsageError, WireError
from dragoman.outbox import Outbox
from dragoman.wire.jsonrpc import JsonRpcPeer, answer_size, encode_error, notification_size

# Beside its body an answer or an update has an envelope; this only decides who has to wait.
_ENVELOPE: Final = 128
# More than an envelope has, without the name of a method: ids have at most 1,024 characters, each up to six bytes.
# What leaves so much room fits and need not be measured.
_AMPLE: Final = 8 * 1024
# As numbers: looking for a byte is ten times faster than for a `bytes` of one.
_NEWLINE: Final = ord("\n")
_RETURN: Final = ord("\r")


class LinkWriter:
    """The saying half of a link."""

    def __init__(self, peer: JsonRpcPeer[Any], outbox: Outbox, on_bug: Callable[[Exception], None]) -> None:
        # Set at the end of a link: done when nothing is owed any more.
        self.answered: asyncio.Future[None] | None = None
        self._peer = peer
        self._outbox = outbox
        self._on_bug = on_bug
        self._refused: deque[tuple[int, int]] = deque()  # refusals in the outbox: where they end, and how many bytes

    def say(self, outs: Sequence[Out]) -> "asyncio.Future[None] | None":
        """Say these together, behind everything that waits. Not None: wait for it, or do not."""
        if len(outs) == 1:
            out = outs[0]
            if self._outbox.has_room(_cost(out)):
                payload = self._payload(out)
                if payload is not None:
                    self._outbox.put(payload)
                return None
        return self._outbox.enqueue(sum(map(_cost, outs)), self._payloads(outs)) if outs else None

    def say_now(self, outs: Sequence[Out]) -> None:
        """Say these whether there is room or not."""
        for payload in self._payloads(outs):
            self._outbox.put(payload)

    def refuse(self, id: Id, error: WireError) -> None:
        """Answer a request with an error, at once."""
        payload = self._peer.fail(id, *error)
        if payload is not None:
            self.send_back(payload)

    def send_back(self, payload: bytes) -> None:
        """Say at once what is wrong."""
        outbox = self._outbox
        size = -outbox.size
        outbox.put(payload)
        size += outbox.size
        end = outbox.written + outbox.size
        while self._refused and self._refused[0][0] <= outbox.written:
            self._refused.popleft()
        if self._refused and end - self._refused[-1][0] < limits.WRITE_BYTES:
            size += self._refused.pop()[1]
        self._refused.append((end, size))
        if outbox.size > limits.REFUSAL_BYTES:
            outbox.flush()

    @property
    def choked(self) -> bool:
        """Whether the peer is past what it may ask, and does not read what it is told about that."""
        outbox = self._outbox
        waiting = sum(size for end, size in self._refused if end > outbox.written)
        return waiting > limits.REFUSAL_BYTES or (outbox.crowded and self._peer.owed > 2 * limits.IN_FLIGHT)

    def _payloads(self, outs: Iterable[Out]) -> Iterable[bytes]:
        """The frames, each made when it is put: until then a request counts as unanswered."""
        for out in outs:
            payload = self._payload(out)
            if payload is not None:
                yield payload

    def _payload(self, out: Out) -> bytes | None:
        if isinstance(out, NotificationMessage):
            return one_line(self._peer.notify(out.method, out.params))
        if isinstance(out, ErrorMessage):
            payload = self._peer.fail(out.id, *out.error)
        elif len(out.result) + _AMPLE <= limits.FRAME_BYTES or (
            (size := answer_size(out.id, out.result)) <= limits.FRAME_BYTES
        ):
            payload = self._peer.answer(out.id, out.result)
        else:
            self._on_bug(UsageError(f"an answer of {size} bytes is larger than any peer takes"))
            payload = self._peer.fail(out.id, INTERNAL_ERROR, "The answer is too large")
        if self.answered is not None and not self._peer.owed and not self.answered.done():
            self.answered.set_result(None)
        return None if payload is None else one_line(payload)


def one_line(payload: bytes) -> bytes:
    """Parts of other people's JSON may have newlines between their tokens, where they mean as much as a space."""
    if _NEWLINE in payload or _RETURN in payload:
        return payload.replace(b"\n", b" ").replace(b"\r", b" ")
    return payload


def check_size(method: str, params: bytes, measure: Callable[[str, bytes], int] = notification_size) -> None:
    """Raise `UsageError` for a message that is larger than any peer takes; `measure` says how large it is, whole."""
    if len(params) + 6 * len(method) + _AMPLE <= limits.FRAME_BYTES:
        return
    size = measure(method, params)
    if size > limits.FRAME_BYTES:
        raise UsageError(f"a message of {size} bytes is larger than any peer takes ({limits.FRAME_BYTES}): split it")


def _cost(out: Out) -> int:
    if isinstance(out, ResultMessage):
        return len(out.result) + _ENVELOPE
    if isinstance(out, NotificationMessage):
        check_size(out.method, out.params)
        return len(out.params) + _ENVELOPE
    return len(encode_error(*out.error)) + _ENVELOPE
