"""Record a home folder as this version writes it, for later versions to load.

Run `python -m tests.earlier_versions.record DIR` with the version to be recorded, once; the folders beside this file
are never written again. Sessions work in `FOLDER`, which exists on every machine, and change nothing there.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.earlier_versions.wire import FOLDER, Wire

CONFIG = """\
mode = "ask"
model = "demo"
max_turn_requests = 40
list_models = false

[providers.mine]
base_url = "http://127.0.0.1:9/v1"
api_key_env = "MINE_API_KEY"

[mcp.notes]
command = "notes-server"
args = ["--quiet"]
"""

REGISTRY = {
    "servers": {
        "helper": {
            "command": "helper-agent",
            "args": ["--acp"],
            "env": {"HELPER_LEVEL": "3"},
            "cwd": FOLDER,
            "permissions": {"allow": [{"kind": "read"}], "reject": [{"command": "rm *"}]},
            "startupTimeoutMs": 5000,
        },
        "far": {"url": "https://agents.example.org/acp"},
    },
    "defaultServer": "helper",
}


def script(*turns: list[Any]) -> dict[str, Any]:
    return {"turns": [{"steps": steps} for steps in turns]}


WORK = script(
    [
        {"think": "First a look."},
        {"say": "I will look, "},
        {"say": "then write."},
        {"call": "update_plan", "input": {"entries": [{"content": "look", "priority": "high", "status": "completed"}]}},
        {"call": "bash", "input": {"command": "echo one"}},
        {"call": "write_file", "input": {"path": f"{FOLDER}/dragoman.txt", "content": "never written\n"}},
        {"say": "It was refused."},
    ],
    [{"say": "Again."}, {"call": "bash", "input": {"command": "echo one"}}, {"say": "Done twice."}],
    [{"say": "After the summary."}],
)
KILLED = script([{"say": "wait"}, {"say": "never", "delay_ms": 600_000}])


def record(home: Path) -> None:
    """Write everything that a later version has to read into `home`, and beside it what this version makes of it."""
    home.mkdir(parents=True)
    home.chmod(0o700)
    (home / "config.toml").write_text(CONFIG)
    (home / "acp.json").write_text(json.dumps(REGISTRY, indent=2))
    sessions = {"work": _work(home), "killed": _killed(home)}
    for words in (["ada", "--scopes", "read,prompt"], ["eve", "--scopes", "admin"]):
        dragoman(home, "tokens", "create", *words)
    dragoman(home, "tokens", "revoke", "eve")
    shutil.rmtree(home / "sessions" / "index")  # made anew from the sessions, under a name that holds the path
    for held in (home / "sessions" / "holders").iterdir():
        held.unlink()
    expected = {
        name: {"id": session, **{f"v{version}": replayed(home, session, version) for version in (1, 2)}}
        for name, session in sessions.items()
    }
    (home / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")


def dragoman(home: Path, *words: str) -> str:
    """Run a command to its end; what it prints."""
    env = {**os.environ, "DRAGOMAN_HOME": str(home)}
    command = [sys.executable, "-m", "dragoman", *words]
    return subprocess.run(command, env=env, cwd=FOLDER, check=True, capture_output=True, text=True).stdout


def _work(home: Path) -> str:
    """Two turns, an "always", a refusal, another mode and a summary; the session's id."""
    with Wire(home, 1, "--model", playing(WORK)) as wire:
        session = wire.new_session()
        wire.answers = {"echo one": "allow_always", "dragoman.txt": "reject_once"}
        wire.prompt("Please look and write.")
        wire.prompt("Once more, please.")
        wire.prompt("/compact")
        wire.ask("session/set_mode", {"sessionId": session, "modeId": "plan"})
        wire.prompt("And now?")
    return session


def _killed(home: Path) -> str:
    """A turn whose process is killed; the session's id."""
    with Wire(home, 2, "--model", playing(KILLED)) as wire:
        session = wire.new_session()
        wire.begin("Take your time.", until="wait")
        wire.kill()
    return session


def playing(steps: dict[str, Any]) -> str:
    """The name of a model that plays these steps."""
    file = Path(tempfile.mkdtemp()) / "script.json"
    file.write_text(json.dumps(steps))
    return f"script:{file}"


def replayed(home: Path, session: str, version: int) -> list[Any]:
    """Load a session in a copy of the home, which a repair may change; the updates, and the mode it is in."""
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(home, Path(folder) / "home")
        with Wire(copy, version, "--model", playing(script([{"say": "Hello."}]))) as wire:
            *updates, answer = wire.load(session)
    return [*updates, {"mode": mode_of(answer)}]


def mode_of(answer: dict[str, Any]) -> str:
    """The mode that an answer of `session/load` or `session/resume` names."""
    (option,) = [option for option in answer["configOptions"] if option.get("category") == "mode"]
    mode: str = option["currentValue"]
    return mode


if __name__ == "__main__":
    record(Path(sys.argv[1]))
