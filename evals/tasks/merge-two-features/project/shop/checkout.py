def total(prices):
    """Return the sum of the prices."""
    return sum(prices)
