"""The one interface for wires that a JSON-RPC peer of the protocol does not understand as they are.

Some vendors' programs answer a request by a notification, know a method by another name, or never send `initialize`.
An adapter stands between the frames on the wire and the link: the link gives it every complete frame that arrives,
before the JSON-RPC peer sees it, and every frame that is about to leave. On the link's side of an adapter there are
only requests, responses and notifications as the protocol has them.

An adapter is pure: no I/O, no clock. It remembers requests until they are answered, so it is bounded by the limit of
requests in flight. A frame that it does not know passes unchanged, malformed ones too: the peer judges those.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec
from msgspec import Raw

from dragoman.wire.envelope import BadMessage, ErrorResponse, Id, Notification, RequestEnvelope, ResultResponse, parse

Envelope = RequestEnvelope | Notification | ResultResponse | ErrorResponse


class AdaptedFrames(NamedTuple):
    """What one frame from the wire comes to: frames for the JSON-RPC peer, and frames to send back at once."""

    deliver: Sequence[bytes]
    send: Sequence[bytes] = ()


class WireAdapter(Protocol):
    """The adapter of one link in one role."""

    def receive(self, frame: bytes) -> AdaptedFrames:
        """Adapt a frame that has arrived."""

    def send(self, frame: bytes) -> Sequence[bytes]:
        """Return the frames that leave in place of this one."""


def read_envelope(frame: bytes) -> Envelope | None:
    """Return the message in a frame, read as strictly as the JSON-RPC peer does; None if it is malformed."""
    # Read as the peer reads it: an adapter that saw another method or id in a frame than the peer does could be used to
    # smuggle one past it.
    try:
        return parse(frame)
    except BadMessage:
        return None


def request_frame(id: Id, method: str, params: object) -> bytes:
    """Encode a request. `params` is a JSON value, or a `Raw` of one."""
    return _encoded(id=id, method=method, params=params)


def notification_frame(method: str, params: object) -> bytes:
    """Encode a notification."""
    return _encoded(method=method, params=params)


def result_frame(id: Id, result: object) -> bytes:
    """Encode a response with a result."""
    return _encoded(id=id, result=result)


def as_dict(value: Raw) -> dict[str, object]:
    """Return params or a result as a dict; an empty one if it is no object."""
    try:
        found = msgspec.json.decode(value) if value else None
    except (ValueError, RecursionError, OverflowError):
        return {}
    return found if isinstance(found, dict) else {}


def _encoded(**members: object) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", **members})
