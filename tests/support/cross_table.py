"""Which rows that must hold each broken peer breaks: its own, and those that cannot hold without it.

`python -m tests.support.cross_table` prints the table that `tests/conformance/cross_table.toml` is, for a review: a row
that is in it without a reason is a peer that breaks too much, or a probe that looks at too much.
"""

import asyncio
import sys
import time
import tomllib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from dragoman.conformance.clients.peer_subject import PeerClientSubject
from dragoman.conformance.clients.run import judged, played
from dragoman.conformance.connection import CheckLimits
from dragoman.conformance.peer.subject import PeerSubject
from dragoman.conformance.rows import ROLES, Requirement, Role, load_rows
from dragoman.conformance.run import CheckPlan, check, judge_row
from dragoman.conformance.servers.peer_subject import PeerServerSubject
from dragoman.conformance.servers.run import judge_server_row
from dragoman.conformance.servers.trial import ServerSettings
from dragoman.conformance.trial import CheckSettings
from dragoman.conformance.verdicts import Verdict

TABLE: Final = Path(__file__).parent.parent / "conformance" / "cross_table.toml"
# Longer than where each row is proven alone: here many run at a time.
LIMITS: Final = CheckLimits(answer=0.6, turn=1.2, quiet=0.02, exit=0.2)
# What fails is judged once more with these, a few at a time: a machine that is busy is no mistake of a peer.
PATIENT: Final = CheckLimits(answer=2.5, turn=5.0, quiet=0.05, exit=3.0)
_AT_ONCE: Final = 20
_AGAIN_AT_ONCE: Final = 4
_MUSTS: Final = ("must", "must-if-advertised")


class BrokenPeer(NamedTuple):
    """One peer of the table."""

    role: Role
    version: int
    switch: str

    def __str__(self) -> str:
        return f"{self.role}-v{self.version}-{self.switch}"


def broken_peers() -> Iterator[BrokenPeer]:
    """Every peer with one switch, once."""
    for role in ROLES:
        for version in (1, 2):
            rows = [row for row in load_rows(role) if version in row.versions]
            for switch in dict.fromkeys(row.broken for row in rows):
                yield BrokenPeer(role, version, switch)


def own_rows(peer: BrokenPeer) -> set[str]:
    """The rows that the switch of a peer is there for."""
    rows = load_rows(peer.role)
    return {row.id for row in rows if row.broken == peer.switch and peer.version in row.versions}


def expected_rows(peer: BrokenPeer) -> set[str]:
    """The rows that a peer may break beside its own."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return set(table.get(peer.role, {}).get(str(peer.version), {}).get(peer.switch, []))


async def failed_rows(peer: BrokenPeer) -> set[str]:
    """The rows that must hold, and that a peer fails twice."""
    rows = [row for row in load_rows(peer.role) if peer.version in row.versions and row.tier in _MUSTS]
    once = await _failed(peer, rows, LIMITS, _AT_ONCE)
    doubtful = [row for row in rows if row.id in once - own_rows(peer) - expected_rows(peer)]
    return (once - {row.id for row in doubtful}) | await _failed(peer, doubtful, PATIENT, _AGAIN_AT_ONCE)


async def _failed(peer: BrokenPeer, rows: list[Requirement], limits: CheckLimits, at_once: int) -> set[str]:
    """Those of the rows that a peer fails."""
    slots = asyncio.Semaphore(at_once)
    if peer.role == "client":
        return await _failed_of_client(peer, rows, limits, slots)
    fails = await _agent(peer, limits) if peer.role == "agent" else _server(peer, limits)

    async def judge(row: Requirement) -> str:
        async with slots:
            return row.id if await fails(row) else ""

    return {id for id in await asyncio.gather(*map(judge, rows)) if id}


Fails = Callable[[Requirement], Awaitable[bool]]


async def _agent(peer: BrokenPeer, limits: CheckLimits) -> Fails:
    settings = CheckSettings("/tmp", limits, prompt="hello", slow_prompt="slow", permission_prompt="ask")
    greeted = await check(PeerSubject(peer.version), CheckPlan([], [peer.version]), settings)
    hello = greeted.hellos[peer.version]

    async def fails(row: Requirement) -> bool:
        result = await judge_row(PeerSubject(peer.version, peer.switch), row, peer.version, settings, hello)
        return result.verdict is Verdict.FAIL

    return fails


def _server(peer: BrokenPeer, limits: CheckLimits) -> Fails:
    settings = ServerSettings(prompt="hello", oversized=3 * 1024 * 1024, connections=4)
    settings = settings._replace(answer=limits.answer, turn=limits.turn, quiet=limits.quiet)

    async def fails(row: Requirement) -> bool:
        result = await judge_server_row(PeerServerSubject(peer.version, peer.switch), row, peer.version, settings)
        return result.verdict is Verdict.FAIL

    return fails


async def _failed_of_client(
    peer: BrokenPeer, rows: list[Requirement], limits: CheckLimits, slots: asyncio.Semaphore
) -> set[str]:
    async def of_scenario(scenario: str, *, lends: bool) -> set[str]:
        asked = [row for row in rows if row.scenario == scenario and lends != row.capability.startswith("no ")]
        if not asked:
            return set()
        async with slots:
            subject = PeerClientSubject(peer.version, peer.switch, lends=lends)
            run = await played(subject, scenario, peer.version, limits)
        return {row.id for row in asked if judged(row, run).verdict is Verdict.FAIL}

    scenarios = dict.fromkeys(row.scenario for row in rows)
    found = await asyncio.gather(*(of_scenario(one, lends=lends) for one in scenarios for lends in (True, False)))
    return set().union(*found)


def _print_table() -> None:
    started = time.monotonic()
    found: dict[Role, dict[int, Mapping[str, list[str]]]] = {}
    for peer in broken_peers():
        more = sorted(asyncio.run(failed_rows(peer)) - own_rows(peer))
        if more:
            rows = found.setdefault(peer.role, {}).setdefault(peer.version, {})
            found[peer.role][peer.version] = {**rows, peer.switch: more}
        print(peer, len(more), f"{time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    for role, versions in found.items():
        for version, switches in versions.items():
            print(f"[{role}.{version}]")
            for switch, ids in switches.items():
                print(switch, "=", str(ids).replace("'", '"'))
            print()


if __name__ == "__main__":
    _print_table()
