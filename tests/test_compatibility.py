"""The pages made from tables are what the tables say; `python -m tools.compatibility` writes them anew."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.dialects.vendors import named
from tests.support.needs import ROOT
from tools import peers
from tools.compatibility import NAMES, PAGES, compatibility, losses, tried
from tools.requirements import FINDINGS, LOSSES, ROWS, SYSTEMS

# How many rows each system has: the second number of a row's id is its system.
COUNTS = {1: 22, 2: 19, 3: 18, 4: 23, 5: 12}


def test_every_row_is_in_the_table_once_and_says_what_differs_and_what_we_do() -> None:
    expected = [f"8.{system}.{row}" for system, count in COUNTS.items() for row in range(1, count + 1)]
    assert [row.id for row in ROWS] == expected
    assert [row.id for row in ROWS if not (row.differs and row.ours)] == []
    assert {row.where for row in ROWS} <= {"always", *named.NAMES}
    assert {row.system for row in ROWS} <= set(named.NAMES)


def test_what_only_a_dialect_does_is_never_done_always() -> None:
    assert [row.id for row in ROWS if row.row_class == "P" and row.where == "always"] == []


def test_every_finding_is_about_a_known_program_and_says_what_it_does_and_what_we_do() -> None:
    assert {finding.program for finding in FINDINGS} <= set(SYSTEMS)
    assert [finding.id for finding in FINDINGS if not (finding.does and finding.ours)] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_its_tables_say(name: str) -> None:
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == PAGES[name](), "python -m tools.compatibility"


def test_the_command_writes_both(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.compatibility", "--out", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, timeout=50, check=True)
    assert {file.name: file.read_text(encoding="utf-8") for file in tmp_path.iterdir()} == {
        name: page() for name, page in PAGES.items()
    }


def test_every_row_finding_and_loss_has_its_line() -> None:
    cells = [line.split(" | ")[0].removeprefix("| ") for line in compatibility().splitlines() if line.startswith("| ")]
    assert {row.id for row in ROWS} | {finding.id for finding in FINDINGS} <= set(cells)
    between_versions, in_dialects = losses().split("## What the clients of a named dialect are not sent")
    assert len([line for line in between_versions.splitlines() if line.startswith("| ")]) == len(LOSSES) + 2
    assert [name for name in NAMES if f"\n| `{name}` |" not in in_dialects] == []
    assert [loss.id for loss in LOSSES if f"| {loss.id} |" not in between_versions] == []


def test_the_counts_are_those_of_the_table() -> None:
    (line,) = [line for line in compatibility().splitlines() if line.startswith("| **all** |")]
    *kinds, rows, tests = map(int, re.findall(r"\d+", line))
    assert (sum(kinds), rows) == (len(ROWS), len(ROWS))
    assert tests == len({proof for row in ROWS for proof in row.tests})


def test_every_table_is_as_wide_as_its_head() -> None:
    for page in (compatibility(), losses()):
        for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1, table


def test_every_peer_that_is_installed_is_named() -> None:
    versions = {one.version for one in tried()}
    pinned = {packages[0].partition("==")[2] for packages in (peers.AGENTAO, peers.IAC_CODE)}
    by_npm = {peers.ACPX, peers.GEMINI_CLI, peers.OPENCODE, peers.CLAUDE_AGENT, peers.EXAMPLES}
    assert {peers.PYTHON_V2[1], peers.NPM_PACKAGES["@agentclientprotocol/sdk"]} | pinned | by_npm <= versions
    assert [test for one in tried() for test in one.tests if not (ROOT / test).is_file()] == []
    assert all(f"--dialect {system}" in compatibility() for system in SYSTEMS)
