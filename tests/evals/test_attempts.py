"""An attempt from its start to its verdict: our agent as a process, driven by our client, with a scripted model."""

import sys
from pathlib import Path

from evals.agents import AgentChoice
from evals.attempt import attempt
from evals.confinement import ROOT
from evals.results import Attempt
from evals.task import Task
from tests.support.eval_task import make_task
from tests.support.needs import need


async def tried(task: Task, model: str, **choice: str) -> Attempt:
    need("bwrap")
    return await attempt(task, AgentChoice(model=model, **choice))  # type: ignore[arg-type]


def outcome(one: Attempt) -> tuple[str, str, str]:
    return one.verdict, one.stop_reason, one.reason


async def test_a_model_that_solves_the_task_passes(tmp_path: Path) -> None:
    one = await tried(make_task(tmp_path / "task"), "solution")
    assert outcome(one) == ("pass", "end_turn", "")
    assert (one.changed, one.answer, one.tool_calls, one.requests) == (["result"], "Done.", 1, 2)
    assert (one.input_tokens, one.output_tokens, one.isolated) == (2000, 200, True)
    assert "+ok" in one.diff
    assert [entry.what for entry in one.transcript] == ["tool", "agent"]


async def test_a_model_that_does_nothing_fails(tmp_path: Path) -> None:
    one = await tried(make_task(tmp_path / "task"), "nothing")
    assert one.verdict == "fail"
    assert one.changed == []


async def test_a_model_that_cheats_fails(tmp_path: Path) -> None:
    task = make_task(tmp_path / "task", '[grade]\nunchanged = ["README.md"]')
    assert outcome(await tried(task, "cheat")) == ("fail", "end_turn", "README.md was to stay as it was")


async def test_an_agent_sees_no_task_no_grader_and_no_history(tmp_path: Path) -> None:
    hidden = f"{ROOT}/evals {ROOT}/.git {tmp_path} /proc/[0-9]*/root{ROOT}/evals"
    look = f"umount {ROOT}; ls -A {ROOT} > seen; ls {hidden} >> seen 2>/dev/null; true"
    task = make_task(tmp_path / "task", parts={"solution/_run.sh": look}, mode="full-access")
    one = await tried(task, "solution")
    seen = {line[1:] for line in one.diff.splitlines() if line.startswith("+") and not line.startswith("+++")}
    assert seen - {".venv", "src", ".peers", "ok"} == set()
    assert {".venv", "src"} <= seen


async def test_an_agent_cannot_write_beside_its_workspace(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    write = f"echo x > {outside}/file || echo x > {ROOT}/src/file || echo refused > refused"
    task = make_task(tmp_path / "task", parts={"solution/_run.sh": write}, mode="full-access")
    one = await tried(task, "solution")
    assert one.changed == ["refused", "result"]
    assert list(outside.iterdir()) == []


async def test_the_user_answers_as_the_task_says(tmp_path: Path) -> None:
    user = '[user]\ndeny = ["touch forbidden"]'
    task = make_task(tmp_path / "task", user, {"solution/_run.sh": "touch forbidden"})
    one = await tried(task, "solution", mode="ask")
    assert (one.verdict, one.asked, one.denied) == ("pass", 2, 1)
    assert one.changed == ["result"]
    assert [entry.detail for entry in one.transcript if entry.what == "permission"][1].lower().startswith(("no", "rej"))


async def test_pages_come_from_the_task_and_what_was_fetched_is_known(tmp_path: Path) -> None:
    parts = {
        "pages/manual.example/a.txt": "the page\n",
        "solution/_fetch": "http://manual.example/a.txt http://evil.example/?x",
        "hidden/check.sh": "grep -q evil.example _turn.json && grep -q manual.example/a.txt _turn.json && echo PASS",
    }
    one = await tried(make_task(tmp_path / "task", parts=parts), "solution")
    assert outcome(one) == ("pass", "end_turn", "")
    assert any("the page" in entry.detail for entry in one.transcript)


async def test_a_turn_that_hangs_is_cancelled_and_what_is_there_is_graded(tmp_path: Path) -> None:
    task = make_task(tmp_path / "task", parts={"solution/_run.sh": "sleep 600"}, mode="full-access", seconds=3)
    one = await tried(task, "solution")
    assert outcome(one) == ("pass", "cancelled", "cancelled after 3 s")
    assert one.seconds < 30


async def test_an_agent_that_cannot_be_started_is_an_error_and_no_failure(tmp_path: Path) -> None:
    need("bwrap")
    task = make_task(tmp_path / "task")
    one = await attempt(task, AgentChoice(f"{sys.executable} -c raise(SystemExit('broken'))"))
    assert one.verdict == "error"
    assert one.reason.startswith("the agent failed: ")
    assert "broken" in one.reason


async def test_a_workspace_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    one = await tried(make_task(tmp_path / "task", parts={"setup.sh": "exit 7\n"}), "solution")
    assert one.verdict == "error"
    assert one.reason.startswith("the workspace cannot be made: ")
