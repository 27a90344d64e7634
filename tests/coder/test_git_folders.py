"""No write without a question makes git run something: real `git status` after a turn of a real agent."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.tools import files, writing
from tests.cli.editor import Editor, Message, turns
from tests.coder.rows import Told, answer_questions, apart, call
from tests.coder.whole import User, events_of, scripted, whole
from tests.needs import need


def git(folder: Path, *words: str) -> str:
    """Git as the user has it: without any setting of ours, and without a global one."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        [need("git"), *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def repository(folder: Path) -> Path:
    """An ordinary repository with one commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "A")
    git(folder, "config", "user.email", "a@example.com")
    (folder / "file").write_text("one\n")
    git(folder, "add", "file")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def refuse(message: Message) -> dict[str, Any]:
    chosen = next(option for option in message["params"]["options"] if option["kind"] == "reject_once")
    return {"result": {"outcome": {"outcome": "selected", "optionId": chosen["optionId"]}}}


@pytest.mark.parametrize("below", ["", "docs/"], ids=["root", "sub folder"])
def test_refused_writes_leave_no_folder_in_which_git_runs_a_program(tmp_path: Path, below: str) -> None:
    folder = tmp_path if not below else repository(tmp_path / "work")
    (folder / below).mkdir(exist_ok=True)
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    config = f"[core]\n\trepositoryformatversion = 0\n\tworktree = .\n\tfsmonitor = {program}\n"
    writes = {"HEAD": "ref: refs/heads/y\n", "config": config, "objects/pack/x": "", "refs/heads/y": ""}
    steps = [call("write_file", path=below + path, content=content) for path, content in writes.items()]
    with Editor(folder, turns(apart(steps)), "--mode", "workspace-write") as editor:
        editor.open()
        asked, _ = answer_questions(editor, refuse)
    git(folder / below, "status")
    assert not ran.exists()
    assert len(asked) == 2  # of the four, those that would have made it a repository


async def test_a_git_folder_is_asked_for_through_the_editors_files_and_by_edits(tmp_path: Path) -> None:
    async def read_text(request: Any) -> str:
        return Path(request.path).read_text()

    async def write_text(request: Any) -> None:
        Path(request.path).write_text(request.content)

    (tmp_path / "objects").mkdir()
    (tmp_path / "bare.git" / "refs").mkdir(parents=True)
    (tmp_path / "bare.git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "bare.git" / "config").write_text("[core]\n")
    edit = call("edit_file", path="bare.git/config", old_string="[core]", new_string="[core] fsmonitor = x")
    user = User("reject_once")
    steps = apart([call("write_file", path="HEAD", content="x"), edit, call("write_file", path="free", content="x")])
    lent: dict[str, Any] = {"read_text_file": read_text, "write_text_file": write_text}
    async with whole(tmp_path, scripted(steps), user=user, mode="workspace-write", **lent) as (_, session):
        await events_of(session)
    assert [question.title for question in user.asked] == ["Write HEAD", "Edit bare.git/config"]
    assert (tmp_path / "free").exists()


async def test_a_folder_that_became_a_git_folder_while_nobody_looked_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two helpers write at once: each was judged before the other had written."""
    load = files.load

    async def slow(place: Any, desk: Any) -> Any:
        found = await load(place, desk)
        (tmp_path / "HEAD").write_text("x")  # after the judgement of the second look: another helper was quicker
        return found

    model = Told(apart([call("write_file", path="objects/x", content="x")]))
    seen: list[int] = []

    async def counted(place: Any, desk: Any) -> Any:
        seen.append(1)
        return await (load(place, desk) if len(seen) == 1 else slow(place, desk))

    monkeypatch.setattr(writing, "load", counted)
    async with whole(tmp_path, model.make, mode="workspace-write") as (_, session):
        await events_of(session)
    assert "is protected by now" in model.results[0]
    assert not (tmp_path / "objects").exists()
