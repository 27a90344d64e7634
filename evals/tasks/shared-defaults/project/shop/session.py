from shop.cart import Cart


class Session:
    """A visit. Attributes are what the visitor has chosen."""

    settings = {"currency": "EUR"}

    def __init__(self, user, cart=Cart()):
        self.user = user
        self.cart = cart

    def choose(self, name, value):
        self.settings[name] = value
