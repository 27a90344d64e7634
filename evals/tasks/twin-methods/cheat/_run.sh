sed -i 's/^        self.balance -= amount/        if amount > self.balance:\n            raise ValueError("not enough")\n        self.balance -= amount/' bank/accounts.py
