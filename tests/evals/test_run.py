"""Many attempts: several at a time, kept at once, gone on with where a run was stopped."""

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest

from evals.agents import AgentChoice
from evals.progress import Progress
from evals.results import Attempt, ResultFile, Verdict, rows, slug, table
from evals.run import open_work, run
from evals.task import Task
from tests.support.eval_task import make_task

CHOICE = AgentChoice(model="solution")


def made(task: Task, number: int = 1, verdict: Verdict = "pass", **facts: object) -> Attempt:
    return Attempt(task.name, task.digest, task.kind, task.language, number, "a", "m", verdict, **facts)  # type: ignore[arg-type]


@pytest.fixture
def tasks(tmp_path: Path) -> list[Task]:
    return [make_task(tmp_path / "tasks" / name, kind=kind) for name, kind in [("one", "bug"), ("two", "hang")]]


def test_what_has_a_verdict_is_not_done_again(tasks: list[Task]) -> None:
    one, two = tasks
    assert open_work(tasks, 2, []) == [(one, 1), (two, 1), (one, 2), (two, 2)]
    assert open_work(tasks, 2, [made(one), made(two, 2, "fail")]) == [(two, 1), (one, 2)]


@pytest.mark.parametrize("verdict", ["error", "not run"])
def test_what_says_nothing_about_the_agent_is_tried_again(tasks: list[Task], verdict: Verdict) -> None:
    assert open_work(tasks[:1], 1, [made(tasks[0], verdict=verdict)]) == [(tasks[0], 1)]


def test_a_task_that_has_changed_is_tried_again(tasks: list[Task], tmp_path: Path) -> None:
    before = made(tasks[0])
    changed = make_task(tmp_path / "tasks" / "one", prompt="Something else.")
    assert open_work([changed], 1, [before]) == [(changed, 1)]


async def test_as_many_attempts_run_at_once_as_was_said(tasks: list[Task], tmp_path: Path) -> None:
    running = most = 0
    reached = asyncio.Event()

    async def tried(task: Task, choice: AgentChoice, number: int) -> Attempt:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 3:
            reached.set()
        await reached.wait()
        running -= 1
        return made(task, number)

    file = ResultFile(tmp_path / "out" / "results.jsonl")
    done = await run(open_work(tasks, 3, []), CHOICE, file, Progress(6, [], io.StringIO()), 3, tried)
    assert (most, len(done), len(file.load())) == (3, 6, 6)


async def test_what_was_done_before_a_stop_is_kept(tasks: list[Task], tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def tried(task: Task, choice: AgentChoice, number: int) -> Attempt:
        if task.name == "two":
            begun.set()
            await asyncio.Event().wait()
        return made(task, number)

    file = ResultFile(tmp_path / "results.jsonl")
    work = asyncio.ensure_future(run(open_work(tasks, 1, []), CHOICE, file, Progress(2, [], io.StringIO()), 1, tried))
    await begun.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert [one.task for one in file.load()] == ["one"]
    assert [task.name for task, _ in open_work(tasks, 1, file.load())] == ["two"]


def test_a_line_that_a_kill_has_cut_off_is_left_out_and_ended(tasks: list[Task], tmp_path: Path) -> None:
    file = ResultFile(tmp_path / "results.jsonl")
    file.append(made(tasks[0]))
    with file.path.open("ab") as cut:
        cut.write(b'{"task":"tw')
    assert file.load() == [made(tasks[0])]
    file.append(made(tasks[1]))
    assert file.load() == [made(tasks[0]), made(tasks[1])]


def test_the_last_verdict_of_an_attempt_counts(tasks: list[Task], tmp_path: Path) -> None:
    file = ResultFile(tmp_path / "results.jsonl")
    file.append(made(tasks[0], verdict="error"))
    file.append(made(tasks[0], verdict="fail"))
    assert [one.verdict for one in file.load()] == ["fail"]


def test_the_table_has_a_row_for_each_kind_and_one_for_all(tasks: list[Task]) -> None:
    one, two = tasks
    facts: dict[str, Any] = {
        "input_tokens": 1500,
        "output_tokens": 20,
        "cost": 0.25,
        "seconds": 2.0,
        "requests": 3,
        "questions": 1,
    }
    attempts = [made(one, **facts), made(one, 2, "fail"), made(two, verdict="error"), made(two, 2, "not run")]
    assert [line.split() for line in table(attempts).splitlines()[1:]] == [
        ["bug", "1/2", "50", "%", "0", "0", "1,500", "20", "$0.250", "2", "s", "3", "0", "0", "1"],
        ["hang", "0/0", "-", "1", "1", "-", "-", "-", "0", "s", "0", "0", "0", "0"],
        ["all", "1/2", "50", "%", "1", "1", "1,500", "20", "$0.250", "2", "s", "3", "0", "0", "1"],
    ]
    assert rows(attempts)[-1].attempts == 4


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar(tasks: list[Task]) -> None:
    screen = Terminal()
    progress = Progress(4, [made(tasks[0])], screen)
    progress.begin("two")
    assert screen.getvalue().endswith("[######..................] 1/4, 1 passed · two")
    progress.end(made(tasks[1], verdict="fail", reason="wrong\nmore", seconds=1.5))
    assert "fail    two  1.5 s  wrong\n" in screen.getvalue()
    assert screen.getvalue().endswith("[############............] 2/4, 1 passed")
    progress.close()
    assert screen.getvalue().endswith("\r\x1b[K")


def test_what_is_no_terminal_gets_lines(tasks: list[Task]) -> None:
    stream = io.StringIO()
    progress = Progress(1, [], stream)
    progress.begin("one")
    progress.end(made(tasks[0], 2))
    progress.close()
    assert stream.getvalue() == "pass    one #2  0.0 s\n"


def test_a_run_has_a_folder_by_its_agent_and_model() -> None:
    assert slug("dragoman-anthropic/claude-sonnet-5-") == "dragoman-anthropic-claude-sonnet-5"
