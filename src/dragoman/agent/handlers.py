"""What an author may give to an `Agent`: checked where it is given, so a mistake shows before a client is there.

Imported before `initialize` is answered, so it is small; what sessions are given is checked in `checks`.
"""

from collections.abc import Callable, Iterable
from functools import partial
from types import FunctionType
from typing import Final

from dragoman.errors import UsageError
from dragoman.vocabulary.hello import AgentCapabilities, AuthMethod

# A plain function may hand back a generator or a coroutine it made; one that says nothing, or this, does not.
_NOT_ASYNC: Final = (None, type(None), str, "None", "str", "str | None")
# What the compiler marks `async def` with, without and with a `yield` in it (inspect.CO_COROUTINE, CO_ASYNC_GENERATOR).
_COROUTINE: Final = 0x80
_ASYNC_GENERATOR: Final = 0x200


def check_handler(handler: Callable[..., object], decorator: str, *parameters: str, generators: bool = False) -> None:
    """An async function that takes these parameters, or an error that names the fix."""
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
    """Raise unless an agent can be made of these."""
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
    """Raise unless sessions can be kept in it: a store, or a function that makes one."""
    if store is not None and not callable(store) and not callable(getattr(store, "create", None)):
        raise UsageError(f"a store is a SqliteStore or the like, not {store!r}: write `store=SqliteStore('folder')`")


def check_auth_methods(methods: object) -> list[AuthMethod]:
    """Return the ways to log in as a list."""
    if isinstance(methods, Iterable):
        listed = list(methods)
        if all(isinstance(method, AuthMethod) for method in listed):
            return listed
    raise UsageError("auth_methods are a list: write `auth_methods=[AgentAuth('login', 'Log in')]`")


def extension_name(method: str) -> str:
    """A method name of our own, or a clear error."""
    if not isinstance(method, str):
        raise UsageError('name the extension method: write @agent.extension("_name")')
    if not method.startswith("_"):
        raise UsageError(f"extension methods start with an underscore: use {'_' + method!r}")
    return method


def command_name(name: object, description: object = "", hint: object = None) -> str:
    """The name of a slash command, without the slash, or a clear error."""
    if not isinstance(name, str) or not isinstance(description, str) or not (hint is None or isinstance(hint, str)):
        raise UsageError('name the command: write @agent.command("name", "what it does")')
    bare = str.__str__(name).removeprefix("/")
    if not bare or bare.split() != [bare] or bare.startswith("/"):
        raise UsageError(f"a slash command is one word: {name!r} cannot be typed")
    return bare


def _is_plain(handler: object, parameters: int, *, generators: bool) -> bool:
    """Whether nothing can be wrong: `async def name(a, b)` with that many parameters, not wrapped, not bound."""
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
