"""What a caller may give us as a callback: checked where it is given, so a mistake shows before an agent is there."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from dragoman.errors import UsageError


def check_async(callback: Callable[..., Any] | None, name: str, *parameters: str) -> None:
    """A callback that is awaited, or an error that names the fix."""
    if callback is None:
        return
    function = _function(callback, name, parameters)
    if inspect.isroutine(function) and not inspect.iscoroutinefunction(function):
        raise UsageError(f"{name} is awaited: write `async def {_name(function)}({', '.join(parameters)})`")


def check_plain(callback: Callable[..., Any] | None, name: str, *parameters: str) -> None:
    """A callback that is called in passing, or an error that names the fix."""
    if callback is None:
        return
    function = _function(callback, name, parameters)
    if inspect.iscoroutinefunction(function):
        raise UsageError(f"{name} is called in passing and not awaited: write `def {_name(function)}`, without async")


def _function(callback: Callable[..., Any], name: str, parameters: tuple[str, ...]) -> Callable[..., Any]:
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
