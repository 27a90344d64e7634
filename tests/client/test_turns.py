"""Turns as a client reads them: every event in order, one end, and the conversation free after it."""

import asyncio
import gc
from typing import Any

import pytest

from dragoman.client.conversation import Answer, Turn
from dragoman.errors import AuthRequired, LinkClosed, RequestFailed, UsageError
from dragoman.vocabulary.events import AgentMessageChunk, AnyEvent, Idle, OptionsChanged
from tests.client.raw_agent import connected, new_session
from tests.support.messages import Message
from tests.support.versions import both_versions
from tests.support.waiting import settled, until

pytestmark = pytest.mark.anyio


def said(events: list[AnyEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, AgentMessageChunk)]


async def read(turn: Turn) -> list[AnyEvent]:
    return [event async for event in turn]


async def read_until_it_raises(turn: Turn) -> tuple[list[AnyEvent], Exception | None]:
    events: list[AnyEvent] = []
    try:
        async for event in turn:
            events.append(event)
    except Exception as error:
        return events, error
    return events, None


@pytest.mark.requirement("B16")
@both_versions
async def test_every_event_is_read_before_the_turn_is_over(version: int) -> None:
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("hi")
        number = await agent.accept()
        agent.tell(*map(str, range(1000)))
        agent.finish(number)
        events = await read(turn)
        assert said(events) == [str(n) for n in range(1000)]
        assert events[-1] == turn.end == Idle(stop_reason="end_turn")
        assert (turn.stop_reason, session.is_running) == ("end_turn", False)


@both_versions
async def test_a_prompt_is_sent_before_its_turn_is_read(version: int) -> None:
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("hi")
        number = await agent.accept()
        agent.tell("early")
        agent.finish(number)
        await until(lambda: turn.stop_reason != "")
        assert not session.is_running
        assert said(await read(turn)) == ["early"]
        with pytest.raises(StopAsyncIteration):
            await anext(turn)


@both_versions
async def test_a_whole_answer_is_text_and_how_it_ended(version: int) -> None:
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        asking = asyncio.ensure_future(session.ask("hi"))
        number = await agent.accept()
        agent.tell("hello ", "there")
        agent.finish(number, "max_tokens")
        assert await asking == Answer("hello there", "max_tokens", None)


async def test_a_message_that_is_sent_whole_is_part_of_the_answer_and_replaces_its_chunks() -> None:
    async with connected(2) as (client, agent):
        session = await new_session(client, agent)
        asking = asyncio.ensure_future(session.ask("hi"))
        number = await agent.accept()
        agent.tell("a draft")
        for message_id, text in (("m", "hello "), ("n", "there")):
            whole = {"sessionUpdate": "agent_message", "messageId": message_id}
            update = {**whole, "content": [{"type": "text", "text": text}]}
            agent.say({"method": "session/update", "params": {"sessionId": "s", "update": update}})
        agent.finish(number)
        assert await asking == Answer("hello there", "end_turn", None)


@both_versions
async def test_leaving_the_loop_leaves_the_turn_running_and_it_can_be_read_on(version: int) -> None:
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("hi")
        number = await agent.accept()
        agent.tell("one", "two")
        async for event in turn:
            if isinstance(event, AgentMessageChunk):
                break
        with pytest.raises(UsageError, match=r"read it to its end, or `await session\.cancel\(\)` first"):
            session.prompt("another")
        agent.tell("three")
        agent.finish(number)
        assert said(await read(turn)) == ["two", "three"]
        session.prompt("another")
        await agent.accept()


@both_versions
async def test_a_turn_that_the_caller_has_dropped_goes_to_on_event_and_frees_the_session(version: int) -> None:
    outside: list[AnyEvent] = []
    async with connected(version, on_event=lambda _, event: outside.append(event)) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("hi")
        number = await agent.accept()
        async for _ in turn:
            break
        del turn
        gc.collect()
        agent.tell("to nobody")
        await until(lambda: said(outside) == ["to nobody"])
        with pytest.raises(UsageError, match="a turn is still running"):
            session.prompt("another")
        agent.finish(number)
        await until(lambda: not session.is_running)
        assert outside[-1] == Idle(stop_reason="end_turn")


@both_versions
async def test_a_reader_that_is_cancelled_can_come_back(version: int) -> None:
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("hi")
        for _ in range(3):
            reading = asyncio.ensure_future(read(turn))
            await settled()
            reading.cancel()
            await asyncio.wait([reading])
        number = await agent.accept()
        agent.tell("all of it")
        agent.finish(number)
        assert "all of it" in said(await read(turn))


