"""`dragoman check client` and `check server`, at programs that are real processes, and what all roles share."""

import sys
from pathlib import Path

import pytest

from dragoman.cli.main import main
from tests.support.needs import ROOT

PEER = [sys.executable, str(ROOT / "tests" / "support" / "check_peer.py")]
RUN = [sys.executable, "-m", "dragoman", "run", "--allow", "all", "hello"]
# Of one scenario, and of the one whose agent does not end by itself.
ROWS = "ACP-CLIENT-501,ACP-CLIENT-529,ACP-CLIENT-801,ACP-CLIENT-512"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def test_a_client_that_starts_our_agent_is_judged(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["check", "client", "--protocol", "1", "--only", ROWS, "--", *RUN, "--", "{argv}"]
    assert main(line) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("version 1: 4 pass (dragoman ")
    assert out[-1] == "CONFORMS to every row that counts"


def test_a_client_that_connects_to_our_address_is_judged(capsys: pytest.CaptureFixture[str]) -> None:
    only = ["--only", "ACP-CLIENT-501,ACP-CLIENT-529"]
    run = [sys.executable, "-m", "dragoman", "run", "--agent", "{url}", "hello"]
    assert main(["check", "client", "--protocol", "2", *only, "--", *run]) == 0
    assert "version 2: 2 pass" in capsys.readouterr().out


def test_our_agent_passes_for_another_and_says_for_which(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["check", "client", "--as", "gemini", "--only", "ACP-CLIENT-523", "--", *RUN, "--", "{argv}"]
    assert main(line) == 0
    captured = capsys.readouterr()
    assert "passes for gemini in version 1, recorded: @google/gemini-cli" in captured.err
    assert "version 2" not in captured.out


def test_a_client_that_starts_nothing_could_not_be_tested(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["check", "client", "--protocol", "1", "--", sys.executable, "-c", "print('hi')", "{agent}"]
    assert main(line) == 3
    assert "the client has not started our agent; it last printed: hi" in capsys.readouterr().out


def test_known_failures_do_not_count_until_they_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = tmp_path / "known"
    known.write_text("ACP-JSONRPC-003 # answers notifications\n")
    line = ["check", "agent", "--protocol", "1", "--only", "ACP-JSONRPC-003", "--expected-failures", str(known)]
    line += ["--env", f"PYTHONPATH={ROOT}", "--", *PEER, "1"]
    assert main([*line, "answers_notifications"]) == 0
    assert "FAIL ACP-JSONRPC-003 (version 1, must, expected)" in capsys.readouterr().out
    assert main(line) == 1
    assert "ACP-JSONRPC-003 was expected to fail, and does not" in capsys.readouterr().out


@pytest.mark.parametrize("seed", ["1", "2"])
def test_a_seed_changes_the_order_of_judging_and_not_the_report(seed: str, capsys: pytest.CaptureFixture[str]) -> None:
    only = "ACP-INIT-001,ACP-JSONRPC-003,ACP-JSONRPC-501"
    line = ["check", "agent", "--protocol", "1", "--only", only, "--seed", seed, "--env", f"PYTHONPATH={ROOT}"]
    assert main([*line, "--", *PEER, "1", "answers_notifications"]) == 1
    assert capsys.readouterr().out.splitlines()[-2] == "version 1: 2 pass, 1 fail (peer 1)"


@pytest.mark.parametrize("role", ["agent", "client", "server"])
def test_a_row_of_each_role_is_listed_and_explained(role: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", role, "--list"]) == 0
    id = capsys.readouterr().out.split()[0]
    assert main(["check", "--explain", id]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{id}: ")
    assert "check →" in out and "←" in out


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (["client", "--", "x"], "where does the client get its agent from?"),
        (["client"], "which client?"),
        (["client", "http://x"], "a client has no address"),
        (["client", "--manual", "--", "x", "{agent}"], "--manual or -- CMD, not both"),
        (["client", "--interrupt", "SPAM", "--", "x", "{agent}"], "there is no such signal"),
        (["client", "--as", "emacs", "--", "x", "{agent}"], "there is no such agent; there are gemini"),
        (["agent", "--as", "emacs", "--", "x"], "there is no such client; there are zed"),
        (["agent", "--model-server", "http://x"], "--model-server is for an agent that is started"),
        (["server"], "which server?"),
        (["server", "ftp://x"], "it begins with http:// or https://"),
        (["server", "--", "x"], "a server is checked by its address"),
        (["server", "--only", "ACP-INIT-001", "http://x"], "there is no row ACP-INIT-001 of a server"),
        (["agent", "--revision", "1.0", "--only", "ACP-INIT-001", "--", "false"], "there are no rows of revision 1.0"),
        (["agent", "--expected-failures", "/no/file", "--", "false"], "/no/file"),
    ],
)
def test_wrong_usage_says_what_is_wrong(line: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *line]) == 2
    assert sentence in capsys.readouterr().err


def test_a_server_that_is_not_there_could_not_be_tested(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "server", "--timeout", "2", "http://127.0.0.1:9/acp"]) == 3
    assert "Nothing could be tested: POST is not answered" in capsys.readouterr().out
