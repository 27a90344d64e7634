"""The peers of other projects, and how to start them. A peer that is missing skips the test, or fails it in CI."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.fork_server.client import fork_server
from tests.support.needs import ROOT, need, need_python_v2_sdk, need_typescript_sdk

# What a client saw: the kind of thing, and the value as its SDK understood it. See peers/telling.py.
Line = list[Any]
PROGRAMS = ROOT / "tests" / "interop" / "peers"
_RUN = "import runpy, sys; sys.path.insert(0, {root!r}); runpy.run_module({module!r}, run_name='__main__')"


class Peer(NamedTuple):
    """An official SDK in one version of the protocol; it has a client and an agent in `peers/`."""

    language: str
    version: int

    def command(self, role: str) -> list[str]:
        """The command of its client or its agent."""
        if self.language == "typescript":
            need_typescript_sdk()
            return [need("node"), str(PROGRAMS / f"{role}_v{self.version}.mjs")]
        return self.python(f"tests.interop.peers.{role}_v{self.version}")

    def python(self, module: str) -> list[str]:
        """The command of a program on its SDK. That for v1 is imported once, and then forked."""
        if self == PYTHON_V2:
            return [sys.executable, "-m", module]
        return fork_server().command(_RUN.format(root=str(ROOT), module=module), imports="acp")

    def environment(self) -> dict[str, str]:
        """What it needs beside our environment. The Python SDK for v2 lies in a folder of its own."""
        sdk = [str(need_python_v2_sdk())] if self == PYTHON_V2 else []
        return {"PYTHONPATH": os.pathsep.join([*sdk, str(ROOT)])}

    def __str__(self) -> str:
        return f"{self.language}-v{self.version}"


PYTHON_V1 = Peer("python", 1)
PYTHON_V2 = Peer("python", 2)
TYPESCRIPT_V1 = Peer("typescript", 1)
TYPESCRIPT_V2 = Peer("typescript", 2)
PEERS = (PYTHON_V1, PYTHON_V2, TYPESCRIPT_V1, TYPESCRIPT_V2)


class Clients:
    """The clients of the peers: a process for each, which plays one plan after another, each with an agent of its own.

    A client that fails is ended, and the next test that wants it has a new one.
    """

    def __init__(self) -> None:
        self._running: dict[Peer, subprocess.Popen[str]] = {}

    def watched(self, peer: Peer, agent: Sequence[str], cwd: Path, home: Path, *plan: dict[str, str]) -> list[Line]:
        """A peer's client plays a plan with an agent; everything it saw."""
        client = self._running.pop(peer, None) or _started(peer)
        env = {"DRAGOMAN_HOME": str(home)}
        try:
            lines = _played(client, {"plan": plan, "cwd": str(cwd), "agent": agent, "env": env})
        except BaseException:
            _end(client)
            raise
        self._running[peer] = client
        return lines

    def close(self) -> None:
        """End them all; nothing is being played any more."""
        for client in self._running.values():
            _end(client)


def _started(peer: Peer) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    environment = {**os.environ, **peer.environment()}
    return subprocess.Popen(peer.command("client"), env=environment, stdin=pipe, stdout=pipe, text=True)


def _played(client: "subprocess.Popen[str]", task: dict[str, Any]) -> list[Line]:
    assert client.stdin is not None and client.stdout is not None
    client.stdin.write(json.dumps(task) + "\n")
    client.stdin.flush()
    lines: list[Line] = []
    for line in client.stdout:
        lines.append(json.loads(line))
        if lines[-1] == ["done", None]:
            return lines[:-1]
    raise AssertionError(f"the client ended with {client.wait()} after {lines}")


def _end(client: "subprocess.Popen[str]") -> None:
    with client:  # which closes its pipes and waits for it
        client.kill()
