"""Hold the connection to one MCP server, by one task: connect in the background, reconnect when it is lost, give it up.

Promise: whatever the server does, the session goes on; a server that is given up is reported once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from dragoman import limits
from dragoman.coder.mcp.catalog import ServerCatalog
from dragoman.coder.mcp.config import Config, how_to_log_in, identity, name_of
from dragoman.coder.mcp.definition import Definition, Definitions
from dragoman.coder.mcp.server_text import one_line
from dragoman.coder.mcp.settings import Listed, McpCallbacks
from dragoman.coder.tools.contract import ToolOutcome
from dragoman.errors import StartFailed
from dragoman.vocabulary.services import ElicitationAnswer, Form, Url

if TYPE_CHECKING:
    from dragoman.coder.mcp.sdk.connection import Sdk, SdkConnection
    from dragoman.coder.mcp.sdk.peer import SdkPeer

State = Literal["starting", "connected", "reconnecting", "needs login", "failed", "refused", "closed"]
# A list of tools is asked for again at most this often, however often it changes.
LIST_SECONDS: Final = 1.0
# Prompts and resources: a server that does not list them in time has none, and its tools are used all the same.
CATALOG_SECONDS: Final = 5.0
# How long a cancelled call waits until the cancellation is sent to the server.
CANCEL_SECONDS: Final = 0.1
# What ending a child takes at most, and a moment.
CLOSE_SECONDS: Final = limits.CHILD_EXIT_SECONDS + limits.CHILD_TERM_SECONDS + limits.CHILD_KILL_SECONDS + 0.5
NAME_CHARACTERS: Final = 64
# What of stderr is shown beside the reason of a failure: a traceback's end.
_LAST_LINES: Final = 12
_LINE_CHARACTERS: Final = 200
# A server that was lost, and that is not what it was when the session was opened.
CHANGED: Final = "it is not started again, because its configuration or a file that it starts has changed"


_log = logging.getLogger(__name__)


class ServerUnavailable(Exception):
    """The server cannot be called; the text says why."""


class SdkMissing(StartFailed):
    """No server can be connected: the SDK is not installed. The user has had a notice."""


class _Ended(NamedTuple):
    """The end of a connection: whether there was one, and the error that ended it."""

    lived: bool
    error: Exception | None


class McpServerConnection:
    """One MCP server and the task that owns its connection."""

    def __init__(self, config: Config, load: "Callable[[], Awaitable[Sdk]]", callbacks: McpCallbacks) -> None:
        self.config: Final = config
        self.name: Final = one_line(name_of(config), NAME_CHARACTERS)
        self.state: State = "starting"
        self.error = ""
        self.definitions = Definitions({}, 0)
        self.catalog = ServerCatalog()
        self._load = load
        self._callbacks = callbacks
        self._bounds = callbacks.bounds
        self._peer: SdkPeer | None = None
        self._connection: SdkConnection | None = None
        # Set while `definitions` is what the server said last; between a change and the new list it is not.
        self._settled = asyncio.Event()
        self._started = asyncio.Event()  # connected, or not to be
        self._changed = asyncio.Event()
        self._changes: set[Listed] = set()
        self._calls: set[asyncio.Task[ToolOutcome]] = set()
        # Questions of the server that wait for the user: meanwhile no call is late.
        self._questions: set[asyncio.Future[ElicitationAnswer]] = set()
        self._owner: asyncio.Task[None] | None = None
        self._closing = False

    def __repr__(self) -> str:
        tools = len(self.definitions.by_tool)
        return f"<McpServerConnection {self.name} {self.state}, {tools} tools, {len(self._calls)} calls>"

    def start(self) -> None:
        """Begin to connect, in a task of its own."""
        if self._owner is None:
            self._owner = asyncio.create_task(self._own(), name=f"mcp {self.name}")

    async def wait_until_started(self) -> None:
        """Wait until the server is connected, refused or given up."""
        await self._started.wait()

    async def close(self) -> None:
        """Close the connection and stop the server. The second cancel is for a server that does not end in time."""
        self._closing = True
        for _ in range(2):
            if self._owner is not None and not self._owner.done():
                self._owner.cancel()
                await asyncio.wait([self._owner], timeout=CLOSE_SECONDS)
        for call in self._calls:
            call.cancel()
        self.state = "closed"

    def stderr(self) -> str:
        """Return the last of what the server wrote to stderr."""
        return self._peer.stderr() if self._peer is not None else ""

    async def definition(self, tool: str) -> Definition:
        """Return the present definition of a tool. Raises `ServerUnavailable`; waits while a new list is on its way."""
        if self._connection is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._settled.wait(), self._bounds.call)
        if self._connection is None:
            coming = self.state in ("starting", "reconnecting")
            raise ServerUnavailable(
                f"The MCP server {self.name} is {'being connected; try later' if coming else 'not connected'}."
            )
        if not self._settled.is_set():
            raise ServerUnavailable(f"The MCP server {self.name} does not say which tools it has.")
        if tool not in self.definitions.by_tool:
            raise ServerUnavailable(f"The MCP server {self.name} does not have this tool any more.")
        return self.definitions.by_tool[tool]

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolOutcome:
        """Call a tool. A cancel and the deadline are sent to the server, and no answer to that is waited for."""
        return await self._ask(lambda connection: connection.call(tool, arguments))

    async def prompt(self, name: str, arguments: dict[str, str]) -> ToolOutcome:
        """Fetch a prompt, with the terms of a call."""
        return await self._ask(lambda connection: connection.prompt(name, arguments))

    async def resource(self, uri: str) -> ToolOutcome:
        """Read a resource, with the terms of a call."""
        return await self._ask(lambda connection: connection.resource(uri))

    async def _ask(self, ask: "Callable[[SdkConnection], Coroutine[Any, Any, ToolOutcome]]") -> ToolOutcome:
        if self._connection is None:
            return ToolOutcome(f"The MCP server {self.name} is not connected.", failed=True)
        call = asyncio.create_task(ask(self._connection))
        self._calls.add(call)
        call.add_done_callback(self._call_ended)
        try:
            in_time = await self._answered(call)
        finally:
            if not call.done():
                call.cancel()
                await asyncio.wait([call], timeout=CANCEL_SECONDS)
        if not in_time:
            return ToolOutcome(
                f"The MCP server {self.name} did not answer within {self._bounds.call:g} s.", failed=True
            )
        return ToolOutcome("The session is being closed.", failed=True) if call.cancelled() else call.result()

    async def _answered(self, call: asyncio.Task[ToolOutcome]) -> bool:
        """Wait for the answer to a call until its deadline, which begins anew after each question to the user."""
        while True:
            done, _ = await asyncio.wait([call], timeout=self._bounds.call)
            if done or not self._questions:
                return bool(done)
            waits: list[asyncio.Future[Any]] = [call, *self._questions]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)

    def _call_ended(self, call: asyncio.Task[ToolOutcome]) -> None:
        self._calls.discard(call)
        if not self._calls:
            for question in self._questions:
                question.cancel()

    async def ask_user(self, message: str, mode: Form | Url) -> ElicitationAnswer:
        """Pass a question on while a call is being answered; it ends with the call. At other times it is declined."""
        if not self._calls:
            return ElicitationAnswer("decline")
        question = asyncio.ensure_future(self._callbacks.questions.ask(self.name, message, mode))
        self._questions.add(question)
        question.add_done_callback(self._questions.discard)
        try:
            await asyncio.wait([question])
        finally:
            question.cancel()
        if question.cancelled() or question.exception() is not None:
            return ElicitationAnswer("cancel")
        return question.result()

    async def page_done(self, elicitation_id: str) -> None:
        """Tell the client that what the user did on a page is done."""
        with suppress(Exception):
            await self._callbacks.questions.done(elicitation_id)

    async def _own(self) -> None:
        try:
            sdk = await self._load()
            if not await self._callbacks.allow(self.config):
                self._turn("refused")
                return
            await self._keep(sdk)
        except SdkMissing as error:
            self.error = str(error)
            self._turn("failed")
        except StartFailed as error:
            await self._give_up(str(error))
        except Exception as error:
            await self._give_up(f"failed ({type(error).__name__})")

    async def _keep(self, sdk: "Sdk") -> None:
        """Connect, and again when the server is lost. One that was never connected is given up: its command is bad."""
        loop = asyncio.get_running_loop()
        tries = 0
        while True:
            began = loop.time()
            self._peer = peer = sdk.peer_for(self.config)
            lived, error = await self._attempt(sdk, peer)
            # A cancel that meets a failure of the SDK may come out as the failure alone.
            if self._closing:
                return
            reason = peer.explain(error)
            if peer.needs_login():
                await self._give_up(f"{reason}; {how_to_log_in(self.config)}", "needs login")
                return
            if lived and loop.time() - began >= self._bounds.steady:
                tries = 0
            if peer.is_gone() or tries == len(self._bounds.pauses) or not (lived or tries):
                await self._give_up(reason)
                return
            self.error = reason
            _log.info("MCP server %s: connecting again in %g s", self.name, self._bounds.pauses[tries])
            await asyncio.sleep(self._bounds.pauses[tries])
            tries += 1
            if not await self._callbacks.allow(self.config):
                await self._give_up(f"{reason}; {CHANGED}")
                return

    async def _attempt(self, sdk: "Sdk", peer: "SdkPeer") -> _Ended:
        """Hold one connection until it is lost."""
        lived = False
        try:
            async with sdk.connect(peer, self._bounds.start, self) as connection:
                await self._list(connection, {"tools", "prompts"})
                lived = True
                await self._live(connection)
        except Exception as error:
            return _Ended(lived, error)
        return _Ended(lived, None)

    async def _live(self, connection: "SdkConnection") -> None:
        self._connection = connection
        self.error = ""
        self._turn("connected")
        try:
            await self._stay(connection)
        finally:
            self._connection = None
            self._settled.set()
            if not self._closing:
                self._turn("reconnecting")

    async def _stay(self, connection: "SdkConnection") -> None:
        """Wait until the connection is lost; list again what the server says to have changed."""
        pause = 0.0
        while await self._has_changed(connection):
            await asyncio.sleep(pause)
            await self._list(connection, set(self._changes))
            self._callbacks.changed()
            pause = LIST_SECONDS

    async def _has_changed(self, connection: "SdkConnection") -> bool:
        waits = [asyncio.ensure_future(event.wait()) for event in (connection.lost, self._changed)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return not connection.lost.is_set()

    async def _list(self, connection: "SdkConnection", what: set[Listed]) -> None:
        self._changed.clear()
        self._changes.clear()
        if "tools" in what:
            async with asyncio.timeout(self._bounds.start):
                self.definitions = await connection.definitions(identity(self.config))
        if "tools" not in self._changes:
            self._settled.set()
        if what != {"tools"}:
            await self._list_catalog(connection)

    async def _list_catalog(self, connection: "SdkConnection") -> None:
        try:
            async with asyncio.timeout(CATALOG_SECONDS):
                self.catalog = await connection.catalog()
        except Exception as error:
            self.catalog = ServerCatalog()
            _log.info("MCP server %s: prompts and resources are not listed (%s)", self.name, type(error).__name__)

    def on_change(self, what: Listed) -> None:
        """List it again, soon."""
        self._changes.add(what)
        if what == "tools":
            self._settled.clear()
        self._changed.set()

    async def _give_up(self, reason: str, state: State = "failed") -> None:
        self.error = reason
        self._turn(state)
        with suppress(Exception):
            await self._callbacks.notice(f"MCP server {self.name}: {reason}", self._last_words())

    def _last_words(self) -> str:
        """Return the last lines that the server wrote to stderr, if there are more than the reason has."""
        lines = [one_line(line, _LINE_CHARACTERS) for line in self.stderr().splitlines() if line.strip()]
        return "\n".join(lines[-_LAST_LINES:]) if len(lines) > 1 else ""

    def _turn(self, state: State) -> None:
        self.state = state
        tools = len(self.definitions.by_tool)
        level = logging.WARNING if state == "failed" else logging.INFO
        # Not the reason: it may quote what the server wrote. The user has it in a notice.
        _log.log(level, "MCP server %s is %s (%d tools)", self.name, state, tools)
        self._started.set()
        self._callbacks.changed()
