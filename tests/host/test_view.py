"""A copy to work in: what is changed there is told, and reaches the roots only when told, whole or not at all."""

import os
import shutil
import socket
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dragoman.host import copy_view, snapshot, view
from dragoman.host.copy_view import CopyView
from dragoman.host.openat import Undo
from dragoman.host.sandbox import Confinement, SandboxRefused, confine, try_out
from dragoman.host.view import Conflict, View, ViewChange, ViewRefused
from tests.support.needs import need


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "a").write_bytes(b"one\n")
    (folder / "script").write_text("#!/bin/sh\n")
    (folder / "script").chmod(0o755)
    (folder / "sub" / "deep" / "b").write_bytes(b"two\n")
    (folder / "link").symlink_to("a")
    (tmp_path / "views").mkdir()
    return folder


@pytest.fixture
def opened(root: Path) -> Iterator[View]:
    with CopyView.open([str(root)], folder=str(root.parent / "views")) as one:
        yield one


def copy_of(one: View, root: Path) -> Path:
    return Path(one.paths[str(root)])


def content(folder: Path) -> dict[str, object]:
    """Every path below a folder, with what is there and its mode."""
    return {
        str(path.relative_to(folder)): (
            os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None,
            stat.S_IMODE(path.lstat().st_mode),
        )
        for path in folder.rglob("*")
    }


def told(changes: list[ViewChange]) -> list[tuple[str, str, str, bytes | None, bytes | None]]:
    return sorted((os.path.basename(one.path), one.kind, one.what, one.old, one.new) for one in changes)


def test_a_view_is_the_same_and_has_no_changes(opened: View, root: Path) -> None:
    copy = copy_of(opened, root)
    assert content(copy) == content(root)
    assert opened.changes() == []
    assert opened.apply([]) == []
    assert (copy / "a").stat().st_ino != (root / "a").stat().st_ino
    assert (copy / "a").stat().st_mtime_ns == (root / "a").stat().st_mtime_ns
    assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700


def change_everything(copy: Path) -> None:
    (copy / "a").write_bytes(b"ONE\n")
    (copy / "script").chmod(0o644)
    (copy / "sub" / "deep" / "b").unlink()
    (copy / "sub" / "deep").rmdir()
    (copy / "new").mkdir()
    (copy / "new" / "file").write_bytes(b"new\n")
    (copy / "new" / "file").chmod(0o755)
    (copy / "link").unlink()
    (copy / "link").symlink_to("sub")


def test_every_kind_of_change_is_told_and_applied(opened: View, root: Path) -> None:
    copy, before = copy_of(opened, root), content(root)
    change_everything(copy)
    changes = opened.changes()
    assert told(changes) == [
        ("a", "modified", "file", b"one\n", b"ONE\n"),
        ("b", "deleted", "file", b"two\n", None),
        ("deep", "deleted", "folder", None, None),
        ("file", "created", "file", None, b"new\n"),
        ("link", "modified", "link", b"a", b"sub"),
        ("new", "created", "folder", None, None),
        ("script", "mode", "file", None, None),
    ]
    assert content(root) == before
    assert opened.apply(changes) == []
    assert content(root) == content(copy)
    assert opened.changes() == []


def test_some_changes_may_be_applied_and_the_rest_stays(opened: View, root: Path) -> None:
    copy = copy_of(opened, root)
    change_everything(copy)
    file = [change for change in opened.changes() if change.path.endswith("new/file")]
    assert opened.apply(file) == []
    assert (root / "new" / "file").read_bytes() == b"new\n"
    assert (root / "a").read_bytes() == b"one\n"
    assert "file" not in [name for name, *_ in told(opened.changes())]


def test_a_file_that_becomes_a_folder_and_a_folder_that_becomes_a_file(opened: View, root: Path) -> None:
    copy = copy_of(opened, root)
    (copy / "a").unlink()
    (copy / "a").mkdir()
    (copy / "a" / "x").write_text("x")
    (copy / "sub" / "deep" / "b").unlink()
    (copy / "sub" / "deep").rmdir()
    (copy / "sub" / "deep").write_text("y")
    assert opened.apply(opened.changes()) == []
    assert content(root) == content(copy)
    assert opened.changes() == []


