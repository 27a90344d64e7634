"""A bar on stderr for work that takes longer than a moment; nothing where stderr is no terminal."""

import asyncio
import sys
import threading
from typing import Final, Self

# Work that is done by then needs no bar.
PATIENCE_SECONDS: Final = 1.0
_STEP_SECONDS: Final = 0.1
_WIDTH: Final = 30


class WorkStopped(Exception):
    """Raised by `Progress.at` after `stop`: the result of the work is no longer needed."""


class Progress:
    """`async with Progress() as progress: progress.at("Reading", 3, 10)`; `at` may be called in another thread."""

    def __init__(self) -> None:
        self._place: tuple[str, int, int] = ("", 0, 0)
        self._stopped = threading.Event()
        self._drawing: asyncio.Task[None] | None = None
        self._shown = False

    async def __aenter__(self) -> Self:
        if sys.stderr is not None and sys.stderr.isatty():
            self._drawing = asyncio.get_running_loop().create_task(self._draw())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()

    def at(self, what: str, done: int, total: int) -> None:
        """Set what the bar shows; a total of 0 means that it is unknown. Raise `WorkStopped` after `stop`."""
        if self._stopped.is_set():
            raise WorkStopped
        self._place = (what, done, total)

    def hide(self) -> None:
        """Take the bar away for good: there is something better to see."""
        drawing, self._drawing = self._drawing, None
        if drawing is not None:
            drawing.cancel()
            if self._shown:
                _write("\r\x1b[K")

    def stop(self) -> None:
        """Stop the work: the next call of `at` raises `WorkStopped`."""
        self._stopped.set()
        self.hide()

    async def _draw(self) -> None:
        await asyncio.sleep(PATIENCE_SECONDS)
        self._shown = True
        while True:
            _write("\r\x1b[K" + bar(*self._place))
            await asyncio.sleep(_STEP_SECONDS)


def bar(what: str, done: int, total: int) -> str:
    """Return one session as a line."""
    if not total:
        return f"{what} {done:,}" if done else what
    share = min(done / total, 1)
    filled = int(share * _WIDTH)
    return f"{what} [{'#' * filled}{' ' * (_WIDTH - filled)}] {share:4.0%} of {total:,}"


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        pass  # a terminal that is gone needs no bar
