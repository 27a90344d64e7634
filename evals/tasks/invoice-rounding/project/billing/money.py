"""Amounts of money, in cents."""


def to_cents(amount: float) -> int:
    """Return an amount of euros as whole cents."""
    return round(amount * 100)


def show(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"
