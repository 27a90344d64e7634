"""Asking the user: only a known yes is a yes, and a question ends with its turn."""

import asyncio
from typing import Any

import pytest

from dragoman.agent.agent import Agent
from dragoman.agent.permission import YES_OR_NO, chosen
from dragoman.agent.session import Permission, Prompt, Session
from dragoman.errors import UsageError
from dragoman.vocabulary.asking import Done, Reply
from dragoman.vocabulary.services import Dismissed, PermissionAnswer, PermissionOption, RequestPermission, Selected
from tests.support.messages import Message, prompt, texts, updates
from tests.support.raw_peer import RawPeer
from tests.support.served_agent import end_of_turn, opened, served
from tests.support.versions import both_versions
from tests.support.waiting import settled, until

pytestmark = pytest.mark.anyio


def asking_agent(answers: list[Permission]) -> Agent:
    agent = Agent("x")

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        answers.append(await session.ask_permission("May I?", command="make"))
        await session.say("yes" if answers[-1] else "no")

    return agent


async def question(wire: RawPeer) -> Message:
    def found() -> list[Message]:
        return [m for m in wire.heard if m.get("method") == "session/request_permission"]

    await until(lambda: bool(found()))
    return found()[0]


def selected(option_id: str) -> Message:
    return {"result": {"outcome": {"outcome": "selected", "optionId": option_id}}}


@both_versions
@pytest.mark.parametrize(
    ("answer", "said", "always"),
    [
        (selected("allow_once"), "yes", False),
        (selected("allow_always"), "yes", True),
        (selected("reject_once"), "no", False),
        (selected("reject_always"), "no", True),
        (selected("something else"), "no", False),
        ({"result": {"outcome": {"outcome": "cancelled"}}}, "no", False),
        ({"result": {"outcome": {"outcome": "_maybe", "optionId": "allow_once"}}}, "no", False),
        ({"result": {"optionId": "allow_once"}}, "no", False),
        ({"result": {}}, "no", False),
        ({"result": "yes"}, "no", False),
        ({"error": {"code": -32601, "message": "Method not found"}}, "no", False),
        ({"error": {"code": -32800, "message": "Request cancelled"}}, "no", False),
    ],
)
async def test_only_a_known_yes_is_a_yes(version: int, answer: Message, said: str, always: bool) -> None:
    answers: list[Permission] = []
    async with served(asking_agent(answers), version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        asked = await question(wire)
        wire.say({"id": asked["id"], **answer})
        assert await end_of_turn(wire, 2, version) == {"stopReason": "end_turn"}
        assert (texts(wire.heard), answers[0].always) == ([said], always)
        states = [s for s in updates(wire.heard) if s in ("running", "requires_action", "idle")]
        assert states == ([] if version == 1 else ["running", "requires_action", "running", "idle"])


@pytest.mark.parametrize(
    "reply", [PermissionAnswer(Selected("yes")), PermissionAnswer(Selected("")), PermissionAnswer(Dismissed()), Done()]
)
def test_what_was_not_offered_is_not_chosen(reply: Reply) -> None:
    """Whatever a dialect lets through."""
    request = RequestPermission("s", "May I?", list(YES_OR_NO))
    assert chosen(reply, request) is None
    assert chosen(PermissionAnswer(Selected("allow_once")), request) == YES_OR_NO[0]


@pytest.mark.requirement("C6", "8.4.13")
@both_versions
async def test_a_cancel_while_the_user_is_asked_withdraws_the_question_and_ends_the_turn(version: int) -> None:
    answers: list[Permission] = []
    async with served(asking_agent(answers), version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        asked = await question(wire)
        wire.say({"method": "session/cancel", "params": {"sessionId": session_id}})
        assert await end_of_turn(wire, 2, version) == {"stopReason": "cancelled"}
        withdrawn = [m["params"] for m in wire.heard if m.get("method") == "$/cancel_request"]
        assert withdrawn == [{"requestId": asked["id"]}]
        wire.say({"id": asked["id"], **selected("allow_once")})
        await settled()
        assert (answers, texts(wire.heard)) == ([], [])


@both_versions
async def test_a_client_that_leaves_has_not_said_yes(version: int) -> None:
    answers: list[Permission] = []
    async with served(asking_agent(answers), version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        await question(wire)
    assert answers == []


@both_versions
async def test_two_questions_at_once_get_each_its_own_answer(version: int) -> None:
    agent = Agent("x")

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        both = await asyncio.gather(session.ask_permission("A?"), session.ask_permission("B?"))
        await session.say(f"{[bool(one) for one in both]}")

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))

        def asked() -> list[Message]:
            return [m for m in wire.heard if m.get("method") == "session/request_permission"]

        await until(lambda: len(asked()) == 2)
        for one in reversed(asked()):
            wire.say({"id": one["id"], **selected("allow_once" if "A?" in str(one) else "reject_once")})
        await end_of_turn(wire, 2, version)
        assert texts(wire.heard) == ["[True, False]"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "at least one option"),
        ([PermissionOption("a", "A", "allow_once"), PermissionOption("a", "B", "reject_once")], "different ids"),
    ],
)
async def test_options_that_cannot_be_chosen_from_are_the_authors_mistake(options: list[Any], told: str) -> None:
    agent = Agent("x")
    errors = []

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        try:
            await session.ask_permission("May I?", options=options)
        except UsageError as error:
            errors.append(str(error))

    async with served(agent, 1) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        await end_of_turn(wire, 2, 1)
    assert len(errors) == 1 and told in errors[0]
