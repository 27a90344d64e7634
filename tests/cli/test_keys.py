"""Keys stay with the process that needs them: no command, MCP server, other agent or reader in /proc gets one.

Every program here is a real process: what stands in /proc and what a child inherits is the point.
"""

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pytest

from dragoman.cli.key_variables import key_variables
from dragoman.cli.settings import read_settings
from tests.support.editor import DRAGOMAN, turns
from tests.support.gateway import free_port
from tests.support.machine import as_a_user, lives
from tests.support.needs import need_other_users

CANARY = "canary-8a41"
# Spelled as secrets are; the last one is known by the configuration alone.
KEYS = ("OPENAI_API_KEY", "DB_PASS", "GEMINI_API_KEYS", "PRIVATEKEY", "MNEMONIC", "SLACK_WEBHOOK", "LAB_ACCESS")
CONFIG = """
[providers.lab]
base_url = "http://127.0.0.1:9/v1"
api_key_env = "LAB_ACCESS"
"""
WEB = """
[mcp.web]
url = "http://127.0.0.1:9/"
headers = { Authorization = "Bearer $CORP", X-User = "$USER costs $$CORP_PRICE" }
"""
SPY = "import os, sys; open(sys.argv[1], 'w').write(repr(dict(os.environ)))"


def environment(folder: Path, **more: str) -> dict[str, str]:
    keys = {name: f"{CANARY}-{name}" for name in KEYS}
    return {**os.environ, **keys, "DRAGOMAN_HOME": str(folder / "home"), "MARKER": "seen", "USER": "someone", **more}


def configured(folder: Path, *more: str) -> None:
    (folder / "home").mkdir()
    (folder / "home" / "config.toml").write_text("\n".join([CONFIG, *more]))


def script(folder: Path, command: str) -> str:
    file = folder / "script.json"
    file.write_text(json.dumps(turns([{"call": "bash", "input": {"command": command}}])))
    return f"script:{file}"


def run(folder: Path, *words: str, program: list[str] = DRAGOMAN, **more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*program, "run", "hi", *words],
        cwd=folder,
        env=environment(folder, **more),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("mode", ["full-access", "workspace-write"])
def test_a_command_gets_no_key(mode: str, tmp_path: Path) -> None:
    configured(tmp_path)
    model = script(tmp_path, "env > seen.txt")
    done = run(tmp_path, "--mode", mode, "--model", model, "--allow", "all")
    seen = (tmp_path / "seen.txt").read_text()
    assert (done.returncode, "MARKER=seen" in seen, "USER=someone" in seen) == (0, True, True)
    assert CANARY not in seen


def test_an_mcp_server_gets_no_key_but_the_one_that_its_own_entry_names(tmp_path: Path) -> None:
    words = [f"{key} = {json.dumps(value)}" for key, value in {"command": sys.executable}.items()]
    spies = {name: ["-c", SPY, str(tmp_path / name)] for name in ("stranger", "friend")}
    tables = [f"[mcp.{name}]\n{words[0]}\nargs = {json.dumps(args)}" for name, args in spies.items()]
    configured(tmp_path, WEB, *tables, 'env = { LAB_ACCESS = "$LAB_ACCESS" }')
    model = script(tmp_path, "env > command")
    assert run(tmp_path, "--allow", "all", "--model", model, CORP=CANARY).returncode == 0
    stranger, friend, command = ((tmp_path / name).read_text() for name in (*spies, "command"))
    assert ("MARKER=seen" in command, CANARY in command) == (True, False)
    assert ("'MARKER': 'seen'" in stranger, CANARY in stranger) == (True, False)
    assert (f"{CANARY}-LAB_ACCESS" in friend, friend.count(CANARY)) == (True, 1)


