"""What a confined command is shown of a home folder."""

from pathlib import Path

from dragoman.host.home_view import HomeView, home_view


def test_toolchains_are_shown_and_the_rest_is_hidden(tmp_path: Path) -> None:
    for name in (".cargo/bin", ".pyenv", "documents", ".cache/pip"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / ".gitconfig").touch()
    home = str(tmp_path)
    folders = (f"{home}/.pyenv", f"{home}/.cargo", f"{home}/.cache/pip")
    assert home_view(home, ["/work"], []) == HomeView(home, folders, (f"{home}/.gitconfig",))


def test_a_link_and_what_is_hidden_or_in_a_root_is_not_shown(tmp_path: Path) -> None:
    for name in ("documents", ".cargo", "go/src"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / ".nvm").symlink_to(tmp_path / "documents")
    (tmp_path / ".gitconfig").symlink_to(tmp_path / "documents")
    home = str(tmp_path)
    assert home_view(home, [f"{home}/go"], [f"{home}/.cargo"]) == HomeView(home)


def test_a_home_folder_in_a_root_is_not_hidden(tmp_path: Path) -> None:
    assert home_view(str(tmp_path), [str(tmp_path)], []) == HomeView("")
    assert home_view(str(tmp_path), [str(tmp_path.parent)], []) == HomeView("")
    assert home_view("/", ["/work"], []) == HomeView("")
