"""What a late book costs."""

DAY_CENTS = 20


def fine(loan, today):
    """Return the cents that a loan costs when it comes back today."""
    return max(0, (today - loan.due).days) * DAY_CENTS
