"""The handlers and settings that the author of an agent has given it (`AgentCore`), checked where they are given.

Requests of a client do not arrive here: `connection` maps them to functions.

A mistake of the author's shows before a client is there: every check raises a `UsageError` that names the fix.

Imported before `initialize` is answered, so it is small and imports no asyncio; what sessions are given is checked in
`checks`.
"""

import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Final, NoReturn, Protocol

from msgspec.structs import replace

from dragoman.errors import METHOD_NOT_FOUND, RequestFailed, UsageError
from dragoman.vocabulary.asking import Done, Reply
from dragoman.vocabulary.dialect_rules import DialectRules
from dragoman.vocabulary.hello import AgentCapabilities, AgentHello, AuthMethod, Implementation

if TYPE_CHECKING:
    from dragoman.agent.session import Prompt, Session
    from dragoman.agent.turn import Work
    from dragoman.store.contract import Store
    from dragoman.vocabulary.options import Command, Option
    from dragoman.vocabulary.requests import (
        AuthStatus,
        GetAuthStatus,
        Login,
        Logout,
        NewSession,
        RewindSession,
        SessionInfo,
        SessionRewound,
        UnknownValue,
    )

    PromptHandler = Callable[[Session, Prompt], Work]
    SessionHandler = Callable[[Session], Awaitable[None]]
    DeletionHandler = Callable[[str], Awaitable[None]]
    OptionHandler = Callable[[Session, str, str | bool | UnknownValue], Awaitable[None]]
    PromptCheck = Callable[[Session, Prompt], None]
    OptionCheck = Callable[[Session, str, str | bool | UnknownValue], Awaitable[NoReturn] | None]
    OptionSetter = Callable[[Session, str | bool | UnknownValue], list[Option]]
    RewindHandler = Callable[[Session, RewindSession], Awaitable[SessionRewound]]
    ExtensionHandler = Callable[[object], Awaitable[object]]
    NotificationHandler = Callable[[object], Awaitable[None]]
    LoginHandler = Callable[[str], Awaitable[None]]
    LogoutHandler = Callable[[], Awaitable[None]]
    AuthStatusHandler = Callable[[], Awaitable[AuthStatus]]

# A plain function may hand back a generator or a coroutine it made; one that says nothing, or this, does not.
_NOT_ASYNC: Final = (None, type(None), str, "None", "str", "str | None")
# What the compiler marks `async def` with, without and with a `yield` in it (inspect.CO_COROUTINE, CO_ASYNC_GENERATOR).
_COROUTINE: Final = 0x80
_ASYNC_GENERATOR: Final = 0x200


class SessionFolders(Protocol):
    """What an agent that works elsewhere than in the client's folder says of the folders of its sessions."""

    async def choose(self, request: "NewSession") -> str:
        """Return the folder that a new session works in: the client's, or one that stands for it."""

    async def related(self, cwd: str) -> "Sequence[str]":
        """Return the folders whose sessions are found where those of the client's folder are looked for."""

    async def marked(self, sessions: "Sequence[SessionInfo]") -> "list[SessionInfo]":
        """Return the sessions of a list, with what a client may know of their folders in `_meta`."""


