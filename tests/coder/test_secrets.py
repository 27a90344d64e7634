"""Secrets reach no command, server, log, transcript or tool.

The environment alone is in `tests/host/test_environment.py`, providers' keys in `tests/coder/models`.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.host.process_tree import new_mark
from tests.support import whole_agent
from tests.support.editor import Editor, answer_questions, turns
from tests.support.mcp_servers import RAW_SERVER, raw
from tests.support.needs import need
from tests.support.scripted_turns import RecordingModel, apart, bash, call
from tests.support.variables import SECRETS
from tests.support.whole_agent import User, events_of, until_server, whole

CANARY = "canary-5d21f0"
CONFINED = ["workspace-write", "sandbox"]


def in_mode(mode: str, command: str) -> dict[str, Any]:
    return call("sandbox_bash" if mode == "sandbox" else "bash", command=command)


MORE_SECRETS = [
    *("API_KEY_PROD", "KEY", "KEY_OF_MINE", "my_api_key", "SIGNING_KEY_2", "TOKEN_GITHUB", "NPM_TOKEN", "VAULT_TOKEN"),
    *("DB_PASSWORD", "PASSWORD_OF_DB", "MY_PASSPHRASE", "SOME_CREDENTIALS", "SENTRY_DSN", "SLACK_WEBHOOK_URL"),
    *("SESSION_COOKIE", "AZURE_STORAGE_CONNECTION_STRING", "TWILIO_AUTH_TOKEN", "JWT_SECRET_STAGING", "BASIC_AUTH"),
]


@pytest.mark.requirement("I5")
@pytest.mark.parametrize("mode", ["full-access", "ask", "workspace-write", "sandbox"])
async def test_no_secret_of_the_environment_reaches_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Every name that the unit test has, and a URL with a password."""
    need("bwrap")
    names = sorted({*SECRETS, *MORE_SECRETS})
    assert len(names) >= 50
    for name in names:
        monkeypatch.setitem(whole_agent.ENVIRONMENT, name, f"{CANARY}-{name}")
    monkeypatch.setitem(whole_agent.ENVIRONMENT, "DATABASE_URL", f"postgres://user:{CANARY}@host/")
    if mode in CONFINED:
        for name in ("SSH_AUTH_SOCK", "HTTPS_PROXY", "DOCKER_HOST", "DBUS_SESSION_BUS_ADDRESS"):
            monkeypatch.setitem(whole_agent.ENVIRONMENT, name, f"http://user:{CANARY}@host/")
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    model = RecordingModel(apart([in_mode(mode, "env; cat /proc/self/environ")]))
    async with whole(work, model.make, user=User("allow_once"), mode=mode, home=home) as (_, session):
        await events_of(session)
    assert "PATH=" in model.results[0]
    assert CANARY not in model.results[0]


@pytest.mark.requirement("I5")
async def test_no_secret_of_the_environment_reaches_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what the client names for it does."""
    for name in sorted({*SECRETS, *MORE_SECRETS}):
        monkeypatch.setitem(whole_agent.ENVIRONMENT, name, f"{CANARY}-{name}")
    server = raw("environment", MEANT_TOKEN="meant")
    model = RecordingModel(apart([call("mcp__raw__act")]))
    async with whole(tmp_path, model.make, user=User("allow_once"), mcp_servers=[server]) as (_, session):
        await until_server("connected", session)
        await events_of(session)
    known = json.loads(model.results[0])
    assert known["MEANT_TOKEN"] == "meant"
    assert CANARY not in model.results[0]


def told_by(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.rglob("*") if file.is_file())


def command_lines() -> bytes:
    lines = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            lines.append(Path(f"/proc/{name}/cmdline").read_bytes())
        except OSError:
            continue
    return b"\n".join(lines)


@pytest.mark.requirement("I6")
def test_no_secret_of_the_settings_appears_on_the_wire_in_logs_or_process_lists(tmp_path: Path) -> None:
    """Keys, headers, URLs with a password and servers' variables; wire, stderr, log, transcript, `ps`."""
    canary = new_mark()  # no other process on this machine has it in a command line
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(
        f'[mcp.headers]\nurl = "http://user:{canary}-a@127.0.0.1:1/mcp?token={canary}-b"\n'
        f'headers = {{ Authorization = "Bearer {canary}-c" }}\n'
        f'[mcp.dies]\ncommand = "{sys.executable}"\nargs = {json.dumps([*RAW_SERVER, "dies at start"])}\n'
        f'env = {{ CANARY = "{canary}-d" }}\n'
    )
    (home / "credentials.toml").write_text(f'[keys]\nopenai = "{canary}-e"\n')
    (home / "credentials.toml").chmod(0o600)
    env = {"OPENAI_API_KEY": f"{canary}-f", "ANTHROPIC_API_KEY": f"{canary}-g"}
    settings = told_by(home)
    with Editor(
        tmp_path, turns(apart([bash("env; cat /nowhere")])), "--trace", str(tmp_path / "trace"), env=env
    ) as editor:
        editor.open()
        _, told = answer_questions(editor, lambda question: {"result": {"outcome": {"outcome": "cancelled"}}})
        told += editor.prompt("/mcp")
        running = command_lines()
        code, out, errors = editor.leave()
    said = json.dumps(told).encode() + out + errors + running + (tmp_path / "trace").read_bytes()
    assert (code, b"mcp" in said) == (0, True)
    assert canary.encode() not in said
    kept = told_by(home)
    # where the user has put them, and nowhere else
    assert kept.count(canary.encode()) == settings.count(canary.encode())


