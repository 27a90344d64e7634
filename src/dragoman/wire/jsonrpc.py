"""One end of a JSON-RPC connection, either role: who asked what, and who still waits for an answer.

Owns the ids in both directions and the text of every message but its params and results. Knows no method except
`$/cancel_request`, and does no I/O: frames in, values out. The promises: `receive` never raises, whatever the peer
sends; every call of ours ends exactly once (answered, refused, abandoned, or given back by `end_calls` or `close`);
every request of theirs is answered at most once.
"""

from typing import Final, Generic, TypeAlias, TypeVar

from msgspec import UNSET, DecodeError, Raw, Struct
from msgspec.json import Decoder, Encoder

from dragoman import limits
from dragoman.errors import (
    INVALID_REQUEST,
    TOO_MANY_IN_FLIGHT,
    FrameTooLarge,
    LargeFrameHead,
    LinkClosed,
    PeerMistake,
    UsageError,
)
from dragoman.surrogates import replace_lone_surrogates
from dragoman.wire.envelope import (
    BadMessage,
    ErrorResponse,
    Id,
    Notification,
    RequestEnvelope,
    ResultResponse,
    answered_id,
    parse,
)

__all__ = [
    "Answered",
    "CallFailed",
    "CancelAsked",
    "IgnoredMessage",
    "Incoming",
    "JsonRpcPeer",
    "Notification",
    "RequestEnvelope",
    "SendBack",
]

CANCEL_REQUEST: Final = "$/cancel_request"

W = TypeVar("W")


class Answered(Struct, Generic[W], frozen=True):
    """Our call has its result."""

    waiter: W
    result: Raw


class CallFailed(Struct, Generic[W], frozen=True):
    """Our call was answered with an error; `data` is None where it was absent or null."""

    waiter: W
    code: int
    message: str
    data: Raw | None = None


class SendBack(Struct, frozen=True, gc=False):
    """What came was refused; this error has to go out. Nothing else is to be done.

    `reason` is what to report besides, where the refusal alone would leave a loss untold: a client reads the agent, and
    of an update that was skipped only its agent would know.
    """

    payload: bytes
    reason: str = ""


class CancelAsked(Struct, frozen=True, gc=False):
    """The peer no longer wants the answer to its request `id`; it still gets one."""

    id: Id


class IgnoredMessage(Struct, frozen=True, gc=False):
    """Nothing is to be done; `reason` is for the log and carries none of the peer's text, or is empty where that was
    to be expected."""

    reason: str


Incoming: TypeAlias = (
    RequestEnvelope | Notification | Answered[W] | CallFailed[W] | SendBack | CancelAsked | IgnoredMessage
)


