"""What `dragoman serve` writes for the person who runs it: sentences, and the operator's log; both on stderr."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.gateway.logbook import Logbook


def print_line(sentence: str) -> None:
    """Print a sentence."""
    _write(f"dragoman: {sentence}\n".encode())


def print_nothing(sentence: str) -> None:
    """Print nothing: `--quiet`."""


def open_logbook(arguments: argparse.Namespace) -> "Logbook":
    """Return the log, at the level of the command line. On a terminal it has errors only: there JSON is noise."""
    from dragoman.gateway.logbook import Level, Logbook

    level: Level = "error" if arguments.quiet or sys.stderr.isatty() else "info"
    return Logbook(_write, arguments.log_level or level)


def _write(lines: bytes) -> None:
    # Whole lines at once: the log is written by a thread of its own, and must not end up in the middle of a sentence.
    sys.stderr.buffer.write(lines)
    sys.stderr.buffer.flush()


def error_reporter(log: "Logbook") -> "Callable[[Exception], None]":
    """Return a callback that logs an internal failure: its place and exception type, never content."""

    def report(error: Exception) -> None:
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = "" if place is None else f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}"
        log.error("failure", kind=type(error).__name__, where=where)

    return report
