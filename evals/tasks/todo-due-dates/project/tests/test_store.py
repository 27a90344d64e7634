import os
import tempfile
import unittest

from todo.store import Store


class StoreTest(unittest.TestCase):
    def test_an_item_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            store = Store(os.path.join(folder, "todo.json"))
            store.add("milk")
            self.assertEqual([item["text"] for item in store.items()], ["milk"])
