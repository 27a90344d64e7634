"""`./dev eval` as it is typed."""

import contextlib
import os
import sys
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pytest

from evals.__main__ import main
from evals.task import load_tasks
from tests.support.eval_task import make_task
from tests.support.needs import ROOT, need
from tests.support.waiting import wait_until


def test_a_run_ends_with_a_table_and_a_report_and_goes_on_where_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need("bwrap")
    make_task(tmp_path / "tasks" / "one")
    out = tmp_path / "out"
    words = ["--model", "solution", "--out", str(out)]
    assert main(words, tmp_path / "tasks") == 0
    shown = capsys.readouterr()
    assert "pass    one" in shown.err
    assert shown.out.splitlines()[2].split()[:4] == ["all", "1/1", "100", "%"]
    assert "<strong>one</strong>" in (out / "report.html").read_text()
    assert main(words, tmp_path / "tasks") == 0
    assert "pass    one" not in capsys.readouterr().err


def test_a_task_whose_language_is_not_here_is_named_and_counted_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evals.attempt.lacking", lambda language: "go is not installed" if language == "go" else "")
    make_task(tmp_path / "tasks" / "one", language="go")
    out = tmp_path / "out"
    assert main(["--model", "solution", "--out", str(out)], tmp_path / "tasks") == 1
    shown = capsys.readouterr()
    assert "not run one  0.0 s  go is not installed\n" in shown.err
    assert shown.out.splitlines()[2].split()[:5] == ["all", "0/0", "-", "0", "1"]
    assert '<span class="open">not run</span>' in (out / "report.html").read_text()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "--model is missing, such as --model anthropic/claude-sonnet-5"),
        (["--agent", "gemini", "--model", "x"], "--model and --mode are for our own agent"),
        (["--model", "demo", "--tasks", "nope"], "'nope' matches no task"),
        (["--model", "demo", "--parallel", "0"], "'0' is no number from 1 to 64"),
    ],
)
def test_wrong_usage_ends_with_2_and_a_sentence(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err


def test_the_tasks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--tasks", "merge-conflict"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "merge-renamed-function",
        "merge-two-features",
    ]


@pytest.mark.parametrize("moment", ["at once", "the agent runs"])
def test_ctrl_c_stops_the_agents_and_says_how_to_go_on(tmp_path: Path, moment: str) -> None:
    need("bwrap")
    silent = f"{sys.executable} -c __import__('time').sleep(600) {tmp_path}"
    words = ["-m", "evals", "--agent", silent, "--tasks", "pager-last-page", "--out", str(tmp_path / "out")]
    files = tmp_path / "files"
    files.mkdir()
    environment = {**os.environ, "TMPDIR": str(files)}
    child = pexpect.spawn(
        sys.executable, words, cwd=ROOT, env=environment, timeout=40, dimensions=(24, 200), encoding="utf-8"
    )
    child.expect_exact("0/1, 0 passed · pager-last-page")
    if moment == "the agent runs":
        wait_until(lambda: any(str(tmp_path) in line and line.startswith("unshare") for line in command_lines()))
    child.sendintr()
    child.expect_exact("Stopped. The same command goes on from here.")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    assert [line for line in command_lines() if str(tmp_path) in line] == []
    assert list(files.iterdir()) == []
    assert not (tmp_path / "out" / "results.jsonl").exists()


def command_lines() -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.append((process / "cmdline").read_bytes().decode(errors="replace"))
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("model", "solves"), [("solution", True), ("cheat", False), ("nothing", False)])
def test_scripted_models_pass_and_fail_every_task_through_the_agent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str, solves: bool
) -> None:
    need("bwrap")
    assert main(["--model", model, "--parallel", "2", "--out", str(tmp_path / "out")]) == 0
    last = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("all "))
    tasks = len(load_tasks())
    assert last.split()[1] == f"{tasks if solves else 0}/{tasks}"
