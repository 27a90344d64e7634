"""What a client offers an agent: files inside the roots and nowhere else, terminals that are real processes."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.client import text_files
from dragoman.client.permission_handler import PermissionHandler
from dragoman.client.permission_policy import PermissionPolicy
from dragoman.client.terminals import PER_SESSION
from dragoman.client.text_files import FILE_BYTES
from dragoman.client.workspace import Workspace
from dragoman.errors import INVALID_PARAMS, INVALID_REQUEST, NOT_FOUND, TOO_MANY_IN_FLIGHT, RequestFailed
from dragoman.host.paths import PathRefused, Place
from dragoman.vocabulary.requests import EnvVariable
from dragoman.vocabulary.services import (
    CreateTerminal,
    GetTerminalOutput,
    KillTerminal,
    ReadTextFile,
    ReleaseTerminal,
    RequestPermission,
    TerminalExited,
    TerminalText,
    WaitForTerminalExit,
    WriteTextFile,
)
from dragoman.vocabulary.tools import ExitStatus
from tests.client.raw_agent import connected, new_session
from tests.support.waiting import until

pytestmark = pytest.mark.anyio

ENVIRONMENT = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "SECRET_TOKEN": "canary"}


@pytest.fixture
async def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
async def workspace(root: Path) -> AsyncIterator[Workspace]:
    async with Workspace([root], environment=ENVIRONMENT) as opened:
        yield opened


def read(path: Path | str, **part: Any) -> ReadTextFile:
    return ReadTextFile("s", str(path), **part)


async def refusal(work: Any) -> RequestFailed:
    with pytest.raises(RequestFailed) as refused:
        await work
    return refused.value


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ({}, "one\ntwo\r\nthree\fx\n"),
        ({"line": 1}, "one\ntwo\r\nthree\fx\n"),
        ({"line": 2, "limit": 1}, "two\r\n"),
        ({"limit": 2}, "one\ntwo\r\n"),
        ({"line": 3}, "three\fx\n"),
        ({"line": 3, "limit": 9}, "three\fx\n"),
        ({"line": 9}, ""),
        ({"limit": 0}, ""),
        ({"line": 0, "limit": 1}, "one\n"),
        ({"line": None, "limit": None}, "one\ntwo\r\nthree\fx\n"),
    ],
)
async def test_lines_count_from_one(workspace: Workspace, root: Path, part: dict[str, Any], text: str) -> None:
    (root / "a").write_bytes(b"one\ntwo\r\nthree\fx\n")
    assert await workspace.read_text_file(read(root / "a", **part)) == text


async def test_a_file_is_written_whole_with_its_folders(workspace: Workspace, root: Path) -> None:
    await workspace.write_text_file(WriteTextFile("s", str(root / "new" / "a.txt"), "größer\n"))
    assert (root / "new" / "a.txt").read_bytes() == "größer\n".encode()
    assert [file.name for file in (root / "new").iterdir()] == ["a.txt"]


async def test_outside_is_neither_read_nor_written(workspace: Workspace, root: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("canary")
    (tmp_path / "project-evil").mkdir()
    (root / "link").symlink_to(secret)
    (root / "up").symlink_to(tmp_path)
    os.mkfifo(root / "fifo")
    ways = [secret, root / ".." / "secret", root / "link", root / "up" / "secret", tmp_path / "project-evil" / "x"]
    ways += [Path("/dev/zero"), Path("/proc/self/environ"), root / "fifo", root, Path("relative")]
    for way in [*map(str, ways), "", "/\0", str(root) + "/" + "x" * 5_000]:
        assert (await refusal(workspace.read_text_file(read(way)))).code == INVALID_PARAMS, way
        assert (await refusal(workspace.write_text_file(WriteTextFile("s", way, "evil")))).code == INVALID_PARAMS, way
    assert secret.read_text() == "canary"
    assert sorted(os.listdir(tmp_path)) == ["project", "project-evil", "secret"]


async def test_a_missing_file_is_a_missing_resource(workspace: Workspace, root: Path) -> None:
    refused = await refusal(workspace.read_text_file(read(root / "nothing")))
    assert (refused.code, refused.data) == (NOT_FOUND, {"path": str(root / "nothing")})


async def test_what_is_no_text_or_too_much_of_it_is_refused(workspace: Workspace, root: Path) -> None:
    (root / "binary").write_bytes(b"\xff\xfe")
    with (root / "huge").open("wb") as file:
        file.truncate(FILE_BYTES + 1)
    for name in ("binary", "huge"):
        assert (await refusal(workspace.read_text_file(read(root / name)))).code == INVALID_PARAMS


async def test_a_policy_stands_before_files_and_commands(root: Path) -> None:
    (root / "a").write_text("x")
    permissions = PermissionHandler(PermissionPolicy("read"), [root])
    async with Workspace([root], environment=ENVIRONMENT, permissions=permissions) as workspace:
        assert await workspace.read_text_file(read(root / "a")) == "x"
        write = await refusal(workspace.write_text_file(WriteTextFile("s", str(root / "a"), "y")))
        run = await refusal(workspace.terminals.create(CreateTerminal("s", "touch", [str(root / "b")])))
    assert (write.code, run.code, permissions.denied) == (INVALID_REQUEST, INVALID_REQUEST, 2)
    assert write.message == "Not allowed: it changes files, and there is no user to ask"
    assert [(file.name, file.read_text()) for file in root.iterdir()] == [("a", "x")]


@pytest.mark.parametrize("answer", ["reject", None])
async def test_what_a_person_refuses_is_neither_read_nor_written_nor_run(root: Path, answer: str | None) -> None:
    (root / "a").write_text("x")
    asked: list[str] = []

    async def ask(request: RequestPermission) -> str | None:
        asked.append(request.title)
        return answer

    permissions = PermissionHandler(PermissionPolicy(), [root], ask=ask)
    async with Workspace([root], environment=ENVIRONMENT, permissions=permissions) as workspace:
        for work in (
            workspace.read_text_file(read(root / "a")),
            workspace.write_text_file(WriteTextFile("s", str(root / "a"), "y")),
            workspace.terminals.create(CreateTerminal("s", "touch", [str(root / "b")])),
        ):
            assert (await refusal(work)).message == "Not allowed: the user said no"
    assert asked == [f"Read {root / 'a'}", f"Write {root / 'a'}", f"Run touch {root / 'b'}"]
    assert [(file.name, file.read_text()) for file in root.iterdir()] == [("a", "x")]


async def test_a_command_is_not_run_in_another_folder_than_the_one_that_was_shown(root: Path) -> None:
    (root / "shown").mkdir()
    (root / "other").mkdir()

    async def ask(request: RequestPermission) -> str:
        (root / "shown").rmdir()
        (root / "shown").symlink_to(root / "other")
        return "allow"

    permissions = PermissionHandler(PermissionPolicy(), [root], ask=ask)
    async with Workspace([root], environment=ENVIRONMENT, permissions=permissions) as workspace:
        refused = await refusal(start(workspace, "touch", "ran", cwd=str(root / "shown")))
    assert (refused.code, refused.message) == (INVALID_REQUEST, "The working folder has changed meanwhile")
    assert list((root / "other").iterdir()) == []


# -- terminals -------------------------------------------------------------------------------------------------------


async def start(workspace: Workspace, command: str, *args: str, session: str = "s", **more: Any) -> str:
    return await workspace.terminals.create(CreateTerminal(session, command, list(args), **more))


async def end(workspace: Workspace, terminal: str) -> TerminalExited:
    return await workspace.terminals.wait_for_exit(WaitForTerminalExit("s", terminal))


async def output(workspace: Workspace, terminal: str) -> TerminalText:
    return await workspace.terminals.output(GetTerminalOutput("s", terminal))


async def test_a_command_runs_to_its_end(workspace: Workspace, root: Path) -> None:
    terminal = await start(workspace, "sh", "-c", "pwd; echo oops >&2; exit 3")
    assert await end(workspace, terminal) == TerminalExited(3, None)
    text = await output(workspace, terminal)
    assert sorted(text.output.splitlines()) == sorted([str(root), "oops"])
    assert (text.truncated, text.exit_status) == (False, ExitStatus(3, None))


async def test_a_whole_line_without_arguments_is_for_a_shell(workspace: Workspace) -> None:
    terminal = await start(workspace, "printf a && printf b")
    await end(workspace, terminal)
    assert (await output(workspace, terminal)).output == "ab"


async def test_a_command_that_reads_finds_the_end(workspace: Workspace) -> None:
    assert await end(workspace, await start(workspace, "cat")) == TerminalExited(0, None)


async def test_a_command_sees_no_secrets_but_what_it_was_given(workspace: Workspace) -> None:
    terminal = await start(workspace, "env", env=[EnvVariable("GIVEN", "yes")])
    await end(workspace, terminal)
    names = {line.partition("=")[0] for line in (await output(workspace, terminal)).output.splitlines()}
    assert {"GIVEN", "LANG", "PATH"} <= names
    assert "SECRET_TOKEN" not in names


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 4, 5, 7, 100])
async def test_the_end_of_the_output_is_kept_from_a_whole_character_on(workspace: Workspace, limit: int) -> None:
    printed = "aé€😀z"
    terminal = await start(workspace, "printf", printed, output_byte_limit=limit)
    await end(workspace, terminal)
    text = await output(workspace, terminal)
    kept = next(printed[at:] for at in range(len(printed) + 1) if len(printed[at:].encode()) <= limit)
    assert (text.output, text.truncated) == (kept, kept != printed)


async def test_a_flood_is_bounded(workspace: Workspace) -> None:
    terminal = await start(workspace, "sh", "-c", "yes | head -c 20000000; echo end", output_byte_limit=1000)
    await end(workspace, terminal)
    text = await output(workspace, terminal)
    assert (len(text.output), text.output[-6:], text.truncated) == (1000, "y\nend\n", True)


async def test_output_is_read_while_the_command_runs(workspace: Workspace) -> None:
    terminal = await start(workspace, "sh", "-c", "printf 'here\\303'; exec sleep 300")
    seen = TerminalText("", False)
    async with asyncio.timeout(30):
        while not seen.output:
            seen = await output(workspace, terminal)
            await asyncio.sleep(0.005)
    assert seen == TerminalText("here", False, None)  # half a character is not shown yet


async def test_a_killed_command_stays_readable_until_it_is_released(workspace: Workspace) -> None:
    terminal = await start(workspace, "sh", "-c", "trap '' TERM; echo before; sleep 300 & sleep 300")
    waiting = asyncio.ensure_future(end(workspace, terminal))
    while "before" not in (await output(workspace, terminal)).output:  # noqa: ASYNC110  # another process's word
        await asyncio.sleep(0.005)
    began = time.monotonic()
    await workspace.terminals.kill(KillTerminal("s", terminal))
    assert await waiting == TerminalExited(None, "SIGKILL")
    assert time.monotonic() - began < 20
    assert (await output(workspace, terminal)).output == "before\n"
    await workspace.terminals.release(ReleaseTerminal("s", terminal))
    assert (await refusal(output(workspace, terminal))).code == NOT_FOUND


async def test_closing_leaves_nothing_behind(root: Path) -> None:
    workspace = Workspace([root], environment=ENVIRONMENT)
    seconds = str(100_000 + os.getpid())  # no other process sleeps so long
    stubborn = f"trap '' TERM HUP; (setsid sleep {seconds} &) ; echo $$; sleep {seconds}"
    for _ in range(5):
        await start(workspace, "sh", "-c", stubborn)
    fds = len(os.listdir("/proc/self/fd"))
    await until(lambda: len(_sleepers(seconds)) == 10)
    began = time.monotonic()
    await workspace.close()
    assert time.monotonic() - began < 20
    assert _sleepers(seconds) == []
    assert len(os.listdir("/proc/self/fd")) < fds
    assert (await refusal(start(workspace, "true"))).code == INVALID_REQUEST


def _sleepers(seconds: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except (OSError, IndexError):
                continue
            if words[:2] == [b"sleep", seconds.encode()] and state != "Z":
                found.append(entry.name)
    return found


async def test_the_number_of_terminals_is_bounded(workspace: Workspace) -> None:
    first = await start(workspace, "true")
    for _ in range(PER_SESSION - 1):
        await start(workspace, "true")
    assert (await refusal(start(workspace, "true"))).code == TOO_MANY_IN_FLIGHT
    await start(workspace, "true", session="other")
    await workspace.terminals.release(ReleaseTerminal("s", first))
    await start(workspace, "true")


async def test_a_terminal_of_another_session_does_not_exist(workspace: Workspace) -> None:
    terminal = await start(workspace, "true", session="other")
    assert (await refusal(output(workspace, terminal))).code == NOT_FOUND
    assert (await refusal(workspace.terminals.kill(KillTerminal("s", terminal)))).code == NOT_FOUND


async def test_what_cannot_start_says_why(workspace: Workspace, root: Path) -> None:
    missing = await refusal(start(workspace, "no-such-program"))
    assert (missing.code, missing.message) == (
        INVALID_PARAMS,
        "Cannot start no-such-program: there is no such program.",
    )
    for cwd in ("/", str(root / ".."), "relative"):
        assert (await refusal(start(workspace, "true", cwd=cwd))).code == INVALID_PARAMS


async def test_over_the_wire(workspace: Workspace, root: Path) -> None:
    (root / "a").write_text("text")
    async with connected(1, **workspace.callbacks()) as (client, agent):
        greeting = next(m for m in agent.heard if m.get("method") == "initialize")["params"]["clientCapabilities"]
        assert (greeting["fs"], greeting["terminal"]) == ({"readTextFile": True, "writeTextFile": True}, True)
        await new_session(client, agent)
        params: dict[str, Any] = {"sessionId": "s", "path": str(root / "a")}
        agent.say({"id": 1, "method": "fs/read_text_file", "params": params})
        assert (await agent.answer(1))["result"] == {"content": "text"}
        code = "print('out', flush=True)"
        create = {"sessionId": "s", "command": sys.executable, "args": ["-c", code], "cwd": str(root)}
        agent.say({"id": 2, "method": "terminal/create", "params": create})
        named = {"sessionId": "s", "terminalId": (await agent.answer(2))["result"]["terminalId"]}
        agent.say({"id": 3, "method": "terminal/wait_for_exit", "params": named})
        assert (await agent.answer(3))["result"]["exitCode"] == 0
        agent.say({"id": 4, "method": "terminal/output", "params": named})
        assert (await agent.answer(4))["result"]["output"] == "out\n"
        agent.say({"id": 5, "method": "terminal/release", "params": named})
        assert (await agent.answer(5))["result"] == {}


@pytest.mark.requirement("C13")
@pytest.mark.parametrize("method", ["fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/kill"])
async def test_what_was_not_announced_is_not_there(method: str) -> None:
    async with connected(1) as (client, agent):
        await new_session(client, agent)
        params = {"sessionId": "s", "path": "/etc/passwd", "content": "", "command": "ls", "terminalId": "t"}
        agent.say({"id": 1, "method": method, "params": params})
        assert (await agent.answer(1))["error"]["code"] == -32601


@pytest.mark.parametrize("problem", ["unreadable", "too large"])
async def test_a_file_that_cannot_be_shown_is_not_replaced(
    problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be shown as a new one, or in part."""
    file = tmp_path / "a"
    file.write_text("what there is")
    if problem == "too large":
        monkeypatch.setattr(text_files, "FILE_BYTES", 5)
    else:
        monkeypatch.setattr(text_files, "read_bytes", _unreadable)
    shown: list[RequestPermission] = []

    async def ask(request: RequestPermission) -> str:
        shown.append(request)
        return "allow"

    async with Workspace(
        [tmp_path], environment={}, permissions=PermissionHandler(PermissionPolicy(), [tmp_path], ask)
    ) as workspace:
        with pytest.raises(RequestFailed) as refused:
            await workspace.write_text_file(WriteTextFile("s", str(file), "new"))
    assert (refused.value.code, shown, file.read_text()) == (INVALID_PARAMS, [], "what there is")


def _unreadable(place: Place, limit: int) -> tuple[bytes, bool]:
    raise PathRefused(f"{place.path}: permission denied.")


async def test_a_relative_folder_of_the_path_lends_no_programs(tmp_path: Path) -> None:
    (tmp_path / "git").write_text("#!/bin/sh\ntouch made\n")
    (tmp_path / "git").chmod(0o755)
    async with Workspace([tmp_path], environment={"PATH": ".::/usr/bin:/bin"}) as workspace:
        await end(workspace, await start(workspace, "git", "--version"))
        await end(workspace, await start(workspace, "git --version"))
    assert not (tmp_path / "made").exists()
