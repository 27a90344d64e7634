"""Headers of a request, as ASGI has them. Pure."""

from collections.abc import Sequence
from typing import Final

Headers = Sequence[tuple[bytes, bytes]]

# No page of another origin can add it without asking us first, and we never say yes.
OUR_HEADER: Final = (b"x-dragoman", "1")


def value_of(headers: Headers, name: bytes) -> str | None:
    """Return the value of a header, the first where there are several; None where there is none."""
    return next((value.decode("latin-1") for found, value in headers if found == name), None)


def number_in(text: str | None) -> int | None:
    """Return the number in a header; None for anything that is no number, as if the header were not there."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 16 else None


def has_our_header(headers: Headers) -> bool:
    """Return whether a script of our own page has sent this request, or no browser at all."""
    return value_of(headers, OUR_HEADER[0]) == OUR_HEADER[1]
