"""Where our folders are: as `platformdirs` says, on every platform that we run on, unless `DRAGOMAN_HOME` names one."""

import contextlib
import itertools
import json
import os
import pwd
import sys
from collections.abc import Iterator
from pathlib import Path

import platformdirs.macos
import platformdirs.unix
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli import home
from dragoman.cli.errors import CommandError
from tests.support import command

VARIABLES = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
PLATFORMS = {"linux": platformdirs.unix.Unix, "freebsd14": platformdirs.unix.Unix, "darwin": platformdirs.macos.MacOS}
ABSOLUTE = ["/", "//", "/a", "/a/", "/a b/c", "/a/../b", "//a"]
VALUES = st.sampled_from([None, "", " ", ".", "a", "a/b", "~", "~/a", "$HOME/a", *ABSOLUTE])


@contextlib.contextmanager
def machine(platform: str, variables: dict[str, str | None], *, known: bool = True) -> Iterator[None]:
    """A platform with these variables and no others of ours; `known`: the system has a home folder for this user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "platform", platform)
        for name in ("DRAGOMAN_HOME", "HOME", *VARIABLES):
            patch.delenv(name, raising=False)
        for name, value in variables.items():
            if value is not None:
                patch.setenv(name, value)
        if not known:
            patch.setattr(pwd, "getpwuid", {}.__getitem__)
        yield


def folders() -> list[str]:
    return [home.config_folder(), home.data_folder(), home.state_folder(), home.cache_folder()]


@pytest.mark.parametrize("platform", PLATFORMS)
@given(variables=st.fixed_dictionaries(dict.fromkeys(("HOME", *VARIABLES), VALUES)), known=st.booleans())
def test_the_folders_are_those_of_platformdirs(platform: str, variables: dict[str, str | None], known: bool) -> None:
    with machine(platform, variables, known=known):
        dirs = PLATFORMS[platform]("dragoman")
        try:
            theirs = [dirs.user_config_dir, dirs.user_data_dir, dirs.user_state_dir, dirs.user_cache_dir]
        except RuntimeError:
            with pytest.raises(CommandError, match="set HOME"):
                folders()
        else:
            assert folders() == theirs


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_variable_alone_and_all_together_are_held_against_platformdirs(platform: str) -> None:
    """What the property may miss in thirty examples."""
    for count in range(len(VARIABLES) + 1):
        for given_ in itertools.combinations(VARIABLES, count):
            with machine(platform, {"HOME": "/home/u", **{name: f"/{name}" for name in given_}}):
                dirs = PLATFORMS[platform]("dragoman")
                theirs = [dirs.user_config_dir, dirs.user_data_dir, dirs.user_state_dir, dirs.user_cache_dir]
                assert folders() == theirs


@pytest.mark.parametrize("platform", PLATFORMS)
def test_dragoman_home_is_every_folder(platform: str, tmp_path: Path) -> None:
    variables: dict[str, str | None] = {"DRAGOMAN_HOME": str(tmp_path), **dict.fromkeys(VARIABLES, "/elsewhere")}
    with machine(platform, variables):
        assert folders() == [str(tmp_path)] * 3 + [str(tmp_path / "cache")]
        assert home.own_folders() == [str(tmp_path)]
        names = (*home.PLACES, "sessions", "trust.json", "credentials.toml", "gateway")
        assert [home.own_path(name) for name in names] == [str(tmp_path / name) for name in names]
        assert home.former_names() == []


def test_our_folders_are_these_four_on_linux() -> None:
    with machine("linux", {"HOME": "/home/u"}):
        assert home.own_folders() == [
            "/home/u/.local/share/dragoman",
            "/home/u/.config/dragoman",
            "/home/u/.local/state/dragoman",
            "/home/u/.cache/dragoman",
        ]


def test_our_folders_are_these_two_on_macos() -> None:
    with machine("darwin", {"HOME": "/Users/u"}):
        folders = ["/Users/u/Library/Application Support/dragoman", "/Users/u/Library/Caches/dragoman"]
        assert home.own_folders() == folders


def test_a_former_folder_elsewhere_is_one_of_ours() -> None:
    """As on a Mac where variables name folders that earlier versions did not look at."""
    with machine("darwin", {"HOME": "/Users/u", **dict.fromkeys(VARIABLES, "/x")}):
        assert home.own_folders() == ["/x/dragoman", "/Users/u/Library/Application Support/dragoman"]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("config.toml", ".config/dragoman/config.toml"),
        ("acp.json", ".config/dragoman/acp.json"),
        ("commands", ".config/dragoman/commands"),
        ("AGENTS.md", ".config/dragoman/AGENTS.md"),
        ("log", ".local/state/dragoman/log"),
        ("history", ".local/state/dragoman/history"),
        ("cache", ".cache/dragoman"),
        ("sessions", ".local/share/dragoman/sessions"),
        ("credentials.toml", ".local/share/dragoman/credentials.toml"),
        ("trust.json", ".local/share/dragoman/trust.json"),
        ("gateway", ".local/share/dragoman/gateway"),
    ],
)
def test_everything_of_ours_has_its_folder(name: str, path: str) -> None:
    with machine("linux", {"HOME": "/home/u"}):
        assert home.own_path(name) == f"/home/u/{path}"


def test_what_was_not_moved_is_used_where_it_is(tmp_path: Path) -> None:
    former, new = tmp_path / ".local/share/dragoman", tmp_path / ".config/dragoman"
    former.mkdir(parents=True)
    (former / "config.toml").touch()
    with machine("linux", {"HOME": str(tmp_path)}):
        assert home.own_path("config.toml") == str(former / "config.toml")
        assert home.own_path("acp.json") == str(new / "acp.json")
        new.mkdir(parents=True)
        (new / "config.toml").touch()
        assert home.own_path("config.toml") == str(new / "config.toml")


def test_a_relative_home_folder_brings_no_files_of_the_folder_we_work_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions took it from the working folder, which may be a stranger's."""
    (tmp_path / "rel/.local/share/dragoman").mkdir(parents=True)
    (tmp_path / "rel/.local/share/dragoman/config.toml").touch()
    monkeypatch.chdir(tmp_path)
    with machine("linux", {"HOME": "rel"}):
        theirs = pwd.getpwuid(os.getuid()).pw_dir
        assert home.own_path("config.toml") == f"{theirs.rstrip('/')}/.config/dragoman/config.toml"
        assert (home.former_folder(), home.former_names()) == ("", [])


def test_config_show_and_doctor_name_every_folder(tmp_path: Path) -> None:
    named = {f"XDG_{kind.upper()}_HOME": str(tmp_path / kind) for kind in ("config", "data", "state", "cache")}
    folders = {kind: f"{tmp_path}/{kind}/dragoman" for kind in ("config", "data", "state", "cache")}
    with machine("linux", {"HOME": str(tmp_path), **named}):
        shown = command.call("config", "show", "--json")
        lines = command.call("config", "show").out.splitlines()
        findings = json.loads(command.call("doctor", "--json").out)["findings"]
    assert json.loads(shown.out)["folders"] == folders
    assert lines[:4] == [f"{kind} folder".ljust(19) + folder for kind, folder in folders.items()]
    text = "; ".join(f"{kind} {folder}" for kind, folder in folders.items())
    assert [one for one in findings if one["what"] == "folders"] == [{"what": "folders", "health": "ok", "text": text}]
