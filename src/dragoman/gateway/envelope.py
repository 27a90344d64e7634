"""What the gateway has to know of a message to bring it to its place: who it answers, what it asks, of which session.

A glance at the envelope; whether the message is right is for the link to say.
"""

import msgspec
from msgspec import UNSET, Struct, UnsetType

from dragoman.dialects.contract import Id

# What is no plain value is none of these, and is not decoded to find that out.
_Plain = str | int | float | bool | None


# Only the fields that decide where a message goes; msgspec skips everything else without making values of it.
class _Params(Struct, gc=False):
    sessionId: _Plain = None
    protocolVersion: _Plain = None


class _Envelope(Struct, gc=False):
    id: int | str | float | None | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: msgspec.Raw = msgspec.Raw(b"")


class Envelope(Struct, frozen=True, gc=False):
    """A message from outside. `method` is empty for an answer; `is_request`: it wants one."""

    id: Id
    method: str
    session_id: str | None
    is_request: bool
    version: int


class NotAMessage(Exception):
    """The frame is no JSON, or no object with the keys of a message."""


class Batched(NotAMessage):
    """The frame is an array: a batch, which ACP does not have."""


_envelope = msgspec.json.Decoder(_Envelope)
_params = msgspec.json.Decoder(_Params)


def peek(frame: bytes) -> Envelope:
    """Return the envelope of a message. Raise `NotAMessage`, or `Batched` for an array."""
    try:
        envelope = _envelope.decode(frame)
    except (ValueError, RecursionError, OverflowError):
        # An array gets a status of its own: clients of other JSON-RPC servers try batches.
        if frame.lstrip(b" \t\r\n")[:1] == b"[":
            raise Batched from None
        raise NotAMessage from None
    id = envelope.id
    session_id, version = _of_params(envelope.params)
    return Envelope(
        id if isinstance(id, (int, str)) else None,
        envelope.method if isinstance(envelope.method, str) else "",
        session_id,
        envelope.method is not UNSET and id is not UNSET,
        version,
    )


def _of_params(params: msgspec.Raw) -> tuple[str | None, int]:
    if not params:
        return None, 0
    try:
        read = _params.decode(params)
    except (ValueError, RecursionError, OverflowError):
        return None, 0
    session_id = read.sessionId if isinstance(read.sessionId, str) else None
    version = read.protocolVersion
    return session_id, version if isinstance(version, int) and not isinstance(version, bool) else 0
