"""Paths inside the roots: what was checked is what is opened."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from dragoman.host.paths import PathRefused, Place, Roots, is_inside, read_bytes, remove_file, write_bytes


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "file.txt").write_text("inside")
    (tmp_path / "secret.txt").write_text("outside")
    return folder


@pytest.mark.parametrize("path", ["file.txt", "./file.txt", "a/../file.txt", "{root}/file.txt"])
def test_a_path_inside_is_placed_under_its_root(workspace: Path, path: str) -> None:
    (workspace / "a").mkdir()
    place = Roots([str(workspace)]).place(path.format(root=workspace))
    assert place == Place(os.path.realpath(workspace), ("file.txt",))


@pytest.mark.requirement("G1", "G2")
@pytest.mark.parametrize(
    "path",
    ["../secret.txt", "/etc/passwd", "a/../../secret.txt", "", "nul\0byte", "x" * 5000, "{root}-other/x", "~/../.."],
)
def test_a_path_that_leads_outside_is_refused(workspace: Path, path: str) -> None:
    with pytest.raises(PathRefused):
        Roots([str(workspace)]).place(path.format(root=workspace))


@pytest.mark.requirement("G3")
def test_a_link_that_leads_outside_is_refused(workspace: Path) -> None:
    (workspace / "way-out").symlink_to(workspace.parent / "secret.txt")
    (workspace / "folder-out").symlink_to(workspace.parent)
    roots = Roots([str(workspace)])
    for path in ("way-out", "folder-out/secret.txt"):
        with pytest.raises(PathRefused):
            roots.place(path)


def test_a_link_that_stays_inside_is_followed(workspace: Path) -> None:
    (workspace / "link").symlink_to("file.txt")
    assert read_bytes(Roots([str(workspace)]).place("link"), 100) == (b"inside", False)


def test_a_second_root_is_inside_too(workspace: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    (more / "x").write_text("here")
    assert read_bytes(Roots([str(workspace), str(more)]).place(str(more / "x")), 100) == (b"here", False)


def test_the_working_folder_is_the_first_root_as_it_really_is(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(workspace)
    assert Roots([str(tmp_path / "link"), str(tmp_path / "missing")]).folder == os.path.realpath(workspace)


@pytest.mark.parametrize("root", ["work", "work/inner"])
def test_there_is_no_working_folder_when_a_root_leads_elsewhere_by_now(tmp_path: Path, root: str) -> None:
    (tmp_path / "work" / "inner").mkdir(parents=True)
    roots = Roots([str(tmp_path / "work"), str(tmp_path / "work" / "inner")])
    (tmp_path / root).rename(tmp_path / "was")
    (tmp_path / root).symlink_to(tmp_path / "was")
    with pytest.raises(PathRefused, match="leads elsewhere by now"):
        _ = roots.folder


@pytest.mark.requirement("G6")
def test_a_link_put_in_the_way_after_the_check_is_not_followed(workspace: Path) -> None:
    (workspace / "folder").mkdir()
    (workspace / "folder" / "file").write_text("mine")
    place = Roots([str(workspace)]).place("folder/file")
    (workspace / "folder" / "file").unlink()
    (workspace / "folder").rmdir()
    (workspace / "folder").symlink_to(workspace.parent)
    (workspace.parent / "file").write_text("theirs")
    for attempt in (lambda: read_bytes(place, 10), lambda: write_bytes(place, b"x")):
        with pytest.raises(PathRefused):
            attempt()
    assert (workspace.parent / "file").read_text() == "theirs"


@pytest.mark.requirement("F8")
def test_a_file_swapped_for_a_link_after_the_check_is_not_followed(workspace: Path) -> None:
    place = Roots([str(workspace)]).place("file.txt")
    (workspace / "file.txt").unlink()
    (workspace / "file.txt").symlink_to(workspace.parent / "secret.txt")
    for attempt in (lambda: read_bytes(place, 10), lambda: write_bytes(place, b"x")):
        with pytest.raises(PathRefused):
            attempt()
    assert (workspace.parent / "secret.txt").read_text() == "outside"


def test_reading_stops_at_the_limit_and_says_so(workspace: Path) -> None:
    assert read_bytes(Roots([str(workspace)]).place("file.txt"), 3) == (b"ins", True)


@pytest.mark.requirement("G5")
@pytest.mark.parametrize("kind", ["fifo", "folder"])
def test_what_is_no_file_is_neither_read_nor_written(workspace: Path, kind: str) -> None:
    path = workspace / "thing"
    os.mkfifo(path) if kind == "fifo" else path.mkdir()
    place = Roots([str(workspace)]).place("thing")
    with pytest.raises(PathRefused):
        read_bytes(place, 10)
    with pytest.raises(PathRefused):
        write_bytes(place, b"x")
    assert stat.S_ISFIFO(path.stat().st_mode) if kind == "fifo" else path.is_dir()


def test_writing_makes_folders_and_keeps_the_mode_of_what_was_there(workspace: Path) -> None:
    roots = Roots([str(workspace)])
    write_bytes(roots.place("new/deep/file"), b"one")
    script = workspace / "new" / "deep" / "file"
    script.chmod(0o751)
    write_bytes(roots.place("new/deep/file"), b"two")
    assert (script.read_bytes(), stat.S_IMODE(script.stat().st_mode)) == (b"two", 0o751)
    assert sorted(os.listdir(workspace / "new" / "deep")) == ["file"]


@pytest.mark.requirement("G8")
def test_a_failed_write_leaves_the_old_file_and_nothing_else(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    place = Roots([str(workspace)]).place("file.txt")
    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(PathRefused, match="no space left"):
        write_bytes(place, b"new")
    assert (workspace / "file.txt").read_text() == "inside"
    assert sorted(os.listdir(workspace)) == ["file.txt"]


def test_a_root_itself_is_inside_and_no_file(workspace: Path) -> None:
    place = Roots([str(workspace)]).place(".")
    assert place == Place(os.path.realpath(workspace), ())
    for work in (lambda: read_bytes(place, 1), lambda: write_bytes(place, b""), lambda: remove_file(place)):
        with pytest.raises(PathRefused, match="is a folder"):
            work()


@pytest.mark.parametrize("path", ["/proc/self/environ", "/sys", "/dev/null"])
def test_the_kernels_files_are_inside_of_no_ordinary_root(path: str) -> None:
    with pytest.raises(PathRefused, match="outside of the workspace"):
        Roots(["/"]).place(path)


def test_a_link_that_changes_while_it_is_read_is_refused(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roots = Roots([str(workspace)])

    def changed(path: str) -> str:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os.path, "realpath", changed)
    with pytest.raises(PathRefused, match="does not stand still"):
        roots.place("file.txt")


def test_a_tree_is_placed_as_a_path_is_and_seen_as_it_lies(workspace: Path) -> None:
    roots = Roots([str(workspace)])
    assert roots.tree(".") == roots.place(".")
    assert roots.shown_path("/some/where") == "/some/where"


def test_removing_takes_a_link_and_not_what_it_leads_to(workspace: Path) -> None:
    (workspace / "link").symlink_to("file.txt")
    remove_file(Place(os.path.realpath(workspace), ("link",)))
    assert sorted(file.name for file in workspace.iterdir()) == ["file.txt"]
    with pytest.raises(PathRefused, match="no such file or directory"):
        remove_file(Place(os.path.realpath(workspace), ("folder", "link")))


def test_a_folder_that_another_process_makes_first_is_used(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = os.mkdir

    def slower(path: str, *, dir_fd: int) -> None:
        make(path, dir_fd=dir_fd)
        make(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", slower)
    write_bytes(Roots([str(workspace)]).place("new/file"), b"x")
    assert (workspace / "new" / "file").read_bytes() == b"x"


def test_a_file_of_another_owner_keeps_its_owner_where_we_may_give_it(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[int, int]] = []

    def refused(fd: int, owner: int, group: int) -> None:
        given.append((owner, group))
        raise PermissionError

    before = os.stat

    def of_another(path: str, **options: Any) -> os.stat_result:
        found = list(before(path, **options))
        found[4:6] = [4711, 4712]
        return os.stat_result(found)

    monkeypatch.setattr(os, "fchown", refused)
    monkeypatch.setattr(os, "stat", of_another)
    write_bytes(Roots([str(workspace)]).place("file.txt"), b"new")
    monkeypatch.undo()
    assert given == [(4711, 4712)]
    assert (workspace / "file.txt").read_bytes() == b"new"


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [
        ("/a", "/a", True),
        ("/a/b", "/a", True),
        ("/a/b", "/a/", True),
        ("/a", "/a/", True),
        ("/a", "/", True),
        ("/ab", "/a", False),
        ("/", "/a", False),
        ("/a", "", False),
        ("", "/", False),
    ],
)
def test_a_path_is_inside_of_a_folder_by_whole_names(path: str, folder: str, *, expected: bool) -> None:
    assert is_inside(path, folder) == expected
