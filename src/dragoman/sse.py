"""Reads event streams: bytes in, events out, in whatever pieces. WHATWG HTML 9.2.6, as far as messages need it.

Pure.
"""

from typing import Final, NamedTuple

from dragoman import limits
from dragoman.errors import LinkClosed

_RETURN: Final = ord("\r")


class ServerEvent(NamedTuple):
    """One event: its id, empty where it has none, and its data."""

    id: str
    data: bytes


class EventReader:
    """Turns the bytes of one stream into events; an event ends with an empty line."""

    def __init__(self, limit: int = limits.FRAME_BYTES) -> None:
        self._limit = limit
        self._rest: list[bytes] = []
        self._id = ""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[ServerEvent]:
        """Return the events that `data` completes. Raise `LinkClosed` if one grows past the limit."""
        self._size += len(data)
        if self._size > self._limit:
            raise LinkClosed("the server sent an event that is larger than any message may be")
        self._rest.append(data)
        if b"\n" not in data:
            return []
        *lines, rest = b"".join(self._rest).split(b"\n")
        self._rest, self._size = [rest], len(rest) + sum(map(len, self._data)) + len(self._data)
        found: list[ServerEvent] = []
        for line in lines:
            self._read_line(line[:-1] if line and line[-1] == _RETURN else line, found)
        return found

    def _read_line(self, line: bytes, found: list[ServerEvent]) -> None:
        if not line:
            if self._data:
                found.append(ServerEvent(self._id, b"\n".join(self._data)))
                self._data, self._size = [], len(self._rest[0])
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._size += len(value) + 1  # also a line without data is kept
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("latin-1")
