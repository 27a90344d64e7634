"""The administrator's file at a real `dragoman acp`, and where it is shown: no way of a user leads round it."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.kept_rules import KeptRules
from dragoman.permissions.rule import PermissionRule
from tests.support import rogue_agent
from tests.support.command import Called, call
from tests.support.editor import Editor, turns
from tests.support.managed_place import looking_at, told, written
from tests.support.provider_server import KEY, provider_server
from tests.support.rogue_agent import permission
from tests.support.run_command import Done, run

TOUCH = turns([{"call": "bash", "input": {"command": "touch x"}}, {"say": "."}])


def editor(folder: Path, text: str, script: Any = None, *options: str, **more: Any) -> Editor:
    return Editor(folder, script, *options, first=told(written(folder, text)), **more)


def refused(folder: Path, text: str, *options: str, **env: str) -> tuple[int, str]:
    """How an agent ends that does not start: its exit code and what it says."""
    with editor(folder, text, None, *options, env=env) as agent:
        code, out, error = agent.leave()
    assert out == b""
    return code, error.decode()


def command(folder: Path, text: str, *words: str, **env: str) -> Called:
    with looking_at(written(folder, text)):
        return call(*words, cwd=folder, forks=True, DRAGOMAN_HOME=str(folder / "home"), **env)


# -- a file that cannot be used --------------------------------------------------------------------------------------


def taken_away(file: Path) -> None:
    file.parent.chmod(0o777)
    file.unlink()


def as_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def as_a_link(file: Path) -> None:
    file.rename(file.with_name("real"))
    file.symlink_to("real")


SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "unknown table": (lambda file: file.write_text("[mods]\n"), "has the unknown key 'mods'"),
    "unknown key": (lambda file: file.write_text("[modes]\nhigest = 'ask'\n"), "has the unknown key modes.higest"),
    "malformed": (lambda file: file.write_text("[modes\n"), "is no TOML"),
    "huge": (lambda file: file.write_text("#" * 5_000_000), "cannot be read (it is too long)"),
    "writable": (lambda file: file.chmod(0o666), "can be written by others than its owner: chmod go-w it"),
    "in a writable folder": (lambda file: file.parent.chmod(0o777), "can be written by others than its owner"),
    "in a writable folder, and taken away": (
        taken_away,
        "can be written by others than its owner",
    ),
    "a link": (as_a_link, "is a link"),
    "a folder": (as_a_folder, "is a directory"),
}


@pytest.mark.requirement("N1")
@pytest.mark.parametrize("spoil", SPOILED)
def test_an_agent_does_not_start_with_a_file_that_cannot_be_used(tmp_path: Path, spoil: str) -> None:
    change, sentence = SPOILED[spoil]
    file = written(tmp_path, "[modes]\nhighest = 'ask'\n")
    change(file)
    with Editor(tmp_path, first=told(file)) as agent:
        code, out, error = agent.leave()
    assert (code, out) == (2, b"")
    said = error.decode()
    assert said.startswith(f"dragoman: the administrator's file cannot be used, so nothing is started: {file.parent}")
    assert sentence in said and len(said.splitlines()) == 1


@pytest.mark.requirement("N1")
def test_a_file_of_another_owner_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "")
    first = told(file).replace(f", {os.getuid()};", f", {os.getuid() + 1};")
    with Editor(tmp_path, first=first) as agent:
        code, _, error = agent.leave()
    assert (code, b"belongs to user" in error) == (2, True)


@pytest.mark.parametrize("words", [("run", "hi", "--model", "demo"), ("permissions", "list"), ("doctor", "--json")])
def test_other_commands_name_the_mistake_too(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = command(tmp_path, "[mods]\n", *words)
    assert done.code != 0
    assert "has the unknown key 'mods'" in done.error + done.out


@pytest.mark.requirement("N2")
def test_no_variable_and_no_folder_of_the_user_leads_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "home" / "managed").mkdir(parents=True)
    for folder in (tmp_path / "home", tmp_path / "home" / "managed"):
        (folder / "managed.toml").write_text("[modes]\nhighest = 'full-access'\n")
    names = ("DRAGOMAN_MANAGED", "DRAGOMAN_MANAGED_FILE", "DRAGOMAN_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "HOME")
    env = {name: str(tmp_path / "home") for name in names}
    code, said = refused(tmp_path, "[modes]\nhighest = 'ask'\n", "--mode", "full-access", **env)
    assert (code, "does not allow mode full-access" in said) == (2, True)


# -- modes -----------------------------------------------------------------------------------------------------------

UP_TO_ASK = "[modes]\nhighest = 'ask'\n"


@pytest.mark.requirement("N3")
def test_a_mode_of_the_command_line_that_is_not_permitted_is_refused_with_those_that_are(tmp_path: Path) -> None:
    file = written(tmp_path, UP_TO_ASK)
    code, said = refused(tmp_path, UP_TO_ASK, "--mode", "full-access")
    there_are = "there are read-only, plan, ask, workspace-write, safe, sandbox"
    assert said == f"dragoman: the administrator's file {file} does not allow mode full-access; {there_are}\n"
    assert code == 2


@pytest.mark.requirement("N3")
def test_a_mode_of_the_settings_that_is_not_permitted_becomes_the_nearest_with_a_warning(tmp_path: Path) -> None:
    agent = editor(tmp_path, UP_TO_ASK, env={"DRAGOMAN_MODE": "full-access"})
    with agent:
        agent.result("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        opened = agent.result("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        assert opened["modes"]["currentModeId"] == "ask"
        assert "full-access" not in {mode["id"] for mode in opened["modes"]["availableModes"]}
        code, _, error = agent.leave()
    assert code == 0
    assert error.decode().startswith("dragoman: warning: sessions begin in mode ask: the administrator's file")


@pytest.mark.parametrize(("set_by_user", "begins"), [("", "workspace-write"), ("safe", "safe")])
def test_the_default_of_the_file_counts_where_the_user_has_set_none(
    tmp_path: Path, set_by_user: str, begins: str
) -> None:
    env = {"DRAGOMAN_MODE": set_by_user}
    with editor(tmp_path, "[modes]\ndefault = 'workspace-write'\n", env=env) as agent:
        agent.result("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        opened = agent.result("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        assert opened["modes"]["currentModeId"] == begins


@pytest.mark.requirement("N3")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/set_mode", {"modeId": "full-access"}),
        ("session/set_config_option", {"configId": "mode", "value": "full-access"}),
    ],
)
def test_no_request_sets_a_mode_that_is_not_permitted(tmp_path: Path, method: str, params: dict[str, str]) -> None:
    with editor(tmp_path, UP_TO_ASK) as agent:
        agent.open()
        assert agent.error(method, {"sessionId": agent.session, **params})["code"] == -32602


# -- rules -----------------------------------------------------------------------------------------------------------

DENIES = "[rules]\ndeny = [{ command = 'touch *' }]\n"


@pytest.mark.requirement("N4")
def test_the_users_rules_and_mode_allow_nothing_that_the_file_denies(tmp_path: Path) -> None:
    KeptRules(tmp_path / "home").add("", [PermissionRule("allow", tool="bash", subject="touch x …")])
    with editor(tmp_path, DENIES, TOUCH, "--mode", "full-access") as agent:
        agent.open().prompt()
    assert not (tmp_path / "x").exists()


@pytest.mark.requirement("N4")
def test_a_project_allows_nothing_that_the_file_denies(tmp_path: Path) -> None:
    """Neither a file that other agents read, nor one of ours, nor a copy of the administrator's."""
    for name in ("acp.json", ".dragoman/acp.json", ".claude/settings.json", "managed.toml", "permissions.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps({"permissions": {"allow": [{"command": "touch x"}, "Bash(touch x)"]}}))
    with editor(tmp_path, DENIES, TOUCH, "--mode", "full-access") as agent:
        agent.open().prompt()
    assert not (tmp_path / "x").exists()


@pytest.mark.requirement("N4")
def test_rules_are_listed_with_their_origin_and_not_removed(tmp_path: Path) -> None:
    text = "[rules]\ndeny = [{ command = 'curl *' }]\nallow = [{ command = 'make test' }]\n"
    file = tmp_path / "managed" / "managed.toml"
    shown = command(tmp_path, text, "permissions", "list")
    (curl, make) = shown.out.splitlines()
    assert curl.endswith(f"deny command curl * (the administrator's, {file})")
    assert make.endswith(f"allow command make test (the administrator's, {file})")
    (found, _) = json.loads(command(tmp_path, text, "permissions", "list", "--json").out)
    assert (found["scope"], found["file"], found["command"]) == ("managed", str(file), "curl *")
    gone = command(tmp_path, text, "permissions", "remove", found["id"])
    assert (gone.code, "a rule of the administrator's file" in gone.error) == (1, True)
    assert len(command(tmp_path, text, "permissions", "list").out.splitlines()) == 2


@pytest.mark.parametrize(
    ("line", "mode", "verdict"),
    [("curl x", "full-access", "deny"), ("make test", "ask", "allow"), ("make test", "read-only", "deny")],
)
def test_a_line_is_judged_by_the_file_first(tmp_path: Path, line: str, mode: str, verdict: str) -> None:
    text = "[rules]\ndeny = [{ command = 'curl *' }]\nallow = [{ command = 'make test' }]\n"
    KeptRules(tmp_path / "home").add(
        "",
        [
            PermissionRule("allow", tool="bash", subject="curl x …"),
            PermissionRule("reject", tool="bash", subject="make …"),
        ],
    )
    found = json.loads(command(tmp_path, text, "permissions", "test", line, "--mode", mode, "--json").out)
    assert found["verdict"] == verdict
    assert (found["by"] == "managed") == (mode != "read-only")


# -- as a client of other agents -------------------------------------------------------------------------------------

ASKS_TO_CURL = permission("Get it", kind="execute", rawInput={"command": "curl example.com"})


def run_other(folder: Path, text: str, *options: str) -> Done:
    with looking_at(written(folder, text)):
        return run(folder, "hi", *options, "--", *rogue_agent.written(folder, ASKS_TO_CURL))


def answer(folder: Path) -> str:
    (found,) = rogue_agent.answers(folder)
    return str(found["outcome"].get("optionId"))


@pytest.mark.requirement("N4")
def test_what_another_agent_asks_for_is_judged_by_the_file_first(tmp_path: Path) -> None:
    run_other(tmp_path, "[rules]\ndeny = [{ command = 'curl *' }]\n", "--allow", "all")
    assert answer(tmp_path) == "no"


@pytest.mark.requirement("N4")
def test_a_rule_to_ask_is_answered_by_no_level(tmp_path: Path) -> None:
    done = run_other(tmp_path, "[rules]\nask = [{ command = 'curl *' }]\n", "--allow", "all")
    assert (answer(tmp_path), "1 request was denied" in done.error) == ("no", True)


def test_a_rule_to_allow_spares_the_question_of_another_agent(tmp_path: Path) -> None:
    run_other(tmp_path, "[rules]\nallow = [{ command = 'curl example.com' }]\n")
    assert answer(tmp_path) == "yes"


def test_allowing_all_is_full_access(tmp_path: Path) -> None:
    done = run_other(tmp_path, UP_TO_ASK, "--allow", "all")
    file = tmp_path / "managed" / "managed.toml"
    refusal = f"the administrator's file {file} does not allow that mode"
    assert done.error == f"dragoman: --allow all is what mode full-access is, and {refusal}\n"
    assert done.code == 2


def test_a_registry_that_approves_all_does_not_where_full_access_is_not_permitted(tmp_path: Path) -> None:
    program, *arguments = rogue_agent.written(tmp_path, ASKS_TO_CURL)
    entry = {
        "command": program,
        "args": arguments,
        "permissionPolicy": "auto-approve",
        "nonInteractivePolicy": {"mode": "accept_all"},
    }
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "acp.json").write_text(json.dumps({"servers": {"lax": entry}}))
    with looking_at(written(tmp_path, UP_TO_ASK)):
        run(tmp_path, "hi", "--agent", "lax")
    assert answer(tmp_path) == "no"


