def left(stock, orders):
    """Return what is left of each article behind the orders, never less than zero; unknown articles are left out."""
    found = dict(stock)
    for article, number in orders:
        if article in found:
            found[article] = max(0, found[article] - number)
    return found
