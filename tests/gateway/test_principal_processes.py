"""Our own agent behind `dragoman serve`: a process for each principal, and none that two share."""

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from dragoman.cli.main import command_line
from dragoman.cli.principal_options import limit_table
from dragoman.client.client import Client
from dragoman.errors import RequestFailed
from dragoman.gateway.principal_limits import LimitEndedAgent, PrincipalLimits
from dragoman.gateway.principal_processes import PrincipalProcesses, ProcessSetup
from dragoman.gateway.token_types import SCOPES
from dragoman.vocabulary.events import AnyEvent
from tests.support.command import call
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


@pytest.mark.requirement("K71")
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


@pytest.mark.requirement("K71")
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


@pytest.mark.requirement("K71")
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
        with pytest.raises(RequestFailed, match="The agent is gone"):
            async for _ in events:
                pass
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


@pytest.mark.requirement("K72")
async def test_an_agent_whose_principal_uses_too_much_memory_is_ended_with_the_reason(tmp_path: Path) -> None:
    """With what it has started: here a command of the session. Another principal has a limit of its own."""
    house = Household(tmp_path)
    ada = house.token("ada", SCOPES)
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "config.toml").write_text('[principals.ada]\nmemory = "150MiB"\n')
    hungry = bash(f"{sys.executable} -c 'import time; x = b\"x\" * (300 << 20); time.sleep(600)'")
    async with house.served(calling(hungry), "--mode", "full-access"), house.client(ada) as client:
        session = await client.new_session(tmp_path)
        with pytest.raises(RequestFailed, match="The agent was ended: this principal may have at most 150 MiB"):
            await session.ask("go")


@pytest.mark.parametrize(
    ("config", "words_", "reason"),
    [
        ("[limits]\nsession = 1\n", [], "unknown key 'limits.session'"),
        ("[principals.ada]\nsession = 1\n", [], "unknown key 'session'"),
        ("[principals.ada]\nturns = -1\n", [], "turns must be a whole number"),
        ("[principals.ada]\nspend = true\n", [], "spend must be dollars"),
        ('[principals.ada]\nmemory = "1KiB"\n', [], "memory must be a size"),
        ("", ["--principal-memory", "much"], "memory must be a size"),
        ("", ["--principal-tasks", "3"], "tasks must be at least 64"),
        ("", ["--principal-turns", "-3"], "--principal-turns"),
    ],
)
def test_a_limit_that_is_none_is_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str, words_: list[str], reason: str
) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    (tmp_path / "config.toml").write_text(config)
    said = call("serve", "--port", "1", *words_)
    assert said.code == 2
    assert reason in said.error


def test_the_command_line_wins_over_the_settings_and_a_principals_own_table_over_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    (tmp_path / "config.toml").write_text("[limits]\nturns = 1\nsessions = 2\n\n[principals.ada]\nturns = 0\n")
    arguments = command_line("serve").parse_args(["serve", "--principal-turns", "5", "--principal-memory", "1GiB"])
    table = limit_table(arguments)
    assert table.of("bob") == PrincipalLimits(sessions=2, turns=5, memory=1 << 30)
    assert table.of("ada") == PrincipalLimits(sessions=2, turns=0, memory=1 << 30)


class _Lost:
    """A receiver that keeps why its connection ended."""

    def __init__(self) -> None:
        self.errors: list[Exception | None] = []

    def data_received(self, data: bytes) -> None: ...

    def writable(self) -> None: ...

    def connection_lost(self, error: Exception | None) -> None:
        self.errors.append(error)


async def test_a_look_that_fails_does_not_end_the_watch_and_the_client_gets_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = iter((RuntimeError("can't start new thread"), None, "too much"))

    def excess(_: object) -> str | None:
        found = next(looks)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(
        "dragoman.gateway.principal_processes.SharedGroup.make", lambda *_: None
    )  # as without control groups
    monkeypatch.setattr("dragoman.gateway.principal_processes._WATCH_SECONDS", 0.01)
    monkeypatch.setattr("dragoman.gateway.principal_processes.UsageWatch.excess", excess)
    limits = PrincipalLimits(memory=2**30)
    sleeping = ProcessSetup([sys.executable, "-c", "import time; time.sleep(60)"], b"{}")
    processes, lost = PrincipalProcesses(sleeping, lambda _: limits), _Lost()
    link = processes.open("ada")
    link.start(lost)
    link.write(b"never read\n")  # so the kernel resets the connection when the process is killed
    await until(lambda: bool(lost.errors))
    await processes.close()
    (error,) = lost.errors
    assert isinstance(error, LimitEndedAgent)
    assert error.limit == "memory"
