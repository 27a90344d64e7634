"""Invoices.

The tax of each line is rounded half up to a whole cent, and the rounded taxes are added. Prices have at most two
decimals and come as text.
"""

from billing.money import to_cents

TAX_PERCENT = 19


class Invoice:
    def __init__(self):
        self.lines = []

    def add(self, price: str, count: int = 1):
        self.lines.append((to_cents(float(price)), count))

    def net(self) -> int:
        return sum(cents * count for cents, count in self.lines)

    def tax(self) -> int:
        return round(self.net() * TAX_PERCENT / 100)

    def total(self) -> int:
        return self.net() + self.tax()
