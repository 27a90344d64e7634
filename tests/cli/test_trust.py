"""`dragoman trust`: what would be started is shown, and what was shown is what is trusted."""

import json
import os
import sys
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pytest

from dragoman.host.trust import covered, is_trusted, trust, trusted_files
from tests.cli.editor import DRAGOMAN
from tests.cli.test_ours import dragoman
from tests.nursery.nursery import MAIN, nursery

MCP = {
    "mcpServers": {
        "clock": {"command": "/opt/clock", "args": ["--to the", "\x1b[31m"]},
        "far": {"url": "https://x/y?key=1"},
    }
}


def project(folder: Path) -> Path:
    made = folder / "project"
    made.mkdir()
    (made / ".mcp.json").write_text(json.dumps(MCP))
    (made / "acp.json").write_text('{"servers": {"helper": {"command": "helper", "args": ["--acp"]}}}')
    return made


def test_what_would_be_started_is_shown(tmp_path: Path) -> None:
    folder = project(tmp_path)
    done = dragoman(tmp_path / "home", "trust", str(folder))
    assert done.code == 0
    assert done.out == f"{folder} is trusted: acp.json, .mcp.json\n"
    assert done.error.splitlines() == [
        f"{folder} may start, when it is trusted:",
        "  agent helper: helper --acp",
        "  MCP server clock: /opt/clock '--to the' '\\x1b[31m'",
        "  MCP server far: https://x/y?…",
    ]


def test_nothing_to_trust_is_said(tmp_path: Path) -> None:
    done = dragoman(tmp_path / "home", "trust", str(tmp_path))
    said = f"{tmp_path} has no configuration to trust: there is neither acp.json nor .mcp.json.\n"
    assert (done.code, done.out) == (0, said)
    assert not (tmp_path / "home").exists()


def surroundings(folder: Path) -> dict[str, str]:
    return {**os.environ, "DRAGOMAN_HOME": str(folder / "home")}


@pytest.mark.parametrize(("answer", "code"), [("y", 0), pytest.param("n", 1, marks=pytest.mark.slow), ("", 1)])
def test_at_a_terminal_it_is_asked(answer: str, code: int, tmp_path: Path) -> None:
    folder = project(tmp_path)
    child = nursery().at_terminal(MAIN, "trust", str(folder), env=surroundings(tmp_path))
    child.expect_exact("MCP server clock")
    child.expect_exact("Trust this? [y/N] ")
    child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == code
    assert is_trusted(tmp_path / "home" / "trust.json", folder) is (code == 0)


def test_at_a_terminal_yes_can_be_said_before(tmp_path: Path) -> None:
    folder = project(tmp_path)
    command = [*DRAGOMAN[1:], "trust", str(folder), "--yes"]
    child = pexpect.spawn(sys.executable, command, env=surroundings(tmp_path), encoding="utf-8", timeout=40)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert is_trusted(tmp_path / "home" / "trust.json", folder)


def test_what_was_shown_is_trusted_and_not_what_came_meanwhile(tmp_path: Path) -> None:
    folder, registry = project(tmp_path), tmp_path / "trust.json"
    shown = covered(folder)
    (folder / ".mcp.json").write_text('{"mcpServers": {"evil": {"command": "evil"}}}')
    trust(registry, folder, shown)
    assert trusted_files(registry, folder) is None
    (folder / ".mcp.json").write_bytes(shown[".mcp.json"])
    assert trusted_files(registry, folder) == shown
