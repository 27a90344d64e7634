"""`Agent`: one decorated function becomes an agent for every editor, whatever version it speaks.

agent = Agent("echo")

@agent.prompt
async def reply(session, prompt):
    await session.say(f"You said: {prompt.text}")

agent.run()
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final, NoReturn

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.agent.handlers import (
    check_agent,
    check_auth_methods,
    check_handler,
    check_store,
    command_name,
    extension_name,
)
from dragoman.errors import METHOD_NOT_FOUND, RequestFailed, UsageError
from dragoman.vocabulary.asking import Done, Reply
from dragoman.vocabulary.dialect_rules import PROTOCOL_RULES, DialectRules
from dragoman.vocabulary.hello import AgentCapabilities, AgentHello, AuthMethod, Implementation
from dragoman.vocabulary.options import AnyCommand, Command, CommandInput, Option

# `initialize` is answered before the rest is imported (see `run`): an author's program pays for what stands above.
if TYPE_CHECKING:
    from dragoman.agent.connection import ClientConnection
    from dragoman.agent.first_request import Opening
    from dragoman.agent.session import Prompt, Session
    from dragoman.agent.turn import Work
    from dragoman.dialects.handshake.first_bytes import Greeting
    from dragoman.link import Trace
    from dragoman.store.contract import Store
    from dragoman.transports.contract import Transport
    from dragoman.vocabulary.requests import AuthStatus, GetAuthStatus, Login, Logout, UnknownValue

    PromptHandler = Callable[[Session, Prompt], Work]
    SessionHandler = Callable[[Session], Awaitable[None]]
    OptionHandler = Callable[[Session, str, str | bool | UnknownValue], Awaitable[None]]
    PromptCheck = Callable[[Session, Prompt], None]
    OptionCheck = Callable[[Session, str, str | bool | UnknownValue], Awaitable[NoReturn] | None]
    OptionSetter = Callable[[Session, str | bool | UnknownValue], list[Option]]
    ExtensionHandler = Callable[[object], Awaitable[object]]
    NotificationHandler = Callable[[object], Awaitable[None]]
    LoginHandler = Callable[[str], Awaitable[None]]
    LogoutHandler = Callable[[], Awaitable[None]]
AuthStatusHandler = Callable[[], Awaitable["AuthStatus"]]


class Agent:
    """An ACP agent. Decorate a prompt handler, then `run()`."""

    def __init__(
        self,
        name: str,
        *,
        version: str = "0",
        title: str | None = None,
        options: Iterable[Option] = (),
        capabilities: AgentCapabilities | None = None,
        auth_methods: Iterable[AuthMethod] = (),
        store: Store | Callable[[], Store] | None = None,
        resume: str | None = None,
        hears_interjections: bool = False,
        protocol: int | None = None,
        dialect: str | None = None,
    ) -> None:
        check_agent(name, version=version, title=title, resume=resume, capabilities=capabilities, store=store)
        self._store = store
        # Told of every failure beside stderr, which many editors throw away.
        self.also_report: Callable[[Exception], None] | None = None
        # What a person reads who has started us by hand, where a client should be.
        self.at_a_terminal = "waiting for an ACP client on stdin"
        # The first new session goes on with this stored one, or with the newest of its folder when this is empty.
        self.resume: Final = resume
        # A prompt that comes while a turn runs waits for `session.interjected()`; else it is refused.
        self.hears_interjections: Final = hears_interjections
        # `str.__str__`: text of a subclass has no JSON.
        shown = UNSET if title is None else str.__str__(title)
        self.info: Final = Implementation(str.__str__(name), str.__str__(version), shown)
        self.options: Final = _check_options(options)
        # Who was given a dialect by name speaks that and nothing else; empty: the client's version decides.
        self.dialect, self.rules, pinned = _chosen(dialect)
        self.spoken: Final = _spoken(protocol if pinned is None else pinned)
        # The ids of the sessions that are open on any connection.
        self.open_sessions: Final[set[str]] = set()
        self.session_handlers: Final[list[SessionHandler]] = []
        self.closing_handlers: Final[list[SessionHandler]] = []
        self.option_handlers: Final[list[OptionHandler]] = []
        # Asked before a new value counts for anything that runs: None, or what refuses it when it is awaited.
        self.option_checks: Final[list[OptionCheck]] = []
        # Asked before a prompt is recorded or begins anything; `RequestFailed` is the answer to it.
        self.prompt_checks: Final[list[PromptCheck]] = []
        # By the id of an option that takes more values than it lists: what makes all options, once it has a value.
        self.option_setters: Final[dict[str, OptionSetter]] = {}
        self.extensions: Final[dict[str, ExtensionHandler]] = {}
        self.notifications: Final[dict[str, NotificationHandler]] = {}
        self._capabilities = _kept(
            store, capabilities or AgentCapabilities(embedded_context=True, list=True, close=True)
        )
        self._auth_methods = check_auth_methods(auth_methods)
        self._prompt: PromptHandler | None = None
        self._commands: dict[str, tuple[Command, PromptHandler]] = {}
        self._login: LoginHandler | None = None
        self._logout: LogoutHandler | None = None
        self._auth_status: AuthStatusHandler | None = None

    # -- what the author writes --------------------------------------------------------------------------------------

    def prompt(self, handler: PromptHandler) -> PromptHandler:
        """Answer prompts: an async function of (session, prompt), or an async generator of text and events."""
        check_handler(handler, "agent.prompt", "session", "prompt", generators=True)
        if self._prompt is not None:
            raise UsageError("an agent has one prompt handler; use @agent.command for slash commands")
        self._prompt = handler
        return handler

    def command(
        self, name: str, description: str, *, hint: str | None = None
    ) -> Callable[[PromptHandler], PromptHandler]:
        """Answer prompts that begin with `/name`."""
        bare = command_name(name, description, hint)

        def register(handler: PromptHandler) -> PromptHandler:
            check_handler(handler, "agent.command", "session", "prompt", generators=True)
            if bare in self._commands:
                raise UsageError(f"the agent has a command /{bare} already; give this one another name")
            wanted = UNSET if hint is None else CommandInput(str.__str__(hint))
            self._commands[bare] = (Command(bare, str.__str__(description), wanted), handler)
            return handler

        return register

    def session_opened(self, handler: SessionHandler) -> SessionHandler:
        """Prepare a session before it is announced: its options, its commands, its memory.

        What it says is held until the client knows the session; it cannot ask the client anything yet.
        """
        check_handler(handler, "agent.session_opened", "session")
        self.session_handlers.append(handler)
        return handler

    def session_closed(self, handler: SessionHandler) -> SessionHandler:
        """Free what a session holds: it was closed or deleted, or its client is gone. It can say nothing any more."""
        check_handler(handler, "agent.session_closed", "session")
        self.closing_handlers.append(handler)
        return handler

    def option_changed(self, handler: OptionHandler) -> OptionHandler:
        """Hear of a changed option: an async function of (session, config_id, value). If it raises, nothing changed."""
        check_handler(handler, "agent.option_changed", "session", "config_id", "value")
        self.option_handlers.append(handler)
        return handler

    def extension(self, method: str) -> Callable[[ExtensionHandler], ExtensionHandler]:
        """Answer an extension method (`_name`): an async function of its params."""
        name = extension_name(method)

        def register(handler: ExtensionHandler) -> ExtensionHandler:
            check_handler(handler, "agent.extension", "params")
            self.extensions[name] = handler
            return handler

        return register

    def notification(self, method: str) -> Callable[[NotificationHandler], NotificationHandler]:
        """Hear an extension notification (`_name`)."""
        name = extension_name(method)

        def register(handler: NotificationHandler) -> NotificationHandler:
            check_handler(handler, "agent.notification", "params")
            self.notifications[name] = handler
            return handler

        return register

    def on_login(self, handler: LoginHandler) -> LoginHandler:
        """Log in with a method id."""
        check_handler(handler, "agent.on_login", "method_id")
        self._login = handler
        return handler

    def on_logout(self, handler: LogoutHandler) -> LogoutHandler:
        """Forget the login."""
        check_handler(handler, "agent.on_logout")
        self._logout = handler
        return handler

    def on_auth_status(self, handler: AuthStatusHandler) -> AuthStatusHandler:
        """Tell whether a login is needed: an async function of nothing."""
        check_handler(handler, "agent.on_auth_status")
        self._auth_status = handler
        return handler

    # -- serving -----------------------------------------------------------------------------------------------------

    def run(self, *, trace: Trace | None = None) -> None:
        """Serve on stdin and stdout until the client is gone, or a signal comes: then turns are cancelled, what was
        asked is answered, and the process ends within two seconds."""
        self._check()
        if os.isatty(0):
            self._tell_a_person()
        if (loops := sys.modules.get("asyncio")) is not None and loops._get_running_loop() is not None:
            raise UsageError("a loop runs already: use `await agent.serve_stdio()` here")
        from dragoman.agent.first_request import Opening

        opening = Opening()
        if trace is None and not self.dialect:  # what is traced or has a dialect of its own is the link's to greet
            self._greet(opening)
        from dragoman.agent.process import serve_process

        code = serve_process(opening, lambda transport: self._connection(transport, trace, opening.greeted))
        if code:
            sys.exit(code)

    async def serve_stdio(self, *, trace: Trace | None = None) -> None:
        """Serve on stdin and stdout; for authors who run their own loop."""
        from dragoman.transports.stdio import StdioTransport

        self._check()
        await self.serve(StdioTransport.of_this_process(), trace=trace)

    async def serve(self, transport: Transport, *, trace: Trace | None = None, trusted: bool = False) -> None:
        """Serve one client until it is gone. `trusted`: it is a gateway of ours, whose word counts on who asks."""
        self._check()
        await self._connection(transport, trace, trusted=trusted).run()

    def _tell_a_person(self) -> None:
        from dragoman.agent.connection import complain

        complain(f"{self.info.name}: {self.at_a_terminal}\n")

    def _greet(self, opening: Opening) -> None:
        from dragoman.dialects.handshake.first_bytes import greet

        opening.hear(lambda data: greet(data, self.spoken, self.hello))

    def _connection(
        self, transport: Transport, trace: Trace | None, greeted: Greeting | None = None, *, trusted: bool = False
    ) -> ClientConnection:
        from dragoman.agent.connection import ClientConnection

        return ClientConnection(self, transport, trace=trace, greeted=greeted, trusted=trusted)

    # -- the connection calls these ----------------------------------------------------------------------------------

    @property
    def store(self) -> Store | None:
        """Where sessions are kept; made now if it was given as a function that makes it."""
        if callable(self._store):
            made = self._store()
            check_store(made)
            self._store = made
        return self._store

    def hello(self) -> AgentHello:
        """Who we are. Only what works is claimed."""
        can = self._capabilities
        return AgentHello(
            self.info,
            replace(
                can,
                logout=can.logout or self._logout is not None,
                auth_status=can.auth_status or self._auth_status is not None,
            ),
            self._auth_methods,
        )

    def command_list(self) -> list[AnyCommand]:
        """The slash commands of a new session."""
        return [command for command, _ in self._commands.values()]

    def work(self, session: Session, prompt: Prompt) -> Work:
        """Start the handler that this prompt is for."""
        name, _ = prompt.command
        if name in self._commands:
            return self._commands[name][1](session, prompt)
        assert self._prompt is not None
        return self._prompt(session, prompt)

    async def login(self, request: Login) -> Reply:
        """Log in, if this agent can."""
        if self._login is None:
            raise RequestFailed(METHOD_NOT_FOUND, "Method not found")
        await self._login(request.method_id)
        return Done()

    async def logout(self, request: Logout) -> Reply:
        """Log out, if this agent can."""
        if self._logout is None:
            raise RequestFailed(METHOD_NOT_FOUND, "Method not found")
        await self._logout()
        return Done()

    async def auth_status(self, request: GetAuthStatus) -> Reply:
        """Whether a login is needed, if this agent knows."""
        if self._auth_status is None:
            raise RequestFailed(METHOD_NOT_FOUND, "Method not found")
        return await self._auth_status()

    def report(self, error: Exception) -> None:
        """A handler raised: the author reads it on stderr, the client is told nothing but that it failed."""
        import traceback

        from dragoman.agent.connection import complain

        complain("".join(traceback.format_exception(error)))
        if self.also_report is not None:
            self.also_report(error)

    def _check(self) -> None:
        if self._prompt is None:
            raise UsageError("the agent has no prompt handler; decorate an async function with @agent.prompt")


def _check_options(options: Iterable[Option]) -> list[Option]:
    """Return the options of new sessions, checked."""
    if options == ():
        return []
    # Here and not at the top: an agent without options is there before this is imported.
    from dragoman.agent.checks import check_options

    return check_options(options, "options")


def _kept(store: object, can: AgentCapabilities) -> AgentCapabilities:
    """Return `can` with the session capabilities that a store implies; unchanged where `store` is None."""
    if store is None:
        return can
    names = ("load", "resume", "list", "close", "delete", "fork", "archive", "status", "title")
    return replace(can, additional_directories=True, **dict.fromkeys(names, True))


def _chosen(dialect: str | None) -> tuple[str, DialectRules, int | None]:
    """A dialect by its name, what it asks of us, and the version where the name is that of a version."""
    if dialect is None:
        return "", PROTOCOL_RULES, None
    from dragoman.agent.dialect_rules import rules_of
    from dragoman.dialects.vendors.named import pinned

    rules, version = rules_of(dialect), pinned(dialect)
    return (dialect, rules, None) if version is None else ("", rules, version)


def _spoken(protocol: int | None) -> tuple[int, ...]:
    if protocol is None:
        return (1, 2)
    if protocol not in (1, 2):
        raise UsageError(f"protocol must be 1 or 2, not {protocol!r}")
    return (protocol,)
