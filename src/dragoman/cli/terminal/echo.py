"""The terminal's echo, off while an agent works: what is typed meanwhile must not stand in the middle of its words."""

import atexit
import sys
import termios
from contextlib import suppress
from typing import Any


class Echo:
    """Given back when we leave, however we leave; a shell does it for a process that was killed."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None
        atexit.register(self.on)

    def off(self) -> None:
        """Turn the echo of typed characters off; Ctrl-C still works."""
        with suppress(termios.error, ValueError, OSError):
            modes = termios.tcgetattr(sys.stdin)
            if self._before is None:
                self._before = termios.tcgetattr(sys.stdin)
            modes[3] &= ~termios.ECHO
            termios.tcsetattr(sys.stdin, termios.TCSANOW, modes)

    def on(self) -> None:
        """Restore the echo as it was before `off`."""
        if self._before is not None:
            with suppress(termios.error, ValueError, OSError):
                termios.tcsetattr(sys.stdin, termios.TCSANOW, self._before)
            self._before = None
