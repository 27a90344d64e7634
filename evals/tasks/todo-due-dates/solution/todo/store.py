import json
import os


class Store:
    """Items in a JSON file: a list of {"id", "text", "due"?}, in the order they were added."""

    def __init__(self, path):
        self.path = path

    def items(self):
        if not os.path.exists(self.path):
            return []
        with open(self.path) as file:
            return json.load(file)

    def add(self, text, due=None):
        items = self.items()
        number = max((item["id"] for item in items), default=0) + 1
        self._write([*items, {"id": number, "text": text, **({"due": due} if due else {})}])
        return number

    def remove(self, number):
        items = self.items()
        left = [item for item in items if item["id"] != number]
        self._write(left)
        return len(left) < len(items)

    def _write(self, items):
        with open(self.path, "w") as file:
            json.dump(items, file)
