"""The whole agent in memory: questions, modes, calls, helpers and plans in one turn."""

import re
from pathlib import Path

import pytest

from dragoman.coder.context import ContextAssistantMessage, ContextToolResult, ContextUserMessage, read
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.events import (
    Notice,
    PlanUpdate,
    ToolCallContentChunk,
    ToolCallUpdate,
)
from dragoman.vocabulary.options import PlanItems
from dragoman.vocabulary.requests import (
    ResumeSession,
)
from tests.support.conversation import conversation
from tests.support.whole_agent import User, ends, events_of, scripted, text, whole

WRITE = {"call": "write_file", "input": {"path": "a.txt", "content": "new"}}


@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_write_is_asked_for_with_its_diff_and_done_after_a_yes(tmp_path: Path, protocol: int) -> None:
    user = User("allow_once")
    async with whole(tmp_path, scripted([WRITE, {"say": "Done."}]), user=user, protocol=protocol) as (_, session):
        events = await events_of(session)
    assert (tmp_path / "a.txt").read_text() == "new"
    assert [question.title for question in user.asked] == ["Write a.txt"]
    assert ends(events) == [("write_file", "completed")]
    assert text(events) == "Done."


@pytest.mark.requirement("F1")
@pytest.mark.parametrize("answer", ["reject_once", "reject_always", None])
@pytest.mark.parametrize("protocol", [1, 2])
async def test_without_a_yes_nothing_happens_and_the_model_is_told(
    tmp_path: Path, protocol: int, answer: str | None
) -> None:
    store = SqliteStore(tmp_path / "store")
    folder = tmp_path / "work"
    folder.mkdir()
    steps = [WRITE, {"call": "bash", "input": {"command": "touch b"}}, {"say": "Well."}]
    async with whole(folder, scripted(steps), user=User(answer), protocol=protocol, store=store) as (_, session):
        events = await events_of(session)
        entries = [record.entry async for records in store.read(session.id) for record in records]
    assert list(folder.iterdir()) == []
    assert [status for _, status in ends(events)] == ["failed", "failed"]
    results = [item.text for item in read(entries) if isinstance(item, ContextToolResult)]
    assert results == ["Permission denied. The user said no."] * 2
    await store.close()


@pytest.mark.parametrize("mode", ["read-only", "plan", "safe"])
async def test_a_mode_is_enforced_without_a_question(tmp_path: Path, mode: str) -> None:
    user = User("allow_always")
    steps = [{"call": "bash", "input": {"command": "touch b"}}, {"say": "Well."}]
    async with whole(tmp_path, scripted(steps), user=user, mode=mode) as (_, session):
        events = await events_of(session)
    assert (user.asked, list(tmp_path.iterdir())) == ([], [])
    assert ends(events) == [("bash", "failed")]


async def test_commands_need_no_question_where_writing_needs_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    user = User("reject_once")
    commands = ["cat a", "ls | wc -l", "cat /etc/passwd", "cat a > b"]
    steps = [{"call": "bash", "input": {"command": command}} for command in commands]
    async with whole(tmp_path, scripted(steps), user=user, mode="workspace-write") as (_, session):
        events = await events_of(session)
    assert [status for _, status in ends(events)] == ["completed"] * 4
    assert user.asked == []


@pytest.mark.requirement("G9", "G10")
@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", ".GIT/config", ".vscode/settings.json", ".envrc", "x/.mcp.json"]
)
async def test_protected_names_are_asked_for_where_others_are_not(tmp_path: Path, path: str) -> None:
    user = User("reject_once")
    steps = [WRITE, {"call": "write_file", "input": {"path": path, "content": "x"}}]
    async with whole(tmp_path, scripted(steps), user=user, mode="workspace-write") as (_, session):
        events = await events_of(session)
    assert [status for _, status in ends(events)] == ["completed", "failed"]
    assert [question.title for question in user.asked] == [f"Write {path}"]


