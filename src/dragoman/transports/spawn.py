"""`spawner`: a transport to a program, which each call starts once more."""

import os
from collections.abc import Callable, Mapping, Sequence

from dragoman.host.environment import child_environment
from dragoman.host.process import Child
from dragoman.transports.child import ChildTransport


def spawner(command: Sequence[str], *, cwd: str | None, env: Mapping[str, str]) -> Callable[[], ChildTransport]:
    """Return a function that starts a program; `env` is added to our environment, from which secrets are removed."""

    def start() -> ChildTransport:
        return ChildTransport(
            Child.start(list(command), cwd=cwd or os.getcwd(), env=child_environment(os.environ, env))
        )

    return start
