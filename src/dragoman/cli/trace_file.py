"""`--trace FILE` of a command: the hook that writes the frames of a link there."""

import argparse
from typing import TYPE_CHECKING, Literal

from dragoman.cli.errors import CommandError

if TYPE_CHECKING:
    from dragoman.trace.writer import FrameHook, TraceWriter


def trace_of(arguments: argparse.Namespace, role: Literal["agent", "client"]) -> "FrameHook | None":
    """Return the hook for a link on which we are `role`; None without `--trace`. Raise `CommandError`."""
    writer = trace_writer(arguments)
    if writer is None:
        return None
    from dragoman.trace.writer import hook_of

    return hook_of(writer.connect(), role)


def trace_writer(arguments: argparse.Namespace) -> "TraceWriter | None":
    """Return the writer of `--trace FILE`; None without it. Raise `CommandError` if the file cannot be written."""
    if arguments.trace is None:
        return None
    return open_writer(arguments.trace, f"dragoman {arguments.command}")


def open_writer(
    path: str, program: str, *, redacts: bool = True, max_bytes: int = 0, older_files: int | None = None
) -> "TraceWriter":
    """Return the writer of a trace; raise `CommandError` if the file cannot be written. 0 and None: as by default."""
    from dragoman.errors import UsageError
    from dragoman.trace.writer import MAX_BYTES, OLDER_FILES, TraceWriter

    older = OLDER_FILES if older_files is None else older_files
    try:
        return TraceWriter(path, redacts=redacts, max_bytes=max_bytes or MAX_BYTES, older_files=older, program=program)
    except UsageError as error:
        raise CommandError(str(error)) from None
