"""What a language needs: said where it is missing, put into the workspace, and never taken from the agent."""

from pathlib import Path

import pytest

from evals.grading import TurnFacts, grade
from evals.languages import NEEDS, lacking, variables
from evals.task import Task
from evals.workspace import make_workspace, read_tree
from tests.support.eval_task import make_task
from tests.support.needs import lacking as skip_or_fail
from tests.support.needs import need

COMPILE = "node node_modules/typescript/bin/tsc --version && echo PASS"


def in_typescript(folder: Path) -> Task:
    """A task whose check only asks the compiler for its version."""
    if missing := lacking("typescript"):
        skip_or_fail(missing)
    return make_task(folder, parts={"hidden/check.sh": COMPILE}, language="typescript")


@pytest.mark.parametrize("language", sorted(NEEDS))
def test_a_language_that_is_not_here_is_named_with_what_to_do(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    need_of = NEEDS[language]
    assert lacking(language) == f"{need_of.program} is not installed: {need_of.advice}"


@pytest.mark.parametrize("language", ["python", "shell", "text"])
def test_other_languages_need_nothing(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert lacking(language) == ""


def test_node_alone_does_not_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("node")
    monkeypatch.setattr("evals.languages.COMPILER", tmp_path)
    assert lacking("typescript").startswith("TypeScript is not installed: ./dev eval puts it into .peers")


def test_a_workspace_in_typescript_has_a_compiler_that_is_in_no_commit_and_no_result(tmp_path: Path) -> None:
    task = in_typescript(tmp_path / "task")
    workspace = tmp_path / "project"
    make_workspace(task, workspace)
    assert (workspace / "node_modules" / ".bin" / "tsc").resolve().is_file()
    assert list(read_tree(workspace)) == ["README.md"]
    assert "node_modules" in (workspace / ".git" / "info" / "exclude").read_text()


def test_a_check_does_not_use_the_compiler_that_the_agent_had(tmp_path: Path) -> None:
    task = in_typescript(tmp_path / "task")
    workspace = tmp_path / "project"
    make_workspace(task, workspace, repository=False)
    tree = read_tree(workspace)
    (workspace / "node_modules" / "typescript" / "bin" / "tsc").write_text("process.exit(1)")
    assert grade(task, tree, tree, workspace, TurnFacts(), confined=False) == ""


def test_go_keeps_what_it_builds_beside_the_workspace_and_asks_no_server(tmp_path: Path) -> None:
    assert variables("go", tmp_path)["GOCACHE"] == str(tmp_path / "go-build")
    assert variables("go", tmp_path)["GOPROXY"] == "off"
    assert variables("python", tmp_path) == {}
