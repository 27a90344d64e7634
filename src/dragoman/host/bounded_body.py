"""The body of a response, unpacked as it comes, and never more of it than was asked for.

Not unpacked by httpx2: whether a packed body came whole, which a truncated page must say, it does not tell.
"""

import re
import zlib
from collections.abc import Callable
from contextlib import aclosing
from typing import Final, NamedTuple

import httpx2
from h2.exceptions import H2Error

from dragoman.errors import WorldError

try:
    import brotli  # type: ignore[import-untyped]
except ModuleNotFoundError:
    brotli = None

# Before 1.2 brotli unpacks all of its input at once, a gigabyte out of a kilobyte.
_HAS_BROTLI: Final = hasattr(brotli, "Decompressor") and hasattr(brotli.Decompressor, "can_accept_more_data")
ACCEPTED_ENCODINGS: Final = "gzip, deflate, br" if _HAS_BROTLI else "gzip, deflate"
# A body that says it is larger is not begun: it is no page.
DECLARED_BYTES: Final = 32 * 1024 * 1024
# What goes wrong below a response that has begun. h2 is not wrapped by httpx2 everywhere.
BROKEN: Final = (httpx2.TransportError, H2Error, OSError, ValueError)

_UNPACKING_ERRORS: Final = (zlib.error, brotli.error) if _HAS_BROTLI else (zlib.error,)


class FetchFailed(WorldError):
    """A page that could not be had. The text is fit for the model."""


class BoundedBody:
    """A body up to a limit. `data` is what has come by now, also if reading was broken off; `is_cut`: not all of it."""

    def __init__(self, headers: httpx2.Headers, limit: int) -> None:
        self.data = bytearray()
        self.is_cut = False
        self._limit = limit
        self._unpacker = _unpacker(headers.get("content-encoding", ""))
        declared = headers.get("content-length", "0")
        if not re.fullmatch("[0-9]{1,18}", declared):
            raise FetchFailed("The server sent a content length that makes no sense.")
        if int(declared) > DECLARED_BYTES:
            raise FetchFailed(f"The page is larger than {DECLARED_BYTES // 1024 // 1024} MiB.")

    async def read(self, response: httpx2.Response) -> None:
        """Read until the end, the limit, or a connection that breaks; `FetchFailed` if that leaves nothing."""
        try:
            async with aclosing(response.aiter_raw()) as pieces:
                async for piece in pieces:
                    if not self._add(piece, response.num_bytes_downloaded):
                        return
        except BROKEN as error:
            if not self.data:
                raise FetchFailed("The server ended the connection before its answer was complete.") from error
            self.is_cut = True
        self.is_cut = self.is_cut or not self._unpacker.is_finished()

    def _add(self, piece: bytes, received: int) -> bool:
        """Return whether there is room for more."""
        try:
            # One byte more than there is room for tells whether something is cut, and a bomb gets no further.
            self.data += self._unpacker.unpack(piece, self._limit + 1 - len(self.data))
        except _UNPACKING_ERRORS as error:
            raise FetchFailed("The server sent a compressed body that cannot be unpacked.") from error
        if len(self.data) > self._limit or received > self._limit:
            del self.data[self._limit :]
            self.is_cut = True
        return not self.is_cut


class _Unpacker(NamedTuple):
    """`unpack(piece, limit)` returns about `limit` bytes at most; `is_finished` says whether the body came whole."""

    unpack: Callable[[bytes, int], bytes]
    is_finished: Callable[[], bool]


class _Inflate:
    """gzip or deflate. A body of nothing at all counts as finished."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._inflate = zlib.decompressobj(window)
        self._has_begun = False

    def is_finished(self) -> bool:
        return self._inflate.eof or not self._has_begun

    def unpack(self, piece: bytes, limit: int) -> bytes:
        begins, self._has_begun = not self._has_begun, True
        try:
            return b"" if self._inflate.eof else self._inflate.decompress(piece, limit)
        except zlib.error:
            if not begins or self._window != zlib.MAX_WBITS:
                raise
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)  # some servers leave out the zlib header
            return self._inflate.decompress(piece, limit)


def _unpacker(encoding: str) -> _Unpacker:
    match encoding.strip().lower():
        case "" | "identity":
            return _Unpacker(lambda piece, limit: piece[:limit], lambda: True)
        case "gzip" | "x-gzip":
            inflate = _Inflate(zlib.MAX_WBITS | 16)
            return _Unpacker(inflate.unpack, inflate.is_finished)
        case "deflate":
            inflate = _Inflate(zlib.MAX_WBITS)
            return _Unpacker(inflate.unpack, inflate.is_finished)
        case "br" if _HAS_BROTLI:
            opened = brotli.Decompressor()
            return _Unpacker(lambda piece, limit: opened.process(piece, output_buffer_limit=limit), opened.is_finished)
        case _:
            # Several at once too: one inside of the other can unpack for hours without a byte of output.
            raise FetchFailed("The server sent a body in an encoding that was not asked for.")
