"""What an agent writes to stderr: its last lines for when it fails, and all of them, live, for `show`.

Promise: lines are inert, and what is kept is bounded, however much an agent writes.
"""

import asyncio
import codecs
from collections import deque
from collections.abc import Callable
from typing import Final

from dragoman.cli.terminal.sanitize import LINE_LENGTH, sanitize_output

# A traceback has about as many lines.
KEPT_LINES: Final = 20
# An agent reports its own failure on stderr before or just after it answers, and pipes have no common order.
_LATE_SECONDS: Final = 0.3


class Stderr:
    """The stderr of one agent. `show` is called with each line as it comes."""

    def __init__(self, show: Callable[[str], None] | None = None) -> None:
        self._show = show
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._rest = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._has_new_lines: asyncio.Event = asyncio.Event()

    def receive(self, data: bytes) -> None:
        """Receive what the agent has written to stderr."""
        *lines, self._rest = (self._rest + self._decoder.decode(data)).split("\n")
        if len(self._rest) > LINE_LENGTH:
            lines, self._rest = [*lines, self._rest], ""
        for line in lines:
            shown = sanitize_output(line)[:LINE_LENGTH]
            self._lines.append(shown)
            if self._show is not None:
                self._show(shown)
        if lines:
            self._has_new_lines.set()

    def begin(self) -> None:
        """Begin a turn: lines of before do not belong to it."""
        self._lines.clear()
        self._has_new_lines.clear()

    async def last_words(self) -> str:
        """Return what it last wrote in this turn, to be put behind a failure.

        Empty where that was shown, or nothing came.
        """
        if self._show is not None:
            return ""
        try:
            async with asyncio.timeout(_LATE_SECONDS):
                await self._has_new_lines.wait()
        except TimeoutError:
            return ""
        return "\n".join(["", "It last wrote to stderr:", *self._lines])
