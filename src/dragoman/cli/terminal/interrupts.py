"""Ctrl-C and its kin: while an agent works the first asks to stop and the second leaves at once; at an empty line two
in a row leave.
"""

import asyncio
import atexit
import os
import signal
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Final, Self

ALL: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LEFT: Final = 130
# Two presses further apart than this have nothing to do with each other.
IN_A_ROW_SECONDS: Final = 2.0
# What `SecondPress` reads the time from.
clock: Callable[[], float] = time.monotonic


class Interrupts:
    """`with Interrupts() as interrupts: await interrupts.wait()`.

    Python's own handlers and not the loop's: they also run while a write blocks on a full pipe.
    """

    def __init__(self, signals: Sequence[signal.Signals] = ALL) -> None:
        self._signals = signals
        self._loop = asyncio.get_running_loop()
        self._presses = asyncio.Event()
        self._count = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in self._signals:
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    async def wait(self) -> None:
        """Wait for the first signal."""
        await self._presses.wait()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if self._count > 1:
            leave_at_once()
        self._loop.call_soon_threadsafe(self._presses.set)


class SecondPress:
    """Tells the second Ctrl-C in a row from the first: `IN_A_ROW_SECONDS` and whatever is typed set it back."""

    def __init__(self) -> None:
        self._pressed_at: float | None = None

    def press(self) -> bool:
        """Count a Ctrl-C at an empty line; True if it is the second in a row."""
        before, self._pressed_at = self._pressed_at, clock()
        return before is not None and self._pressed_at - before <= IN_A_ROW_SECONDS

    def reset(self) -> None:
        """Count the next Ctrl-C as the first, because something else was typed or done."""
        self._pressed_at = None


def leave_at_once() -> None:
    """Out, whatever runs: exit handlers end the processes we started and give the terminal back."""
    atexit._run_exitfuncs()
    os._exit(LEFT)
