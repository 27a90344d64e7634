"""The front end's own gates: its types, its component tests, and what its lock says."""

import json
import subprocess
from pathlib import Path

from tests.support.needs import lacking
from tools import console


def node() -> console.Node:
    """The node that `./dev` found or installed, with the packages of the lock."""
    found = console.find_node()
    if found is None or not console.MODULES.is_dir():
        lacking("node and the packages of the console, which ./dev test installs")
    return found


def test_the_types_of_the_console_are_right() -> None:
    assert console.run(node(), "typescript/bin/tsc", "--noEmit") == ""


def test_the_component_tests_of_the_console_pass() -> None:
    # The report stands in the failure.
    console.run(node(), "vitest/vitest.mjs", "run")


def test_what_is_served_is_built_from_the_sources_beside_it() -> None:
    assert console.is_built()


def test_every_package_is_locked_by_its_hash_and_names_no_registry() -> None:
    lock = json.loads((console.FOLDER / "package-lock.json").read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert [name for name, entry in packages.items() if not entry.get("integrity", "").startswith("sha512-")] == []
    assert [name for name, entry in packages.items() if "resolved" in entry] == []


def test_every_package_that_is_asked_for_has_an_exact_version() -> None:
    description = json.loads((console.FOLDER / "package.json").read_text())
    asked = {**description["dependencies"], **description["devDependencies"]}
    assert [name for name, version in asked.items() if not version.replace(".", "").isdigit()] == []


def test_every_change_of_a_source_is_another_fingerprint(tmp_path: Path) -> None:
    for name in console.SOURCES:
        (tmp_path / name).write_text(name)
    (tmp_path / "src").mkdir()
    seen = [console.fingerprint(tmp_path)]
    for name, text in (
        ("src/new.ts", ""),
        ("src/new.ts", "export {};"),
        ("index.html", "<p>"),
        ("tests.ts", "not one"),
    ):
        (tmp_path / name).write_text(text)
        seen.append(console.fingerprint(tmp_path))
    assert len(set(seen)) == 4
    assert seen[-1] == seen[-2]


def test_git_ignores_what_is_built_and_installed() -> None:
    paths = [str(console.BUILT / "index.html"), str(console.MODULES / "preact")]
    done = subprocess.run(
        ["git", "check-ignore", *paths], cwd=console.ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == paths
