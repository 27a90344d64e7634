"""The slash commands of a session: undo, clear, compact, mode, plan, and the user's own."""

from pathlib import Path

import pytest

from dragoman.coder.context import ContextUserMessage, read
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import (
    CompactionUpdate,
    OptionsChanged,
)
from tests.support.conversation import conversation
from tests.support.whole_agent import User, events_of, scripted, text, whole

WRITE = {"call": "write_file", "input": {"path": "a.txt", "content": "new"}}


async def test_commands_are_announced_and_the_users_own_are_among_them(tmp_path: Path) -> None:
    own = tmp_path / "home" / "commands"
    own.mkdir(parents=True)
    (own / "greet.md").write_text("---\ndescription: Say hello\n---\nGreet $ARGUMENTS now.")
    (own / "help.md").write_text("not this one")
    (own / "bad name.md").write_text("nor this")
    store = SqliteStore(tmp_path / "store")
    home = tmp_path / "home"
    async with whole(tmp_path, scripted([{"say": "hi"}]), home=home, store=store) as (_, session):
        names = [getattr(command, "name", "") for command in session.commands]
        await events_of(session, "/greet the world")
        assert "`/greet` Say hello" in text(await events_of(session, "/help"))
        entries = [record.entry async for records in store.read(session.id) for record in records]
    expected = "help compact context cost permissions mode model mcp tasks plan sandbox undo rewind clear greet"
    assert names == expected.split()
    (said, _) = conversation(read(entries))
    assert isinstance(said, ContextUserMessage)
    assert said.content == [Text("Greet the world now.")]
    await store.close()


async def test_undo_takes_back_the_last_turn_and_leaves_what_others_wrote(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    write = [WRITE, {"call": "write_file", "input": {"path": "b.txt", "content": "b"}}]
    async with whole(tmp_path, scripted(write), mode="full-access") as (_, session):
        await events_of(session)
        (tmp_path / "b.txt").write_text("somebody else's")
        said = text(await events_of(session, "/undo"))
        assert text(await events_of(session, "/undo")) == "There is nothing to undo.\n"
    assert (tmp_path / "a.txt").read_text() == "old"
    assert (tmp_path / "b.txt").read_text() == "somebody else's"
    assert ("put back" in said, "left alone" in said) == (True, True)


async def test_undo_names_a_file_that_was_too_long_to_remember(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.coder.changes.REMEMBERED_BYTES", 10)
    long = {"call": "write_file", "input": {"path": "long.txt", "content": "x" * 11}}
    async with whole(tmp_path, scripted([WRITE, long]), mode="full-access") as (_, session):
        await events_of(session)
        said = text(await events_of(session, "/undo"))
    assert (tmp_path / "a.txt").exists() is False
    assert (tmp_path / "long.txt").read_text() == "x" * 11
    assert f"- left alone {tmp_path / 'long.txt'}: " in said


async def test_clear_and_compact_change_what_the_model_sees_only(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store")
    async with whole(tmp_path, scripted([{"say": "one"}]), store=store) as (_, session):
        await events_of(session)
        events = await events_of(session, "/compact")
        assert [e.status for e in events if isinstance(e, CompactionUpdate)] == ["in_progress", "completed"]
        await events_of(session, "/clear")
        entries = [record.entry async for records in store.read(session.id) for record in records]
        assert read(entries) == []
        assert "0 items" in text(await events_of(session, "/context"))
    await store.close()


@pytest.mark.parametrize("protocol", [1, 2])
async def test_the_mode_can_be_changed_by_a_command(tmp_path: Path, protocol: int) -> None:
    async with whole(tmp_path, scripted([WRITE]), protocol=protocol, user=User("allow_once")) as (_, session):
        events = await events_of(session, "/mode full-access")
        assert any(isinstance(event, OptionsChanged) for event in events)
        assert "no such mode; there are read-only, plan, ask" in text(await events_of(session, "/mode nonsense"))
        assert "The mode is full-access" in text(await events_of(session, "/mode"))
        await events_of(session)
    assert (tmp_path / "a.txt").exists()


async def test_plan_changes_nothing_for_one_turn(tmp_path: Path) -> None:
    async with whole(tmp_path, scripted([WRITE]), mode="full-access") as (_, session):
        await events_of(session, "/plan how to write it")
        assert not (tmp_path / "a.txt").exists()
        await events_of(session, "now do it")
    assert (tmp_path / "a.txt").exists()