class JsonRpcPeer(Generic[W]):
    """Calls of ours are known by their number, requests of theirs by the id they chose.

    `answers_noise`: an agent answers what is no message with an error; a client does not, since real agents print text
    on stdout, and answers only where an id tells who waits. `null_ids`: whether `"id": null` is a request (ACP v1) or
    a mistake (v2). `unlimited` names the methods that pass the limit of `in_flight`. The last two may be set later,
    when the version is known.
    """

    def __init__(
        self,
        *,
        answers_noise: bool,
        null_ids: bool = True,
        in_flight: int = limits.IN_FLIGHT,
        unlimited: frozenset[str] = frozenset(),
    ) -> None:
        self.null_ids = null_ids
        self.unlimited = unlimited
        self._answers_noise = answers_noise
        self._in_flight = in_flight
        # An id is in `_theirs` from the moment its request is handed up until it is answered. A number of ours is in
        # `_ours` until its answer comes or it is abandoned; then it is in `_abandoned`, as far as that has room.
        self._theirs: set[Id] = set()
        # Our numbers are integers, so a response to "1" is none to 1.
        self._ours: dict[Id, W] = {}
        self._abandoned: dict[Id, None] = {}  # calls without a waiter whose answer is still owed
        self._last = 0  # the number of our last call; numbers are never used twice
        # Two steps to the end: no more input (requests that came before may still be answered), then closed.
        self._input_has_ended = False
        self._closed = False

    @property
    def owed(self) -> int:
        """How many of their requests have no answer yet."""
        return len(self._theirs)

    @property
    def waiting(self) -> int:
        """How many of our calls have no answer yet."""
        return len(self._ours)

    def receive(self, frame: bytes | PeerMistake) -> Incoming[W]:
        """Return what a frame means, or the error that the framer returned in its place. Never raises."""
        if self._closed:
            return IgnoredMessage("after the end")
        if isinstance(frame, PeerMistake):
            # Most likely the result of a call of ours: then the call fails, and the peer is told nothing.
            if isinstance(frame, FrameTooLarge) and (number := answered_id(frame.head)) is not None:
                data = Raw(_encode(frame.data))
                return self._answered(ErrorResponse(number, frame.code, "The answer is too large", data))
            reason = "" if self._answers_noise else _SKIPPED
            if isinstance(frame, LargeFrameHead):
                # The second report of one frame: its refusal went out when the header was read.
                return IgnoredMessage(reason)
            if isinstance(frame, FrameTooLarge):
                # Without a head it may still turn out to be an answer.
                return SendBack(_failure(None, frame.code, frame.message, frame.data), reason if frame.head else "")
            return self._refuse(frame, None, answer=self._answers_noise)
        try:
            message = parse(frame)
        except BadMessage as bad:
            # Real agents print text on stdout. A client that answered it would fill the agent's stdin with errors that
            # no agent reads, so it answers only where an id shows that a request was meant.
            known = bad.id is not None or self._answers_noise
            return self._refuse(bad, bad.id, answer=bad.answerable and known)
        # `type` in place of `isinstance`, which takes three times as long for a class that a value is not of.
        if type(message) is ResultResponse and message.id in self._ours:
            return Answered(self._ours.pop(message.id), message.result)
        if type(message) is RequestEnvelope:
            return self._asked(message)
        if type(message) is Notification:
            return message if message.method != CANCEL_REQUEST else self._cancel_asked(message)
        return self._answered(message)

    def call(self, method: str, params: bytes, waiter: W) -> tuple[int, bytes]:
        """Make a request of ours: return its number and the bytes to send; raise `LinkClosed` after the end.

        `waiter` comes back once: from `receive`, or from `end_calls` or `close`. Raise `UsageError` for a request that
        is larger than any peer takes.
        """
        if self._input_has_ended:
            raise LinkClosed("the connection has ended")
        number = self._last + 1
        # One head serves for notifications and calls: the id goes between `jsonrpc` and `method`, as the official
        # SDKs write it, so that a peer finds the id of a long message at its beginning.
        head = _heads.get(method) or _remember(method)
        if params:
            payload = b'{"jsonrpc":"2.0","id":%d%b%b}' % (number, head, params)
        else:
            payload = b'{"jsonrpc":"2.0","id":%d%b}' % (number, head[: -len(_PARAMS)])
        if len(payload) > limits.FRAME_BYTES:
            raise too_large(len(payload))
        self._last = number
        self._ours[number] = waiter
        return number, payload

    def notify(self, method: str, params: bytes) -> bytes:
        """Make a notification; empty params are left out."""
        head = _heads.get(method) or _remember(method)
        return b"".join((_VERSION, head, params, b"}")) if params else _VERSION + head[: -len(_PARAMS)] + b"}"

    def answer(self, id: Id, result: bytes) -> bytes | None:
        """Return the response to their request; None after `close`.

        Raise `UsageError` if the request is not in flight, or for a response that is larger than any peer takes: then
        the request still has to be answered.
        """
        if id.__class__ is int:
            payload = b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (id, result)
        else:
            payload = b"".join((_HEAD, _encode(id), b',"result":', result, b"}"))
        if len(payload) > limits.FRAME_BYTES:
            raise too_large(len(payload))
        return payload if self._finish(id) else None

    def fail(self, id: Id, code: int, message: str, data: object = None) -> bytes | None:
        """Return the error response to their request; None after `close`. Raise `UsageError` as `answer` does."""
        return _failure(id, code, message, data) if self._finish(id) else None

    def cancel_call(self, number: int) -> bytes:
        """Ask the peer to stop working on our call; it still owes the answer. A call that is over is not harmed."""
        return self.notify(CANCEL_REQUEST, b'{"requestId":%d}' % number)

    def stop_waiting(self, number: int) -> None:
        """Stop waiting for the answer to a call; one that still comes is ignored without a report."""
        if number in self._ours:
            del self._ours[number]
            # Remembered so that the late answer is not reported as one that no call was made for.
            self._abandoned[number] = None
            if len(self._abandoned) > _ABANDONED:
                del self._abandoned[next(iter(self._abandoned))]

    def end_calls(self) -> list[W]:
        """Stop waiting for answers: return the waiters of our open calls, in the order of the calls.

        Requests of the peer that are in flight can still be answered.
        """
        self._input_has_ended = True
        waiters = list(self._ours.values())
        self._ours.clear()
        return waiters

    def close(self) -> list[W]:
        """End the conversation: return the waiters as `end_calls` does; nothing is answered any more."""
        self._theirs.clear()
        self._closed = True
        return self.end_calls()

    def _asked(self, request: RequestEnvelope) -> Incoming[W]:
        # What is refused here was never in flight, so it has no place in `_theirs` and needs no other answer.
        id = request.id
        if id is None and not self.null_ids:
            return SendBack(_failure(None, INVALID_REQUEST, "Invalid request: `id` must not be null"))
        # To serve both would leave one of the two without an answer that it could tell from the other's.
        if id in self._theirs:
            return SendBack(_failure(id, INVALID_REQUEST, "Invalid request: a request with this id is in flight"))
        if len(self._theirs) >= self._in_flight and request.method not in self.unlimited:
            return SendBack(_failure(id, TOO_MANY_IN_FLIGHT, "Too many requests in flight", {"retry": True}))
        self._theirs.add(id)
        return request

    def _answered(self, message: ResultResponse | ErrorResponse) -> Incoming[W]:
        number = message.id
        if number not in self._ours:
            if number in self._abandoned:
                del self._abandoned[number]
                return IgnoredMessage("")
            return IgnoredMessage(_unasked(message, self._last))
        waiter = self._ours.pop(number)
        if isinstance(message, ResultResponse):
            return Answered(waiter, message.result)
        return CallFailed(waiter, message.code, message.message, message.data)

    def _cancel_asked(self, notification: Notification) -> Incoming[W]:
        try:
            id = _decode_cancel(notification.params).requestId
        except DecodeError:
            return IgnoredMessage("a cancellation that names no request")
        # One that comes after our answer has crossed it on the way, and is nothing to wonder about.
        return CancelAsked(id) if id in self._theirs else IgnoredMessage("")

    def _refuse(self, mistake: PeerMistake, id: Id, *, answer: bool) -> Incoming[W]:
        if answer:
            return SendBack(_failure(id, mistake.code, mistake.message, mistake.data))
        return IgnoredMessage(f"{mistake.message} ({mistake.code})")

    def _finish(self, id: Id) -> bool:
        """Take a request out of flight; False after `close`, when there is no one left to answer."""
        try:
            self._theirs.remove(id)
        except KeyError:
            if self._closed:
                return False
            raise UsageError(f"request {id!r} is not in flight: answer each request once") from None
        return True


