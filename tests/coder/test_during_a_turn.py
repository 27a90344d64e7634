"""While a turn runs: cancelling, words of the user, stopping one call or one terminal."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.context import ContextAssistantMessage, ContextToolResult, ContextUserMessage, read
from dragoman.errors import RequestFailed
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import (
    AgentMessageChunk,
    Idle,
    Notice,
    TerminalUpdate,
    ToolCallUpdate,
    UserMessage,
)
from dragoman.vocabulary.requests import (
    CancelTerminal,
    GetSessionStatus,
    PromptAccepted,
    PromptRequest,
    Steered,
    SteerTurn,
)
from dragoman.vocabulary.tools import Cancellable, ExitStatus
from tests.support.conversation import conversation
from tests.support.whole_agent import User, ends, events_of, scripted, text, whole

WRITE = {"call": "write_file", "input": {"path": "a.txt", "content": "new"}}
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
    match conversation(read(entries)):
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
async def test_a_prompt_that_no_turn_will_accept_is_refused(tmp_path: Path, how: str) -> None:
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


async def test_a_client_of_version_1_steers_a_running_turn(tmp_path: Path) -> None:
    """It is answered when the words have their place, and not sent them again: it shows them itself."""
    steps = [
        {"call": "bash", "input": {"command": "until test -e go; do sleep 0.01; done"}},
        {"say": "b"},
    ]
    store = SqliteStore(tmp_path / "store")
    async with whole(tmp_path, scripted(steps), mode="full-access", store=store, protocol=1) as (client, session):
        assert client.agent.capabilities.steering
        turn = session.prompt("go")
        events = []
        steering: asyncio.Future[Any] | None = None
        async for event in turn:
            events.append(event)
            if isinstance(event, ToolCallUpdate) and event.status == "in_progress":
                steering = asyncio.ensure_future(client.ask(SteerTurn(session.id, [Text("and this")])))
                await client.ask(GetSessionStatus(session.id))  # behind it: the words have been heard
                (tmp_path / "go").touch()
        assert steering is not None
        assert await steering == Steered("injected")
        assert turn.stop_reason == "end_turn"
        entries = [record.entry async for records in store.read(session.id) for record in records]
    assert [event.content for event in events if isinstance(event, UserMessage)] == [[Text("go")]]
    asked = [item for item in conversation(read(entries)) if isinstance(item, ContextUserMessage)]
    assert asked[-1].content == [Text("and this")]
