"""`dragoman run -- CMD`, where CMD is an agent that is known by name: what it is lent and given, and what it is not."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import command as called
from tests.support import rogue_agent
from tests.support.rogue_agent import call, text
from tests.support.run_command import Done, run

KEY = "sk-from-the-environment"


def installed(folder: Path, file: Path, *steps: dict[str, Any], **plan: Any) -> Path:
    """A program by this name that plays a plan, and says on stderr which keys it has."""
    agent = rogue_agent.written(folder, *steps, text("ok"), **plan)
    file.parent.mkdir(parents=True, exist_ok=True)
    program = (
        f"#!{sys.executable} -I\nimport os, sys\n"
        f"open({str(folder / 'keys')!r}, 'w').write(os.environ.get('GEMINI_API_KEY', ''))\n"
        f"os.execv({agent[0]!r}, {agent!r})\n"
    )
    file.write_text(program)
    file.chmod(0o755)
    return file


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    made = tmp_path / "work"
    made.mkdir()
    return made


def started(folder: Path, *command: str) -> Done:
    return run(folder, "hi", "--cwd", str(folder / "work"), "--", *command, cwd=folder / "work")


def test_a_known_agent_is_given_its_keys_and_lent_what_suits_it(work: Path, tmp_path: Path) -> None:
    installed(tmp_path, tmp_path / "bin" / "gemini")
    done = started(tmp_path, "gemini", "--acp")
    assert (done.code, done.out, done.error) == (0, "ok\n", "")
    assert (tmp_path / "keys").read_text() == KEY
    (hello,) = rogue_agent.heard(tmp_path, "initialize")
    assert hello["clientCapabilities"].get("fs", {}).get("writeTextFile", False) is False


def test_a_program_of_the_project_is_lent_the_same_and_given_no_keys(work: Path, tmp_path: Path) -> None:
    installed(tmp_path, tmp_path / "bin" / "gemini")
    installed(tmp_path, work / "gemini")
    for command in ("./gemini", str(work / "gemini")):
        assert started(tmp_path, command, "--acp").code == 0
        assert (tmp_path / "keys").read_text() == ""
    for hello in rogue_agent.heard(tmp_path, "initialize"):
        assert hello["clientCapabilities"].get("fs", {}).get("writeTextFile", False) is False


def test_a_login_that_fails_names_the_key_that_was_kept_back(work: Path, tmp_path: Path) -> None:
    wants = {"session/new": {"code": -32000, "message": "Authentication required"}}
    installed(tmp_path, work / "gemini", errors=wants)
    done = started(tmp_path, "./gemini", "--acp")
    assert done.code == 6
    assert done.error == (
        "dragoman: Authentication required: log in with the agent's own program. GEMINI_API_KEY is set here and was "
        "not passed on: ./gemini is not named by its whole path. `--agent gemini` passes what gemini needs\n"
    )
    other = installed(tmp_path, work / "other", errors=wants)
    done = run(tmp_path, "hi", "--", str(other))
    assert done.error.endswith(
        " GEMINI_API_KEY is set here and was not passed on; to pass one: `dragoman agents add NAME -- CMD`, then "
        '"env": {"GEMINI_API_KEY": "$GEMINI_API_KEY"} of NAME in acp.json\n'
    )
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "acp.json").write_text(json.dumps({"servers": {"mine": {"command": str(other)}}}))
    done = run(tmp_path, "hi", "--agent", "mine")
    assert done.error.endswith('to pass one: "env": {"GEMINI_API_KEY": "$GEMINI_API_KEY"} of mine in acp.json\n')


def changed(id: str, status: str, path: str = "/w/a.txt", kind: str = "edit") -> dict[str, Any]:
    reason = [{"type": "content", "content": {"type": "text", "text": "Error: no such file\nmore"}}]
    fields: dict[str, Any] = {"title": "Write a.txt", "kind": kind, "locations": [{"path": path}], "status": status}
    return call(id, **fields, **({"content": reason} if status == "failed" else {}))


@pytest.mark.parametrize("options", [[], ["--stream-json"]])
def test_a_change_that_failed_is_not_passed_over_in_silence(options: list[str], tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, changed("c1", "failed"), text("Done."))
    done = run(tmp_path, "hi", *options, "--", *agent)
    assert (done.code, done.error) == (0, "dragoman: a change failed: Write a.txt (Error: no such file)\n")


@pytest.mark.parametrize(
    "steps",
    [
        [changed("c1", "failed"), changed("c2", "completed")],
        [changed("c1", "completed")],
        [changed("c1", "failed", kind="read")],
    ],
    ids=["made later", "made", "no change"],
)
def test_a_change_that_was_made_after_all_is_none_that_failed(steps: list[dict[str, Any]], tmp_path: Path) -> None:
    done = run(tmp_path, "hi", "--", *rogue_agent.written(tmp_path, *steps, text("Done.")))
    assert (done.code, done.error) == (0, "")


# -- the agent of acp.json that is meant where none is named ----------------------------------------------------------


def default(folder: Path, name: str, file: Path, *steps: dict[str, Any]) -> None:
    command = rogue_agent.written(folder, *steps)
    file.parent.mkdir(parents=True, exist_ok=True)
    servers = {"mine": {"command": command[0], "args": command[1:]}}
    file.write_text(json.dumps({"servers": servers, "defaultServer": name}))


def test_the_default_server_is_the_agent_where_none_is_named(tmp_path: Path) -> None:
    default(tmp_path, "mine", tmp_path / "home" / "acp.json", text("I am mine."))
    assert run(tmp_path, "hi").out == "I am mine.\n"
    ours = run(tmp_path, "--agent", "dragoman", "--model", "demo", "hi")
    assert (ours.code, "This is the demo" in ours.out) == (0, True)


def test_a_default_server_that_is_our_own_is_our_own(tmp_path: Path) -> None:
    default(tmp_path, "dragoman", tmp_path / "home" / "acp.json", text("I am mine."))
    assert "This is the demo" in run(tmp_path, "--model", "demo", "hi").out


def test_the_default_server_of_a_project_counts_once_it_is_trusted(tmp_path: Path) -> None:
    work = tmp_path / "work"
    default(tmp_path, "mine", work / "acp.json", text("I am the project's."))
    before = run(tmp_path, "--model", "demo", "hi", cwd=work)
    assert "This is the demo" in before.out
    assert called.call("trust", str(work), "--yes", DRAGOMAN_HOME=str(tmp_path / "home")).code == 0
    assert run(tmp_path, "hi", cwd=work).out == "I am the project's.\n"


def test_a_default_server_with_a_mistake_is_exit_2(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "acp.json").write_text('{"servers": {"mine": {"comand": "x"}}, "defaultServer": "mine"}')
    done = run(tmp_path, "hi")
    assert (done.code, done.error.endswith("(servers.mine.comand)\n")) == (2, True)
