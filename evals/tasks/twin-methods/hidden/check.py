import inspect

from bank.accounts import Checking, Escrow, Savings

for overdrawn in (Checking, Escrow):
    account = overdrawn(10)
    account.withdraw(11)
    assert (account.balance, account.log) == (-1, [-11]), overdrawn
savings = Savings(10)
try:
    savings.withdraw(11)
except ValueError as error:
    assert str(error) == "not enough"
else:
    raise AssertionError("overdrawn")
assert (savings.balance, savings.log) == (10, [])
savings.withdraw(10)
assert (savings.balance, savings.log) == (0, [-10])
try:
    savings.withdraw(0)
except ValueError as error:
    assert str(error) == "amount"
else:
    raise AssertionError("nothing withdrawn")
one, other = (inspect.getsource(kind.withdraw) for kind in (Checking, Escrow))
assert one == other and one.count("\n") == 5
assert inspect.getsource(Savings.deposit) == inspect.getsource(Checking.deposit)
print("PASS")
