import itertools

_NUMBERS = itertools.count(1)


class Counter:
    def up(self):
        return next(_NUMBERS)
