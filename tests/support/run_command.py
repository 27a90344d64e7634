"""`dragoman run` as tests call it: in this process, at a terminal of its own, with an agent that plays a script."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pexpect  # type: ignore[import-untyped]

from tests.support import command
from tests.support.editor import turns
from tests.support.fork_server.client import MAIN, Forked, fork_server

Step = dict[str, Any]


class Done:
    """A run that is over."""

    def __init__(self, code: int, out: str, error: str) -> None:
        self.code, self.out, self.error = code, out, error

    @property
    def events(self) -> list[dict[str, Any]]:
        """`--stream-json`, read strictly: every line is one object, and nothing in it acts on a terminal."""
        assert all(character.isprintable() for line in self.out.splitlines() for character in line)
        return [json.loads(line) for line in self.out.splitlines()]

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out}\n--- stderr\n{self.error}"


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "DRAGOMAN_HOME": str(folder / "home"), **more}


def run(folder: Path, *arguments: str, said: str | bytes = b"", cwd: Path | None = None) -> Done:
    home = str(folder / "home")
    return Done(*command.call("run", *arguments, said=said, cwd=cwd or folder, forks=True, DRAGOMAN_HOME=home))


def scripted(folder: Path, *steps: list[Step]) -> list[str]:
    """The options for our own agent with a script."""
    (folder / "script.json").write_text(json.dumps(turns(*steps)), encoding="utf-8")
    return ["--model", f"script:{folder / 'script.json'}"]


def at_terminal(folder: Path, *arguments: str, **more: str) -> Any:
    """The same at a terminal of 100 columns."""
    surroundings = environment(folder, **{"TERM": "xterm-256color", **more})
    return fork_server().at_terminal(MAIN, "run", *arguments, env=surroundings, cwd=folder, dimensions=(40, 100))


def left(child: Any) -> int:
    """The exit code of a process at a terminal, when it has ended."""
    child.expect(pexpect.EOF)
    child.close()
    assert child.signalstatus is None
    return int(child.exitstatus)


def started(folder: Path, *agent: str, program: str = MAIN) -> Forked:
    """A run whose agent has said something."""
    surroundings = environment(folder)
    process = fork_server().child(
        program, "run", "hi", "--", *agent, stdin=subprocess.DEVNULL, cwd=folder, env=surroundings
    )
    assert process.stdout.read(3) == b"Hm."
    return process
