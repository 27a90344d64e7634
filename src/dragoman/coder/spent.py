"""What a session has used so far, as its log has it: tokens and dollars, summaries and helpers included.

After every model call the sums are noted in the log (`spent_note`), so that they outlive the process; the last note
counts. Logs of earlier releases have less: a number of dollars alone, or nothing but the cost of each turn in its
events, which is then summed.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from dragoman.coder.models.contract import UsageReported
from dragoman.store.entries import Entry, EventEntry, NoteEntry
from dragoman.vocabulary.events import Cost, UsageChanged, UserMessage

NOTE: Final = "cost"


class SpentInSession(NamedTuple):
    """Sums over a session; `cost` in dollars, None where no call has reported any."""

    cost: float | None = None
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    # Tokens in and out of calls whose cost is not known.
    unpriced: int = 0

    def plus(self, used: UsageReported) -> "SpentInSession":
        """Return the sums with one more model call."""
        cost = self.cost if used.cost is None else (self.cost or 0.0) + used.cost
        return SpentInSession(
            cost,
            self.input + used.input,
            self.output + used.output,
            self.cache_read + used.cache_read,
            self.cache_write + used.cache_write,
            self.unpriced + (used.input + used.output if used.cost is None else 0),
        )

    def minus(self, before: "SpentInSession") -> "SpentInSession":
        """Return what was added since the sums were these."""
        cost = None if self.cost is None else self.cost - (before.cost or 0.0)
        return SpentInSession(
            cost,
            self.input - before.input,
            self.output - before.output,
            self.cache_read - before.cache_read,
            self.cache_write - before.cache_write,
            self.unpriced - before.unpriced,
        )

    def tokens_text(self) -> str:
        """Return the tokens in words; empty where none are known."""
        if not self.input + self.output:
            return ""
        cached = f" ({self.cache_read:,} of them from the cache)" if self.cache_read else ""
        return f"{self.input:,} tokens in{cached}, {self.output:,} out"


NOTHING_SPENT: Final = SpentInSession()


def spent_note(spent: SpentInSession) -> dict[str, object]:
    """Return the sums as the log has them; `spent_of` reads them again."""
    return {name: value for name, value in spent._asdict().items() if value}


class SpentFromLog:
    """Folds the entries of a log into the sums of its session."""

    def __init__(self) -> None:
        self._noted: SpentInSession | None = None
        # Of a log without notes: the turns that are over, and the one that is being read.
        self._turns: float | None = None
        self._turn: float | None = None

    def apply(self, entry: Entry) -> None:
        """Take one more entry, in the order of the log."""
        match entry:
            case NoteEntry(kind, value) if kind == NOTE:
                self._noted = _spent_in(value) or self._noted
            case EventEntry(UsageChanged(cost=Cost(amount=amount))):
                self._turn = amount
            case EventEntry(UserMessage()):
                self._turns, self._turn = self._sum(), None
            case _:
                pass

    @property
    def total(self) -> SpentInSession:
        """The sums so far."""
        return self._noted if self._noted is not None else SpentInSession(self._sum())

    def _sum(self) -> float | None:
        if self._turns is None and self._turn is None:
            return None
        return (self._turns or 0.0) + (self._turn or 0.0)


def _spent_in(value: object) -> SpentInSession | None:
    """Return what a note says; None for one that says nothing of it."""
    if isinstance(value, int | float):  # of an earlier release
        return SpentInSession(float(value))
    if not isinstance(value, Mapping):
        return None
    cost = value.get("cost")
    counts = {name: value.get(name, 0) for name in SpentInSession._fields[1:]}
    if not all(isinstance(count, int) for count in counts.values()):
        return None
    return SpentInSession(float(cost) if isinstance(cost, int | float) else None, **counts)
