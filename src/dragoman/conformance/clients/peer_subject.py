"""The proving client as a subject: every start is a run of it, over memory."""

import asyncio
import os
import tempfile
from typing import Final

from dragoman.conformance.clients.peer import PeerClient
from dragoman.conformance.clients.scenarios import Scenario
from dragoman.conformance.clients.subject import Accept, RunningClient
from dragoman.transports.memory import memory_pair

PIPE_BYTES: Final = 64 * 1024


class PeerClientSubject:
    """A client of one version with one switch, or with none: then it keeps to every row. `lends`: files and more."""

    def __init__(self, version: int, switch: str = "", *, lends: bool = True) -> None:
        self.name: Final = f"client of version {version}{f' with {switch}' if switch else ''}"
        self._version: Final = version
        self._switch: Final = switch
        self._lends: Final = lends

    async def start(self, scenario: Scenario, accept: Accept, folder: str) -> RunningClient:
        """Start a run."""
        return _PeerRun(self._version, self._switch, scenario, accept, lends=self._lends)


class _PeerRun:
    ends_by_itself = True

    def __init__(self, version: int, switch: str, scenario: Scenario, accept: Accept, *, lends: bool) -> None:
        self._place: Final = tempfile.TemporaryDirectory(prefix="dragoman-check-")
        folder = os.path.join(os.path.realpath(self._place.name), "project")
        os.mkdir(folder)
        ours, theirs = memory_pair(PIPE_BYTES)
        self._ours: Final = ours
        self._is_closed = False
        self._leaves: Final = switch == "leaves_stubborn_agents"
        self._peer: Final = PeerClient(theirs, version, switch, folder, lends=lends)
        self._peer.holds_questions = scenario.is_interrupted
        self._task: Final = asyncio.get_running_loop().create_task(self._run())
        accept(ours, self._lives)

    async def _run(self) -> int:
        try:
            return await self._peer.run()
        finally:
            await self._peer.close()
            self._is_closed = True

    async def _lives(self) -> bool:
        return self._leaves or not self._is_closed

    async def wait(self, seconds: float) -> int | None:
        done, _ = await asyncio.wait([self._task], timeout=seconds)
        return self._task.result() if done else None

    def interrupt(self) -> bool:
        self._peer.interrupted.set()
        return True

    def output(self) -> str:
        return self._peer.output

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._place.cleanup()
