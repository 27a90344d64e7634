"""The line that the user types while the agent works: read key by key, shown below the turn, finished with Enter.

The terminal hands over keys one by one meanwhile and echoes none, so that no typed character stands in the middle of
the agent's output. Ctrl-C is still a signal. While a question is shown the terminal is as it was, and reads whole lines
for the question; a line that was begun here comes back behind it.

Where nothing can be drawn over (`is_drawn=False`), keys stay in the terminal until the next prompt is read.
"""

import asyncio
import atexit
import codecs
import os
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from dragoman.cli.decode_input import decode_input

# What is typed beyond this is dropped.
TEXT_LENGTH: Final = 64 * 1024
# An escape with nothing behind it for so long is the key, and no beginning of another one.
_ESCAPE_SECONDS: Final = 0.05
_READ_BYTES: Final = 4096
_LOCAL_MODES: Final = 3
_CONTROL_CHARACTERS: Final = 6
_PASTE_ON: Final = "\x1b[?2004h"
_PASTE_OFF: Final = "\x1b[?2004l"


class TypedLine(NamedTuple):
    """What was typed up to a key that ends it. `is_for_later`: it is to wait for the end of the turn (Tab)."""

    text: str
    is_for_later: bool


class TypeAhead:
    """Reads keys between `start` and `stop`; the text that has no Enter yet stays from one to the next."""

    def __init__(
        self,
        on_line: Callable[[TypedLine], None],
        on_change: Callable[[], None],
        take_back: Callable[[], str],
        *,
        is_drawn: bool,
    ) -> None:
        """`on_line` gets each line that is finished; `on_change` is called when what is to be drawn has changed;
        `take_back` returns the newest line that still waits, for the key Up."""
        self.text = ""
        self._on_line = on_line
        self._on_change = on_change
        self._take_back = take_back
        self._is_drawn = is_drawn
        self._parser = Vt100Parser(self._on_key)
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._before: list[Any] | None = None
        self._is_escaped = False
        self._escape: asyncio.TimerHandle | None = None
        atexit.register(self.stop)

    def __repr__(self) -> str:
        state = "stopped" if self._before is None else "reading"
        return f"<TypeAhead {state} characters={len(self.text)}>"

    def take(self) -> str:
        """Return what was typed without an Enter, and forget it."""
        text, self.text = self.text, ""
        return decode_input(text)

    def start(self) -> None:
        """Turn the terminal's echo off and begin to read keys. Does nothing without a terminal."""
        with suppress(termios.error, ValueError, OSError):
            modes = termios.tcgetattr(sys.stdin)
            if self._before is None:
                self._before = termios.tcgetattr(sys.stdin)
            modes[_LOCAL_MODES] &= ~termios.ECHO
            if self._is_drawn:
                modes[_LOCAL_MODES] &= ~(termios.ICANON | termios.IEXTEN)
                modes[_CONTROL_CHARACTERS][termios.VMIN] = 1
                modes[_CONTROL_CHARACTERS][termios.VTIME] = 0
            termios.tcsetattr(sys.stdin, termios.TCSANOW, modes)
            if self._is_drawn:
                asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._read)
                _write(_PASTE_ON)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read keys while the block runs."""
        self.start()
        try:
            yield
        finally:
            self.stop()

    def stop(self) -> None:
        """Restore the terminal as it was before `start`."""
        if self._before is None:
            return
        before, self._before = self._before, None
        if self._is_drawn:
            # Without a loop where the process is being left.
            with suppress(RuntimeError, ValueError, OSError):
                asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            _write(_PASTE_OFF)
        with suppress(termios.error, ValueError, OSError):
            termios.tcsetattr(sys.stdin, termios.TCSANOW, before)

    # -- keys --------------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            data = os.read(sys.stdin.fileno(), _READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:  # the window was closed; the signal for that ends us
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            return
        if self._escape is not None:
            self._escape.cancel()
        self._parser.feed(self._decoder.decode(data))
        self._escape = asyncio.get_running_loop().call_later(_ESCAPE_SECONDS, self._parser.flush)
        self._on_change()

    def _on_key(self, press: KeyPress) -> None:
        was_escaped, self._is_escaped = self._is_escaped, press.key is Keys.Escape
        match press.key:
            case Keys.ControlM | Keys.ControlJ if was_escaped:
                self._insert("\n")
            case Keys.ControlM | Keys.ControlJ if self.text.endswith("\\"):
                self.text = self.text[:-1] + "\n"
            case Keys.ControlM | Keys.ControlJ:
                self._finish(is_for_later=False)
            case Keys.ControlI:
                self._finish(is_for_later=True)
            case Keys.ControlH:
                self.text = self.text[:-1]
            case Keys.ControlW:
                self.text = self.text.rstrip()
                self.text = self.text[: len(self.text) - len(self.text.split()[-1])] if self.text else ""
            case Keys.ControlU:
                self.text = ""
            case Keys.Up if not self.text:
                self.text = self._take_back()
            case Keys.BracketedPaste:
                self._insert(press.data.replace("\r\n", "\n").replace("\r", "\n"))
            case str() as character if not isinstance(character, Keys):
                self._insert(character)
            case _:
                pass  # keys that move in a line: there is one end to write at

    def _insert(self, text: str) -> None:
        self.text = (self.text + text)[:TEXT_LENGTH]

    def _finish(self, *, is_for_later: bool) -> None:
        text = self.take()
        if text.strip():
            self._on_line(TypedLine(text, is_for_later))


def _write(sequence: str) -> None:
    with suppress(OSError, ValueError):
        sys.stdout.write(sequence)
        sys.stdout.flush()
