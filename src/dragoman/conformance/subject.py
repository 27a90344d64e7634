"""What is judged: an agent that is started, or one behind an address. Each row gets a connection of its own."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from dragoman.conformance.rows import RowTransport
from dragoman.conformance.verdicts import NotTested
from dragoman.transports.contract import Transport

_POLL_SECONDS: Final = 0.02


class OpenedSubject(Protocol):
    """A running subject with a connection to it. Closing the transport ends it."""

    @property
    def transport(self) -> Transport:
        """The connection, not started yet."""

    def stderr_tail(self) -> str:
        """Return the end of what it wrote to stderr."""

    def kill(self) -> None:
        """Kill it at once, as `kill -9` does. Raise `NotTested` where it is not ours."""

    async def processes(self) -> int:
        """Return how many processes of it live. Raise `NotTested` where they cannot be seen."""


class Subject(Protocol):
    """Opens the subject as often as it is asked."""

    @property
    def name(self) -> str:
        """What the report calls it."""

    @property
    def kind(self) -> RowTransport:
        """The transport that it is reached over."""

    async def open(self) -> OpenedSubject:
        """Start it, or connect to it. Raise a `DragomanError` if that cannot be done."""


class StartedSubject:
    """An agent that is started for each row, in a folder, with pipes."""

    kind: RowTransport = "stdio"

    def __init__(self, command: Sequence[str], cwd: str, env: Mapping[str, str]) -> None:
        self.name: Final = " ".join(command)
        self._command: Final = list(command)
        self._cwd: Final = cwd
        self._env: Final = dict(env)

    async def open(self) -> OpenedSubject:
        """Start the command. Raise `StartFailed`."""
        return _OpenedCommand(self._command, self._cwd, self._env)


class _OpenedCommand:
    def __init__(self, command: Sequence[str], cwd: str, env: Mapping[str, str]) -> None:
        from dragoman.transports.child import ChildTransport

        self._child_transport: Final = ChildTransport.spawn(command, cwd=cwd, env=env)
        self.transport: Final[Transport] = self._child_transport

    def stderr_tail(self) -> str:
        return self._child_transport.child.stderr_tail()

    def kill(self) -> None:
        self._child_transport.child.kill_now()

    async def processes(self) -> int:
        return len(await asyncio.to_thread(self._child_transport.child.members))


class AddressSubject:
    """An agent behind an address, which runs whether it is judged or not."""

    def __init__(self, url: str, open_transport: Callable[[], Transport]) -> None:
        self.name: Final = url
        self.kind: Final[RowTransport] = "websocket" if url.startswith("ws") else "http"
        self._open_transport: Final = open_transport

    async def open(self) -> OpenedSubject:
        """Return a new connection to the address."""
        return _OpenedAddress(self._open_transport())


class _OpenedAddress:
    def __init__(self, transport: Transport) -> None:
        self.transport: Final = transport

    def stderr_tail(self) -> str:
        return ""

    def kill(self) -> None:
        raise NotTested("a process behind an address is not ours to kill", "check the agent's command as well")

    async def processes(self) -> int:
        raise NotTested("the processes behind an address cannot be seen", "check the agent's command as well")


async def wait_until_gone(opened: OpenedSubject, seconds: float) -> int:
    """Wait until no process of the subject lives, so long at most; return how many still do."""
    deadline = time.monotonic() + seconds
    # No event tells of the end of a process that is not our child.
    while (left := await opened.processes()) and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(_POLL_SECONDS)
    return left
