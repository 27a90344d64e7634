"""A walk finds everything protected in a workspace, again and again, however it came there."""

import itertools
import os
from pathlib import Path

import pytest

from dragoman.host.protected_scan import ScanFailed, scan_protected


def test_protected_names_and_git_folders_are_found_at_any_depth(tmp_path: Path) -> None:
    for path in ("a/.vscode/x/.vscode", "a/b/.config/fish", "docs/objects", "fish", ".git/hooks"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "docs" / "HEAD").write_text("")
    (tmp_path / "a" / ".envrc").symlink_to("/nowhere")
    found = scan_protected(str(tmp_path))
    assert sorted(found.protected) == [".git", "a/.envrc", "a/.vscode", "a/b/.config/fish"]
    assert found.git_folders == ("docs",)
    assert found.folders == {"", "a", "a/b", "a/b/.config", "docs", "fish"}


def test_what_comes_and_goes_between_two_walks_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert scan_protected(str(tmp_path)).protected == ()
    (tmp_path / "a" / "b" / ".envrc").write_text("")
    os.utime(tmp_path / "a" / "b", (1, 1))
    assert scan_protected(str(tmp_path)).protected == ("a/b/.envrc",)
    (tmp_path / "a" / "b").rename(tmp_path / "a" / "c")
    assert scan_protected(str(tmp_path)).protected == ("a/c/.envrc",)
    (tmp_path / "a" / "c" / ".envrc").unlink()
    assert scan_protected(str(tmp_path)).protected == ()


def test_folders_that_have_not_changed_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    # Read long after the last change: no folder is in doubt.
    monkeypatch.setattr("dragoman.host.protected_scan.time.time_ns", lambda: 2**62)
    before = scan_protected(str(tmp_path))
    changed_at = (tmp_path / "b").stat().st_ctime_ns
    for number in itertools.count():
        (tmp_path / "b" / str(number)).write_text("")
        if (tmp_path / "b").stat().st_ctime_ns != changed_at:
            break
    read: list[str] = []
    scandir = os.scandir

    def noted(path: str) -> "os._ScandirIterator[str]":
        read.append(path)
        return scandir(path)

    monkeypatch.setattr("dragoman.host.protected_scan.os.scandir", noted)
    assert scan_protected(str(tmp_path)) == before
    assert read == [str(tmp_path / "b")]


def test_a_workspace_with_too_many_names_is_not_looked_through(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / str(number)).write_text("")
    with pytest.raises(ScanFailed, match="too many files"):
        scan_protected(str(tmp_path), most_names=10)
