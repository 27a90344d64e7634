"""For tests of your own agents and clients: an in-memory pair, a scripted agent, a scripted client.

As functions, and as pytest fixtures. pytest loads them where your `conftest.py` says so, and nowhere else:

    pytest_plugins = ["dragoman.testing"]

    # in a test

    async def test_it_greets(acp_pair):
        async with acp_pair(my_agent) as client:
            session = await client.new_session("/tmp")
            assert (await session.ask("hi")).text == "hello"
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

import pytest

from dragoman.agent.agent import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.client.connect import Client, connect
from dragoman.client.conversation import Conversation
from dragoman.transports.memory import memory_pair
from dragoman.vocabulary.content import Content
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.services import PermissionOption, RequestPermission

# What a pipe holds on Linux.
PIPE_BYTES: Final = 64 * 1024

Pair = Callable[..., AbstractAsyncContextManager[Client]]


@asynccontextmanager
async def pair(agent: Agent, **settings: Any) -> AsyncIterator[Client]:
    """A client connected to your agent, in this process. `settings` are those of `dragoman.connect`."""
    ours, theirs = memory_pair(PIPE_BYTES)
    serving = asyncio.ensure_future(agent.serve(theirs))
    try:
        async with connect(ours, **settings) as client:
            yield client
    finally:
        await serving


class ScriptedAgent(Agent):
    """An agent that answers each prompt with the next of its scripts: text, content and events, in order.

    It remembers what it was asked (`prompts`). After the last script it answers every prompt with the last one again.
    """

    def __init__(
        self, *scripts: "Sequence[str | Content | AnyEvent] | str", name: str = "scripted", **settings: Any
    ) -> None:
        super().__init__(name, **settings)
        self.prompts: Final[list[str]] = []
        self._scripts = [[script] if isinstance(script, str) else list(script) for script in scripts] or [[]]
        self.prompt(self._play)

    async def _play(self, session: Session, prompt: Prompt) -> AsyncGenerator["str | Content | AnyEvent", None]:
        self.prompts.append(prompt.text)
        for piece in self._scripts[min(len(self.prompts), len(self._scripts)) - 1]:
            yield piece


class ScriptedClient:
    """A client that plays a user: it prompts, and answers permission requests in the order given.

    Permissions that were not foreseen are rejected, and all of them are remembered (`asked`).
    """

    def __init__(self, agent: Agent, *, permissions: Sequence[str] = (), cwd: str = "/", **settings: Any) -> None:
        self.asked: Final[list[RequestPermission]] = []
        self.outside: Final[list[AnyEvent]] = []
        self._agent = agent
        self._permissions = list(permissions)
        self._cwd = cwd
        self._settings = settings

    async def play(self, *prompts: str) -> list[AnyEvent]:
        """Say these prompts in one session; every event of their turns."""
        heard: list[AnyEvent] = []
        settings = {"permission": self._permission, "on_event": self._outside, **self._settings}
        async with pair(self._agent, **settings) as client:
            session = await client.new_session(self._cwd)
            for prompt in prompts:
                async for event in session.prompt(prompt):
                    heard.append(event)
        return heard

    async def _permission(self, request: RequestPermission) -> PermissionOption | None:
        self.asked.append(request)
        wanted = self._permissions.pop(0) if self._permissions else ""
        for option in request.options:
            if wanted in (option.kind, option.option_id):
                return option
        return None

    def _outside(self, conversation: Conversation, event: AnyEvent) -> None:
        self.outside.append(event)


@pytest.fixture
def acp_pair() -> Pair:
    """`async with acp_pair(agent) as client`: a client connected to your agent, in this process."""
    return pair


@pytest.fixture
def scripted_agent() -> type[ScriptedAgent]:
    """`scripted_agent("first answer", ["second", "in pieces"])`: an agent to test a client against."""
    return ScriptedAgent


@pytest.fixture
def scripted_client() -> type[ScriptedClient]:
    """`await scripted_client(agent).play("hi")`: a user to test an agent with."""
    return ScriptedClient
