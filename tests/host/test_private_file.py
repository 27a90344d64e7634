"""A private file: whole or as it was, and for its owner alone."""

from pathlib import Path

import pytest

from dragoman.host.private_file import replaced_file, write_private


def test_it_is_replaced_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    write_private(path, b"one")
    path.chmod(0o644)
    write_private(path, b"two")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("two", 0o600)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert list(path.parent.iterdir()) == [path]


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        write_private(path, b"one")
    assert list(tmp_path.iterdir()) == [path]


def test_a_block_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(TypeError), replaced_file(str(path)) as file:
        file.writelines([b"new", "no bytes"])  # type: ignore[list-item]
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])


def test_a_name_of_the_greatest_length_can_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / ("ä" * 127)  # two bytes each, of 255 that a name may have
    write_private(path, b"new")
    assert (path.read_text(), list(tmp_path.iterdir())) == ("new", [path])
