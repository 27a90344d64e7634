"""The far end of one connection: a program that we start, or a URL. Says afterwards why the connection has ended."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, Protocol

import httpx2
from mcp import MCPError
from mcp.client import Transport
from mcp.types import CONNECTION_CLOSED, PARSE_ERROR

from dragoman import limits
from dragoman.coder.mcp.config import Config, hide, secrets_of
from dragoman.coder.mcp.logins import LoginNeeded
from dragoman.coder.mcp.sdk.acp_peer import LentPeer
from dragoman.coder.mcp.sdk.lines import TOO_LARGE, Lines
from dragoman.coder.mcp.sdk.web import Web
from dragoman.coder.mcp.server_text import one_line
from dragoman.coder.mcp.settings import McpEnvironment
from dragoman.errors import StartFailed
from dragoman.host.environment import child_environment
from dragoman.host.process import Child
from dragoman.host.text import harmless
from dragoman.vocabulary.requests import McpAcp, McpHttp, McpSse, McpStdio

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

# What of an error or of stderr fits into a sentence.
_SAID_CHARACTERS: Final = 500
# What the SDK says for a status when the server said nothing else.
_SAYING_NOTHING: Final = frozenset({"Server returned an error response", "Not Found", "Session terminated"})
NOT_MCP: Final = "answered with something that is not MCP"


class SdkPeer(Protocol):
    """The far end."""

    def transport(self) -> Transport:
        """Open the way to the agent, once."""

    def explain(self, error: BaseException | None) -> str:
        """Return what happened, to follow the server's name: `exited with code 1`. Without secrets."""

    def stderr(self) -> str:
        """Return the last of what the server wrote to stderr."""

    def has_forgotten_us(self) -> bool:
        """Return whether it refuses us because it does not know this connection any more."""

    def needs_login(self) -> bool:
        """Return whether it refuses us because it wants a login that only a person can do."""

    def is_gone(self) -> bool:
        """Return whether it is not there any more, by its own word: it is not connected again."""

    @property
    def is_modern(self) -> bool:
        """Whether the newest protocol is spoken, without the handshake of the older ones."""


def peer_for(config: Config, surroundings: McpEnvironment) -> SdkPeer:
    """Return the far end that a configuration names."""
    match config:
        case McpStdio():
            return Program(config, surroundings)
        case McpHttp() | McpSse():
            strange = surroundings.is_strange(config)
            return Address(config, only_public=strange, logins="" if strange else surroundings.logins)
        case McpAcp() if surroundings.lent is not None:
            return LentPeer(config, surroundings.lent)
    raise StartFailed("is of a type that is not supported here")


class Program:
    """A program that is started for the connection and ends with it, and all that it has started itself."""

    is_modern = False

    def __init__(self, config: McpStdio, surroundings: McpEnvironment) -> None:
        self._config = config
        self._surroundings = surroundings
        self._secrets = secrets_of(config)
        self._child: Child | None = None
        self._lines: Lines | None = None
        self._ending = ""
        self._over = False

    @asynccontextmanager
    async def transport(self) -> "AsyncIterator[TransportStreams]":
        argv = [self._config.command, *(self._config.args or ())]
        own = {one.name: one.value for one in self._config.env or ()}
        cwd, environment, guardian = self._surroundings.cwd, self._surroundings.environment, self._surroundings.guardian
        self._ending, self._over = "", False
        child = self._child = guardian.start(argv, cwd=cwd, env=child_environment(environment, own))
        try:
            lines = self._lines = Lines(child)
            try:
                yield lines.read, lines.write
            finally:
                lines.close()
                if lines.ended:
                    # What ends its output nearly always exits: how, is worth a moment.
                    with suppress(TimeoutError):
                        await asyncio.wait_for(child.wait(), limits.CHILD_EXIT_SECONDS)
                self._ending, self._over = _ending(child), True
        finally:
            await child.stop()
            guardian.leave(child.pid)

    def explain(self, error: BaseException | None) -> str:
        what = self._ending or said_of_error(error) or "closed the connection"
        if isinstance(error, TimeoutError) and self._lines is not None and self._lines.noise:
            what += f"; it wrote something else to stdout: {self._lines.noise}"
        # A server that lives writes there what it does, which explains nothing.
        last = one_line(self.stderr()[-_SAID_CHARACTERS:], _SAID_CHARACTERS) if self._over else ""
        return hide(f"{what}; on stderr: {last}" if last else what, self._secrets)

    def stderr(self) -> str:
        return hide(harmless(self._child.stderr_tail()), self._secrets) if self._child is not None else ""

    def has_forgotten_us(self) -> bool:
        return False

    def needs_login(self) -> bool:
        return False

    def is_gone(self) -> bool:
        return False


class Address:
    """A server behind a URL."""

    is_modern = False

    def __init__(self, config: McpHttp | McpSse, *, only_public: bool = False, logins: str = "") -> None:
        self._web = Web(config, only_public=only_public, logins=logins)
        self._secrets = secrets_of(config)

    def transport(self) -> Transport:
        return self._web.transport()

    def explain(self, error: BaseException | None) -> str:
        if self._web.refusal is not None:
            return str(self._web.refusal)
        answer = leaf(error)
        if self._web.status and (not isinstance(answer, MCPError) or answer.message in _SAYING_NOTHING):
            return f"answered with HTTP status {self._web.status}"
        return hide(said_of_error(error) or "closed the connection", self._secrets)

    def stderr(self) -> str:
        return ""

    def has_forgotten_us(self) -> bool:
        return self._web.status == httpx2.codes.NOT_FOUND or self.needs_login()

    def needs_login(self) -> bool:
        return isinstance(self._web.refusal, LoginNeeded)

    def is_gone(self) -> bool:
        return False


def _ending(child: Child) -> str:
    """Return how the server ended by itself."""
    if not child.has_exited or child.exit_code is None:
        return ""
    if child.exit_code >= 0:
        return f"exited with code {child.exit_code}"
    return f"was ended by {signal.Signals(-child.exit_code).name}"


def leaf(error: BaseException | None) -> BaseException | None:
    """Return the exception itself: what fails inside of the SDK comes wrapped in groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def said_of_error(error: BaseException | None) -> str:
    """Return what an exception means. Only texts that were written for people are told; the rest may hold anything."""
    error = leaf(error)
    match error:
        case StartFailed():
            return f"could not be started: {error}"
        case MCPError() if error.code == PARSE_ERROR:
            # The SDK adds what its models think of it, over many lines.
            return TOO_LARGE if TOO_LARGE in error.message else NOT_MCP
        case MCPError() if error.code != CONNECTION_CLOSED:
            return f"answered with an error: {one_line(error.message, _SAID_CHARACTERS).rstrip('.')}"
        case TimeoutError() | httpx2.TimeoutException():
            return "did not answer in time"
        case httpx2.HTTPStatusError():
            return f"answered with HTTP status {error.response.status_code}"
        case httpx2.ConnectError():
            return "cannot be reached"
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return "has an address that is none"
        case httpx2.SSEError():
            return "sent an event that is too large or none"
        case ValueError():
            return NOT_MCP
        case None | MCPError():
            return ""
    return f"failed ({type(error).__name__})"
