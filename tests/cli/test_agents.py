"""`dragoman agents`: the registry on the command line."""

import json
import sys
from pathlib import Path

import pytest

from dragoman.cli.main import main
from tests.support.rough_command import rough


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setenv("DRAGOMAN_HOME", str(folder))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(work)
    return folder


def test_known_agents_are_listed_with_how_to_install_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agents", "list"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert set(lines) >= {"gemini", "claude", "codex", "opencode", "qwen", "goose", "kimi", "dragoman"}
    assert lines["gemini"].endswith("Install it with: npm install -g @google/gemini-cli")
    assert "not installed" in lines["gemini"]
    assert "not installed" not in lines["dragoman"]


def test_at_a_terminal_a_command_to_install_one_is_not_cut_off(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["agents", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "    Install it with: npm install -g @agentclientprotocol/claude-agent-acp" in lines
    assert max(map(len, lines)) <= 80


def test_an_agent_is_added_changed_and_removed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-m", "agent", "--acp", "--", "-x"]
    assert main(["agents", "add", "mine", "--description", "My own", "--", *command]) == 0
    assert "mine is added" in capsys.readouterr().out
    assert json.loads((home / "acp.json").read_text()) == {
        "servers": {"mine": {"command": sys.executable, "args": command[1:], "description": "My own"}}
    }
    assert main(["agents", "list", "--json"]) == 0
    listed = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert listed["mine"] == {
        "name": "mine",
        "state": "configured",
        "installed": True,
        "default": False,
        "command": sys.executable,
        "args": command[1:],
        "description": "My own",
        "source": f"{home / 'acp.json'}, line 3",
    }
    assert main(["agents", "add", "mine", "--", "other"]) == 0
    said = capsys.readouterr()
    assert said.out == "mine is changed: other\n"
    assert said.err == "dragoman: there is no program other on this machine yet\n"
    assert main(["agents", "remove", "mine"]) == 0
    assert json.loads((home / "acp.json").read_text()) == {"servers": {}}


def test_an_agent_behind_an_address_is_added_and_becomes_a_command(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "https://agents.example.org"
    assert main(["agents", "add", "far", "--description", "Far", "--", "other", "-x"]) == 0
    assert main(["agents", "add", "far", "--token-file", "token", url]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == f"far is changed: {url}"
    kept = {"description": "Far", "url": url, "tokenFile": str(tmp_path / "work" / "token")}
    assert json.loads((home / "acp.json").read_text()) == {"servers": {"far": kept}}
    assert main(["agents", "list"]) == 0
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines()}
    assert lines["far"][1:] == ["remote", f"{url}:", "Far"]
    assert main(["agents", "list", "--json"]) == 0
    listed = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert (listed["far"]["url"], listed["far"]["installed"]) == (url, True)
    assert main(["agents", "add", "far", "--", sys.executable]) == 0
    now = {"description": "Far", "command": sys.executable, "args": []}
    assert json.loads((home / "acp.json").read_text()) == {"servers": {"far": now}}


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["remove", "gemini"], 1, "gemini is built in"),
        (["remove", "nobody"], 1, "there is no agent nobody in "),
        (["add", "a\nb", "--", "x"], 2, "is no name for an agent"),
        (["add", "a", "ftp://x"], 2, "'ftp://x' is no address of an agent"),
        (["add", "a", "https://me:secret@x"], 2, "no user or password"),
        (["add", "a", "--token-file", "t", "--", "x"], 2, "--token-file goes with an address"),
    ],
)
def test_what_cannot_be_done_is_said(
    arguments: list[str], code: int, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["agents", *arguments]) == code
    assert complaint in capsys.readouterr().err


def test_a_mistake_in_the_file_is_shown_with_its_line(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.mkdir()
    (home / "acp.json").write_text('{"servers": {\n"mine": {"comand": "x"}}}')
    for arguments in (["list"], ["add", "b", "--", "x"], ["remove", "mine"]):
        assert main(["agents", *arguments]) == 1
        assert "acp.json, line 2: unknown key 'comand'; did you mean command?" in capsys.readouterr().err


def test_a_mistake_in_one_agent_leaves_the_others_in_the_list(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.mkdir()
    (home / "acp.json").write_text('{"servers": {"mine": {"comand": "x"}, "other": {"command": "y"}}}')
    assert main(["agents", "list"]) == 1
    said = capsys.readouterr()
    names = [line.split()[0] for line in said.out.splitlines()]
    assert "other" in names
    assert "mine" not in names
    assert said.err.endswith("(servers.mine.comand); this agent cannot be used\n")


def test_a_projects_file_is_pointed_at_and_not_used(capsys: pytest.CaptureFixture[str]) -> None:
    Path("acp.json").write_text('{"servers": {"theirs": {"command": "x\\u001b[31m"}}}')
    assert main(["agents", "list"]) == 0
    said = capsys.readouterr()
    assert "theirs" not in said.out
    assert "is not used: it has not been trusted" in said.err
    assert main(["trust", ".", "-y"]) == 0
    capsys.readouterr()
    assert main(["agents", "list"]) == 0
    said = capsys.readouterr()
    assert "theirs" in said.out
    assert "\x1b" not in said.out
    assert said.err == ""


def test_a_check_says_hello_to_what_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agents", "add", "good", "--", *rough()]) == 0
    assert main(["agents", "add", "bad", "--", *rough("stillborn")]) == 0
    assert main(["agents", "list", "--check", "--json"]) == 0
    out = capsys.readouterr().out
    listed = {one["name"]: one for one in json.loads(out[out.index("[\n") :])}
    assert (listed["good"]["state"], listed["bad"]["state"], listed["gemini"]["state"]) == (
        "ready",
        "failed",
        "configured",
    )
    assert "exited with code 9" in listed["bad"]["lastError"]
    assert listed["bad"]["stderrTail"] == "no configuration found\n"
    assert listed["dragoman"]["version"].startswith("dragoman ")
