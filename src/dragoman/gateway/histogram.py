"""How long things take, in buckets: an observation is a search in a short list and two additions."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

# Seconds. A chunk should pass in well under 20 ms; an answer may need a process to start; a turn may take hours.
CHUNK: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0)
ANSWER: Final = (0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
TURN: Final = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)


class Histogram:
    """Counts by upper bound, and the sum."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        """It took so long."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def lines(self, name: str, labels: str = "") -> Iterator[str]:
        """As Prometheus reads it. `labels` is empty, or `key="value"`."""
        before = f"{labels}," if labels else ""
        total = 0
        for bound, count in zip((*self._bounds, None), self._counts, strict=True):
            total += count
            yield f'{name}_bucket{{{before}le="{"+Inf" if bound is None else f"{bound:g}"}"}} {total}'
        after = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{after} {self._sum:.6f}"
        yield f"{name}_count{after} {total}"
