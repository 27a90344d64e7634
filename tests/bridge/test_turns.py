"""A turn through a bridge, in every pair of versions: prompt, events, permission, cancel, end."""

import pytest

from tests.support.bridge_peers import (
    AFTER,
    BEFORE,
    CANCELLED_END,
    DISMISSED,
    HEARD_BEFORE,
    ITEMS,
    OURS,
    QUESTION,
    chosen,
    error,
    every_pair,
    in_session,
    note,
    prompt,
    request,
    result,
    state,
    text,
    update,
)

HEARD_AFTER = {
    (1, 1): AFTER[1],
    (1, 2): AFTER[1],
    (2, 1): [*AFTER[2][:2], update("plan_update", plan={**ITEMS, "planId": "main"}), *AFTER[2][3:]],
    (2, 2): AFTER[2],
}


@every_pair
async def test_a_turn_is_heard_in_the_editors_own_version(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(prompt(3))
        assert await agent.hear() == prompt(3)
        agent.say(*BEFORE[back])
        assert await editor.hear_many(len(HEARD_BEFORE[front, back])) == HEARD_BEFORE[front, back]
        editor.say(chosen(1, "yes"))
        assert await agent.hear() == chosen(QUESTION, "yes")
        agent.say(*AFTER[back])
        assert await editor.hear_many(len(HEARD_AFTER[front, back])) == HEARD_AFTER[front, back]


@pytest.mark.requirement("L4")
async def test_a_version_1_prompt_is_answered_at_idle_and_not_when_the_agent_accepts_it() -> None:
    async with in_session(1, 2) as (editor, agent):
        editor.say(prompt(3))
        await agent.hear()
        agent.say(result(3, messageId="u"), state("running"))
        editor.say(request(4, "_still_there"))
        assert await agent.hear() == request(4, "_still_there")
        agent.say(result(4), update("agent_message_chunk", messageId="a", content=text("1")))
        agent.say(update("agent_message_chunk", messageId="a", content=text("2")))
        agent.say(state("idle", stopReason="refusal"))
        assert await editor.hear_many(4) == [
            result(4),
            update("agent_message_chunk", messageId="a", content=text("1")),
            update("agent_message_chunk", messageId="a", content=text("2")),
            result(3, stopReason="refusal"),
        ]


async def test_a_version_2_prompt_is_accepted_before_its_version_1_agent_says_anything() -> None:
    async with in_session(2, 1) as (editor, agent):
        editor.say(prompt(3))
        assert await editor.hear_many(3) == [
            result(3, messageId=OURS),
            update("user_message", messageId=OURS, content=[text("hi")]),
            state("running"),
        ]
        assert agent.heard[-1]["method"] == "session/new"
        assert await agent.hear() == prompt(3)


@every_pair
async def test_a_cancelled_turn_ends_once_and_as_cancelled(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(prompt(3))
        await agent.hear()
        agent.say(*BEFORE[back])
        await editor.hear_many(len(HEARD_BEFORE[front, back]))
        editor.say(note("session/cancel", sessionId="s"), result(1, **DISMISSED))
        assert await agent.hear_many(2) == [note("session/cancel", sessionId="s"), result(QUESTION, **DISMISSED)]
        agent.say(CANCELLED_END[back])
        running = [state("running")] if (front, back) == (2, 1) else []  # said for an agent that cannot
        assert await editor.hear_many(len(running) + 1) == [*running, CANCELLED_END[front]]


@every_pair
async def test_a_prompt_and_its_cancellation_in_one_breath_keep_their_order(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(prompt(3, "x" * 200_000), note("session/cancel", sessionId="s"))
        assert await agent.hear_many(2) == [prompt(3, "x" * 200_000), note("session/cancel", sessionId="s")]


FAILURE = {"code": -32603, "message": "No luck", "data": {"reason": "network"}}
FAILED_END = {
    1: {"id": 3, "error": FAILURE},
    2: state("idle", stopReason="error", error=FAILURE),
}


@every_pair
async def test_a_turn_that_fails_says_why_and_leaves_the_session_usable(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        editor.say(prompt(3))
        await agent.hear()
        agent.say(*([] if back == 1 else [result(3, messageId="u")]), FAILED_END[back])
        accepted = 0 if front == 1 else 3 if back == 1 else 1
        assert (await editor.hear_many(accepted + 1))[-1] == FAILED_END[front]
        editor.say(prompt(4, "again"))
        assert await agent.hear() == prompt(4, "again")


@every_pair
async def test_a_prompt_that_is_refused_is_an_error_or_a_turn_that_failed(front: int, back: int) -> None:
    refused = error(3, -32002, "Session not found", {"sessionId": "s"})
    async with in_session(front, back) as (editor, agent):
        editor.say(prompt(3))
        await agent.hear()
        agent.say(refused)
        if (front, back) == (2, 1):
            # It was accepted when it was sent; a turn is all that can fail.
            assert (await editor.hear_many(4))[-1] == state("idle", stopReason="error", error=refused["error"])
        else:
            assert await editor.hear() == refused


async def test_a_second_prompt_for_a_version_1_agent_that_works_is_refused_and_ends_nothing() -> None:
    async with in_session(2, 1) as (editor, agent):
        editor.say(prompt(3))
        await editor.hear_many(3)
        editor.say(prompt(4, "and this"))
        assert await editor.hear() == error(4, -32600, "The session is busy", {"reason": "busy"})
        await agent.hear()
        agent.say(result(3, stopReason="end_turn"))
        assert await editor.hear() == state("idle", stopReason="end_turn")
        editor.say(prompt(5, "now"))
        assert await agent.hear() == prompt(4, "now")
