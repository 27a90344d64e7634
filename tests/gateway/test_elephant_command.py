"""`dragoman serve --elephant` and `dragoman acp serve` as processes, with our coding agent behind them."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from .elephants import NO, YES, RawElephant
from .serving import free_port, http_client

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
DRAGOMAN = [sys.executable, "-m", "dragoman.cli.main"]
WRITE = {"call": "write_file", "input": {"path": "new.txt", "content": "new"}}
SCRIPT = {"turns": [{"steps": [WRITE, {"think": "Hm."}, {"say": "Done."}]}]}


async def started(home: Path, *command: str) -> Process:
    environment = {**os.environ, "DRAGOMAN_HOME": str(home)}
    return await asyncio.create_subprocess_exec(*DRAGOMAN, *command, env=environment, stderr=PIPE)


@asynccontextmanager
async def serving(home: Path, port: int, *command: str) -> AsyncIterator[tuple[Process, list[str]]]:
    """A server that listens, and what it has said."""
    home.mkdir()
    (home / "script.json").write_text(json.dumps(SCRIPT))
    model = f"script:{home / 'script.json'}"
    process = await started(home, *command, "--port", str(port), "--model", model)
    assert process.stderr is not None
    lines: list[str] = []
    try:
        async with asyncio.timeout(30):
            while not any("listening on" in line for line in lines):
                lines.append((await process.stderr.readline()).decode())
                assert lines[-1], lines
        yield process, lines
    finally:
        if process.returncode is None:
            process.kill()
        _, rest = await process.communicate()
        lines += rest.decode().splitlines()


async def refused(home: Path, *command: str) -> str:
    """What a command says that ends at once with exit code 2."""
    process = await started(home, *command)
    async with asyncio.timeout(30):
        _, said = await process.communicate()
    assert process.returncode == 2
    return said.decode()


@pytest.mark.parametrize("command", [("acp", "serve", "--host", "127.0.0.1"), ("serve", "--elephant")])
async def test_8_3_18_its_command_serves_and_a_refusal_stays_one(command: tuple[str, ...], tmp_path: Path) -> None:
    port, folder = free_port(), tmp_path / "work"
    folder.mkdir()
    async with serving(tmp_path / "home", port, *command) as (process, lines), http_client() as http:
        client = RawElephant(f"http://127.0.0.1:{port}", http, "its-client")
        await client.open()
        await client.ask(0, "initialize", protocolVersion=1)
        opened = (await client.ask(1, "session/new", cwd=str(folder), mcpServers=[]))["result"]
        assert sorted(opened) == ["modes", "sessionId"]
        assert opened["modes"]["currentModeId"] == "full"  # which asks, whatever it is called
        for id, answer, written in ((2, NO, False), (3, YES, True)):
            client.heard.clear()
            await client.prompt(opened["sessionId"], id)
            question = await client.question()
            assert [option["optionId"] for option in question["params"]["options"]] == ["allow_once", "reject_once"]
            assert await client.post({"id": question["id"], "result": answer}) == 204
            assert (await client.answer(id))["result"] == {"stopReason": "end_turn"}
            assert (folder / "new.txt").exists() is written
            told = [m["params"]["update"]["sessionUpdate"] for m in client.heard if m.get("method") == "session/update"]
            assert told[:2] == ["user_message_chunk", "tool_call"]
            assert set(told) == {"user_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"}
        await client.drop()
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            assert await process.wait() == 0
    assert [line for line in lines if "every program of this machine" in line]


async def test_the_mode_that_does_not_ask_is_not_given_to_whoever_comes(tmp_path: Path) -> None:
    for mode in ("full-access", "workspace-write"):
        said = await refused(tmp_path, "serve", "--elephant", "--mode", mode)
        assert "full, read-only, safe, sandbox" in said


async def test_elsewhere_it_does_not_start_without_a_token(tmp_path: Path) -> None:
    assert "--new-token" in await refused(tmp_path, "acp", "serve", "--host", "0.0.0.0")
