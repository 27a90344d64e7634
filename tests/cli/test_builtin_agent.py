"""Our own agent as the command line and the settings make it: models, keys, trust. The agent is a real process."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli import doctor
from dragoman.cli.builtin_agent import project_remarks
from dragoman.errors import RequestFailed
from tests.support.command import Called, call
from tests.support.editor import HELLO, Editor

CANARY = "sk-canary-0123456789abcdef"


def dragoman(home: Path, *arguments: str, said: str = "", **env: str) -> Called:
    """A command without keys."""
    keys = dict.fromkeys((name for name in os.environ if name.endswith("_API_KEY")), None)
    return call(*arguments, said=said, cwd=None, forks=True, **{**keys, "DRAGOMAN_HOME": str(home), **env})


class Plain(Editor):
    """An editor that starts `dragoman acp` without a script, and without keys."""

    def __init__(self, folder: Path, *options: str, version: int = 1, **env: str) -> None:
        super().__init__(folder, None, *options, version=version, env=env)

    def thinking(self, folder: Path, script: Any) -> list[str]:
        return []

    def surroundings(self) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}


def values(answer: Any, config_id: str) -> tuple[str, list[str]]:
    (option,) = [option for option in answer["configOptions"] if option["id"] == config_id]
    return option["currentValue"], [choice["value"] for choice in option["options"]]


def test_without_anything_the_demo_answers_and_says_how_to_get_a_model(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello there")
    with Plain(tmp_path) as editor:
        editor.open()
        said = json.dumps(editor.prompt("read a.txt"))
    assert "hello there" in said
    assert "This is the demo, not a language model" in said
    assert "`dragoman login`" in said


@pytest.mark.parametrize("version", [1, 2])
def test_a_model_without_its_key_wants_a_login_and_the_login_works(tmp_path: Path, version: int) -> None:
    with Plain(tmp_path, "--model", "openai/gpt-5", version=version) as editor:
        hello = editor.result("initialize", HELLO[version])
        assert [method.get("id") or method.get("methodId") for method in hello["authMethods"]] == ["dragoman"]
        new = {"cwd": str(tmp_path), "mcpServers": []}
        assert editor.error("session/new", new)["code"] == -32000
        method = {"methodId": "dragoman"}
        assert editor.error("authenticate" if version == 1 else "auth/login", {"methodId": "no"})["code"] == -32602
        assert editor.result("authenticate" if version == 1 else "auth/login", method) == {}
        editor.session = editor.result("session/new", new)["sessionId"]
        assert "This is the demo" in json.dumps(editor.prompt("hello"))
    listed = json.loads(dragoman(tmp_path / "home", "sessions", "list", "--json").out)
    assert len(listed) == 1  # the one that could not be opened has left nothing behind


def test_a_terminal_login_is_offered_to_who_has_a_terminal(tmp_path: Path) -> None:
    with Plain(tmp_path) as editor:
        hello = editor.result("initialize", {**HELLO[1], "clientCapabilities": {"auth": {"terminal": True}}})
        kinds = [(method["id"], method.get("type"), method.get("args")) for method in hello["authMethods"]]
        assert kinds == [("dragoman", None, None), ("dragoman-login", "terminal", ["login"])]


def test_after_a_logout_a_providers_model_wants_a_login_again(tmp_path: Path) -> None:
    with Plain(tmp_path, "--model", "openai/gpt-5", OPENAI_API_KEY=CANARY) as editor:
        editor.open()
        assert editor.result("auth/status", {})["state"] == "authenticated"
        assert editor.result("logout", {}) == {}
        assert editor.result("auth/status", {})["state"] == "unauthenticated"
        assert editor.error("session/new", {"cwd": str(tmp_path), "mcpServers": []})["code"] == -32000
        editor.result("authenticate", {"methodId": "dragoman"})
        assert "sessionId" in editor.result("session/new", {"cwd": str(tmp_path), "mcpServers": []})


def test_keys_decide_which_models_are_offered_and_no_file_can_be_chosen(tmp_path: Path) -> None:
    with Plain(tmp_path, ANTHROPIC_API_KEY=CANARY) as editor:
        editor.result("initialize", HELLO[1])
        answer = editor.result("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        current, offered = values(answer, "model")
        assert current.startswith("anthropic/")
        assert offered == [current, "demo"]
        change = {"sessionId": answer["sessionId"], "configId": "model"}
        for wanted in ("script:/etc/passwd", "script:x.gguf", "script"):
            assert editor.error("session/set_config_option", {**change, "value": wanted})["code"] == -32602
        editor.result("session/set_config_option", {**change, "value": "demo"})
        assert CANARY.encode() not in json.dumps(answer).encode()


@pytest.mark.parametrize(
    ("options", "settings"), [(["--model", "Offline"], ""), ([], 'model = "offline"\n')], ids=["option", "settings"]
)
def test_the_former_name_of_the_demo_works_with_a_sentence_on_stderr(
    tmp_path: Path, options: list[str], settings: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(settings)
    with Plain(tmp_path, *options) as editor:
        editor.result("initialize", HELLO[1])
        answer = editor.result("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        assert values(answer, "model") == ("demo", ["demo"])
        sentence = b"the model `offline` is called `demo` now; the old name goes with the next release"
        assert editor.leave() == (0, b"", b"dragoman: warning: %b\n" % sentence)


def test_a_client_may_write_the_former_name_of_the_demo(tmp_path: Path) -> None:
    with Plain(tmp_path) as editor:
        editor.open()
        change = {"sessionId": editor.session, "configId": "model", "value": "offline"}
        assert values(editor.result("session/set_config_option", change), "model") == ("demo", ["demo"])


def test_limits_of_confined_commands_are_settings(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('sandbox_memory = "4GiB"\nsandbox_processes = 200\n')
    shown = json.loads(dragoman(home, "config", "show", "--json").out)["settings"]
    assert (shown["sandbox_memory"]["value"], shown["sandbox_processes"]["value"]) == ("4GiB", 200)
    (home / "config.toml").write_text('sandbox_memory = "4 apples"\n')
    told = dragoman(home, "acp")
    assert told.code == 2
    assert "sandbox_memory must be a size such as 4GiB" in told.error


def test_settings_come_from_the_command_line_the_environment_and_the_file(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('mode = "safe"\nmodel = "demo"\nmax_turn_requests = 5\n')
    shown = json.loads(dragoman(home, "config", "show", "--json", DRAGOMAN_MODE="plan").out)["settings"]
    assert shown["mode"] == {"value": "plan", "source": "DRAGOMAN_MODE"}
    assert shown["max_turn_requests"] == {"value": 5, "source": str(home / "config.toml")}
    cases: list[Any] = [((), {}, "safe"), ((), {"DRAGOMAN_MODE": "plan"}, "plan"), (("--mode", "full"), {}, "")]
    for options, env, mode in cases:
        with Plain(tmp_path, *options, **env) as editor:
            editor.result("initialize", HELLO[1])
            answer = editor.result("session/new", {"cwd": str(tmp_path), "mcpServers": []})
            assert values(answer, "mode")[0] == (mode or "full-access")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("mode = ", "config.toml: "),
        ("mode = 1", "mode must be text"),
        ("colour = 'red'", "unknown key 'colour'"),
        ("mode = 'nonsense'", "unknown mode 'nonsense'"),
        ("mcp = 3", "[mcp.NAME] must be a table"),
    ],
)
def test_a_mistake_in_the_settings_is_told_with_its_place(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "config.toml").write_text(text)
    ended = dragoman(tmp_path, "acp")
    assert (ended.code, ended.out) == (2, "")
    assert complaint in ended.error


@pytest.mark.parametrize("model", ["nonsense/x", "script:", "gpt 5", "script:/nonexistent"])
def test_a_model_that_is_none_ends_the_start(tmp_path: Path, model: str) -> None:
    ended = dragoman(tmp_path, "acp", "--model", model)
    assert (ended.code, ended.out) == (2, "")
    assert len(ended.error.splitlines()) == 1


def test_a_key_is_kept_for_its_owner_and_forgotten(tmp_path: Path) -> None:
    home = tmp_path / "home"
    nobody = dragoman(home, "login", "nobody", said=CANARY)
    assert (nobody.code, "[providers.NAME]" in nobody.error, CANARY in nobody.error) == (2, True, False)
    nothing = dragoman(home, "login")
    assert (nothing.code, nothing.error.startswith("dragoman: a provider is missing: dragoman login PROVIDER")) == (
        2,
        True,
    )
    before = dragoman(home, "config", "show").out
    assert "`dragoman login` keeps one" in before
    assert max(map(len, before.replace(str(home), "").splitlines())) <= 80
    kept = dragoman(home, "login", "openai", said=CANARY + "\n")
    assert "`dragoman chat` uses it" in kept.out
    shown = dragoman(home, "config", "show").out
    assert re.search(r"^keys +openai \(credentials.toml\)$", shown, re.M)
    assert re.search(r"^thinks +openai/", shown, re.M)
    assert CANARY not in shown
    assert (kept.code, CANARY in kept.out + kept.error) == (0, False)
    assert (home / "credentials.toml").stat().st_mode & 0o777 == 0o600
    with Plain(tmp_path) as editor:
        editor.result("initialize", HELLO[1])
        answer = editor.result("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        assert values(answer, "model")[0].startswith("openai/")
    assert dragoman(home, "logout").out == "Forgotten: openai\n"
    assert dragoman(home, "logout").code == 1
    assert CANARY not in (home / "credentials.toml").read_text()


@pytest.mark.requirement("J1", "J3", "J4")
def test_a_projects_servers_are_data_until_they_are_trusted(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    project = tmp_path / "project"
    project.mkdir()
    server = {"command": sys.executable, "args": ["-c", f"open({str(mark)!r}, 'w').close()"]}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"evil": server}}))

    def servers(editor: Plain) -> str:
        editor.session = editor.result("session/new", {"cwd": str(project), "mcpServers": []})["sessionId"]
        return json.dumps(editor.prompt("/mcp"))

    refused = f"no MCP servers.\\n- .mcp.json is not used: it has not been trusted here; dragoman trust {project}"
    with Plain(tmp_path) as editor:
        editor.result("initialize", HELLO[1])
        assert refused in servers(editor)
        assert not mark.exists()
        assert dragoman(tmp_path / "home", "trust", str(project), "--yes").code == 0
        assert "evil" in servers(editor)
        (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"worse": server}}))
        assert "no MCP servers" in servers(editor)
    assert dragoman(tmp_path / "home", "trust", str(project), "--revoke").code == 0
    assert dragoman(tmp_path / "home", "trust", str(project), "--revoke").code == 1


def test_the_doctor_finds_a_new_installation_in_order(tmp_path: Path) -> None:
    looked = dragoman(tmp_path / "home", "doctor", "--json")
    found = {finding["what"]: finding for finding in json.loads(looked.out)["findings"]}
    assert looked.code == 0
    assert found["turn"]["health"] == "ok"
    assert found["model"]["text"].startswith("demo, which is no language model")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("started", ["program", "module"])
def test_editors_settings_name_the_program_that_runs_and_no_other(
    started: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = tmp_path / "own" / "dragoman", tmp_path / "other" / "dragoman"
    for program in (own, other):
        program.parent.mkdir()
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent))
    monkeypatch.setattr("sys.argv", [str(own) if started == "program" else "/site/dragoman/__main__.py"])
    monkeypatch.setattr("sys.executable", str(own.parent / "python"))
    for settings in doctor._snippets().values():
        assert str(own) in settings and str(other) not in settings


def test_editors_settings_name_the_program_on_the_path_where_there_is_none_beside_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "dragoman"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["/site/dragoman/__main__.py"])
    monkeypatch.setattr("sys.executable", "/site/bin/python")
    assert all(str(program) in settings for settings in doctor._snippets().values())


def test_the_doctor_says_what_is_broken(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("mode = 3")
    looked = dragoman(tmp_path, "doctor")
    assert looked.code == 1
    assert "BROKEN  settings" in looked.out


def test_the_doctor_tells_the_details_of_an_agent_s_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> doctor.Finding:
        raise RequestFailed(-32603, "Internal error", {"details": "no space left on device"})

    monkeypatch.setattr(doctor, "_turn", fail)
    assert list(doctor._findings(None))[-1] == doctor.Finding(
        "turn", "broken", "Internal error: no space left on device"
    )


def test_what_a_killed_command_has_left_in_the_place_of_a_file_is_none(tmp_path: Path) -> None:
    left = tmp_path / ".mcp.json"
    left.mkdir()
    assert len(project_remarks(str(tmp_path))) == 1
    left.chmod(0o1555)
    assert project_remarks(str(tmp_path)) == []
