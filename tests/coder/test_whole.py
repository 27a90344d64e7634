"""The coding agent as a user has it: prompts, questions, files, commands; in memory, in both versions."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman.client.conversation import Conversation
from dragoman.coder.context import ContextAssistantMessage, ContextToolResult, ContextUserMessage, read
from dragoman.errors import RequestFailed
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.content import Content, Image, Resource, ResourceLink, Text, TextResource
from dragoman.vocabulary.events import (
    AgentMessageChunk,
    AnyEvent,
    CompactionUpdate,
    Idle,
    Notice,
    OptionsChanged,
    PlanUpdate,
    TerminalUpdate,
    ToolCallContentChunk,
    ToolCallUpdate,
    UserMessage,
)
from dragoman.vocabulary.options import PlanItems
from dragoman.vocabulary.requests import (
    CancelTerminal,
    GetSessionStatus,
    McpStdio,
    PromptAccepted,
    PromptRequest,
    ResumeSession,
)
from dragoman.vocabulary.tools import Cancellable, ExitStatus
from tests.support.mcp_servers import raw
from tests.support.needs import need
from tests.support.whole_agent import User, ends, events_of, scripted, whole

WRITE = {"call": "write_file", "input": {"path": "a.txt", "content": "new"}}


def text(events: Any) -> str:
    return "".join(event.text for event in events if isinstance(event, AgentMessageChunk))


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


async def test_looking_needs_no_question_where_writing_needs_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    user = User("reject_once")
    commands = ["cat a", "ls | wc -l", "cat /etc/passwd", "cat a > b"]
    steps = [{"call": "bash", "input": {"command": command}} for command in commands]
    async with whole(tmp_path, scripted(steps), user=user, mode="workspace-write") as (_, session):
        events = await events_of(session)
    assert [status for _, status in ends(events)] == ["completed", "completed", "failed", "failed"]
    assert [question.title for question in user.asked] == ["cat /etc/passwd", "cat a > b"]


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
        assert text(await events_of(session, "/plan")) == "What is there to plan? `/plan WHAT`\n"
        assert "2 items" in text(await events_of(session, "/context"))


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


async def test_a_tool_nobody_has_is_a_failed_call_and_the_model_goes_on(tmp_path: Path) -> None:
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
    match read(entries):
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


# -- what the model sees -------------------------------------------------------------------------------------------


@pytest.mark.requirement("J8")
async def test_links_inside_the_roots_are_read_and_others_are_not(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store")
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "in.txt").write_text("inside")
    (tmp_path / "out.txt").write_text("canary")
    prompt: list[Content] = [
        Text("look: "),
        ResourceLink("in", f"file://{folder}/in.txt"),
        ResourceLink("out", f"file://{tmp_path}/out.txt"),
        ResourceLink("passwd", "file:///etc/passwd"),
        Resource(TextResource("embedded", "file:///elsewhere")),
        Image("iVBORw0KGgo=", "image/png"),
    ]
    async with whole(folder, scripted([{"say": "ok"}]), store=store) as (_, session):
        async for _event in session.prompt(prompt):
            pass
        entries = [record.entry async for records in store.read(session.id) for record in records]
    (said, _) = read(entries)
    assert isinstance(said, ContextUserMessage)
    words = [block.text if isinstance(block, Text) else type(block).__name__ for block in said.content]
    assert "inside" in words[1]
    assert words[2] == f"[out](file://{tmp_path}/out.txt)"
    assert words[3] == "[passwd](file:///etc/passwd)"
    assert "embedded" in words[4]
    assert words[5] == "Image"
    await store.close()


async def test_a_full_window_is_summed_up_and_the_turn_goes_on(tmp_path: Path) -> None:
    first = [{"say": "x" * 200}, {"usage": {"input": 790, "output": 50}}]
    async with whole(tmp_path, scripted(first, [{"say": "still here"}], window=1000)) as (_, session):
        await events_of(session)
        events = await events_of(session)
        assert text(events) == "still here"
        stages = [event.status for event in events if isinstance(event, CompactionUpdate)]
        assert stages == ["in_progress", "completed"]
        assert "about" in text(await events_of(session, "/context"))


async def test_old_results_are_trimmed_before_anything_is_summed_up(tmp_path: Path) -> None:
    (tmp_path / "big").write_text("y" * 3000)
    first = [
        {"call": "read_file", "input": {"path": "big"}},
        {"say": "I see."},
        {"usage": {"input": 800, "output": 50}},
    ]
    store = SqliteStore(tmp_path / "store")
    async with whole(tmp_path, scripted(first, [{"say": "on"}], window=1000), store=store) as (_, session):
        await events_of(session)
        events = await events_of(session)
        entries = [record.entry async for records in store.read(session.id) for record in records]
    assert not any(isinstance(event, CompactionUpdate) for event in events)
    assert [item.text for item in read(entries) if isinstance(item, ContextToolResult)] == [
        "[trimmed: 3000 characters]"
    ]
    await store.close()


# -- commands --------------------------------------------------------------------------------------------------------


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
    expected = "help compact context permissions mode model mcp plan undo clear greet"
    assert names == expected.split()
    (said, _) = read(entries)
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


# -- cancelling ----------------------------------------------------------------------------------------------------


PHASES: dict[str, tuple[list[dict[str, Any]], type]] = {
    "model": ([{"say": "a"}, {"say": "b", "delay_ms": 60_000}], AgentMessageChunk),
    "tool": ([{"call": "bash", "input": {"command": "echo up; sleep 987"}}], ToolCallUpdate),
    "retry": ([{"fail": "rate_limit"}], Notice),
}


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("protocol", [1, 2])
@pytest.mark.parametrize("phase", PHASES)
async def test_a_turn_can_be_cancelled_in_every_phase_and_the_next_one_works(
    tmp_path: Path, phase: str, protocol: int
) -> None:
    steps, sign = PHASES[phase]
    async with whole(tmp_path, scripted(steps, [{"say": "back"}]), mode="full-access", protocol=protocol) as (
        _,
        session,
    ):
        turn = session.prompt("go")
        events = []
        async for event in turn:
            events.append(event)
            if isinstance(event, sign):
                await turn.cancel()
        assert turn.stop_reason == ("end_turn" if phase == "retry" and turn.stop_reason == "end_turn" else "cancelled")
        assert text(await events_of(session)) == "back"


@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_question_that_is_cancelled_is_a_no(tmp_path: Path, protocol: int) -> None:
    asked = asyncio.Event()

    async def permission(request: Any) -> None:
        asked.set()
        await asyncio.Event().wait()

    class Never(User):
        async def permission(self, request: Any) -> None:
            await permission(request)

    async with whole(tmp_path, scripted([WRITE]), user=Never(), protocol=protocol) as (_, session):
        turn = session.prompt("go")
        following = asyncio.ensure_future(_all(turn))
        await asked.wait()
        await turn.cancel()
        events = await following
    assert turn.stop_reason == "cancelled"
    assert isinstance(events[-1], Idle)
    assert not (tmp_path / "a.txt").exists()


async def _all(turn: Any) -> list[Any]:
    return [event async for event in turn]


# -- while it runs ---------------------------------------------------------------------------------------------------


async def test_a_word_while_it_works_is_heard_before_the_next_model_call(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store")
    steps = [
        {"say": "a"},
        {"call": "bash", "input": {"command": "until test -e go; do sleep 0.01; done"}},
        {"say": "b"},
    ]
    async with whole(tmp_path, scripted(steps), mode="full-access", store=store) as (client, session):
        turn = session.prompt("go")
        events = []
        steering: asyncio.Future[Any] | None = None
        async for event in turn:
            events.append(event)
            if isinstance(event, ToolCallUpdate) and event.status == "in_progress":
                steering = asyncio.ensure_future(client.ask(PromptRequest(session.id, [Text("and this")])))
                await client.ask(GetSessionStatus(session.id))  # behind it: the prompt has been heard
                assert not steering.done()
                (tmp_path / "go").touch()
        assert steering is not None
        accepted = await steering
        entries = [record.entry async for records in store.read(session.id) for record in records]
    inserted = [event.message_id for event in events if isinstance(event, UserMessage)]
    assert inserted[1:] == [accepted.message_id]
    match read(entries):
        case [
            ContextUserMessage(),
            ContextAssistantMessage(),
            ContextToolResult(),
            ContextUserMessage(content=[Text(text="and this")]),
            ContextAssistantMessage(text="b"),
        ]:
            pass
        case other:
            pytest.fail(f"{other}")
    await store.close()


async def test_a_word_at_the_end_of_a_turn_makes_it_go_on(tmp_path: Path) -> None:
    async with whole(tmp_path, scripted([{"say": "a"}, {"say": "b", "delay_ms": 100}])) as (client, session):
        turn = session.prompt("go")
        ended = 0
        async for event in turn:
            if isinstance(event, AgentMessageChunk) and event.text == "a":
                answer = asyncio.ensure_future(client.ask(PromptRequest(session.id, [Text("more")])))
            ended += isinstance(event, Idle)
        assert ended == 1
        assert isinstance(await answer, PromptAccepted)


@pytest.mark.parametrize("how", ["cancel", "close"])
async def test_a_word_that_nobody_will_hear_is_refused(tmp_path: Path, how: str) -> None:
    async with whole(tmp_path, scripted([{"say": "a"}, {"say": "b", "delay_ms": 60_000}])) as (client, session):
        turn = session.prompt("go")
        async for event in turn:
            if isinstance(event, AgentMessageChunk):
                answer = asyncio.ensure_future(client.ask(PromptRequest(session.id, [Text("more")])))
                await client.list_sessions()
                await (turn.cancel() if how == "cancel" else session.close())
        with pytest.raises(RequestFailed) as refused:
            await answer
    assert refused.value.code == -32800


async def test_one_call_can_be_stopped_and_the_turn_goes_on(tmp_path: Path) -> None:
    steps = [{"call": "bash", "input": {"command": "sleep 983"}}, {"say": "On."}]
    async with whole(tmp_path, scripted(steps), mode="full-access") as (_, session):
        events = []
        async for event in session.prompt("go"):
            events.append(event)
            if isinstance(event, ToolCallUpdate) and event.status == "in_progress":
                assert isinstance(event.capabilities, Cancellable)
                await session.cancel_tool_call(event.tool_call_id)
        assert (ends(events), text(events)) == ([("bash", "cancelled")], "On.")
        last = [e for e in events if isinstance(e, ToolCallUpdate) and e.status == "cancelled"][-1]
        assert last.capabilities is None
        with pytest.raises(RequestFailed) as refused:
            await session.cancel_tool_call(last.tool_call_id)
        assert refused.value.code == -32602


async def test_one_terminal_can_be_stopped_and_its_call_ends_by_itself(tmp_path: Path) -> None:
    steps = [{"call": "bash", "input": {"command": "echo up; sleep 982"}}, {"say": "On."}]
    async with whole(tmp_path, scripted(steps), mode="full-access") as (client, session):
        events = []
        async for event in session.prompt("go"):
            events.append(event)
            if isinstance(event, TerminalUpdate) and isinstance(event.capabilities, Cancellable):
                await client.ask(CancelTerminal(session.id, event.terminal_id))
    assert (ends(events), text(events)) == ([("bash", "failed")], "On.")
    (status,) = [
        e.exit_status for e in events if isinstance(e, TerminalUpdate) and isinstance(e.exit_status, ExitStatus)
    ]
    assert status.signal == "SIGKILL"


# -- the sandbox -----------------------------------------------------------------------------------------------------


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
async def test_a_command_of_workspace_write_writes_nowhere_else_and_reaches_nobody(tmp_path: Path) -> None:
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


# -- MCP servers -----------------------------------------------------------------------------------------------------


async def until_server(state: str, session: Conversation) -> list[AnyEvent]:
    """Ask for the servers until one is in such a state; everything told meanwhile.

    The first answer waits for those that start, but for no server that is lost and comes again.
    """
    heard: list[AnyEvent] = []
    async with asyncio.timeout(30):
        while True:
            events = await events_of(session, "/mcp")
            heard += events
            if state in text(events):
                return heard
            await asyncio.sleep(0.05)


async def test_a_server_of_the_client_is_a_tool_that_asks(tmp_path: Path) -> None:
    user = User("allow_always")
    server = raw("good")
    model = scripted([{"call": "mcp__raw__act", "input": {}}])
    async with whole(tmp_path, model, user=user, mcp_servers=[server]) as (_, session):
        events = await events_of(session)  # the first prompt waits for the server
    assert ends(events) == [("mcp__raw__act", "completed")]
    assert len(user.asked) == 1


async def test_a_server_that_is_dead_is_told_of_once_and_the_session_works(tmp_path: Path) -> None:
    server = McpStdio("gone", "/nonexistent/program", [])
    outside: list[AnyEvent] = []
    model = scripted([{"say": "fine"}])
    hear: dict[str, Any] = {"on_event": lambda conversation, event: outside.append(event)}
    async with whole(tmp_path, model, mcp_servers=[server], **hear) as (_, session):
        events = await events_of(session)
        assert text(events) == "fine"
        events += await until_server("gone: failed", session)
        events += await events_of(session)
    notices = [event for event in [*events, *outside] if isinstance(event, Notice)]
    assert len(notices) == 1, (text(events), outside)
