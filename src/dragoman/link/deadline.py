"""One time budget for everything that happens when a connection ends, passed down from the part that noticed the end.

A process whose input has ended, or that was signalled, is gone `limits.END_SECONDS` later, whatever its handlers do.
Each step of the end may last until a share of that budget is used up; what a step does not need, the next ones have.
What is left then is not waited for.
"""

import asyncio
import time
from collections.abc import Collection
from typing import Any, Final

from dragoman import limits

# Until when each step may last, as a share of the budget, in the order of the steps.
FLUSH: Final = 0.25  # what is written leaves, where we close by ourselves; a child of ours may need the rest to exit
TURNS: Final = 0.25  # a prompt handler that was cancelled cleans up; then its turn ends without it
ANSWERS: Final = 0.5  # requests that came before the end are answered, and the answers leave
REQUESTS: Final = 0.6  # handlers of requests that were cancelled clean up
TASKS: Final = 0.65  # and everything else that was started for the client
SESSIONS: Final = 0.75  # the author's `session_closed` handlers
LOGS: Final = 0.82  # the leases of the sessions are given back
SWEEP: Final = 0.86  # tasks that no step has waited for
GENERATORS: Final = 0.88
EXIT: Final = 0.95  # threads that handlers have left behind; then the process ends itself


class Deadline:
    """The moment by which everything has ended, and how long that is from now."""

    def __init__(self, seconds: float = limits.END_SECONDS) -> None:
        self._began = time.monotonic()
        self._seconds = seconds

    def __repr__(self) -> str:
        return f"<Deadline {self.left():.2f} of {self._seconds:.2f} s left>"

    def left(self, share: float = 1.0) -> float:
        """Return the seconds until that share of the budget is used up; 0 if it is."""
        return max(self._began + share * self._seconds - time.monotonic(), 0.0)


async def cancel_all(tasks: Collection[asyncio.Task[Any]], seconds: float) -> None:
    """Cancel tasks and wait until they have ended, but no longer than `seconds`."""
    if tasks:
        await asyncio.sleep(0)  # each has begun: a coroutine that never ran would complain
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=seconds)
