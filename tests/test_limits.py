"""What stands in `limits`: what the protocol layer needs, and what several modules share."""

import re
from collections import defaultdict

from dragoman import limits
from tests.support.needs import ROOT

PACKAGE = ROOT / "src" / "dragoman"
# The layer whose limits all stand in one place, whether one module or more needs them.
PROTOCOL = ("wire", "dialects", "link", "transports", "errors.py", "host/process.py", "host/pipes.py")


def test_a_limit_is_shared_or_belongs_to_the_protocol_layer() -> None:
    users: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        names = set(re.findall(r"\blimits\.([A-Z_]+)\b", text))
        for imported in re.findall(r"^from dragoman\.limits import (.+)$", text, re.MULTILINE):
            names |= {name.strip() for name in imported.split(",")}
        for name in names:
            users[name].add(path.relative_to(PACKAGE).as_posix())
    units = {"KIB", "MIB", "GIB"}
    alone = {
        name: sorted(users[name])
        for name in vars(limits)
        if name.isupper() and name not in units and len(users[name]) < 2
        if not any(one.startswith(PROTOCOL) for one in users[name])
    }
    assert alone == {}
