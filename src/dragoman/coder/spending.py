"""What a session has cost so far, over all its turns, summaries and helpers, also before a restart; and its caps.

Every model call made for a session is added here, also one of a helper: so the tokens of a turn (`used_since`) have
those of the helpers that worked in it. `check` is called before every one of them (`model_calls.ModelCalls.open`), so
what is spent can pass a cap by the calls that were on their way, and by no more.

Where a cap is set, no call is made that could not be counted: a day's total that cannot be read ends the turn, and so
does a model without a price where the cap is the administrator's. With the user's own cap such a model is named once.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from msgspec import UNSET, UnsetType

from dragoman.agent.session import Session, session_core
from dragoman.coder.day_spending import DaySpending, DaySpendingFailed
from dragoman.coder.models.contract import HasPrice, Model, UsageReported
from dragoman.coder.spend_caps import NO_CAPS, SpendCap, SpendCapReached, SpendCaps, dollars
from dragoman.coder.spent import NOTE, NOTHING_SPENT, SpentFromLog, SpentInSession, spent_note
from dragoman.vocabulary.events import Cost

_CURRENCY: Final = "USD"

Note = Callable[[object], Awaitable[None]]


Warn = Callable[[str], Awaitable[None]]


async def _ignore(value: object) -> None:
    """Default `note` and `warn` callback: record nothing."""


class Spending:
    """The sums of the session and of the running turn. Each change is a note in the session's log."""

    def __init__(
        self,
        total: SpentInSession = NOTHING_SPENT,
        note: Note = _ignore,
        *,
        caps: SpendCaps = NO_CAPS,
        day: DaySpending | None = None,
        warn: Warn = _ignore,
    ) -> None:
        """`day` has the total of all sessions of today; without it this process alone counts for the day's cap."""
        self._total = total
        self._note = note
        self._caps = caps
        self._day = day
        self._warn = warn
        # Tokens of all model calls since this object was made; None: no call has told any.
        self.used: UsageReported | None = None
        # What this object's calls have used, and what of it before the running turn.
        self._spent = NOTHING_SPENT
        self._spent_before = NOTHING_SPENT
        self._unpriced: set[str] = set()
        self._has_failed = False

    def __repr__(self) -> str:
        return f"<Spending {self._total.cost}>"

    @property
    def total(self) -> SpentInSession:
        """What the session has used so far, also before a restart."""
        return self._total

    @property
    def this_turn(self) -> SpentInSession:
        """What was used since the last turn began."""
        return self._spent.minus(self._spent_before)

    @property
    def caps(self) -> SpendCaps:
        """What may be spent."""
        return self._caps

    def begin_turn(self) -> None:
        """Begin to count what a new turn costs."""
        self._spent_before = self._spent

    async def add(self, used: UsageReported | None) -> None:
        """Add a model call: its tokens, and its cost where that is known."""
        if used is None:
            return
        self.used = sum_used(self.used, used)
        self._spent = self._spent.plus(used)
        self._total = total = self._total.plus(used)
        # Recorded also when the turn is cancelled meanwhile: it was paid.
        await asyncio.shield(self._record(total, used.cost))

    async def _record(self, total: SpentInSession, cost: float | None) -> None:
        await self._note(spent_note(total))
        await self._add_to_day(cost)

    async def _add_to_day(self, cost: float | None) -> None:
        """Add to the total of today. Where that fails and the day has no cap, the user is told once."""
        if self._day is None or not cost:
            return
        try:
            await asyncio.to_thread(self._day.add, cost)
        except DaySpendingFailed as error:
            if not self._has_failed and self._caps.day is None:
                self._has_failed = True
                await self._warn(f"The costs of today are not whole: {error}")

    async def check(self, model: Model) -> None:
        """Raise `SpendCapReached` if no more may be spent, or if what `model` costs cannot be counted."""
        if not any(self._caps):
            return
        price = await model.find_price() if isinstance(model, HasPrice) else "known"
        if price == "free":
            return
        if price == "unknown":
            await self._check_unpriced(model.name)
        turn, session = self.this_turn.cost or 0.0, self._total.cost or 0.0
        for what, cap, spent in (("turn", self._caps.turn, turn), ("session", self._caps.session, session)):
            if cap is not None and spent >= cap.dollars:
                raise _reached(f"This {what} has cost {dollars(spent)}", what, cap)
        if self._caps.day is not None:
            spent = await self._spent_today()
            if spent >= self._caps.day.dollars:
                raise _reached(f"All sessions of today have cost {dollars(spent)}", "day", self._caps.day)

    async def _check_unpriced(self, model: str) -> None:
        """Refuse a model whose cost is not known where the administrator has set a cap; else say so once."""
        how = f"set its prices at [providers.{model.partition('/')[0]}] in config.toml"
        if (cap := self._caps.administrators) is not None:
            raise SpendCapReached(
                f"It is not known what {model} costs, and the administrator's file {cap.file} limits what may be "
                f"spent: choose another model, or {how}"
            )
        if model not in self._unpriced:
            self._unpriced.add(model)
            await self._warn(f"It is not known what {model} costs, so it does not count for the spend cap: {how}")

    async def _spent_today(self) -> float:
        if self._day is None:
            return self._spent.cost or 0.0
        try:
            return await asyncio.to_thread(self._day.total)
        except DaySpendingFailed as error:
            raise SpendCapReached(f"No model is called, because a day has a spend cap and {error}") from None

    async def spent_today(self) -> float | None:
        """Return what all sessions of today have cost, in dollars; None where that is not known."""
        if self._day is None:
            return None
        try:
            return await asyncio.to_thread(self._day.total)
        except DaySpendingFailed:
            return None

    def used_since(self, before: UsageReported | None) -> UsageReported | None:
        """Return the tokens used since `used` was this; None where no call has reported any."""
        if self.used is None or self.used is before:
            return None
        if before is None:
            return self.used
        cost = None if self.used.cost is None else self.used.cost - (before.cost or 0.0)
        return UsageReported(
            self.used.input - before.input,
            self.used.output - before.output,
            cost,
            self.used.cache_read - before.cache_read,
            self.used.cache_write - before.cache_write,
        )

    def cost(self) -> Cost | UnsetType:
        """Return the sum as events have it; UNSET where no cost is known."""
        return UNSET if self._total.cost is None else Cost(self._total.cost, _CURRENCY)


