"""Every task can be solved, and its grader sees through its cheat and through doing nothing.

Compilers are slow: of the tasks that need one, the fast lane proves a task in TypeScript, and the slow lane all.
"""

from collections import Counter
from pathlib import Path

import pytest

from evals.grading import TurnFacts, grade
from evals.languages import lacking
from evals.overlay import NOTHING, Overlay, load_overlay
from evals.task import KINDS, Task, TaskError, load_task, load_tasks, select
from evals.workspace import make_workspace, read_tree
from tests.support.eval_task import make_task
from tests.support.needs import lacking as skip_or_fail

TASKS = load_tasks()
EACH = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
COMPILED = ("typescript", "go")
QUICK = "cache-expiry"


def _proof(task: Task) -> object:
    is_slow = task.language in COMPILED and task.name != QUICK
    return pytest.param(task, marks=[pytest.mark.slow, pytest.mark.timeout(200)] if is_slow else [], id=task.name)


PROVEN = pytest.mark.parametrize("task", [_proof(task) for task in TASKS])


def judge(task: Task, overlay: Overlay, folder: Path) -> str:
    """What the grader says of an overlay that was applied without an agent."""
    if missing := lacking(task.language):
        skip_or_fail(missing)
    workspace = folder / "project"
    make_workspace(task, workspace, repository=False)
    before = read_tree(workspace)
    overlay.apply(workspace)
    turn = TurnFacts(overlay.answer or "Done.", [overlay.run] if overlay.run else [], overlay.fetch)
    # What is run here stands in the repository, so it needs no confinement, which costs half of the time.
    return grade(task, before, read_tree(workspace), workspace, turn, confined=False)


@PROVEN
def test_the_solution_passes(task: Task, tmp_path: Path) -> None:
    assert judge(task, load_overlay(task.folder / "solution"), tmp_path) == ""


@PROVEN
def test_the_cheat_fails(task: Task, tmp_path: Path) -> None:
    assert judge(task, load_overlay(task.folder / "cheat"), tmp_path) != ""


@PROVEN
def test_doing_nothing_fails(task: Task, tmp_path: Path) -> None:
    assert judge(task, NOTHING, tmp_path) != ""


def test_there_are_tasks_of_every_kind_and_language() -> None:
    assert len(TASKS) >= 40
    kinds = Counter(task.kind for task in TASKS)
    assert {kind: count for kind, count in kinds.items() if count < 2} == {}
    assert set(kinds) == set(KINDS)
    assert {task.language for task in TASKS} == {"python", "javascript", "typescript", "go", "shell", "text"}


@EACH
def test_a_project_is_small_and_its_prompt_names_no_grader(task: Task) -> None:
    project = [path for path in (task.folder / "project").rglob("*") if path.is_file()]
    assert 1 <= len(project) <= 8
    assert sum(path.stat().st_size for path in project) < 300_000
    assert "hidden" not in task.prompt
    assert "grader" not in task.prompt


def test_tasks_are_chosen_by_name_kind_and_language(tmp_path: Path) -> None:
    tasks = [make_task(tmp_path / "one"), make_task(tmp_path / "two", kind="hang", language="shell")]
    assert select(tasks, []) == tasks
    assert [task.name for task in select(tasks, ["on*"])] == ["one"]
    assert [task.name for task in select(tasks, ["hang"])] == ["two"]
    assert [task.name for task in select(tasks, ["shell", "bug"])] == ["one", "two"]


def test_a_pattern_that_matches_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="'bgu' matches no task, kind or language"):
        select([make_task(tmp_path / "one")], ["bug", "bgu"])


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ("colour = 1", "unknown field `colour`"),
        ("[grade]\nanswr = []", "unknown field `answr`"),
        ('[user]\notherwise = "maybe"', "Invalid enum value 'maybe'"),
        ("x = ", "Invalid value"),
    ],
)
def test_a_task_with_a_mistake_is_refused_by_name(tmp_path: Path, settings: str, complaint: str) -> None:
    with pytest.raises(TaskError, match=rf"odd/task.toml: .*{complaint}"):
        make_task(tmp_path / "odd", settings)


def test_a_task_of_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="kind 'magic' is none of bug"):
        make_task(tmp_path / "odd", kind="magic")


def test_a_task_without_a_cheat_is_refused(tmp_path: Path) -> None:
    make_task(tmp_path / "odd")
    (tmp_path / "odd" / "cheat" / "_run.sh").unlink()
    (tmp_path / "odd" / "cheat").rmdir()
    with pytest.raises(TaskError, match="odd: cheat missing"):
        load_task(tmp_path / "odd")


def test_the_digest_changes_with_the_grader_and_not_with_the_proofs(tmp_path: Path) -> None:
    digest = make_task(tmp_path / "one").digest
    assert make_task(tmp_path / "one", parts={"solution/more": "x"}).digest == digest
    assert make_task(tmp_path / "one", parts={"hidden/check.sh": "echo PASS"}).digest != digest
