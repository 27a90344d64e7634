"""One campaign: machines, load and faults, then the checker. `run` returns what became of it."""

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from chaos.check import History, Log, Piece, Row, violations
from chaos.faults import Nemesis
from chaos.load import Nodes, Prompter, Watcher
from chaos.machines import Machines
from dragoman.store.entries import EventEntry, TextEntry, decode_entry
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessage, AgentMessageChunk, AnyEvent, UserMessage, UserMessageChunk

# Every session is served again within a lease and this, for 99 of 100 outages.
SERVE_SECONDS: Final = 5.0
# A campaign ends where one is not served again for so long.
_STUCK_SECONDS: Final = 60.0
_ROWS: Final = """
    SELECT entry.session, sequence, kind, body, fence FROM dragoman.entry
    JOIN (SELECT id FROM dragoman.session) AS known ON known.id = entry.session ORDER BY entry.session, sequence
"""


class Outcome(NamedTuple):
    """What a campaign has shown. `outages`: how long sessions were not served, without what the database was away."""

    faults: Mapping[str, int]
    violations: Sequence[str]
    outages: Sequence[float]
    lease: float
    seconds: float
    prompts: int
    acts: int

    def outage_at(self, share: float) -> float:
        """Return how long this share of all outages was at most."""
        ordered = sorted(self.outages)
        return ordered[math.ceil(len(ordered) * share) - 1] if ordered else 0.0

    @property
    def is_met(self) -> bool:
        """Whether nothing was violated, and sessions were served again in time."""
        return not self.violations and self.outage_at(0.99) <= self.lease + SERVE_SECONDS

    def as_json(self) -> str:
        """Return the figures as a JSON object."""
        figures = {
            "faults": sum(self.faults.values()),
            "by_kind": dict(self.faults),
            "violations": list(self.violations),
            "lease_seconds": self.lease,
            "seconds": round(self.seconds, 1),
            "prompts_ended": self.prompts,
            "acts": self.acts,
            "outages": len(self.outages),
            "serve_again_seconds": {f"p{share:g}": round(self.outage_at(share / 100), 2) for share in (50, 99, 100)},
        }
        return json.dumps(figures, indent=1)


