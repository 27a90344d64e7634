"""The machines of a campaign: three nodes, a primary with its standby, a pooler, and what leads from one to the other.

Node `a` calls the database itself, `b` through a proxy that can hold what it sends, `c` through a pooler that lends a
server for one transaction.
"""

import asyncio
import os
import secrets
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from chaos.acts import ActFile
from chaos.database import PORT, USER, Pair, Pooler
from chaos.network import HUB, Machine, make_hub
from chaos.proxy import DelayProxy

ROOT: Final = Path(__file__).resolve().parent.parent
NAMES: Final = ("a", "b", "c")
_PORT: Final = 8790
_START_SECONDS: Final = 90.0
_AGAIN_SECONDS: Final = 0.3
_SHOWN: Final = "shown this once: "


class Node:
    """A node: a process that is started again when it ends, as a supervisor of services would."""

    def __init__(self, machine: Machine, command: list[str], folder: Path) -> None:
        self.machine: Final = machine
        self.starts = 0
        self.log: Final = folder / f"node-{machine.name}.log"
        # Whether it is started again.
        self.is_wanted = True
        self._command: Final = command
        self._home: Final = folder / f"home-{machine.name}"
        self._process: subprocess.Popen[bytes] | None = None
        # Where in the log the newest process begins.
        self._began = 0

    def __repr__(self) -> str:
        return f"<Node {self.machine.name} starts={self.starts}>"

    async def supervise(self) -> None:
        """Start it, and again whenever it has ended."""
        while True:
            if self.is_wanted and (self._process is None or self._process.poll() is not None):
                self._start()
            await asyncio.sleep(_AGAIN_SECONDS)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process itself, and to nothing that it has started."""
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, number)

    async def listening(self) -> None:
        """Wait until the process says that it listens."""
        async with asyncio.timeout(_START_SECONDS):
            while b"listening on" not in self.log.read_bytes()[self._began :]:
                await asyncio.sleep(0.1)

    def close(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _start(self) -> None:
        self.starts += 1
        self._began = self.log.stat().st_size
        with self.log.open("ab") as log:
            self._process = self.machine.run(
                self._command,
                environment={**os.environ, "DRAGOMAN_HOME": str(self._home), "PYTHONPATH": str(ROOT)},
                output=log,
                cwd=str(ROOT),
            )


class Machines:
    """All of it, started by `start` and ended by `close`. `broken` names a variant of `chaos.broken` for every node."""

    def __init__(self, folder: Path, *, lease: float, broken: str = "", installed: Path | None = None) -> None:
        self.lease: Final = lease
        self.folder: Final = folder
        self.work: Final = folder / "work"
        self.work.mkdir()
        self.acts: Final = ActFile(folder)
        make_hub()
        machines = [Machine(name, number) for number, name in enumerate((*NAMES, "p", "s", "q"), 11)]
        self.pair: Final = Pair((machines[3], machines[4]), folder, installed)
        self.pooler: Final = Pooler(machines[5], folder)
        self.proxy: Final = DelayProxy(lambda: (self.pair.primary.machine.address, PORT))
        self.nodes: dict[str, Node] = {}
        self._machines: Final = machines
        self._broken: Final = broken
        self._tasks: list[asyncio.Task[None]] = []

    def __repr__(self) -> str:
        return f"<Machines nodes={list(self.nodes.values())} {self.pair!r}>"

    @property
    def addresses(self) -> list[str]:
        """The hosts and ports of the nodes."""
        return [f"{machine.address}:{_PORT}" for machine in self._machines[:3]]

    async def start(self) -> str:
        """Start everything; return the token that counts at every node."""
        await self.pair.start()
        self.pooler.start(self.pair.primary)
        proxied = f"postgresql://{USER}@{HUB}:{await self.proxy.start(HUB)}/postgres"
        urls = (self.pair.url, proxied, self.pooler.url)
        secret, script = self.folder / "secret", self.folder / "script.json"
        secret.write_text(secrets.token_hex(32))
        secret.chmod(0o600)
        script.write_text(f'{{"turns": [{{"steps": [{{"say": "{self.acts.program}"}}]}}]}}')
        for machine, url in zip(self._machines[:3], urls, strict=True):
            command = [sys.executable, "-m", "chaos.node", *(["--broken", self._broken] if self._broken else [])]
            command += ["serve", "--store", url, "--node", machine.name, "--home", "shared", "--lease", f"{self.lease}"]
            command += ["--node-url", f"http://{machine.address}:{_PORT}", "--node-secret-file", str(secret)]
            command += ["--host", machine.address, "--port", str(_PORT), "--insecure", "--grace", "3"]
            command += ["--model", f"script:{script}", "--mode", "full-access"]
            self.nodes[machine.name] = node = Node(machine, command, self.folder)
            node.log.touch()
            self._tasks.append(asyncio.create_task(node.supervise()))
            # The first one makes the tables and the token.
            await node.listening()
        shown = self.nodes[NAMES[0]].log.read_text()
        return shown.partition(_SHOWN)[2].split()[0]

    async def drain(self, name: str) -> None:
        """Have a node hand its sessions over and stop, as an operator would; its supervisor starts it again."""
        command = [sys.executable, "-m", "dragoman", "cluster", "drain", name, "--store", self.pair.url]
        process = await asyncio.create_subprocess_exec(
            *(*command, "--timeout", "30"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        await process.wait()

    async def close(self) -> None:
        """Kill everything."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for node in self.nodes.values():
            node.close()
        await self.proxy.close()
        self.pooler.kill()
        with suppress(RuntimeError):
            self.pair.close()
        for machine in self._machines:
            machine.close()
