"""`dragoman chat` when something goes wrong around it: a bug, a server that is gone, a program that is no agent."""

import asyncio
import os
import re
import shlex
import sys
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pytest

from tests.cli.chat_pane import ASKED, PROMPT, chat, ready, scripted
from tests.cli.pane import PATIENCE_SECONDS
from tests.support.editor import DRAGOMAN
from tests.support.gateway import free_port
from tests.support.gateway_process import serving

AGAIN: dict[str, object] = {"turns": [{"steps": [{"say": "Hello again."}]}]}
# What a terminal is told when a line is read from it: that what is pasted shall be marked.
READS = "\x1b[?2004h"
BUGGY = """
from dragoman import Agent
agent = Agent("buggy", title="A Buggy One")
@agent.prompt
async def reply(session, prompt):
    raise ValueError("boom")
agent.run()
"""


@pytest.mark.slow
def test_a_bug_in_an_agent_is_shown_and_the_agent_is_called_by_its_name(tmp_path: Path) -> None:
    with chat(tmp_path, "--", sys.executable, "-c", BUGGY) as pane:
        ready(pane)
        pane.wait_for(r"^A Buggy One( ·.*)?$")
        pane.say("hi")
        pane.wait_for(r"Internal error \(-32603\)", "It last wrote to stderr:", "ValueError: boom", PROMPT)


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--", "true"], 6, "dragoman: true exited with code 0 before it answered; it may not speak ACP."),
        (["--model", "nope"], 2, "dragoman: --model nope: Model nope needs a provider"),
        pytest.param(["--mode", "nope"], 2, "dragoman: unknown mode 'nope'; there are ", marks=pytest.mark.slow),
    ],
)
def test_what_cannot_begin_says_why(arguments: list[str], code: int, sentence: str, tmp_path: Path) -> None:
    with chat(tmp_path, *arguments) as pane:
        assert pane.left() == code
        assert pane.screen().startswith(sentence)
        assert "exited with code 2" not in pane.screen()


@pytest.mark.slow
def test_an_mcp_server_that_does_not_start_is_told_above_the_line(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text('[mcp.clock]\ncommand = "/nowhere/clock"\n')
    with chat(tmp_path, *scripted(tmp_path, [{"say": "Well."}])) as pane:
        ready(pane)
        pane.type("half a")
        pane.wait_for("! MCP server clock: could not be started: Cannot start /nowhere/clock", "^> half a")
        pane.say(" line")
        pane.wait_for("Well", PROMPT)


@pytest.mark.slow
def test_ctrl_z_at_the_line_gives_the_shell_back(tmp_path: Path) -> None:
    command = shlex.join([*DRAGOMAN, "chat", *scripted(tmp_path, [{"say": "Well."}])])
    environment = {**os.environ, "DRAGOMAN_HOME": str(tmp_path / "home"), "TERM": "xterm", "PS1": "$ "}
    shell = pexpect.spawn(
        "/bin/bash",
        ["--norc", "--noprofile", "-i"],
        cwd=str(tmp_path),
        env=environment,
        encoding="utf-8",
        timeout=PATIENCE_SECONDS,
    )
    shell.sendline(command)
    shell.expect_exact("with the word")
    shell.expect_exact(READS)
    shell.send("\x1a")
    shell.expect_exact("Stopped")
    shell.sendline("fg")
    shell.expect_exact(READS)
    shell.send("\x04")
    shell.expect_exact("$ ")
    shell.close(force=True)


@pytest.mark.anyio
@pytest.mark.slow
async def test_a_server_that_is_restarted_is_come_back_to_and_the_line_is_kept(tmp_path: Path) -> None:
    home, port = tmp_path / "far", free_port()
    environment = {"DRAGOMAN_TOKEN": ""}
    async with serving(home, port, AGAIN) as server:
        environment["DRAGOMAN_TOKEN"] = server.token
        pane = chat(tmp_path, "--agent", f"http://127.0.0.1:{port}", env=environment, columns=120)
        await asyncio.to_thread(pane.__enter__)
        try:
            await asyncio.to_thread(ready, pane)
            await asyncio.to_thread(pane.say, "first")
            await asyncio.to_thread(pane.wait_for, "Hello again", PROMPT)
            server.process.kill()
            await server.process.wait()
            await asyncio.to_thread(pane.wait_for, r"cannot be reached \(connection refused\); trying again")
            async with serving(home, port, AGAIN):
                await asyncio.to_thread(pane.say, "second")
                await asyncio.to_thread(pane.wait_for, "connecting again…", "Connected again", "^> second")
                await asyncio.to_thread(pane.press, "Enter")
                await asyncio.to_thread(lambda: pane.wait_for("Hello again", times=2))
                await asyncio.to_thread(pane.press, "C-d")
                assert await asyncio.to_thread(pane.left) == 0
        finally:
            await asyncio.to_thread(pane.__exit__, None, None, None)


@pytest.mark.anyio
@pytest.mark.slow
async def test_a_session_that_cannot_go_on_is_left_with_how_to_go_on(tmp_path: Path) -> None:
    port = free_port()
    async with serving(tmp_path / "far", port, AGAIN) as server:
        url = f"http://127.0.0.1:{port}"
        pane = chat(tmp_path, "--agent", url, env={"DRAGOMAN_TOKEN": server.token}, columns=120)
        await asyncio.to_thread(pane.__enter__)
        try:
            await asyncio.to_thread(ready, pane)
            server.process.kill()
            await server.process.wait()
            async with serving(tmp_path / "another", port, AGAIN):  # which knows neither our token nor our session
                await asyncio.to_thread(pane.say, "hi")
                assert await asyncio.to_thread(pane.left) == 6
            shown = await asyncio.to_thread(pane.screen)
        finally:
            await asyncio.to_thread(pane.__exit__, None, None, None)
    assert "does not know this token" in shown
    assert re.search(rf"^go on with: dragoman chat --agent {url} --resume \S+$", shown, re.MULTILINE)


def test_ctrl_c_at_a_question_of_our_own_agent_says_nothing_but_that_it_stopped(tmp_path: Path) -> None:
    """The agent withdraws a question that was answered already: that crossed on the way, and is no mistake."""
    steps = [{"call": "write_file", "input": {"path": "new.txt", "content": "x"}}]
    with chat(tmp_path, *scripted(tmp_path, steps)) as pane:
        ready(pane)
        pane.say("hi")
        pane.wait_for(ASKED)
        pane.press("C-c")
        shown = pane.wait_for("^Stopped", PROMPT)
    assert "skipped" not in shown
