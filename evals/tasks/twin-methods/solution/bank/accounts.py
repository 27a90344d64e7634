"""Accounts. Amounts are whole cents."""


class Checking:
    """May be overdrawn."""

    def __init__(self, balance=0):
        self.balance = balance
        self.log = []

    def deposit(self, amount):
        self.balance += amount
        self.log.append(amount)

    def withdraw(self, amount):
        if amount <= 0:
            raise ValueError("amount")
        self.balance -= amount
        self.log.append(-amount)


class Savings:
    """May not be overdrawn."""

    def __init__(self, balance=0):
        self.balance = balance
        self.log = []

    def deposit(self, amount):
        self.balance += amount
        self.log.append(amount)

    def withdraw(self, amount):
        if amount <= 0:
            raise ValueError("amount")
        if amount > self.balance:
            raise ValueError("not enough")
        self.balance -= amount
        self.log.append(-amount)


class Escrow:
    """Held for another one."""

    def __init__(self, balance=0):
        self.balance = balance
        self.log = []

    def withdraw(self, amount):
        if amount <= 0:
            raise ValueError("amount")
        self.balance -= amount
        self.log.append(-amount)
