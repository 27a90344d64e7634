"""All four folders of ours, in the middle of a workspace: no tool, no command and no other agent gets to them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support import command, rogue_agent
from tests.support.editor import Editor, answer_questions, turns
from tests.support.needs import need
from tests.support.scripted_turns import apart, call

CANARY = "canary-1f0c"
PATTERN = "can[a]ry-1f0c"  # finds it, and is not it
FILES = {
    "config": "config/dragoman/config.toml",
    "data": "data/dragoman/sessions/other",
    "state": "state/dragoman/log/dragoman.log",
    "cache": "cache/dragoman/models/openai-0.json",
}
MODES = ["ask", "workspace-write", "sandbox", "full", "read-only"]
CONFINED = ["workspace-write", "sandbox"]


def place(kind: str, mode: str = "") -> str:
    """Where a folder stands, from the workspace. There is no view of a workspace that has the place for views in it."""
    return f"../{kind}" if (kind, mode) == ("data", "sandbox") else kind


def variables(work: Path, mode: str = "") -> dict[str, str]:
    named = {f"XDG_{kind.upper()}_HOME": os.path.normpath(work / place(kind, mode)) for kind in FILES}
    return {**named, "DRAGOMAN_HOME": "", "HOME": str(work.parent / "nobody")}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace with our four folders in it, each with a file that has the canary."""
    made = tmp_path / "work"
    for name in FILES.values():
        (made / name).parent.mkdir(parents=True)
        (made / name).write_text(f"# {CANARY}\n")
    return made


def told_by(work: Path, mode: str, *steps: Any) -> list[dict[str, Any]]:
    """Every update of a turn of our own agent that makes these calls, with a yes to every question."""
    yes = {"result": {"outcome": {"outcome": "selected", "optionId": "allow_once"}}}

    def answer(question: dict[str, Any]) -> dict[str, Any]:
        options = question["params"]["options"]
        chosen = next((one["optionId"] for one in options if one["kind"] == "allow_once"), None)
        return yes if chosen is None else {"result": {"outcome": {"outcome": "selected", "optionId": chosen}}}

    if mode == "sandbox":
        (work / "data").rename(work.parent / "data")
    with Editor(work, turns(apart(steps)), "--mode", mode, env=variables(work, mode)) as editor:
        editor.open()
        _, told = answer_questions(editor, answer)
    return told


