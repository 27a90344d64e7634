"""Who is measured: how each peer's agent and client are started, and with which environment."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench import install

BENCH: Final = install.ROOT / "bench"
PEER_FILES: Final = BENCH / "peers"
RAW_AGENT: Final = (sys.executable, str(BENCH / "raw_agent.py"))


@dataclass(frozen=True)
class Peer:
    """One implementation: an agent program and a client program that do the same work."""

    name: str
    title: str
    agent: tuple[str, ...]
    client: tuple[str, ...]
    """Takes `SCENARIO COUNT -- AGENT...`, starts that agent itself, prints one JSON object."""
    environment: Mapping[str, str]
    prepare: Callable[[], None]
    """Makes the peer runnable, or raises InstallFailed."""


def python_peer(name: str, title: str, *path: Path, agent: Path, client: str, prepare: Callable[[], None]) -> Peer:
    return Peer(
        name=name,
        title=title,
        agent=(sys.executable, str(agent)),
        client=(sys.executable, "-m", client),
        environment=_environment(path),
        prepare=prepare,
    )


def _environment(path: tuple[Path, ...]) -> dict[str, str]:
    """Ours without PYTHON* (PYTHONDONTWRITEBYTECODE alone would multiply every start), plus this peer's path."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NODE_"))}
    return clean | {"PYTHONPATH": os.pathsep.join(map(str, (install.ROOT, *path)))}


def _nothing() -> None:
    """Ours and the floor need no installing."""


PEERS: Final[Mapping[str, Peer]] = {
    peer.name: peer
    for peer in (
        python_peer(
            "ours",
            "dragoman",
            install.ROOT / "src",
            agent=BENCH / "ours_agent.py",
            client="bench.ours_client",
            prepare=_nothing,
        ),
        python_peer(
            "py",
            "official-py",
            install.PYTHON_PEERS,
            agent=PEER_FILES / "py_agent.py",
            client="bench.peers.py_client",
            prepare=install.ensure_python_sdk,
        ),
        Peer(
            name="ts",
            title="official-ts",
            agent=("node", str(PEER_FILES / "ts_agent.mjs")),
            client=("node", str(PEER_FILES / "ts_client.mjs")),
            environment=_environment(()),
            prepare=install.ensure_typescript_sdk,
        ),
        python_peer(
            "floor",
            "asyncio-floor",
            agent=PEER_FILES / "floor_agent.py",
            client="bench.peers.floor_client",
            prepare=_nothing,
        ),
    )
}
