"""Prompts and words for a running turn, where the agent behind a bridge takes one prompt at a time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman.bridge import BridgedPrompts
from dragoman.bridge.prompt_queue import QUEUED_PROMPTS
from tests.support.bridge_peers import (
    EDITOR,
    Message,
    Peer,
    agent_hello,
    error,
    joined,
    note,
    prompt,
    request,
    result,
    state,
    text,
    update,
)
from tests.support.waiting import settled

to_old_agents = pytest.mark.parametrize("front", [1, 2])
USAGE = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}
TWICE = {"totalTokens": 6, "inputTokens": 2, "outputTokens": 4}


@asynccontextmanager
async def queueing(front: int, back: int = 1, **hello: Any) -> AsyncIterator[tuple[Peer, Peer, Message]]:
    """An editor, an agent, and what the editor is told in `initialize`; session `s` is open, the last id is 2."""
    async with joined(services=BridgedPrompts()) as (editor, agent):
        editor.say(request(1, "initialize", **EDITOR[front]))
        await agent.hear()
        agent.say(result(1, **agent_hello(back), **hello))
        told = (await editor.hear())["result"]
        editor.say(request(2, "session/new", cwd="/w", mcpServers=[]))
        await agent.hear()
        agent.say(result(2, sessionId="s"))
        await editor.hear()
        yield editor, agent, told


def steer(id: int, words: str = "also that", **fields: Any) -> Message:
    return request(id, "_session/steering", sessionId="s", prompt=[text(words)], **fields)


@pytest.mark.requirement("L7")
async def test_the_second_prompt_of_a_version_1_editor_waits_for_the_end_of_the_first_turn() -> None:
    async with queueing(1) as (editor, agent, _):
        editor.say(prompt(3, "one"), prompt(4, "two"))
        assert await agent.hear() == prompt(3, "one")
        agent.say(update("agent_message_chunk", content=text("first")), result(3, stopReason="end_turn"))
        assert [(await editor.hear()).get("id") for _ in range(2)] == [None, 3]
        assert await agent.hear() == prompt(4, "two")
        agent.say(update("agent_message_chunk", content=text("second")), result(4, stopReason="end_turn"))
        chunk, end = await editor.hear_many(2)
        assert chunk["params"]["update"]["content"] == text("second")
        assert end == result(4, stopReason="end_turn")


async def test_the_second_prompt_of_a_version_2_editor_is_accepted_when_its_turn_begins() -> None:
    async with queueing(2) as (editor, agent, _):
        editor.say(prompt(3, "one"), prompt(4, "two"))
        assert await agent.hear() == prompt(3, "one")
        heard = await editor.hear_many(3)
        assert [message.get("id") for message in heard] == [3, None, None]
        agent.say(result(3, stopReason="end_turn"))
        assert await editor.hear() == state("idle", stopReason="end_turn")
        assert await agent.hear() == prompt(4, "two")
        assert (await editor.hear())["id"] == 4
        agent.say(result(4, stopReason="end_turn"))
        assert (await editor.hear_many(3))[-1] == state("idle", stopReason="end_turn")


@to_old_agents
@pytest.mark.requirement("L7")
async def test_a_cancel_takes_the_prompts_that_wait_with_it(front: int) -> None:
    async with queueing(front) as (editor, agent, _):
        editor.say(prompt(3, "one"))
        await agent.hear()
        if front == 2:
            await editor.hear_many(3)
        editor.say(prompt(4, "two"), note("session/cancel", sessionId="s"))
        assert await agent.hear() == note("session/cancel", sessionId="s")
        agent.say(result(3, stopReason="cancelled"))
        heard = {str(message.get("id")): message for message in await editor.hear_many(2)}
        if front == 1:
            assert heard["4"] == result(4, stopReason="cancelled")
            assert heard["3"] == result(3, stopReason="cancelled")
        else:
            assert heard["4"]["error"]["code"] == -32800
            assert heard["None"] == state("idle", stopReason="cancelled")
        editor.say(prompt(5, "three"))
        assert await agent.hear() == prompt(4, "three")


@pytest.mark.requirement("L7")
async def test_a_prompt_whose_request_is_withdrawn_is_never_sent() -> None:
    async with queueing(1) as (editor, agent, _):
        editor.say(prompt(3, "one"))
        await agent.hear()
        editor.say(prompt(4, "two"), prompt(5, "three"), note("$/cancel_request", requestId=4))
        assert await editor.hear() == result(4, stopReason="cancelled")
        agent.say(result(3, stopReason="end_turn"))
        assert await editor.hear() == result(3, stopReason="end_turn")
        assert await agent.hear() == prompt(4, "three")
        agent.say(result(4, stopReason="end_turn"))
        assert await editor.hear() == result(5, stopReason="end_turn")


async def test_more_prompts_than_may_wait_are_refused_and_the_others_are_not_lost() -> None:
    async with queueing(1) as (editor, agent, _):
        editor.say(*(prompt(3 + number, str(number)) for number in range(QUEUED_PROMPTS + 2)))
        assert await agent.hear() == prompt(3, "0")
        refused = await editor.hear()
        assert (refused["id"], refused["error"]["code"]) == (4 + QUEUED_PROMPTS, -32600)
        for number in range(QUEUED_PROMPTS + 1):
            agent.say(result(3 + number, stopReason="end_turn"))
            assert await editor.hear() == result(3 + number, stopReason="end_turn")
            if number < QUEUED_PROMPTS:
                assert await agent.hear() == prompt(4 + number, str(number + 1))


@to_old_agents
@pytest.mark.requirement("L7")
async def test_an_agent_that_dies_fails_the_prompts_that_wait(front: int) -> None:
    async with queueing(front) as (editor, agent, _):
        editor.say(prompt(3, "one"), prompt(4, "two"))
        await agent.hear()
        await agent.leave()
        ends = [message for message in await editor.ended() if "error" in message]
        assert {message["id"]: message["error"]["code"] for message in ends}[4] == -32603


@to_old_agents
async def test_words_for_a_running_turn_reach_the_agent_at_its_end_and_the_editor_sees_one_turn(front: int) -> None:
    async with queueing(front) as (editor, agent, hello):
        assert hello["_meta"]["steering"] == {"supported": True}
        editor.say(prompt(3, "one"))
        await agent.hear()
        if front == 2:
            await editor.hear_many(3)
        editor.say(steer(4))
        await settled()
        agent.say(update("agent_message_chunk", content=text("first")), result(3, stopReason="end_turn", usage=USAGE))
        assert await agent.hear() == prompt(4, "also that")
        agent.say(update("agent_message_chunk", content=text("second")), result(4, stopReason="end_turn", usage=USAGE))
        heard = [await editor.hear()]
        while heard[-1] not in (
            result(3, stopReason="end_turn", usage=TWICE),
            state("idle", stopReason="end_turn", usage=TWICE),
        ):
            heard.append(await editor.hear())
    (steered,) = [message for message in heard if message.get("id") == 4]
    assert steered["result"]["outcome"] == "injected"
    shown = [message["params"]["update"] for message in heard if "method" in message]
    texts = [one["content"]["text"] for one in shown if one["sessionUpdate"] == "agent_message_chunk"]
    assert texts == ["first", "second"]
    # An editor of version 1 has shown its own words already; one of version 2 is told of every message.
    told = [one for one in shown if one["sessionUpdate"].startswith("user_message")]
    assert len(told) == front - 1


async def test_words_without_a_running_turn_begin_one_or_are_left_to_the_editor() -> None:
    async with queueing(1) as (editor, agent, _):
        editor.say(steer(3, _meta={"steering": {"idleBehavior": "promptRequired"}}))
        assert await editor.hear() == result(3, outcome="promptRequired", reason="noRunningTurn")
        editor.say(steer(4))
        assert await agent.hear() == prompt(3, "also that")
        assert await editor.hear() == result(4, outcome="startedNewTurn")


async def test_words_for_a_turn_that_is_cancelled_have_failed() -> None:
    async with queueing(1) as (editor, agent, _):
        editor.say(prompt(3))
        await agent.hear()
        editor.say(steer(4), note("session/cancel", sessionId="s"))
        assert await editor.hear() == result(4, outcome="failed")
        assert await agent.hear() == note("session/cancel", sessionId="s")
        agent.say(result(3, stopReason="cancelled"))
        assert await editor.hear() == result(3, stopReason="cancelled")


async def test_an_agent_that_can_be_steered_is_asked_itself() -> None:
    async with queueing(1, 1, _meta={"steering": {"supported": True}}) as (editor, agent, _):
        editor.say(prompt(3))
        await agent.hear()
        editor.say(steer(4))
        assert await agent.hear() == steer(4)
        agent.say(error(4, -32603, "no"))
        assert await editor.hear() == error(4, -32603, "no")


async def test_between_two_of_version_2_prompts_pass_as_they_come() -> None:
    async with queueing(2, 2) as (editor, agent, _):
        editor.say(prompt(3, "one"), prompt(4, "two"))
        assert await agent.hear_many(2) == [prompt(3, "one"), prompt(4, "two")]
