"""`connect`: talk to any ACP agent.

async with connect(["gemini", "--acp"]) as client:
    session = await client.new_session("/path/to/project")
    async for event in session.prompt("Explain this repository"):
        ...
"""

import asyncio
import os
import shlex
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Self, cast

from msgspec import UNSET

from dragoman import limits
from dragoman.client.conversation import Conversation
from dragoman.client.face import (
    ElicitationCallback,
    ExtensionCallback,
    Face,
    NotificationCallback,
    PermissionCallback,
    ReadCallback,
    Terminals,
    WriteCallback,
)
from dragoman.dialects.contract import Id
from dragoman.errors import LinkClosed, TimedOut, UsageError
from dragoman.link import Link, Trace
from dragoman.transports.contract import Transport
from dragoman.vocabulary.asking import Extension, ExtensionNote, ExtensionResult, Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientHello, Implementation
from dragoman.vocabulary.requests import (
    ListSessions,
    Login,
    Logout,
    McpServer,
    NewSession,
    ReplayFromStart,
    ResumeSession,
    SessionInfo,
    SessionList,
    SessionOpened,
)
from dragoman.version import VERSION

Target = Sequence[str] | str | Transport
EventCallback = Callable[[Conversation, AnyEvent], None]


def connect(
    target: Target,
    *,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    permission: PermissionCallback | None = None,
    elicitation: ElicitationCallback | None = None,
    read_text_file: ReadCallback | None = None,
    write_text_file: WriteCallback | None = None,
    terminals: Terminals | None = None,
    extensions: Mapping[str, ExtensionCallback] | None = None,
    on_notification: NotificationCallback | None = None,
    on_event: EventCallback | None = None,
    on_noise: Callable[[str], None] | None = None,
    info: Implementation | None = None,
    protocol: int | None = None,
    start_timeout: float = limits.START_SECONDS,
    trace: Trace | None = None,
) -> "Client":
    """A client for an agent: a command to start, or a transport. Use it with `async with`.

    `env` is added to a scrubbed copy of our environment. Without `permission` every request is rejected. `on_event`
    hears what an agent tells outside of turns.
    """
    if protocol not in (None, 1, 2):
        raise UsageError(f"protocol must be 1 or 2, not {protocol!r}")
    face = Face(
        permission=permission,
        elicitation=elicitation,
        read_text_file=read_text_file,
        write_text_file=write_text_file,
        terminals=terminals,
        extensions=extensions,
        on_notification=on_notification,
    )
    spoken = (1, 2) if protocol is None else (protocol,)
    return Client(
        target,
        face,
        cwd=cwd,
        env=env,
        on_event=on_event,
        on_noise=on_noise,
        info=info,
        spoken=spoken,
        start_timeout=start_timeout,
        trace=trace,
    )


