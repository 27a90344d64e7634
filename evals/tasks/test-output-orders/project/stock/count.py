def left(stock, orders):
    """Return what is left of each article behind the orders, never less than zero."""
    found = dict(stock)
    for article, number in orders:
        found[article] -= number
    return found
