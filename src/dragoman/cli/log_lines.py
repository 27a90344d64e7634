"""`--log-level LEVEL` and `DRAGOMAN_LOG`: what the parts of a command do, as lines on stderr, for finding a fault.

Every module logs to the logger of its own name (`dragoman.link.link`, `dragoman.coder.mcp.server` …). `main` imports
this module only when a level is asked for; without one no record is made.

Promises
- Lines go to stderr, or to the file that `DRAGOMAN_LOG_FILE` names. Never to stdout, which is the wire of an agent.
- A line has the time (UTC), the level, the logger and a message, and nothing in it acts on a terminal. Of an exception
  it has the kind and the places, never the text: that may quote a prompt, a file or a key.
- Only records of loggers below `dragoman` are written: libraries log requests whole, with their headers.
- A reader of stderr that does not read cannot stop the command: lines that do not fit into the pipe are left out, and
  counted in the next one that does.
"""

import json
import logging
import os
import select
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from dragoman.cli.common_options import LOG_LEVELS
from dragoman.cli.errors import CommandError
from dragoman.cli.failure_log import places
from dragoman.host.text import harmless_line
from dragoman.version import VERSION

VARIABLE: Final = "DRAGOMAN_LOG"
FILE_VARIABLE: Final = "DRAGOMAN_LOG_FILE"
# A pipe that is ready takes this many bytes at once (PIPE_BUF of Linux), so a line is written whole or not at all.
_LINE_BYTES: Final = 4096
_CUT: Final = b"..."

_log = logging.getLogger(__name__)


@contextmanager
def logging_to_stderr(
    command: str, option: str | None, environment: Mapping[str, str], *, as_json: bool
) -> Iterator[None]:
    """Log at the level of `--log-level`, or else of `DRAGOMAN_LOG`, until the block is left.

    `as_json`: a line is a JSON object, as the other lines of `dragoman serve` are. Raises `CommandError` for a level
    that does not exist and for a file that cannot be opened.
    """
    level = option or environment.get(VARIABLE, "").strip().lower()
    if not level:
        yield
        return
    if level not in LOG_LEVELS:
        raise CommandError(f"{VARIABLE}: there is no log level {level!r}; use debug, info, warning or error")
    file = environment.get(FILE_VARIABLE, "")
    descriptor = _opened(file) if file else _stderr()
    if descriptor is None:
        yield
        return
    handler = _LineHandler(descriptor, as_json=as_json)
    logger = logging.getLogger("dragoman")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    _log.info("dragoman %s, command %s, process %d", VERSION, command, os.getpid())
    try:
        yield
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)
        if file:
            os.close(descriptor)


def _opened(file: str) -> int:
    path = os.path.expanduser(file)
    try:
        # Readable for the user alone: names of agents, models and servers are the user's own business.
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except OSError as error:
        raise CommandError(f"{FILE_VARIABLE}: {file}: cannot write the log: {error.strerror}") from None


def _stderr() -> int | None:
    """Return the descriptor of stderr; None where the command was started without one."""
    with suppress(AttributeError, OSError, ValueError):
        return sys.stderr.fileno()
    return None


class _LineHandler(logging.Handler):
    """Writes records as lines to a descriptor, without waiting for its reader."""

    def __init__(self, descriptor: int, *, as_json: bool) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._as_json = as_json
        self._lost = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; count it as lost where that would wait, or the reader is gone."""
        try:
            line = self._line(record)
            if not select.select([], [self._descriptor], [], 0)[1]:
                self._lost += 1
                return
            os.write(self._descriptor, line)
            self._lost = 0
        except (OSError, ValueError):
            self._lost += 1
        except Exception:  # a message that does not fit its arguments is a fault of ours, and none of the command
            self.handleError(record)

    def _line(self, record: logging.LogRecord) -> bytes:
        at = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"
        level, message = record.levelname.lower(), record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            message += f" [{type(error).__name__} at {', '.join(places(error.__traceback__)) or 'no known place'}]"
        if self._lost:
            message += f" [{self._lost} lines before this one were lost]"
        message = harmless_line(message)
        if self._as_json:
            fields = {"time": at, "level": level, "event": "log", "logger": record.name, "message": message}
            while len(line := json.dumps(fields).encode()) >= _LINE_BYTES:
                fields["message"] = fields["message"][: len(fields["message"]) // 2]
            return line + b"\n"
        line = f"{at} {level} {record.name}: {message}".encode("utf-8", "replace")
        return (line if len(line) < _LINE_BYTES else line[: _LINE_BYTES - 1 - len(_CUT)] + _CUT) + b"\n"
