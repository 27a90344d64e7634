"""Both kinds of view, by real commands: whatever is done in one is told, and done to the root, as if done there."""

import ctypes
import functools
import os
import shutil
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from dragoman.host import copy_view
from dragoman.host.confined_command import ConfinedCommand
from dragoman.host.copy_view import CopyView
from dragoman.host.open_view import open_view
from dragoman.host.overlay_view import OverlayView
from dragoman.host.paths import PathRefused, read_bytes, write_bytes
from dragoman.host.sandbox import confine, try_out
from dragoman.host.view import View, ViewRefused
from tests.support.needs import need

tried = functools.cache(try_out)
KINDS: dict[str, type[CopyView] | type[OverlayView]] = {"copied": CopyView, "overlay": OverlayView}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "sub" / "deep" / "deeper").mkdir(parents=True)
    (folder / "a").write_bytes(b"one\n")
    (folder / "script").write_text("#!/bin/sh\n")
    (folder / "script").chmod(0o755)
    (folder / "sub" / "b").write_bytes(b"two\n")
    (folder / "sub" / "deep" / "c").write_bytes(b"three\n")
    (folder / "sub" / "deep" / "deeper" / "d").write_bytes(b"four\n")
    (folder / "link").symlink_to("a")
    (tmp_path / "views").mkdir()
    return folder


@pytest.fixture(params=KINDS)
def opened(request: pytest.FixtureRequest, root: Path) -> Iterator[View]:
    need("bwrap")
    with open_kind(request.param, root) as one:
        yield one


def open_kind(kind: str, root: Path) -> View:
    try:
        return KINDS[kind].open([str(root)], folder=str(root.parent / "views"))
    except ViewRefused as refused:
        if kind == "overlay":
            pytest.skip(f"this kernel has no overlays for us: {refused}")
        raise


def content(folder: Path) -> dict[str, object]:
    """Every path below a folder, with what is there and its mode."""
    return {
        str(path.relative_to(folder)): (
            os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None,
            stat.S_IMODE(path.lstat().st_mode),
        )
        for path in folder.rglob("*")
    }


def boxed(one: View, root: Path, script: str, hidden: tuple[str, ...] = ()) -> ConfinedCommand:
    found = tried(need("bwrap"))
    assert found.bubblewrap, found.lacks
    return confine(
        ["/bin/bash", "-ec", script],
        cwd=str(root),
        writable=[str(root)],
        hidden=hidden,
        views=one.sources,
        enter=one.enter,
        confinement=found,
    )


