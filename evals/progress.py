"""Show how far a run is: a bar that is drawn again on a terminal, a line for each attempt elsewhere."""

from collections.abc import Sequence
from typing import Final, TextIO

from evals.results import Attempt

_WIDTH: Final = 24


class Progress:
    """Counts attempts and draws. `total` is how many there will be, `done` those of an earlier run."""

    def __init__(self, total: int, done: Sequence[Attempt], stream: TextIO) -> None:
        self._total = total
        self._passed = sum(one.verdict == "pass" for one in done)
        self._done = len(done)
        self._running: list[str] = []
        self._stream = stream
        self._is_terminal = stream.isatty()

    def begin(self, name: str) -> None:
        """Show that an attempt at this task begins."""
        self._running.append(name)
        self._draw()

    def end(self, attempt: Attempt) -> None:
        """Show the verdict of an attempt."""
        if attempt.task in self._running:
            self._running.remove(attempt.task)
        self._done += 1
        self._passed += attempt.verdict == "pass"
        self._write(line(attempt))
        self._draw()

    def close(self) -> None:
        """Remove the bar."""
        if self._is_terminal:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def bar(self) -> str:
        """Return the bar as text."""
        filled = _WIDTH * self._done // max(self._total, 1)
        names = ", ".join(self._running[:3]) + (" …" if len(self._running) > 3 else "")
        counts = f"{self._done}/{self._total}, {self._passed} passed"
        return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {counts}{f' · {names}' if names else ''}"

    def _write(self, text: str) -> None:
        self._stream.write(f"\r\x1b[K{text}\n" if self._is_terminal else f"{text}\n")
        self._stream.flush()

    def _draw(self) -> None:
        if self._is_terminal:
            self._stream.write(f"\r\x1b[K{self.bar()}"[:200])
            self._stream.flush()


def line(attempt: Attempt) -> str:
    """Return one line about an attempt."""
    number = f" #{attempt.number}" if attempt.number > 1 else ""
    reason = f"  {attempt.reason.splitlines()[0][:120]}" if attempt.reason else ""
    return f"{attempt.verdict:7} {attempt.task}{number}  {attempt.seconds:.1f} s{reason}"
