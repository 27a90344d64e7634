"""The walk: in order, inside, bounded."""

import os
from pathlib import Path

import pytest

from dragoman.host import walk
from dragoman.host.paths import Place
from dragoman.host.walk import Walk


def paths(place: Place) -> list[str]:
    return [file.folder + file.name for file in Walk(place).files()]


def make(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_files_come_by_path(tmp_path: Path) -> None:
    make(tmp_path, "b/z", "b/a", "b-c", "a", "b.c", "c/d/e", ".hidden", "B")
    assert paths(Place(str(tmp_path), ())) == [".hidden", "B", "a", "b/a", "b/z", "b-c", "b.c", "c/d/e"]


@pytest.mark.requirement("G11")
def test_links_are_neither_entered_nor_shown(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    make(outside, "secret")
    root = tmp_path / "root"
    make(root, "inside")
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret")
    (root / "loop").symlink_to(root)
    (root / "inner").symlink_to(root / "inside")
    assert paths(Place(str(root), ())) == ["inside"]


@pytest.mark.requirement("G11")
def test_a_link_on_the_way_is_not_followed(tmp_path: Path) -> None:
    make(tmp_path, "real/a")
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(NotADirectoryError):
        paths(Place(str(tmp_path), ("link",)))


@pytest.mark.requirement("G11")
def test_a_folder_swapped_for_a_link_while_walking_is_not_entered(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    make(outside, "secret")
    root = tmp_path / "root"
    make(root, "a", "b/c")
    walking = Walk(Place(str(root), ()))
    files = walking.files()
    assert next(files).name == "a"
    (root / "b").rename(root / "away")
    (root / "b").symlink_to(outside)
    assert list(files) == []
    assert walking.unreadable == 1


def test_git_and_what_is_no_file_are_passed_by(tmp_path: Path) -> None:
    make(tmp_path, ".git/config", "sub/.git/config", "a")
    os.mkfifo(tmp_path / "fifo")
    assert paths(Place(str(tmp_path), ())) == ["a"]


def test_a_folder_that_cannot_be_read_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a", "b/c", "d")
    real = os.open

    def refuse_b(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "b":
            raise PermissionError
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse_b)
    walking = Walk(Place(str(tmp_path), ()))
    assert [file.name for file in walking.files()] == ["a", "d"]
    assert walking.unreadable == 1


def test_a_walk_ends_at_its_bounds_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, *(f"{number:02}" for number in range(20)))
    monkeypatch.setattr(walk, "WALK_ENTRIES", 10)
    walking = Walk(Place(str(tmp_path), ()))
    assert len(list(walking.files())) == 10
    assert walking.is_cut


def test_a_walk_does_not_go_deeper_than_its_bound(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(walk.WALK_DEPTH + 20):
        deep = deep / "d"
        deep.mkdir()
    make(tmp_path, "a")
    (deep / "b").write_text("")
    walking = Walk(Place(str(tmp_path), ()))
    assert [file.name for file in walking.files()] == ["a"]
    assert walking.is_cut


def test_a_walk_that_is_left_closes_its_folders(tmp_path: Path) -> None:
    make(tmp_path, "a/b/c/d", "z")
    before = open_descriptors()
    files = Walk(Place(str(tmp_path), ())).files()
    assert next(files).name == "d"
    assert open_descriptors() > before
    files.close()  # type: ignore[attr-defined]
    assert open_descriptors() == before
