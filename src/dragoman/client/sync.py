"""`connect_sync`: the same client for scripts that are not async. A loop in a thread of its own does the talking.

with connect_sync(["gemini", "--acp"]) as client:
    session = client.new_session(".")
    for event in session.prompt("Explain this repository"):
        ...
"""

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Iterator
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from dragoman.background import EventLoop
from dragoman.client.connect import Client, Target, connect
from dragoman.client.conversation import Answer, Conversation, Turn
from dragoman.errors import UsageError
from dragoman.vocabulary.content import Content
from dragoman.vocabulary.events import AnyEvent, Usage
from dragoman.vocabulary.hello import AgentHello
from dragoman.vocabulary.options import AnyCommand, Option
from dragoman.vocabulary.requests import SessionInfo

T = TypeVar("T")


def connect_sync(target: Target, **settings: Any) -> "SyncClient":
    """A client for an agent, without async; takes what `connect` takes. Callbacks stay async functions."""
    return SyncClient(connect(target, **settings))


class _Loop:
    """An event loop in a thread, for one client."""

    def __init__(self) -> None:
        self._loop = EventLoop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="dragoman", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it there, wait here. Ctrl-C here cancels it there."""
        if threading.current_thread() is self._thread:
            work.close()
            raise UsageError("a callback runs inside the loop: use the async client there")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class SyncTurn:
    """One prompt and what comes of it: an iterator of events that ends when the turn does."""

    def __init__(self, loop: _Loop, turn: Turn) -> None:
        self._loop = loop
        self._turn = turn

    def __iter__(self) -> Iterator[AnyEvent]:
        while True:
            batch = self._loop.run(_batch(self._turn))
            if not batch:
                return
            yield from batch

    @property
    def stop_reason(self) -> str:
        """Why the turn ended; empty while it runs."""
        return self._turn.stop_reason

    @property
    def usage(self) -> Usage | None:
        """The tokens of the turn, if the agent told them."""
        return self._turn.usage

    def cancel(self) -> None:
        """Ask the agent to stop; go on reading, the turn ends by itself."""
        self._loop.run(self._turn.cancel())


async def _batch(turn: Turn) -> list[AnyEvent]:
    """What there is to read now, or the next event; nothing at the end. Crossing threads is dear, so in batches."""
    try:
        first = await anext(turn)
    except StopAsyncIteration:
        return []
    return [first, *turn.ready()]


class SyncConversation:
    """One session with an agent."""

    def __init__(self, loop: _Loop, conversation: Conversation) -> None:
        self.id: Final = conversation.id
        self.cwd: Final = conversation.cwd
        self._loop = loop
        self._conversation = conversation

    @property
    def options(self) -> list[Option]:
        """The session options as they are now."""
        return self._conversation.options

    @property
    def commands(self) -> list[AnyCommand]:
        """The slash commands as they are now."""
        return self._conversation.commands

    def prompt(self, content: "str | Content | Iterable[Content]") -> SyncTurn:
        """Say something; iterate over what comes of it."""
        return SyncTurn(self._loop, self._conversation.prompt(content))

    def ask(self, content: "str | Content | Iterable[Content]") -> Answer:
        """Say something and wait for the whole answer."""
        return self._loop.run(self._conversation.ask(content))

    def set_option(self, config_id: str, value: str | bool) -> None:
        """Change a session option."""
        self._loop.run(self._conversation.set_option(config_id, value))

    def set_mode(self, mode: str) -> None:
        """Change the session mode."""
        self._loop.run(self._conversation.set_mode(mode))

    def set_model(self, model: str) -> None:
        """Change the model."""
        self._loop.run(self._conversation.set_model(model))

    def close(self) -> None:
        """End the session's work and free it; its history stays."""
        self._loop.run(self._conversation.close())


class SyncClient:
    """A connection to one agent. `with` starts it and stops it with everything it started."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._running: _Loop | None = None

    def __enter__(self) -> Self:
        self._running = _Loop()
        try:
            self._running.run(self._client.__aenter__())
        except BaseException:
            self._running.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._loop.run(self._client.close())
        finally:
            self._loop.stop()

    @property
    def _loop(self) -> _Loop:
        if self._running is None:
            raise UsageError("the client is not connected yet: use `with connect_sync(...) as client`")
        return self._running

    @property
    def agent(self) -> AgentHello:
        """Who the agent is and what it can do."""
        return self._client.agent

    def new_session(self, cwd: str = ".", **settings: Any) -> SyncConversation:
        """Open a session in a folder."""
        return SyncConversation(self._loop, self._loop.run(self._client.new_session(cwd, **settings)))

    def resume_session(self, session_id: str, cwd: str = ".", **settings: Any) -> SyncConversation:
        """Go on with a stored session, without hearing its story again."""
        opened = self._loop.run(self._client.resume_session(session_id, cwd, **settings))
        return SyncConversation(self._loop, opened)

    def load_session(self, session_id: str, cwd: str = ".", **settings: Any) -> SyncConversation:
        """Go on with a stored session; its story is told to `on_event` first."""
        return SyncConversation(self._loop, self._loop.run(self._client.load_session(session_id, cwd, **settings)))

    def list_sessions(self, cwd: str | None = None) -> list[SessionInfo]:
        """Every session the agent has."""
        return self._loop.run(self._client.list_sessions(cwd))

    def login(self, method_id: str) -> None:
        """Log in with one of `client.agent.auth_methods`."""
        self._loop.run(self._client.login(method_id))

    def request(self, method: str, params: object = None) -> object:
        """Call a method outside the vocabulary, such as `_name`."""
        return self._loop.run(self._client.request(method, {} if params is None else params))
