"""A language server as a process that misbehaves: no wait is without an end, and nothing of it is left."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman.coder.language_servers import launch
from dragoman.coder.language_servers.known import FoundServer
from dragoman.coder.language_servers.launch import ServerPlace
from dragoman.coder.language_servers.problems import FileEdit, Problem, Seen
from dragoman.coder.language_servers.server import LanguageServer, ServerState, ServerTimeouts
from dragoman.coder.language_servers.servers import LanguageServers
from dragoman.host.guardian import Guardian
from dragoman.host.process import Child
from dragoman.host.process_tree import living
from dragoman.host.resources import ResourceLimits
from dragoman.host.sandbox import SandboxRefused
from tests.support.language_servers import PATIENT, small
from tests.support.waiting import until
from tests.support.whole_agent import ENVIRONMENT, one_guardian

TEXT = "BAD\n"


class Counting(Guardian):
    """The guardian that all tests share, and how often it has started something."""

    def __init__(self) -> None:
        super().__init__()
        self.children: list[Child] = []

    def start(self, *args: object, **more: object) -> Child:
        self.children.append(one_guardian().start(*args, **more))  # type: ignore[arg-type]
        return self.children[-1]

    def leave(self, leader: int) -> None:
        one_guardian().leave(leader)


@asynccontextmanager
async def running(
    folder: Path,
    *switches: str,
    timeouts: ServerTimeouts = PATIENT,
    limits: ResourceLimits | None = None,
    is_free: bool = False,
) -> AsyncIterator[tuple[LanguageServer, Counting]]:
    guardian, spec = Counting(), small(*switches)
    place = ServerPlace([os.path.realpath(folder)], ENVIRONMENT, limits=limits, is_free=is_free)
    server = LanguageServer(FoundServer(spec, spec.command[0]), place, lambda: guardian, timeouts)
    try:
        yield server, guardian
    finally:
        await server.close()
        left = {process.pid for process in living()} & {child.pid for child in guardian.children}
        assert left == set()


def refuse(*args: object, **more: object) -> None:
    """What a machine says that can confine nothing."""
    raise SandboxRefused("no")


def path(folder: Path) -> str:
    return os.path.join(os.path.realpath(folder), "a.txt")


@pytest.mark.requirement("LSP3")
async def test_a_server_is_started_with_its_first_use_and_confined(tmp_path: Path) -> None:
    async with running(tmp_path) as (server, guardian):
        assert (server.state, guardian.children) == (ServerState.STOPPED, [])
        assert await server.problems_of(path(tmp_path), TEXT) == [
            Problem(path(tmp_path), 1, 1, "error", "BAD is not good", "small", "BAD1")
        ]
        assert (server.state, server.is_confined, len(guardian.children)) == (ServerState.READY, True, 1)


@pytest.mark.requirement("LSP4")
async def test_a_server_that_crashes_is_started_again_a_few_times_and_then_given_up(tmp_path: Path) -> None:
    async with running(tmp_path, "--crash", "BAD", timeouts=PATIENT._replace(restarts=2)) as (server, guardian):
        answers = [await server.problems_of(path(tmp_path), TEXT)]
        for _ in range(2):
            await until(lambda: server.state is ServerState.STOPPED)
            answers.append(await server.problems_of(path(tmp_path), TEXT))
        await until(lambda: server.state is ServerState.GIVEN_UP)
        answers.append(await server.problems_of(path(tmp_path), TEXT))
        assert answers == [None] * 4
        assert len(guardian.children) == 3


@pytest.mark.requirement("LSP4")
async def test_a_server_that_never_answers_is_given_up_and_an_edit_waits_no_longer_than_it_may(tmp_path: Path) -> None:
    timeouts = PATIENT._replace(start=0.2, restarts=0)
    async with running(tmp_path, "--mute", timeouts=timeouts) as (server, _):
        assert await server.problems_of(path(tmp_path), TEXT) is None
        assert server.state is ServerState.GIVEN_UP


@pytest.mark.requirement("LSP4")
async def test_a_server_that_floods_is_ended(tmp_path: Path) -> None:
    async with running(tmp_path, "--flood", timeouts=PATIENT._replace(restarts=0)) as (server, _):
        assert await server.problems_of(path(tmp_path), TEXT) is None
        await until(lambda: server.state is ServerState.GIVEN_UP)


@pytest.mark.requirement("LSP4")
@pytest.mark.parametrize("confined", [True, False], ids=["by the kernel", "by a look from outside"])
async def test_a_server_that_grows_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, confined: bool) -> None:
    if not confined:
        monkeypatch.setattr(launch, "confine", refuse)
    limits = ResourceLimits(256 << 20, 1024)
    timeouts = PATIENT._replace(restarts=0, look=0.05)
    async with running(tmp_path, "--grow", timeouts=timeouts, limits=limits, is_free=True) as (server, _):
        assert await server.problems_of(path(tmp_path), TEXT) is None
        await until(lambda: server.state is ServerState.GIVEN_UP)


@pytest.mark.requirement("LSP3")
@pytest.mark.parametrize(("is_free", "confined"), [(True, False), (False, None)])
async def test_where_nothing_can_be_confined_the_mode_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_free: bool, confined: bool | None
) -> None:
    monkeypatch.setattr(launch, "confine", refuse)
    async with running(tmp_path, is_free=is_free) as (server, guardian):
        problems = await server.problems_of(path(tmp_path), TEXT)
        assert (problems is not None, server.is_confined, len(guardian.children)) == (is_free, confined, int(is_free))


async def test_words_between_messages_are_skipped(tmp_path: Path) -> None:
    async with running(tmp_path, "--junk") as (server, _):
        for text in (TEXT, f"\n{TEXT}"):
            problems = await server.problems_of(path(tmp_path), text)
            assert [problem.message for problem in problems or ()] == ["BAD is not good"]


@pytest.mark.requirement("LSP3")
async def test_a_server_is_told_the_projects_interpreter_and_may_change_no_file(tmp_path: Path) -> None:
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to("/bin/sh")
    async with running(tmp_path, "--ask") as (server, _):
        problems = await server.problems_of(path(tmp_path), TEXT)
        assert [problem.message for problem in problems or ()] == ["applied=False .venv/bin/python"]


async def test_an_idle_server_is_stopped_and_started_with_the_next_use(tmp_path: Path) -> None:
    async with running(tmp_path, timeouts=PATIENT._replace(idle=0.0, look=0.05)) as (server, guardian):
        for count in (1, 2):
            assert await server.problems_of(path(tmp_path), TEXT) is not None
            await until(lambda: server.state is ServerState.STOPPED)
            assert len(guardian.children) == count


async def test_a_file_that_a_command_has_written_is_not_open_with_its_old_text(tmp_path: Path) -> None:
    other = Path(path(tmp_path)).with_name("other.txt")
    other.write_text("one\n")
    async with running(tmp_path) as (server, _):
        await server.problems_of(str(other), "one\n")
        await server.problems_of(path(tmp_path), TEXT)
        assert repr(server) == "<LanguageServer small ready, 2 files open>"
        other.write_text("another\n")
        await server.problems_of(path(tmp_path), TEXT)
        assert repr(server) == "<LanguageServer small ready, 1 files open>"


async def test_closing_ends_those_that_wait(tmp_path: Path) -> None:
    async with running(tmp_path, "--mute") as (server, guardian):
        waiting = asyncio.ensure_future(server.problems_of(path(tmp_path), TEXT))
        await until(lambda: guardian.children)
        await server.close()
        assert await waiting is None
        assert server.state is ServerState.CLOSED


@asynccontextmanager
async def session_of(
    folder: Path,
    *switches: str,
    timeouts: ServerTimeouts = PATIENT,
    is_free: Callable[[], bool] = lambda: False,
) -> AsyncIterator[LanguageServers]:
    """The servers of a session that works in a folder and in one beside it, which is not trusted."""
    work, spec = os.path.realpath(folder), small(*switches)
    servers = LanguageServers(
        [spec],
        lambda roots: ServerPlace(roots, ENVIRONMENT, is_free=is_free()),
        one_guardian,
        lambda: [work],
        lambda: [FoundServer(spec, spec.command[0])],
        timeouts,
    )
    servers.find()
    try:
        yield servers
    finally:
        await servers.close()


@pytest.mark.requirement("LSP2")
async def test_a_file_beside_the_trusted_folder_starts_nothing(tmp_path: Path) -> None:
    beside = f"{os.path.realpath(tmp_path)}-beside/a.txt"
    async with session_of(tmp_path) as servers:
        assert await servers.check_edits([FileEdit(beside, "", TEXT)]) == []
        assert await servers.look_at(beside, TEXT) == Seen()
        assert repr(servers) == "<LanguageServers none started>"


@pytest.mark.requirement("LSP3")
async def test_an_unconfined_server_goes_with_the_mode_that_let_it_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "confine", refuse)
    is_free = True
    async with session_of(tmp_path, is_free=lambda: is_free) as servers:
        assert len(await servers.check_edits([FileEdit(path(tmp_path), "", TEXT)])) == 1
        (before,) = servers._servers.values()
        is_free = False
        assert await servers.check_edits([FileEdit(path(tmp_path), TEXT, TEXT * 2)]) == []
        assert before.state is ServerState.CLOSED


@pytest.mark.requirement("LSP5")
async def test_an_edit_waits_less_for_a_server_that_was_late_before(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with session_of(tmp_path, "--gate", str(gate), timeouts=ServerTimeouts(edit=0.2, least=0.01)) as servers:
        for number in range(4):
            old, new = (f"SLOW {count}\n" for count in (number, number + 1))
            assert await servers.check_edits([FileEdit(path(tmp_path), old, new)]) == []
        (server,) = servers._servers.values()
        assert server.patience == 0.2 / 2**4
        gate.write_text("")

        async def check() -> bool:
            await servers.check_edits([FileEdit(path(tmp_path), new, new)])
            return server.patience == 0.2

        async with asyncio.timeout(30):
            while not await check():
                pass
