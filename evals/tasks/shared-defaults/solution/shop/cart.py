class Cart:
    """What a customer is about to buy."""

    def __init__(self, items=()):
        self.items = list(items)

    def add(self, article, count=1):
        self.items.append((article, count))

    def total(self, prices):
        return sum(prices[article] * count for article, count in self.items)
