"""The bench's client on Dragoman, written as its own examples are."""

import asyncio
import os
import time

from bench.peers.outcome import Stopwatch, Task, in_flight, report_latencies, task
from dragoman import connect


async def main(asked: Task) -> None:
    async with connect(asked.agent) as client:
        session = await client.new_session(os.getcwd())
        if asked.scenario == "sequential":
            taken = []
            for _ in range(asked.count):
                before = time.perf_counter_ns()
                await session.set_mode("b")
                taken.append(time.perf_counter_ns() - before)
            report_latencies(taken)
            return
        if asked.scenario == "inflight":
            await in_flight(lambda: session.set_mode("b"), asked.count)
            return
        if asked.scenario == "echo":
            taken = []
            for _ in range(asked.count):
                before = time.perf_counter_ns()
                await client.request("_bench/echo", {})
                taken.append(time.perf_counter_ns() - before)
            report_latencies(taken)
            return
        seen = 0
        watch = Stopwatch()
        async for _event in session.prompt(asked.prompt):
            seen += 1
        watch.report(seen)


if __name__ == "__main__":
    asyncio.run(main(task()))
