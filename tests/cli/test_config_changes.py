"""`dragoman config` get, set, unset, edit and path; `dragoman mcp` add and remove; `dragoman auth status`."""

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Called, call
from tests.support.fork_server.client import MAIN, fork_server
from tests.support.run_command import left

WRITTEN = """\
# mine
mode = "plan"  # careful

[providers.lab]
base_url = "http://127.0.0.1:9/v1"  # ours
"""


def dragoman(home: Path, *arguments: str, **env: Any) -> Called:
    return call(*arguments, DRAGOMAN_HOME=str(home), **env)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "config.toml").write_text(WRITTEN)
    return tmp_path


def test_a_setting_is_written_and_what_else_stands_there_stays(home: Path) -> None:
    assert dragoman(home, "config", "set", "mode", "ask") == (0, "", "")
    assert dragoman(home, "config", "set", "spend.day", "20") == (0, "", "")
    assert dragoman(home, "config", "set", "fallback_models", "demo,openai/o3") == (0, "", "")
    text = (home / "config.toml").read_text()
    assert text.startswith('# mine\nmode = "ask"  # careful\n')
    assert 'base_url = "http://127.0.0.1:9/v1"  # ours\n' in text
    assert stat.S_IMODE((home / "config.toml").stat().st_mode) == 0o600
    assert dragoman(home, "config", "get", "spend.day").out == "20.0\n"
    assert dragoman(home, "config", "get", "fallback_models").out == "demo,openai/o3\n"
    assert dragoman(home, "config", "unset", "spend.day") == (0, "", "")
    assert "spend" not in (home / "config.toml").read_text()
    assert dragoman(home, "config", "unset", "spend.day").code == 1


def test_a_file_is_made_where_there_is_none(tmp_path: Path) -> None:
    assert dragoman(tmp_path / "new", "config", "set", "notify_after", "3") == (0, "", "")
    assert dragoman(tmp_path / "new", "config", "path").out == f"{tmp_path}/new/config.toml\n"
    assert (tmp_path / "new" / "config.toml").read_text() == "notify_after = 3\n"


def test_the_value_is_told_with_its_source(home: Path) -> None:
    shown = dragoman(home, "config", "get", "mode", "--json", DRAGOMAN_MODE="ask").out
    assert json.loads(shown) == {"key": "mode", "value": "ask", "source": "DRAGOMAN_MODE"}
    told = dragoman(home, "config", "set", "mode", "read-only", DRAGOMAN_MODE="ask")
    assert "DRAGOMAN_MODE is set in the environment and counts before config.toml" in told.error


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("set notify_after soon", "notify_after must be a whole number"),
        ("set diagnostics maybe", "diagnostics must be true or false"),
        ("set spend.day much", "spend.day must be dollars"),
        ("set spend 3", "there is no setting 'spend'; there is spend.turn, spend.session, spend.day"),
        ("set mode cautious", "unknown mode 'cautious'; there are read-only, plan, ask"),
        ("set model llama3", "model llama3: Model llama3 needs a provider: write PROVIDER/NAME, e.g. ollama/llama3."),
        ("set model nowhere/m", "model nowhere/m: Unknown provider nowhere"),
        ("set theme pink", "theme: there is no 'pink'; choose one of dark, light"),
        ("set notify bell,loud", "notify has the unknown word 'loud'"),
        ("get modell", "there is no setting 'modell'; there is model"),
        ("get colours", "there is no setting 'colours'; `config show` names them all"),
        ("edit", "an editor needs a terminal"),
    ],
)
def test_what_cannot_be_set_changes_nothing(words: str, complaint: str, home: Path) -> None:
    code, out, error = dragoman(home, "config", *words.split())
    assert (code, out) == (2, "")
    assert complaint in error
    assert (home / "config.toml").read_text() == WRITTEN


