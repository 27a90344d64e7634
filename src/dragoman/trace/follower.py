"""Read a trace while others write it: whole lines, as they come, across rotation.

A file that grew past its bound is moved away and a new one stands in its place: the rest of the old one is read first.
"""

import os
from typing import BinaryIO, Final

from dragoman.trace.reader import LINE_BYTES
from dragoman.trace.records import Record, TraceFault, decode_header, decode_record

_READ_BYTES: Final = 1024 * 1024


class TraceFollower:
    """Follows the trace at `path`, which need not be there yet. `from_start`: what is in it already counts too."""

    def __init__(self, path: str, *, from_start: bool) -> None:
        self._path = path
        self._skips = not from_start
        self._file: BinaryIO | None = None
        self._part = b""
        self._line = 0

    def __repr__(self) -> str:
        return f"<TraceFollower {self._path!r} line={self._line}>"

    @property
    def is_open(self) -> bool:
        """Return whether there is a file."""
        return self._file is not None

    def read(self) -> list[Record]:
        """Return the records that were completed since the last call; none, if nothing has come. Does not wait.

        Raise `TraceFault` for a file that is no trace.
        """
        found: list[Record] = []
        while True:
            if self._file is None and not self._open():
                return found
            is_over = self._is_replaced()
            found += self._read_lines()
            self._skips = False
            if not is_over:
                return found
            self.close()

    def close(self) -> None:
        """Close the file; the next `read` opens what stands at the path then."""
        if self._file is not None:
            self._file.close()
        self._file, self._part, self._line = None, b"", 0

    def _open(self) -> bool:
        try:
            self._file = open(self._path, "rb")  # noqa: SIM115  it stays open between two calls
        except FileNotFoundError:
            self._skips = False  # all of a file that comes later is new
            return False
        except OSError as error:
            raise TraceFault("unreadable", f"{self._path}: {error.strerror}") from None
        return True

    def _is_replaced(self) -> bool:
        """Return whether the file is not the one at the path any more, or was emptied."""
        assert self._file is not None
        status = os.fstat(self._file.fileno())
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            return True
        return not os.path.samestat(there, status) or status.st_size < self._file.tell()

    def _read_lines(self) -> list[Record]:
        assert self._file is not None
        found: list[Record] = []
        while data := self._file.read(_READ_BYTES):
            *lines, self._part = (self._part + data).split(b"\n")
            if len(self._part) > LINE_BYTES:
                raise TraceFault("too-large", f"{self._path}: a line is longer than {LINE_BYTES // 2**20} MiB")
            for line in lines:
                self._line += 1
                record = self._record(line)
                if record is not None and not self._skips:
                    found.append(record)
        return found

    def _record(self, line: bytes) -> Record | None:
        if self._line == 1:
            try:
                decode_header(line)
            except TraceFault as fault:
                raise TraceFault(fault.code, f"{self._path}: is no trace", 1) from None
            return None
        try:
            return decode_record(line, self._line) if line.strip() else None
        except TraceFault:
            return None  # a line of a program that we do not know; the next one may be whole
