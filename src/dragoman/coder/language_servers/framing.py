"""Cut a stream of bytes into the messages of the language server protocol: header lines, a blank line, a body. Pure.

A server is a program that is not trusted: what it may have us hold is bounded, and `FramingError` ends the connection.
Words that a program prints to stdout before or between its messages are skipped, up to a bound.
"""

import re
from typing import Final

from dragoman import limits

# The problems of a large file take some hundred kilobytes; no answer to what we ask is larger than that.
BODY_BYTES: Final = 8 * limits.MIB
HEADER_BYTES: Final = 8 * limits.KIB
# What a program may print that is no message, between two messages.
NOISE_BYTES: Final = 64 * limits.KIB

_LENGTH: Final = re.compile(rb"content-length:[ \t]*([0-9]{1,12})[ \t]*", re.IGNORECASE)


class FramingError(Exception):
    """A server sent what cannot be cut into messages within the bounds."""


class Frames:
    """Takes bytes as they come, and has the bodies that are complete."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        # The length of the body that is coming, once a header line has said it.
        self._length: int | None = None
        self._in_body = False
        self._noise = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the bodies that are complete by now. Raises `FramingError`."""
        self._buffer += data
        bodies: list[bytes] = []
        while (body := self._body() if self._in_body else self._header()) is not None:
            if body:
                bodies.append(body)
        return bodies

    def _header(self) -> bytes | None:
        """Take one line off the buffer; None: there is no whole one."""
        end = self._buffer.find(b"\n")
        if end < 0:
            if len(self._buffer) > HEADER_BYTES:
                raise FramingError("a header without an end")
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        found = _LENGTH.fullmatch(line.rstrip(b"\r"))
        if found is not None:
            self._length = int(found[1])
            if self._length > BODY_BYTES:
                raise FramingError("a message that is too large")
        elif not line.strip() and self._length is not None:
            self._in_body = True
        else:
            # Another header, or words that are none.
            self._noise += len(line) + 1
            if self._noise > NOISE_BYTES:
                raise FramingError("no messages")
        return b""

    def _body(self) -> bytes | None:
        """Take the body off the buffer; None: it is not all there."""
        assert self._length is not None
        if len(self._buffer) < self._length:
            return None
        body = bytes(self._buffer[: self._length])
        del self._buffer[: self._length]
        self._length, self._in_body, self._noise = None, False, 0
        return body


def frame(body: bytes) -> bytes:
    """Return a body with its header."""
    return b"Content-Length: %d\r\n\r\n" % len(body) + body
