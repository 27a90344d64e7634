"""Every name of ours on the wire is on the page for people who write other implementations."""

import re

import pytest

from tests.support.needs import ROOT

_OURS = re.compile(r'"((?:_dragoman|_gateway|_session|_simse|dragoman)/\w+)"')
# Between parts of one process.
INSIDE = {"dragoman/said"}


def names() -> list[str]:
    found: set[str] = set()
    for file in (ROOT / "src").rglob("*.py"):
        found.update(_OURS.findall(file.read_text(encoding="utf-8")))
    return sorted(found - INSIDE)


@pytest.mark.parametrize("name", names())
def test_a_name_on_the_wire_is_documented(name: str) -> None:
    assert name in (ROOT / "docs" / "wire-extensions.md").read_text(encoding="utf-8")
