"""The four moments in which a broken variant of a cluster (`chaos.broken`) differs from one that is right.

Each has one session at the node that is hit. In the middle of its turn something happens to that node; its client goes
to another one, which takes the session over and works on it; then the node is healed. A cluster that is right comes
through all of them.
"""

import asyncio
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from chaos.campaign import Campaign
from chaos.check import violations
from chaos.load import Prompter
from chaos.machines import NAMES, Machines

LEASE: Final = 2.0
# Of what the next owner does so much is waited for, and what the last one might still do.
_ACTS: Final = 10
_AFTER_SECONDS: Final = 2.0
_WAIT_SECONDS: Final = 40.0


class Scenario(NamedTuple):
    """Which node is hit, in a turn of so many words and acts, by what, and how that is healed."""

    victim: int
    words: int
    acts: int
    hit: Callable[[Machines], object]
    heal: Callable[[Machines], object]


def _nothing(machines: Machines) -> None:
    pass


SCENARIOS: Final[Mapping[str, Scenario]] = {
    # What it has sent arrives when another node has written behind it.
    "no-fence": Scenario(1, 150, 0, lambda all: all.proxy.hold(), lambda all: all.proxy.release()),
    # The database ends its connections, and it makes no new ones; its agents go on.
    "advisory-lock": Scenario(
        *(0, 5, 200),
        lambda all: all.nodes["a"].machine.cut(),
        lambda all: all.nodes["a"].machine.heal(),
    ),
    # It stands still, while its agents go on.
    "no-freeze": Scenario(
        *(0, 5, 200),
        lambda all: all.nodes["a"].signal(signal.SIGSTOP),
        lambda all: all.nodes["a"].signal(signal.SIGCONT),
    ),
    # Nothing happens to it; but behind the pooler of the next node no notification arrives.
    "notify": Scenario(1, 5, 200, _nothing, _nothing),
}


async def play(folder: Path, name: str, *, is_broken: bool) -> list[str]:
    """Play a scenario, with nodes that are broken in the way of its name or with whole ones; return the violations."""
    scenario = SCENARIOS[name]
    machines = Machines(folder, lease=LEASE, broken=name if is_broken else "")
    campaign = Campaign(machines, sessions=len(NAMES), words=scenario.words, acts=scenario.acts, is_watched=False)
    async with campaign.running(), asyncio.timeout(_WAIT_SECONDS * 3):
        prompter = campaign.prompters[scenario.victim]
        # A notification variant takes every node for alive for its first lease.
        await asyncio.sleep(LEASE)
        before = await _working(machines, prompter, scenario, "")
        scenario.hit(machines)
        prompter.drop()
        await _working(machines, prompter, scenario, before)
        scenario.heal(machines)
        await asyncio.sleep(_AFTER_SECONDS)
        await campaign.end(0)
        return list(violations(await campaign.history()))


async def _working(machines: Machines, prompter: Prompter, scenario: Scenario, other_than: str) -> str:
    """Wait until a session is in the middle of a turn, of another operation than this; return its operation."""
    async with asyncio.timeout(_WAIT_SECONDS):
        while True:
            if scenario.acts:
                own = [act.operation for act in machines.acts.read() if act.session == prompter.name]
            else:
                own = [word.partition(".")[0] for word in prompter.words]
            if own and own[-1] != other_than and own.count(own[-1]) >= _ACTS:
                return own[-1]
            await asyncio.sleep(0.05)
