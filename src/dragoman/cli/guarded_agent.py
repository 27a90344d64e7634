"""The end of a command that stands between an editor and an agent: whatever ends it ends the agent's whole tree too.

Editors kill what they have started, and not what that has started. So the agent is watched by a guardian process, which
outlives us by a moment, and the signals that can be caught end the work in order.
"""

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final

from dragoman.host.guardian import Guardian
from dragoman.transports.child import ChildTransport
from dragoman.transports.contract import Transport

# A Ctrl-C is Python's own: it cancels the main task.
_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def guarded(agent: Transport) -> Iterator[None]:
    """Have the process tree of an agent killed if we are; nothing for an agent that we have not started."""
    if not isinstance(agent, ChildTransport):
        yield
        return
    guardian = Guardian()
    guardian.watch(agent.child.pid, agent.child.mark)
    try:
        yield
    finally:
        guardian.leave(agent.child.pid)
        guardian.close()


async def run_until_signal(work: Coroutine[Any, Any, None]) -> int:
    """Wait for `work`, or cancel it and wait for its clean-up when a signal comes; return the signal, or 0."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    received: list[int] = []

    def stop(number: int) -> None:
        received.append(number)
        task.cancel()

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        await task
    except asyncio.CancelledError:
        if not received:
            raise
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
    return received[0] if received else 0
