class Queue:
    def __init__(self):
        self._items = []

    def put(self, item):
        self._items.append(item)
