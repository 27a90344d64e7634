"""`dragoman run --agent URL`: an agent behind our own gateway, with a token from a file or the environment."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dragoman.agent.agent import Agent
from tests.support.command import call
from tests.support.fork_server.client import MAIN, fork_server
from tests.support.gateway import gateway

SECONDS = 40
# Where the agent works; there is no such folder here.
FAR = "/srv/far-away/project"


class Done(NamedTuple):
    code: int | None
    out: str
    error: str


async def run(folder: Path, *arguments: str, token: str = "") -> Done:
    environment = {**os.environ, "DRAGOMAN_HOME": str(folder / "home"), "DRAGOMAN_TOKEN": token}
    process = fork_server().child(MAIN, "run", *arguments, env=environment, cwd=folder)
    out, error = await asyncio.to_thread(process.communicate, timeout=SECONDS)
    return Done(process.returncode, out.decode(), error.decode())


def far_agent() -> Agent:
    """Says where it works, what it was lent, and whether it may write."""
    agent = Agent("far")

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        able = session.client
        async with session.tool("write", kind="edit", locations=[f"{session.cwd}/new.txt"]) as tool:
            allowed = bool(await session.ask_permission("Write new.txt?", tool=tool))
        lent = [able.read_text_file, able.write_text_file, able.terminal]
        await session.say(json.dumps([prompt.text, allowed, lent]))

    return agent


@pytest.mark.parametrize("scheme", ["http", pytest.param("ws", marks=pytest.mark.slow)])
async def test_an_agent_behind_an_address_is_run(scheme: str, tmp_path: Path) -> None:
    async with gateway(far_agent(), tmp_path) as far:
        url = (far.http if scheme == "http" else far.ws).removesuffix("/acp")
        file = tmp_path / "token"
        file.touch(mode=0o600)
        file.write_text(far.token)
        first = await run(tmp_path, "hello", "--agent", url, "--token-file", str(file))
        second = await run(tmp_path, "hello", "--agent", url, "--allow", "edit", token=far.token)
        wrong = await run(tmp_path, "hello", "--agent", url, token="wrong-token")
        far_away = await run(tmp_path, "hello", "--agent", url, "--cwd", FAR, token=far.token)
    assert (first.code, json.loads(first.out)) == (5, ["hello", False, [False] * 3]), first
    assert (second.code, json.loads(second.out)) == (0, ["hello", True, [False] * 3]), second
    assert (wrong.code, wrong.out) == (6, "")
    assert "does not know this token" in wrong.error
    assert "wrong-token" not in wrong.error
    # Its folder need not exist here.
    sentence = f"dragoman: Not a folder on the agent's machine: {FAR}\n"
    assert (far_away.code, far_away.error) == (6, sentence)


async def test_an_agent_behind_an_address_reads_nothing_by_itself(tmp_path: Path) -> None:
    agent = Agent("far")

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        async with session.tool("read", kind="read", locations=[f"{session.cwd}/a.txt"]) as tool:
            await session.say(str(bool(await session.ask_permission("Read a.txt?", tool=tool))))

    async with gateway(agent, tmp_path) as far:
        url = far.http.removesuffix("/acp")
        unsaid = await run(tmp_path, "hello", "--agent", url, token=far.token)
        allowed = await run(tmp_path, "hello", "--agent", url, "--allow", "read", token=far.token)
    assert (unsaid.code, unsaid.out) == (5, "False\n"), unsaid
    assert (allowed.code, allowed.out) == (0, "True\n"), allowed


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--agent", "ftp://x"], "'ftp://x' is no address of an agent"),
        (["--agent", "gemini", "--token-file", "t"], "--token-file goes with an address"),
        (["--token-file", "t", "--", sys.executable], "--token-file goes with an address"),
        (["--agent", "https://x.example", "--token-file", "/nowhere"], "/nowhere: no such file"),
        (["--agent", "https://x.example", "--", "agent"], "--agent NAME or -- CMD, not both"),
    ],
)
def test_what_cannot_be_meant_is_exit_2(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    done = call("run", "hello", *arguments, DRAGOMAN_HOME=str(tmp_path / "home"), DRAGOMAN_TOKEN="")
    assert (done.code, done.out) == (2, "")
    assert sentence in done.error
