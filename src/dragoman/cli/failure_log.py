"""`log/dragoman.log` in the state folder: what of ours has failed, and where; for people who wonder or write a report.

Promises
- A line is one JSON object: when, which command, which process, the kind of the exception and the places it came
  through. Never its text: that may quote a prompt, a file or a key.
- Nothing is opened or made before the first failure. Files are for their owner alone, and all of them together are
  bounded. Several processes may write at once.
- Not being able to write is no failure of the command.
"""

import fcntl
import json
import os
import time
from contextlib import suppress
from types import TracebackType
from typing import Final

from dragoman.cli.errors import CommandError
from dragoman.cli.home import own_path
from dragoman.version import VERSION

NAME: Final = "dragoman.log"
# Some thousands of failures each: the newest in NAME, then NAME.1, and the oldest in NAME.2.
FILE_BYTES: Final = 1024 * 1024
OLDER_FILES: Final = 2
# A process that fails all the time says nothing new.
LINES: Final = 1000
# The innermost places; what is further out says less, and a recursion has thousands.
PLACES: Final = 12
# Exceptions that one was made from.
CAUSES: Final = 4

_written = 0


def log_file() -> str:
    """Return the path of the log; there need not be a file yet."""
    return os.path.join(own_path("log"), NAME)


def record(command: str, error: BaseException) -> None:
    """Keep that something has failed which should not."""
    global _written
    if _written >= LINES:
        return
    _written += 1
    line = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "version": VERSION,
        "command": command,
        "pid": os.getpid(),
        "kind": type(error).__name__,
        "where": places(error.__traceback__),
        "causes": _causes(error),
    }
    with suppress(OSError, CommandError):  # there need not be a folder for it
        append_line(log_file(), json.dumps(line).encode() + b"\n")


def append_line(file: str, line: bytes) -> None:
    """Append a line to a file of the log folder, and rotate the file when it is full; `OSError` if that fails."""
    folder = os.path.dirname(file)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    turns = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(turns, fcntl.LOCK_EX)  # no other process rotates the files now
        with suppress(FileNotFoundError):
            if os.stat(file).st_size + len(line) > FILE_BYTES:
                _move(file)
        descriptor = os.open(
            file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600
        )
        try:
            os.fchmod(descriptor, 0o600)  # it may be older than we are
            os.write(descriptor, line)
        finally:
            os.close(descriptor)
    finally:
        os.close(turns)


def _move(file: str) -> None:
    for number in range(OLDER_FILES, 0, -1):
        with suppress(FileNotFoundError):
            os.replace(file if number == 1 else f"{file}.{number - 1}", f"{file}.{number}")


def places(trace: TracebackType | None) -> list[str]:
    """Return `file.py:line name` of the last `PLACES` frames, innermost first; without folders, which are private."""
    places = []
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append(f"{os.path.basename(code.co_filename)}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return places[: -PLACES - 1 : -1]


def _causes(error: BaseException) -> list[str]:
    causes: list[str] = []
    cause = error.__cause__ or error.__context__
    while cause is not None and len(causes) < CAUSES:  # a chain can be a circle
        causes.append(type(cause).__name__)
        cause = cause.__cause__ or cause.__context__
    return causes
