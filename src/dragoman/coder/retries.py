"""Whether a model call that failed is made again, when, and what the user is told meanwhile.

Two kinds of failure pass by themselves. A connection that broke or a server that stumbled is tried three times within
seconds. A provider that limits us or is overloaded (`ProviderBusy`) is waited for: as long as it asks, else longer each
time with jitter, so that many who were refused together do not come back together; in all no longer than the policy
says. Where another model can answer instead, the wait is shorter (`fallbacks`).

Every wait is an `await` of the turn, so a cancel ends it at once.
"""

import asyncio
import logging
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final, NamedTuple

from dragoman.coder.models.contract import Model, ModelFailed
from dragoman.coder.models.request_failures import NEVER, ProviderBusy, RequestRejected
from dragoman.vocabulary.events import Notice

# Tries after the first one, for failures that pass in seconds.
RETRIES: Final = 3
_PASSING: Final = ("rate_limit", "network", "server", "garbage")
# Before the second try of a busy provider; then twice as long each time, and never longer than a minute.
_FIRST_WAIT: Final = 2.0
_LONGEST_STEP: Final = 60.0
# A wait goes on so long before the user hears of it again.
_PROGRESS_SECONDS: Final = 60.0
# A wait that is worth a word about how to end it.
_LONG: Final = 10.0

_log = logging.getLogger(__name__)


def _random() -> float:
    from random import random  # most calls do not fail

    return random()


class RetryPolicy(NamedTuple):
    """How long one model call waits for a busy provider, in seconds and in all; and the clock, which tests replace."""

    longest: float = 300.0
    # The same where another model can answer instead.
    before_fallback: float = 30.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = _random
    clock: Callable[[], float] = time.monotonic


class Pause(NamedTuple):
    """How long to wait before the next try, and the notice for the user."""

    seconds: float
    notice: Notice


class Retries:
    """Counts the failures of one model call and says whether to try it again."""

    def __init__(self, model: Model, policy: RetryPolicy | None = None, *, has_fallback: bool = False) -> None:
        """`has_fallback`: another model can answer instead."""
        self._model = model
        self._policy = policy or RetryPolicy()
        self._longest = min(self._policy.longest, self._policy.before_fallback if has_fallback else math.inf)
        self._failures = 0
        self._waited = 0.0

    def after(self, failure: ModelFailed) -> Pause | None:
        """Return the pause before the next try; None: trying again does not help, or was done often enough."""
        self._failures += 1
        seconds = self._seconds(failure)
        if seconds is None:
            _log.info("call of %s failed (%s), and is not tried again", self._model.name, failure.kind)
            return None
        _log.info("call of %s failed (%s); tried again in %.1f s", self._model.name, failure.kind, seconds)
        self._waited += seconds
        return Pause(seconds, Notice("warning", f"{failure}; {self._plan(failure, seconds)}"))

    async def wait(self, pause: Pause) -> AsyncGenerator[Notice, None]:
        """Wait, and yield a notice for every minute of a long wait."""
        left = pause.seconds
        while left > _PROGRESS_SECONDS:
            await self._policy.sleep(_PROGRESS_SECONDS)
            left -= _PROGRESS_SECONDS
            yield Notice("info", f"Still waiting for {self._model.name}: {in_words(left)} left")
        await self._policy.sleep(left)

    def given_up(self, failure: ModelFailed) -> ModelFailed:
        """Return the failure that ends the call, with what was done about it."""
        if not isinstance(failure, ProviderBusy) or failure.retry_seconds == NEVER:
            return failure
        asked = failure.retry_seconds or 0.0
        if asked > self._longest - self._waited:
            why = f"It asks to wait {in_words(asked)}, and a call waits at most {in_words(self._longest)} in all"
        else:
            why = f"Tried {self._failures} times in {in_words(self._waited)}"
        return ProviderBusy(failure.kind, f"{failure}. {why}", failure.retry_seconds)

    def _seconds(self, failure: ModelFailed) -> float | None:
        """Return the seconds before the next try; None: there is none."""
        asked, left = failure.retry_seconds, self._longest - self._waited
        if failure.kind not in _PASSING or asked == NEVER:
            return None
        if not isinstance(failure, ProviderBusy):
            seconds = self._model.retry_seconds(self._failures) if asked is None else asked
            return seconds if self._failures <= RETRIES and seconds <= self._policy.longest else None
        step = min(_FIRST_WAIT * 2.0 ** (self._failures - 1), _LONGEST_STEP)
        if asked is None:
            seconds = min(step * (0.5 + self._policy.random() / 2), left)
            return seconds if seconds > 0 else None
        # A server that asks for no wait, and goes on refusing, is not asked all the time.
        seconds = asked if self._failures == 1 else max(asked, step / 2)
        return seconds if left > 0 and seconds <= left else None

    def _plan(self, failure: ModelFailed, seconds: float) -> str:
        if not isinstance(failure, ProviderBusy):
            return f"trying again{_felt(seconds)} ({self._failures} of {RETRIES})"
        how = "; a cancel ends the wait" if seconds >= _LONG else ""
        return f"trying again{_felt(seconds)}{how}"


def may_pass(failure: ModelFailed) -> bool:
    """Return whether a failure is a limit, an overload or an outage of the provider, so that another may do better.

    A bad key, an unknown model, a refused or too long request and an answer that cannot be read are none.
    """
    if isinstance(failure, RequestRejected):
        return False
    if failure.kind == "rate_limit":
        return True
    return failure.kind in ("network", "server") and failure.retry_seconds != NEVER


def in_words(seconds: float) -> str:
    """Return a time as people say it, rounded up: `45 s`, `2 min 30 s`, `1 h 5 min`."""
    whole = math.ceil(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def _felt(wait: float) -> str:
    """Name a wait that a user would notice; a shorter one is not worth a word."""
    return f" in {in_words(wait)}" if wait >= 1 else ""