class Campaign:
    """Machines under load. Entered, it runs; what it has shown is read by `history`, when the load has ended."""

    def __init__(
        self,
        machines: Machines,
        *,
        sessions: int = 6,
        words: int = 5,
        acts: int = 15,
        prompts: int = 20,
        is_watched: bool = True,
    ) -> None:
        self.machines: Final = machines
        self.prompters: list[Prompter] = []
        self.watchers: list[Watcher] = []
        self._sessions: Final = sessions
        self._is_watched: Final = is_watched
        self._turn: Final = {"words": words, "acts": acts, "prompts": prompts}
        self._tasks: list[asyncio.Task[None]] = []

    def __repr__(self) -> str:
        return f"<Campaign {self.machines!r} sessions={len(self.prompters)}>"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start the machines and the load, for the block."""
        try:
            nodes = Nodes(self.machines.addresses, await self.machines.start())
            for number in range(self._sessions):
                prompter = Prompter(number, nodes, self.machines.work, **self._turn)
                self.prompters.append(prompter)
                if self._is_watched:
                    self.watchers.append(Watcher(prompter, nodes, self.machines.work))
            self._tasks = [asyncio.create_task(one.run()) for one in self._clients]
            await self.served(time.monotonic())
            yield
        finally:
            await self.end(0)
            await self.machines.close()

    async def served(self, since: float) -> None:
        """Wait until every session was served after a moment. Raise `TimeoutError` if one is not."""
        async with asyncio.timeout(_STUCK_SECONDS):
            while any(one.served_at <= since for one in self.prompters):
                for task in self._tasks:
                    if task.done():
                        task.result()  # a mistake of ours
                await asyncio.sleep(0.05)

    async def end(self, patience: float = _STUCK_SECONDS) -> None:
        """End the load. Prompts that run may end for so long."""
        for one in self._clients:
            one.is_stopping = True
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=patience)
            for task in late:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def history(self) -> History:
        """Return what is left behind: from the database, the acts, and the clients."""
        views: dict[str, list[Piece]] = {}
        for one in self._clients:
            for name, shown in one.views.items():
                views.setdefault(name, []).extend(piece for view in shown for piece in view.pieces)
        ended = {operation: end for one in self.prompters for operation, end in one.ended.items()}
        return History(await self._logs(), self.machines.acts.read(), views, ended)

    @property
    def _clients(self) -> list[Prompter | Watcher]:
        return [*self.prompters, *self.watchers]

    async def _logs(self) -> dict[str, Log]:
        connection = await self.machines.pair.primary.connect()
        try:
            rows: dict[str, list[Row]] = {}
            # Of one moment: a turn that was left may still write.
            await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            for row in await connection.fetch(_ROWS):
                agent, user = _words(row["kind"], row["body"])
                rows.setdefault(row["session"], []).append(Row(row["sequence"], row["fence"], agent, user))
            sessions = await connection.fetch("SELECT id, cwd, last_sequence FROM dragoman.session")
        finally:
            await connection.close()
        return {Path(one["cwd"]).name: Log(rows.get(one["id"], []), one["last_sequence"]) for one in sessions}

    def long_outages(self, away: Sequence[tuple[float, float]]) -> list[str]:
        """Return what went wrong in outages that were longer than promised."""
        found: list[str] = []
        for one in self.prompters:
            for begin, end in one.outages:
                if (
                    end - begin - sum(_overlap(begin, end, *gone) for gone in away)
                    > self.machines.lease + SERVE_SECONDS
                ):
                    found.append(f"{one.name} was not served for {end - begin:.1f} s:")
                    found += [f"    +{at - begin:.1f} s {what}" for at, what in one.troubles if begin <= at <= end]
        return found

    def outages(self, away: Sequence[tuple[float, float]]) -> list[float]:
        """Return how long sessions were not served, without what the database was away."""
        found = [outage for one in self.prompters for outage in one.outages]
        return [end - begin - sum(_overlap(begin, end, *one) for one in away) for begin, end in found]


async def run(
    folder: Path,
    *,
    seconds: float,
    seed: int,
    lease: float,
    faults: int = 0,
    sessions: int = 6,
    installed: Path | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Outcome:
    """Run a campaign for so long, or until there were so many faults."""
    machines = Machines(folder, lease=lease, installed=installed)
    campaign, nemesis, counts = Campaign(machines, sessions=sessions), Nemesis(machines, seed), Counter[str]()
    began, stuck = time.monotonic(), ""
    async with campaign.running():
        while time.monotonic() - began < seconds and not (faults and counts.total() >= faults):
            name, injected_at = nemesis.choose(), time.monotonic()
            counts[name] += 1
            await nemesis.inject(name)
            healed_at = time.monotonic()
            try:
                await campaign.served(healed_at)
            except TimeoutError:
                waiting = [one.name for one in campaign.prompters if one.served_at <= healed_at]
                stuck = f"{', '.join(waiting)}: not served again after: {name}"
                break
            served = time.monotonic() - healed_at
            say(f"{counts.total():4} {name}: lasted {healed_at - injected_at:.1f} s, all served {served:.1f} s later")
        for line in campaign.long_outages(nemesis.away):
            say(line)
        await campaign.end()
        history = await campaign.history()
        found = [*([stuck] if stuck else []), *violations(history)]
        if found:
            (folder / "history.json").write_bytes(msgspec.json.encode(history))
        return Outcome(
            *(counts, found, campaign.outages(nemesis.away), lease, time.monotonic() - began),
            *(len(history.ended), len(history.acts)),
        )


def _words(kind: str, body: bytes) -> tuple[str, str]:
    """Return what an entry adds to what the agent, and the user, has said."""
    entry = decode_entry(kind, body)
    match entry:
        case TextEntry(kind="agent_message_chunk"):
            return entry.text, ""
        case EventEntry(event=AgentMessageChunk() | AgentMessage() as event):
            return _text(event), ""
        case EventEntry(event=UserMessageChunk() | UserMessage() as event):
            return "", _text(event)
    return "", ""


def _text(event: AnyEvent) -> str:
    content = getattr(event, "content", msgspec.UNSET)
    blocks = content if isinstance(content, list) else [content]
    return "".join(block.text for block in blocks if isinstance(block, Text))


def _overlap(begin: float, end: float, other_begin: float, other_end: float) -> float:
    return max(0.0, min(end, other_end) - max(begin, other_begin))
