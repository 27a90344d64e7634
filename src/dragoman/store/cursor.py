"""A place in a list of sessions, as the text that a client gets and gives back."""

import base64
import binascii
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from dragoman.store.contract import BadCursor

# Ours are about 120 characters.
_LONGEST: Final = 1024
# What a database can compare.
_LARGEST: Final = 2**63 - 1


class Cursor(NamedTuple):
    """A place in one list: which list, how it was filtered, at which change the paging began, the last one shown."""

    generation: str
    filter: str
    change: int
    activity: int
    id: str


def filter_mark(folders: Sequence[str], archived: str) -> str:
    """Return a short mark for a filter, so that a cursor is not used with another one."""
    import hashlib  # OpenSSL takes a while, and most sessions are opened without a list

    return hashlib.blake2b(msgspec.json.encode([list(folders), archived]), digest_size=8).hexdigest()


def encode_cursor(cursor: Cursor) -> str:
    """Return a cursor as text."""
    return base64.urlsafe_b64encode(msgspec.json.encode(list(cursor))).decode("ascii").rstrip("=")


def decode_cursor(text: str) -> Cursor:
    """Return the cursor in a text; raise `BadCursor` if there is none."""
    if len(text) > _LONGEST:
        raise BadCursor("that is no cursor of ours")
    try:
        plain = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        cursor = msgspec.convert(msgspec.json.decode(plain), Cursor)
    except (ValueError, binascii.Error, RecursionError) as error:
        raise BadCursor("that is no cursor of ours") from error
    if not (0 <= cursor.change <= _LARGEST and 0 <= cursor.activity <= _LARGEST):
        raise BadCursor("that is no cursor of ours")
    return cursor
