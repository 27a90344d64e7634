"""What a session has cost so far, over all its turns, summaries and helpers, also before a restart.

Every model call made for a session is added here, also one of a helper: so the tokens of a turn (`used_since`) have
those of the helpers that worked in it.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from msgspec import UNSET, UnsetType

from dragoman.agent.session import Session, session_core
from dragoman.coder.models.contract import UsageReported
from dragoman.store.entries import EventEntry, NoteEntry
from dragoman.vocabulary.events import Cost, UsageChanged, UserMessage

NOTE: Final = "cost"
_CURRENCY: Final = "USD"

Note = Callable[[object], Awaitable[None]]


async def _ignore_note(note: object) -> None:
    """Default `note` callback: record nothing."""


class Spending:
    """The sum, in dollars; None where no model call has reported a cost. Each change is a note in the session's log."""

    def __init__(self, total: float | None = None, note: Note = _ignore_note) -> None:
        self._total = total
        self._note = note
        # Tokens of all model calls since this object was made; None: no call has told any.
        self.used: UsageReported | None = None

    def __repr__(self) -> str:
        return f"<Spending {self._total}>"

    async def add(self, used: UsageReported | None) -> None:
        """Add a model call: its tokens, and its cost where that is known."""
        if used is None:
            return
        self.used = sum_used(self.used, used)
        if used.cost is not None:
            self._total = (self._total or 0.0) + used.cost
            await self._note(self._total)

    def used_since(self, before: UsageReported | None) -> UsageReported | None:
        """Return the tokens used since `used` was this; None where no call has reported any."""
        if self.used is None or self.used is before:
            return None
        return UsageReported(self.used.input - before.input, self.used.output - before.output) if before else self.used

    def cost(self) -> Cost | UnsetType:
        """Return the sum as events have it; UNSET where no cost is known."""
        return UNSET if self._total is None else Cost(self._total, _CURRENCY)


def sum_used(one: UsageReported | None, other: UsageReported) -> UsageReported:
    """Add the tokens and the cost of two model calls; an unknown cost counts as nothing beside a known one."""
    if one is None:
        return other
    return UsageReported(one.input + other.input, one.output + other.output, _sum(one.cost, other.cost))


async def load(session: Session) -> Spending:
    """Return the spending of a session, read from its log."""
    return Spending(await _total(session), partial(session_core(session).record_note, NOTE))


async def _total(session: Session) -> float | None:
    """Return the last noted sum. A log of an earlier release has none: its events have the cost of one turn each."""
    noted: float | None = None
    turns: float | None = None
    turn: float | None = None
    journal = session_core(session).journal
    if journal is None:
        return None
    async for records in journal.log.read():
        for record in records:
            match record.entry:
                case NoteEntry(kind, float() | int() as total) if kind == NOTE:
                    noted = float(total)
                case EventEntry(UsageChanged(cost=Cost(amount=amount))):
                    turn = amount
                case EventEntry(UserMessage()):
                    turns, turn = _sum(turns, turn), None
    return noted if noted is not None else _sum(turns, turn)


def _sum(one: float | None, other: float | None) -> float | None:
    return (one or 0.0) + (other or 0.0) if one is not None or other is not None else None
