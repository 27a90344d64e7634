"""`_agentao.cn/ask_user`: answered in every form, advertised only where there is a user to ask."""

import asyncio
from typing import Any

import pytest

from dragoman.client.ask_user import UserQuestion
from dragoman.dialects.vendors.extensions import ASK_USER
from tests.client.raw_agent import RawAgent, connected, new_session
from tests.support.versions import both_versions

pytestmark = pytest.mark.anyio

UNANSWERED = {"answer": "(user unavailable)", "outcome": "cancelled", "text": "(user unavailable)"}


def capabilities(agent: RawAgent, version: int) -> Any:
    hello = next(message for message in agent.heard if message.get("method") == "initialize")["params"]
    return hello["clientCapabilities" if version == 1 else "capabilities"]


def ask(agent: RawAgent, **params: Any) -> None:
    agent.say({"id": "q", "method": ASK_USER, "params": {"sessionId": "s", "question": "Which?", **params}})


@pytest.mark.requirement("8.4.21")
@both_versions
@pytest.mark.parametrize(
    ("said", "answer"),
    [("the left one", {"answer": "the left one", "outcome": "answered", "text": "the left one"}), (None, UNANSWERED)],
)
async def test_a_person_is_asked(version: int, said: str | None, answer: dict[str, str]) -> None:
    heard: list[UserQuestion] = []

    async def ask_user(question: UserQuestion) -> str | None:
        heard.append(question)
        return said

    async with connected(version, ask_user=ask_user) as (client, agent):
        advertised = capabilities(agent, version)["_meta"]["_agentao.cn/extensions"]
        assert [one["method"] for one in advertised] == [ASK_USER]
        await new_session(client, agent)
        ask(agent, options=["left", {"label": "right"}, 7])
        assert (await agent.answer("q"))["result"] == answer
    assert heard == [UserQuestion("s", "Which?", ("left", "right"))]


@both_versions
async def test_no_user_to_ask_is_an_answer_and_is_not_advertised(version: int) -> None:
    async with connected(version) as (client, agent):
        assert "_meta" not in capabilities(agent, version)
        await new_session(client, agent)
        ask(agent)
        assert (await agent.answer("q"))["result"] == UNANSWERED


async def test_a_cancelled_turn_takes_its_question_along() -> None:
    async def never(question: UserQuestion) -> str:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    async with connected(1, ask_user=never) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("go")
        number = await agent.accept()
        ask(agent)
        await asyncio.sleep(0)
        await turn.cancel()
        assert (await agent.answer("q"))["result"] == UNANSWERED
        agent.finish(number, "cancelled")
        assert (await turn.read()).stop_reason == "cancelled"


@pytest.mark.parametrize(
    ("params", "code"), [({"question": 7}, -32602), ({"sessionId": 7}, -32602), ({"sessionId": "other"}, -32002)]
)
async def test_a_question_that_is_none_is_refused(params: dict[str, Any], code: int) -> None:
    async with connected(1) as (client, agent):
        await new_session(client, agent)
        ask(agent, **params)
        assert (await agent.answer("q"))["error"]["code"] == code