@pytest.mark.requirement("I7")
def test_what_a_tool_prints_is_in_the_transcript_and_in_no_log(tmp_path: Path) -> None:
    """The user sees what a command printed; stderr, the log folder and a trace of it do not have secrets."""
    (tmp_path / "notes").write_text(f"OPENAI_API_KEY={CANARY}{CANARY}\nsk-{CANARY}{CANARY}\n")
    script = turns(apart([bash("cat notes")]))
    with Editor(tmp_path, script, "--mode", "full", "--trace", str(tmp_path / "trace")) as editor:
        editor.open()
        told = json.dumps(editor.prompt("go"))
        _, _, errors = editor.leave()
    assert CANARY in told
    assert CANARY.encode() not in errors
    log = tmp_path / "home" / "log"
    assert not log.exists() or CANARY.encode() not in told_by(log)
    assert f"sk-{CANARY}".encode() not in (tmp_path / "trace").read_bytes()


@pytest.mark.requirement("I8")
@pytest.mark.parametrize("mode", ["ask", "workspace-write", "full-access", "sandbox", "read-only"])
async def test_our_keys_are_not_read_by_any_tool(tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though our data lies in the workspace, and under another name."""
    need("bwrap")
    work, home = tmp_path / "work", tmp_path / "work" / "data"
    home.mkdir(parents=True)
    (work / "alias").symlink_to("data")
    (home / "credentials.toml").write_text(f'openai = "{CANARY}"\n')
    (home / "sessions").mkdir()
    (home / "sessions" / "other").write_text(CANARY)
    (work / "link").symlink_to("data/credentials.toml")
    prefix = "sandbox_" if mode == "sandbox" else ""
    steps = [
        *(call(f"{prefix}read_file", path=p) for p in ("data/credentials.toml", "alias/credentials.toml", "link")),
        call(f"{prefix}read_file", path="data/sessions/other"),
        call(f"{prefix}grep", pattern="canary"),
        call(f"{prefix}grep", pattern="canary", path="data"),
        call(f"{prefix}list_files", path="data"),
        call(f"{prefix}edit_file", path="link", old_string="nothing", new_string="x"),
    ]
    if mode in CONFINED:
        steps.append(in_mode(mode, "cat data/credentials.toml link data/sessions/other; grep -r canary ."))
    model = RecordingModel(apart(steps))
    user = User("allow_once" if mode == "workspace-write" else "reject_once")
    async with whole(work, model.make, user=user, mode=mode, home=work / "alias") as (_, session):
        await events_of(session)
    assert len(model.results) == len(steps)
    assert not any(CANARY in result for result in model.results), model.results


@pytest.mark.requirement("I8")
def test_our_keys_are_not_read_out_of_our_process(tmp_path: Path) -> None:
    """By a command that nothing confines; and we still have them."""
    canary = new_mark()  # no other process on this machine has it
    env = {"OPENAI_API_KEY": f"{canary}-key", "HARMLESS": f"{canary}-harmless"}
    look = f"cat /proc/$PPID/environ /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a {canary}-"
    with Editor(tmp_path, turns(apart([bash(look)])), "--mode", "full", env=env, started=True) as editor:
        editor.open()
        told = json.dumps(editor.prompt("go"))
        status = editor.result("auth/status", {})
    assert f"{canary}-harmless" in told
    assert f"{canary}-key" not in told
    assert "openai" in json.dumps(status)
