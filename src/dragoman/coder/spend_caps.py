"""What may be spent: dollars for a turn, a session, a day, by the user's word and by the administrator's. Pure.

The lower one counts. Of two that are equal the administrator's is named, because the user cannot raise it.
"""

from typing import Final, NamedTuple

from dragoman.coder.managed_settings import ManagedSettings
from dragoman.coder.models.contract import ModelFailed
from dragoman.coder.models.request_failures import NEVER


class SpendLimits(NamedTuple):
    """Dollars by the user's settings; None: no limit."""

    turn: float | None = None
    session: float | None = None
    day: float | None = None


class SpendCap(NamedTuple):
    """Dollars, and the administrator's file that says so; empty: the user's own settings do."""

    dollars: float
    file: str = ""


class SpendCaps(NamedTuple):
    """The caps that count; None: none."""

    turn: SpendCap | None = None
    session: SpendCap | None = None
    day: SpendCap | None = None

    @property
    def administrators(self) -> SpendCap | None:
        """One of the caps that the administrator has set; None: there is none."""
        return next((cap for cap in self if cap is not None and cap.file), None)


NO_CAPS: Final = SpendCaps()


class SpendCapReached(ModelFailed):
    """No model call is made any more: what may be spent is spent, or cannot be kept account of."""

    def __init__(self, message: str) -> None:
        super().__init__("server", message, NEVER)


def caps_of(limits: SpendLimits, managed: ManagedSettings) -> SpendCaps:
    """Return the caps that count beside each other: the lower one of each pair."""
    allowed = managed.spending
    return SpendCaps(
        _lower(limits.turn, allowed.turn, managed.file),
        _lower(limits.session, allowed.session, managed.file),
        _lower(limits.day, allowed.day, managed.file),
    )


def _lower(own: float | None, allowed: float | None, file: str) -> SpendCap | None:
    if allowed is not None and (own is None or allowed <= own):
        return SpendCap(allowed, file)
    return None if own is None else SpendCap(own)


def dollars(amount: float) -> str:
    """Return an amount as it is shown: cents, and more digits where these would say little."""
    return f"${amount:,.2f}" if amount >= 0.1 or amount == 0 else f"${amount:.4f}"
