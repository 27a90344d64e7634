"""`dragoman serve --elephant` and `dragoman acp serve` as processes, with our coding agent behind them."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.gateway import free_port, http_client
from tests.support.gateway_process import Process, forked
from tests.support.messages import hello
from tests.support.needs import need_other_users

from .elephants import NO, YES, RawElephant

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
WRITE = {"call": "write_file", "input": {"path": "new.txt", "content": "new"}}
SCRIPT = {"turns": [{"steps": [WRITE, {"think": "Hm."}, {"say": "Done."}]}]}


@asynccontextmanager
async def serving(home: Path, port: int, *command: str) -> AsyncIterator[tuple[Process, list[str]]]:
    """A server that listens, and what it has said."""
    home.mkdir()
    (home / "script.json").write_text(json.dumps(SCRIPT))
    model = f"script:{home / 'script.json'}"
    settings = ["--port", str(port), "--model", model]
    lines: list[str] = []
    async with forked(*command, *settings, DRAGOMAN_HOME=str(home)) as process:
        async with asyncio.timeout(30):
            while not any("listening on" in line for line in lines):
                lines.append((await process.stderr.readline()).decode())
                assert lines[-1], lines
        yield process, lines
        process.kill()
        lines += (await process.stderr.read()).decode().splitlines()


async def refused(home: Path, *command: str) -> str:
    """What a command says that ends at once with exit code 2."""
    async with forked(*command, DRAGOMAN_HOME=str(home)) as process, asyncio.timeout(30):
        said = await process.stderr.read()
        assert await process.wait() == 2
    return said.decode()


@pytest.mark.requirement("8.3.18")
@pytest.mark.parametrize("command", [("acp", "serve", "--host", "127.0.0.1"), ("serve", "--elephant")])
async def test_its_command_serves_and_a_refusal_stays_one(command: tuple[str, ...], tmp_path: Path) -> None:
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
    assert [line for line in lines if "need no token if they run as the same user as this server" in line]


# What a program of this user is told at both paths, without a token and with one.
AS_USER = """
import http.client, json, os, sys
user, port, token, body = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
"".encode("idna")
os.setgid(user)
os.setuid(user)
said = []
for headers in ({}, {"Authorization": f"Bearer {token}"}):
    for method, path in (("POST", "/acp/rpc"), ("GET", "/acp/sse")):
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        client.request(method, path + "?client_id=x", body if method == "POST" else None, headers)
        answer = client.getresponse()
        said.append([answer.status, answer.read().decode() if answer.status == 401 else ""])
        client.close()
print(json.dumps(said))
"""


async def test_only_programs_of_the_server_s_own_user_need_no_token(tmp_path: Path) -> None:
    need_other_users()
    port = free_port()
    async with serving(tmp_path / "home", port, "serve", "--elephant") as (_, lines):
        (token,) = [line.split()[-1] for line in lines if "shown this once" in line]
        told = {}
        for user in (os.geteuid(), 65534, 12345):
            words = [AS_USER, str(user), str(port), token, json.dumps(hello(1))]
            child = await create_subprocess_exec(sys.executable, "-c", *words, stdout=PIPE)
            async with asyncio.timeout(30):
                told[user] = json.loads((await child.communicate())[0])
        assert told[os.geteuid()] == [[202, ""], [200, ""]] * 2
        for user in (65534, 12345):
            assert [status for status, _ in told[user]] == [401, 401, 202, 200]
            assert "only programs of the user that runs this server" in told[user][0][1]


async def test_the_mode_that_does_not_ask_is_not_given_to_every_client(tmp_path: Path) -> None:
    for mode in ("full-access", "workspace-write"):
        said = await refused(tmp_path, "serve", "--elephant", "--mode", mode)
        assert "full, read-only, safe, sandbox" in said


async def test_elsewhere_it_does_not_start_without_a_token(tmp_path: Path) -> None:
    assert "dragoman tokens create NAME" in await refused(tmp_path, "acp", "serve", "--host", "0.0.0.0")
