import pathlib
import unittest

from crm import api
from crm.cache import Cache
from crm.commands import COMMANDS, call
from crm.report import report

assert api.load_customer(7)["name"] == "Customer 7"
assert not hasattr(api, "fetch")
assert Cache().fetch(1, lambda: 2) == 2
assert COMMANDS["customer"] == "crm.api:load_customer"
assert call("customer", 7) is api.load_customer(7)
assert report([1, 2]) == "Customer 1\nCustomer 2"
usage = pathlib.Path("docs/usage.md").read_text()
assert "crm.api.load_customer(7)" in usage and "Cache.fetch" in usage
assert "`load_customer` asks" in pathlib.Path("crm/api.py").read_text()
assert "fetch it by" in pathlib.Path("crm/cache.py").read_text()
result = unittest.TextTestRunner(verbosity=0).run(unittest.defaultTestLoader.discover("tests", top_level_dir="."))
assert result.wasSuccessful() and result.testsRun >= 1
print("PASS")
