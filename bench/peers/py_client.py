"""The bench's client on the official Python SDK, written as its own examples are."""

import asyncio
import os
import time
from functools import partial
from typing import Any, cast

from acp import spawn_agent_process, text_block  # type: ignore[import-not-found, unused-ignore]
from acp.client.connection import ClientSideConnection  # type: ignore[import-not-found, unused-ignore]
from acp.interfaces import Client  # type: ignore[import-not-found, unused-ignore]

from bench.peers.outcome import Stopwatch, Task, in_flight, report_latencies, task


class BenchClient:
    seen = 0

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.seen += 1


async def main(asked: Task) -> None:
    client = BenchClient()
    # The environment is given in full (the SDK trims it), stderr inherited (it would be piped and never read).
    async with spawn_agent_process(
        cast(Client, client),  # the SDK takes any object with the methods it needs; its Protocol asks for all
        *asked.agent,
        env=dict(os.environ),
        transport_kwargs={"stderr": None},
    ) as (connection, _process):
        await connection.initialize(protocol_version=1)
        session = await connection.new_session(cwd=os.getcwd(), mcp_servers=[])
        if asked.scenario == "sequential":
            report_latencies(await requests(connection, session.session_id, asked.count))
            return
        if asked.scenario == "inflight":
            ask = partial(connection.set_session_mode, session_id=session.session_id, mode_id="b")
            await in_flight(ask, asked.count)
            return
        if asked.scenario == "echo":
            report_latencies(await echoes(connection, asked.count))
            return
        watch = Stopwatch()
        await connection.prompt(session_id=session.session_id, prompt=[text_block(asked.prompt)])
        watch.report(client.seen)


async def requests(connection: ClientSideConnection, session_id: str, count: int) -> list[int]:
    taken = []
    for _ in range(count):
        before = time.perf_counter_ns()
        await connection.set_session_mode(session_id=session_id, mode_id="b")
        taken.append(time.perf_counter_ns() - before)
    return taken


async def echoes(connection: ClientSideConnection, count: int) -> list[int]:
    taken = []
    for _ in range(count):
        before = time.perf_counter_ns()
        await connection.ext_method("bench/echo", {})
        taken.append(time.perf_counter_ns() - before)
    return taken


if __name__ == "__main__":
    asyncio.run(main(task()))
