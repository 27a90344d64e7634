"""Transports to programs: each call starts one."""

import os
from collections.abc import Callable, Mapping, Sequence

from dragoman.host.environment import child_environment
from dragoman.host.process import Child
from dragoman.transports.child import ChildTransport


def spawner(command: Sequence[str], *, cwd: str | None, env: Mapping[str, str]) -> Callable[[], ChildTransport]:
    """How a program is started; `env` is added to a scrubbed copy of our environment."""

    def opened() -> ChildTransport:
        return ChildTransport(
            Child.start(list(command), cwd=cwd or os.getcwd(), env=child_environment(os.environ, env))
        )

    return opened