@pytest.mark.parametrize(
    ("meanwhile", "name"),
    [
        (lambda root: (root / "a").write_bytes(b"theirs\n"), "a"),
        (lambda root: (root / "a").unlink(), "a"),
        (lambda root: (root / "a").chmod(0o600), "a"),
        (lambda root: ((root / "a").unlink(), (root / "a").symlink_to("/etc/passwd")), "a"),
        (lambda root: subprocess.run(["sh", "-c", "rm a && mkfifo a"], cwd=root, check=True), "a"),
        (lambda root: (root / "sub" / "deep" / "b").write_bytes(b"theirs"), "b"),
        (lambda root: (root / "script").write_text("theirs"), "script"),
        (lambda root: ((root / "new").mkdir(), (root / "new" / "file").write_text("theirs")), "file"),
        (lambda root: (root / "new").write_text("theirs"), "new"),
        (lambda root: ((root / "link").unlink(), (root / "link").symlink_to("script")), "link"),
    ],
)
def test_what_was_changed_meanwhile_is_a_conflict_and_nothing_is_applied(
    opened: View, root: Path, meanwhile: object, name: str
) -> None:
    change_everything(copy_of(opened, root))
    changes = opened.changes()
    assert callable(meanwhile)
    meanwhile(root)
    fifos = [path for path in root.rglob("*") if path.is_fifo()]
    before = content(root) if not fifos else {}
    conflicts = opened.apply(changes)
    assert name in [os.path.basename(conflict.path) for conflict in conflicts]
    assert all(conflict.reason for conflict in conflicts)
    assert fifos or content(root) == before


def test_what_was_changed_after_it_was_shown_is_a_conflict(opened: View, root: Path) -> None:
    (copy_of(opened, root) / "a").write_bytes(b"shown\n")
    changes = opened.changes()
    (copy_of(opened, root) / "a").write_bytes(b"other\n")
    assert opened.apply(changes) == [Conflict(str(root / "a"), "it was changed again after it was shown")]
    assert (root / "a").read_bytes() == b"one\n"


def test_a_change_that_fails_takes_the_others_back(opened: View, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change_everything(copy_of(opened, root))
    before = content(root)
    changes = opened.changes()
    failing = max(range(len(changes)), key=lambda at: view._order(changes[at]))
    real = View._apply

    def apply(self: View, change: ViewChange, undo: Undo) -> None:
        if change == changes[failing]:
            raise OSError(28, "No space left on device", change.path)
        real(self, change, undo)

    monkeypatch.setattr(View, "_apply", apply)
    assert [conflict.path for conflict in opened.apply(changes)] == [changes[failing].path]
    assert content(root) == before
    monkeypatch.undo()
    assert opened.apply(changes) == []


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "sub/../../outside"])
def test_a_link_that_leads_out_is_not_applied(opened: View, root: Path, target: str) -> None:
    (copy_of(opened, root) / "way").symlink_to(target)
    (conflict,) = opened.apply(opened.changes())
    assert "out of the workspace" in conflict.reason
    assert not (root / "way").is_symlink()


