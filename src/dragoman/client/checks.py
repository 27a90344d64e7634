"""Checks of what a caller gives us, callbacks above all, where it is given: a mistake is raised before it is sent."""

import inspect
import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from dragoman.errors import UsageError


def check_async(callback: Callable[..., Any] | None, name: str, *parameters: str) -> None:
    """Raise `UsageError`, which names the fix, unless a callback can be awaited and has these parameters."""
    if callback is None:
        return
    function = _checked_function(callback, name, parameters)
    if inspect.isroutine(function) and not inspect.iscoroutinefunction(function):
        raise UsageError(f"{name} is awaited: write `async def {_name(function)}({', '.join(parameters)})`")


def check_plain(callback: Callable[..., Any] | None, name: str, *parameters: str) -> None:
    """Raise `UsageError`, which names the fix, unless a callback is a plain function with these parameters."""
    if callback is None:
        return
    function = _checked_function(callback, name, parameters)
    if inspect.iscoroutinefunction(function):
        raise UsageError(f"{name} is called in passing and not awaited: write `def {_name(function)}`, without async")


def check_text(value: object, name: str, example: str) -> None:
    """Raise `UsageError`, with an example of the call, unless a value is text."""
    if not isinstance(value, str):
        raise UsageError(f"{name} is text, not {value!r}: write `{example}`")


def folder_of(cwd: object) -> str:
    """Return the absolute path of a folder; no file is touched. Raise `UsageError` if it is no path."""
    if not isinstance(cwd, (str, os.PathLike)):
        raise UsageError(f"cwd is a folder, not {cwd!r}: write `client.new_session('.')`")
    return os.path.abspath(os.fspath(cwd))


def check_list(values: Iterable[Any], kind: Any, name: str, example: str) -> list[Any]:
    """Return values as a list of one kind. Raise `UsageError` for others, and for text, which is iterable too."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise UsageError(f"{name} is a list, not {values!r}: write `{example}`")
    found = list(values)
    for value in found:
        if not isinstance(value, kind):
            raise UsageError(f"{name} holds something else than it may, {value!r}: write `{example}`")
    return found


def _checked_function(callback: Callable[..., Any], name: str, parameters: tuple[str, ...]) -> Callable[..., Any]:
    if not callable(callback):
        raise UsageError(f"{name} is a function, not {callback!r}")
    try:
        inspect.signature(callback).bind(*parameters)
    except TypeError as error:
        raise UsageError(f"{name} is called with ({', '.join(parameters)}), which it does not take: {error}") from None
    except ValueError:
        pass  # built in: it has no signature to look at
    function: Callable[..., Any] = inspect.unwrap(callback)
    while isinstance(function, partial):
        function = inspect.unwrap(function.func)
    return function


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", "callback").replace("<lambda>", "callback")
