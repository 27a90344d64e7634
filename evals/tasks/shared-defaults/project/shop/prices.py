BASE = {"pen": 100, "book": 1200}


def prices_for(user, discounts):
    """Return the prices of a user; discounts are in percent, by user."""
    prices = BASE
    for article in prices:
        prices[article] = prices[article] * (100 - discounts.get(user, 0)) // 100
    return prices
