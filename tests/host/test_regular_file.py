"""Files that are found by name: only regular ones are read, and none is waited for."""

import os
from pathlib import Path

import pytest

from dragoman.cli.settings import SettingsError
from dragoman.cli.settings import _read as read_settings
from dragoman.client.registry_file import RegistryFileInvalid, file_bytes
from dragoman.coder.prompt_files import read_prompt_files
from dragoman.host.ignore import rules_above
from dragoman.host.paths import Place
from dragoman.host.regular_file import read_regular, read_whole


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_a_file_is_read_up_to_the_limit_also_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link", 4) == b"1234"


def test_a_whole_file_is_read_up_to_the_bound_and_refused_above_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert read_whole(tmp_path / "file", 5) == b"12345"
    with pytest.raises(OSError, match="it is too long"):
        read_whole(tmp_path / "file", 4)


def test_a_link_is_refused_where_links_are_not_followed(tmp_path: Path, fifo: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(OSError, match="symbolic links"):
        read_whole(tmp_path / "link", 5, follow=False)
    with pytest.raises(OSError, match="this is no regular file"):
        read_whole(fifo, 5)


def test_a_pipe_a_device_and_a_folder_are_refused(tmp_path: Path, fifo: Path) -> None:
    for path in (fifo, Path("/dev/zero"), tmp_path):
        with pytest.raises(OSError, match=r"this is no regular file|Is a directory"):
            read_regular(path, 4)


def test_a_pipe_in_place_of_the_settings_is_refused(fifo: Path) -> None:
    with pytest.raises(SettingsError, match="this is no regular file"):
        read_settings(str(fifo))


def test_a_pipe_in_place_of_the_list_of_agents_is_refused(fifo: Path) -> None:
    with pytest.raises(RegistryFileInvalid, match="this is no regular file"):
        file_bytes(fifo)


def test_a_pipe_among_the_commands_is_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "evil.md")
    (tmp_path / "good.md").write_text("Do it.")
    assert list(read_prompt_files(str(tmp_path), "").commands) == ["good"]


def test_a_pipe_in_place_of_ignore_rules_holds_no_rules_even_with_a_silent_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".gitignore")
    (tmp_path / "file").touch()
    writer = os.open(tmp_path / ".gitignore", os.O_RDWR)
    try:
        assert rules_above(Place(str(tmp_path), ("file",))) == []
    finally:
        os.close(writer)