class Client:
    """A connection to one agent. `async with` starts it, says hello, and stops it with everything it started."""

    def __init__(
        self,
        target: Target,
        face: Face,
        *,
        cwd: str | None,
        env: Mapping[str, str] | None,
        on_event: EventCallback | None,
        on_noise: Callable[[str], None] | None,
        info: Implementation | None,
        spoken: tuple[int, ...],
        start_timeout: float,
        trace: Trace | None,
    ) -> None:
        self.agent: AgentHello = AgentHello(None)
        self._target = target
        self._face = face
        self._cwd = cwd
        self._env = env
        self._on_event = on_event
        self._on_noise = on_noise
        self._info = info or Implementation("dragoman", VERSION)
        self._spoken = spoken
        self._start_timeout = start_timeout
        self._trace = trace
        self._link: Link | None = None
        self._transport: Transport | None = None
        self._conversations: dict[str, Conversation] = {}
        self._early = _EarlyEvents()

    # -- life --------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        transport = self._transport = self._open()
        self._link = Link(transport, self, "client", spoken=self._spoken, trace=self._trace)
        self._link.start()
        try:
            async with asyncio.timeout(self._start_timeout):
                self.agent = await self._link.hello(ClientHello(self._face.capabilities(), self._info))
        except TimeoutError:
            await self.close()
            raise TimedOut(f"the agent did not answer initialize within {self._start_timeout:g} s") from None
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection and stop the agent, its whole process tree included."""
        if self._link is not None:
            await self._link.close()

    def _open(self) -> Transport:
        if not isinstance(self._target, (str, Sequence)):
            return self._target
        # Here and not at the top: a client over another transport starts no process.
        from dragoman.host.environment import child_environment
        from dragoman.host.process import Child
        from dragoman.transports.child import ChildTransport

        command = shlex.split(self._target) if isinstance(self._target, str) else list(self._target)
        if not command:
            raise UsageError("connect() needs a command, such as ['gemini', '--acp'], or a transport")
        environment = child_environment(os.environ, self._env)
        return ChildTransport(Child.start(command, cwd=self._cwd or os.getcwd(), env=environment))

    @property
    def link(self) -> Link:
        """The live connection."""
        if self._link is None:
            raise UsageError("the client is not connected yet: use `async with connect(...) as client`")
        return self._link

    # -- sessions ----------------------------------------------------------------------------------------------------

    async def new_session(
        self,
        cwd: str | os.PathLike[str] = ".",
        *,
        additional_directories: Sequence[str] = (),
        mcp_servers: Sequence[McpServer] = (),
    ) -> Conversation:
        """Open a session in a folder."""
        folder = os.path.abspath(cwd)
        request = NewSession(folder, list(additional_directories) or UNSET, list(mcp_servers) or UNSET)
        reply = cast(SessionOpened, await self.ask(request))
        return self.adopt(reply.session_id, folder, reply)

    async def resume_session(
        self, session_id: str, cwd: str | os.PathLike[str] = ".", *, mcp_servers: Sequence[McpServer] = ()
    ) -> Conversation:
        """Go on with a stored session, without hearing its story again."""
        return await self._reopen(session_id, cwd, mcp_servers, replay=False)

    async def load_session(
        self, session_id: str, cwd: str | os.PathLike[str] = ".", *, mcp_servers: Sequence[McpServer] = ()
    ) -> Conversation:
        """Go on with a stored session; its story is told to `on_event` first."""
        return await self._reopen(session_id, cwd, mcp_servers, replay=True)

    async def _reopen(
        self, session_id: str, cwd: str | os.PathLike[str], mcp_servers: Sequence[McpServer], *, replay: bool
    ) -> Conversation:
        folder = os.path.abspath(cwd)
        # Its events come before the answer, so it must be known before it is asked for.
        conversation = self.adopt(session_id, folder, SessionOpened(session_id))
        request = ResumeSession(
            session_id,
            folder,
            mcp_servers=list(mcp_servers) or UNSET,
            replay_from=ReplayFromStart() if replay else UNSET,
        )
        try:
            reply = cast(SessionOpened, await self.ask(request))
        except BaseException:
            self.forget(session_id)
            raise
        conversation.options = reply.config_options or conversation.options
        conversation.commands = reply.available_commands or conversation.commands
        return conversation

    async def list_sessions(self, cwd: str | None = None) -> list[SessionInfo]:
        """Every session the agent has, page by page."""
        found: list[SessionInfo] = []
        cursor: str | None = None
        while True:
            asked = ListSessions(UNSET if cwd is None else cwd, UNSET if cursor is None else cursor)
            page = cast(SessionList, await self.ask(asked))
            found.extend(page.sessions)
            if not page.next_cursor:
                return found
            cursor = page.next_cursor

    async def login(self, method_id: str) -> None:
        """Log in with one of `client.agent.auth_methods`."""
        await self.ask(Login(method_id))

    async def logout(self) -> None:
        """Forget the login."""
        await self.ask(Logout())

    async def request(self, method: str, params: object = UNSET) -> object:
        """Call a method outside the vocabulary, such as `_name`."""
        return cast(ExtensionResult, await self.ask(Extension(method, params))).result

    async def notify(self, method: str, params: object = UNSET) -> None:
        """Send a notification outside the vocabulary, such as `_name`."""
        await self.link.note(ExtensionNote(method, params))

    async def ask(self, request: Request) -> Reply:
        """Ask anything of the vocabulary."""
        return await self.link.ask(request)

    # -- the conversations call these --------------------------------------------------------------------------------

    def adopt(self, session_id: str, cwd: str, opened: SessionOpened) -> Conversation:
        """A session whose id has become known; what was heard of it before is handed to it now."""
        conversation = self._conversations[session_id] = Conversation(self, session_id, cwd, opened)
        for event in self._early.take(session_id):
            conversation.hear(event)
        return conversation

    def forget(self, session_id: str) -> None:
        """A session that is over."""
        self._conversations.pop(session_id, None)

    def note_now(self, note: Note) -> None:
        """Say a notification that must not wait."""
        self.link.note_now(note)

    def taken(self) -> None:
        """Everything heard has been read."""
        self.link.taken()

    def outside_turn(self, conversation: Conversation, event: AnyEvent) -> None:
        """An event while no turn runs."""
        self.taken()
        if self._on_event is not None:
            self._on_event(conversation, event)

    # -- the link calls these ----------------------------------------------------------------------------------------

    def on_hello(self, hello: ClientHello) -> AgentHello:
        raise UsageError("a client is not greeted")

    def on_request(self, request: Request, id: Id) -> Reply | Awaitable[Reply]:
        return self._face.answer(request)

    def on_note(self, note: Note) -> None:
        self._face.hear(note)

    def on_event(self, session_id: str, event: AnyEvent) -> None:
        conversation = self._conversations.get(session_id)
        if conversation is not None:
            conversation.hear(event)
        elif not self._early.keep(session_id, event):
            self.on_noise("an update for a session that was never opened")

    def on_noise(self, reason: str) -> None:
        if self._on_noise is not None:
            self._on_noise(reason)

    def on_bug(self, error: Exception) -> None:
        asyncio.get_running_loop().call_exception_handler(
            {"message": "a dragoman client callback raised", "exception": error}
        )

    def on_closed(self, error: LinkClosed) -> None:
        for conversation in list(self._conversations.values()):
            if conversation.turn is not None:
                conversation.turn.lose(error)


class _EarlyEvents:
    """Events for ids we do not know yet: agents tell of a session before they have answered with its name."""

    def __init__(self) -> None:
        self._kept: deque[tuple[float, str, AnyEvent]] = deque()

    def keep(self, session_id: str, event: AnyEvent) -> bool:
        """Hold an event for a while. False: there is no room."""
        now = asyncio.get_running_loop().time()
        while self._kept and now - self._kept[0][0] > limits.EARLY_UPDATE_SECONDS:
            self._kept.popleft()
        if len(self._kept) >= limits.EARLY_UPDATES:
            return False
        self._kept.append((now, session_id, event))
        return True

    def take(self, session_id: str) -> list[AnyEvent]:
        """What was kept for a session, in order."""
        found = [event for _, id, event in self._kept if id == session_id]
        self._kept = deque(entry for entry in self._kept if entry[1] != session_id)
        return found
