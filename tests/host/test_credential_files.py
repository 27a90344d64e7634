"""The credentials of a workspace are found, within a bound, and nothing is followed or read."""

from pathlib import Path

import pytest

from dragoman.host import credential_files as module
from dragoman.host.credential_files import credential_files


def found(root: Path, home: str = "") -> list[str]:
    return sorted(path.removeprefix(f"{root}/") for path in credential_files([str(root)], home))


def test_files_and_folders_are_found_at_any_depth(tmp_path: Path) -> None:
    for name in (".env", "a/b/c/server.key", ".ssh/id_rsa", "a/.env.example", "src/main.py", "node_modules/x/.npmrc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "link.pem").symlink_to("src/main.py")
    assert found(tmp_path) == [".env", ".ssh", "a/b/c/server.key"]


def test_in_a_home_folder_so_is_what_keeps_logins(tmp_path: Path) -> None:
    (tmp_path / ".bash_history").write_text("x")
    assert found(tmp_path) == []
    assert found(tmp_path, str(tmp_path)) == [".bash_history"]


@pytest.mark.parametrize("bound", ["MOST_ENTRIES", "MOST_FOUND"])
def test_no_number_of_other_files_hides_a_well_known_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(module, bound, 20)
    for number in range(100):
        (tmp_path / f"a{number}.pem").write_text("x")
    (tmp_path / ".env").write_text("x")
    several = found(tmp_path)
    assert ".env" in several
    assert len(several) <= 21


def test_a_folder_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert found(tmp_path / "gone") == []
