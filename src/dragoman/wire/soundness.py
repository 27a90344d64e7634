"""Check what the JSON reader does not look at in a value it leaves unread: UTF-8, depth, lone surrogates.

Bytes in, a verdict or bytes out; knows nothing of messages. The promise: linear time in few passes over the bytes,
no step in Python for each of them, and little memory beside a large frame.
"""

from codecs import utf_8_decode
from typing import TYPE_CHECKING, Final

from dragoman.limits import MIB

if TYPE_CHECKING:
    from re import Pattern

# msgspec skips a `Raw` value without decoding it: bytes that are no UTF-8, nesting without a bound and half surrogate
# pairs would pass, and fail much later, in code that reads the value or passes it on. So they are looked for here.
_TO_SQUARE: Final = bytes.maketrans(b"{}", b"[]")
_NOT_STRUCTURE: Final = bytes(set(range(256)) - set(b'{}[]"'))
_CLOSE_BRACKET: Final = ord("]")
# Slopes, up and down again, are walked in Python; this many brackets for each, on average, make that cheap enough.
_SLOPE: Final = 32
# Made when it is first needed: most conversations never have an escaped surrogate, and `re` costs time at the start.
_lone_surrogate: "Pattern[bytes] | None" = None
_escaped_surrogate: "Pattern[bytes] | None" = None


def is_utf8(frame: bytes) -> bool:
    """Return whether a frame is UTF-8, decoded in pieces: the text of a large one takes up to four times its size."""
    try:
        if len(frame) <= MIB:
            frame.decode()
            return True
        view, at, size = memoryview(frame), 0, len(frame)
        while at < size:
            end = at + MIB
            # A character that is cut at the end of a piece is left for the next one; only the last must be whole.
            at += utf_8_decode(view[at:end], "strict", end >= size)[1]
    except UnicodeDecodeError:
        return False
    return True


def is_deeper(frame: bytes, allowed: int) -> bool:
    """Return whether brackets are nested more deeply than `allowed`; any answer for what is no JSON."""
    brackets = _brackets(frame)
    # Taking all innermost pairs away lowers every peak by one, and levels the low ones.
    while len(brackets) > 2 * allowed and brackets.count(b"][") * _SLOPE > len(brackets):
        brackets = brackets.replace(b"[]", b"")
        allowed -= 1
    # What is left has few slopes for its length, so this loop runs seldom for each byte.
    depth = 0
    for slope in brackets.split(b"]["):  # "[[[" and then "]]]", less the two that were split at
        down = slope.count(_CLOSE_BRACKET)
        depth += len(slope) - down
        if depth > allowed:
            return True
        depth -= down
    return False


def _brackets(frame: bytes) -> bytes:
    """Return every bracket outside of strings, as "[" and "]", in order."""
    found = []
    inside = 0
    at = 0
    while at < len(frame):
        piece = frame[at : at + MIB]
        at += len(piece)
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:  # never between a backslash and what it escapes
            piece += frame[at : at + 1]
            at += 1
        piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"").translate(_TO_SQUARE, _NOT_STRUCTURE)
        # Now every quote opens or closes a string. `inside` says which: brackets in the odd parts, counted from where
        # this piece begins, are text.
        parts = piece.replace(b'""', b"").split(b'"')
        found.append(b"".join(parts[inside::2]))
        inside ^= (len(parts) - 1) & 1
    return b"".join(found)


def has_escaped_characters(frame: bytes) -> bool:
    """Return whether a frame may have a surrogate that is written as an escape, `\\ud…`.

    True also for other escaped characters in a frame below a MiB: there one search for two bytes is the quickest.
    """
    if len(frame) < MIB:
        return frame.find(b"\\u") >= 0
    # In a text of many lines a backslash stands in every line, and `find` stops at each. A pattern that begins with a
    # literal goes on from one to the next three times as fast.
    global _escaped_surrogate
    if _escaped_surrogate is None:
        import re

        _escaped_surrogate = re.compile(rb"\\u[dD]")
    return _escaped_surrogate.search(frame) is not None


def with_surrogates_filled(frame: bytes, filling: bytes) -> bytes:
    """Return the frame with `filling` as the digits of lone surrogates; NUL stands in for escaped backslashes."""
    global _lone_surrogate
    if b"\0" in frame:
        return frame  # not JSON, and about to be refused as that
    if _lone_surrogate is None:
        import re

        _lone_surrogate = re.compile(
            rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
            rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD])[c-fC-F][0-9a-fA-F]{2})"
        )
    masked = frame.replace(rb"\\", b"\0\0")
    return _lone_surrogate.sub(rb"\\u" + filling, masked).replace(b"\0\0", rb"\\")
