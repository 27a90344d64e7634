"""`dragoman check agent`: exit codes, the report, the files, at agents that are real processes."""

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dragoman.cli.main import main
from tests.support.needs import ROOT

PEER = [sys.executable, str(ROOT / "tests" / "support" / "check_peer.py")]
PYTHONPATH = ["--env", f"PYTHONPATH={ROOT}"]
PROMPTS = ["--prompt", "hello", "--slow-prompt", "slow", "--permission-prompt", "ask"]


def check(*options: str, agent: list[str]) -> int:
    return main(["check", "agent", *PROMPTS, *PYTHONPATH, *options, "--", *agent])


def test_an_agent_that_keeps_to_the_rows_conforms(capsys: pytest.CaptureFixture[str]) -> None:
    only = "ACP-INIT-001,ACP-CANCEL-001,ACP-TRANSPORT-505,ACP-TRANSPORT-506,ACP-TRANSPORT-501"
    assert check("--protocol", "1", "--only", only, agent=[*PEER, "1"]) == 0
    assert capsys.readouterr().out.splitlines() == ["version 1: 5 pass (peer 1)", "CONFORMS to every row that counts"]


def test_an_agent_that_breaks_a_must_fails_with_the_frame_that_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    only = ["--only", "ACP-TRANSPORT-001", "--only", "ACP-INIT-001"]
    assert check("--protocol", "1", *only, agent=[*PEER, "1", "prints_noise"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("FAIL ACP-TRANSPORT-001 (version 1, must): ")
    assert "  agent ← INFO: thinking   [not JSON]" in lines
    assert lines[-1] == "DOES NOT CONFORM: 1 failed"


def test_a_process_that_outlives_its_stdin_breaks_a_should_which_counts_when_strict() -> None:
    agent = [*PEER, "1", "outlives_stdin"]
    only = ["--protocol", "1", "--only", "ACP-TRANSPORT-505"]
    assert check(*only, agent=agent) == 0
    assert check(*only, "--strict", agent=agent) == 1


@pytest.mark.requirement("CK3")
def test_a_program_that_is_no_agent_could_not_be_tested(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("--timeout", "2", agent=[sys.executable, "-c", "raise SystemExit('no')"]) == 3
    assert "Nothing could be tested" in capsys.readouterr().out
    assert check(agent=["/no/such/program"]) == 3


@pytest.mark.requirement("CK3")
def test_a_login_wall_is_no_verdict_and_names_the_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    agent = [*PEER, "1", "wants_login"]
    assert check("--protocol", "1", "--only", "ACP-SESSION-001,ACP-INIT-001", agent=agent) == 3
    assert "use --login, such as --login own" in capsys.readouterr().out
    assert check("--protocol", "1", "--only", "ACP-SESSION-001", "--login", "own", agent=agent) == 0


@pytest.mark.requirement("CK3")
def test_a_version_that_the_agent_does_not_speak_could_not_be_tested(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("--protocol", "2", agent=[*PEER, "1"]) == 3
    assert "--protocol 1" in capsys.readouterr().out


@pytest.mark.requirement("CK2")
def test_a_must_that_could_not_be_judged_is_not_green(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["check", "agent", *PYTHONPATH, "--protocol", "1", "--only", "ACP-CANCEL-505"]
    assert main([*options, "--permission-prompt", "hello", "--", *PEER, "1"]) == 1
    out = capsys.readouterr().out
    assert "Not tested: the agent asked for no permission" in out
    assert "next: --permission-prompt TEXT" in out


def test_reports_are_written_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--json", str(tmp_path / "report.json"), "--junit", str(tmp_path / "report.xml")]
    only = ["--protocol", "1", "--only", "ACP-INIT-001,ACP-JSONRPC-003"]
    assert check(*only, *files, agent=[*PEER, "1", "answers_notifications"]) == 1
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["format"], report["conforms"], report["couldTest"]) == (1, False, True)
    assert {row["id"]: row["verdict"] for row in report["rows"]} == {"ACP-INIT-001": "pass", "ACP-JSONRPC-003": "fail"}
    suite = ElementTree.fromstring((tmp_path / "report.xml").read_text())[0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")


def test_json_on_stdout_is_alone_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("--protocol", "1", "--only", "ACP-INIT-001", "--json", "-", agent=[*PEER, "1"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["conforms"] is True
    assert captured.err.endswith("CONFORMS to every row that counts\n")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (["agent"], "which agent?"),
        ([], "what is to be checked?"),
        (["agent", "--"], "which command?"),
        (["agent", "gemini"], "is no address"),
        (["agent", "--only", "ACP-X-1", "--", "x"], "there is no row ACP-X-1"),
        (["agent", "--env", "NO_SUCH_VARIABLE_HERE", "--", "x"], "there is no such variable"),
        (["agent", "ftp://x"], "is no address"),
        (["agent", "--trace", "f", "--", "x"], "check writes no --trace"),
        (["agent", "--cwd", "/no/such/folder", "--", "x"], "there is no such folder"),
    ],
)
def test_wrong_usage_says_what_is_wrong(line: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *line]) == 2
    assert sentence in capsys.readouterr().err


def test_a_row_is_explained_with_a_correct_exchange(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--explain", "ACP-CANCEL-001"]) == 0
    out = capsys.readouterr().out
    assert "(schema 2.4.0)" in out
    assert '"stopReason": "cancelled"' in out
    assert main(["check", "--list", "--only", "ACP-CANCEL-001"]) == 0
    assert capsys.readouterr().out.startswith("ACP-CANCEL-001")
