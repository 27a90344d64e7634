import hashlib
import inspect

from gateway import handlers
from gateway.audit import Audit

names = [name for name in dir(handlers) if name.startswith("handle_")]
assert len(names) == 120
for name in names:
    state, audit = {"count": 1}, Audit()
    getattr(handlers, name)(state, audit, 5)
    assert len(audit.entries) == 1, name
    assert audit.entries[0] == (name.removeprefix("handle_"), {"count": 1}), name
    assert state["count"] != 1, name
rest = "".join(inspect.getsource(getattr(handlers, name)) for name in names if name not in ['handle_lock_channel', 'handle_rename_ticket', 'handle_unlock_report'])
assert hashlib.sha256(rest.encode()).hexdigest() == "51414fc3d6e4d258babaa2df5685047479b821d385036c169c0d124ef36c4951", "other handlers were changed"
print("PASS")
