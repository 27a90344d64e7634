"""For tests of your own agents and clients: an in-memory pair, a scripted agent, a scripted client.

As functions and classes to import (`pair`, `ScriptedAgent`, `ScriptedClient`), and as pytest fixtures (`acp_pair`,
`scripted_agent`, `scripted_client`), which are not imported. pytest loads those where your `conftest.py` says so, and
nowhere else:

    pytest_plugins = ["dragoman.testing"]

    # in a test

    async def test_it_greets(acp_pair):
        async with acp_pair(my_agent) as client:
            session = await client.new_session("/tmp")
            assert (await session.ask("hi")).text == "hello"
"""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from tempfile import TemporaryDirectory
from typing import Final, Protocol, TypedDict, Unpack

import pytest

from dragoman.agent.agent import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.client.connect import Client, connect
from dragoman.client.conversation import Conversation
from dragoman.client.settings import ConnectSettings, FolderlessSettings
from dragoman.errors import LinkClosed, TimedOut, UsageError
from dragoman.store.contract import Store
from dragoman.transports.contract import Transport
from dragoman.transports.memory import memory_pair
from dragoman.vocabulary.content import Content
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentCapabilities, AuthMethod
from dragoman.vocabulary.options import Option
from dragoman.vocabulary.services import PermissionOption, RequestPermission

# What a pipe holds on Linux.
PIPE_BYTES: Final = 64 * 1024
# An agent in this process needs no time to be installed or started: one that has not answered by then never will.
START_SECONDS: Final = 10.0
# How long an agent may take to end after its client has left; then it is cancelled. Its own clean-up is bounded by 4 s.
LEAVE_SECONDS: Final = 5.0


class Pair(Protocol):
    """The type of the fixture `acp_pair`: a function that is called as `pair` is."""

    def __call__(self, agent: Agent, **settings: Unpack[ConnectSettings]) -> AbstractAsyncContextManager[Client]: ...


class AgentSettings(TypedDict, total=False):
    """The keyword parameters of `dragoman.Agent`, for `ScriptedAgent`."""

    version: str
    title: str | None
    options: Iterable[Option]
    capabilities: AgentCapabilities | None
    auth_methods: Iterable[AuthMethod]
    store: Store | Callable[[], Store] | None
    resume: str | None
    steering: bool
    protocol: int | None
    dialect: str | None
    hears_interjections: bool | None


@asynccontextmanager
async def pair(agent: Agent, **settings: Unpack[ConnectSettings]) -> AsyncIterator[Client]:
    """Connect a client to your agent, in this process: `async with pair(agent) as client`. Waits for start and end.

    `settings` are those of `dragoman.connect`; a start may take 10 seconds unless they say otherwise. A mistake ends
    the pair at once, with the error that was made: in `settings`, in the agent's start, or in the block. Raise
    `UsageError` if `agent` is no `Agent`, `TimedOut` if the agent does not end within 5 seconds after the client.
    """
    if not isinstance(agent, Agent):
        raise UsageError(f"a pair needs an Agent, not {agent!r}: write `pair(agent)` with `agent = Agent(...)`")
    ours, theirs = memory_pair(PIPE_BYTES)
    given: ConnectSettings = {"start_timeout": START_SECONDS, **settings}
    client = connect(ours, **given)  # before there is anything to end
    serving = asyncio.ensure_future(_serve(agent, theirs))
    is_connected = False
    try:
        async with client:
            is_connected = True
            yield client
    except BaseException as error:
        await _end(serving, LEAVE_SECONDS if is_connected else 0)
        if isinstance(error, LinkClosed):
            _raise_failure(serving)  # which has closed the link
        raise
    if not await _end(serving, LEAVE_SECONDS):
        raise TimedOut(f"the agent did not end within {LEAVE_SECONDS:g} s after its client had left")
    _raise_failure(serving)


async def _serve(agent: Agent, transport: Transport) -> None:
    """Serve the client. Close the transport behind an agent that has failed, so that the client does not wait."""
    try:
        await agent.serve(transport)
    finally:
        await transport.close()


async def _end(serving: "asyncio.Future[None]", seconds: float) -> bool:
    """Wait so long for the agent's end, then cancel it. Return whether it has ended by itself."""
    try:
        await asyncio.wait([serving], timeout=seconds)
    finally:
        by_itself = not serving.cancel()
    if not by_itself:
        await asyncio.wait([serving], timeout=LEAVE_SECONDS)
    return by_itself


def _raise_failure(serving: "asyncio.Future[None]") -> None:
    """Raise what the agent has failed with, if it has."""
    if serving.done() and not serving.cancelled() and (failure := serving.exception()) is not None:
        raise failure from None


