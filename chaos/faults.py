"""What a campaign does to its machines. Each fault is injected, lasts, and is healed by the time its function returns.

A fault that takes the database away notes from when to when: nothing can be said meanwhile, and that is promised.
"""

import asyncio
import random
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from chaos.machines import NAMES, Machines, Node

# Of a lease: beyond it, so that another node takes over.
_BEYOND: Final = (1.1, 1.6)


class Nemesis:
    """Injects faults, one after the other. `away`: from when to when the database was."""

    def __init__(self, machines: Machines, seed: int) -> None:
        self.machines: Final = machines
        self.away: Final[list[tuple[float, float]]] = []
        self._random: Final = random.Random(seed)

    def __repr__(self) -> str:
        return f"<Nemesis {self.machines!r}>"

    def choose(self) -> str:
        """Return the name of the next fault."""
        names = list(FAULTS)
        return self._random.choices(names, [FAULTS[name][0] for name in names])[0]

    async def inject(self, name: str) -> None:
        """Inject a fault, and return when it is healed."""
        await FAULTS[name][1](self)

    # -- nodes ---------------------------------------------------------------------------------------------------------

    async def kill_node(self) -> None:
        """Kill a node as a lost machine would; it is started again."""
        self._node().signal(signal.SIGKILL)
        await asyncio.sleep(self._random.random())

    async def pause_node(self) -> None:
        """Stop a node for longer than its lease, then let it go on, if it is still there."""
        node = self._node()
        node.signal(signal.SIGSTOP)
        await self._last()
        node.signal(signal.SIGCONT)

    async def cut_node(self) -> None:
        """Take the link of a node down for longer than its lease."""
        node = self._node()
        node.machine.cut()
        await self._last()
        node.machine.heal()

    async def deafen_node(self) -> None:
        """Drop what the database, or another node, sends to a node; what the node sends arrives."""
        node = self._node()
        others = [one.machine for one in self.machines.nodes.values() if one is not node]
        others += [self.machines.pair.primary.machine, self.machines.pooler.machine]
        node.machine.be_deaf_to(self._random.choice(others))
        await self._last()
        node.machine.heal()

    async def lose_packets(self) -> None:
        """Drop a fifth of what arrives at a node."""
        node = self._node()
        node.machine.lose(20)
        await self._last()
        node.machine.heal()

    async def roll(self) -> None:
        """Drain and restart every node, one after the other."""
        for name in NAMES:
            starts = self.machines.nodes[name].starts
            await self.machines.drain(name)
            async with asyncio.timeout(60):
                while self.machines.nodes[name].starts == starts:
                    await asyncio.sleep(0.1)
            await self.machines.nodes[name].listening()

    # -- the way to the database ---------------------------------------------------------------------------------------

    async def delay_database(self) -> None:
        """Have everything that node b sends to the database arrive late."""
        self.machines.proxy.delay = self.machines.lease * self._random.choice((0.1, 0.4))
        await self._last()
        self.machines.proxy.delay = 0.0

    async def hold_database(self) -> None:
        """Hold what node b sends to the database for longer than its lease, and deliver it then."""
        self.machines.proxy.hold()
        await self._last()
        self.machines.proxy.release()

    async def kill_pooler(self) -> None:
        """Kill the pooler in front of the database, and start it again."""
        self.machines.pooler.kill()
        await asyncio.sleep(self._random.random())
        self.machines.pooler.start(self.machines.pair.primary)

    # -- the database --------------------------------------------------------------------------------------------------

    async def kill_database(self) -> None:
        """Kill every process of the primary, and start it again."""
        primary = self.machines.pair.primary
        async with self._away():
            await asyncio.to_thread(primary.kill)
            await asyncio.sleep(self._random.random() * self.machines.lease)
            primary.start()
            await primary.ready()

    async def cut_database(self) -> None:
        """Take the link of the primary down for a moment."""
        machine = self.machines.pair.primary.machine
        async with self._away():
            machine.cut()
            await asyncio.sleep(self._random.random() * self.machines.lease)
            machine.heal()

    async def fail_over(self) -> None:
        """Lose the primary, by a kill or by its link; promote the standby; make the old primary a standby of that."""
        pair = self.machines.pair
        async with self._away():
            if self._random.random() < 0.5:
                await asyncio.to_thread(pair.primary.kill)
            else:
                pair.primary.machine.cut()
            await asyncio.sleep(self._random.random())
            await pair.fail_over()
            self.machines.pooler.kill()
            self.machines.pooler.start(pair.primary)
        await asyncio.to_thread(pair.standby.kill)
        pair.standby.machine.heal()
        await pair.renew_standby()

    async def fill_disk(self) -> None:
        """Leave no room on the primary's disk; after a while there is some again, and it runs."""
        primary = self.machines.pair.primary
        async with self._away():
            await asyncio.to_thread(primary.fill_disk)
            await asyncio.sleep(self.machines.lease * self._random.random())
            primary.free_disk()
            await asyncio.sleep(0.2)
            # It may have ended itself because its log could not be written.
            if not primary.runs:
                primary.start()
            await primary.ready()

    def _node(self) -> Node:
        return self.machines.nodes[self._random.choice(NAMES)]

    async def _last(self) -> None:
        await asyncio.sleep(self.machines.lease * self._random.uniform(*_BEYOND))

    @asynccontextmanager
    async def _away(self) -> AsyncIterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.away.append((began, time.monotonic()))


# How often each is chosen, and what it is.
FAULTS: Final[Mapping[str, tuple[int, Callable[[Nemesis], Awaitable[None]]]]] = {
    "kill a node": (20, Nemesis.kill_node),
    "pause a node": (12, Nemesis.pause_node),
    "cut a node off": (12, Nemesis.cut_node),
    "loss in one direction": (10, Nemesis.deafen_node),
    "lost packets": (4, Nemesis.lose_packets),
    "rolling restart": (2, Nemesis.roll),
    "late packets": (4, Nemesis.delay_database),
    "held packets": (8, Nemesis.hold_database),
    "kill the pooler": (5, Nemesis.kill_pooler),
    "kill the database": (10, Nemesis.kill_database),
    "cut the database off": (6, Nemesis.cut_database),
    "promote the standby": (4, Nemesis.fail_over),
    "full disk": (3, Nemesis.fill_disk),
}
