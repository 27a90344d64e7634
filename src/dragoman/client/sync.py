"""`connect_sync`: a client for scripts that are not async, with an event loop in a thread of its own.

with connect_sync(["gemini", "--acp"]) as client:
    session = client.new_session(".")
    for event in session.prompt("Explain this repository"):
        ...
"""

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from inspect import signature
from typing import Any, Final, Self, TypeVar, Unpack

from dragoman.background import EventLoop
from dragoman.client.connect import Client, Target, connect, renamed_timeouts
from dragoman.client.conversation import Answer, Conversation, Turn
from dragoman.client.settings import ConnectSettings
from dragoman.errors import UsageError
from dragoman.vocabulary.content import Content
from dragoman.vocabulary.events import AnyEvent, Usage
from dragoman.vocabulary.hello import AgentHello
from dragoman.vocabulary.options import AnyCommand, Option
from dragoman.vocabulary.requests import McpServer, SessionInfo

T = TypeVar("T")


def connect_sync(target: Target, **settings: Unpack[ConnectSettings]) -> "SyncClient":
    """Return a client for scripts that are not async; `with` connects it. `target` and all settings as in `connect`.

    Callbacks stay the functions that `connect` wants, and run in the thread of the client: `permission`, `elicitation`,
    `ask_user`, `read_text_file`, `write_text_file`, `terminals` and `extensions` are async, `on_event`,
    `on_notification`, `on_noise`, `on_trouble`, `on_stderr` and `trace` are not. `cwd`, `env`, `token`, `token_file`,
    `ca_file`, `info`, `protocol`, `dialect`, `timeouts`, `start_timeout` and `patience` are values. Raise `UsageError`
    for settings that do not fit each other or the target.
    """
    settings["timeouts"] = renamed_timeouts(settings.get("timeouts"), settings.pop("patience", None))
    return SyncClient(connect(target, **settings))


# `help` and editors that look at the running program show every setting, as they do for `connect`.
connect_sync.__signature__ = signature(connect).replace(return_annotation="SyncClient")  # type: ignore[attr-defined]


class _Loop:
    """An event loop in a thread, for one client."""

    def __init__(self) -> None:
        self._loop = EventLoop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="dragoman", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop's thread and wait for its result. Ctrl-C in this thread cancels it."""
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
        """Stop the loop, and wait for the end of its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class SyncTurn:
    """One prompt and what comes of it: an iterator of events that ends when the turn does, and waits for each.

    Raises what `Turn` raises, at the end of the loop.
    """

    def __init__(self, loop: _Loop, turn: Turn) -> None:
        self._loop = loop
        self._turn = turn

    def __repr__(self) -> str:
        return f"<SyncTurn of {self._turn!r}>"

    def __iter__(self) -> Iterator[AnyEvent]:
        while True:
            batch = self._loop.run(_next_events(self._turn))
            if not batch:
                return
            yield from batch

    @property
    def stop_reason(self) -> str:
        """Return why the turn ended, such as `end_turn` or `cancelled`; empty while it runs."""
        return self._turn.stop_reason

    @property
    def usage(self) -> Usage | None:
        """Return the tokens of the turn, if the agent reported them."""
        return self._turn.usage

    def cancel(self) -> None:
        """Ask the agent to stop; do not wait. The turn still ends by itself, as `cancelled`: read it to its end."""
        self._loop.run(self._turn.cancel())


async def _next_events(turn: Turn) -> list[AnyEvent]:
    """Return all events that can be read now, or wait for the next one; empty at the end of the turn.

    In batches, because each crossing from thread to thread costs about as much as a hundred events.
    """
    try:
        first = await anext(turn)
    except StopAsyncIteration:
        return []
    return [first, *turn.ready()]


class SyncConversation:
    """One session with an agent. Its methods wait for the agent's answer, and raise what those of `Conversation` do."""

    def __init__(self, loop: _Loop, conversation: Conversation) -> None:
        self.id: Final = conversation.id
        self.cwd: Final = conversation.cwd
        self._loop = loop
        self._conversation = conversation

    def __repr__(self) -> str:
        return f"<SyncConversation of {self._conversation!r}>"

    @property
    def options(self) -> list[Option]:
        """Return the session's options as they are now."""
        return self._conversation.options

    @property
    def commands(self) -> list[AnyCommand]:
        """Return the session's slash commands as they are now."""
        return self._conversation.commands

    def prompt(self, content: "str | Content | Iterable[Content]") -> SyncTurn:
        """Send text or content blocks as a prompt; iterate over its events. Raise `UsageError` while a turn runs."""
        return SyncTurn(self._loop, self._conversation.prompt(content))

    def ask(self, content: "str | Content | Iterable[Content]") -> Answer:
        """Send a prompt and wait for the whole answer. Raise `UsageError` while a turn runs."""
        return self._loop.run(self._conversation.ask(content))

    def set_option(self, config_id: str, value: str | bool) -> None:
        """Set the option `config_id` of `options` to a value."""
        self._loop.run(self._conversation.set_option(config_id, value))

    def set_mode(self, mode: str) -> None:
        """Set the session's mode. Raise `UsageError` if the session has no modes."""
        self._loop.run(self._conversation.set_mode(mode))

    def set_model(self, model: str) -> None:
        """Set the model. Raise `UsageError` if the agent offers no models."""
        self._loop.run(self._conversation.set_model(model))

    def close(self) -> None:
        """End the session's work and free it; its history stays with the agent."""
        self._loop.run(self._conversation.close())


