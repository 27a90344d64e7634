"""Read a trace from a file: whole, in order, with what is wrong with it named by line.

A file that was cut off in its last line, as by a full disk, is read up to there. Everything is bounded: a file, a line,
and the number of records.
"""

import os
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

from dragoman.trace.records import Record, TraceFault, TraceFrame, TraceHeader, decode_header, decode_record

# What a trace may take to be read at once, and one line of it: a frame that was kept whole, with everything escaped.
READ_BYTES: Final = 512 * 1024 * 1024
LINE_BYTES: Final = 64 * 1024 * 1024
RECORDS: Final = 1_000_000


class RecordedTrace(NamedTuple):
    """A trace that was read. `damage` are lines that could not be; a file that another program reads has none."""

    header: TraceHeader
    records: list[Record]
    damage: list[TraceFault]

    def frames(self) -> list[TraceFrame]:
        """Return the frames, in the order in which they passed."""
        return [record for record in self.records if isinstance(record, TraceFrame)]


def read_trace(path: str, *, forgives: bool = False) -> RecordedTrace:
    """Read a trace. Raise `TraceFault` for a file that is none, or too large.

    A last line that is not complete is damage and no failure; `forgives`: neither is any other line.
    """
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > READ_BYTES:
                limit = READ_BYTES // 2**20
                raise TraceFault("too-large", f"{path}: {size // 2**20} MiB; a trace of at most {limit} MiB is read")
            return _read(file, forgives=forgives)
    except OSError as error:
        raise TraceFault("unreadable", f"{path}: {error.strerror}") from None
    except TraceFault as fault:
        raise fault if path in str(fault) else TraceFault(fault.code, f"{path}: {_plain(fault)}", fault.line) from None


def _plain(fault: TraceFault) -> str:
    return str(fault).removesuffix(f" ({fault.code})")


def _read(file: BinaryIO, *, forgives: bool) -> RecordedTrace:
    lines = numbered_lines(file)
    first = next(lines, None)
    if first is None:
        raise TraceFault("empty", "the file is empty", 1)
    trace = RecordedTrace(decode_header(first[1]), [], [])
    for number, line in lines:
        if len(trace.records) >= RECORDS:
            raise TraceFault("too-large", f"more than {RECORDS} records", number)
        if not line.strip():
            continue
        try:
            trace.records.append(decode_record(line, number))
        except TraceFault as fault:
            is_cut = not line.endswith(b"\n")
            if not is_cut and not forgives:
                raise
            trace.damage.append(TraceFault("cut-line", f"line {number} is cut off", number) if is_cut else fault)
    return trace


def numbered_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers; raise `TraceFault` for one that is too long."""
    number = 0
    while line := file.readline(LINE_BYTES):
        number += 1
        if len(line) == LINE_BYTES and not line.endswith(b"\n"):
            raise TraceFault("too-large", f"line {number} is longer than {LINE_BYTES // 2**20} MiB", number)
        yield number, line
