"""What a grader accepts: a check that says so at its end, in a place where the code it runs can do no harm."""

from pathlib import Path

import pytest

from evals.grading import TurnFacts, grade
from evals.task import Task
from evals.workspace import TooLarge, changed, diff, make_workspace, read_tree
from tests.support.eval_task import make_task
from tests.support.needs import need


def graded(task: Task, folder: Path, files: dict[str, str], turn: TurnFacts | None = None) -> str:
    """What the grader says of a workspace in which these files were written, confined."""
    need("bwrap")
    workspace = folder / "project"
    make_workspace(task, workspace, repository=False)
    before = read_tree(workspace)
    for name, text in files.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text)
    return grade(task, before, read_tree(workspace), workspace, turn or TurnFacts())


def test_work_that_the_check_accepts_passes(tmp_path: Path) -> None:
    assert graded(make_task(tmp_path / "task"), tmp_path, {"result": "ok"}) == ""


def test_work_that_the_check_refuses_fails_with_its_words(tmp_path: Path) -> None:
    task = make_task(tmp_path / "task")
    assert graded(task, tmp_path, {"result": "no"}) == "check.sh ended with 1: result is wrong"


def test_code_of_the_agent_that_ends_the_check_early_passes_nothing(tmp_path: Path) -> None:
    task = make_task(tmp_path / "task", parts={"hidden/check.sh": ". ./result\necho PASS\n"})
    assert graded(task, tmp_path, {"result": "exit 0"}) == "check.sh ended with 0: it said nothing"


def test_a_check_of_the_agents_own_is_replaced(tmp_path: Path) -> None:
    task = make_task(tmp_path / "task")
    assert graded(task, tmp_path, {"check.sh": "echo PASS"}).endswith("result is wrong")


def test_a_folder_in_the_place_of_a_check_is_replaced(tmp_path: Path) -> None:
    task = make_task(tmp_path / "task")
    assert graded(task, tmp_path, {"check.sh/x": "", "result": "ok"}) == ""


def test_a_hidden_file_is_never_written_through_a_link(tmp_path: Path) -> None:
    task = make_task(tmp_path / "task", parts={"hidden/data/x": "hidden"})
    workspace, outside = tmp_path / "project", tmp_path / "outside"
    outside.mkdir()
    make_workspace(task, workspace, repository=False)
    (workspace / "data").symlink_to(outside)
    (workspace / "result").write_text("ok")
    tree = read_tree(workspace)
    assert grade(task, tree, tree, workspace, TurnFacts()) == ""
    assert list(outside.iterdir()) == []


def test_a_check_can_write_to_its_copy_alone(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    check = f"echo x > inside && ! echo x > {outside} 2>/dev/null && echo PASS\n"
    task = make_task(tmp_path / "task", parts={"hidden/check.sh": check})
    assert graded(task, tmp_path, {}) == ""
    assert not outside.exists()
    assert not (tmp_path / "project" / "inside").exists()


def test_a_check_has_no_network(tmp_path: Path) -> None:
    check = "test $(ls /sys/class/net | wc -l) = 1 || grep -qv lo: /proc/net/dev\nwc -l < /proc/net/dev\n"
    task = make_task(tmp_path / "task", parts={"hidden/check.sh": check})
    assert graded(task, tmp_path, {}) == "check.sh ended with 0: 3"  # two lines of headings, and the loopback


def test_a_check_that_hangs_is_ended(tmp_path: Path) -> None:
    task = make_task(tmp_path / "task", "[grade]\nseconds = 1", {"hidden/check.sh": "sleep 600"})
    assert graded(task, tmp_path, {}) == "check.sh was not done after 1 s"


@pytest.mark.parametrize(
    ("rules", "files", "reason"),
    [
        ('unchanged = ["*.md"]', {"README.md": "x"}, "README.md was to stay as it was"),
        ('unchanged = ["*.md"]', {"NEW.md": "x", "result": "ok"}, ""),
        ('only = ["result"]', {"result": "ok"}, ""),
        ('only = ["result"]', {"result": "ok", "more": ""}, "more was not to be touched"),
        ('answer = ["^4[0-9]$"]', {"result": "ok"}, ""),
        ('answer = ["43"]', {"result": "ok"}, "the answer lacks '43'"),
        ('answer_lacks = ["2"]', {"result": "ok"}, "the answer has '2'"),
    ],
)
def test_rules_come_before_the_checks(tmp_path: Path, rules: str, files: dict[str, str], reason: str) -> None:
    task = make_task(tmp_path / "task", f"[grade]\n{rules}")
    assert graded(task, tmp_path, files, TurnFacts(answer="42")) == reason


def test_a_check_knows_the_turn(tmp_path: Path) -> None:
    check = 'grep -q \'"commands": \\["make"\\]\' _turn.json && echo PASS'
    task = make_task(tmp_path / "task", parts={"hidden/check.sh": check})
    assert graded(task, tmp_path, {}, TurnFacts("", ["make"])) == ""


def test_the_history_is_there_only_for_a_task_that_asks_for_it(tmp_path: Path) -> None:
    check = {"hidden/check.sh": "test -d .git && echo PASS\nexit 0", "setup.sh": "true\n"}
    with_history = make_task(tmp_path / "one", "[grade]\ngit = true", check)
    without = make_task(tmp_path / "two", parts=check)
    assert graded(with_history, tmp_path / "a", {}) == ""
    assert graded(without, tmp_path / "b", {}) == "check.sh ended with 0: it said nothing"


def test_a_tree_has_links_as_their_target_and_no_caches(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("/etc")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "x.pyc").write_text("")
    assert read_tree(tmp_path) == {"file": b"x", "link": b"link to /etc"}


def test_a_tree_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evals.workspace.MOST_FILES", 2)
    for name in "abc":
        (tmp_path / name).write_text("x")
    with pytest.raises(TooLarge, match="more than 2 files"):
        read_tree(tmp_path)


def test_changes_are_shown_as_a_diff() -> None:
    before, after = {"a": b"1\n", "b": b"2\n"}, {"a": b"1\n", "b": b"3\n", "c": b"4\n"}
    assert changed(before, after) == ["b", "c"]
    assert diff(before, after).splitlines() == [
        *("--- a/b", "+++ b/b", "@@ -1 +1 @@", "-2", "+3"),
        *("--- a/c", "+++ b/c", "@@ -0,0 +1 @@", "+4"),
    ]