def test_a_file_with_a_mistake_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("mode = [\n")
    done = dragoman(tmp_path, "config", "set", "mode", "ask")
    assert done.code == 2
    assert (tmp_path / "config.toml").read_text() == "mode = [\n"


def test_an_edit_is_looked_at_and_can_be_done_again(home: Path) -> None:
    editor = home / "editor.py"
    editor.write_text(
        "import pathlib, sys\n"
        "file = pathlib.Path(sys.argv[1])\n"
        "wrong = 'wrong' in file.read_text()\n"
        "file.write_text('mode = \"ask\"\\n' if wrong else 'wrong = 1\\n')\n"
    )
    env = {**os.environ, "DRAGOMAN_HOME": str(home), "EDITOR": f"{sys.executable} {editor}", "VISUAL": ""}
    with fork_server().at_terminal(MAIN, "config", "edit", env=env, cwd=home) as child:
        child.expect_exact("unknown key 'wrong'")
        child.expect_exact("Edit it again? [Y/n] ")
        child.sendline("")
        assert left(child) == 0
    assert (home / "config.toml").read_text() == 'mode = "ask"\n'


# -- MCP servers and logins --------------------------------------------------------------------------------------------


def test_servers_are_added_listed_and_removed(home: Path) -> None:
    added = dragoman(home, "mcp", "add", "files", "--env", "TOKEN=$MY_TOKEN", "--", "npx", "-y", "server", ".")
    assert added.code == 0
    assert "`dragoman mcp test files` tries it" in added.out
    assert dragoman(home, "mcp", "add", "tickets", "https://tickets.test/mcp", "--header", "X-Team=a=b").code == 0
    text = (home / "config.toml").read_text()
    assert text.startswith(WRITTEN)
    assert '[mcp.files]\ncommand = "npx"\nargs = ["-y", "server", "."]\n' in text
    listed = json.loads(dragoman(home, "mcp", "list", "--json", MY_TOKEN="secret").out)
    assert [(one["name"], one["type"]) for one in listed] == [("files", "stdio"), ("tickets", "http")]
    assert dragoman(home, "mcp", "remove", "files").code == 0
    assert "files" not in (home / "config.toml").read_text()
    gone = dragoman(home, "mcp", "remove", "files")
    assert gone.code == 1
    assert "there is no MCP server 'files'" in gone.error


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("add x", "which server?"),
        ("add x https://a.test -- cmd", "which server?"),
        ("add x --", "which command?"),
        ("add x --env A=b https://a.test", "--env goes with a command"),
        ("add x --header A=b -- cmd", "--header and --sse go with a URL"),
        ("add x --header A -- cmd", "'A' is not NAME=VALUE"),
        ("add x not-a-url", "nothing was changed"),
    ],
)
def test_a_server_that_cannot_be_is_not_added(words: str, complaint: str, home: Path) -> None:
    code, out, error = dragoman(home, "mcp", *words.split())
    assert (code, out) == (2, "")
    assert complaint in error
    assert (home / "config.toml").read_text() == WRITTEN


def test_a_server_is_not_added_twice(home: Path) -> None:
    assert dragoman(home, "mcp", "add", "x", "--", "cmd").code == 0
    again = dragoman(home, "mcp", "add", "x", "--", "other")
    assert again.code == 2
    assert "there is an MCP server 'x' already" in again.error


def test_auth_status_names_the_keys_without_showing_them(home: Path) -> None:
    none = dragoman(home, "auth", "status", OPENAI_API_KEY="")
    assert none.code == 1
    assert "`dragoman login PROVIDER` keeps one" in none.error
    shown = dragoman(home, "auth", "status", OPENAI_API_KEY="sk-very-secret")
    assert (shown.code, shown.out) == (0, "openai  OPENAI_API_KEY\n")
    found = json.loads(dragoman(home, "auth", "status", "--json", OPENAI_API_KEY="sk-very-secret").out)
    assert found == {"keys": {"openai": "OPENAI_API_KEY"}, "mcp": {}}
