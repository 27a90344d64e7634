"""Show a turn as text on stdout and stderr: live with colours on a terminal, the answer alone where stdout is a pipe.

Everything written here is inert already, or ours. The line with the clock is drawn only where a cursor can move.
"""

import asyncio
import io
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, TextIO

from dragoman.cli.terminal.event_text import StyledText
from dragoman.cli.text_width import DIFF_COLOURS, fit, harmless_line

_USUAL_COLUMNS: Final = 80
_USUAL_ROWS: Final = 24
_STEP_SECONDS: Final = 0.1
# A turn that is over before that has no clock.
_PATIENCE_SECONDS: Final = 0.5
SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_STYLES: Final = {
    "thought": "2",
    "tool": "1",
    "failed": "31",
    "output": "2",
    "plan": "36",
    "notice": "33",
    "break": "2",
}
LEADS: Final = {"tool": "• ", "failed": "✗ ", "output": "  ", "diff": "  ", "plan": "  ", "notice": "! "}


def colours_wanted(stream: TextIO) -> bool:
    """Return whether a stream is a terminal, and colours are not switched off (`NO_COLOR`, `TERM=dumb`)."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal; False for None."""
    return stream is not None and stream.isatty()


def columns() -> int:
    """Return how many columns the terminal has."""
    return size()[0]


def size() -> tuple[int, int]:
    """Return how many columns and rows the terminal has; 80 and 24 if none is found."""
    for number in (2, 1, 0):
        try:
            found = os.get_terminal_size(number)
        except (OSError, ValueError):
            continue
        return found.columns or _USUAL_COLUMNS, found.lines or _USUAL_ROWS
    return _USUAL_COLUMNS, _USUAL_ROWS


def prepare(stream: TextIO | None) -> None:
    """Show letters that the encoding of a stream lacks as escapes: a terminal may know ASCII alone."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


class TurnScreen:
    """Where a turn is shown. `side` is for what is not the answer: tool calls, thoughts, plans."""

    def __init__(self, out: TextIO, err: TextIO | None) -> None:
        prepare(out)
        prepare(err)
        self._out = out
        self._err = err
        self._live = is_terminal(out)
        self._side: TextIO | None = out if self._live else err if is_terminal(err) else None
        self._coloured = self._side is not None and colours_wanted(self._side)
        self._clock = _Clock(err) if err is not None and is_terminal(err) and os.environ.get("TERM") != "dumb" else None
        # What the last line of the terminal, and of the answer, holds.
        self._open = False
        self._answer_open = False
        self._form = ""
        self.asking = False  # a question stands at the bottom: no clock over it

    @property
    def answer_alone(self) -> bool:
        """Return whether only the answer is shown: neither stdout nor stderr is a terminal."""
        return self._side is None

    def show(self, pieces: Iterable[StyledText]) -> None:
        """Show pieces of text, in order."""
        for piece in pieces:
            if piece.form == "answer":
                self._answer(piece.text)
            elif self._side is not None:
                self._beside(self._side, piece)
            else:
                self._form = piece.form

    def flush(self) -> None:
        """Flush the stream of the answer and the one for everything else."""
        self._out.flush()
        if self._side is not None and self._side is not self._out:
            self._side.flush()

    def say(self, sentence: str) -> None:
        """Write a sentence for people to stderr, on a line of its own; failures are ignored."""
        if self._err is None:
            return
        self.pause()
        self._fresh_line()
        with suppress(OSError):
            self._err.write(f"{sentence}\n")
            self._err.flush()

    def ask(self, text: str) -> None:
        """Write a question to stderr, unchanged, on a line of its own. Unlike `say`, raise `OSError` if that fails."""
        if self._err is not None:
            self.pause()
            self._fresh_line()
            self._err.write(text)
            self._err.flush()

    def finish(self) -> None:
        """End the turn: the answer ends with a line break."""
        self.pause()
        self._fresh_line()
        if self._answer_open:
            self._out.write("\n")
            self._answer_open = False
        self.flush()

    # -- the clock ---------------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Remove the line with the clock."""
        if self._clock is not None:
            self._clock.hide()

    async def tick(self, what: Callable[[], list[str]]) -> None:
        """Draw the clock for as long as this is not cancelled."""
        if self._clock is None:
            return
        started = time.monotonic()
        await asyncio.sleep(_PATIENCE_SECONDS)
        while True:
            if not self._open and not self.asking:
                running = what()
                doing = running[-1] if running else "working"
                self._clock.draw(time.monotonic() - started, doing)
            await asyncio.sleep(_STEP_SECONDS)

    # -- lines -------------------------------------------------------------------------------------------------------

    def _answer(self, text: str) -> None:
        self.pause()
        if self._form not in ("", "answer"):
            self._fresh_line()
            if self._answer_open:
                self._out.write("\n")
                self._answer_open = False
            text = text.lstrip("\n")
        self._form = "answer"
        if not text:
            return
        self._out.write(text)
        if self._live:
            self._open = not text.endswith("\n")
        else:
            self._answer_open = not text.endswith("\n")

    def _beside(self, side: TextIO, piece: StyledText) -> None:
        self.pause()
        if piece.form != self._form or piece.form != "thought":
            self._fresh_line()
        text = piece.text.lstrip("\n") if piece.form == "thought" and piece.form != self._form else piece.text
        self._form = piece.form
        style = DIFF_COLOURS.get(text[:1], "") if piece.form == "diff" else _STYLES.get(piece.form, "")
        whole = f"{LEADS.get(piece.form, '')}{text}"
        side.write(f"\x1b[{style}m{whole}\x1b[0m" if self._coloured and style else whole)
        if piece.form == "thought":
            self._open = not text.endswith("\n")
        else:
            side.write("\n")

    def _fresh_line(self) -> None:
        if self._open and self._side is not None:
            self._side.write("\n")
            self._side.flush()
        self._open = False


class _Clock:
    """The line at the bottom with the seconds and what runs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = False
        self._step = 0

    def draw(self, seconds: float, what: str) -> None:
        self._step += 1
        line = f"{SPINNER[self._step % len(SPINNER)]} {seconds:.0f} s  {harmless_line(what)}"
        self._write("\r\x1b[K" + fit(line, max(columns() - 1, 10)))
        self._shown = True

    def hide(self) -> None:
        if self._shown:
            self._shown = False
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        with suppress(OSError):
            self._stream.write(text)
            self._stream.flush()