def work(one: View, root: Path, script: str, hidden: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
    with boxed(one, root, script, hidden) as box:
        return subprocess.run(box.argv, capture_output=True, text=True, check=False, timeout=30)


SCRIPTS = [
    "true",
    "echo ONE > a",
    "echo more >> sub/deep/c; chmod 644 script; touch new; mkdir empty",
    "rm a link; rm -r sub",
    "rm -r sub; mkdir sub; echo x > sub/b",
    "rm -r sub/deep; mkdir -p sub/deep/deeper; echo x > sub/deep/deeper/e",
    "rm -r sub; echo file > sub",
    "rm a; mkdir a; echo x > a/y",
    "mv sub moved; mv a sub",
    "mv sub/deep other; mkdir sub/deep; mv other sub/deep/inner",
    "rm link; ln -s sub link; ln -s ../script sub/back",
    "chmod 700 sub/deep; chmod 600 a",
    "cp -r sub twice; rm -r sub/deep/deeper; echo x > sub/deep/deeper",
    "ln a hard; echo x >> hard",
    "rm a; echo one > a",
    "mv a b; mv script a; mv b script",
    "mkdir -p 'odd name/é'; echo x > 'odd name/é/- *'; printf 'a\\0b' > binary",
    "rm -r sub/deep; rm -r sub; mkdir -p sub/deep; touch sub/deep/c",
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_is_done_in_a_view_is_done_to_the_root_when_told(opened: View, root: Path, script: str) -> None:
    before = content(root)
    expected = root.parent / "expected"
    shutil.copytree(root, expected, symlinks=True)
    subprocess.run(["/bin/bash", "-ec", script], cwd=expected, check=True)
    done = work(opened, root, script)
    assert (done.returncode, done.stderr) == (0, "")
    assert content(root) == before
    changes = opened.changes()
    assert content(root) == before
    assert opened.apply(changes) == []
    assert content(root) == content(expected)
    assert opened.changes() == []


def test_commands_see_what_those_before_them_did(opened: View, root: Path) -> None:
    assert work(opened, root, "echo x > made; rm a; rm -r sub/deep").returncode == 0
    assert work(opened, root, "cat made; test ! -e a; test ! -e sub/deep; echo y > made").stdout == "x\n"
    assert opened.apply(opened.changes()) == []
    assert (root / "made").read_text() == "y\n"
    assert work(opened, root, "cat made; echo z > again").stdout == "y\n"
    assert [change.path for change in opened.changes()] == [str(root / "again")]


def test_nothing_outside_of_the_view_is_written(opened: View, root: Path) -> None:
    (root.parent / "outside").write_text("outside")
    for script in ("echo x > ../outside", f"echo x > {root.parent}/views/x", "echo x > /etc/dragoman-test"):
        work(opened, root, script)
    assert (root.parent / "outside").read_text() == "outside"
    assert not (root.parent / "views" / "x").exists()
    assert not Path("/etc/dragoman-test").exists()
    assert opened.changes() == []


def relink(path: Path) -> None:
    path.unlink()
    path.symlink_to("script")


MEANWHILE: list[tuple[str, Callable[[Path], object]]] = [
    ("echo ours > a", lambda root: (root / "a").write_bytes(b"theirs\n")),
    ("echo ours > a", lambda root: (root / "a").unlink()),
    ("rm a", lambda root: (root / "a").write_bytes(b"theirs\n")),
    ("chmod 600 a", lambda root: (root / "a").chmod(0o755)),
    ("echo ours > new", lambda root: (root / "new").write_text("theirs")),
    ("mkdir new; echo ours > new/x", lambda root: (root / "new").write_text("theirs")),
    ("rm -r sub", lambda root: (root / "sub" / "b").write_text("theirs")),
    ("rm link; ln -s sub link", lambda root: relink(root / "link")),
    ("echo ours > a", lambda root: relink(root / "a")),
]


@pytest.mark.parametrize(("script", "meanwhile"), MEANWHILE)
@pytest.mark.parametrize("when", ["before", "after"])
def test_what_others_changed_is_a_conflict_and_nothing_is_applied(
    opened: View, root: Path, script: str, meanwhile: Callable[[Path], object], when: str
) -> None:
    """Whether they did it before or after the changes were shown."""
    work(opened, root, f"{script}; echo fine > beside")
    if when == "before":
        meanwhile(root)
    changes = opened.changes()
    if when == "after":
        meanwhile(root)
    theirs = content(root)
    assert opened.apply(changes)
    assert content(root) == theirs


def test_file_tools_read_and_write_in_the_view(opened: View, root: Path) -> None:
    before = content(root)
    assert read_bytes(opened.place("a"), 100) == (b"one\n", False)
    write_bytes(opened.place("a", write=True), b"ours\n")
    write_bytes(opened.place(str(root / "sub" / "deep" / "new"), write=True), b"new\n")
    write_bytes(opened.place("script", write=True), b"#!/bin/bash\n")
    assert read_bytes(opened.place("a"), 100) == (b"ours\n", False)
    assert content(root) == before
    done = work(opened, root, "cat a sub/deep/new sub/deep/c; rm -r sub/deep; rm a")
    assert (done.stdout, done.stderr) == ("ours\nnew\nthree\n", "")
    for gone in ("a", "sub/deep/c", "sub/deep", "nowhere"):
        with pytest.raises(PathRefused):
            read_bytes(opened.place(gone), 100)
    write_bytes(opened.place("sub/deep/deeper/again", write=True), b"again\n")
    write_bytes(opened.place("a", write=True), b"back\n")
    assert work(opened, root, "find sub/deep -type f; cat a").stdout == "sub/deep/deeper/again\nback\n"
    assert opened.apply(opened.changes()) == []
    assert (root / "a").read_bytes() == b"back\n"
    assert stat.S_IMODE((root / "script").stat().st_mode) == 0o755
    assert not (root / "sub" / "deep" / "c").exists()
    assert (root / "sub" / "deep" / "deeper" / "again").read_bytes() == b"again\n"


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "sub/../../outside", ".", "way"])
def test_file_tools_do_not_leave_the_view(opened: View, root: Path, path: str) -> None:
    (root.parent / "outside").write_text("outside")
    work(opened, root, "ln -s ../outside way")
    with pytest.raises(PathRefused):
        read_bytes(opened.place(path), 100)
    with pytest.raises(PathRefused):
        write_bytes(opened.place(path, write=True), b"x")
    assert (root.parent / "outside").read_text() == "outside"


def test_no_folder_is_made_behind_a_link(opened: View, root: Path) -> None:
    """Our own process makes room for a file; it is not confined, and a command may have put a link in its way."""
    outside = root.parent / "outside"
    (outside / "there").mkdir(parents=True)
    (outside / "there" / "file").write_text("outside")
    done = work(opened, root, f"ln -s {outside} d; ln -s ../../outside sub/e; mkdir f; ln -s {outside}/there f/g")
    assert done.returncode == 0
    for path in ("d/made/by/us/x", "d/x", "sub/e/made/x", "f/g/x", "f/g/file", "d/there/file"):
        with pytest.raises(PathRefused):
            write_bytes(opened.place(path, write=True), b"x")
        with pytest.raises(PathRefused):
            read_bytes(opened.place(path), 100)
    assert content(outside) == {"there": (None, 0o755), "there/file": (b"outside", 0o644)}