class _Cancel(Struct, gc=False):
    requestId: int | str | None


class _Error(Struct, gc=False):
    code: int
    message: str
    data: object = UNSET


_decode_cancel: Final = Decoder(_Cancel).decode
_encode: Final = Encoder().encode

# Calls that were given up and may still be answered; a peer that owes more is not worth a list.
_ABANDONED: Final = 1024
_HEAD: Final = b'{"jsonrpc":"2.0","id":'
_PARAMS: Final = b',"params":'
_VERSION: Final = b'{"jsonrpc":"2.0"'
_SKIPPED: Final = "a message that was too large"
# Characters that are kept of the message of an error that is too large.
_MESSAGE: Final = 200
# Notifications and calls from the method to the params. A bridge passes names on that its peer invents, so there are
# bounds.
_HEADS: Final = 256
_HEAD_CHARACTERS: Final = 128
_heads: Final[dict[str, bytes]] = {}


def _remember(method: str) -> bytes:
    head = b',"method":%b%b' % (_encode(method), _PARAMS)
    if len(_heads) < _HEADS and len(method) <= _HEAD_CHARACTERS:
        _heads[method] = head
    return head


def notification_size(method: str, params: bytes) -> int:
    """Return how many bytes a notification with these params has, which are not empty."""
    return len(_VERSION) + len(_heads.get(method) or _remember(method)) + len(params) + len(b"}")


def too_large(size: int) -> UsageError:
    """Return the error of a message that has more bytes than any peer takes."""
    return UsageError(f"a message of {size} bytes is larger than any peer takes ({limits.FRAME_BYTES}): split it")


def _failure(id: Id, code: int, message: str, data: object = None) -> bytes:
    head = b"".join((_HEAD, _encode(id), b',"error":'))
    return b"".join((head, encode_error(code, message, data, envelope=len(head) + len(b"}")), b"}"))


def encode_error(code: int, message: str, data: object = None, *, envelope: int = 0) -> bytes:
    """Return the error object of a response. Never fails, and fits a frame beside the `envelope` of so many bytes.

    Lone surrogates in the message are replaced. Data that no JSON can carry is left out. Of an error that is too large
    the code stays and the message says what happened to the rest.
    """
    try:
        text = _encode(_Error(code, message, UNSET if data is None else data))
    except (TypeError, ValueError, RecursionError, OverflowError):  # a UnicodeEncodeError is a ValueError
        message = replace_lone_surrogates(message)
        text = _encode(_Error(code, message))
    if len(text) + envelope <= limits.FRAME_BYTES:
        return text
    # An error must reach the peer, or its call would wait for ever: the code says the most, so that is what stays.
    cut = f"{message[:_MESSAGE]}{'…' if len(message) > _MESSAGE else ''}"
    return _encode(_Error(code, f"{cut} (the rest of this error was too large to be sent)"))


def _unasked(message: ResultResponse | ErrorResponse, last: int) -> str:
    if isinstance(message, ErrorResponse) and message.id is None:
        return f"the peer could not read a message of ours ({message.code})"
    if isinstance(message.id, int) and 0 < message.id <= last:
        return "an answer to a call that is over"
    return "an answer to a call that was never made"
