"""Where the gateway's agents come from: a task in this process, a process for each principal (`principal_processes`), a
program of this machine, or an address.

`AgentSource` is all that the gateway knows of the agent it serves; it is made by the command line. How many processes
run and when they are stopped is decided by `agent_side` and `agent_pool` within its bounds.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, NamedTuple

from dragoman import limits
from dragoman.dialects.handshake.initialize import SPOKEN
from dragoman.transports.contract import Transport
from dragoman.transports.memory import memory_pair

# Bytes each side may write before the other reads; a little more than one read.
_PIPE_BYTES: Final = 4 * limits.READ_BYTES
# Programs that run at once for one server; each may hold some hundred MiB.
PROCESSES: Final = 64


# Returns a transport to a fresh agent for a principal (empty: for no one of them).
OpenAgent = Callable[[str], Transport]


async def _close_nothing() -> None:
    """Default `close` of a source: nothing is left of it when its transports are closed."""


class AgentSource(NamedTuple):
    """Where agents come from: a transport to a fresh one, and the versions it is known to speak.

    An agent is spoken to in the version of its client where it can be, because then nothing is lost between them.

    - `each_session`: a process for every session; else one for all sessions of a connection.
    - `idle_seconds`: one that has nothing to do for so long is stopped, and started when it is needed; 0: never.
    - `restarts`: so often in a row one that dies is started again.
    - `most`: so many run at once; 0: as many as there are connections.
    - `start_seconds`: how long its reply to `initialize` may take, at most `limits.START_SECONDS`; 0: exactly that.
    - `renames`: clients know its sessions by ids of ours, because each of its processes may count its own.
    - `each_principal`: all agents of a principal are in one process.
    - `close` is called when the server stops and every transport is closed.
    """

    open: OpenAgent
    versions: tuple[int, ...] = SPOKEN
    dialect: str = ""
    each_session: bool = False
    idle_seconds: float = 0.0
    restarts: int = 3
    most: int = 0
    start_seconds: float = 0.0
    renames: bool = False
    each_principal: bool = False
    close: Callable[[], Awaitable[None]] = _close_nothing

    def versions_for(self, version: int) -> tuple[int, ...]:
        """Return the versions to offer to the agent of a client that asked for `version`; empty: all that we speak."""
        return (version,) if version in self.versions else self.versions


def in_process(
    serve: Callable[[Transport], Coroutine[Any, Any, None]], report: Callable[[Exception], None]
) -> OpenAgent:
    """Return a function that opens a transport to an agent in this process: each gets a task that runs `serve`, such
    as `Agent.serve`, with the other end. `report` is called with an exception of that task."""
    tasks: set[asyncio.Task[None]] = set()

    def done(task: "asyncio.Task[None]") -> None:
        tasks.discard(task)
        # An exception that is not retrieved would only be printed, when the task is collected.
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            report(error)

    def open_transport(principal: str) -> Transport:
        # Bounded as a pipe is, so that an agent in this process waits for slow readers like any other.
        ours, its = memory_pair(_PIPE_BYTES)
        task = asyncio.get_running_loop().create_task(_serve_and_close(serve, its))
        tasks.add(task)
        task.add_done_callback(done)
        # What the agent holds, sessions above all, is free only when its task is done.
        ours.wait_on_close(task)
        return ours

    return open_transport


async def _serve_and_close(serve: Callable[[Transport], Coroutine[Any, Any, None]], transport: Transport) -> None:
    """Serve a connection. An agent that fails hangs up, as a program would: the other end does not wait for it."""
    try:
        await serve(transport)
    finally:
        await transport.close()


def spawn_source(
    command: Sequence[str],
    *,
    cwd: str | None,
    env: Mapping[str, str],
    before: Callable[[], object] = lambda: None,
) -> OpenAgent:
    """Return a function that starts the program, as a transport. It calls `before` first, which may raise."""
    from dragoman.transports.child import ChildTransport

    # `before` is for what can change between two starts: a project's files, for instance.

    def open_transport(principal: str) -> Transport:
        before()
        return ChildTransport.spawn(command, cwd=cwd, env=env)

    return open_transport


def spoken_in(dialect: str) -> tuple[tuple[int, ...], str]:
    """Return the versions that an agent of this dialect speaks, and the dialect's name where it is no version."""
    from dragoman.dialects.vendors.named import pinned_version

    version = pinned_version(dialect) if dialect else None
    return ((), dialect) if version is None else ((version,), "")
