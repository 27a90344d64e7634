"""The GitHub Action, run as a runner does: its script, with the inputs as variables."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from tests.support.needs import ROOT

PEER = ROOT / "tests" / "support" / "check_peer.py"


def steps() -> list[dict[str, Any]]:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    found: list[dict[str, Any]] = action["runs"]["steps"]
    return found


def run_check(folder: Path, command: str, arguments: str, expected: str = "") -> tuple[int, str]:
    """The exit code of the step that checks, and what it set as output."""
    (step,) = [one for one in steps() if one.get("id") == "check"]
    given = {"ROLE": "agent", "COMMAND": command, "URL": "", "ARGUMENTS": arguments, "EXPECTED": expected}
    assert set(step["env"]) == {*given, "REPORT"}
    output, summary = folder / "output", folder / "summary"
    variables = {
        **given,
        "REPORT": "reports",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "GITHUB_OUTPUT": str(output),
        "GITHUB_STEP_SUMMARY": str(summary),
    }
    done = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=folder, env=variables, timeout=50, check=False)
    return done.returncode, output.read_text()


def test_the_action_writes_all_reports_and_says_how_it_ended(tmp_path: Path) -> None:
    command = shlex.join([sys.executable, str(PEER), "1"])
    only = f"--only ACP-INIT-001 --prompt 'hello you' --env PYTHONPATH={ROOT}"
    assert run_check(tmp_path, command, only) == (0, "exit-code=0\n")
    written = {file.name for file in (tmp_path / "reports").iterdir()}
    assert written == {"report.json", "report.xml", "report.sarif", "report.md", "report.html", "badge.svg"}
    assert json.loads((tmp_path / "reports" / "report.json").read_text())["conforms"] is True
    assert "dragoman check" in (tmp_path / "summary").read_text()


def test_the_action_fails_where_a_row_does_and_not_where_that_was_expected(tmp_path: Path) -> None:
    command = shlex.join([sys.executable, str(PEER), "1", "answers_notifications"])
    only = f"--only ACP-JSONRPC-003 --env PYTHONPATH={ROOT}"
    (tmp_path / "known").write_text("ACP-JSONRPC-003 # known\n")
    assert run_check(tmp_path, command, only)[0] == 1
    (tmp_path / "output").unlink()
    assert run_check(tmp_path, command, only, expected="known")[0] == 0
