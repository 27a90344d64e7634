"""A figure on a line, with what was promised for it; how benches without a table of peers report."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    what: str
    figure: float
    unit: str
    promise: float | None = None
    """At most that."""
    least: float | None = None
    """At least that."""

    def __str__(self) -> str:
        if self.least is not None:
            word = "MISSED" if self.is_missed else "met"
            return f"{self.what:<58}{self.figure:10.2f} {self.unit:<4} at least {self.least:g}: {word}"
        if self.promise is None:
            return f"{self.what:<58}{self.figure:10.2f} {self.unit}"
        word = "met" if self.figure <= self.promise else "MISSED"
        return f"{self.what:<58}{self.figure:10.2f} {self.unit:<4} at most {self.promise:g}: {word}"

    @property
    def is_missed(self) -> bool:
        is_too_little = self.least is not None and self.figure < self.least
        return is_too_little or (self.promise is not None and self.figure > self.promise)


def told(lines: Iterable[Line]) -> int:
    """Print each as it comes. The exit status: 1 if a promise is missed."""
    missed = False
    for line in lines:
        print(line, flush=True)
        missed = missed or line.is_missed
    return int(missed)
