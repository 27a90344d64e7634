"""The locks that the image is made of: complete, with hashes, and of the same versions that the tests run with.

They are installed without dependencies, so what they lack is missing; completeness is looked up in what the packages of
this environment, which has all extras, say of themselves.
"""

import re
import tomllib
from importlib.metadata import distribution

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.needs import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = ("models", "mcp", "serve")
# One package with its version, its marker and its hashes, and nothing else: no address, no option.
LOCKED = re.compile(r"([a-z0-9.-]+)==(\S+)(?: ; [^\\]+)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)")


def locked(name: str) -> dict[str, tuple[str, str]]:
    """Each package of a lock, with its version and its hashes; a line that is neither ends the test."""
    text = (ROOT / "requirements" / name).read_text().partition("\n")[2]
    assert LOCKED.sub("", text) == ""
    return {canonicalize_name(found[1]): (found[2], found[3]) for found in LOCKED.finditer(text)}


@pytest.mark.parametrize("name", ["runtime.txt", "build.txt"])
def test_what_is_shipped_is_what_is_tested_hash_by_hash(name: str) -> None:
    tested = locked("dev.txt")
    assert {package: tested.get(package) for package in locked(name)} == locked(name)


def closure(wanted: list[str]) -> set[str]:
    """What these requirements need on this machine, with what that needs."""
    found: set[tuple[str, str]] = set()
    waiting = [Requirement(one) for one in wanted]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) not in found:
                found.add((name, extra))
                needs = [Requirement(line) for line in distribution(name).requires or ()]
                waiting += [one for one in needs if one.marker is None or one.marker.evaluate({"extra": extra})]
    return {name for name, _ in found}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("runtime.txt", [f"dragoman[{','.join(EXTRAS)}]"]),
        ("build.txt", PROJECT["build-system"]["requires"]),
    ],
)
def test_a_lock_has_everything_that_is_needed(name: str, wanted: list[str]) -> None:
    assert closure(wanted) - {"dragoman"} - set(locked(name)) == set()


def test_what_builds_the_wheel_is_what_is_locked_for_it() -> None:
    assert PROJECT["dependency-groups"]["build"] == PROJECT["build-system"]["requires"]