class ScriptedAgent(Agent):
    """An agent that answers each prompt with the next of its scripts: text, content and events, in order.

    `prompts` has the text of every prompt. After the last script every prompt is answered with the last one again.
    """

    def __init__(
        self,
        *scripts: "Sequence[str | Content | AnyEvent] | str",
        name: str = "scripted",
        **settings: Unpack[AgentSettings],
    ) -> None:
        """Answer with `scripts`: text, or a list of pieces. `name` and `settings` are those of `dragoman.Agent`.

        Raise `UsageError` for a script that is something else.
        """
        super().__init__(name, **settings)
        for script in scripts:
            if isinstance(script, (bytes, Mapping)) or not isinstance(script, Iterable):
                raise UsageError(f"a script is text, or a list of pieces, not {script!r}: write `ScriptedAgent('hi')`")
        self.prompts: Final[list[str]] = []
        self._scripts = [[script] if isinstance(script, str) else list(script) for script in scripts] or [[]]
        self.prompt(self._play)

    async def _play(self, session: Session, prompt: Prompt) -> AsyncGenerator["str | Content | AnyEvent", None]:
        self.prompts.append(prompt.text)
        for piece in self._scripts[min(len(self.prompts), len(self._scripts)) - 1]:
            yield piece


class ScriptedClient:
    """A client that plays a user: it prompts, and answers permission requests in the order given.

    A request behind the last of `permissions` is rejected. `asked` has every permission request, `outside` every event
    outside of turns.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        permissions: Iterable[str] = (),
        cwd: str | os.PathLike[str] | None = None,
        **settings: Unpack[FolderlessSettings],
    ) -> None:
        """Play against `agent`; `permissions` are the kinds or ids of the options to choose, in order.

        Without `cwd` each `play` has an empty folder of its own, which is removed at its end. `settings` are those of
        `dragoman.connect`. Raise `UsageError` if `permissions` is text instead of a list.
        """
        if isinstance(permissions, str):
            raise UsageError(f"permissions is a list: write `permissions=[{permissions!r}]`")
        self.asked: Final[list[RequestPermission]] = []
        self.outside: Final[list[AnyEvent]] = []
        self._mistake: UsageError | None = None
        self._agent = agent
        self._permissions = list(permissions)
        self._cwd = cwd
        self._settings = settings

    async def play(self, *prompts: str) -> list[AnyEvent]:
        """Send `prompts` one by one in one session, wait for their turns, and return every event of them.

        Raise `UsageError` if a request did not offer the option that `permissions` had for it, and what `pair` raises.
        """
        if self._cwd is not None:
            return await self._play(self._cwd, prompts)
        with TemporaryDirectory(prefix="dragoman-testing-") as folder:
            return await self._play(folder, prompts)

    async def _play(self, cwd: str | os.PathLike[str], prompts: Sequence[str]) -> list[AnyEvent]:
        received: list[AnyEvent] = []
        own: FolderlessSettings = {"permission": self._permission, "on_event": self._on_event}
        settings: FolderlessSettings = {**own, **self._settings}
        async with pair(self._agent, **settings) as client:
            session = await client.new_session(cwd)
            for prompt in prompts:
                async for event in session.prompt(prompt):
                    received.append(event)
        if self._mistake is not None:
            raise self._mistake
        return received

    async def _permission(self, request: RequestPermission) -> PermissionOption | None:
        self.asked.append(request)
        wanted = self._permissions.pop(0) if self._permissions else ""
        for option in request.options:
            if wanted in (option.kind, option.option_id):
                return option
        if wanted and self._mistake is None:
            offered = ", ".join(dict.fromkeys(option.kind for option in request.options))
            self._mistake = UsageError(
                f"{request.title!r} does not offer {wanted!r}, which permissions has for it: write one of {offered}"
            )
        return None

    def _on_event(self, conversation: Conversation, event: AnyEvent) -> None:
        self.outside.append(event)


@pytest.fixture
def acp_pair() -> Pair:
    """Return `pair`: `async with acp_pair(agent) as client` connects a client to your agent, in this process."""
    return pair


@pytest.fixture
def scripted_agent() -> type[ScriptedAgent]:
    """Return `ScriptedAgent`: `scripted_agent("first answer", ["second", "in pieces"])` to test a client against."""
    return ScriptedAgent


@pytest.fixture
def scripted_client() -> type[ScriptedClient]:
    """Return `ScriptedClient`: `await scripted_client(agent).play("hi")` to test an agent with."""
    return ScriptedClient