def run_beside(work: Path, *words: str) -> int:
    """The exit code of `dragoman run`, where our folders are those in the workspace."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables(work).items():
            patch.setenv(name, value)
        return command.call("run", "hi", *words).code


def failed(told: list[dict[str, Any]]) -> int:
    return json.dumps(told).count('"status": "failed"')


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("mode", MODES)
def test_no_tool_reads_or_finds_it(work: Path, mode: str, kind: str) -> None:
    need("bwrap")
    prefix, file = "sandbox_" if mode == "sandbox" else "", f"{place(kind, mode)}/{FILES[kind].partition('/')[2]}"
    folder = f"{place(kind, mode)}/dragoman"
    told = told_by(
        work,
        mode,
        call(f"{prefix}read_file", path=file),
        call(f"{prefix}list_files", path=folder),
        call(f"{prefix}glob", pattern="*", path=folder),
        call(f"{prefix}grep", pattern=PATTERN, path=folder),
        call(f"{prefix}grep", pattern=PATTERN),
        call(f"{prefix}glob", pattern=f"{kind}/**"),
    )
    assert failed(told) == 4
    assert CANARY not in json.dumps(told)
    assert file not in json.dumps(told[-1])


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("mode", CONFINED)
def test_no_confined_command_reads_or_changes_it(work: Path, mode: str, kind: str) -> None:
    need("bwrap")
    folder, tool = place(kind, mode), "sandbox_bash" if mode == "sandbox" else "bash"
    file = f"{folder}/{FILES[kind].partition('/')[2]}"
    told = told_by(
        work,
        mode,
        call(tool, command=f"cat {file}"),
        call(tool, command=f"echo x > {file}"),
        call(tool, command=f"rm -r {folder}/dragoman"),
        call(tool, command=f"mv {folder} away"),
        call(tool, command=f"grep -r {PATTERN} . || exit 3"),
    )
    assert failed(told) == 5
    assert CANARY not in json.dumps(told)
    assert (work / file).read_text() == f"# {CANARY}\n"
    assert Path(os.path.normpath(work / folder)).is_dir()


@pytest.mark.parametrize("kind", FILES)
def test_no_command_makes_a_folder_of_ours_that_is_not_there(tmp_path: Path, kind: str) -> None:
    """Such as a configuration that starts programs, for a user who has none."""
    need("bwrap")
    work = tmp_path / "work"
    work.mkdir()
    told = told_by(
        work, "workspace-write", call("bash", command=f"mkdir -p $(dirname {FILES[kind]}) && echo x > {FILES[kind]}")
    )
    assert not (work / FILES[kind]).exists()
    assert failed(told) + ("Moved out of the workspace" in json.dumps(told)) == 1


@pytest.mark.parametrize("kind", FILES)
def test_writing_it_with_a_tool_needs_a_yes_in_a_mode_that_writes_freely(work: Path, kind: str) -> None:
    asked: list[str] = []

    def no(question: dict[str, Any]) -> dict[str, Any]:
        asked.append(question["params"]["toolCall"]["title"])
        return {"result": {"outcome": {"outcome": "cancelled"}}}

    steps = apart([call("write_file", path=FILES[kind], content="x"), call("write_file", path="free", content="x")])
    with Editor(work, turns(steps), "--mode", "workspace-write", env=variables(work)) as editor:
        editor.open()
        answer_questions(editor, no)
    assert ([FILES[kind] in title for title in asked], (work / "free").exists()) == ([True], True)
    assert (work / FILES[kind]).read_text() == f"# {CANARY}\n"


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("allow", ["read", "edit"])
def test_no_other_agent_reads_or_writes_it_through_the_client(
    work: Path, tmp_path: Path, allow: str, kind: str
) -> None:
    path = str(work / FILES[kind])
    agent = rogue_agent.written(
        tmp_path,
        {"ask": "fs/read_text_file", "params": {"path": path}},
        {"ask": "fs/write_text_file", "params": {"path": path, "content": "x"}},
        {"ask": "fs/write_text_file", "params": {"path": f"{work}/{kind}/dragoman/new", "content": "x"}},
        {"ask": "terminal/create", "params": {"command": "cat", "args": [path]}},
        rogue_agent.permission("Look", kind="read", locations=[{"path": str(work / kind)}]),
        rogue_agent.text("ok"),
    )
    options = ("--stream-json", "--cwd", str(work), "--allow", allow)
    code = run_beside(work, *options, "--", *agent)
    *lent, permission = rogue_agent.answers(tmp_path)
    assert [answer.get("code") for answer in lent] == [-32600] * 4, lent
    assert permission["outcome"].get("optionId") != "yes"
    assert (code, CANARY in (tmp_path / "plan.json.heard").read_text()) == (5, False)
    assert (work / FILES[kind]).read_text() == f"# {CANARY}\n"
    assert not (work / kind / "dragoman/new").exists()


@pytest.mark.parametrize("kind", FILES)
def test_a_workspace_inside_of_one_is_the_users_choice(work: Path, tmp_path: Path, kind: str) -> None:
    """Who opens the folder of the settings wants help with them."""
    inside = (work / FILES[kind]).parent
    path = str(work / FILES[kind])
    agent = rogue_agent.written(
        tmp_path, {"ask": "fs/read_text_file", "params": {"path": path}}, rogue_agent.text("ok")
    )
    options = ("--cwd", str(inside), "--allow", "read")
    assert run_beside(work, *options, "--", *agent) == 0
    assert rogue_agent.answers(tmp_path) == [{"content": f"# {CANARY}\n"}]
