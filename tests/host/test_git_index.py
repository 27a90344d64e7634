"""An index that git has written is good, in every form; one that leads into a git folder or out of it all is bad."""

import hashlib
import os
import struct
import subprocess
from pathlib import Path

import pytest

from dragoman.host.git_index import index_paths, is_good_index
from tests.support.git_repository import git
from tests.support.needs import need

FORMS: dict[str, tuple[str, ...]] = {
    "version 2": ("index.version=2",),
    "version 4": ("index.version=4",),
    "many threads": ("index.threads=2",),
    "split": ("core.splitIndex=true",),
    "untracked cache": ("core.untrackedCache=true",),
}


def index_of(folder: Path, *settings: str, sha256: bool = False, files: int = 40) -> bytes:
    """The index of a repository with some files, as git writes it with these settings."""
    folder.mkdir()
    git(folder, "init", "-q", f"--object-format={'sha256' if sha256 else 'sha1'}")
    for setting in settings:
        git(folder, "config", *setting.split("="))
    for number in range(files):
        (folder / f"d{number % 7}").mkdir(exist_ok=True)
        (folder / f"d{number % 7}" / f"ä file.{number}").write_text("x")
    for name in (".gitignore", "...txt", "a~b", "x" * 200):
        (folder / name).write_text("x")
    git(folder, "add", ".")
    (folder / "d0" / "later").write_text("x")
    git(folder, "add", "-N", "d0/later")  # an extended entry
    return (folder / ".git" / "index").read_bytes()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sha256", [False, True], ids=["sha1", "sha256"])
def test_what_git_writes_is_good(tmp_path: Path, form: str, sha256: bool) -> None:
    data = index_of(tmp_path / "work", *FORMS[form], sha256=sha256)
    assert is_good_index(data, 32 if sha256 else 20)
    assert not is_good_index(data, 20 if sha256 else 32)
    shared = list((tmp_path / "work" / ".git").glob("sharedindex.*"))
    assert all(is_good_index(path.read_bytes(), 32 if sha256 else 20) for path in shared)
    assert bool(shared) == (form == "split")


def test_the_paths_that_it_tracks_are_known(tmp_path: Path) -> None:
    names = index_paths(index_of(tmp_path / "work", files=2), 20)
    files = ["...txt", ".gitignore", "a~b", "d0/later", "d0/ä file.0", "d1/ä file.1", "x" * 200]
    assert sorted(map(os.fsdecode, names)) == sorted(files)
    assert index_paths(b"DIRC", 20) == frozenset()


BAD = [
    ".git/hooks/x",
    ".GIT/config",
    "sub/.git/config",
    "../x",
    "/etc/x",
    "a/../../x",
    "a//x",
    "git~1/x",
    ".g\u200cit/x",
]


def entry(path: bytes, *, cut: int | None = None, length: int | None = None) -> bytes:
    """An entry of version 2; of version 4 with `cut`."""
    flags = len(path) if length is None else length
    data = bytes(40) + bytes(20) + struct.pack(">H", flags)
    if cut is not None:
        return data + bytes([cut]) + path + b"\0"
    return data + path + bytes(8 - (len(data) + len(path)) % 8)


def made(*entries: bytes, version: int = 2, extensions: bytes = b"") -> bytes:
    data = struct.pack(">4sII", b"DIRC", version, len(entries)) + b"".join(entries) + extensions
    return data + hashlib.sha1(data).digest()


@pytest.mark.parametrize("path", BAD)
def test_a_path_that_git_would_not_add_is_bad(path: str) -> None:
    assert is_good_index(made(entry(b"good")), 20)
    assert not is_good_index(made(entry(b"good"), entry(path.encode())), 20)


def test_a_bad_path_is_found_however_it_is_written() -> None:
    pieces = [entry(b".gi", cut=0), entry(b"t/config", cut=0, length=11)]
    assert not is_good_index(made(*pieces, version=4), 20)
    # Its length says that the next entry begins elsewhere.
    assert not is_good_index(made(entry(b"good" + b"x" * 60, length=4)), 20)
    assert not is_good_index(made(entry(b"good", length=60)), 20)
    # An empty one stands for one of a shared index, and there is none.
    assert not is_good_index(made(entry(b"")), 20)
    # A table, or an end of the entries, that leads to other entries.
    good = entry(b"good")
    table = struct.pack(">4sIIII", b"IEOT", 12, 1, 20, 1)
    assert is_good_index(made(good, extensions=struct.pack(">4sIIII", b"IEOT", 12, 1, 12, 1)), 20)
    assert not is_good_index(made(good, extensions=table), 20)
    assert not is_good_index(made(good, extensions=struct.pack(">4sII", b"EOIE", 24, 12) + bytes(20)), 20)
    ends = 12 + len(good)
    assert is_good_index(made(good, extensions=struct.pack(">4sII", b"EOIE", 24, ends) + bytes(20)), 20)


def test_nothing_that_is_cut_off_is_good(tmp_path: Path) -> None:
    data = index_of(tmp_path / "work", files=2)
    assert [size for size in range(len(data)) if is_good_index(data[:size], 20)] == []


def test_git_itself_would_write_what_a_bad_index_says(tmp_path: Path) -> None:
    """Why this is looked at. If this fails, git has learned to look itself."""
    index_of(tmp_path / "work", files=2)
    blob = subprocess.run(
        [need("git"), "hash-object", "-w", "--stdin"],
        input=b"evil",
        cwd=tmp_path / "work",
        capture_output=True,
        check=True,
    ).stdout.strip()
    made_entry = bytes(24) + struct.pack(">I", 0o100755) + bytes(12) + bytes.fromhex(blob.decode())
    path = b".git/evil"
    made_entry += struct.pack(">H", len(path)) + path
    made_entry += bytes(8 - len(made_entry) % 8)
    (tmp_path / "work" / ".git" / "index").write_bytes(made(made_entry))
    git(tmp_path / "work", "restore", ".")
    assert os.path.exists(tmp_path / "work" / ".git" / "evil")
