"""Play one scenario with a client, and see how it ends."""

import asyncio
import time
from typing import Final

from dragoman.conformance.clients.runs import ClientRun
from dragoman.conformance.clients.scenarios import Scenario
from dragoman.conformance.clients.script import ScenarioAgent
from dragoman.conformance.clients.subject import ClientSubject, Lives, RunningClient
from dragoman.conformance.connection import CheckLimits
from dragoman.transports.contract import Transport

_LOOK_SECONDS: Final = 0.02


async def play(subject: ClientSubject, scenario: Scenario, version: int, limits: CheckLimits, folder: str) -> ClientRun:
    """Run the client once. Raise a `DragomanError` if it cannot be started."""
    stage = _Stage(scenario, version, limits)
    running = await subject.start(scenario, stage.accept, folder)
    try:
        code = await stage.watch(running)
        left_open = 0 if code is None else await stage.left_open()
        # What the client printed last may still be in the pipe.
        await asyncio.sleep(_LOOK_SECONDS)
        return ClientRun(
            version,
            tuple(stage.agents),
            exit_code=code,
            output=running.output(),
            is_hung=code is None,
            was_interrupted=stage.was_interrupted,
            left_open=left_open,
            ends_by_itself=running.ends_by_itself,
        )
    finally:
        await running.close()
        await stage.close()


class _Stage:
    """The connections of one run."""

    def __init__(self, scenario: Scenario, version: int, limits: CheckLimits) -> None:
        self.agents: Final[list[ScenarioAgent]] = []
        self.was_interrupted = False
        self._lives: Final[list[Lives]] = []
        self._scenario: Final = scenario
        self._version: Final = version
        self._limits: Final = limits
        self._started = time.monotonic()
        self._has_died = False

    def accept(self, transport: Transport, lives: Lives) -> None:
        """Play our agent on a connection."""
        self.agents.append(ScenarioAgent(transport, self._scenario.script, self._version, self._limits))
        self._lives.append(lives)

    async def watch(self, running: RunningClient) -> int | None:
        """Wait until the client ends, and do what the scenario wants done meanwhile; None if it goes on too long."""
        while (code := await running.wait(_LOOK_SECONDS)) is None:
            if self._scenario.is_interrupted and not self.was_interrupted and self._is_ready_to_stop():
                await self._stop(running)
            if self._scenario.dies and not self._has_died:
                await self._die()
            if self._is_over(running):
                return None
        return code

    async def _stop(self, running: RunningClient) -> None:
        """Stop the turn as a user would: when what was asked before has been read."""
        await asyncio.sleep(self._limits.quiet)
        self.was_interrupted = running.interrupt()

    def _is_ready_to_stop(self) -> bool:
        return any(agent.wants_interrupt.is_set() for agent in self.agents)

    async def _die(self) -> None:
        for agent in self.agents:
            if agent.turn_ended.is_set():
                self._has_died = True
                await agent.connection.close()

    def _is_over(self, running: RunningClient) -> bool:
        """Return whether nothing more is to be waited for."""
        limits, now = self._limits, time.monotonic()
        ended = [agent for agent in self.agents if agent.turn_ended.is_set()]
        waits_for_turn = any(agent.prompts for agent in self.agents) and not ended
        frames = [frame.at for agent in self.agents for frame in agent.connection.recording.frames[-1:]]
        silent = now - max(frames, default=self._started)
        if waits_for_turn:
            return now - self._started > 4 * limits.turn
        if not self.agents:
            return silent > limits.turn
        if running.ends_by_itself:
            return silent > limits.exit
        # A client that a person drives stays: its turn is all that there is to see, and the person has to type.
        return silent > (limits.quiet if ended else limits.turn)

    async def left_open(self) -> int:
        """Return how many of our agents live although the client has ended."""
        deadline = time.monotonic() + self._limits.exit
        while True:
            left = sum([await lives() for lives in self._lives])
            if not left or time.monotonic() > deadline:
                return left
            await asyncio.sleep(_LOOK_SECONDS)

    async def close(self) -> None:
        """End our agents."""
        for agent in self.agents:
            await agent.close()