class AgentCore:
    """What the author of an agent has set and registered, as the connections of its clients use it.

    Frozen in practice once the agent serves: decorators fill it before. Only `open_sessions` changes then, and `store`
    at its first use.
    """

    def __init__(
        self,
        info: Implementation,
        *,
        options: "list[Option]",
        capabilities: AgentCapabilities,
        auth_methods: list[AuthMethod],
        store: "Store | Callable[[], Store] | None",
        resume: str | None,
        steering: bool,
        dialect: str,
        rules: DialectRules,
        versions: tuple[int, ...],
    ) -> None:
        self.info = info
        self.options: Final = options
        # The first new session goes on with this stored one, or with the newest of its folder when this is empty.
        self.resume: Final = resume
        # True: a prompt that comes while a turn runs waits for `session.queued_prompts()`. False: it is rejected.
        self.steering: Final = steering
        # An agent that was given a dialect by name speaks that and nothing else; empty: the client's version decides.
        self.dialect: Final = dialect
        self.rules: Final = rules
        self.versions: Final = versions
        # The ids of the sessions that are open on any connection.
        self.open_sessions: Final[set[str]] = set()
        # Where sessions work, if that may be elsewhere than in the folder that a client names; None: it may not.
        self.folders: SessionFolders | None = None
        self.prompt_handler: PromptHandler | None = None
        self.commands: Final[dict[str, tuple[Command, PromptHandler]]] = {}
        self.session_handlers: Final[list[SessionHandler]] = []
        self.closing_handlers: Final[list[SessionHandler]] = []
        # Called with the id of a session that was deleted, whether it was open or not.
        self.deletion_handlers: Final[list[DeletionHandler]] = []
        self.option_handlers: Final[list[OptionHandler]] = []
        # Asked before a new value counts for anything that runs: None, or what refuses it when it is awaited.
        self.option_checks: Final[list[OptionCheck]] = []
        # Asked before a prompt is recorded or begins anything; `RequestFailed` is the reply to it.
        self.prompt_checks: Final[list[PromptCheck]] = []
        # By the id of an option that takes more values than it lists: what makes all options, once it has a value.
        self.option_setters: Final[dict[str, OptionSetter]] = {}
        # What rewinds a session, which no turn of its own changes meanwhile; None: the agent cannot.
        self.rewind_handler: RewindHandler | None = None
        self.extensions: Final[dict[str, ExtensionHandler]] = {}
        self.notifications: Final[dict[str, NotificationHandler]] = {}
        self.login_handler: LoginHandler | None = None
        self.logout_handler: LogoutHandler | None = None
        self.auth_status_handler: AuthStatusHandler | None = None
        # Called with every failure beside stderr, which many editors throw away.
        self.also_report: Callable[[Exception], None] | None = None
        # Printed for a person who has started us by hand, where a client should be.
        self.at_a_terminal = "waiting for an ACP client on stdin"
        # The store; None if sessions are not stored, or before `open_store` has made it.
        self.store: Store | None = None if callable(store) else store
        self._make_store = store if callable(store) else None
        self._capabilities = capabilities
        self._auth_methods = auth_methods

    def __repr__(self) -> str:
        stored = "no store" if self.store is None and self._make_store is None else "stored"
        return f"<AgentCore {self.info.name} {stored} open={len(self.open_sessions)} commands={len(self.commands)}>"

    def open_store(self) -> "Store | None":
        """Return the store, made now if the author gave a function that makes it; None if sessions are not stored."""
        # Made at the first use, which is after `initialize`: importing SQLite and looking at the folder take a while.
        if self.store is None and self._make_store is not None:
            made = self._make_store()
            check_store(made)
            self.store = made
        return self.store

    def check(self) -> None:
        """Raise `UsageError` if the agent cannot be served: it has no prompt handler."""
        if self.prompt_handler is None:
            raise UsageError("the agent has no prompt handler; decorate an async function with @agent.prompt")

    def hello(self) -> AgentHello:
        """Return the reply to `initialize`. Only what works is claimed."""
        can = self._capabilities
        return AgentHello(
            self.info,
            replace(
                can,
                logout=can.logout or self.logout_handler is not None,
                auth_status=can.auth_status or self.auth_status_handler is not None,
                steering=can.steering or self.steering,
                rewind=can.rewind or self.rewind_handler is not None,
            ),
            self._auth_methods,
        )

    def handle_prompt(self, session: "Session", prompt: "Prompt") -> "Work":
        """Call the handler that this prompt is for: of a slash command, or the prompt handler."""
        # Most agents have none: then the prompt need not be split into words.
        if self.commands:
            name, _ = prompt.command
            if name in self.commands:
                return self.commands[name][1](session, prompt)
        assert self.prompt_handler is not None
        return self.prompt_handler(session, prompt)

    async def login(self, request: "Login") -> Reply:
        """Log in. `RequestFailed` if the agent has no handler for it."""
        if self.login_handler is None:
            raise RequestFailed(METHOD_NOT_FOUND, "Method not found")
        await self.login_handler(request.method_id)
        return Done()

    async def logout(self, request: "Logout") -> Reply:
        """Log out. `RequestFailed` if the agent has no handler for it."""
        if self.logout_handler is None:
            raise RequestFailed(METHOD_NOT_FOUND, "Method not found")
        await self.logout_handler()
        return Done()

    async def auth_status(self, request: "GetAuthStatus") -> Reply:
        """Return whether a login is needed. `RequestFailed` if the agent has no handler for it."""
        if self.auth_status_handler is None:
            raise RequestFailed(METHOD_NOT_FOUND, "Method not found")
        return await self.auth_status_handler()

    def report(self, error: Exception) -> None:
        """Print the traceback of a handler to stderr. The client gets nothing but that it failed."""
        import traceback

        warn("".join(traceback.format_exception(error)))
        if self.also_report is not None:
            self.also_report(error)


def warn(text: str) -> None:
    """Write to stderr, for the people who run this agent: stdout belongs to the protocol, and stderr may be closed."""
    try:
        sys.stderr.write(text)
    except (OSError, ValueError, AttributeError):
        pass


