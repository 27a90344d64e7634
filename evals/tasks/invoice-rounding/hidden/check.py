from billing.invoice import Invoice


def tax(*lines):
    invoice = Invoice()
    for line in lines:
        invoice.add(*line)
    return invoice.tax()


assert tax(("0.13",), ("0.13",), ("0.13",)) == 6  # 2.47 each
assert tax(("0.50",)) == 10  # 9.5
assert tax(("1.50",)) == 29  # 28.5: to even would be 28
assert tax(("2.50",), ("2.50",)) == 96  # 47.5 twice
assert tax(("0.07", 3), ("9.99",)) == 4 + 190
assert tax() == 0
invoice = Invoice()
invoice.add("19.99", 2)
assert invoice.total() == 3998 + 760
print("PASS")
