"""No write without a question makes git run something: real `git status` after a turn of a real agent."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.tools import files, write
from tests.support.editor import Editor, Message, answer_questions, turns
from tests.support.git_repository import git, program, repository
from tests.support.needs import need
from tests.support.scripted_turns import RecordingModel, apart, call
from tests.support.whole_agent import User, events_of, scripted, whole


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


async def test_a_folder_that_became_a_git_folder_unnoticed_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two helpers write at once: each was judged before the other had written."""
    load = files.load

    async def slow(place: Any, context: Any) -> Any:
        found = await load(place, context)
        (tmp_path / "HEAD").write_text("x")  # after the judgement of the second look: another helper was quicker
        return found

    model = RecordingModel(apart([call("write_file", path="objects/x", content="x")]))
    seen: list[int] = []

    async def counted(place: Any, context: Any) -> Any:
        seen.append(1)
        return await (load(place, context) if len(seen) == 1 else slow(place, context))

    monkeypatch.setattr(write, "load", counted)
    async with whole(tmp_path, model.make, mode="workspace-write") as (_, session):
        await events_of(session)
    assert "is protected by now" in model.results[0]
    assert not (tmp_path / "objects").exists()


# -- commands that run without a question ------------------------------------------------------------------------------


async def looked(folder: Path, *commands: str) -> tuple[list[str], list[str]]:
    """The questions for these commands, each answered no; and what they told."""
    user = User("reject_once")
    model = RecordingModel(apart(call("bash", command=command) for command in commands))
    async with whole(folder, model.make, user=user, mode="workspace-write", home=folder.parent / "home") as (
        _,
        session,
    ):
        await events_of(session)
    return [question.title for question in user.asked], model.results


LEFT_BEHIND = (".bashrc", ".gitattributes", "sub/.envrc", "plain")


@pytest.mark.parametrize("kind", ["bare", "ordinary", "post-index-change"])
async def test_git_status_without_a_question_runs_nothing_and_writes_nothing(tmp_path: Path, kind: str) -> None:
    need("bwrap")
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    evil = program(work / "evil", "echo RAN >&2", *(f"echo x > {work}/{name}" for name in LEFT_BEHIND))
    if kind == "bare":
        for name in ("objects", "refs"):
            (work / name).mkdir()
        (work / "HEAD").write_text("ref: refs/heads/main\n")
        (work / "config").write_text(f"[core]\n\tworktree = .\n\tfsmonitor = {evil}\n")
    else:
        repository(work)
        if kind == "ordinary":
            git(work, "config", "core.fsmonitor", str(evil))
        else:
            program(work / ".git" / "hooks" / kind, str(evil))
    asked, results = await looked(work, "git status")
    # An old git has no switch for bare repositories, so one that names a program is asked about.
    assert asked == (["git status"] if kind == "bare" else [])
    assert "RAN" not in results[0]
    assert [name for name in LEFT_BEHIND if (work / name).exists()] == []


async def test_a_bare_repository_is_not_taken_for_the_users_without_a_question(tmp_path: Path) -> None:
    need("bwrap")
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q", "--bare")
    asked, results = await looked(work, "git log")
    assert asked == []
    assert "cannot use bare repository" in results[0]


