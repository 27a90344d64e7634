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
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.agent.author_handlers import (
    AgentCore,
    check_agent,
    check_auth_methods,
    check_handler,
    command_name,
    extension_name,
    warn,
)
from dragoman.errors import UsageError
from dragoman.vocabulary.dialect_rules import PROTOCOL_RULES, DialectRules
from dragoman.vocabulary.hello import AgentCapabilities, AuthMethod, Implementation
from dragoman.vocabulary.options import Command, CommandInput, Option

# `initialize` is answered before the rest is imported (see `run`): an author's program pays for what stands above.
if TYPE_CHECKING:
    from dragoman.agent.author_handlers import (
        AuthStatusHandler,
        ExtensionHandler,
        LoginHandler,
        LogoutHandler,
        NotificationHandler,
        OptionHandler,
        PromptHandler,
        SessionHandler,
    )
    from dragoman.agent.connection import ClientConnection
    from dragoman.dialects.handshake.first_bytes import InitializeAnswer
    from dragoman.link import Trace
    from dragoman.store.contract import Store
    from dragoman.transports.contract import Transport
    from dragoman.transports.opening import Opening


class Agent:
    """An ACP agent. Decorate a prompt handler, then `run()`.

    `name` and `version` are what clients and logs show, `title` a longer name for people. `options` are the session
    options of every new session, such as a mode. With a `store`, or a function that makes one when it is first needed,
    sessions outlive the process and can be listed and loaded. `capabilities` and `auth_methods` are sent to the client;
    what decorators and the store imply is added. `resume` is the id of a stored session that the first new session goes
    on with, or empty for the newest one of its folder. `steering`: prompts that arrive while a turn runs wait for
    `session.queued_prompts()`; else they are rejected. `protocol` is 1 or 2, to speak only that version; `dialect`
    names another way of speaking, such as `"iac-code"`. `hears_interjections` is the former name of `steering`. Raises
    `UsageError` for arguments that make no agent.
    """

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
        steering: bool = False,
        protocol: int | None = None,
        dialect: str | None = None,
        hears_interjections: bool | None = None,
    ) -> None:
        check_agent(name, version=version, title=title, resume=resume, capabilities=capabilities, store=store)
        if hears_interjections is not None:
            _deprecate("Agent(hears_interjections=…)", "Agent(steering=…)")
            steering = hears_interjections
        # `str.__str__`: text of a subclass has no JSON.
        shown = UNSET if title is None else str.__str__(title)
        # "v1" and "v2" are names too; they only pin the version, and the ordinary dialect of that version speaks.
        named, rules, pinned = _resolve_dialect(dialect)
        self._core: Final = AgentCore(
            Implementation(str.__str__(name), str.__str__(version), shown),
            options=_check_options(options),
            capabilities=_with_store(
                store, capabilities or AgentCapabilities(embedded_context=True, list=True, close=True)
            ),
            auth_methods=check_auth_methods(auth_methods),
            store=store,
            resume=resume,
            steering=steering,
            dialect=named,
            rules=rules,
            versions=_versions(protocol if pinned is None else pinned),
        )

    def __repr__(self) -> str:
        core = self._core
        return f"<Agent {core.info.name} {core.info.version} open={len(core.open_sessions)}>"

    # -- decorators --------------------------------------------------------------------------------------------------
    #
    # All are named after what the function answers or is called for. Each checks the function at once: `UsageError` for
    # one that is not async or takes other parameters. Each returns the function unchanged.

    def prompt(self, handler: PromptHandler) -> PromptHandler:
        """Answer prompts: an async function of (session, prompt), or an async generator of text and events.

        What the function returns is the stop reason; None is `end_turn`. An agent has one; `UsageError` for a second.
        """
        check_handler(handler, "agent.prompt", "session", "prompt", generators=True)
        if self._core.prompt_handler is not None:
            raise UsageError("an agent has one prompt handler; use @agent.command for slash commands")
        # One, not a list: two answers to one prompt could not be told apart.
        self._core.prompt_handler = handler
        return handler

    def command(
        self, name: str, description: str, *, hint: str | None = None
    ) -> Callable[[PromptHandler], PromptHandler]:
        """Answer prompts that begin with `/name`, with a function like that of `prompt`.

        `description` and `hint`, what to type behind the name, are shown by the client. `UsageError` for a name that is
        not one word, or that the agent has already.
        """
        bare = command_name(name, description, hint)

        def register(handler: PromptHandler) -> PromptHandler:
            check_handler(handler, "agent.command", "session", "prompt", generators=True)
            if bare in self._core.commands:
                raise UsageError(f"the agent has a command /{bare} already; give this one another name")
            # Without a hint the client sends the command as it is; with one it waits for more words.
            wanted = UNSET if hint is None else CommandInput(str.__str__(hint))
            self._core.commands[bare] = (Command(bare, str.__str__(description), wanted), handler)
            return handler

        return register

    def session_opened(self, handler: SessionHandler) -> SessionHandler:
        """Prepare a session before the client knows it: its options, its commands, its memory.

        An async function of (session). What it emits is held until the client knows the session; it cannot ask the
        client anything yet. If it raises, the session is not opened.
        """
        check_handler(handler, "agent.session_opened", "session")
        self._core.session_handlers.append(handler)
        return handler

    def session_closed(self, handler: SessionHandler) -> SessionHandler:
        """Free what a session holds, when it was closed or deleted, or its client is gone.

        An async function of (session), which can emit nothing any more. It is cancelled after two seconds.
        """
        check_handler(handler, "agent.session_closed", "session")
        self._core.closing_handlers.append(handler)
        return handler

    def option_changed(self, handler: OptionHandler) -> OptionHandler:
        """React to an option that the client has set: an async function of (session, config_id, value).

        If it raises, the option keeps its former value and the client is told that it failed.
        """
        check_handler(handler, "agent.option_changed", "session", "config_id", "value")
        # All of them are called, in the order of registration; the first that raises decides.
        self._core.option_handlers.append(handler)
        return handler

    def extension(self, method: str) -> Callable[[ExtensionHandler], ExtensionHandler]:
        """Answer an extension request (`_name`): an async function of its params; what it returns is the result."""
        name = extension_name(method)

        def register(handler: ExtensionHandler) -> ExtensionHandler:
            check_handler(handler, "agent.extension", "params")
            self._core.extensions[name] = handler
            return handler

        return register

    def notification(self, method: str) -> Callable[[NotificationHandler], NotificationHandler]:
        """Receive an extension notification (`_name`): an async function of its params."""
        name = extension_name(method)

        def register(handler: NotificationHandler) -> NotificationHandler:
            check_handler(handler, "agent.notification", "params")
            self._core.notifications[name] = handler
            return handler

        return register

    def login(self, handler: LoginHandler) -> LoginHandler:
        """Log in: an async function of the id of one of the `auth_methods`. If it raises, the login has failed."""
        check_handler(handler, "agent.login", "method_id")
        self._core.login_handler = handler
        return handler

    def logout(self, handler: LogoutHandler) -> LogoutHandler:
        """Log out: an async function without parameters. The client is told that the agent can."""
        check_handler(handler, "agent.logout")
        self._core.logout_handler = handler
        return handler

    def auth_status(self, handler: AuthStatusHandler) -> AuthStatusHandler:
        """Tell whether a login is needed: an async function without parameters that returns an `AuthStatus`."""
        check_handler(handler, "agent.auth_status")
        self._core.auth_status_handler = handler
        return handler

    # -- serving -----------------------------------------------------------------------------------------------------

    def run(self, *, trace: Trace | None = None) -> None:
        """Serve on stdin and stdout; block until the client is gone, or a signal comes.

        Then turns are cancelled, open requests are answered, and the process ends within two seconds. `trace` is called
        with every frame. Raises `UsageError` without a prompt handler and inside a running event loop, `SystemExit` if
        the client's bytes or a signal ended the connection.
        """
        self._core.check()
        if os.isatty(0):
            warn(f"{self._core.info.name}: {self._core.at_a_terminal}\n")
        # Looked up, not imported: a program that has not imported asyncio has no running loop, and must not pay for it
        # here.
        if (loops := sys.modules.get("asyncio")) is not None and loops._get_running_loop() is not None:
            raise UsageError("a loop runs already: use `await agent.serve_stdio()` here")
        from dragoman.transports.opening import Opening

        opening: Opening[InitializeAnswer] = Opening()
        # A plain `initialize` is answered here, before asyncio is imported. What is traced, or has a dialect of its
        # own, is the link's to answer.
        if trace is None and not self._core.dialect:
            self._greet(opening)
        # From here on asyncio is imported, and the client has its answer to `initialize`.
        from dragoman.agent.process import serve_process

        # The connection is made inside of the loop: it needs a running one.
        code = serve_process(opening, lambda transport: self._connection(transport, trace, opening.greeted))
        if code:
            sys.exit(code)

    async def serve_stdio(self, *, trace: Trace | None = None) -> None:
        """Serve on stdin and stdout, and wait until the client is gone; for authors who run their own event loop.

        `trace` is called with every frame, as `trace("in" or "out", frame)`. Raises `UsageError` without a prompt
        handler. Cancelling it closes the connection.
        """
        from dragoman.transports.stdio import StdioTransport

        self._core.check()
        await self.serve(StdioTransport.of_this_process(), trace=trace)

    async def serve(self, transport: Transport, *, trace: Trace | None = None, trusted: bool = False) -> None:
        """Serve one client on `transport`, and wait until it is gone. An agent may serve many at once.

        `trace` is called with every frame, as `trace("in" or "out", frame)`. `trusted`: the peer is a gateway of ours,
        and what it says about who sent a request is believed. Raises `UsageError` without a prompt handler. Cancelling
        it closes the connection.
        """
        self._core.check()
        await self._connection(transport, trace, trusted=trusted).run()

    def _greet(self, opening: Opening[InitializeAnswer]) -> None:
        from dragoman.dialects.handshake.first_bytes import answer_initialize

        opening.answer_first_request(lambda data: answer_initialize(data, self._core.versions, self._core.hello))

    def _connection(
        self,
        transport: Transport,
        trace: Trace | None,
        greeted: InitializeAnswer | None = None,
        *,
        trusted: bool = False,
    ) -> ClientConnection:
        from dragoman.agent.connection import ClientConnection

        return ClientConnection(self._core, transport, trace=trace, greeted=greeted, trusted=trusted)

    # -- former names, for one release -------------------------------------------------------------------------------

    def on_login(self, handler: LoginHandler) -> LoginHandler:
        """Former name of `login`; emits a `DeprecationWarning`."""
        _deprecate("@agent.on_login", "@agent.login")
        return self.login(handler)

    def on_logout(self, handler: LogoutHandler) -> LogoutHandler:
        """Former name of `logout`; emits a `DeprecationWarning`."""
        _deprecate("@agent.on_logout", "@agent.logout")
        return self.logout(handler)

    def on_auth_status(self, handler: AuthStatusHandler) -> AuthStatusHandler:
        """Former name of `auth_status`; emits a `DeprecationWarning`."""
        _deprecate("@agent.on_auth_status", "@agent.auth_status")
        return self.auth_status(handler)


