"""`dragoman setup`: what it writes into an editor's settings, and when it does not."""

import json
import os
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pytest

from tests.support.command import Called, call
from tests.support.fork_server.client import fork_server

ZED = Path(".config") / "zed" / "settings.json"


def setup(home: Path, *arguments: str) -> Called:
    return call("setup", *arguments, HOME=str(home), XDG_CONFIG_HOME=None, DRAGOMAN_HOME=str(home / "own"))


def zed(home: Path, text: str) -> Path:
    file = home / ZED
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("name", "file", "key"),
    [
        ("zed", str(ZED), "agent_servers"),
        ("jetbrains", ".jetbrains/acp.json", "agent_servers"),
        ("vscode", ".config/Code/User/settings.json", "acp.agents"),
        ("acpx", ".acpx/config.json", "agents"),
    ],
)
def test_a_file_that_is_not_there_is_made(name: str, file: str, key: str, tmp_path: Path) -> None:
    assert setup(tmp_path, name, "--yes", "--mode", "workspace-write").code == 0
    ((_, server),) = json.loads((tmp_path / file).read_text())[key].items()
    assert server["args"] == ["acp", "--mode", "workspace-write"]
    assert os.path.basename(server["command"]) == "dragoman"
    assert (tmp_path / file).stat().st_mode & 0o777 == 0o600


def test_the_change_is_shown_and_a_copy_is_kept(tmp_path: Path) -> None:
    before = '{\n  // mine\n  "theme": "One"\n}\n'
    file = zed(tmp_path, before)
    file.chmod(0o644)
    done = setup(tmp_path, "zed", "--yes")
    assert (done.code, '+  "agent_servers": {' in done.error, "// mine" in file.read_text()) == (0, True, True)
    copy = file.with_name("settings.json.before-dragoman")
    assert (copy.read_text(), file.stat().st_mode & 0o777) == (before, 0o644)
    file.write_text(before)
    setup(tmp_path, "zed", "--yes")
    assert copy.with_name(f"{copy.name}.2").exists()


def test_what_is_there_already_is_not_written_again(tmp_path: Path) -> None:
    setup(tmp_path, "zed", "--yes")
    written = (tmp_path / ZED).stat()
    again = setup(tmp_path, "zed")
    assert (again.code, again.out) == (0, f"{tmp_path / ZED} has it already.\n")
    assert (tmp_path / ZED).stat().st_ino == written.st_ino


def test_without_a_terminal_and_a_yes_nothing_is_written(tmp_path: Path) -> None:
    done = setup(tmp_path, "zed")
    assert (done.code, "add --yes" in done.error, (tmp_path / ZED).exists()) == (2, True, False)


@pytest.mark.parametrize(("answer", "is_written"), [("y", True), ("n", False), ("", False)])
def test_the_user_is_asked(answer: str, is_written: bool, tmp_path: Path) -> None:
    program = fork_server().dragoman()
    env = {**os.environ, "HOME": str(tmp_path), "DRAGOMAN_HOME": str(tmp_path / "own")}
    env.pop("XDG_CONFIG_HOME", None)
    child = pexpect.spawn(program[0], [*program[1:], "setup", "zed"], env=env, timeout=30, encoding="utf-8")
    child.expect(r"Write this\? \[y/N\] ")
    child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert (child.exitstatus == 0, (tmp_path / ZED).exists()) == (is_written, is_written)


def test_settings_that_cannot_be_changed_safely_stay_and_the_snippet_is_shown(tmp_path: Path) -> None:
    file = zed(tmp_path, '{"a": 1, "a": 2}')
    done = setup(tmp_path, "zed", "--yes")
    assert (done.code, file.read_text()) == (1, '{"a": 1, "a": 2}')
    assert "'a' stands there twice" in done.error
    assert list(json.loads(done.out)) == ["agent_servers"]


def test_a_link_is_followed_and_stays_one(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    (tmp_path / ZED).parent.mkdir(parents=True)
    (tmp_path / ZED).symlink_to(real)
    assert setup(tmp_path, "zed", "--yes").code == 0
    assert (tmp_path / ZED).is_symlink()
    assert "agent_servers" in json.loads(real.read_text())


@pytest.mark.parametrize("name", ["emacs", "neovim", "avante", "toad"])
def test_a_program_of_the_user_s_is_not_written_but_shown(name: str, tmp_path: Path) -> None:
    done = setup(tmp_path, name, "--yes")
    assert (done.code, "dragoman" in done.out) == (1, True)
    assert done.out == setup(tmp_path, name, "--print").out
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_without_an_editor_it_says_where_the_settings_are(tmp_path: Path) -> None:
    zed(tmp_path, "{}")
    shown = setup(tmp_path).out
    assert f"Zed: {tmp_path / ZED} (is there)" in shown
    assert f"JetBrains: {tmp_path / '.jetbrains' / 'acp.json'} (not there yet)" in shown


def test_an_unknown_editor_is_exit_2(tmp_path: Path) -> None:
    done = setup(tmp_path, "nano")
    assert (done.code, done.error.startswith("dragoman: unknown editor 'nano'; there are zed, jetbrains")) == (2, True)
    done = setup(tmp_path, "zde")
    assert (done.code, done.error) == (2, "dragoman: unknown editor 'zde'; did you mean zed?\n")


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        (("--mode", "mad"), "unknown mode 'mad'; there are "),
        (("--model", "llama3"), "--model llama3: Model llama3 needs a provider"),
    ],
)
def test_what_the_agent_would_not_start_with_is_not_written(
    option: tuple[str, str], complaint: str, tmp_path: Path
) -> None:
    done = setup(tmp_path, "zed", "--yes", *option)
    assert (done.code, done.error.startswith(f"dragoman: {complaint}")) == (2, True)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
