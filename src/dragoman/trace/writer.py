"""Write a trace: a line for each frame, bounded, and readable whatever happens to the process that writes.

Each record is appended in one write under a lock of the file, so several processes may write to one trace, and a kill
leaves whole lines. A file that would grow past its bound becomes FILE.1, what was that FILE.2, and the oldest is
deleted; a writer finds out by itself that another one has done so. A disk that fails stops no conversation: the record
is left out, and counted in the header as dropped once there is room again.
"""

import fcntl
import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Literal

from dragoman.errors import UsageError
from dragoman.trace.records import (
    TO_AGENT,
    TO_CLIENT,
    Direction,
    TraceFault,
    TraceFrame,
    TraceHeader,
    TraceNote,
    counter_place,
    decode_header,
    encode_counter,
    encode_frame,
    encode_header,
    encode_note,
)
from dragoman.trace.redaction import redact_frame, redact_value, secrets_of

# Of one file; with the older ones a trace takes three times as much.
MAX_BYTES: Final = 64 * 1024 * 1024
OLDER_FILES: Final = 2
_HEADER_BYTES: Final = 4096
_OPEN_TRIES: Final = 20
# How the lines of former releases began; such a file is moved away like a full one.
_FORMER_LINE: Final = b'{"time":'
FrameHook = Callable[[Literal["in", "out"], bytes], None]
_APPEND: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


class TraceWriter:
    """Appends to the trace at `path`, which only its owner can read. `redacts`: secrets are left out.

    Raise `UsageError` if the file cannot be written, or holds something else.
    """

    def __init__(
        self,
        path: str,
        *,
        redacts: bool = True,
        max_bytes: int = MAX_BYTES,
        older_files: int = OLDER_FILES,
        program: str = "dragoman",
    ) -> None:
        self._path = os.path.abspath(path)
        self._redacts = redacts
        self._max_bytes = max_bytes
        self._older_files = older_files
        self._program = program
        self._known: Final[Sequence[str]] = secrets_of(os.environ) if redacts else ()
        self._lost = 0
        self._waiting_header = b""
        self._appends = -1
        self._counts = -1
        try:
            self._open()
            self._unlock()
        except OSError as error:
            raise UsageError(f"{path}: cannot write the trace: {error.strerror}") from None

    def __repr__(self) -> str:
        return f"<TraceWriter {self._path!r} lost={self._lost}>"

    def connect(self) -> "TracedConnection":
        """Begin a connection, with a number of its own."""
        number = 1
        try:
            self._lock()
            number = self._count("connections")
            self._unlock()
        except OSError:
            pass  # as of a full disk: the frames may still have room
        return TracedConnection(self, str(number))

    def append(self, line: bytes, *, is_frame: bool) -> None:
        """Append a record; leave it out if the disk does not take it."""
        try:
            self._lock()
            try:
                self._make_room(len(line))
                self._write_waiting_header()
                self._write(line)
                if is_frame:
                    self._count("frames")
                if self._lost:
                    self._count("dropped", self._lost)
                    self._lost = 0
            finally:
                self._unlock()
        except OSError:
            self._lost += is_frame

    def redacted(self, frame: bytes) -> tuple[bytes, bool]:
        """Return a frame as it is written, and whether that differs from what passed."""
        if not self._redacts:
            return frame, False
        found = redact_frame(frame, self._known)
        return found.text.encode("utf-8", "replace"), found.is_changed

    def redacted_value(self, value: Any) -> Any:
        """Return what is no frame, such as text of stderr, as it is written."""
        return redact_value(value, self._known) if self._redacts else value

    def close(self) -> None:
        """Close the file; what is appended later is left out."""
        for descriptor in (self._appends, self._counts):
            if descriptor >= 0:
                os.close(descriptor)
        self._appends = self._counts = -1

    # -- the file ----------------------------------------------------------------------------------------------------

    def _open(self, *, continued: bool = False, dropped: int = 0) -> None:
        """Open the file and lock it; give it a header if it is new."""
        for _ in range(_OPEN_TRIES):
            self.close()
            self._appends = os.open(self._path, _APPEND, 0o600)
            status = os.fstat(self._appends)
            if not stat.S_ISREG(status.st_mode):
                self._begin_with(self._header(continued=False, dropped=0))
                return
            fcntl.flock(self._appends, fcntl.LOCK_EX)
            if not self._is_moved():
                os.fchmod(self._appends, 0o600)  # it may be older than this trace
                self._counts = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY)
                if self._begin(continued=continued, dropped=dropped):
                    return
        raise OSError(0, "another program replaces the file again and again")

    def _begin(self, *, continued: bool, dropped: int) -> bool:
        """Write the header of a new file, or check that of an old one; False if the file was moved out of the way."""
        size = os.fstat(self._counts).st_size
        if not size:
            self._begin_with(self._header(continued=continued, dropped=dropped))
            return True
        head = os.pread(self._counts, _HEADER_BYTES, 0)
        if head.startswith(_FORMER_LINE):
            self._rotate()
            return False
        try:
            decode_header(head.partition(b"\n")[0])
        except TraceFault:
            raise UsageError(
                f"{self._path}: is no trace, and is not written over; name another file for the trace"
            ) from None
        if os.pread(self._counts, 1, size - 1) != b"\n":  # the machine went down in the middle of a line
            self._write(b"\n")
        return True

    def _begin_with(self, header: bytes) -> None:
        """Write the header of a new file; where the disk is full, keep it for the first record that has room."""
        self._waiting_header = header
        with suppress(OSError):
            self._write_waiting_header()

    def _write_waiting_header(self) -> None:
        if self._waiting_header:
            self._write(self._waiting_header)
            self._waiting_header = b""

    def _header(self, *, continued: bool, dropped: int) -> bytes:
        header = TraceHeader(
            _now(), dropped=dropped, is_redacted=self._redacts, continued=continued, program=self._program
        )
        return encode_header(header)

    def _lock(self) -> None:
        if self._counts < 0:
            if self._appends < 0:
                raise OSError(0, "closed")
            return
        fcntl.flock(self._appends, fcntl.LOCK_EX)
        if self._is_moved():
            self._open()

    def _unlock(self) -> None:
        if self._counts >= 0:
            fcntl.flock(self._appends, fcntl.LOCK_UN)

    def _is_moved(self) -> bool:
        """Return whether the file at our path is another one, or none: it was rotated, or deleted."""
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            return True
        return not os.path.samestat(there, os.fstat(self._appends))

    def _make_room(self, size: int) -> None:
        if self._counts < 0:
            return
        held = os.fstat(self._counts).st_size
        if held + size > self._max_bytes and held > _HEADER_BYTES:
            dropped = self._counter("dropped")[1] + self._rotate()
            self._open(continued=True, dropped=dropped)

    def _rotate(self) -> int:
        """Move the file out of the way; return how many frames are deleted with the oldest one."""
        names = [self._path, *(f"{self._path}.{number}" for number in range(1, self._older_files + 1))]
        lost = _frames_in(names[-1])
        for older, newer in zip(reversed(names), reversed(names[:-1]), strict=False):
            if os.path.lexists(newer):
                os.replace(newer, older)
        if not self._older_files:
            os.unlink(self._path)
        return lost

    def _write(self, line: bytes) -> None:
        """Append a line whole, or not at all."""
        before = os.fstat(self._appends).st_size
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(self._appends, rest) :]
        except OSError:
            if self._counts >= 0 and len(rest) < len(line):
                os.ftruncate(self._counts, before)
            raise

    def _count(self, name: str, more: int = 1) -> int:
        """Add to a counter of the header, and return its value."""
        if self._counts < 0:
            return 1
        place, value = self._counter(name)
        if place:
            os.pwrite(self._counts, encode_counter(value + more), place)
        return value + more

    def _counter(self, name: str) -> tuple[int, int]:
        # The header of another program has counters without the room to write them anew: those stay as they are.
        line = os.pread(self._counts, _HEADER_BYTES, 0).partition(b"\n")[0]
        return counter_place(line, name) or (0, 0)


