"""An agent as a process: it serves on stdin and stdout, ends at EOF and at signals, and is gone two seconds later.

The end is one `Deadline`: it begins when the guard notices the end of the input or a signal, or when the link ends for
another reason, and every step of the end has its share of it. What does not end by then is ended by the guard.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from dragoman.agent.exit_guard import ExitGuard
from dragoman.agent.first_request import Opening
from dragoman.background import EventLoop
from dragoman.link import Link
from dragoman.link.deadline import GENERATORS, SWEEP, Deadline
from dragoman.transports.contract import Transport
from dragoman.transports.stdio import StdioTransport


class Serving(Protocol):
    """One client being served."""

    @property
    def link(self) -> Link:
        """Its connection."""

    async def run(self) -> None:
        """Serve until the client is gone."""

    async def stop(self) -> None:
        """End what runs, answer what was asked, close."""

    @property
    def exit_code(self) -> int:
        """0 unless the connection ended because of what the client sent."""


def serve_process(opening: Opening, serving: Callable[[Transport], Serving]) -> int:
    """Serve on the stdin and stdout of this process until the client is gone or a signal comes; the exit code.

    Threads that handlers have left behind are not waited for here: pools keep theirs until the interpreter shuts down.
    The guard ends the process where they do not end then.
    """
    guard = ExitGuard(opening.stdin)
    transport = StdioTransport(opening.stdin, opening.stdout, unread=opening.unread)
    loop = EventLoop()
    try:
        code = guard.exit_code = loop.run_until_complete(_serve(serving, transport, opening, guard))
    finally:
        # asyncio.run would wait for every task without a bound: a handler that ignores its end must not keep us.
        loop.run_until_complete(_sweep(guard.arm()))
        guard.keep(asyncio.all_tasks(loop))
        loop.close()
    guard.finish()
    return code


async def _serve(
    serving: Callable[[Transport], Serving], transport: Transport, opening: Opening, guard: ExitGuard
) -> int:
    connection = serving(transport)
    connection.link.begin_deadline = guard.arm
    stopping: list[asyncio.Future[None]] = []

    def stop(number: int) -> None:
        stopping.append(asyncio.ensure_future(connection.stop()))

    guard.start(stop)
    opening.hand_over()
    if not opening.received:
        guard.catch_signals()
    if opening.received:  # before the guard could be told
        guard.received = opening.received[0]
        guard.exit_code = 128 + guard.received
        guard.arm()
        stop(guard.received)
    await connection.run()
    return 128 + guard.received if guard.received else connection.exit_code


async def _sweep(deadline: Deadline) -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=deadline.left(SWEEP))
    # Not `wait_for`, which waits without a bound for a generator that ignores being cancelled.
    closing = asyncio.ensure_future(asyncio.get_running_loop().shutdown_asyncgens())
    await asyncio.wait([closing], timeout=deadline.left(GENERATORS))
