"""How long a client waits: for an agent to start, for an answer, for the next event of a turn.

One slow clock for each client does the counting, so that neither a request nor an update pays for a timer of its own; a
bound may be passed by a twentieth of it. The clock is paused while the user is asked something and while the agent
waits for us. A turn that was silent for too long is ended step by step: `session/cancel`, then `$/cancel_request`, then
the process is stopped; and the error says how far that went.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dragoman import limits
from dragoman.errors import TimedOut

if TYPE_CHECKING:
    from dragoman.client.connection import AgentConnection
    from dragoman.client.turn import TurnEvents

# The figures of most clients.
REQUEST_SECONDS: Final = 60.0
PROMPT_IDLE_SECONDS: Final = 300.0
# How long an agent may take to react to each step by which a silent turn is ended, before the next step.
GRACE_SECONDS: Final = 2.0
# A bound is counted in so many steps, none shorter or longer than this.
_STEPS: Final = 20
_SHORTEST_STEP: Final = 0.01
_LONGEST_STEP: Final = 1.0
_EXPIRED: Final = math.inf
T = TypeVar("T")
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class Timeouts:
    """How many seconds to wait for what; None waits without a bound. A wait that reaches its bound raises `TimedOut`.

    `startup`: until the agent has answered `initialize`. `request`: until any other request but a prompt and a login is
    answered. `prompt_idle`: in a turn, since the last event; time in which the user is asked does not count. `grace`:
    between the steps by which a silent turn is ended.
    """

    startup: float | None = limits.START_SECONDS
    request: float | None = REQUEST_SECONDS
    prompt_idle: float | None = PROMPT_IDLE_SECONDS
    grace: float = GRACE_SECONDS


class Clock:
    """Counts waiting time for one client, but not while `is_paused()`: the agent waits for us or for the user."""

    def __init__(self, timeouts: Timeouts, connection: "AgentConnection", is_paused: Callable[[], bool]) -> None:
        self.timeouts: Final = timeouts
        self._connection = connection
        self._is_paused = is_paused
        # Tasks that wait for a reply, and for how many seconds; `_EXPIRED` once that was too long.
        self._waits: dict[asyncio.Task[Any], float] = {}
        self._silence: dict[TurnEvents, float] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        bounds = [bound for bound in (timeouts.request, timeouts.prompt_idle) if bound is not None]
        self._step = max(_SHORTEST_STEP, min(_LONGEST_STEP, *(bound / _STEPS for bound in bounds), _LONGEST_STEP))

    def __repr__(self) -> str:
        return f"<Clock waits={len(self._waits)} turns={len(self._silence)} ending={len(self._ending)}>"

    async def answer(self, name: str, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of `work`, a request called `name`. Raise `TimedOut` at its bound: that cancels `work`."""
        if self.timeouts.request is None:
            return await work
        task = asyncio.current_task(self._connection.loop)
        assert task is not None
        self._waits[task] = 0.0
        if self._timer is None:
            self._run()
        try:
            return await work
        except asyncio.CancelledError:
            # `uncancel` says whether the task was cancelled by others too: then that counts, and not the timeout.
            if self._waits.get(task) == _EXPIRED and not task.uncancel():
                _log.warning("the agent did not answer %s within %g s", name, self.timeouts.request)
                bound = f"within {self.timeouts.request:g} s"
                raise TimedOut(f"the agent did not answer {name} {bound}; the request was withdrawn") from None
            raise
        finally:
            self._waits.pop(task, None)

    def watch(self, turn: "TurnEvents") -> None:
        """Count the silence of a turn until it has ended."""
        if self.timeouts.prompt_idle is not None:
            self._silence[turn] = 0.0
            self._run()

    def stop(self) -> None:
        """Stop counting: the connection has ended."""
        # A task that was cancelled just now still has to learn that it was this clock's doing.
        self._waits = {task: seconds for task, seconds in self._waits.items() if seconds == _EXPIRED}
        self._silence.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._step, self._tick)

    def _tick(self) -> None:
        self._timer = None
        if not self._is_paused():
            self._count_waits()
            self._count_turns()
        if self._waits or self._silence:
            self._run()

    def _count_waits(self) -> None:
        bound = self.timeouts.request
        for task, seconds in list(self._waits.items()):
            if bound is not None and seconds + self._step >= bound and seconds != _EXPIRED:
                self._waits[task] = _EXPIRED
                task.cancel()
            else:
                self._waits[task] = seconds + self._step

    def _count_turns(self) -> None:
        bound = self.timeouts.prompt_idle
        for turn, seconds in list(self._silence.items()):
            if turn.has_ended:
                del self._silence[turn]
            elif turn.has_news:
                turn.has_news = False
                self._silence[turn] = 0.0
            else:
                self._silence[turn] = seconds + self._step
                if bound is not None and seconds + self._step >= bound:
                    del self._silence[turn]
                    task = asyncio.get_running_loop().create_task(self._end(turn, bound))
                    self._ending.add(task)
                    task.add_done_callback(self._ending.discard)

    async def _end(self, turn: "TurnEvents", bound: float) -> None:
        """Send `session/cancel`, then `$/cancel_request`, then stop the process; wait `grace` between the steps."""
        silence = f"the agent has told nothing for {bound:g} s"
        _log.warning("a turn was silent for %g s and is cancelled", bound)
        # Set before the end: the turn may end as `cancelled` now, and the reader is to get this error all the same.
        turn.error = TimedOut(f"{silence}; the turn was cancelled")
        turn.conversation.cancel_turn(turn)
        if await self._has_ended(turn):
            return
        turn.error = TimedOut(f"{silence} and did not react to session/cancel; the prompt was withdrawn")
        self._connection.cancel_prompt_request(turn)
        if await self._has_ended(turn):
            return
        error = TimedOut(f"{silence} and reacted neither to session/cancel nor to $/cancel_request; it was stopped")
        _log.warning("the agent did not end a cancelled turn and is stopped")
        turn.fail(error)
        await self._connection.fail(error)

    async def _has_ended(self, turn: "TurnEvents") -> bool:
        await asyncio.wait([turn.ended], timeout=self.timeouts.grace)
        return turn.has_ended
