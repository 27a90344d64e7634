"""Delta debugging: the fewest parts of a whole that still fail.

The algorithm is ddmin (Zeller and Hildebrandt, 2002): try to leave out halves, then quarters, and so on; whatever fails
without a part goes on without it, and the search ends where no single part can be left out. Pure: what fails is asked
of the caller.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

T = TypeVar("T")
_MEMORY: Final = 10_000


class Shrinker(Generic[T]):
    """Shrinks by asking `fails`, at most `runs` times; the same question is asked once."""

    def __init__(self, fails: Callable[[Sequence[T]], Awaitable[bool]], runs: int) -> None:
        self._fails = fails
        self._known: dict[tuple[int, ...], bool] = {}
        self.runs_left = runs

    def __repr__(self) -> str:
        return f"<Shrinker runs_left={self.runs_left} known={len(self._known)}>"

    async def shrink(self, parts: Sequence[T]) -> list[T]:
        """Return the parts that are needed, in their order; `parts` fail as they are."""
        kept = list(range(len(parts)))
        size = max(len(kept) // 2, 1)
        while kept and self.runs_left:
            at, shorter = 0, False
            while at < len(kept) and self.runs_left:
                rest = kept[:at] + kept[at + size :]
                if await self._still_fails(parts, rest):
                    kept, shorter = rest, True
                else:
                    at += size
            if size == 1 and not shorter:
                break
            size = size if shorter and size <= len(kept) else max(size // 2, 1)
        return [parts[index] for index in kept]

    async def _still_fails(self, parts: Sequence[T], indices: list[int]) -> bool:
        key = tuple(indices)
        if key not in self._known:
            if not self.runs_left:
                return False
            self.runs_left -= 1
            if len(self._known) >= _MEMORY:
                self._known.clear()
            self._known[key] = await self._fails([parts[index] for index in indices])
        return self._known[key]