def exchange(one: Path, other: Path) -> None:
    """Two names change places at once."""
    libc = ctypes.CDLL(None, use_errno=True)
    at, exchange_flag = -100, 2
    assert libc.renameat2(at, os.fsencode(one), at, os.fsencode(other), exchange_flag) == 0


def test_no_folder_is_made_behind_a_link_that_comes_and_goes(opened: View, root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    assert work(opened, root, f"mkdir d; ln -s {outside} other").returncode == 0
    made = Path(opened._make(str(root)))
    ended = threading.Event()

    def swap() -> None:
        while not ended.is_set():
            exchange(made / "d", made / "other")

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for at in range(300):
            with suppress(PathRefused):
                write_bytes(opened.place(f"d/made{at}/x", write=True), b"x")
    finally:
        ended.set()
        swapping.join()
    assert list(outside.iterdir()) == []


def test_what_a_file_in_the_view_covers_is_not_read_from_the_root(opened: View, root: Path) -> None:
    assert work(opened, root, "rm -r sub; echo file > sub").returncode == 0
    with pytest.raises(PathRefused):
        read_bytes(opened.place("sub/b"), 100)
    with pytest.raises(PathRefused):
        write_bytes(opened.place("sub/b", write=True), b"x")


@pytest.mark.requirement("I8")
def test_what_is_hidden_in_a_root_is_hidden_in_its_view(root: Path) -> None:
    (root / "data").mkdir()
    (root / "data" / "key").write_text("canary")
    (root / ".netrc").write_text("canary")
    for kind in KINDS:
        with open_kind(kind, root) as one:
            hidden = (str(root / "data"), str(root / ".netrc"))
            done = work(one, root, "cat data/key .netrc; grep -r canary .; true", hidden)
            assert "canary" not in done.stdout
            assert "canary" in work(one, root, "cat data/key").stdout


def test_one_command_at_a_time_works_in_a_layer(root: Path) -> None:
    with open_kind("overlay", root) as one, boxed(one, root, "echo up; read line") as box:
        with subprocess.Popen(box.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
            assert first.stdout is not None
            assert first.stdout.readline() == b"up\n"
            second = work(one, root, "echo ran > ran")
            first.communicate(b"\n")
        assert second.returncode == 125
        assert "Another command" in second.stderr
        assert one.changes() == []


def test_a_closed_layer_leaves_nothing(root: Path) -> None:
    before = content(root)
    one = open_kind("overlay", root)
    work(one, root, "echo x > a; chmod 0 sub")
    one.close()
    assert list((root.parent / "views").iterdir()) == []
    assert content(root) == before


def test_a_layer_says_why_it_cannot_be(tmp_path: Path) -> None:
    odd = tmp_path / "a,upperdir=b"
    odd.mkdir()
    (tmp_path / "views").mkdir()
    with pytest.raises(ViewRefused, match="character"):
        OverlayView.open([str(odd)], folder=str(tmp_path / "views"))
    assert list((tmp_path / "views").iterdir()) == []


def test_a_large_workspace_gets_a_layer(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(root.parent / "views")
    with open_view([str(root)], folder=folder) as one:
        assert isinstance(one, CopyView)
    open_kind("overlay", root).close()
    monkeypatch.setattr(copy_view, "COPY_BYTES", 1)
    with open_view([str(root)], folder=folder) as one:
        assert isinstance(one, OverlayView)
    monkeypatch.setattr("dragoman.host.overlay_view._PROGRAMS", "/nowhere")
    with pytest.raises(ViewRefused, match=r"MiB.*programs"):
        open_view([str(root)], folder=folder)


def test_a_tree_too_deep_to_be_told_is_refused_and_taken_away(opened: View, root: Path) -> None:
    dig = "import os; [(os.mkdir('d'), os.chdir('d')) for _ in range(1500)]; open('x', 'w').close(); os.chmod('.', 0)"
    done = work(opened, root, f'python3 -c "{dig}"')
    assert done.returncode == 0, done.stderr
    with pytest.raises(ViewRefused):
        opened.changes()
    opened.close()
    assert list((root.parent / "views").iterdir()) == []


@pytest.mark.parametrize("script", ["truncate -s 1T large", "for i in 1 2 3; do truncate -s 100M $i; done"])
def test_more_than_can_be_applied_is_refused_before_it_is_read(opened: View, root: Path, script: str) -> None:
    """Holes in a file cost nothing to make, and hours to read."""
    assert work(opened, root, script).returncode == 0
    with pytest.raises(ViewRefused, match="256 MiB"):
        opened.changes()
    assert sorted(path.name for path in root.iterdir()) == ["a", "link", "script", "sub"]
