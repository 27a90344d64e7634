"""Counts of tokens as providers report them. Servers are known to send texts, fractions, sums of a day, or nothing.

What can be no count says nothing: an answer is worth more than the count beside it. Whether a count fits the request is
not known here (`ContextBudget.accept`).
"""

from typing import Any, Final, TypeVar

import msgspec

# More than any call has; clients can still show it, and a cap on spending that counts it is reached.
MOST_TOKENS: Final = 10**12
T = TypeVar("T")


def usage_of(value: object, form: type[T]) -> T | None:
    """Return the usage of a response in its form, whose fields are of any type; None for what has another form."""
    if value is None:
        return None
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError:
        return None


def count_of(value: Any) -> int:
    """Return a count of tokens or searches, which is bounded; 0 for what cannot be one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return min(value, MOST_TOKENS) if type(value) is int and value > 0 else 0
