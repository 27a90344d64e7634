"""Our agent and the adapters of Claude and Codex, each in raw JSON with a model that does the same things.

The turn: run `echo one`, make the file `new.txt`, change a word in `old.txt`. A second turn fails at the model.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from tests.interop.desk import START_SECONDS
from tests.support.editor import turns
from tests.support.fake_model import ANTHROPIC, RESPONSES, FakeModel, ToolCall
from tests.support.needs import need_codex_agent
from tests.support.real_agents import CLAUDE_AGENT, codex_environment
from tests.support.upstream import Exchange, upstream

Message = dict[str, Any]
COMMAND = "echo one"
OLD, NEW = "one\ntwo\nthree\n", "new\n"
# A patch as Codex has it; its program is run by the adapter itself, whatever the shell.
PATCH = f"""apply_patch <<'EOF'
*** Begin Patch
*** Add File: new.txt
+{NEW.strip()}
*** Update File: old.txt
@@
 one
-two
+2
 three
*** End Patch
EOF
"""


class Wire:
    """An agent's process in the folder of a project, in raw JSON. Every permission is given once, and noted."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self._process = process
        self._number = 0
        self.folder = folder
        self.session = ""
        self.updates: list[Message] = []
        self.questions: list[Message] = []

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
                self.questions.append(message["params"])
                (option,) = [one for one in message["params"]["options"] if one["kind"] == "allow_once"]
                chosen = {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
                self._say({"id": message["id"], "result": chosen})
            elif message.get("id") == self._number:
                result: Message = message["result"]
                return result

    async def open(self, declared: Message) -> Message:
        """Say hello with `_meta` of the capabilities, open a session, and return the agent's hello."""
        hello = await self.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {"_meta": declared}})
        opened = await self.ask("session/new", {"cwd": str(self.folder), "mcpServers": []})
        self.session = opened["sessionId"]
        if any(mode["id"] == "agent-full-access" for mode in opened["modes"]["availableModes"]):
            # Codex's confinement needs a program that is not where its package puts it.
            await self.ask("session/set_mode", {"sessionId": self.session, "modeId": "agent-full-access"})
        return hello

    async def prompt(self, meta: Message | None = None) -> Message:
        """Have a turn, and return its end."""
        return await self.ask("session/prompt", {**self.words(), **({"_meta": meta} if meta else {})})

    def words(self) -> Message:
        return {"sessionId": self.session, "prompt": [{"type": "text", "text": "go"}]}

    def _say(self, message: Message) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


Adapter = Callable[[Path], AbstractAsyncContextManager[Wire]]


@asynccontextmanager
async def claude(folder: Path) -> AsyncIterator[Wire]:
    project, home = _project(folder)
    old = str(project / "old.txt")
    model = FakeModel(ANTHROPIC)
    calls = [
        ToolCall("Bash", {"command": COMMAND}),
        ToolCall("Read", {"file_path": old}),  # or it would not change the file
        ToolCall("Write", {"file_path": str(project / "new.txt"), "content": NEW}),
        ToolCall("Edit", {"file_path": old, "old_string": "two", "new_string": "2"}),
    ]
    _play(model, calls)
    async with upstream(model) as server:
        environment = CLAUDE_AGENT.environment(home, server.url)
        async with _started(CLAUDE_AGENT.started(), environment, project) as wire:
            yield wire


@asynccontextmanager
async def codex(folder: Path) -> AsyncIterator[Wire]:
    project, home = _project(folder)
    model = FakeModel(RESPONSES)
    _play(model, [ToolCall("exec_command", {"cmd": COMMAND}), ToolCall("exec_command", {"cmd": PATCH})])
    async with (
        upstream(model) as server,
        _started(need_codex_agent(), codex_environment(home, server.url), project) as wire,
    ):
        yield wire


@asynccontextmanager
async def ours(folder: Path) -> AsyncIterator[Wire]:
    project, home = _project(folder)
    steps = [
        {"call": "bash", "input": {"command": COMMAND}},
        {"call": "write_file", "input": {"path": "new.txt", "content": NEW}},
        {"call": "edit_file", "input": {"path": "old.txt", "old_string": "two", "new_string": "2"}},
        {"say": "done"},
    ]
    script = folder / "script.json"
    script.write_text(json.dumps(turns(steps, [{"fail": "server"}])))
    command = [sys.executable, "-m", "dragoman.cli.main", "acp", "--model", f"script:{script}"]
    async with _started(command, {"DRAGOMAN_HOME": str(home)}, project) as wire:
        yield wire


def _project(folder: Path) -> tuple[Path, Path]:
    """A folder to work in and a home, both in `folder`."""
    project, home = folder / "project", folder / "home"
    for place in (project, home):
        place.mkdir(parents=True)
    (project / "old.txt").write_text(OLD)
    return project, home


def _play(model: FakeModel, calls: list[ToolCall]) -> None:
    async def refuse(exchange: Exchange) -> None:
        await exchange.answer(400, {"type": "error", "error": {"type": "invalid_request_error", "message": "bad"}})

    model.plays(*(model.says("Next.", call) for call in calls), model.says("done"), *[refuse] * 20)


@asynccontextmanager
async def _started(command: list[str], environment: Mapping[str, str], folder: Path) -> AsyncIterator[Wire]:
    pipe, quiet = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=quiet, env={**os.environ, **environment}, cwd=folder, limit=2**24
    )
    try:
        yield Wire(process, folder)
    finally:
        process.kill()
        await process.wait()
