"""The former `spawner`, for programs that were written after an earlier how-to page; see `ChildTransport.spawn`."""

import warnings
from collections.abc import Callable, Mapping, Sequence

from dragoman.transports.child import ChildTransport


def spawner(command: Sequence[str], *, cwd: str | None, env: Mapping[str, str]) -> Callable[[], ChildTransport]:
    """Return a function that starts `command`; the former way to `ChildTransport.spawn`, with a `DeprecationWarning`.

    The function raises `StartFailed` if the command cannot be started.
    """
    warnings.warn("spawner(…)() is called ChildTransport.spawn(…) now", DeprecationWarning, stacklevel=2)
    return lambda: ChildTransport.spawn(command, cwd=cwd, env=env)
