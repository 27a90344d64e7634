"""An HTTP/1.1 response, read strictly from a stream: bounded head, bounded body, decoded as it comes.

What a server sends beyond the bounds is not read. What is not plain HTTP is refused rather than guessed.
"""

import asyncio
import re
import zlib
from typing import Final, NamedTuple

from dragoman.errors import WorldError

# Heads of real pages stay below 8 KiB, cookies and policies included.
HEAD_BYTES: Final = 64 * 1024
HEAD_LINES: Final = 200
# Interim answers (103 Early Hints) before the real one.
_INTERIM_HEADS: Final = 5
_PIECE_BYTES: Final = 64 * 1024
_CHUNK_LINE_BYTES: Final = 1024
_TRAILER_LINES: Final = 100

_STATUS_LINE: Final = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: [^\r\n]*)?")
_FIELD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*?)[ \t]*")
_CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,12})[ \t]*(?:;[^\r\n]*)?")


class FetchFailed(WorldError):
    """A page that could not be had. The text is fit for the model."""


class Head(NamedTuple):
    """Status and fields; a field that came several times has all its values, joined by commas."""

    status: int
    fields: dict[str, str]

    def field(self, name: str) -> str:
        """Empty if it did not come."""
        return self.fields.get(name, "")

    @property
    def declared_bytes(self) -> int | None:
        """What the server says the body has; None if it does not say."""
        text = self.field("content-length")
        if not text:
            return None
        lengths = {length.strip() for length in text.split(",")}
        if len(lengths) > 1 or not re.fullmatch(r"[0-9]{1,18}", text.partition(",")[0].strip()):
            raise FetchFailed("The server sent a content length that makes no sense.")
        return int(lengths.pop())


async def read_head(reader: asyncio.StreamReader) -> Head:
    """The head of the answer proper."""
    for _ in range(_INTERIM_HEADS):
        head = await _one_head(reader)
        if head.status >= 200:
            return head
    raise FetchFailed("The server does not come to its answer.")


class Body:
    """The decoded body up to a limit. `data` is what has come by now, also if reading was broken off."""

    def __init__(self, head: Head, limit: int) -> None:
        self.data = bytearray()
        self.is_cut = False
        self._limit = limit
        self._decoder = _decoder(head.field("content-encoding"))
        self._source = _source(head)

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Reads until the end or the limit."""
        taken = 0
        while piece := await self._source.next(reader):
            taken += len(piece)
            # One byte more than there is room for tells whether something is cut, and a bomb gets no further.
            self.data += self._decoder.decode(piece, self._limit + 1 - len(self.data))
            if len(self.data) > self._limit or taken > self._limit:
                del self.data[self._limit :]
                self.is_cut = True
                return
        self.is_cut = self._source.is_short or not self._decoder.is_finished


class _Source:
    """A body that ends with the connection."""

    is_short = False

    async def next(self, reader: asyncio.StreamReader) -> bytes:
        """What comes next, nothing at the end."""
        return await reader.read(_PIECE_BYTES)


class _Counted(_Source):
    """A body whose length was declared."""

    def __init__(self, length: int) -> None:
        self._left = length

    async def next(self, reader: asyncio.StreamReader) -> bytes:
        if not self._left:
            return b""
        piece = await reader.read(min(self._left, _PIECE_BYTES))
        self._left -= len(piece)
        self.is_short = not piece
        return piece


class _Chunked(_Source):
    """A body in chunks, each with its size before it."""

    def __init__(self) -> None:
        self._left = 0
        self._has_begun = False

    async def next(self, reader: asyncio.StreamReader) -> bytes:
        if not self._left:
            if self._has_begun and await _line(reader, 2) != b"":
                raise FetchFailed("The server sent a chunk that does not end where it should.")
            self._has_begun = True
            self._left = await _chunk_size(reader)
            if not self._left:
                await self._skip_trailers(reader)
                return b""
        piece = await reader.read(min(self._left, _PIECE_BYTES))
        self._left -= len(piece)
        self.is_short = not piece
        return piece

    async def _skip_trailers(self, reader: asyncio.StreamReader) -> None:
        for _ in range(_TRAILER_LINES):
            if await _line(reader, _CHUNK_LINE_BYTES) == b"":
                return
        raise FetchFailed("The server sent too many trailers.")


def _source(head: Head) -> _Source:
    declared = head.declared_bytes
    transfer = head.field("transfer-encoding").lower()
    if transfer and (transfer != "chunked" or declared is not None):
        raise FetchFailed("The server sends in a way that is not understood.")
    if head.status in (204, 304):
        return _Counted(0)
    if transfer:
        return _Chunked()
    return _Source() if declared is None else _Counted(declared)


class _Decoder:
    """Nothing to decode."""

    is_finished = True

    def decode(self, piece: bytes, limit: int) -> bytes:
        return piece[:limit]


class _Inflate(_Decoder):
    """gzip and deflate, never more than was asked for."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._inflate = zlib.decompressobj(window)
        self._has_begun = False

    @property
    def is_finished(self) -> bool:  # type: ignore[override]
        return self._inflate.eof or not self._has_begun

    def decode(self, piece: bytes, limit: int) -> bytes:
        if self._inflate.eof:
            return b""
        try:
            return self._decode(piece, limit)
        except zlib.error as error:
            raise FetchFailed("The server sent a compressed body that cannot be unpacked.") from error

    def _decode(self, piece: bytes, limit: int) -> bytes:
        begins, self._has_begun = not self._has_begun, True
        try:
            return self._inflate.decompress(piece, limit)
        except zlib.error:
            if not begins or self._window != zlib.MAX_WBITS:
                raise
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)  # some servers leave out the zlib header
            return self._inflate.decompress(piece, limit)


def _decoder(encoding: str) -> _Decoder:
    match encoding.strip().lower():
        case "" | "identity":
            return _Decoder()
        case "gzip" | "x-gzip":
            return _Inflate(zlib.MAX_WBITS | 16)
        case "deflate":
            return _Inflate(zlib.MAX_WBITS)
        case _:
            raise FetchFailed("The server sent a body in an encoding that was not asked for.")


async def _one_head(reader: asyncio.StreamReader) -> Head:
    first = await _line(reader, HEAD_BYTES)
    status = _STATUS_LINE.fullmatch(first)
    if status is None:
        raise FetchFailed("What answers there does not speak HTTP/1.1.")
    left = HEAD_BYTES - len(first)
    fields: dict[str, str] = {}
    for _ in range(HEAD_LINES):
        line = await _line(reader, left)
        if not line:
            return Head(int(status[1]), fields)
        left -= len(line)
        field = _FIELD.fullmatch(line)
        if field is None:
            raise FetchFailed("The server sent a header that is none.")
        name, value = field[1].decode().lower(), field[2].decode("latin-1")
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    raise FetchFailed("The server sent too many headers.")


async def _chunk_size(reader: asyncio.StreamReader) -> int:
    size = _CHUNK_SIZE.fullmatch(await _line(reader, _CHUNK_LINE_BYTES))
    if size is None:
        raise FetchFailed("The server sent a chunk without a size.")
    return int(size[1], 16)


async def _line(reader: asyncio.StreamReader, limit: int) -> bytes:
    """A line without its end."""
    try:
        line = await reader.readuntil(b"\r\n")
    except asyncio.IncompleteReadError as error:
        raise FetchFailed("The server ended the connection before its answer was complete.") from error
    except asyncio.LimitOverrunError as error:
        raise FetchFailed("The server sent a line that is too long.") from error
    if len(line) > max(limit, 2):
        raise FetchFailed("The server sent a line that is too long.")
    return line[:-2]
