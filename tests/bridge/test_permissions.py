"""Permission requests through a bridge: only an offered choice is an answer that allows."""

import pytest

from dragoman.bridge import UNREADABLE
from tests.support.bridge_peers import (
    DISMISSED,
    OPTIONS,
    Message,
    chosen,
    every_pair,
    in_session,
    note,
    permission,
    result,
)

ANSWERS: dict[str, tuple[Message, Message | None]] = {
    # what the editor answers -> what the agent hears; None: an error
    "yes": (
        {"result": {"outcome": {"outcome": "selected", "optionId": "yes"}}},
        {"outcome": "selected", "optionId": "yes"},
    ),
    "no": (
        {"result": {"outcome": {"outcome": "selected", "optionId": "no"}}},
        {"outcome": "selected", "optionId": "no"},
    ),
    "dismissed": ({"result": DISMISSED}, DISMISSED["outcome"]),
    "not offered": ({"result": {"outcome": {"outcome": "selected", "optionId": "allow"}}}, DISMISSED["outcome"]),
    "nothing chosen": ({"result": {"outcome": {"outcome": "selected"}}}, None),
    "bare word": ({"result": {"outcome": "yes"}}, None),
    "empty": ({"result": {}}, None),
    "null": ({"result": None}, None),
    "true": ({"result": True}, None),
    "list": ({"result": [{"outcome": "selected", "optionId": "yes"}]}, None),
    "error": ({"error": {"code": -1, "message": "yes"}}, None),
}


@pytest.mark.requirement("L5")
@every_pair
@pytest.mark.parametrize("case", ANSWERS)
async def test_only_an_offered_choice_is_passed_on(front: int, back: int, case: str) -> None:
    answered, heard = ANSWERS[case]
    async with in_session(front, back) as (editor, agent):
        agent.say(permission("p", back))
        await editor.hear()
        # The second answer comes too late to change the first, whatever the first was.
        editor.say({"id": 1, **answered}, chosen(1, "yes"), note("_next"))
        answer, following = await agent.hear_many(2)
    assert (answer["id"], following) == ("p", note("_next"))
    if heard is None:
        assert answer == {"id": "p", "error": answered.get("error", {"code": -32603, "message": UNREADABLE})}
    else:
        assert answer == result("p", outcome=heard)


@pytest.mark.requirement("L5")
@pytest.mark.parametrize(("back", "heard"), [(1, DISMISSED["outcome"]), (2, {"outcome": "_allow_all", "more": 1})])
async def test_an_unknown_outcome_stays_unknown_or_is_cancelled(back: int, heard: Message) -> None:
    async with in_session(2, back) as (editor, agent):
        agent.say(permission("p", back))
        await editor.hear()
        editor.say(result(1, outcome={"outcome": "_allow_all", "more": 1}))
        assert await agent.hear() == result("p", outcome=heard)


@pytest.mark.requirement("L5")
@every_pair
async def test_an_option_offered_under_two_meanings_cannot_be_chosen(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        asked = permission("p", back)
        asked["params"]["options"] = [{**option, "optionId": "same"} for option in OPTIONS]
        agent.say(asked)
        await editor.hear()
        editor.say(chosen(1, "same"))
        assert await agent.hear() == result("p", **DISMISSED)


@pytest.mark.requirement("L5")
@every_pair
async def test_a_permission_whose_editor_leaves_is_cancelled(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        agent.say(permission("p", back))
        await editor.hear()
        await editor.leave()
        assert await agent.ended() == [result("p", **DISMISSED)]


@pytest.mark.requirement("L5")
@every_pair
async def test_a_permission_whose_agent_leaves_is_withdrawn(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        agent.say(permission("p", back))
        await editor.hear()
        await agent.leave()
        assert await editor.ended() == [note("$/cancel_request", requestId=1)]


@pytest.mark.requirement("L5")
@every_pair
async def test_one_yes_answers_one_question(front: int, back: int) -> None:
    async with in_session(front, back) as (editor, agent):
        agent.say(permission("p", back), permission("p", back), permission("q", back))
        assert [message["id"] for message in await editor.hear_many(2)] == [1, 2]
        assert (await agent.hear())["error"]["code"] == -32600  # asked twice under one id
        editor.say(chosen(1, "yes"), chosen(1, "yes"), chosen(2, "no"))
        assert await agent.hear_many(2) == [chosen("p", "yes"), chosen("q", "no")]
