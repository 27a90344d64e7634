class Cache:
    def __init__(self):
        self._values = {}

    def fetch(self, key, make):
        """Return a value; fetch it by `make` if it is not known."""
        if key not in self._values:
            self._values[key] = make()
        return self._values[key]