async def test_what_only_looks_can_write_nothing_even_if_it_tries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the judgement errs, the confinement still holds."""
    need("bwrap")
    monkeypatch.setattr("dragoman.coder.tools.bash.paths_of", lambda parsed: ())
    work = tmp_path / "work"
    work.mkdir()
    asked, results = await looked(work, "echo x > made; touch .envrc; exec 3<>/dev/tcp/127.0.0.1/22")
    assert asked == []
    assert "Read-only file system" in results[0]
    assert list(work.iterdir()) == []


PROGRAMS = {
    "diff.external": "diff",
    "diff.x.textconv": "diff",
    "diff.x.command": "diff",
    "filter.x.clean": "status",
    "filter.x.process": "status",
    "gpg.program": "log",
    "merge.x.driver": "show",
}


@pytest.mark.parametrize("key", PROGRAMS)
async def test_git_is_asked_about_where_its_configuration_names_a_program(tmp_path: Path, key: str) -> None:
    need("bwrap")
    work = repository(tmp_path / "work")
    (work / ".gitattributes").write_text("* diff=x filter=x merge=x\n")
    (work / "file").write_text("two\n")
    git(work, "config", key, str(program(tmp_path / "evil", f"touch {tmp_path}/ran", "cat")))
    command = f"git {PROGRAMS[key]}"
    asked, results = await looked(work, command, "git diff --no-ext-diff --no-textconv")
    free = [] if key.startswith("diff") else ["git diff --no-ext-diff --no-textconv"]
    assert (asked, results[0]) == ([command, *free], "Permission denied. The user said no.")
    assert not (tmp_path / "ran").exists()
    assert ("+two" in results[1]) == (not free)


async def test_a_submodule_that_names_a_program_is_asked_about(tmp_path: Path) -> None:
    """No setting of ours reaches a submodule: git takes them out of its environment."""
    need("bwrap")
    repository(tmp_path / "other")
    work = repository(tmp_path / "work")
    git(work, "-c", "protocol.file.allow=always", "submodule", "add", "-q", "../other", "sub")
    assert (await looked(work, "git status"))[0] == []
    git(work / "sub", "config", "core.fsmonitor", str(program(tmp_path / "evil", f"touch {tmp_path}/ran")))
    assert (await looked(work, "git status"))[0] == ["git status"]


async def test_git_without_a_program_in_its_configuration_looks_without_a_question(tmp_path: Path) -> None:
    need("bwrap")
    work = repository(tmp_path / "work")
    (work / "file").write_text("two\n")
    asked, results = await looked(
        work, "git status --short", "git diff", "git log --oneline", "git show", "git blame file"
    )
    assert asked == []
    assert results[0] == " M file\n"
    assert "+two" in results[1]
    assert "first" in results[2]
    assert "+one" in results[3]
    assert "two" in results[4]


def run_in(folder: Path, line: str) -> None:
    subprocess.run(["/bin/sh", "-c", line], cwd=folder, check=True)


ELSEWHERE = {
    "file": "rm -r .git; echo gitdir: ../private/.git > .git",
    "link": "rm -r .git; ln -s ../private/.git .git",
    "linked objects": "rm -r .git/objects .git/refs; ln -s ../../private/.git/objects ../../private/.git/refs .git/",
    "work tree": "git config core.worktree ../../private",
    "common folder": "echo ../../private/.git > .git/commondir",
}


@pytest.mark.parametrize("kind", ELSEWHERE)
async def test_a_repository_that_leads_to_another_one_is_asked_about(tmp_path: Path, kind: str) -> None:
    """A folder that came from elsewhere could have git show what the user's other repositories hold."""
    need("bwrap")
    repository(tmp_path / "private")
    work = repository(tmp_path / "work")
    run_in(work, ELSEWHERE[kind])
    assert (await looked(work, "git log -p"))[0] == ["git log -p"]


@pytest.mark.parametrize("kind", ["worktree", "submodule", "sub folder"])
async def test_a_repository_that_is_the_workspaces_own_is_looked_at_without_a_question(
    tmp_path: Path, kind: str
) -> None:
    need("bwrap")
    work = repository(tmp_path / "work")
    if kind == "worktree":
        git(work, "worktree", "add", "-q", "../linked")
        work = tmp_path / "linked"
    elif kind == "submodule":
        outer = repository(tmp_path / "outer")
        git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", "../work", "sub")
        work = outer / "sub"
    else:
        (work / "inner").mkdir()
        work /= "inner"
    assert (await looked(work, "git log --format=%s"))[0] == []
