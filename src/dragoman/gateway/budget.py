"""Count the bytes in use against limits: one budget for each principal, and one for all of them together.

Nothing is refused here: the caller adds what it uses, gets whether that exceeds the limit, and acts on it.
"""

from typing import Final
from weakref import WeakValueDictionary


class ByteBudget:
    """A limit in bytes, what is used of it, and how many share it. What is added here is added to `whole` too."""

    def __init__(self, limit: int, whole: "ByteBudget | None" = None) -> None:
        self.limit: Final = limit
        self.used = 0
        self._members = 0
        self._whole = whole

    @property
    def over(self) -> bool:
        """Return whether more is used than there is, here or in the whole."""
        return self.used > self.limit or (self._whole is not None and self._whole.over)

    @property
    def share(self) -> int:
        """Return the bytes of each member, if all have the same."""
        # Equal shares, whatever each holds now: a stream that was quiet gets its share as soon as it is written.
        own = self.limit // max(self._members, 1)
        return own if self._whole is None else min(own, self._whole.share)

    def add(self, amount: int) -> bool:
        """Use so many bytes more, or less where it is negative; return whether it is too much now."""
        self.used += amount
        over = self.used > self.limit
        # The whole is counted in every case, before the part is judged: `or` must not skip it.
        return over if self._whole is None else self._whole.add(amount) or over

    def join(self, count: int = 1) -> None:
        """Let one more share it; one less, where it is negative."""
        self._members += count
        if self._whole is not None:
            self._whole.join(count)


class ByteBudgets:
    """A budget for each principal, all part of one. References are weak: a budget that is not in use is dropped."""

    def __init__(self, each: int, all: int) -> None:
        self._each = each
        self._whole = ByteBudget(all)
        # Weak: principals come and go, and their budgets live as long as a stream or a body that uses them.
        self._budgets: WeakValueDictionary[str, ByteBudget] = WeakValueDictionary()

    def of(self, principal: str) -> ByteBudget:
        """Return the budget of a principal."""
        budget = self._budgets.get(principal)
        if budget is None:
            budget = self._budgets[principal] = ByteBudget(self._each, self._whole)
        return budget
