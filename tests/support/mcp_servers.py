"""Servers of a session that is not there: what it was told, and a way to wait for what they become."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from dragoman.agent.tool import ToolCall
from dragoman.coder.mcp import Config, McpServers, McpServerStatus
from dragoman.coder.mcp.servers import NO_QUESTIONS, allow_all
from dragoman.coder.mcp.settings import McpTimeouts, UserQuestions
from dragoman.coder.permissions import Approved, JudgedCall, PermissionGate, UserAnswer
from dragoman.coder.tools.contract import Tool, ToolContext, ToolOutcome
from dragoman.host.guardian import Guardian
from dragoman.permissions.rule import PermissionRule
from dragoman.vocabulary.requests import EnvVariable, McpStdio
from tests.support.whole_agent import one_guardian

# The program of `raw` and how it is started: it needs no packages, and looking for them takes time.
RAW_SERVER = ["-I", "-S", str(Path(__file__).with_name("raw_mcp_server.py"))]
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}
# Waits that a test may not meet are long, so that one that does fails; those it wants to meet are short.
LONG = 30.0
BOUNDS = McpTimeouts(call=LONG, start=LONG, pauses=(0.01, 0.01))
# Tools of servers do not look at what they work with.
NO_DESK = cast(ToolContext, None)
NOT_SHOWN = cast(ToolCall, None)


class Bench:
    """Servers, what the user was told, and whom the user was asked about."""

    def __init__(self) -> None:
        self.servers: McpServers
        self.notices: list[str] = []
        self.descriptions: list[str] = []
        self.asked: list[str] = []
        self.rules: list[PermissionRule] = []
        self.answer = "allow_once"
        self._changed = asyncio.Event()

    async def notice(self, text: str, description: str = "") -> None:
        self.notices.append(text)
        self.descriptions.append(description)
        self._changed.set()

    def changed(self) -> None:
        self._changed.set()

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until it holds; it is looked at whenever something was said to have changed."""
        async with asyncio.timeout(LONG):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    async def until_state(self, *states: str) -> None:
        """Wait until each server is in the state named."""
        await self.until(lambda: tuple(one.state for one in self.servers.status()) == states)

    @property
    def only(self) -> McpServerStatus:
        """The one server there is."""
        (status,) = self.servers.status()
        return status

    def tool(self, name: str) -> Tool:
        """A tool by its whole name."""
        (found,) = [tool for tool in self.servers.tools() if tool.name == name]
        return found

    async def approve(self, tool: Tool, given: dict[str, Any]) -> Approved:
        """The call, approved by a user who says `answer` and is asked as in mode `ask`."""

        async def remember(rule: PermissionRule) -> None:
            pass

        async def look() -> JudgedCall:
            call = JudgedCall("call", tool.name, given)
            seen = await tool.preview(call, NO_DESK)
            return call._replace(acts=seen.acts, stamp=seen.stamp)

        async def ask(call: JudgedCall) -> UserAnswer:
            self.asked.append(call.tool)
            return UserAnswer(self.answer)

        approved = await PermissionGate(lambda: "ask", self.rules, remember).approve(await look(), look, ask)
        assert isinstance(approved, Approved)
        return approved

    async def call(self, name: str, **given: Any) -> ToolOutcome:
        """What comes of a call that the user has approved."""
        tool = self.tool(name)
        return await tool.run(await self.approve(tool, given), NOT_SHOWN, NO_DESK)


@asynccontextmanager
async def running(
    *configs: Config,
    cwd: Path = Path("/"),
    bounds: McpTimeouts = BOUNDS,
    environment: Mapping[str, str] = ENVIRONMENT,
    roots: Sequence[str] = (),
    allow: Callable[[Config], Any] = allow_all,
    guardian: Guardian | None = None,
    connected: bool = True,
    logins: Path | str = "",
    questions: UserQuestions = NO_QUESTIONS,
) -> AsyncIterator[Bench]:
    """Started servers; connected ones, unless the test wants to see how they come to that."""
    bench = Bench()
    bench.servers = McpServers(
        configs,
        environment=environment,
        cwd=str(cwd),
        guardian=guardian or one_guardian(),
        notice=bench.notice,
        changed=bench.changed,
        roots=roots,
        allow=allow,
        bounds=bounds,
        logins=str(logins),
        questions=questions,
    )
    bench.servers.start()
    try:
        if connected:
            await bench.until_state(*["connected"] * len(configs))
        yield bench
    finally:
        await bench.servers.close()


def raw(behaviour: str, file: Path | str = "", name: str = "raw", **env: str) -> McpStdio:
    """The server of `raw_server.py`."""
    variables = [EnvVariable(key, value) for key, value in env.items()]
    return McpStdio(name, sys.executable, [*RAW_SERVER, behaviour, *([str(file)] if file else [])], variables)
