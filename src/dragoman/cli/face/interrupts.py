"""Ctrl-C and its kin while an agent works: the first asks to stop, the second leaves at once."""

import asyncio
import atexit
import os
import signal
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any, Final, Self

ALL: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LEFT: Final = 130


class Interrupts:
    """`with Interrupts() as interrupts: await interrupts.wait()`.

    Python's own handlers and not the loop's: they also run while we wait for somebody to read our output.
    """

    def __init__(self, signals: Sequence[signal.Signals] = ALL) -> None:
        self._signals = signals
        self._loop = asyncio.get_running_loop()
        self._heard = asyncio.Event()
        self._count = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in self._signals:
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    async def wait(self) -> None:
        """Until somebody wants to stop."""
        await self._heard.wait()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if self._count > 1:
            leave_at_once()
        self._loop.call_soon_threadsafe(self._heard.set)


def leave_at_once() -> None:
    """Out, whatever runs: exit handlers end the processes we started and give the terminal back."""
    atexit._run_exitfuncs()
    os._exit(LEFT)
