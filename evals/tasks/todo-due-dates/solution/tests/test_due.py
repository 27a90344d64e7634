import os
import tempfile
import unittest

from todo.store import Store


class DueTest(unittest.TestCase):
    def test_a_due_date_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            store = Store(os.path.join(folder, "todo.json"))
            store.add("milk", "2026-03-01")
            self.assertEqual(store.items()[0]["due"], "2026-03-01")