@both_versions
async def test_repr_shows_states_and_counts(version: int) -> None:
    async with connected(version) as (client, agent):
        assert repr(client) == "<Client over <AgentConnection ready sessions=0 turns=0 unread=0>>"
        session = await new_session(client, agent)
        assert repr(session) == "<Conversation s idle options=0>"
        turn = session.prompt("private")
        number = await agent.accept()
        agent.tell("said")
        await until(lambda: "queued=0" not in repr(turn))
        assert repr(turn).startswith("<Turn sent queued=")
        assert repr(session) == "<Conversation s running options=0>"
        assert repr(client).startswith("<Client over <AgentConnection busy sessions=1 turns=1 unread=")
        agent.finish(number)
        await turn.read()
        assert repr(turn) == "<Turn ended queued=0 stop_reason='end_turn'>"


@both_versions
async def test_a_turn_has_one_reader(version: int) -> None:
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("hi")
        await agent.accept()
        await settled()
        turn.ready()
        first = asyncio.ensure_future(read(turn))
        await settled()
        with pytest.raises(UsageError, match="one reader"):
            await anext(turn)
        first.cancel()


@both_versions
async def test_a_cancelled_turn_is_read_to_its_end_and_the_agent_is_told_once(version: int) -> None:
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("hi")
        number = await agent.accept()
        for _ in range(3):
            await turn.cancel()
        await session.cancel()
        assert (await agent.request("session/cancel"))["params"] == {"sessionId": "s"}
        agent.tell("last words")
        agent.finish(number, "cancelled")
        assert (said(await read(turn)), turn.stop_reason) == (["last words"], "cancelled")
        await turn.cancel()
        await settled()
        assert sum(m.get("method") == "session/cancel" for m in agent.heard) == 1


@both_versions
async def test_after_a_cancel_the_next_prompt_waits_for_the_end_of_the_cancelled_turn(version: int) -> None:
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        first = session.prompt("long")
        number = await agent.accept()
        await session.cancel()
        second = session.prompt("short")
        await settled()
        assert sum(m.get("method") == "session/prompt" for m in agent.heard) == 1
        agent.tell("end of the first")
        agent.finish(number, "cancelled")
        again = await agent.accept()
        agent.tell("the second")
        agent.finish(again)
        assert said(await read(second)) == ["the second"]
        assert said(await read(first)) == ["end of the first"]


@both_versions
async def test_a_prompt_cancelled_while_it_waits_leaves_the_next_one_waiting_for_the_same_turn(version: int) -> None:
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        first = session.prompt("long")
        number = await agent.accept()
        await session.cancel()
        second = session.prompt("never sent")
        await settled()
        await second.cancel()
        assert (await second.read()).stop_reason == "cancelled"
        third = session.prompt("short")
        await settled()
        assert sum(m.get("method") == "session/prompt" for m in agent.heard) == 1
        agent.finish(number, "cancelled")
        again = await agent.accept()
        agent.tell("the third")
        agent.finish(again)
        assert (said(await read(third)), third.stop_reason) == (["the third"], "end_turn")
        assert (await first.read()).stop_reason == "cancelled"


@both_versions
async def test_a_wait_for_a_whole_answer_that_is_cancelled_cancels_the_turn(version: int) -> None:
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        asking = asyncio.ensure_future(session.ask("hi"))
        number = await agent.accept()
        await settled()
        asking.cancel()
        await agent.request("session/cancel")
        agent.finish(number, "cancelled")
        await until(lambda: not session.is_running)


@both_versions
async def test_a_turn_cancelled_before_it_was_sent_never_is(version: int) -> None:
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("never")
        await turn.cancel()
        assert [type(event) for event in await read(turn)][-1] is Idle
        assert turn.stop_reason == "cancelled"
        session.prompt("sent")
        sent = await agent.request("session/prompt")
        assert sent["params"]["prompt"][0]["text"] == "sent"
        assert "session/cancel" not in {m.get("method") for m in agent.heard}


@both_versions
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": -32600, "message": "The session is busy"}, RequestFailed),
        ({"code": -32000, "message": "Log in first"}, AuthRequired),
    ],
)
async def test_a_refused_prompt_raises_from_the_loop_and_frees_the_session(
    version: int, error: Message, kind: type[RequestFailed]
) -> None:
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("hi")
        agent.say({"id": (await agent.request("session/prompt"))["id"], "error": error})
        with pytest.raises(kind) as caught:
            await read(turn)
        assert (caught.value.code, caught.value.message) == (error["code"], error["message"])
        with pytest.raises(kind):
            await anext(turn)
        session.prompt("again")
        await agent.accept()


