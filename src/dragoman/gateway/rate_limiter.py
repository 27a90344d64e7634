"""How often a principal, or an address, may do something. Pure: the clock is an argument."""

from collections.abc import Callable
from typing import Final

from dragoman import limits

# Keys remembered; past this the oldest are evicted, and start full again.
_KEYS: Final = 10_000


class RateLimiter:
    """Allow so many at once (`burst`) and so many a second (`rate`), for each key: a token bucket. Does no I/O; the
    embedded `SharedRates`."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._levels: dict[str, tuple[float, float]] = {}

    async def acquire(self, key: str) -> bool:
        """Take one, and return whether there was one. A key that asks too often is not punished further."""
        level = self._level(key)
        self._set_level(key, max(level - 1, 0))
        return level >= 1

    async def delay(self, key: str) -> float:
        """Take one and return the seconds the caller has to wait for it; 0 if there was one. The level may become
        negative, so that each further call gets a longer wait. Does not wait itself."""
        level = self._level(key) - 1
        self._set_level(key, level)
        return max(-level / self._rate, 0.0)

    def _level(self, key: str) -> float:
        # Filled up when it is looked at, so no timer is needed.
        level, since = self._levels.get(key, (self._burst, self._clock()))
        return min(level + (self._clock() - since) * self._rate, self._burst)

    def _set_level(self, key: str, level: float) -> None:
        # Taken out and put back: the order of the dict is that of the last use, and the oldest is evicted.
        self._levels.pop(key, None)
        self._levels[key] = (level, self._clock())
        limits.evict_oldest(self._levels, _KEYS)
