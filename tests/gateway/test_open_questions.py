"""Whom a question of an agent is put to, and when the gateway answers it itself; the clients are simulated."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dragoman.errors import LinkClosed, RequestFailed
from dragoman.gateway import open_questions
from dragoman.gateway.open_questions import OpenQuestion
from dragoman.vocabulary.asking import Reply, Request
from dragoman.vocabulary.services import (
    PermissionAnswer,
    PermissionOption,
    ReadTextFile,
    RequestPermission,
    Selected,
)
from tests.support.waiting import until

pytestmark = pytest.mark.anyio

PERMISSION = RequestPermission(
    "s", "May I?", [PermissionOption("yes", "Yes", "allow_once"), PermissionOption("no", "No", "reject_once")]
)
ALLOWED = PermissionAnswer(Selected("yes"))
REJECTED = PermissionAnswer(Selected("no"))
ERROR = RequestFailed(-32603, "no dialog here")


class Client:
    """A subscriber: what it is asked waits for `reply`, an answer or an exception."""

    def __init__(self) -> None:
        self.is_connected = True
        self.reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.asked = asyncio.Event()

    def may_answer(self, request: Request) -> bool:
        return True

    async def ask(self, request: Request) -> Reply:
        self.asked.set()
        return await self.reply


class Question:
    """A question to these clients, which is open and waited for."""

    def __init__(self, request: Request, *clients: Client) -> None:
        self.subscribers = list(clients)
        agent_side = SimpleNamespace(origin=clients[0], is_of_other_node=False)
        shared = SimpleNamespace(id="s", subscribers=self.subscribers, agent_side=agent_side)
        self.question = OpenQuestion(cast(Any, shared), request)
        self.answer = asyncio.ensure_future(self.question.wait_until_answered())

    def unsubscribe(self, client: Client) -> None:
        """As `ClientSide.close` does it: it is subscribed no more, and its link fails what it was asked."""
        self.subscribers.remove(client)
        self.question.recheck()
        client.reply.set_exception(LinkClosed("gone"))


async def asked(*clients: Client) -> None:
    for client in clients:
        await client.asked.wait()


async def within(answer: "asyncio.Future[Reply]") -> Reply:
    return await asyncio.wait_for(answer, 5)


async def test_the_first_answer_counts() -> None:
    first, second = Client(), Client()
    question = Question(PERMISSION, first, second)
    await asked(first, second)
    second.reply.set_result(ALLOWED)
    assert await within(question.answer) == ALLOWED
    assert question.question.answerer is cast(Any, second)


async def test_clients_that_all_fail_make_it_a_no_at_once() -> None:
    first, second = Client(), Client()
    question = Question(PERMISSION, first, second)
    await asked(first, second)
    first.reply.set_exception(ERROR)
    second.reply.set_exception(ERROR)
    assert await within(question.answer) == REJECTED
    assert question.question.answerer is None


async def test_where_one_client_fails_and_the_other_leaves_it_is_a_no_at_once() -> None:
    first, second = Client(), Client()
    question = Question(PERMISSION, first, second)
    await asked(first, second)
    first.reply.set_exception(ERROR)
    await _failed(question, first)
    question.unsubscribe(second)
    assert await within(question.answer) == REJECTED


async def test_where_one_client_leaves_and_the_other_fails_it_is_a_no_at_once() -> None:
    first, second = Client(), Client()
    question = Question(PERMISSION, first, second)
    await asked(first, second)
    question.unsubscribe(second)
    first.reply.set_exception(ERROR)
    assert await within(question.answer) == REJECTED


async def test_where_one_client_fails_and_the_other_is_away_it_is_a_no_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(open_questions, "ALONE_SECONDS", 0.01)
    first, second = Client(), Client()
    question = Question(PERMISSION, first, second)
    await asked(first, second)
    second.is_connected = False
    question.question.recheck()
    first.reply.set_exception(ERROR)
    assert await within(question.answer) == REJECTED


async def test_a_client_that_comes_back_in_time_may_still_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_questions, "ALONE_SECONDS", 600.0)
    first, second = Client(), Client()
    question = Question(PERMISSION, first, second)
    await asked(first, second)
    second.is_connected = False
    first.reply.set_exception(ERROR)
    await _failed(question, first)
    assert "alone" in repr(question.question)
    second.is_connected = True
    question.question.recheck()
    assert "open" in repr(question.question)
    second.reply.set_result(ALLOWED)
    assert await within(question.answer) == ALLOWED


async def test_where_a_client_has_failed_and_all_are_gone_another_may_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_questions, "ALONE_SECONDS", 600.0)
    first, second = Client(), Client()
    question = Question(PERMISSION, first, second)
    await asked(first, second)
    first.reply.set_exception(ERROR)
    await _failed(question, first)
    question.subscribers.remove(first)
    question.question.recheck()
    question.unsubscribe(second)
    await asyncio.wait([cast(Any, question.question)._tasks[second]])
    third = Client()
    question.subscribers.append(third)
    question.question.recheck()
    await asked(third)
    third.reply.set_result(ALLOWED)
    assert await within(question.answer) == ALLOWED


async def test_a_request_for_one_client_fails_with_it_and_goes_on_where_it_has_left() -> None:
    first, second = Client(), Client()
    question = Question(ReadTextFile("s", "/f"), first, second)
    await asked(first)
    assert not second.asked.is_set()
    question.unsubscribe(first)
    await asked(second)
    second.reply.set_exception(ERROR)
    with pytest.raises(RequestFailed, match="no dialog here"):
        await within(question.answer)


async def _failed(question: Question, client: Client) -> None:
    """Wait until the question has seen that a client failed."""
    await until(lambda: client in cast(Any, question.question)._failed)