@pytest.mark.requirement("F13")
@pytest.mark.parametrize(
    ("command", "title", "always"),
    [
        ("make test", "make test", True),
        ("echo \u202egnp.exe", "echo \\u202egnp.exe", False),
        ("echo \x1b[2Jhi", "echo \\u001b[2Jhi", False),
        ("echo " + "x" * 100_000, None, False),
    ],
    ids=["plain", "RTL", "ANSI", "long"],
)
async def test_a_question_shows_what_would_run(tmp_path: Path, command: str, title: str | None, always: bool) -> None:
    user = User("reject_once")
    async with whole(tmp_path, scripted([{"call": "bash", "input": {"command": command}}]), user=user) as (_, session):
        await events_of(session)
    (question,) = user.asked
    assert question.title == title or (title is None and question.title.endswith("(100005 characters in all)"))
    assert any(option.kind == "allow_always" for option in question.options) == always


async def test_always_says_what_it_covers_and_for_how_long(tmp_path: Path) -> None:
    user = User("reject_once")
    steps = [{"call": "bash", "input": {"command": "make test"}}]
    async with whole(tmp_path, scripted(steps), user=user) as (_, session):
        await events_of(session)
    assert [option.name for option in user.asked[0].options] == [
        "Allow once",
        "Always allow `make test …` for this session",
        "Reject",
        "Always reject `make test …` for this session",
    ]


async def test_a_mode_that_is_changed_is_the_mode(tmp_path: Path) -> None:
    user = User("reject_once")
    async with whole(tmp_path, scripted([WRITE]), user=user) as (_, session):
        await events_of(session)
        await session.set_mode("full-access")
        await events_of(session)
    assert len(user.asked) == 1
    assert (tmp_path / "a.txt").read_text() == "new"


