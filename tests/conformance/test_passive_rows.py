"""Each row that judges a recording is passed by a conforming one, and broken by a recording with one mistake."""

import json
from pathlib import Path

import pytest

from dragoman.conformance.passive import judge_trace, trace_rows
from dragoman.conformance.rows import Requirement
from dragoman.trace.records import TraceFrame
from tests.conformance.broken_traces import broken, conforming
from tests.support.command import call
from tests.support.traces import Passed, write_trace

CASES = [pytest.param(row, version, id=f"{row.id}-v{version}") for row in trace_rows() for version in row.versions]


def recorded(passed: list[Passed]) -> list[TraceFrame]:
    """The frames of a recording, without a file."""
    return [
        TraceFrame(line, 0, "1", direction, message if isinstance(message, bytes) else json.dumps(message).encode())
        for line, (direction, message) in enumerate(passed, 2)
    ]


@pytest.mark.requirement("TR8")
@pytest.mark.parametrize("version", [1, 2])
def test_a_conforming_recording_has_no_finding(version: int) -> None:
    report = judge_trace(recorded(conforming(version)))
    assert [(one.line, one.row.id, one.reason) for one in report.findings] == []
    assert report.versions == (version,)


@pytest.mark.requirement("TR8")
@pytest.mark.parametrize(("row", "version"), CASES)
def test_a_recording_with_one_mistake_breaks_its_row(row: Requirement, version: int) -> None:
    found = {one.row.id for one in judge_trace(recorded(broken(row.broken, version))).counted(strict=True)}
    notes = {one.row.id for one in judge_trace(recorded(broken(row.broken, version))).findings}
    assert row.id in notes
    # One mistake breaks few rows: a file that is not lent is a frame that is not answered, and nothing more.
    assert len(found - {row.id}) <= 1, found


def test_a_row_that_nothing_was_about_is_not_seen() -> None:
    report = judge_trace(recorded(conforming(1)[:2]))
    assert "ACP-PROMPT-502" in {row.id for row in report.unseen()}
    assert "ACP-INIT-001" not in {row.id for row in report.unseen()}


def test_connections_of_one_recording_are_judged_apart() -> None:
    frames = recorded(conforming(1))
    both = [frame for one in frames for frame in (one, one._replace(connection="2"))]
    assert judge_trace(both).findings == ()


def test_check_trace_names_the_line_and_fails(tmp_path: Path) -> None:
    file = write_trace(tmp_path / "t", *broken("after_the_end", 1))
    called = call("check", "trace", str(file))
    assert called.code == 1
    assert "FAIL ACP-PROMPT-502 (version 1, must)" in called.out
    assert "line 8: agent_message_chunk comes when no turn runs" in called.out


def test_check_trace_of_a_conforming_recording_is_green(tmp_path: Path) -> None:
    file = write_trace(tmp_path / "t", *conforming(2))
    called = call("check", "trace", str(file), "--json", "-")
    assert called.code == 0
    assert json.loads(called.out)["conforms"] is True


def test_check_trace_without_a_greeting_could_not_test(tmp_path: Path) -> None:
    called = call("check", "trace", str(write_trace(tmp_path / "t")))
    assert (called.code, "Nothing could be tested" in called.out) == (3, True)
    assert call("check", "trace", str(tmp_path / "missing")).code == 3


def test_a_timeline_shows_findings_beside_their_frames(tmp_path: Path) -> None:
    file = write_trace(tmp_path / "t", *broken("after_the_end", 1))
    lines = call("trace", "view", "--findings", str(file)).out.splitlines()
    assert "agent_message_chunk late" in lines[0]
    assert lines[1].strip() == "!! ACP-PROMPT-502: agent_message_chunk comes when no turn runs"
    assert "!!" not in call("trace", "view", "--no-findings", str(file)).out
