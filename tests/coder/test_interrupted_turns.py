"""A turn that stops anywhere leaves a context that every provider accepts, the same in this process and after a reload.

The model checks each request (`StrictModel`), and no request may need mending: the context has to be whole by itself.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.coder import loop
from dragoman.coder.context import (
    INTERRUPTED,
    Context,
    ContextAssistantMessage,
    ContextToolCall,
    ContextToolResult,
    ContextUserMessage,
    Item,
    read,
)
from dragoman.coder.model_calls import open_call, well_formed
from dragoman.coder.models.contract import ModelRequest, Piece, ToolSpec
from dragoman.coder.models.script import ScriptModel, parse
from dragoman.store.entries import Entry
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.content import Text, text_of
from dragoman.vocabulary.events import AgentMessageChunk, AgentThoughtChunk, AnyEvent, Notice, ToolCallUpdate
from dragoman.vocabulary.services import PermissionOption, RequestPermission
from tests.coder.strict_model import StrictModel, check_well_formed
from tests.support.conversation import conversation
from tests.support.whole_agent import User, events_of, whole

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def nothing_is_mended(caplog: pytest.LogCaptureFixture) -> Any:
    """No request of these tests needs mending."""
    caplog.set_level(logging.DEBUG, logger="dragoman.coder.model_calls")
    yield
    assert [record.message for record in caplog.records if "mended" in record.message] == []


READS = [{"call": "read_file", "input": {"path": f"{name}.txt"}} for name in "abc"]
BUSY = [{"say": "one "}, {"say": "two"}, *READS, {"think": "hm"}, {"say": "three"}, *READS[:1], {"say": "end"}]


async def items_in(store: SqliteStore, session_id: str) -> list[Item]:
    return conversation(read(await entries_in(store, session_id)))


async def entries_in(store: SqliteStore, session_id: str) -> list[Entry]:
    return [record.entry async for records in store.read(session_id) for record in records]


def words(items: Sequence[Item]) -> list[str]:
    """What each item says, in a word or two."""
    shown: list[str] = []
    for item in items:
        match item:
            case ContextUserMessage():
                shown.append(f"user: {text_of(item.content)}")
            case ContextAssistantMessage():
                shown.append(f"model: {item.text}" + "".join(f" +{call.tool}" for call in item.calls))
            case _:
                shown.append(f"result: {item.text.strip()}")
    return shown


@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_cancel_after_any_event_leaves_a_whole_context_live_and_reloaded(tmp_path: Path, protocol: int) -> None:
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(name)
    count = 0
    while True:
        count += 1
        model = StrictModel(BUSY, [{"say": "on"}])
        store = SqliteStore(tmp_path / f"store-{count}")
        seen = 0
        async with whole(tmp_path, model.make, store=store, protocol=protocol) as (_, session):
            turn = session.prompt("go")
            async for _ in turn:
                seen += 1
                if seen == count:
                    await turn.cancel()
            logged = await items_in(store, session.id)
            asked = len(model.asked)
            await events_of(session, "next")
            live = list(model.asked[asked].items)
        assert (words(live[:-1]), live[:-1]) == (words(logged), logged)
        loaded = StrictModel([{"say": "on"}])
        async with whole(tmp_path, loaded.make, store=store, protocol=protocol) as (client, _):
            await events_of(await client.resume_session(session.id, str(tmp_path)), "again")
        assert list(loaded.asked[-1].items)[: len(live)] == live
        await store.close()
        if seen < count:  # the turn has ended before the cancel
            break
    assert count > 10


@pytest.mark.parametrize("protocol", [1, 2])
async def test_text_before_a_cancel_stays_with_its_mark(tmp_path: Path, protocol: int) -> None:
    model = StrictModel([{"say": "I am "}, {"say": "never", "delay_ms": 60_000}], [{"say": "on"}])
    async with whole(tmp_path, model.make, protocol=protocol) as (_, session):
        turn = session.prompt("go")
        async for event in turn:
            if isinstance(event, AgentMessageChunk):
                await turn.cancel()
        await events_of(session, "next")
    assert words(model.asked[-1].items) == ["user: go", f"model: I am {INTERRUPTED}", "user: next"]


async def test_a_cancel_in_the_middle_of_a_thought_leaves_no_empty_message(tmp_path: Path) -> None:
    model = StrictModel([{"think": "hm"}, {"say": "never", "delay_ms": 60_000}], [{"say": "on"}])
    async with whole(tmp_path, model.make) as (_, session):
        turn = session.prompt("go")
        async for event in turn:
            if isinstance(event, AgentThoughtChunk):
                await turn.cancel()
        await events_of(session, "next")
    assert words(model.asked[-1].items) == ["user: go", "user: next"]


@pytest.mark.parametrize("protocol", [1, 2])
async def test_calls_that_are_done_keep_their_results_when_a_later_one_is_cancelled(
    tmp_path: Path, protocol: int
) -> None:
    (tmp_path / "a.txt").write_text("content of a")
    calls = [READS[0], {"call": "bash", "input": {"command": "sleep 1000"}}, READS[0]]
    model = StrictModel([{"say": "look"}, *calls], [{"say": "on"}])
    async with whole(tmp_path, model.make, mode="full-access", protocol=protocol) as (_, session):
        turn = session.prompt("go")
        async for event in turn:
            if isinstance(event, ToolCallUpdate) and event.name == "bash":
                await turn.cancel()
        await events_of(session, "next")
    assert words(model.asked[-1].items) == [
        "user: go",
        "model: look +read_file +bash +read_file",
        "result: 1\tcontent of a",
        f"result: {INTERRUPTED}",
        f"result: {INTERRUPTED}",
        "user: next",
    ]


@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_cancel_while_a_permission_is_asked_leaves_a_result(tmp_path: Path, protocol: int) -> None:
    asked = asyncio.Event()

    class Silent(User):
        async def permission(self, request: RequestPermission) -> PermissionOption | None:
            asked.set()
            await asyncio.Event().wait()
            return None

    model = StrictModel([{"call": "bash", "input": {"command": "touch x"}}], [{"say": "on"}])
    async with whole(tmp_path, model.make, user=Silent("reject_once"), protocol=protocol) as (_, session):
        turn = session.prompt("go")
        following = asyncio.ensure_future(turn.read())
        await asked.wait()
        await turn.cancel()
        await following
        await events_of(session, "next")
    assert words(model.asked[-1].items) == ["user: go", "model:  +bash", f"result: {INTERRUPTED}", "user: next"]


async def test_a_cancel_while_it_waits_to_try_again_keeps_what_was_said(tmp_path: Path) -> None:
    model = StrictModel([{"say": "so "}, {"fail": "network"}], [{"say": "on"}])
    model.retry_seconds = lambda attempt: 50.0  # type: ignore[method-assign]
    async with whole(tmp_path, model.make) as (_, session):
        turn = session.prompt("go")
        async for event in turn:
            if isinstance(event, Notice):
                await turn.cancel()
        await events_of(session, "next")
    assert words(model.asked[-1].items) == ["user: go", f"model: so {INTERRUPTED}", "user: next"]


@pytest.mark.parametrize("following", [READS[:1], [{"say": "whole"}], [{"say": "whole"}, *READS[:1]]])
async def test_a_broken_off_answer_is_not_shown_beside_the_whole_one(tmp_path: Path, following: list[Any]) -> None:
    (tmp_path / "a.txt").write_text("a")
    model = StrictModel([{"say": "half "}, {"fail": "network", "times": 1}, *following], [{"say": "on"}])
    model.retry_seconds = lambda attempt: 0.0  # type: ignore[method-assign]
    store = SqliteStore(tmp_path / "store")
    async with whole(tmp_path, model.make, store=store) as (_, session):
        assert "half " in [event.text for event in await events_of(session) if isinstance(event, AgentMessageChunk)]
        await events_of(session, "next")
        logged = await items_in(store, session.id)
    shown = words(model.asked[-1].items)
    assert "half" not in str(shown)
    assert ("whole" in str(shown)) == ({"say": "whole"} in following)
    assert words(logged)[: len(shown)] == shown
    await store.close()


async def test_a_cancel_in_the_second_try_keeps_the_words_of_that_try(tmp_path: Path) -> None:
    steps = [{"say": "half "}, {"fail": "network", "times": 1}, {"say": "anew "}, {"say": "x", "delay_ms": 60_000}]
    model = StrictModel(steps, [{"say": "on"}])
    model.retry_seconds = lambda attempt: 0.0  # type: ignore[method-assign]
    store = SqliteStore(tmp_path / "store")
    async with whole(tmp_path, model.make, store=store) as (_, session):
        turn = session.prompt("go")
        async for event in turn:
            if isinstance(event, AgentMessageChunk) and event.text == "anew ":
                before = await items_in(store, session.id)
                await turn.cancel()
        await events_of(session, "next")
    expected = ["user: go", f"model: anew {INTERRUPTED}", "user: next"]
    assert (words(model.asked[-1].items), words(before)) == (expected, expected[:2])
    await store.close()


async def test_a_model_error_after_some_words_keeps_them_and_drops_calls_that_never_ran(tmp_path: Path) -> None:
    model = StrictModel([{"say": "so "}, *READS[:1], {"fail": "auth"}, {"say": "x"}], [{"say": "on"}])
    store = SqliteStore(tmp_path / "store")
    async with whole(tmp_path, model.make, store=store) as (_, session):
        with pytest.raises(Exception, match="login"):
            await events_of(session)
        logged = await items_in(store, session.id)
        await events_of(session, "next")
    assert list(model.asked[-1].items)[:-1] == logged
    assert words(logged)[0] == "user: go"
    await store.close()


class Crashing:
    """Tools of which the second crashes."""

    def specs(self) -> list[ToolSpec]:
        return []

    async def run(self, calls: Sequence[ContextToolCall], finished: loop.Finished) -> None:
        await finished(ContextToolResult(calls[0].id, calls[0].tool, "done"))
        raise ZeroDivisionError


async def unnoted(note: object) -> None:
    """Kept nowhere."""


async def test_a_crash_of_a_tool_leaves_a_result_for_each_call() -> None:
    context = Context([], unnoted)
    model = StrictModel([{"call": "fly"}, {"call": "swim"}])
    model.begin_turn()
    with pytest.raises(ZeroDivisionError):
        async for _ in loop.turn(model, context, Crashing(), ContextUserMessage("m", [Text("go")])):
            pass
    assert words(context.items) == ["user: go", "model:  +fly +swim", "result: done", f"result: {INTERRUPTED}"]


# -- any script, closed at any event ---------------------------------------------------------------------------------


class Slow:
    """Tools that end in the opposite order, each after a turn of the loop."""

    def specs(self) -> list[ToolSpec]:
        return []

    async def run(self, calls: Sequence[ContextToolCall], finished: loop.Finished) -> None:
        for call in reversed(calls):
            await asyncio.sleep(0)
            await finished(ContextToolResult(call.id, call.tool, "done"))


class Paced(ScriptModel):
    """Gives the loop a turn before each piece, so that a cancel can come anywhere."""

    async def respond(self, inquiry: ModelRequest) -> AsyncGenerator[Piece, None]:
        check_well_formed(inquiry.items)
        async for piece in super().respond(inquiry):
            await asyncio.sleep(0)
            yield piece


STEP = st.sampled_from(
    [{"say": "a"}, {"think": "b"}, {"call": "x"}, {"usage": {"input": 1, "output": 1}}, {"fail": "network", "times": 1}]
)


@given(steps=st.lists(STEP, max_size=8), ticks=st.integers(0, 40))
@settings(deadline=None, max_examples=150)
async def test_any_turn_cancelled_at_any_moment_can_be_gone_on_with(steps: list[dict[str, Any]], ticks: int) -> None:
    notes: list[object] = []

    async def note(value: object) -> None:
        notes.append(value)
        await asyncio.sleep(0)

    context = Context([], note)
    model = Paced(parse({"turns": [{"steps": steps}, {"steps": [{"say": "on"}]}]}))
    model.retry_seconds = lambda attempt: 0.0  # type: ignore[method-assign]
    model.begin_turn()

    async def follow() -> None:
        async with aclosing(loop.turn(model, context, Slow(), ContextUserMessage("m1", [Text("go")]))) as events:
            async for _ in events:
                await asyncio.sleep(0)

    following = asyncio.ensure_future(follow())
    for _ in range(ticks):
        await asyncio.sleep(0)
    following.cancel()
    await asyncio.wait([following])
    assert well_formed(context.items)[1] == 0
    model.begin_turn()
    events: list[AnyEvent] = [
        e async for e in loop.turn(model, context, Slow(), ContextUserMessage("m2", [Text("next")]))
    ]
    assert AgentMessageChunk(Text("on")) in events


# -- the last line of defence ----------------------------------------------------------------------------------------

CALL = ContextAssistantMessage(calls=[ContextToolCall("c1", "read_file", {}), ContextToolCall("c2", "bash", {})])
ONE, TWO = ContextToolResult("c1", "read_file", "1"), ContextToolResult("c2", "bash", "2")
U = ContextUserMessage("m", [Text("hi")])
HOLES: dict[str, tuple[list[Item], list[Item], int]] = {
    "whole": ([U, CALL, ONE, TWO], [U, CALL, ONE, TWO], 0),
    "no result": (
        [U, CALL, U],
        [U, CALL, *[ContextToolResult(c.id, c.tool, INTERRUPTED, True) for c in CALL.calls], U],
        2,
    ),
    "one result": ([U, CALL, ONE], [U, CALL, ONE, ContextToolResult("c2", "bash", INTERRUPTED, True)], 1),
    "two results": ([U, CALL, ONE, ONE, TWO], [U, CALL, ONE, TWO], 1),
    "no call": ([U, ONE], [U], 1),
    "thoughts alone": ([U, ContextAssistantMessage(thought="hm"), U], [U, U], 0),
}


@pytest.mark.parametrize(("items", "sent", "mended"), HOLES.values(), ids=HOLES)
async def test_a_history_with_a_hole_is_mended_before_it_is_sent(
    items: list[Item], sent: list[Item], mended: int, caplog: pytest.LogCaptureFixture
) -> None:
    model = StrictModel([{"say": "on"}])
    model.begin_turn()
    async with aclosing(open_call(model, ModelRequest([*items, U]))) as pieces:
        assert [piece async for piece in pieces]
    assert model.asked[0].items == [*sent, U]
    lines = [record.message for record in caplog.records if "mended" in record.message]
    assert lines == ([f"mended the history of a model call in {mended} places"] if mended else [])
    caplog.clear()
