"""What a stored session has used, in a line below its transcript; added up while the transcript is read."""

from collections.abc import AsyncIterator, Sequence

from dragoman.cli.terminal.event_text import cost_text
from dragoman.coder.spent import SpentFromLog, SpentInSession
from dragoman.store.contract import Record
from dragoman.store.entries import EventEntry
from dragoman.vocabulary.events import Cost, UsageChanged


class UsedTotals:
    """The sums of one log. Another agent's are only what it has told last of its cost."""

    def __init__(self, *, is_recorded: bool) -> None:
        self._spent = None if is_recorded else SpentFromLog()
        self._cost: Cost | None = None

    async def read(self, log: AsyncIterator[Sequence[Record]]) -> AsyncIterator[Sequence[Record]]:
        """Yield what the log has, and add it up."""
        async for records in log:
            for record in records:
                if self._spent is not None:
                    self._spent.apply(record.entry)
                elif isinstance(record.entry, EventEntry) and isinstance(record.entry.event, UsageChanged):
                    self._cost = record.entry.event.cost or self._cost
            yield records

    @property
    def total(self) -> SpentInSession:
        """The sums; of another agent's session the cost alone, if it was told in dollars."""
        if self._spent is not None:
            return self._spent.total
        cost = self._cost
        return SpentInSession(cost.amount if cost is not None and cost.currency == "USD" else None)

    @property
    def text(self) -> str:
        """The line; empty where nothing is known."""
        cost, tokens = self._cost, ""
        if self._spent is not None:
            total = self._spent.total
            tokens = total.tokens_text()
            cost = None if total.cost is None else Cost(total.cost, "USD")
        words = [tokens] if tokens else []
        if cost is not None:
            words.append(cost_text(cost))
        return f"(used in all: {'; '.join(words)})" if words else ""