def _reached(spent: str, what: str, cap: SpendCap) -> SpendCapReached:
    if cap.file:
        whose = f"the administrator's file {cap.file} allows {dollars(cap.dollars)} for a {what}"
        return SpendCapReached(f"{spent}, and {whose}")
    return SpendCapReached(f"{spent}, and the spend cap of a {what} is {dollars(cap.dollars)}: {_WAYS_OUT[what]}")


_WAYS_OUT: Final = {
    "turn": "prompt again to go on, or raise --max-cost or spend.turn in config.toml",
    "session": "a new session begins anew, or raise spend.session in config.toml",
    "day": "tomorrow begins anew, or raise spend.day in config.toml",
}


def sum_used(one: UsageReported | None, other: UsageReported) -> UsageReported:
    """Add the tokens and the cost of two model calls; an unknown cost counts as nothing beside a known one."""
    if one is None:
        return other
    known = one.cost is not None or other.cost is not None
    return UsageReported(
        one.input + other.input,
        one.output + other.output,
        (one.cost or 0.0) + (other.cost or 0.0) if known else None,
        one.cache_read + other.cache_read,
        one.cache_write + other.cache_write,
    )


async def load(
    session: Session, caps: SpendCaps = NO_CAPS, day: DaySpending | None = None, warn: Warn = _ignore
) -> Spending:
    """Return the spending of a session, read from its log."""
    note = partial(session_core(session).record_note, NOTE)
    return Spending(await _total(session), note, caps=caps, day=day, warn=warn)


async def _total(session: Session) -> SpentInSession:
    """Return the sums that the session's log has."""
    found = SpentFromLog()
    journal = session_core(session).journal
    if journal is not None:
        async for records in journal.log.read():
            for record in records:
                found.apply(record.entry)
    return found.total
