"""The whole coding agent in memory, with a scripted model and a real folder; a user who answers as told."""

import asyncio
import atexit
import functools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dragoman.client.connect import Client
from dragoman.client.conversation import Conversation
from dragoman.coder.agent import coding_agent
from dragoman.coder.managed_settings import ManagedSettings
from dragoman.coder.models.contract import Model
from dragoman.coder.models.script import ScriptModel, parse
from dragoman.coder.setup import Models, Setup
from dragoman.errors import INVALID_PARAMS, RequestFailed
from dragoman.host.guardian import Guardian
from dragoman.store.contract import Store
from dragoman.testing import pair
from dragoman.vocabulary.events import (
    AgentMessageChunk,
    AnyEvent,
    ToolCallUpdate,
)
from dragoman.vocabulary.options import Choice
from dragoman.vocabulary.requests import AuthStatus, McpServer
from dragoman.vocabulary.services import PermissionOption, RequestPermission
from dragoman.vocabulary.tools import FINAL_STATUSES

ENVIRONMENT = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": "canary-key"}


class User:
    """Says to every question what it was told to say; None: nothing, the answer is that there is no answer."""

    def __init__(self, *answers: str | None) -> None:
        self.asked: list[RequestPermission] = []
        self._answers = list(answers)

    async def permission(self, request: RequestPermission) -> PermissionOption | None:
        self.asked.append(request)
        wanted = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return next((option for option in request.options if option.kind == wanted), None)


def scripted(*turns: Sequence[Any], **more: Any) -> Callable[[str], Model]:
    """A model that plays these turns, in every session from the first."""
    script = parse({"turns": [{"steps": list(turn)} for turn in turns], **more})
    return lambda name: ScriptModel(script)


class Fixed:
    """One model, and no login."""

    def __init__(self, make: Callable[[str], Model]) -> None:
        self.make = make

    def current(self) -> str:
        return "script"

    def choices(self) -> list[Choice]:
        return [Choice("script", "script")]

    def wire_name(self, name: str, current: str = "") -> str:
        if name != "script":
            raise RequestFailed(INVALID_PARAMS, f"There is no model {name}.")
        return name

    def lists_due(self) -> bool:
        return False

    async def refresh(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Do nothing: these models have no list."""

    def login(self, method_id: str) -> None:
        """Nothing to log in to."""

    def logout(self) -> None:
        """Nothing to log out of."""

    def status(self) -> AuthStatus:
        return AuthStatus("not_required")


@functools.cache
def one_guardian() -> Guardian:
    """One for all tests of a worker: it knows any number of trees, and starting it is half of what a command costs."""
    guardian = Guardian()
    atexit.register(guardian.close)
    return guardian


class Guarded(Setup):
    """Guarded by the one that is there."""

    def guardian(self) -> Guardian:
        return one_guardian()


@asynccontextmanager
async def whole(
    folder: Path,
    make_model: Callable[[str], Model],
    *,
    user: User | None = None,
    mode: str = "ask",
    protocol: int = 2,
    store: Store | None = None,
    home: Path | None = None,
    mcp_servers: Sequence[McpServer] = (),
    managed: ManagedSettings | None = None,
    models: Models | None = None,
    setup: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] = ENVIRONMENT,
    **client: Any,
) -> AsyncIterator[tuple[Client, Conversation]]:
    """A client and a session of the agent in a folder. `setup` has more of what `Setup` takes."""
    made = Guarded(
        models or Fixed(make_model), environment, mode=mode, home=str(home or ""), managed=managed, **(setup or {})
    )
    agent = coding_agent(made, store=store)
    asking = (user or User("reject_once")).permission
    try:
        async with pair(agent, protocol=protocol, permission=asking, **client) as connected:
            yield connected, await connected.new_session(str(folder), mcp_servers=mcp_servers)
    finally:
        made.close()


class Several(Fixed):
    """Models by name; the first is the one that a session begins with."""

    def __init__(self, models: Mapping[str, Model]) -> None:
        super().__init__(lambda name: models[name])
        self._models = models

    def current(self) -> str:
        return next(iter(self._models))

    def choices(self) -> list[Choice]:
        return [Choice(name, name) for name in self._models]

    def wire_name(self, name: str, current: str = "") -> str:
        if name not in self._models:
            raise RequestFailed(INVALID_PARAMS, f"There is no model {name}.")
        return name


async def events_of(session: Conversation, prompt: str = "go") -> list[AnyEvent]:
    """Everything that a turn tells."""
    return [event async for event in session.prompt(prompt)]


def ends(events: Sequence[AnyEvent]) -> list[tuple[str, object]]:
    """The name and the last status of every tool call, in the order of their ends."""
    names = {e.tool_call_id: e.name for e in events if isinstance(e, ToolCallUpdate) and isinstance(e.name, str)}
    return [
        (names.get(e.tool_call_id, "?"), e.status)
        for e in events
        if isinstance(e, ToolCallUpdate) and e.status in FINAL_STATUSES
    ]


def text(events: Any) -> str:
    return "".join(event.text for event in events if isinstance(event, AgentMessageChunk))


async def until_server(state: str, session: Conversation) -> list[AnyEvent]:
    """Ask for the servers until one is in such a state; everything told meanwhile.

    The first answer waits for those that start, but for no server that is lost and comes again.
    """
    heard: list[AnyEvent] = []
    async with asyncio.timeout(30):
        while True:
            events = await events_of(session, "/mcp")
            heard += events
            if state in text(events):
                return heard
            await asyncio.sleep(0.05)