@both_versions
async def test_a_prompt_that_the_agent_cancels_is_a_cancelled_turn(version: int) -> None:
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("hi")
        error = {"code": -32800, "message": "Request cancelled"}
        agent.say({"id": (await agent.request("session/prompt"))["id"], "error": error})
        await read(turn)
        assert turn.stop_reason == "cancelled"


async def test_a_turn_that_ends_in_an_error_raises_after_everything_that_was_said() -> None:
    async with connected(2) as (client, agent):
        session = await new_session(client, agent)
        for error, expected in (({"code": -5, "message": "no"}, (-5, "no")), (None, (-32603,))):
            turn = session.prompt("hi")
            await agent.accept()
            agent.tell("so far")
            end = {"state": "idle", "stopReason": "error"} | ({"error": error} if error else {})
            agent.say(agent.update(end))
            events, raised = await read_until_it_raises(turn)
            assert said(events) == ["so far"]
            assert isinstance(raised, RequestFailed)
            assert (raised.code, raised.message)[: len(expected)] == expected


@both_versions
@pytest.mark.parametrize("how", ["agent leaves", "client closes"])
async def test_when_the_connection_ends_what_was_heard_is_read_and_then_it_is_raised(version: int, how: str) -> None:
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("hi")
        await agent.accept()
        agent.tell("last", "very last")
        await settled()
        if how == "agent leaves":
            await agent.leave()
        else:
            await client.close()
        events, raised = await read_until_it_raises(turn)
        assert (said(events), type(raised)) == (["last", "very last"], LinkClosed)
        assert not session.is_running
        later = session.prompt("again")
        with pytest.raises(LinkClosed):
            await read(later)


@both_versions
async def test_closing_a_session_ends_a_turn_that_the_agent_left_open(version: int) -> None:
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("hi")
        await agent.accept()
        closing = asyncio.ensure_future(session.close())
        agent.say({"id": (await agent.request("session/close"))["id"], "result": {}})
        await closing
        with pytest.raises(LinkClosed, match="the session was closed"):
            await read(turn)


async def test_two_sessions_do_not_hear_each_other() -> None:
    async with connected(2) as (client, agent):
        one, two = await new_session(client, agent, "one"), await new_session(client, agent, "two")
        first, second = one.prompt("a"), two.prompt("b")
        agent.tell("1", session_id="one")
        agent.tell("2", session_id="two")
        for session_id in ("one", "two"):
            agent.finish(None, session_id=session_id)
        assert (said(await read(first)), said(await read(second))) == (["1"], ["2"])


OPTION = {"id": "mode", "name": "Mode", "type": "select", "options": [{"value": "a", "name": "A"}], "category": "mode"}


def options(value: str, version: int) -> list[Message]:
    return [{**OPTION, "configId": "mode", "currentValue": value, "options": [{"value": value, "name": value}]}]


@both_versions
async def test_an_option_told_after_the_answer_is_newer_than_the_answer(version: int) -> None:
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        setting = asyncio.ensure_future(session.set_option("mode", "a"))
        number = (await agent.request("session/set_config_option"))["id"]
        update = {"sessionUpdate": "config_option_update", "configOptions": options("newer", version)}
        agent.say(
            {"id": number, "result": {"configOptions": options("older", version)}},
            {"method": "session/update", "params": {"sessionId": "s", "update": update}},
        )
        await setting
        await settled()
        assert [option.current_value for option in session.options] == ["newer"]  # type: ignore[union-attr]


async def test_what_is_told_outside_of_turns_is_told_to_the_callback_and_its_failure_harms_nothing() -> None:
    told: list[Any] = []

    def on_event(conversation: Any, event: AnyEvent) -> None:
        told.append((conversation.id, type(event)))
        raise ValueError("a bug of the caller")

    bugs: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: bugs.append(context["exception"]))
    async with connected(2, on_event=on_event) as (client, agent):
        session = await new_session(client, agent)
        update = {"sessionUpdate": "config_option_update", "configOptions": options("x", 2)}
        agent.say({"method": "session/update", "params": {"sessionId": "s", "update": update}})
        agent.tell("outside")
        await until(lambda: len(told) == 2)
        assert told == [("s", OptionsChanged), ("s", AgentMessageChunk)]
        assert [option.current_value for option in session.options] == ["x"]  # type: ignore[union-attr]
        assert [type(bug) for bug in bugs] == [ValueError, ValueError]