async def test_always_survives_a_restart_and_can_be_revoked(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store")
    folder = tmp_path / "work"
    folder.mkdir()
    user = User("allow_always")
    model = scripted([{"call": "bash", "input": {"command": "echo hi >> log"}}])
    async with whole(folder, model, user=user, store=store) as (_, session):
        await events_of(session)
        await events_of(session)
        session_id = session.id
    async with whole(folder, model, user=user, store=store) as (client, _):
        session = await client.load_session(session_id, str(folder))
        await events_of(session)
        assert len(user.asked) == 1
        assert "allow `bash` echo hi >> log" in text(await events_of(session, "/permissions"))
        await events_of(session, "/permissions revoke 1")
    async with whole(folder, model, user=user, store=store) as (client, _):
        session = await client.load_session(session_id, str(folder))
        await events_of(session)
        assert len(user.asked) == 2
    await store.close()


@pytest.mark.requirement("C10")
async def test_a_folder_that_is_not_named_again_is_not_read_any_more(tmp_path: Path) -> None:
    """A session that is resumed has the folders it is resumed with."""
    store = SqliteStore(tmp_path / "store")
    folder, more = tmp_path / "work", tmp_path / "more"
    folder.mkdir()
    more.mkdir()
    (more / "a").write_text("x")
    model = scripted([{"call": "read_file", "input": {"path": str(more / "a")}}])
    async with whole(folder, model, store=store) as (client, _):
        session = await client.new_session(str(folder), additional_directories=[str(more)])
        assert ends(await events_of(session)) == [("read_file", "completed")]
        await client.ask(ResumeSession(session.id, str(folder)))
        assert ends(await events_of(session)) == [("read_file", "failed")]
    await store.close()


async def test_plan_with_nothing_to_plan_says_so_and_forgets_nothing(tmp_path: Path) -> None:
    async with whole(tmp_path, scripted([{"say": "one"}])) as (_, session):
        await events_of(session)
        assert text(await events_of(session, "/plan")) == "Nothing to plan was named. Write `/plan TASK`.\n"
        assert "4 items" in text(await events_of(session, "/context"))


async def test_context_says_what_the_window_is_full_of(tmp_path: Path) -> None:
    async with whole(tmp_path, scripted([{"say": "word " * 400}], window=100_000)) as (_, session):
        await events_of(session, "word " * 40)
        first, _, *lines = text(await events_of(session, "/context")).splitlines()
    assert re.fullmatch(r"The model sees 4 items, about [\d,]+ tokens of 100,000 \(\d+ %\)\.", first)
    assert [line.split(": ")[1] for line in lines] == [
        "instructions and tools",
        "environment, notes and skills",
        "what you have said, with attached files",
        "answers and tool calls",
    ]
    assert lines[-2:] == ["- about 50: what you have said, with attached files", "- about 500: answers and tool calls"]


async def test_readers_of_one_response_run_together_and_writers_in_order(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    read, write = {"call": "read_file", "input": {"path": "a"}}, {"call": "bash", "input": {"command": "cat a"}}
    reads = [{"call": "read_file", "input": {"path": "a", "start_line": 1, "end_line": n}} for n in (1, 2, 3)]
    async with whole(tmp_path, scripted([*reads, write, read]), mode="full-access") as (_, session):
        events = await events_of(session)
    states = [e.status for e in events if isinstance(e, ToolCallUpdate) and isinstance(e.status, str)]
    assert states[: states.index("completed")].count("in_progress") == 3
    assert [name for name, _ in ends(events)] == ["read_file", "read_file", "read_file", "bash", "read_file"]


async def test_the_same_call_three_times_in_a_row_is_stopped_with_a_notice(tmp_path: Path) -> None:
    call, word = {"call": "bash", "input": {"command": "echo x >> log"}}, {"say": "again"}
    async with whole(tmp_path, scripted([call, word] * 4), mode="full-access") as (_, session):
        events = await events_of(session)
    assert (tmp_path / "log").read_text() == "x\nx\n"
    notices = [event.title for event in events if isinstance(event, Notice)]
    assert notices == ["bash was called with the same input 3 times in a row, and was stopped"] * 2


async def test_an_unknown_tool_is_a_failed_call_and_the_model_goes_on(tmp_path: Path) -> None:
    async with whole(tmp_path, scripted([{"call": "fly"}, {"say": "Pity."}])) as (_, session):
        events = await events_of(session)
    assert (ends(events), text(events)) == ([("fly", "failed")], "Pity.")


async def test_a_helper_works_in_its_own_context_and_reports(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store")
    helper = {"turns": [{"steps": [{"call": "read_file", "input": {"path": "a"}}, {"say": "It says x."}]}]}
    steps = [{"call": "agent", "input": {"prompt": "Read a", "description": "Look", "name": "scout"}}, {"say": "OK"}]
    (tmp_path / "a").write_text("x")
    async with whole(tmp_path, scripted(steps, agents={"scout": helper}), store=store) as (_, session):
        events = await events_of(session)
        entries = [record.entry async for records in store.read(session.id) for record in records]
    assert ends(events) == [("read_file", "completed"), ("agent", "completed")]
    titles = [e.title for e in events if isinstance(e, ToolCallUpdate) and isinstance(e.title, str)]
    assert titles == ["Look", "scout: Read a"]
    assert [e.content for e in events if isinstance(e, ToolCallContentChunk)] != []
    match conversation(read(entries)):
        case [
            ContextUserMessage(),
            ContextAssistantMessage(),
            ContextToolResult(tool="agent", text="It says x."),
            ContextAssistantMessage(text="OK"),
        ]:
            pass
        case other:
            pytest.fail(f"{other}")
    await store.close()


async def test_a_plan_is_shown(tmp_path: Path) -> None:
    entries = [{"content": "Look", "status": "completed", "priority": "high"}, {"content": "Do"}]
    async with whole(tmp_path, scripted([{"call": "update_plan", "input": {"entries": entries}}])) as (_, session):
        events = await events_of(session)
    (plan,) = [event.plan for event in events if isinstance(event, PlanUpdate)]
    assert isinstance(plan, PlanItems)
    assert [(step.content, step.status) for step in plan.entries] == [("Look", "completed"), ("Do", "pending")]
