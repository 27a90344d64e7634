"""What is seen of a message before it is decoded: whether it can be one, and whether reading it would cost too much.

A value that is decoded takes some ten times its size in memory, and a microsecond or three of the event loop
that all connections share: sixteen mebibytes of empty lists or of short keys take seconds. So values are counted
first. Bytes that may stand before a value are counted as they are; only where those are too many are the ones inside
strings left out of the count.
"""

import re
from itertools import islice
from typing import Final, NamedTuple

from dragoman.errors import INVALID_REQUEST, PARSE_ERROR

# Strings, lists, objects, and commas between others. A prompt has some ten, however long its texts are. So many take
# about fifty milliseconds to decode and pass on.
VALUES: Final = 50_000
_BLANK: Final = b" \t\r\n"
# A string, be it one that does not end: nothing is read twice, so this takes as long as the message is.
_VALUE: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{,]', re.DOTALL)


class PrecheckRefusal(NamedTuple):
    """Why a message is not read: the code of JSON-RPC, a status of HTTP, and a sentence."""

    code: int
    status: int
    reason: str


_NO_JSON: Final = PrecheckRefusal(PARSE_ERROR, 400, "The message is no JSON object.")
_TOO_MANY: Final = PrecheckRefusal(INVALID_REQUEST, 413, f"The message has more than {VALUES} values.")


def precheck(frame: bytes) -> PrecheckRefusal | None:
    """Return why a frame is refused before it is decoded; None: decode it. An empty one is for the link to skip."""
    start = frame[:1] if frame[:1] in (b"{", b"[", b"") else frame.lstrip(_BLANK)[:1]
    if start not in (b"{", b"[", b""):
        return _NO_JSON
    return _TOO_MANY if _has_too_many(frame) else None


def _has_too_many(frame: bytes) -> bool:
    if len(frame) <= VALUES or sum(map(frame.count, (b"[", b"{", b",", b'"'))) <= VALUES:
        return False
    return next(islice(_VALUE.finditer(frame), VALUES, None), None) is not None