def test_a_link_in_the_way_is_not_followed(opened: View, root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (copy_of(opened, root) / "sub" / "x").write_text("x")
    changes = opened.changes()
    os.rename(root / "sub", root / "moved")
    (root / "sub").symlink_to(tmp_path / "outside")
    assert opened.apply(changes)
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("script", ["rm b", "chmod 600 b", "mkdir new", "ln -s b new", "echo three > b"])
def test_nor_is_a_link_to_what_looks_the_same(opened: View, root: Path, tmp_path: Path, script: str) -> None:
    outside = Path(shutil.copytree(root / "sub", tmp_path / "outside"))
    before = content(outside)
    subprocess.run(["sh", "-c", script], cwd=copy_of(opened, root) / "sub" / "deep", check=True)
    changes = opened.changes()
    os.rename(root / "sub", tmp_path / "moved")
    (root / "sub").symlink_to(outside)
    assert opened.apply(changes)
    assert content(outside) == before


def test_a_path_outside_of_the_roots_is_not_applied(opened: View, tmp_path: Path) -> None:
    assert opened.apply([ViewChange(str(tmp_path / "x"), "created", "file")])
    assert not (tmp_path / "x").exists()


def test_links_out_and_special_files_are_not_copied(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside").write_text("secret")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "folder-out").symlink_to(tmp_path)
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as daemon:
        monkeypatch.chdir(root)  # a socket's path is short
        daemon.bind("socket")
    os.link(root / "a", root / "hard")
    with CopyView.open([str(root)], folder=str(tmp_path / "views")) as one:
        copy = copy_of(one, root)
        assert (copy / "out").is_symlink()
        assert (copy / "folder-out").is_symlink()
        assert not (copy / "fifo").exists()
        assert not (copy / "socket").exists()
        (copy / "hard").write_text("changed")
        assert (copy / "a").read_bytes() == b"one\n"
        os.mkfifo(copy / "made")
        assert [change.path for change in one.changes()] == [str(root / "hard")]
        assert one.apply(one.changes()) == []
        assert (root / "a").read_bytes() == b"one\n"  # the other name of the old file keeps the old bytes


def test_a_view_is_bounded(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "views"
    monkeypatch.setattr(copy_view, "COPY_BYTES", 5)
    with pytest.raises(ViewRefused, match="MiB"):
        CopyView.open([str(root)], folder=str(folder))
    monkeypatch.undo()
    monkeypatch.setattr(snapshot, "ENTRIES", 2)
    with pytest.raises(ViewRefused, match="more than 2 files"):
        CopyView.open([str(root)], folder=str(folder))
    monkeypatch.undo()
    monkeypatch.setattr(copy_view, "_MARGIN_BYTES", 1 << 60)
    with pytest.raises(ViewRefused, match="no room"):
        CopyView.open([str(root)], folder=str(folder))
    monkeypatch.undo()
    for roots in ([str(root / "none")], [str(root), str(root / "sub")], [str(tmp_path)]):
        with pytest.raises(ViewRefused):
            CopyView.open(roots, folder=str(folder))
    assert list(folder.iterdir()) == []


def test_changes_are_bounded(opened: View, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = copy_of(opened, root)
    (copy / "large").write_bytes(b"x" * (view.SHOWN_FILE_BYTES + 1))
    (change,) = opened.changes()
    assert (change.new, change.kind) == (None, "created")
    assert opened.apply([change]) == []
    assert (root / "large").stat().st_size == view.SHOWN_FILE_BYTES + 1
    monkeypatch.setattr(view, "CHANGES", 1)
    (copy / "x").write_text("x")
    (copy / "y").write_text("y")
    with pytest.raises(ViewRefused, match="More than 1 files"):
        opened.changes()


def test_a_set_time_does_not_hide_a_change(opened: View, root: Path) -> None:
    file = copy_of(opened, root) / "a"
    before = file.stat()
    file.write_bytes(b"eno\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert told(opened.changes()) == [("a", "modified", "file", b"one\n", b"eno\n")]


def test_a_closed_view_leaves_nothing(root: Path) -> None:
    one = CopyView.open([str(root)], folder=str(root.parent / "views"))
    (copy_of(one, root) / "sub" / "deep").chmod(0)
    (copy_of(one, root) / "sub").chmod(0o500)
    (copy_of(one, root) / "out").symlink_to(root)
    one.close()
    one.close()
    assert list((root.parent / "views").iterdir()) == []
    assert (root / "a").read_bytes() == b"one\n"


def confined(one: View, root: Path, script: str, found: Confinement) -> "subprocess.CompletedProcess[str]":
    with confine(
        ["/bin/bash", "-c", script],
        cwd=str(root),
        writable=[str(root)],
        protected=(),
        views=one.paths,
        confinement=found,
    ) as box:
        return subprocess.run(box.argv, capture_output=True, text=True, check=False, timeout=30)


def test_a_command_sees_the_view_in_the_place_of_the_root(opened: View, root: Path) -> None:
    found = try_out(need("bwrap"))
    assert found.bubblewrap, found.lacks
    before = content(root)
    done = confined(
        opened, root, f"pwd && echo more >> {root}/a && rm -r sub && git init -q . 2>/dev/null; cat a", found
    )
    assert (done.stdout, done.stderr) == (f"{root}\none\nmore\n", "")
    assert content(root) == before
    changes = opened.changes()
    assert ("a", "modified", "file", b"one\n", b"one\nmore\n") in told(changes)
    assert opened.apply(changes) == []
    assert (root / "a").read_bytes() == b"one\nmore\n"
    assert not (root / "sub").exists()


@pytest.mark.requirement("I4")
def test_a_view_without_bubblewrap_is_refused(opened: View, root: Path) -> None:
    with pytest.raises(SandboxRefused, match="bubblewrap"):
        confined(opened, root, "true", Confinement(None, 7, ()))


def test_nothing_is_copied_through_a_link_that_was_a_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder is a link while it is copied, and a folder again when it is entered."""
    outside, sub = root.parent / "outside", root / "sub"
    outside.mkdir()

    def raced(path: str, forbidden: Callable[[str], None]) -> Iterator[snapshot.SnapshotVisit]:
        for found in snapshot.walk(path, forbidden):
            if found.path != "sub":
                yield found
                continue
            sub.rename(root / "kept")
            sub.symlink_to(outside)
            yield found._replace(status=sub.lstat())
            sub.unlink()
            (root / "kept").rename(sub)

    monkeypatch.setattr(copy_view, "walk", raced)
    with pytest.raises(ViewRefused):
        CopyView.open([str(root)], folder=str(root.parent / "views"))
    assert list(outside.iterdir()) == []
