"""Our own agent behind `dragoman serve`: a process for each principal, and none that two share."""

import asyncio
import json
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from dragoman.client.client import Client
from dragoman.vocabulary.events import AnyEvent, Idle
from tests.support.gateway import http_client
from tests.support.gateway_process import Serving, words
from tests.support.principals import Household, bash, calling
from tests.support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

SAYS: dict[str, object] = {"turns": [{"steps": [{"say": "word ", "repeat": 3}]}]}


async def started(server: Serving) -> tuple[str, int]:
    """The principal and the number of the next process that the server says it has started."""
    while line := await server.process.stderr.readline():
        if line.startswith(b"{") and (said := json.loads(line))["event"] == "process_started":
            return said["principal"], said["pid"]
    raise AssertionError("the server has ended")


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def turn(client: Client, folder: Path) -> list[AnyEvent]:
    conversation = await client.new_session(folder)
    return [event async for event in conversation.prompt("go")]


async def test_connections_of_one_principal_share_a_process_and_those_of_two_do_not(tmp_path: Path) -> None:
    house = Household(tmp_path)
    ada, also_ada, bob = house.token("ada"), house.token("laptop", principal="ada"), house.token("bob")
    async with house.served(SAYS) as server:
        async with house.client(ada) as first, house.client(also_ada, version=1) as second:
            assert words(await turn(first, tmp_path)) == words(await turn(second, tmp_path)) == "word word word "
            async with house.client(bob) as third:
                assert words(await turn(third, tmp_path)) == "word word word "
                # Each in order, and none between: the second connection of the first principal has started nothing.
                processes = [await started(server), await started(server)]
        assert [principal for principal, _ in processes] == ["ada", "bob"]
        assert len({pid for _, pid in processes}) == 2


async def test_an_agent_that_does_not_run_delays_nothing_of_another_principal(tmp_path: Path) -> None:
    house = Household(tmp_path)
    ada, bob = house.token("ada"), house.token("bob")
    async with house.served(SAYS) as server, house.client(ada) as first:
        session = await first.new_session(tmp_path)
        _, stopped = await started(server)
        os.kill(stopped, signal.SIGSTOP)
        waiting = asyncio.ensure_future(session.ask("go"))
        try:
            async with house.client(bob) as second, http_client() as plain:
                assert words(await turn(second, tmp_path)) == "word word word "
                assert (await plain.get(f"http://127.0.0.1:{house.port}/health")).status_code == 200
            assert not waiting.done()
        finally:
            os.kill(stopped, signal.SIGCONT)
        assert (await waiting).text == "word word word "


async def test_a_session_goes_on_in_a_new_process_when_its_own_was_killed(tmp_path: Path) -> None:
    house = Household(tmp_path)
    token = house.token("ada")
    slowly: dict[str, object] = {"turns": [{"steps": [{"say": "word ", "repeat": 5, "delay_ms": 100}]}]}
    async with house.served(slowly) as server, house.client(token) as client:
        session = await client.new_session(tmp_path)
        events = aiter(session.prompt("go"))
        await anext(events)
        _, process = await started(server)
        os.kill(process, signal.SIGKILL)
        end = [event async for event in events][-1]
        assert isinstance(end, Idle)
        assert end.stop_reason == "error"
        assert (await session.ask("again")).text == "word " * 5
        principal, other = await started(server)
        assert (principal, other == process) == ("ada", False)


async def test_another_connection_opens_a_session_as_soon_as_the_first_is_closed(tmp_path: Path) -> None:
    house = Household(tmp_path)
    token = house.token("ada")
    async with house.served(SAYS):
        for _ in range(3):
            async with house.client(token) as first:
                session = await first.new_session(tmp_path)
                await session.ask("go")
            async with house.client(token) as second:
                again = await second.load_session(session.id, tmp_path)
                assert (await again.ask("go")).text == "word word word "


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_server_that_ends_leaves_no_agent_and_none_of_its_commands(tmp_path: Path, number: int) -> None:
    house = Household(tmp_path)
    token = house.token("ada")
    async with house.served(calling(bash("sleep 600")), "--mode", "full-access", "--grace", "0") as server:
        client = house.client(token)
        session = await (await client.__aenter__()).new_session(tmp_path)
        running = asyncio.ensure_future(session.ask("go"))
        _, process = await started(server)
        await until(lambda: any(b"sleep\x00600" in line for line in lines_below(process)), "the command")
        below = [process, *children_of(process)]
        server.process.send_signal(number)
        await until(lambda: not any(map(lives, below)), "the end of the agent and its command")
    running.cancel()
    await client.__aexit__(None, None, None)


def children_of(pid: int) -> list[int]:
    """What a process has started, and what that has."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            found += [child, *children_of(child)]
    return found


def lines_below(pid: int) -> list[bytes]:
    with suppress(OSError):
        return [Path(f"/proc/{child}/cmdline").read_bytes() for child in children_of(pid)]
    return []
