"""The server's log for its operator: one JSON object a line, and never the content of a session.

Promises
- A line has `time`, `level` and `event`; ids are cut short, so that one read here cannot be used in a request.
- Writing never holds the server up: lines wait for a thread of their own, so many at most. What no longer fits is
  counted, and the count is in the next line that does.
- Of refused requests at most `_REFUSALS` a second are logged; all are counted in the metrics.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec

Level = Literal["error", "info", "debug"]
LEVELS: Final[tuple[Level, ...]] = ("error", "info", "debug")
# Lines that may wait for a disk or a pipe that is slow: some seconds of a busy server, a few MiB.
_WAITING: Final = 10_000
# Refusals logged each second; an address that guesses makes hundreds.
_REFUSALS: Final = 20
# The last lines may be written for so long when the server ends.
_LAST_SECONDS: Final = 1.0
# Of a connection: enough to follow it through the lines, 96 of its 128 bits too few to use it.
_CONNECTION_LENGTH: Final = 8


class Logbook:
    """The log of one server. `write` is called with whole lines, in a thread; None: nothing is logged."""

    def __init__(
        self,
        write: Callable[[bytes], object] | None = None,
        level: Level = "info",
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._write = write
        self._level = LEVELS.index(level)
        self._clock = clock
        self._lines: deque[bytes] = deque()
        self._dropped = 0
        self._refusals: deque[float] = deque(maxlen=_REFUSALS)
        self._changed = threading.Condition()
        self._ending = False
        self._writer: threading.Thread | None = None

    def is_on(self, level: Level) -> bool:
        """Return whether a line of this level is written."""
        return self._write is not None and LEVELS.index(level) <= self._level

    def error(self, event: str, **fields: object) -> None:
        """Log a failure that should not happen."""
        self._log("error", event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Log what an operator wants to know: connections, sessions, turns, agents, as they begin and end."""
        self._log("info", event, fields)

    def debug(self, event: str, **fields: object) -> None:
        """Log a request of a client."""
        self._log("debug", event, fields)

    def refusal(self, **fields: object) -> None:
        """Log a refused request, unless `_REFUSALS` were logged in the last second."""
        now = self._clock()
        if len(self._refusals) == _REFUSALS and now - self._refusals[0] < 1:
            return
        self._refusals.append(now)
        self._log("info", "refused", fields)

    def close(self) -> None:
        """Write what waits, for at most `_LAST_SECONDS`. Blocks."""
        with self._changed:
            self._ending = True
            self._changed.notify()
        if self._writer is not None:
            self._writer.join(_LAST_SECONDS)

    def _log(self, level: Level, event: str, fields: dict[str, object]) -> None:
        if not self.is_on(level):
            return
        at = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        with self._changed:
            # Dropped and counted, not waited for: a pipe that is not read must not stop the server.
            if len(self._lines) >= _WAITING:
                self._dropped += 1
                return
            if self._dropped:
                fields = {**fields, "dropped": self._dropped}
                self._dropped = 0
            self._lines.append(msgspec.json.encode({"time": at, "level": level, "event": event, **fields}) + b"\n")
            self._changed.notify()
            # Started with the first line, so that a server without a log has no thread.
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_all, name="logbook", daemon=True)
                self._writer.start()

    def _write_all(self) -> None:
        assert self._write is not None
        while True:
            with self._changed:
                while not self._lines:
                    if self._ending:
                        return
                    self._changed.wait()
                # All that wait in one write, and outside of the lock: `_log` never waits for the disk.
                lines = b"".join(self._lines)
                self._lines.clear()
            try:
                self._write(lines)
            except (OSError, ValueError):
                pass  # the log has lost its reader or its disk; the server goes on without it


def connection_name(connection_id: str) -> str:
    """Return a connection as the log names it."""
    return connection_id[:_CONNECTION_LENGTH]


def principal_name(principal: str) -> str:
    """Return a principal as the log names it: without the NUL of one that no token can have."""
    return principal.strip("\0")
