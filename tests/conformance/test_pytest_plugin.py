"""The rows as tests of pytest, in a run of its own."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.needs import ROOT

PEER = ROOT / "tests" / "support" / "check_peer.py"
PLUGIN = ["-m", "pytest", "-q", "-p", "dragoman.conformance.pytest_plugin", "-p", "no:cacheprovider"]
ONLY = "ACP-INIT-001,ACP-JSONRPC-003,ACP-TRANSPORT-505"


def run_pytest(folder: Path, *options: str, agent: str = "1") -> subprocess.CompletedProcess[str]:
    command = shlex.join([sys.executable, str(PEER), *agent.split()])
    line = [sys.executable, *PLUGIN, "--acp-agent", command, "--acp-prompt", "hello", *options]
    variables = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    return subprocess.run(line, cwd=folder, env=variables, capture_output=True, text=True, timeout=50, check=False)


def test_rows_are_tests_that_pass_or_are_skipped_with_a_reason(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, "--acp-only", ONLY, "-rs")
    # Three rows for the version that the agent speaks, and three for the one that it does not.
    assert re.search("3 passed, 3 skipped", done.stdout), done.stdout + done.stderr
    assert "the agent does not speak version 2" in done.stdout
    assert done.returncode == 0


def test_a_row_that_is_broken_fails_with_its_frames_and_no_traceback(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, "--acp-only", "ACP-JSONRPC-003", agent="1 answers_notifications")
    assert done.returncode == 1
    assert "ACP-JSONRPC-003 (version 1, must)" in done.stdout
    assert "agent ←" in done.stdout
    assert "Traceback" not in done.stdout


@pytest.mark.parametrize(
    ("options", "agent", "code", "sentence"),
    [
        (["--acp-only", "ACP-X-001"], "1", 4, "there is no row ACP-X-001"),
        (["--acp-only", "ACP-INIT-001"], "no-version", 1, "the connection"),
    ],
)
def test_what_cannot_be_tested_is_said(
    tmp_path: Path, options: list[str], agent: str, code: int, sentence: str
) -> None:
    done = run_pytest(tmp_path, *options, agent=agent)
    assert done.returncode == code, done.stdout
    assert sentence in done.stdout + done.stderr
