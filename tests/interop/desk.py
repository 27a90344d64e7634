"""A desk for a real agent: a folder to work in, a home, a model that is ours; and how to read what the agent tells."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dragoman import connect
from dragoman.client.connect import Client
from dragoman.client.conversation import Conversation
from dragoman.client.permission_handler import PermissionHandler
from dragoman.client.registry import AgentRegistry
from dragoman.vocabulary.events import (
    AgentMessage,
    AgentMessageChunk,
    AnyEvent,
    Idle,
    ToolCallUpdate,
    UserMessage,
    UserMessageChunk,
)
from dragoman.vocabulary.services import PermissionOption, RequestPermission
from tests.support.fake_model import FakeModel
from tests.support.real_agents import RealAgent
from tests.support.upstream import upstream

# The start of node, or of a large program in Python, on a busy machine.
START_SECONDS = 60.0
# How long what an agent has started may outlive it.
GONE_SECONDS = 2.0


class Desk:
    """A folder to work in, a home for the agent, its model, and a user who says what they are told to say."""

    def __init__(self, agent: RealAgent, folder: Path) -> None:
        self.agent = agent
        self.work, self.home, self.registry_folder = folder / "work", folder / "home", folder / "registry"
        self.made = self.work / "made.txt"
        self.model = FakeModel(agent.voice)
        self.answer = "allow_once"
        self.asked: list[RequestPermission] = []
        self.outside: list[AnyEvent] = []
        self.noise: list[str] = []
        for each in (self.work, self.home, self.registry_folder):
            each.mkdir()

    async def user(self, request: RequestPermission) -> PermissionOption | None:
        """Chooses the option of the kind that the test wants; without one the question is dismissed."""
        self.asked.append(request)
        return next(option for option in request.options if option.kind == self.answer) if self.answer else None

    @asynccontextmanager
    async def connected(
        self, permissions: PermissionHandler | None = None, *, by_name: bool = False, **lent: Any
    ) -> AsyncIterator[Client]:
        """The agent, logged in. Whatever it sends that we have to skip fails the test, and so does what it leaves.

        `by_name`: as an entry of `acp.json`, which says everything that `connect` is told otherwise.
        """
        heard = {
            "permission": permissions or self.user,
            "on_event": lambda conversation, event: self.outside.append(event),
            "on_noise": self.noise.append,
        }
        async with upstream(self.model, strict=self.agent.answers_cancelled_calls) as server:
            started = self._from_fleet if by_name else self._from_command
            async with started(self.agent.environment(self.home, server.url), {**heard, **lent}) as client:
                assert client.protocol_version == self.agent.version
                assert living(self.home)
                if self.agent.login is not None:
                    await client.login(self.agent.login)
                yield client
            await nothing_is_left(self.home)
        assert self.noise == []

    def _from_command(self, environment: dict[str, str], settings: dict[str, Any]) -> Client:
        return connect(
            self.agent.started(),
            cwd=str(self.work),
            env=environment,
            dialect=self.agent.dialect,
            start_timeout=START_SECONDS,
            **settings,
        )

    def _from_fleet(self, environment: dict[str, str], settings: dict[str, Any]) -> Client:
        command, *arguments = self.agent.started()
        entry = {
            "command": command,
            "args": arguments,
            "env": environment,
            "cwd": str(self.work),
            "dialect": self.agent.dialect,
            "startupTimeoutMs": int(START_SECONDS * 1000),
        }
        (self.registry_folder / "acp.json").write_text(json.dumps({"servers": {"theirs": entry}}))
        return AgentRegistry.read(self.registry_folder, environment=os.environ).connect("theirs", **settings)


# -- reading ---------------------------------------------------------------------------------------------------------


async def events_of(session: Conversation, prompt: str) -> list[AnyEvent]:
    return [event async for event in session.prompt(prompt)]


async def cancelled_at(kind: type[AnyEvent], session: Conversation, prompt: str) -> list[AnyEvent]:
    """Everything that is told of a turn that is cancelled at the first event of a kind."""
    turn = session.prompt(prompt)
    events: list[AnyEvent] = []
    async for event in turn:
        events.append(event)
        if isinstance(event, kind):
            await turn.cancel()
    return events


def said(events: Sequence[AnyEvent]) -> list[str]:
    """What the agent said, message by message."""
    messages: dict[str, str] = {}
    for event in events:
        if isinstance(event, AgentMessageChunk):
            messages[event.message_id] = messages.get(event.message_id, "") + event.text
        elif isinstance(event, AgentMessage) and isinstance(event.content, list):
            messages[event.message_id] = texts(event.content)
    return list(messages.values())


def told(events: Sequence[AnyEvent]) -> list[str]:
    """What the user said."""
    messages: dict[str, str] = {}
    for event in events:
        if isinstance(event, UserMessageChunk):
            messages[event.message_id] = messages.get(event.message_id, "") + texts([event.content])
        elif isinstance(event, UserMessage):
            messages[event.message_id] = texts(event.content)
    return list(messages.values())


def texts(content: object) -> str:
    return "".join(getattr(block, "text", "") for block in content) if isinstance(content, list) else ""


def calls(events: Sequence[AnyEvent]) -> dict[str, str]:
    """The last state of every tool call."""
    updates = [event for event in events if isinstance(event, ToolCallUpdate)]
    return {event.tool_call_id: event.status for event in updates if isinstance(event.status, str)}


def paths(events: Sequence[AnyEvent]) -> set[str]:
    """Every place that a tool call was said to be about."""
    updates = [event for event in events if isinstance(event, ToolCallUpdate) and isinstance(event.locations, list)]
    return {location.path for event in updates for location in event.locations or []}


def end(events: Sequence[AnyEvent]) -> object:
    assert isinstance(events[-1], Idle)
    return events[-1].stop_reason


async def nothing_is_left(home: Path) -> None:
    """No process that was started with this home lives on."""
    until = asyncio.get_running_loop().time() + GONE_SECONDS
    while found := list(living(home)):
        assert asyncio.get_running_loop().time() < until, found
        await asyncio.sleep(0.05)


def living(home: Path) -> list[str]:
    wanted = f"HOME={home}\0".encode()
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:  # it has just gone, or is not ours
            continue
    return found
