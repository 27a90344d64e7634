from shop.cart import Cart


class Session:
    """A visit. Attributes are what the visitor has chosen."""

    def __init__(self, user, cart=None):
        self.user = user
        self.cart = Cart() if cart is None else cart
        self.settings = {"currency": "EUR"}

    def choose(self, name, value):
        self.settings[name] = value
