"""What was measured, and what follows from it: medians, ratios and verdicts. Pure: values in, values out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

from bench.benchmarks import Benchmark, Figure, Figures
from bench.promises import PROMISES, Promise


@dataclass
class Result:
    """One benchmark's repetitions, peer by peer, in step: the n-th of each was measured in the n-th turn."""

    benchmark: Benchmark
    runs: dict[str, list[Figures]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def median(self, peer: str, key: str) -> float:
        return median(self._values(peer, key))

    def spread(self, peer: str, key: str) -> tuple[float, float]:
        values = self._values(peer, key)
        return min(values), max(values)

    def ratio(self, better: str, worse: str, figure: Figure) -> float | None:
        """How many times better the one peer is than the other: the median of the repetitions' ratios."""
        pairs = zip(self.runs.get(better, ()), self.runs.get(worse, ()), strict=False)
        ratios = [_times_better(one[figure.key], other[figure.key], figure) for one, other in pairs]
        known = [each for each in ratios if each is not None]
        return median(known) if known else None

    def _values(self, peer: str, key: str) -> Sequence[float]:
        return [run[key] for run in self.runs[peer]]


@dataclass(frozen=True)
class Verdict:
    promise: Promise
    ratio: float | None
    """Absent when one of the two was not measured."""
    cpu_ratio: float | None
    """The same by the peers' own CPU time: decides nothing, but tells a missed promise from a busy machine."""

    @property
    def word(self) -> Literal["met", "MISSED", "missing"]:
        if self.ratio is None:
            return "missing"
        return "met" if self.ratio >= self.promise.times else "MISSED"


def verdicts(results: Mapping[str, Result]) -> list[Verdict]:
    """One verdict for each promise about a benchmark that was run."""
    return [_verdict(promise, results[promise.benchmark]) for promise in PROMISES if promise.benchmark in results]


def _verdict(promise: Promise, result: Result) -> Verdict:
    lead, cpu = result.benchmark.figures[0], result.benchmark.cpu
    by_cpu = None if cpu is None else result.ratio("ours", promise.peer, cpu)
    return Verdict(promise, result.ratio("ours", promise.peer, lead), by_cpu)


def _times_better(one: float, other: float, figure: Figure) -> float | None:
    numerator, denominator = (one, other) if figure.better == "more" else (other, one)
    return numerator / denominator if denominator > 0 and numerator > 0 else None
