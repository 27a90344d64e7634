"""How long a client waits: for an agent to start, for an answer, for the next sign of life in a turn.

One slow clock for a client does the counting, so that neither a request nor an update pays for a timer of its own; a
bound may be passed by a twentieth of it. The clock stands still while the user is asked something and while the agent
waits for us. What has taken too long is ended step by step: the turn is cancelled, then the request is cancelled, then
the process is stopped; and the error says how far that went.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dragoman import limits
from dragoman.errors import TimedOut

if TYPE_CHECKING:
    from dragoman.client.client import Client
    from dragoman.client.turn import TurnEvents

# The figures of the seeds' clients, and of most others.
REQUEST_SECONDS: Final = 60.0
PROMPT_IDLE_SECONDS: Final = 300.0
# An agent that was told to stop gets so long, each time, before it is told more plainly.
GRACE_SECONDS: Final = 2.0
# A bound is counted in so many steps, none shorter or longer than this.
_STEPS: Final = 20
_SHORTEST_STEP: Final = 0.01
_LONGEST_STEP: Final = 1.0
T = TypeVar("T")


@dataclass(frozen=True)
class Timeouts:
    """Seconds; None waits for ever. `request` is never about a prompt, `prompt_idle` counts from the last update."""

    startup: float | None = limits.START_SECONDS
    request: float | None = REQUEST_SECONDS
    prompt_idle: float | None = PROMPT_IDLE_SECONDS
    grace: float = GRACE_SECONDS


class _Wait:
    """A task that waits for an answer."""

    __slots__ = ("expired", "seconds", "task")

    def __init__(self, task: "asyncio.Task[Any] | None") -> None:
        self.task = task
        self.seconds = 0.0
        self.expired = False


class Clock:
    """Counts waiting time for one client. None counts while `stands()`: the agent waits for us or the user."""

    def __init__(self, timeouts: Timeouts, client: "Client", stands: Callable[[], bool]) -> None:
        self.timeouts: Final = timeouts
        self._client = client
        self._stands = stands
        self._waits: set[_Wait] = set()
        self._quiet: dict[TurnEvents, float] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        bounds = [bound for bound in (timeouts.request, timeouts.prompt_idle) if bound is not None]
        self._step = max(_SHORTEST_STEP, min(_LONGEST_STEP, *(bound / _STEPS for bound in bounds), _LONGEST_STEP))

    async def answer(self, what: str, work: Coroutine[Any, Any, T]) -> T:
        """Wait for an answer, but not for ever: giving up withdraws the request."""
        if self.timeouts.request is None:
            return await work
        wait = _Wait(asyncio.current_task())
        self._waits.add(wait)
        if self._timer is None:
            self._run()
        try:
            return await work
        except asyncio.CancelledError:
            if wait.expired and wait.task is not None and not wait.task.uncancel():
                bound = f"within {self.timeouts.request:g} s"
                raise TimedOut(f"the agent did not answer {what} {bound}; the request was withdrawn") from None
            raise
        finally:
            self._waits.discard(wait)

    def watch(self, run: "TurnEvents") -> None:
        """A turn that must show signs of life until it is over."""
        if self.timeouts.prompt_idle is not None:
            self._quiet[run] = 0.0
            self._run()

    def stop(self) -> None:
        """The connection is over, and so is the waiting."""
        self._waits.clear()
        self._quiet.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._step, self._tick)

    def _tick(self) -> None:
        self._timer = None
        if not self._stands():
            self._count_waits()
            self._count_turns()
        if self._waits or self._quiet:
            self._run()

    def _count_waits(self) -> None:
        bound = self.timeouts.request
        for wait in list(self._waits):
            wait.seconds += self._step
            if bound is not None and wait.seconds >= bound and not wait.expired and wait.task is not None:
                wait.expired = True
                wait.task.cancel()

    def _count_turns(self) -> None:
        bound = self.timeouts.prompt_idle
        for run, quiet in list(self._quiet.items()):
            if run.over.done():
                del self._quiet[run]
            elif run.fresh:
                run.fresh = False
                self._quiet[run] = 0.0
            else:
                self._quiet[run] = quiet + self._step
                if bound is not None and quiet + self._step >= bound:
                    del self._quiet[run]
                    task = asyncio.get_running_loop().create_task(self._end(run, bound))
                    self._ending.add(task)
                    task.add_done_callback(self._ending.discard)

    async def _end(self, run: "TurnEvents", bound: float) -> None:
        """Session/cancel, then `$/cancel_request`, then the process; each gets a moment."""
        silence = f"the agent has told nothing for {bound:g} s"
        run.error = TimedOut(f"{silence}; the turn was cancelled")
        run.conversation.cancel_run(run)
        if await self._is_over(run):
            return
        run.error = TimedOut(f"{silence} and did not react to session/cancel; the prompt was withdrawn")
        self._client.withdraw(run)
        if await self._is_over(run):
            return
        error = TimedOut(f"{silence} and reacted neither to session/cancel nor to $/cancel_request; it was stopped")
        run.fail(error)
        await self._client.give_up(error)

    async def _is_over(self, run: "TurnEvents") -> bool:
        await asyncio.wait([run.over], timeout=self.timeouts.grace)
        return run.over.done()
