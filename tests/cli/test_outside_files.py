"""A file or a working folder outside of the workspace, wanted from `dragoman run`: denied like anything else."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_decisions import lines
from tests.support import rogue_agent
from tests.support.rogue_agent import text
from tests.support.run_command import at_terminal, left, run

Step = dict[str, Any]
NEVER = "dragoman: 1 request was denied; no --allow reaches files outside of the folder"


def work(folder: Path) -> Path:
    """A folder to work in, with a link that leads out of it."""
    made = folder / "work"
    made.mkdir()
    (folder / "out.txt").write_text("outside")
    (made / "link").symlink_to(folder / "out.txt")
    return made


def wanting(method: str, path: Path | str) -> Step:
    content = {"content": "changed"} if method == "fs/write_text_file" else {}
    return {"ask": method, "params": {"path": str(path), **content}}


def shown(method: str, path: Path | str) -> str:
    return f"{'Write' if method == 'fs/write_text_file' else 'Read'} {path}"


def reason(path: Path | str) -> str:
    return f"{path} is outside of the workspace, and a client lends nothing there"


@pytest.mark.parametrize("allow", ["read", "edit", "all"])
@pytest.mark.parametrize("way", ["../out.txt", "link", "../new/file"])
@pytest.mark.parametrize("method", ["fs/read_text_file", "fs/write_text_file"])
def test_it_is_told_and_exit_5_at_every_level(method: str, way: str, allow: str, tmp_path: Path) -> None:
    path = os.path.join(work(tmp_path), way)
    agent = rogue_agent.written(tmp_path, wanting(method, path), text("ok"))
    done = run(tmp_path, "hi", "--stream-json", "--cwd", str(tmp_path / "work"), "--allow", allow, "--", *agent)
    assert (done.code, done.error.splitlines()) == (
        5,
        [f"dragoman: not allowed: {shown(method, path)} ({reason(path)})", NEVER],
    ), done
    assert done.events[-1]["denied"] == [{"what": shown(method, path), "reason": reason(path)}]
    assert rogue_agent.answers(tmp_path) == [
        {"code": -32600, "message": f"Not allowed: {reason(path)}", "data": {"reason": reason(path)}}
    ]
    assert ((tmp_path / "out.txt").read_text(), (tmp_path / "new").exists()) == ("outside", False)


@pytest.mark.parametrize("content", [False, True])
def test_it_is_recorded_with_its_reason(content: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_AUDIT_CONTENT", str(content).lower())
    path = work(tmp_path) / "link"
    agent = rogue_agent.written(tmp_path, wanting("fs/read_text_file", path))
    run(tmp_path, "hi", "--cwd", str(tmp_path / "work"), "--", *agent)
    (line,) = lines(tmp_path)
    told = {name: line[name] for name in ("tool", "title", "decision", "rule", "by")}
    assert told == {
        "tool": "fs/read_text_file",
        "title": str(path) if content else "read",
        "decision": "deny",
        "rule": reason(path) if content else "outside of the workspace",
        "by": "policy",
    }


def test_a_turn_that_the_agent_ends_because_of_it_is_exit_5(tmp_path: Path) -> None:
    path = work(tmp_path) / "link"
    agent = rogue_agent.written(tmp_path, wanting("fs/write_text_file", path), {"end": "cancelled"})
    done = run(tmp_path, "hi", "--cwd", str(tmp_path / "work"), "--", *agent)
    assert (done.code, done.error.splitlines()[-1]) == (5, NEVER)


def test_at_a_terminal_it_is_denied_without_a_question(tmp_path: Path) -> None:
    path = work(tmp_path) / "link"
    agent = rogue_agent.written(tmp_path, wanting("fs/read_text_file", path), text("ok"))
    child = at_terminal(tmp_path, "hi", "--cwd", str(tmp_path / "work"), "--", *agent)
    child.expect_exact("dragoman: 1 request was denied; no --allow reaches files outside of the folder")
    assert left(child) == 5


def test_a_rule_against_the_file_is_the_reason_where_there_is_one(tmp_path: Path) -> None:
    path = work(tmp_path) / "link"
    program, *arguments = rogue_agent.written(tmp_path, wanting("fs/read_text_file", path))
    entry = {"command": program, "args": arguments, "permissions": {"reject": [{"path": "out.txt"}]}}
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "acp.json").write_text(json.dumps({"servers": {"mine": entry}}))
    done = run(tmp_path, "hi", "--cwd", str(tmp_path / "work"), "--agent", "mine")
    assert done.error.splitlines() == [
        f"dragoman: not allowed: Read {path} (the rule reject path out.txt)",
        "dragoman: 1 request was denied",
    ]


def test_a_command_in_a_folder_outside_is_denied_too(tmp_path: Path) -> None:
    folder = work(tmp_path)
    step = {"ask": "terminal/create", "params": {"command": "ls", "cwd": str(tmp_path)}}
    agent = rogue_agent.written(tmp_path, step, text("ok"))
    done = run(tmp_path, "hi", "--cwd", str(folder), "--allow", "all", "--", *agent)
    assert (done.code, done.error.splitlines()) == (5, [f"dragoman: not allowed: Run ls ({reason(tmp_path)})", NEVER])


@pytest.mark.parametrize("path", ["in.txt", "/\0", "/" + "x" * 5_000], ids=["relative", "zero", "long"])
def test_a_path_that_no_file_can_have_is_the_agents_mistake_and_no_denial(path: str, tmp_path: Path) -> None:
    agent = rogue_agent.written(tmp_path, wanting("fs/read_text_file", path), text("ok"))
    done = run(tmp_path, "hi", "--", *agent)
    assert (done.code, done.error, rogue_agent.answers(tmp_path)[0]["code"]) == (0, "", -32602)
