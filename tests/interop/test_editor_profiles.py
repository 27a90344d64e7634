"""Claude's adapter and our agent with the same client and the same turn: what each sends beyond the schema."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.interop.desk import START_SECONDS
from tests.support.editor import turns
from tests.support.fake_model import ANTHROPIC, FakeModel, ToolCall
from tests.support.real_agents import CLAUDE_AGENT
from tests.support.upstream import upstream

pytestmark = [pytest.mark.anyio, pytest.mark.interop]
Message = dict[str, Any]
DECLARED = {"_meta": {"terminal_output": True, "terminal-auth": True}}
COMMAND = "echo one"
WORDS = [{"type": "text", "text": "go"}]


class Wire:
    """An agent's process, in raw JSON. Every permission is given once."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._number = 0
        self.updates: list[Message] = []

    async def ask(self, method: str, params: Message) -> Message:
        """Ask, and return the result; updates that come before it are kept."""
        self._number += 1
        self._say({"id": self._number, "method": method, "params": params})
        while True:
            assert self._process.stdout is not None
            message = json.loads(await asyncio.wait_for(self._process.stdout.readline(), START_SECONDS))
            if message.get("method") == "session/update":
                self.updates.append(message["params"]["update"])
            elif message.get("method") == "session/request_permission":
                (option,) = [one for one in message["params"]["options"] if one["kind"] == "allow_once"]
                chosen = {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
                self._say({"id": message["id"], "result": chosen})
            elif message.get("id") == self._number:
                result: Message = message["result"]
                return result

    def _say(self, message: Message) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


@asynccontextmanager
async def started(command: list[str], environment: Mapping[str, str], folder: Path) -> AsyncIterator[Wire]:
    pipe = asyncio.subprocess.PIPE
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=quiet, env={**os.environ, **environment}, cwd=folder, limit=2**24
    )
    try:
        yield Wire(process)
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def claude(folder: Path) -> AsyncIterator[Wire]:
    model = FakeModel(ANTHROPIC)
    model.plays(model.says("I run it.", ToolCall("Bash", {"command": COMMAND})), model.says("done"))
    async with upstream(model) as server:
        environment = CLAUDE_AGENT.environment(folder, server.url)
        async with started(CLAUDE_AGENT.started(), environment, folder) as wire:
            yield wire


@asynccontextmanager
async def ours(folder: Path) -> AsyncIterator[Wire]:
    script = folder / "script.json"
    script.write_text(json.dumps(turns([{"call": "bash", "input": {"command": COMMAND}}, {"say": "done"}])))
    command = [sys.executable, "-m", "dragoman.cli.main", "acp", "--model", f"script:{script}"]
    async with started(command, {"DRAGOMAN_HOME": str(folder / "home")}, folder) as wire:
        yield wire


def logins(hello: Message) -> list[Any]:
    return [method["_meta"]["terminal-auth"] for method in hello["authMethods"] if "_meta" in method]


def terminals(updates: list[Message], call: str) -> list[Any]:
    """What is said of the terminal of a call, in order, with the id of the call taken out."""
    found = []
    for update in updates:
        if update.get("toolCallId") == call:
            meta = {key: value for key, value in update.get("_meta", {}).items() if key.startswith("terminal_")}
            shown = [item for item in update.get("content", ()) if item["type"] == "terminal"]
            found += [(key, json.loads(json.dumps(value).replace(call, "CALL"))) for key, value in meta.items()]
            found += [("content", {"terminalId": item["terminalId"].replace(call, "CALL")}) for item in shown]
    return found


@pytest.mark.requirement("ED1", "ED3", "ED5")
async def test_the_same_turn_has_the_same_shapes_as_those_of_claudes_adapter(tmp_path: Path) -> None:
    seen = []
    for agent in (claude, ours):
        folder = tmp_path / agent.__name__
        folder.mkdir()
        async with agent(folder) as wire:
            hello = await wire.ask("initialize", {"protocolVersion": 1, "clientCapabilities": DECLARED})
            assert {tuple(sorted(login)) for login in logins(hello)} == {("args", "command", "label")}
            session = await wire.ask("session/new", {"cwd": str(folder), "mcpServers": []})
            prompt = {"sessionId": session["sessionId"], "prompt": WORDS}
            assert (await wire.ask("session/prompt", prompt))["stopReason"] == "end_turn"
            (call,) = {one["toolCallId"] for one in wire.updates if one.get("kind") == "execute"}
            said = terminals(wire.updates, call)
            required = {**prompt, "_meta": {"steering": {"idleBehavior": "promptRequired"}}}
            steered = await wire.ask("_session/steering", required)
            seen.append((hello["_meta"]["steering"], steered, {key for key, _ in said}, dict(said), said[0]))
    theirs, mine = seen
    # Claude's tool reports its output without the newline at its end.
    theirs[3]["terminal_output"]["data"] += "\n"
    assert mine == theirs
