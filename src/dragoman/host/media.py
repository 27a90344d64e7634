"""Checks pictures and sounds before they are part of a conversation: one bad picture in it, and no provider answers.

What is checked: the base64, the first bytes of a picture against its declared type, the size of each and of all
together, and how many there are. The bounds are the smallest that the providers name in their documentation:

| | each | number | together |
|---|---|---|---|
| Anthropic | 5 MB | 100 a request; over 20 they must be small | 32 MB a request |
| Gemini | 7 MB | 3,000 | 20 MB a request, base64 included |
| OpenAI | no bound of its own | 500 | 50 MB a request |

All four types are taken by Anthropic and OpenAI; Gemini names no GIF, and says so itself where it meets one. Pure.
"""

import binascii
from base64 import b64decode
from typing import Final

from dragoman.host.text import visible_line

# Of one picture or sound, decoded.
MEDIA_BYTES: Final = 5 * 1024 * 1024
# Of one prompt or one result: with more, Anthropic refuses every picture wider or higher than 2,000 pixels.
MEDIA_COUNT: Final = 20
# Of one prompt or one result, decoded: as base64 it leaves room for the conversation in a request of 20 MB.
ALL_MEDIA_BYTES: Final = 14 * 1024 * 1024
PICTURE_TYPES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
# Another spelling that clients use; no provider knows it.
_SPELLINGS: Final = {"image/jpg": "image/jpeg"}
PDF_TYPE: Final = "application/pdf"
PDF_BEGINS: Final = b"%PDF-"
_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class MediaRefused(Exception):
    """A picture, sound or blob that no provider would take. The text says what is wrong, and begins with no subject."""


def picture_type(data: bytes) -> str | None:
    """Return the type of a picture by its first bytes; None for everything that is none of `PICTURE_TYPES`."""
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for begins, kind in _BEGINNINGS if data.startswith(begins)), None)


def normal_type(declared: str) -> str:
    """Return a declared type as providers spell it: lower case, without parameters, `image/jpeg` for `image/jpg`."""
    kind = declared.partition(";")[0].strip().lower()
    return _SPELLINGS.get(kind, kind)


def check_picture(data: bytes, declared: str) -> None:
    """Raise `MediaRefused` if these bytes are no picture of the declared type, or are too many."""
    kind = normal_type(declared)
    if kind not in PICTURE_TYPES:
        raise MediaRefused(f"is {visible_line(declared[:100]) or 'of no type'}; it must be PNG, JPEG, GIF or WebP")
    if not data:
        raise MediaRefused("is empty")
    _check_size(len(data))
    found = picture_type(data)
    if found is None:
        raise MediaRefused(f"is declared as {kind}, and its bytes are no picture")
    if found != kind:
        raise MediaRefused(f"is declared as {kind}, and its bytes are {found}")


def decode_media(encoded: str) -> bytes:
    """Return the bytes of base64. Raises `MediaRefused` if it is empty, too long, or not base64 to its last letter."""
    if not encoded:
        raise MediaRefused("is empty")
    _check_size(len(encoded) * 3 // 4 - encoded[-2:].count("="))
    try:
        return b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise MediaRefused("is not valid base64") from None


def _check_size(size: int) -> None:
    if size > MEDIA_BYTES:
        raise MediaRefused(f"has {size:,} bytes; the most is {MEDIA_BYTES:,}")


class MediaBudget:
    """What one prompt, or one result of a tool, may still carry."""

    def __init__(self) -> None:
        self._count = MEDIA_COUNT
        self._bytes = ALL_MEDIA_BYTES

    def check(self, encoded: str, declared: str | None = None) -> None:
        """Take one more into account. Raises `MediaRefused` for what is bad, or too much beside the others.

        `declared`: its type, if it must be a picture; None for sounds and other data: only base64 and size count there.
        """
        data = decode_media(encoded)
        if declared is not None:
            check_picture(data, declared)
        if not self._count:
            raise MediaRefused(f"is one too many; the most is {MEDIA_COUNT}")
        if len(data) > self._bytes:
            raise MediaRefused(f"makes all of them together larger than {ALL_MEDIA_BYTES:,} bytes")
        self._count -= 1
        self._bytes -= len(data)
