"""Waiting for a fact, and for quiet; never for a number of loop turns or for a time that should be enough."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

SECONDS = 30.0
# While a loop has work that takes no time, looking again at once is fastest; after that the machine is left to others.
_SPIN_SECONDS = 0.02
_PAUSE_SECONDS = 0.002


async def until(condition: Callable[[], object], what: str = "") -> None:
    """Turn the loop until `condition()` is true; fail after 30 seconds, naming `what`."""
    start = time.monotonic()
    while not condition():
        waited = time.monotonic() - start
        assert waited < SECONDS, f"never happened: {what or condition}"
        await asyncio.sleep(0 if waited < _SPIN_SECONDS else _PAUSE_SECONDS)


def wait_until(condition: Callable[[], object], what: str = "", *, seconds: float = SECONDS) -> None:
    """Block the thread until `condition()` is true; fail after `seconds`, naming `what`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what or condition}"
        time.sleep(0.005)


async def settled() -> None:
    """Turn the loop until it would sleep: no callback is ready, no timer is due, no descriptor has news.

    What happens by itself has then happened, so a test may assert that nothing more did. Only work of this loop is
    seen: a thread or another process may still be busy, and a timer of later still comes. Fails after 30 seconds.
    """
    # The loop has no public way to ask this; what is read here has been the same since Python 3.4.
    loop: Any = asyncio.get_running_loop()
    deadline = loop.time() + SECONDS
    while True:
        await asyncio.sleep(0)
        due = any(timer.when() <= loop.time() and not timer.cancelled() for timer in loop._scheduled)
        if not (loop._ready or due or loop._selector.select(0)):
            return
        assert loop.time() < deadline, "the loop never came to rest"
