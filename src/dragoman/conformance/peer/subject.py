"""The peer as a subject: every `open` is a new process of it, over memory, with the disk of those before."""

from typing import Final

from dragoman.conformance.peer.agent import PeerAgent
from dragoman.conformance.peer.state import PeerDisk
from dragoman.conformance.peer.wire_end import PeerWire
from dragoman.conformance.rows import RowTransport
from dragoman.conformance.subject import OpenedSubject
from dragoman.transports.contract import Transport
from dragoman.transports.memory import memory_pair

PIPE_BYTES: Final = 64 * 1024


class PeerSubject:
    """An agent of one version with one switch, or with none: then it keeps to every row."""

    kind: RowTransport = "stdio"

    def __init__(self, version: int, switch: str = "") -> None:
        self.name: Final = f"peer of version {version}{f' with {switch}' if switch else ''}"
        self._version: Final = version
        self._switch: Final = switch
        self._disk: Final = PeerDisk()

    async def open(self) -> OpenedSubject:
        """Start a process of the peer."""
        ours, theirs = memory_pair(PIPE_BYTES)
        wire = PeerWire(theirs, self._switch)
        agent = PeerAgent(wire, self._disk, self._version)
        wire.start()
        return _OpenedPeer(ours, agent, wire)


class _OpenedPeer:
    def __init__(self, transport: Transport, agent: PeerAgent, wire: PeerWire) -> None:
        self.transport: Final = transport
        self._agent: Final = agent
        self._wire: Final = wire

    def stderr_tail(self) -> str:
        return ""

    def kill(self) -> None:
        self._agent.on_kill()
        self._wire.end()

    async def processes(self) -> int:
        return self._wire.processes