def agent_core(agent: Agent) -> AgentCore:
    """Return the internals of an agent, for packages of Dragoman. Authors have no use for it: it may change."""
    return agent._core


def dialect_names() -> tuple[str, ...]:
    """Return the names that `Agent(dialect=…)` knows."""
    from dragoman.dialects.vendors.named import NAMES

    return tuple(NAMES)


def rules_of(dialect: str | None) -> DialectRules:
    """Return what a dialect asks of an agent; `UsageError` for an unknown name lists the known ones."""
    return _resolve_dialect(dialect)[1]


def _resolve_dialect(dialect: str | None) -> tuple[str, DialectRules, int | None]:
    """Return a dialect's name and rules, and the version where the name is only that of a version."""
    if dialect is None:
        return "", PROTOCOL_RULES, None
    from dragoman.dialects.vendors.named import check_name, load_dialect, pinned_version

    check_name(dialect)
    version = pinned_version(dialect)
    return (dialect, load_dialect(dialect).rules, None) if version is None else ("", PROTOCOL_RULES, version)


def _check_options(options: Iterable[Option]) -> list[Option]:
    """Return the options of new sessions, checked."""
    if options == ():
        return []
    # Here and not at the top: an agent without options is there before this is imported.
    from dragoman.agent.checks import check_options

    return check_options(options, "options")


def _with_store(store: object, can: AgentCapabilities) -> AgentCapabilities:
    """Return `can` with the session capabilities that a store implies; unchanged where `store` is None."""
    if store is None:
        return can
    # What a store makes possible. The client shows menus by these, so they are claimed only with one.
    names = ("load", "resume", "list", "close", "delete", "fork", "archive", "status", "title")
    return replace(can, additional_directories=True, **dict.fromkeys(names, True))


def _versions(protocol: int | None) -> tuple[int, ...]:
    from dragoman.dialects.handshake.initialize import SPOKEN

    if protocol is None:
        return SPOKEN
    if protocol not in SPOKEN:
        raise UsageError(f"protocol must be {' or '.join(map(str, SPOKEN))}, not {protocol!r}")
    return (protocol,)


def _deprecate(former: str, now: str) -> None:
    import warnings

    warnings.warn(f"{former} is called {now} now", DeprecationWarning, stacklevel=3)
