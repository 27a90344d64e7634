from stock.count import left

stock = {"pen": 5, "ink": 1}
assert left(stock, [("pen", 2), ("pen", 1), ("ink", 9), ("cap", 1)]) == {"pen": 2, "ink": 0}
assert stock == {"pen": 5, "ink": 1}
assert left({}, []) == {}
print("PASS")
