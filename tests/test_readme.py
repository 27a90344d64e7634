"""README is run, not trusted: its code is the code in examples/, and that works."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.coder.models.script import parse
from dragoman.dialects.losses import LOSSES

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n# (examples/\S+)\n(.*?)```", README, re.DOTALL)
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


def run(*command: str) -> str:
    environment = {**os.environ, "PATH": PATH}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(("path", "code"), SNIPPETS, ids=[path for path, _ in SNIPPETS])
def test_a_snippet_is_the_file_it_names(path: str, code: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == code


def test_the_shortest_agent_and_client_are_under_fifteen_lines() -> None:
    for path in ("examples/agent.py", "examples/client.py"):
        lines = [line for line in (ROOT / path).read_text(encoding="utf-8").splitlines() if line.strip()]
        assert len(lines) < 15


def test_the_client_talks_to_the_agent() -> None:
    assert run("python", "examples/client.py") == "You said: Hello!"


def test_the_test_of_an_agent_passes() -> None:
    assert "1 passed" in run(
        "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "examples/test_agent.py"
    )


def test_the_script_of_the_exact_agent_can_be_played() -> None:
    (script,) = re.findall(r"```json\n(.*?)```", README, re.DOTALL)
    assert len(parse(json.loads(script)).turns) == 2


def test_the_demonstration_shows_both_versions() -> None:
    shown = run("dragoman", "demo")
    assert [line for line in shown.splitlines() if line.startswith("──")] == [
        "── ACP v1: dragoman 0.1.0",
        "── ACP v2: dragoman 0.1.0",
    ]
    assert shown.count("(cancelled)") == 2


def test_architecture_shows_the_losses_as_they_are() -> None:
    shown = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = [line for line in shown.splitlines() if line.startswith(("| same |", "| v1→v2 |", "| v2→v1 |"))]
    assert rows == [f"| {loss.direction} | {loss.what} | {loss.instead} |" for loss in LOSSES]