AGENT = """
import json, os, sys
def say(**m): print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
def hear(): return json.loads(sys.stdin.readline())
say(id=hear()["id"], result={"protocolVersion": 1})
say(id=hear()["id"], result={"sessionId": "s"})
prompt = hear()["id"]
run = {"sessionId": "s", "command": "/bin/sh", "args": ["-c", "env > terminal.txt"]}
say(id="t", method="terminal/create", params=run)
terminal = hear()["result"]["terminalId"]
say(id="w", method="terminal/wait_for_exit", params={"sessionId": "s", "terminalId": terminal})
hear()
open("agent.txt", "w").write(repr(dict(os.environ)))
say(id=prompt, result={"stopReason": "end_turn"})
sys.stdin.read()
"""


def test_another_agent_and_the_terminal_it_is_lent_get_no_key(tmp_path: Path) -> None:
    configured(tmp_path)
    done = run(tmp_path, "--allow", "all", "--", sys.executable, "-c", AGENT)
    seen = {name: (tmp_path / f"{name}.txt").read_text() for name in ("agent", "terminal")}
    assert done.returncode == 0, done
    assert all("seen" in text for text in seen.values())
    assert CANARY not in str(seen)


def test_an_agent_of_acp_json_gets_the_key_that_its_entry_names(tmp_path: Path) -> None:
    configured(tmp_path)
    entry = {"command": sys.executable, "args": ["-c", AGENT], "env": {"LAB_ACCESS": "$LAB_ACCESS"}}
    far = {"url": "https://agents.example.org", "token": "${FAR_LOGIN}"}
    (tmp_path / "home" / "acp.json").write_text(json.dumps({"servers": {"own": entry, "far": far}}))
    done = run(tmp_path, "--allow", "all", "--agent", "own", FAR_LOGIN=CANARY)
    agent, terminal = ((tmp_path / f"{name}.txt").read_text() for name in ("agent", "terminal"))
    assert done.returncode == 0, done
    assert (f"{CANARY}-LAB_ACCESS" in agent, agent.count(CANARY), CANARY in terminal) == (True, 1, False)


