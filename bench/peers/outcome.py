"""What a Python client program is asked (argv) and how it answers (one JSON object on stdout)."""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from bench.limits import IN_FLIGHT


@dataclass(frozen=True)
class Task:
    """`SCENARIO COUNT TEXT -- AGENT...` as given by the harness."""

    scenario: str
    count: int
    text: str
    agent: list[str]

    @property
    def prompt(self) -> str:
        """The prompt that makes any bench agent do the work."""
        return f"{self.scenario} {self.count} {self.text}"


def task() -> Task:
    scenario, count, text, _, *agent = sys.argv[1:]
    return Task(scenario, int(count), text, agent)


class Stopwatch:
    """Wall and CPU seconds of this process since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def report(self, seen: int) -> None:
        """Stops, and prints a turn's outcome with the number of updates that the handler saw."""
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        print(json.dumps({"seconds": wall, "cpu": cpu, "seen": seen}), flush=True)


def report_latencies(nanoseconds: Sequence[int]) -> None:
    print(json.dumps(percentiles(nanoseconds)), flush=True)


async def in_flight(ask: Callable[[], Awaitable[object]], count: int) -> None:
    """Ask `count` times, `IN_FLIGHT` at a time, and print how many requests were answered a second."""

    async def worker(share: int) -> None:
        for _ in range(share):
            await ask()

    before = time.perf_counter()
    await asyncio.gather(*(worker(count // IN_FLIGHT) for _ in range(IN_FLIGHT)))
    asked = count // IN_FLIGHT * IN_FLIGHT
    print(json.dumps({"per_second": asked / (time.perf_counter() - before)}), flush=True)


def percentiles(nanoseconds: Sequence[int]) -> dict[str, float]:
    """p50 and p99 in microseconds, and requests a second, of requests made one after the other."""
    ordered = sorted(nanoseconds)
    return {
        "p50_us": ordered[len(ordered) // 2] / 1e3,
        "p99_us": ordered[len(ordered) * 99 // 100] / 1e3,
        "per_second": len(ordered) / (sum(ordered) / 1e9),
    }
