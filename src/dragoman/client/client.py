"""`Client`: a live connection to one agent, from its start to its end, and the conversations on it."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, Self

from msgspec import UNSET

from dragoman import limits
from dragoman.client.callbacks import check_text, folder_of, listed
from dragoman.client.conversation import Conversation
from dragoman.client.early_events import EarlyEvents
from dragoman.client.handlers import ClientHandlers
from dragoman.client.services import Services
from dragoman.client.targets import Target, open_target
from dragoman.client.timeouts import Clock, Timeouts
from dragoman.client.turn import TurnEvents
from dragoman.dialects.contract import Id
from dragoman.errors import LinkClosed, TimedOut, UsageError
from dragoman.link import Link, Trace
from dragoman.version import VERSION
from dragoman.vocabulary.asking import Extension, ExtensionNote, Note, R, Reply, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientHello, Implementation
from dragoman.vocabulary.requests import (
    CancelTurn,
    ForkSession,
    ListSessions,
    Login,
    Logout,
    McpServer,
    NewSession,
    ReplayFromStart,
    ResumeSession,
    SessionInfo,
    SessionOpened,
)

if TYPE_CHECKING:
    from dragoman.host.process import Child

# What of stderr fits into an error message.
_STDERR_LINES: Final = 10
# Methods that are typed on the wire and passed on as they are; see `dialects.speaker`.
FORWARDED = ("providers/", "mcp/", "proxy/")
EventCallback = Callable[[Conversation, AnyEvent], None]
State = Literal["configured", "starting", "ready", "busy", "waiting for you", "failed", "stopped"]


class Client:
    """A connection to one agent. `async with` starts it, says hello, and stops it with everything it started."""

    def __init__(
        self,
        target: Target,
        face: ClientHandlers,
        *,
        cwd: str | None,
        env: Mapping[str, str] | None,
        on_event: EventCallback | None,
        on_noise: Callable[[str], None] | None,
        on_stderr: Callable[[bytes], None] | None = None,
        info: Implementation | None,
        spoken: tuple[int, ...],
        dialect: str = "",
        timeouts: Timeouts,
        trace: Trace | None,
    ) -> None:
        self.agent: AgentHello = AgentHello(None)
        self.loop: asyncio.AbstractEventLoop
        self._target = target
        self._face = face
        self._cwd = cwd
        self._env = env
        self._on_event = on_event
        self._on_noise = on_noise
        self._on_stderr = on_stderr
        self._info = info or Implementation("dragoman", VERSION)
        self._spoken = spoken
        self._dialect = dialect
        self._timeouts = timeouts
        self._trace = trace
        self._link: Link | None = None
        self._child: Child | None = None
        self._greeted = False
        self._closing = False
        self._conversations: dict[str, Conversation] = {}
        self._unread: set[TurnEvents] = set()
        self._early = EarlyEvents(self.on_noise)
        self._services = Services(face, self._conversations, self._early, self.on_noise, self.on_bug)
        self.clock = Clock(timeouts, self, lambda: self._services.busy)
        # Why the agent cannot be talked to any more, if that was not our own doing.
        self.failure: Exception | None = None

    # -- life --------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._link is not None:
            raise UsageError("a client connects once: call connect() again for another connection")
        self.loop = asyncio.get_running_loop()
        try:
            transport, self._child = open_target(self._target, self._cwd, self._env, self._on_stderr)
            self._link = Link(transport, self, "client", spoken=self._spoken, trace=self._trace, dialect=self._dialect)
            self._link.start()
            async with asyncio.timeout(self._timeouts.startup):
                self.agent = await self._link.initialize(ClientHello(self._face.capabilities(), self._info))
        except TimeoutError:
            self.failure = self._too_slow()
            await self.close()
            raise self.failure from None
        except BaseException as error:
            if isinstance(error, Exception):
                self.failure = self.failure or error
            await self.close()
            raise
        self._greeted = True
        return self

    def _too_slow(self) -> TimedOut:
        lines = self.stderr_tail().splitlines()[-_STDERR_LINES:]
        message = f"the agent did not answer initialize within {self._timeouts.startup:g} s and was stopped"
        return TimedOut("\n".join([f"{message}. It last wrote to stderr:", *lines]) if lines else message)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    if not TYPE_CHECKING:  # a type checker knows that this cannot be awaited

        def __await__(self) -> NoReturn:
            raise UsageError("connect() is not awaited: write `async with connect(...) as client`")

        def __enter__(self) -> NoReturn:
            raise UsageError("write `async with connect(...)`; without async, use dragoman.connect_sync")

        def __exit__(self, *error: object) -> None:
            """Never reached."""

    async def close(self) -> None:
        """End the connection and stop the agent, its whole process tree included."""
        self._closing = True
        if self._link is not None:
            await self._link.close()

    async def give_up(self, error: Exception) -> None:
        """Close, because the agent cannot be talked to any more."""
        self.failure = self.failure or error
        await self.close()

    @property
    def state(self) -> State:
        """How the connection is."""
        if self.failure is not None:
            return "failed"
        if self._closing:
            return "stopped"
        if self._link is None:
            return "configured"
        if not self._greeted:
            return "starting"
        if self._services.questions.open:
            return "waiting for you"
        busy = any(conversation.running is not None for conversation in self._conversations.values())
        return "busy" if busy else "ready"

    def stderr_tail(self) -> str:
        """The last that the agent's process wrote to stderr, also after its end."""
        return "" if self._child is None else self._child.stderr_tail()

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
        additional_directories: Iterable[str | os.PathLike[str]] = (),
        mcp_servers: Sequence[McpServer] = (),
    ) -> Conversation:
        """Open a session in a folder."""
        folder = folder_of(cwd)
        example = "additional_directories=['/folder']"
        further = listed(additional_directories, (str, os.PathLike), "additional_directories", example)
        more = [str.__str__(os.fspath(one)) for one in further]
        request = NewSession(folder, more or UNSET, _servers(mcp_servers) or UNSET)
        return await self.open(request, folder)

    async def open(self, request: NewSession | ForkSession, cwd: str) -> Conversation:
        """Ask for a session that gets its name from the answer. It is known before anything later is heard of it."""
        opened: list[Conversation] = []

        def adopt(reply: SessionOpened) -> None:
            opened.append(self.adopt(reply.session_id, cwd, reply))

        self._services.opening += 1
        try:
            await self.ask(request, adopt)
        finally:
            self._services.opening -= 1
        return opened[0]

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
        check_text(session_id, "a session id", "client.load_session(session.id, session.cwd)")
        folder = folder_of(cwd)
        # Its events come before the answer, so it must be known before it is asked for.
        known = self._conversations.get(session_id)
        conversation = known or self.adopt(session_id, folder, SessionOpened(session_id))
        request = ResumeSession(
            session_id,
            folder,
            mcp_servers=_servers(mcp_servers) or UNSET,
            replay_from=ReplayFromStart() if replay else UNSET,
        )
        try:
            await self.ask(request, conversation.reopened)
        except BaseException:
            if known is None:
                self.forget(session_id)
            raise
        return conversation

    async def list_sessions(self, cwd: str | None = None) -> list[SessionInfo]:
        """Every session the agent has, page by page."""
        found: list[SessionInfo] = []
        cursor: str | None = None
        while True:
            asked = ListSessions(UNSET if cwd is None else cwd, UNSET if cursor is None else cursor)
            page = await self.ask(asked)
            found.extend(page.sessions)
            if not page.next_cursor:
                return found
            cursor = page.next_cursor

    async def login(self, method_id: str) -> None:
        """Log in with one of `client.agent.auth_methods`. A person may be at it for minutes: no bound counts."""
        await self.link.ask(Login(method_id))

    async def logout(self) -> None:
        """Forget the login."""
        await self.ask(Logout())

    async def request(self, method: str, params: object = UNSET) -> object:
        """Call a method outside the vocabulary, such as `_name`."""
        return (await self.ask(Extension(_foreign(method), params))).result

    async def notify(self, method: str, params: object = UNSET) -> None:
        """Send a notification outside the vocabulary, such as `_name`."""
        await self.link.send_notification(ExtensionNote(_foreign(method), params))

    def ask(self, request: Request[R], on_reply: Callable[[R], None] | None = None) -> Coroutine[Any, Any, R]:
        """Ask anything of the vocabulary. `on_reply` has the answer before anything that the agent said after it."""
        return self.clock.answer(request.__class__.__name__, self.link.ask(request, None, on_reply))

    # -- the conversations call these --------------------------------------------------------------------------------

    def adopt(self, session_id: str, cwd: str, opened: SessionOpened) -> Conversation:
        """A session whose id has become known; what was heard of it before is handed to it now."""
        conversation = self._conversations[session_id] = Conversation(self, session_id, cwd, opened)
        for event in self._early.take(session_id):
            conversation.hear(event)
        return conversation

    def forget(self, session_id: str) -> None:
        """A session that is over; a turn that the agent left open ends with it."""
        conversation = self._conversations.pop(session_id, None)
        if conversation is not None:
            conversation.lose(LinkClosed("the session was closed"))

    def cancel(self, session_id: str) -> None:
        """Send a cancel for the turn of a session, and answer its open questions as dismissed. Does not wait."""
        self.link.send_notification_now(CancelTurn(session_id))
        self._services.questions.dismiss(session_id)

    def withdraw(self, run: TurnEvents) -> None:
        """Ask the agent to stop working on a prompt, where it has not understood a cancel."""
        if run.left:
            self.link.cancel_request(run.number)

    def started(self, run: TurnEvents) -> None:
        """A turn whose events wait to be read."""
        self._unread.add(run)

    def taken(self, run: TurnEvents) -> None:
        """Everything heard of this turn has been read. What others have not read still counts."""
        if run.over.done():
            self._unread.discard(run)
        self.link.consume(self.unread_bytes())

    def unread_bytes(self) -> int:
        """About how many bytes of all that was heard wait to be read."""
        return sum(other.backlog for other in self._unread)

    def outside_turn(self, conversation: Conversation, event: AnyEvent) -> None:
        """An event while no turn runs."""
        self.link.consume(self.unread_bytes())
        if self._on_event is not None:
            try:
                self._on_event(conversation, event)
            except Exception as error:
                self.on_bug(error)

    # -- the link calls these ----------------------------------------------------------------------------------------

    def on_initialize(self, hello: ClientHello) -> AgentHello:
        raise UsageError("a client is not greeted")

    def on_request(self, request: Request, id: Id) -> Awaitable[Reply]:
        return self._services.answer(request)

    def on_notification(self, note: Note) -> None:
        self._face.hear(note)

    def on_event(self, session_id: str, event: AnyEvent) -> None:
        conversation = self._conversations.get(session_id)
        if conversation is not None:
            conversation.hear(event)
        else:
            self._early.keep(session_id, event, limits.KIB)

    def on_sized_event(self, session_id: str, event: AnyEvent, size: int) -> None:
        """Deliver an event as `on_event` does, and count its `size` in bytes as unread: it may be of any size."""
        conversation = self._conversations.get(session_id)
        if conversation is None:
            self._early.keep(session_id, event, max(size, limits.KIB))
            return
        if conversation.listener is not None:
            conversation.listener.weight += size
        conversation.hear(event)

    def on_noise(self, reason: str) -> None:
        if self._on_noise is not None:
            try:
                self._on_noise(reason)
            except Exception as error:
                self.on_bug(error)

    def on_bug(self, error: Exception) -> None:
        asyncio.get_running_loop().call_exception_handler(
            {"message": "a dragoman client callback raised", "exception": error}
        )

    def on_closed(self, error: LinkClosed) -> None:
        if not self._closing:
            self.failure = self.failure or error
        self.clock.stop()
        self._early.close()
        self._services.questions.dismiss_all()
        for conversation in list(self._conversations.values()):
            conversation.lose(error)


def _servers(servers: Sequence[McpServer]) -> list[McpServer]:
    return listed(servers, McpServer, "mcp_servers", "mcp_servers=[McpStdio('name', 'command')]")


def _foreign(method: str) -> str:
    """A method outside the vocabulary, or a clear error."""
    check_text(method, "extension methods start with an underscore and a method", "client.request('_name')")
    if not method.startswith(("_", *FORWARDED)):
        raise UsageError(f"extension methods start with an underscore: use {'_' + method!r}")
    return method