def test_an_agent_that_a_server_starts_gets_no_key(tmp_path: Path) -> None:
    configured(tmp_path)
    spy = f"{SPY}\n{AGENT}"
    entry = {"command": sys.executable, "args": ["-c", spy, str(tmp_path / "agent.txt")]}
    (tmp_path / "home" / "acp.json").write_text(json.dumps({"servers": {"own": entry}}))
    command = [*DRAGOMAN, "serve", "--port", str(free_port()), "--agent", "own"]
    with subprocess.Popen(
        command, env=environment(tmp_path), cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        said = ""
        try:
            while "#token=" not in said:
                line = server.stderr.readline()
                assert line, said
                said += line
            address, token = re.findall(r"(http://\S+/)#token=(\S+)", said)[0]
            hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            request = urllib.request.Request(f"{address}acp", json.dumps(hello).encode(), headers)
            with urllib.request.urlopen(request, timeout=30) as answer:
                assert answer.status == 200
        finally:
            server.kill()
    seen = (tmp_path / "agent.txt").read_text()
    assert ("'MARKER': 'seen'" in seen, CANARY in seen) == (True, False)


def test_settings_that_cannot_be_read_stop_the_start_of_another_agent(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text("[providers.lab\n")
    done = run(tmp_path, "--", sys.executable, "-c", SPY, str(tmp_path / "agent.txt"))
    assert (done.returncode, "config.toml" in done.stderr) == (2, True)
    assert not (tmp_path / "agent.txt").exists()


def test_headers_and_tokens_name_keys_and_everyday_variables_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured(tmp_path, WEB)
    (tmp_path / "home" / "acp.json").write_text('{"servers": {"far": {"token": "$FAR"}, "broken')
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    assert key_variables(read_settings()) == {"LAB_ACCESS", "CORP", "FAR"}


# -- in /proc --------------------------------------------------------------------------------------------------------


def can_be_read(pid: int, file: str) -> bool:
    done = subprocess.run(as_a_user("head", "-c", "1", f"/proc/{pid}/{file}"), capture_output=True, check=False)
    return b"Permission denied" not in done.stderr


@contextmanager
def child(folder: Path, *words: str) -> Iterator[int]:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        as_a_user(*words), stdin=pipe, stdout=pipe, stderr=pipe, env=environment(folder), cwd=folder
    ) as process:
        try:
            wait_for_start(process.pid, words[0])
            yield process.pid
        finally:
            process.kill()


def wait_for_start(pid: int, program: str) -> None:
    """Until it is what it is to become: setpriv, on the way there, has all that root may."""
    deadline = time.monotonic() + 30
    while not Path(f"/proc/{pid}/cmdline").read_bytes().startswith(program.encode()):
        assert time.monotonic() < deadline, f"{program} was never started"


@contextmanager
def at_terminal(folder: Path, *words: str) -> Iterator[int]:
    program, *arguments = as_a_user(*DRAGOMAN, *words)
    process = pexpect.spawn(program, arguments, env=environment(folder), cwd=str(folder))
    try:
        wait_for_start(process.pid, DRAGOMAN[0])
        yield process.pid
    finally:
        process.close(force=True)


def closed_in_time(pid: int) -> bool:
    deadline = time.monotonic() + 30
    while can_be_read(pid, "environ"):
        if time.monotonic() > deadline:
            return False
    return True


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("acp",), id="acp"),
        pytest.param(("--acp",), id="--acp"),
        pytest.param(("serve", "--port", "PORT"), id="serve"),
        pytest.param(("connect", "http://127.0.0.1:9"), id="connect"),
        pytest.param(("run", "hi", "--", "sleep", "60"), id="run"),
    ],
)
def test_no_other_process_of_the_user_reads_its_environment_or_memory(words: tuple[str, ...], tmp_path: Path) -> None:
    configured(tmp_path)
    given = [str(free_port()) if word == "PORT" else word for word in words]
    with child(tmp_path, *DRAGOMAN, *given) as pid:
        assert closed_in_time(pid)
        assert not any(can_be_read(pid, file) for file in ("environ", "mem", "maps"))
        assert lives(pid)


def test_those_of_another_program_can_be_read(tmp_path: Path) -> None:
    with child(tmp_path, "sleep", "60") as pid:
        assert all(can_be_read(pid, file) for file in ("environ", "maps"))


def test_no_other_process_of_the_user_reads_those_of_a_chat(tmp_path: Path) -> None:
    configured(tmp_path)
    with at_terminal(tmp_path, "chat", "--model", "demo") as pid:
        assert closed_in_time(pid)
        assert not can_be_read(pid, "mem")


# Up to the process that has started us, as far as it may be read: our agent, and the command that has started it.
ANCESTORS = """
pid=$$
while [ "$pid" != "$LAST" ]; do
  pid=$(sed 's/.*) . //; s/ .*//' "/proc/$pid/stat")
  cat "/proc/$pid/environ" 2>&1 | tr '\\0' '\\n'
done > seen.txt
"""


@pytest.mark.parametrize("is_root", [False, True], ids=["of a user", "of root"])
def test_a_command_finds_no_key_in_the_processes_above_it(is_root: bool, tmp_path: Path) -> None:
    if is_root:
        need_other_users()
    configured(tmp_path)
    program = DRAGOMAN if is_root else as_a_user(*DRAGOMAN)
    words = ["--mode", "full-access", "--model", script(tmp_path, ANCESTORS), "--allow", "all"]
    done = run(tmp_path, *words, program=program, LAST=str(os.getpid()))
    seen = (tmp_path / "seen.txt").read_text()
    assert done.returncode == 0, done
    assert (seen.count("MARKER=seen"), seen.count("Permission denied")) == ((2, 0) if is_root else (0, 3))
    assert CANARY not in seen