class TracedConnection:
    """One connection of a trace: everything written here has its number."""

    def __init__(self, writer: TraceWriter, number: str) -> None:
        self.number: Final = number
        self._writer = writer
        self._opened_at = time.monotonic()

    def __repr__(self) -> str:
        return f"<TracedConnection {self.number} of {self._writer!r}>"

    def frame(self, direction: Direction, data: bytes) -> None:
        """Write a frame."""
        written, is_changed = self._writer.redacted(data)
        elapsed = time.monotonic() - self._opened_at
        record = TraceFrame(0, _now(), self.number, direction, written, elapsed, is_redacted=is_changed)
        self._writer.append(encode_frame(record), is_frame=True)

    def note(self, kind: Literal["process", "stderr"], **fields: Any) -> None:
        """Write what is no frame; text in it is redacted as frames are."""
        clean = {name: self._writer.redacted_value(value) for name, value in fields.items()}
        elapsed = round(time.monotonic() - self._opened_at, 6)
        record = TraceNote(0, _now(), self.number, kind, {**clean, "elapsed": elapsed})
        self._writer.append(encode_note(record), is_frame=False)


def hook_of(connection: TracedConnection, role: Literal["agent", "client"]) -> FrameHook:
    """Return the hook of a link that writes its frames as those of a connection; `role` is what we are on that link."""
    received: Direction = TO_AGENT if role == "agent" else TO_CLIENT
    sent: Direction = TO_CLIENT if role == "agent" else TO_AGENT

    def trace(direction: Literal["in", "out"], frame: bytes) -> None:
        connection.frame(received if direction == "in" else sent, frame)

    return trace


def _frames_in(path: str) -> int:
    """Return how many frames a trace holds, by its header; 0 if there is none."""
    try:
        with open(path, "rb") as file:
            return decode_header(file.readline(_HEADER_BYTES)).frames
    except (OSError, TraceFault):
        return 0


def _now() -> int:
    return time.time_ns() // 1_000_000