# -- models ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("N5")
def test_a_model_that_is_not_allowed_is_neither_started_with_nor_offered_nor_chosen(tmp_path: Path) -> None:
    text = "[models]\nallowed = ['script', 'anthropic/*']\n"
    file = written(tmp_path, text)
    code, said = refused(tmp_path, text, "--model", "openai/gpt-5")
    assert (code, said) == (2, f"dragoman: the administrator's file {file} does not allow the model openai/gpt-5\n")
    keys = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
    with editor(tmp_path, text, env=keys) as agent:
        agent.result("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        opened = agent.result("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        (option,) = [one for one in opened["configOptions"] if one["id"] == "model"]
        offered = {one["value"].partition("/")[0] for one in option["options"]}
        assert offered == {"script", "anthropic", "demo"}
        agent.read_any()
        wanted = {"sessionId": opened["sessionId"], "configId": "model", "value": "openai/gpt-5"}
        error = agent.error("session/set_config_option", wanted)
        assert f"The administrator's file {file} does not allow the model openai/gpt-5." in error["message"]


ADDRESSES = "[models]\naddresses = ['https://api.openai.com/*']\n"


@pytest.mark.requirement("N5")
def test_an_address_of_the_environment_is_not_used_where_another_is_allowed(tmp_path: Path) -> None:
    env = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": KEY}
    code, said = refused(tmp_path, ADDRESSES, "--model", "openai/gpt-5", **env)
    assert (code, "does not allow openai to be reached at http://127.0.0.1:1/v1" in said) == (2, True)


def test_an_address_of_the_configuration_is_not_used_where_another_is_allowed(tmp_path: Path) -> None:
    with provider_server() as up:
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "config.toml").write_text(f"[providers.openai]\nbase_url = '{up.url}/v1'\n")
        env = {"OPENAI_API_KEY": KEY}
        with editor(tmp_path, ADDRESSES, None, "--model", "openai/gpt-5", env=env) as agent:
            agent.result("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
            error = agent.error("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        assert up.heard == []
    assert f"does not allow openai to be reached at {up.url}/v1 (config.toml)." in error["message"]


def test_the_address_of_the_file_beats_those_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text("[providers.openai]\nbase_url = 'http://127.0.0.1:1/v1'\n")
    text = "[models.base_urls]\nopenai = 'https://llm.example.com/v1'\n"
    env = {"OPENAI_BASE_URL": "http://127.0.0.1:2/v1", "OPENAI_API_KEY": KEY}
    shown = json.loads(command(tmp_path, text, "config", "show", "--json", **env).out)
    file = tmp_path / "managed" / "managed.toml"
    assert shown["addresses"]["openai"] == {"value": "https://llm.example.com/v1", "source": str(file)}


# -- MCP servers -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("N5")
def test_a_server_that_is_not_allowed_is_not_started_by_any_way(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    own = f"[mcp.mine]\ncommand = 'touch'\nargs = ['{tmp_path}/mine']\n"
    (tmp_path / "home" / "config.toml").write_text(own)
    brought = {"name": "theirs", "command": "/bin/touch", "args": [str(tmp_path / "theirs")], "env": []}
    with editor(tmp_path, "[mcp]\ncommands = []\n") as agent:
        agent.result("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        agent.session = agent.result("session/new", {"cwd": str(tmp_path), "mcpServers": [brought]})["sessionId"]
        said = json.dumps([agent.read_any(), *agent.prompt("/mcp")])
    file = tmp_path / "managed" / "managed.toml"
    for name in ("mine", "theirs"):
        assert f"{name} is not used: the administrator's file {file} does not allow this MCP server" in said
        assert not (tmp_path / name).exists()


def test_a_server_that_is_not_allowed_is_not_tried_by_a_command(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    own = f"[mcp.mine]\ncommand = 'touch'\nargs = ['{tmp_path}/mine']\n"
    (tmp_path / "home" / "config.toml").write_text(own)
    done = command(tmp_path, "[mcp]\ncommands = []\n", "mcp", "test", "mine")
    assert (done.code, "does not allow this MCP server" in done.error) == (2, True)
    assert not (tmp_path / "mine").exists()


# -- the web ---------------------------------------------------------------------------------------------------------


def test_a_page_of_a_host_that_is_not_allowed_is_not_fetched(tmp_path: Path) -> None:
    fetch = turns([{"call": "web_fetch", "input": {"url": "https://example.org/"}}, {"say": "."}])
    with editor(tmp_path, "[web]\nhosts = ['*.example.com']\n", fetch, "--mode", "full-access") as agent:
        said = json.dumps(agent.open().prompt())
    assert "does not allow pages of example.org" in said


# -- how it is shown -------------------------------------------------------------------------------------------------


def test_what_the_file_sets_is_shown_with_its_origin(tmp_path: Path) -> None:
    text = UP_TO_ASK + "[rules]\ndeny = [{ command = 'curl *' }]\n[spending]\nday = 20\n"
    file = tmp_path / "managed" / "managed.toml"
    lines = command(tmp_path, text, "config", "show").out.splitlines()
    assert f'modes.highest      "ask"  ({file})' in lines
    assert f"spending.day       20.0  ({file})" in lines
    shown = json.loads(command(tmp_path, text, "config", "show", "--json").out)
    assert shown["managed_file"] == str(file)
    assert shown["managed"] == {
        "modes.highest": "ask",
        "rules.deny": [{"kind": "", "path": "", "command": "curl *"}],
        "spending.day": 20.0,
    }


def test_config_show_says_what_is_wrong_with_the_file_and_shows_the_rest(tmp_path: Path) -> None:
    done = command(tmp_path, "[mods]\n", "config", "show")
    assert (done.code, "has the unknown key 'mods'" in done.error) == (2, True)
    assert any(line.startswith("max_turn_requests") for line in done.out.splitlines())


def test_without_a_file_nothing_is_said_of_it(tmp_path: Path) -> None:
    with looking_at(tmp_path / "none" / "managed.toml"):
        done = call("config", "show", "--json", cwd=tmp_path, DRAGOMAN_HOME=str(tmp_path / "home"))
    assert json.loads(done.out)["managed"] == {}
