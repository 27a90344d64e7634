"""The peers nobody here wrote, and how to start them. A peer that is missing skips the test, or fails it in CI."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.needs import ROOT, need, need_python_v2_sdk, need_typescript_sdk

# What a client saw: the kind of thing, and the value as its SDK understood it. See peers/telling.py.
Line = list[Any]
PROGRAMS = Path(__file__).resolve().parent / "peers"


class Peer(NamedTuple):
    """An official SDK in one version of the protocol; it has a client and an agent in `peers/`."""

    language: str
    version: int

    def command(self, role: str) -> list[str]:
        """The command of its client or its agent."""
        if self.language == "typescript":
            need_typescript_sdk()
            return [need("node"), str(PROGRAMS / f"{role}_v{self.version}.mjs")]
        return [sys.executable, "-m", f"tests.interop.peers.{role}_v{self.version}"]

    def environment(self) -> dict[str, str]:
        """What it needs beside our environment. The Python SDK for v2 lies in a folder of its own."""
        sdk = [str(need_python_v2_sdk())] if self == PYTHON_V2 else []
        return {"PYTHONPATH": os.pathsep.join([*sdk, str(ROOT)])}

    def watched(self, agent: Sequence[str], cwd: Path, home: Path, *plan: dict[str, str]) -> list[Line]:
        """Its client plays a plan with an agent; everything it saw."""
        command = [*self.command("client"), json.dumps(plan), str(cwd), *agent]
        environment = {**os.environ, **self.environment(), "DRAGOMAN_HOME": str(home)}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=50, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def __str__(self) -> str:
        return f"{self.language}-v{self.version}"


PYTHON_V1 = Peer("python", 1)
PYTHON_V2 = Peer("python", 2)
TYPESCRIPT_V1 = Peer("typescript", 1)
TYPESCRIPT_V2 = Peer("typescript", 2)
PEERS = (PYTHON_V1, PYTHON_V2, TYPESCRIPT_V1, TYPESCRIPT_V2)
