"""A client that a person drives: the person is told what to do, and does it here with our own client."""

import asyncio
import shlex
import sys

import pytest

from dragoman.conformance.clients.run import check_client
from dragoman.conformance.clients.subject import ManualClient
from dragoman.conformance.connection import CheckLimits
from dragoman.conformance.rows import load_rows
from dragoman.conformance.run import CheckPlan
from dragoman.conformance.verdicts import Verdict

pytestmark = pytest.mark.anyio
ONLY = ("ACP-CLIENT-501", "ACP-CLIENT-523", "ACP-CLIENT-801")


async def test_a_person_is_told_the_command_and_each_step_and_the_wire_is_judged() -> None:
    told: list[str] = []
    clients: list[asyncio.subprocess.Process] = []
    starting: list[asyncio.Task[None]] = []

    async def open_a_session() -> None:
        agent = shlex.split(told[1])
        line = ["-m", "dragoman", "run", "--protocol", "1", "hello", "--", *agent]
        devnull = asyncio.subprocess.DEVNULL
        clients.append(await asyncio.create_subprocess_exec(sys.executable, *line, stdin=devnull, stdout=devnull))

    def tell(line: str) -> None:
        told.append(line)
        if line.startswith("Step"):
            starting.append(asyncio.get_running_loop().create_task(open_a_session()))

    subject = ManualClient(tell, seconds=30)
    plan = CheckPlan([row for row in load_rows("client") if row.id in ONLY], [1], jobs=1)
    try:
        report = await check_client(subject, plan, CheckLimits(answer=10, turn=30, quiet=0.1))
    finally:
        await subject.close()
        for client in clients:
            await client.wait()
    assert told[0].startswith("Add an agent with this command")
    assert told[3] == "  Send any prompt in a new session."
    # How a client ends that a person drives is not seen.
    assert [one.verdict for one in report.results] == [Verdict.PASS, Verdict.PASS, Verdict.NOT_TESTED]