# -- checks ---------------------------------------------------------------------------------------------------------


def check_handler(handler: Callable[..., object], decorator: str, *parameters: str, generators: bool = False) -> None:
    """Raise `UsageError`, which names the fix, unless a handler is async and takes these parameters."""
    if _is_plain(handler, len(parameters), generators=generators):
        return
    import inspect  # an agent starts in the time this takes; few handlers need it

    if not callable(handler):
        raise UsageError(f"@{decorator} decorates a function, not {handler!r}")
    function = inspect.unwrap(handler)
    while isinstance(function, partial):
        function = inspect.unwrap(function.func)
    name = getattr(function, "__name__", type(function).__name__)
    if inspect.isasyncgenfunction(function) and not generators:
        raise UsageError(f"@{decorator}: {name}() must not yield; say things with the session")
    # A callable object may have an async `__call__`, and a plain function may return a coroutine: those that are
    # certainly wrong are refused, the rest is checked when it is called (`turn._checked`).
    if inspect.isroutine(function) and not _is_async(function):
        raise UsageError(f"@{decorator} needs an async function: write `async def {name}({', '.join(parameters)})`")
    try:
        inspect.signature(handler).bind(*parameters)
    except TypeError as error:
        call = f"{name}({', '.join(parameters)})"
        raise UsageError(f"@{decorator} calls {call}, which it does not take: {error}") from None


def check_agent(
    name: object, *, version: object, title: object, resume: object, capabilities: object, store: object
) -> None:
    """Raise `UsageError` unless an agent can be made of these arguments."""
    if not isinstance(name, str) or not name:
        raise UsageError(f'an agent has a name: write `Agent("greeter")`, not Agent({name!r})')
    for word, value in (("version", version), ("title", title), ("resume", resume)):
        if not isinstance(value, str) and (value is not None or word == "version"):
            raise UsageError(f'the {word} of an agent is text, not {value!r}: write `Agent({name!r}, {word}="1.0")`')
    if capabilities is not None and not isinstance(capabilities, AgentCapabilities):
        raise UsageError(f"capabilities are AgentCapabilities(...), not {capabilities!r}")
    check_store(store)
    if isinstance(store, type):
        raise UsageError("a store is made of a folder: write `store=SqliteStore('folder')`, not the class")


def check_store(store: object) -> None:
    """Raise `UsageError` unless `store` is a store, or a function that makes one."""
    if store is not None and not callable(store) and not callable(getattr(store, "create", None)):
        raise UsageError(f"a store is a SqliteStore or the like, not {store!r}: write `store=SqliteStore('folder')`")


def check_auth_methods(methods: object) -> list[AuthMethod]:
    """Return the login methods as a list; raise `UsageError` for anything else."""
    if isinstance(methods, Iterable):
        listed = list(methods)
        if all(isinstance(method, AuthMethod) for method in listed):
            return listed
    raise UsageError("auth_methods are a list: write `auth_methods=[AgentAuth('login', 'Log in')]`")


def extension_name(method: str) -> str:
    """Return the method name of an extension; raise `UsageError` unless it starts with an underscore."""
    if not isinstance(method, str):
        raise UsageError('name the extension method: write @agent.extension("_name")')
    if not method.startswith("_"):
        raise UsageError(f"extension methods start with an underscore: use {'_' + method!r}")
    return method


def command_name(name: object, description: object = "", hint: object = None) -> str:
    """Return the name of a slash command without the slash; raise `UsageError` for one that is none."""
    if not isinstance(name, str) or not isinstance(description, str) or not (hint is None or isinstance(hint, str)):
        raise UsageError('name the command: write @agent.command("name", "what it does")')
    bare = str.__str__(name).removeprefix("/")
    if not bare or bare.split() != [bare] or bare.startswith("/"):
        raise UsageError(f"a slash command is one word: {name!r} cannot be typed")
    return bare


def _is_plain(handler: object, parameters: int, *, generators: bool) -> bool:
    """Return whether nothing can be wrong: `async def name(a, b)` with that many parameters, not wrapped, not bound."""
    # `__dict__`: a decorator has left something there, such as `__wrapped__`, so the signature may be another.
    if type(handler) is not FunctionType or handler.__dict__:
        return False
    code = handler.__code__
    wanted = _COROUTINE | _ASYNC_GENERATOR if generators else _COROUTINE
    return bool(code.co_flags & wanted) and code.co_argcount == parameters and not code.co_kwonlyargcount


def _is_async(function: Callable[..., object]) -> bool:
    import inspect

    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return True
    return getattr(function, "__annotations__", {}).get("return") not in _NOT_ASYNC