class SyncClient:
    """A connection to one agent, made by `connect_sync`. `with` starts the agent and stops it with all it started.

    Every method waits for the agent's answer, and raises what `Client` raises; also `UsageError` outside of `with` and
    inside of a callback, which runs in the client's own thread.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._running: _Loop | None = None

    def __repr__(self) -> str:
        return f"<SyncClient of {self._client!r}>"

    def __enter__(self) -> Self:
        self._running = _Loop()
        try:
            self._running.run(self._client.__aenter__())
        except BaseException:
            self._running.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
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
        """Return what the agent said of itself in `initialize`: its name, capabilities and ways to log in."""
        return self._client.agent

    def new_session(
        self,
        cwd: str | os.PathLike[str] = ".",
        *,
        additional_directories: Iterable[str | os.PathLike[str]] = (),
        mcp_servers: Sequence[McpServer] = (),
    ) -> SyncConversation:
        """Open a session in the folder `cwd`.

        `additional_directories` are further folders that the agent may work in; `mcp_servers` are started or called by
        the agent.
        """
        loop = self._loop
        opening = self._client.new_session(cwd, additional_directories=additional_directories, mcp_servers=mcp_servers)
        return SyncConversation(loop, loop.run(opening))

    def resume_session(
        self, session_id: str, cwd: str | os.PathLike[str] = ".", *, mcp_servers: Sequence[McpServer] = ()
    ) -> SyncConversation:
        """Continue the stored session `session_id` in the folder `cwd`, without a replay of its history.

        `mcp_servers` are started or called by the agent.
        """
        loop = self._loop
        opening = self._client.resume_session(session_id, cwd, mcp_servers=mcp_servers)
        return SyncConversation(loop, loop.run(opening))

    def load_session(
        self, session_id: str, cwd: str | os.PathLike[str] = ".", *, mcp_servers: Sequence[McpServer] = ()
    ) -> SyncConversation:
        """Continue the stored session `session_id` in the folder `cwd`; its history goes to `on_event` first.

        `mcp_servers` are started or called by the agent.
        """
        loop = self._loop
        opening = self._client.load_session(session_id, cwd, mcp_servers=mcp_servers)
        return SyncConversation(loop, loop.run(opening))

    def list_sessions(self, cwd: str | None = None) -> list[SessionInfo]:
        """Return every session that the agent has, or those of the folder `cwd`."""
        return self._loop.run(self._client.list_sessions(cwd))

    def login(self, method_id: str) -> None:
        """Log in with one of `client.agent.auth_methods`. Waits without a timeout: a person may need minutes."""
        self._loop.run(self._client.login(method_id))

    def request(self, method: str, params: object = None) -> object:
        """Call a method outside the protocol, such as `_name`, with any JSON as `params`; return its result.

        Raise `UsageError` for a method without the underscore.
        """
        return self._loop.run(self._client.request(method, {} if params is None else params))
