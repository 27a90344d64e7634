from shop.cart import Cart
from shop.prices import BASE, prices_for
from shop.session import Session

ann, bob = Session("ann"), Session("bob")
ann.cart.add("pen", 2)
assert (ann.cart.items, bob.cart.items) == ([("pen", 2)], [])
one, two = Cart(), Cart()
one.add("book")
assert two.items == []
mine = [("pen", 1)]
given = Cart(mine)
given.add("book")
assert given.items == [("pen", 1), ("book", 1)]
assert Session("cy", given).cart is given
ann.choose("currency", "USD")
assert bob.settings["currency"] == "EUR" and Session("dan").settings == {"currency": "EUR"}
assert ann.settings["currency"] == "USD"
assert prices_for("ann", {"ann": 10}) == {"pen": 90, "book": 1080}
assert prices_for("ann", {"ann": 10}) == {"pen": 90, "book": 1080}
assert BASE == {"pen": 100, "book": 1200} == prices_for("bob", {})
print("PASS")
