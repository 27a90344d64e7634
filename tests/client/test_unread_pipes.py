"""Agents that never read, both sides writing first, and a machine without descriptors."""

import asyncio
import subprocess
import sys
import tracemalloc

import pytest

from dragoman import limits
from tests.client.raw_agent import RawAgent, connected, new_session
from tests.support.messages import Message
from tests.support.rough_command import SCRIPT
from tests.support.versions import both_versions
from tests.support.waiting import settled, until

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("D3")
@pytest.mark.parametrize("version", [2, pytest.param(1, marks=pytest.mark.slow)])
async def test_an_agent_that_never_reads_makes_the_sender_wait_and_costs_a_bounded_amount(version: int) -> None:
    """As many messages as make several times the bound."""
    count, text = 12_000, "x" * 1000
    async with connected(version) as (client, agent):
        agent.pause()
        sent = 0

        async def send() -> None:
            nonlocal sent
            for number in range(count):
                await client.notify("_flood", {"number": number, "text": text})
                sent += 1

        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        sending = asyncio.ensure_future(send())
        await settled()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert 0 < sent < count / 2
        assert sent * len(text) < limits.OUTBOX_BYTES + limits.MIB
        assert after - before < 2 * limits.OUTBOX_BYTES
        agent.resume()
        async with asyncio.timeout(30):
            await sending
            await until(lambda: len(flood(agent)) == count)
        assert [message["params"]["number"] for message in flood(agent)] == list(range(count))


def flood(agent: RawAgent) -> list[Message]:
    return [message for message in agent.heard if message.get("method") == "_flood"]


@pytest.mark.requirement("D4")
@both_versions
async def test_both_sides_write_before_they_read_and_go_on(version: int) -> None:
    """The agent answers nothing before it has said everything; we ask meanwhile more than any pipe takes."""
    count = 100
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("hi")
        number = await agent.accept()
        agent.pause()
        agent.tell(*["x" * 20_000] * count)
        asking = [asyncio.ensure_future(client.request("_big", {"text": "y" * 20_000})) for _ in range(count)]
        async with asyncio.timeout(30):
            read = 0
            while read < count * 20_000:
                event = await anext(turn)
                read += len(getattr(event, "text", ""))
            agent.resume()
            for _ in range(count):
                agent.say({"id": (await agent.request("_big"))["id"], "result": {}})
            await asyncio.gather(*asking)
            agent.finish(number)
            assert [type(event).__name__ async for event in turn] == ["Idle"]


DESCRIPTORS = """
import asyncio, resource, sys
from dragoman import connect
from dragoman.errors import DragomanError

resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))
AGENT = [sys.executable, "-S", "-E", sys.argv[1]]

async def main():
    open_ones, refused = [], ""
    while not refused and len(open_ones) < 48:
        client = connect(AGENT)
        try:
            await client.__aenter__()
        except DragomanError as error:
            refused = str(error)
        else:
            open_ones.append(client)
    for client in open_ones[len(open_ones) // 2 :]:
        await client.close()
    async with connect(AGENT) as client:
        session = await client.new_session("/")
        print((await session.ask("go")).text, len(open_ones) > 3, bool(refused), flush=True)
    sessions = [await client.new_session("/") for client in open_ones[: len(open_ones) // 2]]
    print({(await session.ask("go")).text for session in sessions}, flush=True)
    for client in open_ones:
        await client.close()

asyncio.run(main())
"""


@pytest.mark.requirement("D13")
async def test_without_descriptors_a_start_fails_in_words_and_the_others_go_on() -> None:
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", DESCRIPTORS, str(SCRIPT)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done True True\n{'done'}\n", "")
