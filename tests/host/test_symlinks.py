"""A link is judged by where it leads, through every other link, those that are yet to be made as well."""

import os
import subprocess
from pathlib import Path

import pytest

from dragoman.host.copy_view import CopyView
from dragoman.host.symlinks import symlink_refusal

ROOTS = ["/home/me/work", "/home/me/other"]
LINKS = {
    "/home/me/work/d": ".",
    "/home/me/work/up": "..",
    "/home/me/work/sub/back": "../a",
    "/home/me/work/out": "/etc",
    "/home/me/work/abs": "/home/me/work/sub",
    "/home/me/work/round": "round",
    "/home/me/work/one": "two",
    "/home/me/work/two": "one",
}
OUT = "which leads out of the workspace, to "
AGAIN = "which goes up again after a name; give it a plain target"
VERDICTS = {
    "a": None,
    "./a": None,
    ".": None,
    "": None,
    "sub/back": None,
    "d/d/d/a": None,
    "missing/b": None,
    "/home/me/work/a": None,
    "/home/me/work": None,
    "../other/a": None,
    "abs/x": None,
    "..": f"{OUT}/home/me",
    "../x": f"{OUT}/home/me/x",
    "/etc/passwd": f"{OUT}/etc",
    "../../../etc": f"{OUT}/etc",
    "/home/me": f"{OUT}/home/me",
    "/home/me/work-2": f"{OUT}/home/me/work-2",
    "/proc/self/cwd/a": f"{OUT}/proc",
    "up/x": f"{OUT}/home/me/x",
    "out/passwd": f"{OUT}/etc",
    "d/d/d/../../../etc": f"{OUT}/etc",
    "missing/../../x": f"{OUT}/home/me/x",
    "/home/me/work/../x": f"{OUT}/home/me/x",
    "a/../b": AGAIN,
    "missing/../x": AGAIN,
    "/home/me/work/../work/x": AGAIN,
    "round": "which leads round in a circle",
    "one/x": "which leads round in a circle",
}


@pytest.mark.parametrize("target", VERDICTS)
def test_a_link_is_judged_by_where_it_leads(target: str) -> None:
    found = symlink_refusal("/home/me/work/new", target, ROOTS, LINKS.get)
    expected = VERDICTS[target]
    assert found == (None if expected is None else f"it is a link to {target}, {expected}")


def test_a_link_of_a_sub_folder_begins_there() -> None:
    assert symlink_refusal("/home/me/work/sub/new", "../a", ROOTS, LINKS.get) is None
    assert symlink_refusal("/home/me/work/sub/new", "../../a", ROOTS, LINKS.get) is not None


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "sub").mkdir(parents=True)
    (tmp_path / "root" / "a").write_text("a")
    (tmp_path / "views").mkdir()
    return tmp_path / "root"


@pytest.mark.parametrize(
    ("script", "culprits"),
    [
        ("ln -s . d; ln -s d/d/d/d/d/d/../../../../../../etc out", ["out"]),
        ("ln -s . d; ln -s d/d/../../outside sub/out", ["sub/out"]),
        ("ln -s .. d; ln -s d/outside out", ["d", "out"]),
        ("ln -s sub d; ln -s d/../a fine", ["fine"]),
        ("rm -r sub; ln -s / sub; ln -s sub/etc/passwd a2", ["a2", "sub"]),
        ("ln -s sub/x y; ln -s ../a sub/x", []),
    ],
)
def test_links_that_lead_out_by_way_of_others_are_named_and_not_applied(
    root: Path, script: str, culprits: list[str]
) -> None:
    with CopyView.open([str(root)], folder=str(root.parent / "views")) as view:
        subprocess.run(["/bin/bash", "-ec", script], cwd=view.paths[str(root)], check=True)
        changes = view.changes()
        found = sorted(os.path.relpath(conflict.path, root) for conflict in view.links_out(changes))
        assert found == culprits
        applied = view.apply(changes)
        assert sorted(os.path.relpath(conflict.path, root) for conflict in applied) == culprits
        made = sorted(path.name for path in root.iterdir() if path.is_symlink())
        assert made == ([] if culprits else ["y"])


def test_a_link_is_judged_again_by_what_others_did_meanwhile(root: Path) -> None:
    with CopyView.open([str(root)], folder=str(root.parent / "views")) as view:
        os.symlink("new/x", Path(view.paths[str(root)]) / "link")
        changes = view.changes()
        assert view.links_out(changes) == []
        (root / "new").symlink_to("/etc")
        reason = "it is a link to new/x, which leads out of the workspace, to /etc"
        assert [conflict.reason for conflict in view.apply(changes)] == [reason]
        assert not (root / "link").is_symlink()
