"""Turns in a sandboxed copy of the workspace."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.context import ContextToolResult, read
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.events import (
    TerminalUpdate,
)
from dragoman.vocabulary.tools import Cancellable
from tests.support.needs import need
from tests.support.whole_agent import User, ends, events_of, scripted, whole

WRITE = {"call": "write_file", "input": {"path": "a.txt", "content": "new"}}


def in_sandbox(tool: str, **given: object) -> dict[str, Any]:
    return {"call": f"sandbox_{tool}", "input": given}


SANDBOXED = [
    in_sandbox("write_file", path="a.txt", content="new"),
    in_sandbox("edit_file", path="b.txt", old_string="old", new_string="new"),
    in_sandbox("bash", command="cat a.txt b.txt; echo made > c.txt; rm d.txt"),
    in_sandbox("read_file", path="c.txt"),
    in_sandbox("grep", pattern="made"),
    {"say": "Done."},
]


@pytest.mark.parametrize("protocol", [1, 2])
@pytest.mark.parametrize("answer", ["allow_once", "reject_once"])
async def test_a_sandboxed_turn_is_one_question_at_its_end(tmp_path: Path, protocol: int, answer: str) -> None:
    need("bwrap")
    folder, home, user = tmp_path / "work", tmp_path / "home", User(answer)
    folder.mkdir()
    (folder / "b.txt").write_text("old\n")
    (folder / "d.txt").write_text("gone")
    model = scripted(SANDBOXED)
    async with whole(folder, model, user=user, mode="sandbox", protocol=protocol, home=home) as (_, session):
        events = await events_of(session)
    assert [question.title for question in user.asked] == ["Apply 4 changes to the workspace"]
    done = [status for _, status in ends(events)]
    assert done == ["completed"] * 5 + ["completed" if answer == "allow_once" else "failed"]
    found = {path.name: path.read_text() for path in folder.iterdir()}
    if answer == "allow_once":
        assert found == {"a.txt": "new", "b.txt": "new\n", "c.txt": "made\n"}
    else:
        assert found == {"b.txt": "old\n", "d.txt": "gone"}
    assert list((home / "views").iterdir()) == []


async def test_in_the_sandbox_there_are_no_other_tools(tmp_path: Path) -> None:
    need("bwrap")
    folder = tmp_path / "work"
    folder.mkdir()
    steps = [WRITE, {"call": "bash", "input": {"command": "touch b"}}, {"say": "Well."}]
    async with whole(folder, scripted(steps), user=User("allow_once"), mode="sandbox", home=tmp_path) as (_, session):
        events = await events_of(session)
    assert [status for _, status in ends(events)] == ["failed", "failed"]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("mode", ["read-only", "plan", "ask", "workspace-write", "safe", "full-access"])
async def test_elsewhere_there_are_no_tools_of_the_sandbox(tmp_path: Path, mode: str) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    user = User("allow_always")
    write = in_sandbox("write_file", path="a.txt", content="new")
    steps = [
        write,
        in_sandbox("bash", command="touch b"),
        in_sandbox("read_file", path="/etc/passwd"),
        {"say": "Well."},
    ]
    async with whole(folder, scripted(steps), user=user, mode=mode, home=tmp_path / "home") as (_, session):
        events = await events_of(session)
    assert [status for _, status in ends(events)] == ["failed"] * 3
    assert (user.asked, list(folder.iterdir())) == ([], [])


async def test_a_cancelled_sandbox_leaves_nothing(tmp_path: Path) -> None:
    need("bwrap")
    folder, home = tmp_path / "work", tmp_path / "home"
    folder.mkdir()
    steps = [in_sandbox("bash", command="echo x > a; sleep 981")]
    async with whole(folder, scripted(steps), mode="sandbox", home=home) as (_, session):
        turn = session.prompt("go")
        async for event in turn:
            if isinstance(event, TerminalUpdate) and isinstance(event.capabilities, Cancellable):
                await turn.cancel()
    assert turn.stop_reason == "cancelled"
    assert (list(folder.iterdir()), list((home / "views").iterdir())) == ([], [])


@pytest.mark.requirement("I1", "I2", "I8")
async def test_a_command_of_workspace_write_writes_nowhere_else_and_reaches_no_host(tmp_path: Path) -> None:
    need("bwrap")
    folder, outside, home = tmp_path / "work", tmp_path / "outside", tmp_path / "home"
    for each in (folder, outside, home):
        each.mkdir()
    (home / "credentials.toml").write_text("canary")
    command = f"echo in > in; echo out > {outside}/out; cat {home}/credentials.toml; echo x > .envrc; env"
    user = User("allow_once")
    steps = [{"call": "bash", "input": {"command": command}}]
    store = SqliteStore(tmp_path / "store")
    async with whole(folder, scripted(steps), user=user, mode="workspace-write", home=home, store=store) as (
        _,
        session,
    ):
        await events_of(session)
        entries = [record.entry async for records in store.read(session.id) for record in records]
    (said,) = [item.text for item in read(entries) if isinstance(item, ContextToolResult)]
    assert sorted(path.name for path in folder.iterdir()) == ["in"]
    assert list(outside.iterdir()) == []
    assert "canary" not in said
    await store.close()
