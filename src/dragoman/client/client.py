"""`Client`: a live connection to one agent, from its start to its end, and the conversations on it.

What the link and the conversations need of it is in `connection`.
"""

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NoReturn, Self

from msgspec import UNSET

from dragoman.client.checks import check_list, check_text, folder_of
from dragoman.client.connection import AgentConnection, State
from dragoman.client.conversation import Conversation
from dragoman.dialects.contract import FORWARDED_PREFIXES
from dragoman.errors import UsageError
from dragoman.vocabulary.asking import Extension, ExtensionNote, R, Request
from dragoman.vocabulary.hello import AgentHello
from dragoman.vocabulary.requests import (
    ListSessions,
    Login,
    Logout,
    McpAcp,
    McpServer,
    NewSession,
    ReplayFromStart,
    ResumeSession,
    SessionInfo,
    SessionOpened,
)


class Client:
    """A connection to one agent, made by `connect`. `async with` starts the agent and stops it with all it started.

    Every method that waits for the agent raises `RequestFailed` if the agent answers with an error (`AuthRequired` if
    it wants a login), `TimedOut` if it does not answer in time, and `LinkClosed` if the connection ends.
    """

    def __init__(self, connection: AgentConnection) -> None:
        self._connection: Final = connection

    def __repr__(self) -> str:
        return f"<Client over {self._connection!r}>"

    async def __aenter__(self) -> Self:
        await self._connection.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    if not TYPE_CHECKING:  # a type checker knows that this cannot be awaited

        def __await__(self) -> NoReturn:
            raise UsageError("connect() is not awaited: write `async with connect(...) as client`")

        def __enter__(self) -> NoReturn:
            raise UsageError("write `async with connect(...)`; without async, use dragoman.connect_sync")

        def __exit__(self, *error: object) -> None:
            """Never reached."""

    @property
    def agent(self) -> AgentHello:
        """Return what the agent said of itself in `initialize`: its name, capabilities and ways to log in."""
        return self._connection.agent

    @property
    def state(self) -> State:
        """Return how the connection is, as a word for people."""
        return self._connection.state

    @property
    def failure(self) -> Exception | None:
        """Return why the connection ended or did not begin; None while it works, and after our own `close`."""
        return self._connection.failure

    @property
    def protocol_version(self) -> int:
        """Return the version of the protocol that both sides agreed on. Raise `UsageError` before `async with`."""
        return self._connection.link.version

    @property
    def dialect(self) -> str:
        """Return the name of the dialect; empty where the version decides. Raise `UsageError` before `async with`."""
        return self._connection.link.dialect_name

    def stderr_tail(self) -> str:
        """Return the end of what the agent's process wrote to stderr, also after the process has ended."""
        return self._connection.stderr_tail()

    async def close(self) -> None:
        """End the connection and stop the agent, its whole process tree included; wait until that is done."""
        await self._connection.close()

    async def wait_until_closed(self) -> None:
        """Wait until the connection has ended, whichever side ended it. Raise `UsageError` before `async with`."""
        await self._connection.link.wait_until_closed()

    # -- sessions ----------------------------------------------------------------------------------------------------

    async def new_session(
        self,
        cwd: str | os.PathLike[str] = ".",
        *,
        additional_directories: Iterable[str | os.PathLike[str]] = (),
        mcp_servers: Sequence[McpServer] = (),
    ) -> Conversation:
        """Open a session in the folder `cwd`, and wait for the agent to answer.

        `additional_directories` are further folders that the agent may work in; `mcp_servers` are started or called by
        the agent. Raise `UsageError` for an argument of another type.
        """
        folder = folder_of(cwd)
        example = "additional_directories=['/folder']"
        further = check_list(additional_directories, (str, os.PathLike), "additional_directories", example)
        more = [str.__str__(os.fspath(one)) for one in further]
        request = NewSession(folder, more or UNSET, _servers(mcp_servers) or UNSET)
        return await self._connection.open_session(request, folder)

    async def resume_session(
        self, session_id: str, cwd: str | os.PathLike[str] = ".", *, mcp_servers: Sequence[McpServer] = ()
    ) -> Conversation:
        """Continue the stored session `session_id` in the folder `cwd`, without a replay; wait for the agent's answer.

        `mcp_servers` are started or called by the agent. Raise `UsageError` for an argument of another type.
        """
        return await self._reopen(session_id, cwd, mcp_servers, replay=False)

    async def load_session(
        self, session_id: str, cwd: str | os.PathLike[str] = ".", *, mcp_servers: Sequence[McpServer] = ()
    ) -> Conversation:
        """Continue the stored session `session_id` in the folder `cwd`; wait until its history is replayed.

        The events of the history go to the `on_event` callback of `connect`. `mcp_servers` are started or called by the
        agent. Raise `UsageError` for an argument of another type.
        """
        return await self._reopen(session_id, cwd, mcp_servers, replay=True)

    async def _reopen(
        self, session_id: str, cwd: str | os.PathLike[str], mcp_servers: Sequence[McpServer], *, replay: bool
    ) -> Conversation:
        check_text(session_id, "a session id", "client.load_session(session.id, session.cwd)")
        folder = folder_of(cwd)
        # The replay comes before the reply, so the conversation must be there before the request is sent.
        known = self._connection.conversation(session_id)
        conversation = known or self._connection.add(session_id, folder, SessionOpened(session_id))
        request = ResumeSession(
            session_id,
            folder,
            mcp_servers=_servers(mcp_servers) or UNSET,
            replay_from=ReplayFromStart() if replay else UNSET,
        )
        try:
            await self._connection.ask(request, conversation.on_reopened)
        except BaseException:
            if known is None:
                self._connection.remove(session_id)
            raise
        return conversation.conversation

    async def list_sessions(self, cwd: str | None = None) -> list[SessionInfo]:
        """Return every session that the agent has, or those of the folder `cwd`; wait for page after page."""
        found: list[SessionInfo] = []
        cursor: str | None = None
        while True:
            request = ListSessions(UNSET if cwd is None else cwd, UNSET if cursor is None else cursor)
            page = await self.ask(request)
            found.extend(page.sessions)
            if not page.next_cursor:
                return found
            cursor = page.next_cursor

    def lend_mcp(self, name: str, server: object) -> McpAcp:
        """Lend an MCP server of this program to the agent; pass what is returned in `mcp_servers` of a session.

        `server` is an `MCPServer` or `Server` of the package `mcp`, or an async function: it gets an `McpCall` and
        returns the result of MCP, or raises `RequestFailed` with an error of MCP. It answers until `end_mcp`, or the
        end of the connection. Raise `UsageError` for an agent that takes no such servers
        (`client.agent.capabilities.mcp_acp`).
        """
        if not self.agent.capabilities.mcp_acp:
            raise UsageError("the agent takes no MCP servers over ACP: look at client.agent.capabilities.mcp_acp first")
        return self._connection.lent.add(name, server)

    def end_mcp(self, server: McpAcp) -> None:
        """Lend a server no longer: calls of the agent fail from now on, and those that are open are answered."""
        self._connection.lent.remove(server.server_id)

    # -- everything else ---------------------------------------------------------------------------------------------

    async def login(self, method_id: str) -> None:
        """Log in with one of `client.agent.auth_methods`. Wait without a timeout: a person may need minutes."""
        await self._connection.link.ask(Login(method_id))

    async def logout(self) -> None:
        """Delete the agent's login, and wait for its answer."""
        await self.ask(Logout())

    async def request(self, method: str, params: object = UNSET) -> object:
        """Call a method outside the protocol, such as `_name`, with any JSON as `params`; wait for its result.

        Raise `UsageError` for a method without the underscore.
        """
        return (await self.ask(Extension(_extension_name(method), params))).result

    async def notify(self, method: str, params: object = UNSET) -> None:
        """Send a notification outside the protocol, such as `_name`; wait only while the agent does not read.

        `params` is any JSON. Raise `UsageError` for a method without the underscore.
        """
        await self._connection.link.send_notification(ExtensionNote(_extension_name(method), params))

    async def ask(self, request: Request[R]) -> R:
        """Send any request of `dragoman.vocabulary.requests`, and wait for its reply."""
        return await self._connection.ask(request)


def _servers(servers: Sequence[McpServer]) -> list[McpServer]:
    return check_list(servers, McpServer, "mcp_servers", "mcp_servers=[McpStdio('name', 'command')]")


def _extension_name(method: str) -> str:
    """Return the name of a method outside the protocol. Raise `UsageError` if it does not look like one."""
    check_text(method, "extension methods start with an underscore and a method", "client.request('_name')")
    if not method.startswith(("_", *FORWARDED_PREFIXES)):
        raise UsageError(f"extension methods start with an underscore: use {'_' + method!r}")
    return method
