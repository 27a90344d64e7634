"""An agent as a process: it serves on stdin and stdout, ends at EOF and at signals, and is gone two seconds later."""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Protocol

from dragoman.agent.opening import SIGNALS, Opening
from dragoman.transports.contract import Transport
from dragoman.transports.stdio import StdioTransport

# What is left of the two seconds when the connection has ended.
_SWEEP_SECONDS: Final = 0.25


class Serving(Protocol):
    """One client being served."""

    async def run(self) -> None:
        """Serve until the client is gone."""

    async def stop(self) -> None:
        """End what runs, answer what was asked, close."""


def serve_process(opening: Opening, serving: Callable[[Transport], Serving]) -> int:
    """Serve on the stdin and stdout of this process until the client is gone or a signal comes; the exit code.

    Does not come back if a handler has left a thread behind that does not end: Python would wait for it for ever.
    """
    transport = StdioTransport(opening.stdin, opening.stdout, unread=opening.unread)
    loop = asyncio.new_event_loop()
    try:
        code = loop.run_until_complete(_serve(serving, transport, opening))
    finally:
        # asyncio.run would wait for every task without a bound: a handler that ignores its end must not keep us.
        loop.run_until_complete(_sweep())
        loop.close()
    _leave_threads_behind(code)
    return code


async def _serve(serving: Callable[[Transport], Serving], transport: Transport, opening: Opening) -> int:
    connection = serving(transport)
    loop = asyncio.get_running_loop()
    received: list[int] = []
    stopping: list[asyncio.Future[None]] = []

    def stop(number: int) -> None:
        received.append(number)
        stopping.append(asyncio.ensure_future(connection.stop()))
        for each in SIGNALS:
            loop.remove_signal_handler(each)  # a second signal ends us at once

    opening.hand_over()
    if not opening.received:
        for number in SIGNALS:
            with suppress(ValueError, RuntimeError, NotImplementedError):  # not in the main thread, not on this system
                loop.add_signal_handler(number, stop, number)
    if opening.received:  # before the loop could be told
        loop.call_soon(stop, opening.received[0])
    await connection.run()
    return 128 + received[0] if received else 0


async def _sweep() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_SWEEP_SECONDS)
    await _within(_SWEEP_SECONDS, asyncio.get_running_loop().shutdown_asyncgens())


async def _within(seconds: float, work: Awaitable[None]) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(work, seconds)


def _leave_threads_behind(code: int) -> None:
    """The threads of `asyncio.to_thread` get a moment to end; the process ends with or without them."""
    deadline = time.monotonic() + _SWEEP_SECONDS
    for thread in threading.enumerate():
        if thread.name.startswith("asyncio_"):
            thread.join(max(deadline - time.monotonic(), 0))
            if thread.is_alive():
                with suppress(OSError, ValueError, AttributeError):
                    sys.stderr.flush()
                os._exit(code)
