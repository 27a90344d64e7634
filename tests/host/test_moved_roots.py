"""A root is the folder that was looked at: a link that is put above it later leads neither tools nor commands away.

A process that works in a folder further up, in another session, can do that while a call runs.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.host import openat
from dragoman.host.paths import PathRefused, Place, open_file, open_folder, read_bytes, remove_file, write_bytes
from dragoman.host.sandbox import SandboxRefused, confine
from tests.support.confined_commands import LEVELS, confinement

SECRET = "canary-2207"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "work" / "above" / "root"
    made.mkdir(parents=True)
    (made / "file").write_text("ours")
    (made / "sub").mkdir()
    return made


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    made = tmp_path / "outside" / "root"
    (made / "sub").mkdir(parents=True)
    (made / "file").write_text(SECRET)
    return made


def swap(root: Path, outside: Path) -> None:
    root.parent.rename(root.parent.with_name("aside"))
    root.parent.symlink_to(outside.parent)


def listed(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize(
    "act",
    [
        lambda place: read_bytes(place, 100),
        lambda place: write_bytes(place, b"x"),
        remove_file,
        open_file,
        lambda place: open_folder(Place(place.root, ("sub",))),
        lambda place: openat.entry_at(place.root, "file"),
    ],
)
def test_our_own_tools_do_not_follow_a_link_above_a_root(
    act: Callable[[Place], object], root: Path, outside: Path
) -> None:
    place = Place(str(root), ("file",))
    swap(root, outside)
    try:
        assert act(place) is None
    except (OSError, PathRefused):
        pass
    assert listed(outside) == {"file": SECRET}


@pytest.mark.parametrize("level", LEVELS)
def test_a_command_is_not_run_where_a_link_was_put_above_its_root(level: str, root: Path, outside: Path) -> None:
    with confine(
        ["/bin/sh", "-c", f"cd {root}; cat file; echo x > file; echo x > made"],
        cwd=str(root),
        writable=[str(root)],
        protected=(),
        confinement=confinement(level),
    ) as box:
        swap(root, outside)
        done = subprocess.run(box.argv, cwd="/", env=box.environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert listed(outside) == {"file": SECRET}
    assert listed(root.parent.with_name("aside") / "root") == {"file": "ours"}


@pytest.mark.parametrize("level", LEVELS)
def test_a_root_that_leads_elsewhere_is_not_taken_for_another_folder(level: str, root: Path, outside: Path) -> None:
    swap(root, outside)
    with pytest.raises(SandboxRefused, match="leads elsewhere by now"):
        confine(["true"], cwd=str(root), writable=[str(root)], confinement=confinement(level))
