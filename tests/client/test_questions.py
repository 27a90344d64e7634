"""What an agent asks of a person: fail closed, and a question of a cancelled turn needs no answer."""

import asyncio
from typing import Any

import pytest

from dragoman.client.permission_handler import PermissionHandler
from dragoman.client.permission_policy import PermissionPolicy
from dragoman.vocabulary.services import (
    FEEDBACK,
    Elicit,
    PermissionAnswer,
    PermissionOption,
    RequestPermission,
    Selected,
)
from tests.client.raw_agent import connected, new_session
from tests.support.messages import Message
from tests.support.versions import both_versions
from tests.support.waiting import settled, until

pytestmark = pytest.mark.anyio

OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


def permission(version: int, id: str = "q", session_id: str = "s", options: list[Message] = OPTIONS) -> Message:
    body: Message = {"sessionId": session_id, "options": options}
    body |= {"toolCall": {"toolCallId": "c", "title": "May I?"}} if version == 1 else {"title": "May I?"}
    return {"id": id, "method": "session/request_permission", "params": body}


def form(id: str = "f", session_id: str = "s") -> Message:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    scope = {"sessionId": session_id, "mode": "form", "message": "Name?", "requestedSchema": schema}
    return {"id": id, "method": "elicitation/create", "params": scope}


CANCELLED = {"outcome": {"outcome": "cancelled"}}


def chosen(option_id: str) -> Message:
    return {"outcome": {"outcome": "selected", "optionId": option_id}}


async def never(request: Any) -> None:
    await asyncio.get_running_loop().create_future()


@both_versions
@pytest.mark.parametrize(
    ("choice", "answer"),
    [
        ("yes", chosen("yes")),
        (PermissionOption("yes", "Yes", "allow_once"), chosen("yes")),
        (None, chosen("no")),
        ("never offered", chosen("no")),
        (True, chosen("no")),
        (ValueError("a bug"), chosen("no")),
    ],
)
async def test_only_an_offered_option_is_chosen_and_everything_else_is_a_no(
    version: int, choice: Any, answer: Message
) -> None:
    asked: list[RequestPermission] = []
    bugs: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: bugs.append(context["exception"]))

    async def decide(request: RequestPermission) -> Any:
        asked.append(request)
        if isinstance(choice, Exception):
            raise choice
        return choice

    async with connected(version, permission=decide) as (client, agent):
        await new_session(client, agent)
        agent.say(permission(version))
        assert (await agent.answer("q"))["result"] == answer
        assert [request.title for request in asked] == ["May I?"]
        assert len(bugs) == (choice is True or isinstance(choice, Exception))


@both_versions
@pytest.mark.parametrize("options", [OPTIONS, OPTIONS[:1], OPTIONS + OPTIONS[:1]])
async def test_without_a_callback_every_permission_is_rejected(version: int, options: list[Message]) -> None:
    async with connected(version) as (client, agent):
        await new_session(client, agent)
        agent.say(permission(version, options=options))
        rejected = chosen("no") if any(o["optionId"] == "no" for o in options) else CANCELLED
        assert (await agent.answer("q"))["result"] == rejected


@both_versions
async def test_an_option_that_was_offered_twice_is_not_chosen(version: int) -> None:
    async def decide(request: RequestPermission) -> str:
        return "yes"

    async with connected(version, permission=decide) as (client, agent):
        await new_session(client, agent)
        agent.say(permission(version, options=[*OPTIONS, {"optionId": "yes", "name": "Sure", "kind": "allow_always"}]))
        assert (await agent.answer("q"))["result"] == chosen("no")


@pytest.mark.requirement("8.4.13")
@both_versions
@pytest.mark.parametrize("stubborn", [False, True])
async def test_a_cancelled_turn_answers_its_open_questions_as_cancelled(version: int, stubborn: bool) -> None:
    ends: list[str] = []
    going = asyncio.Event()

    async def decide(request: RequestPermission) -> str:
        try:
            await going.wait()
        except asyncio.CancelledError:
            ends.append("cancelled")
            if not stubborn:
                raise
            await going.wait()
        return "yes"

    async def fill(request: Elicit) -> dict[str, object] | None:
        await going.wait()
        return {"name": "x"}

    async with connected(version, permission=decide, elicitation=fill) as (client, agent):
        session = await new_session(client, agent)
        other = await new_session(client, agent, "other")
        turn = session.prompt("hi")
        await agent.accept()
        agent.say(permission(version, "q1"), permission(version, "q2"), form("f1"), permission(version, "q3", "other"))
        await settled()
        await turn.cancel()
        assert (await agent.answer("q1"))["result"] == CANCELLED
        assert (await agent.answer("q2"))["result"] == CANCELLED
        assert (await agent.answer("f1"))["result"] == {"action": "cancel"}
        assert ends == ["cancelled", "cancelled"]
        # The agent has not heard of the cancel yet, and asks once more.
        agent.say(permission(version, "q4"))
        assert (await agent.answer("q4"))["result"] == CANCELLED
        going.set()
        assert (await agent.answer("q3"))["result"] == chosen("yes")
        order = [m.get("id", m.get("method")) for m in agent.heard]
        assert order.index("session/cancel") < order.index("q1")
        assert not other.is_running


@both_versions
async def test_a_question_the_agent_withdraws_is_answered_so_and_its_callback_stopped(version: int) -> None:
    ends: list[str] = []

    async def decide(request: RequestPermission) -> None:
        try:
            await never(request)
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    async with connected(version, permission=decide) as (client, agent):
        await new_session(client, agent)
        agent.say(permission(version))
        await settled()
        agent.say({"method": "$/cancel_request", "params": {"requestId": "q"}})
        assert (await agent.answer("q"))["error"]["code"] == -32800
        await until(lambda: ends == ["cancelled"])


@both_versions
async def test_when_the_client_closes_its_open_questions_end(version: int) -> None:
    ends: list[str] = []

    async def decide(request: RequestPermission) -> None:
        try:
            await never(request)
        finally:
            ends.append("over")

    async with connected(version, permission=decide) as (client, agent):
        session = await new_session(client, agent)
        session.prompt("hi")
        await agent.accept()
        agent.say(permission(version))
        await settled()
        await client.close()
        assert ends == ["over"]


@both_versions
async def test_a_form_is_filled_declined_or_not_supported(version: int) -> None:
    answers: list[Any] = [{"name": "x"}, None]

    async def fill(request: Elicit) -> Any:
        return answers.pop(0)

    async with connected(version, elicitation=fill) as (client, agent):
        await new_session(client, agent)
        agent.say(form("f1"))
        assert (await agent.answer("f1"))["result"] == {"action": "accept", "content": {"name": "x"}}
        agent.say(form("f2"))
        assert (await agent.answer("f2"))["result"] == {"action": "decline"}
    async with connected(version) as (client, agent):
        await new_session(client, agent)
        agent.say(form("f3"))
        assert (await agent.answer("f3"))["error"] == {"code": -32601, "message": "Method not found"}


@pytest.mark.requirement("C13")
async def test_what_was_not_offered_is_refused() -> None:
    async with connected(1) as (client, agent):
        await new_session(client, agent)
        asked: list[tuple[str, Message]] = [
            ("fs/read_text_file", {"sessionId": "s", "path": "/etc/passwd"}),
            ("fs/write_text_file", {"sessionId": "s", "path": "/x", "content": ""}),
            ("terminal/create", {"sessionId": "s", "command": "ls"}),
            ("_secret", {}),
        ]
        for number, (method, params) in enumerate(asked):
            agent.say({"id": f"r{number}", "method": method, "params": params})
            assert (await agent.answer(f"r{number}"))["error"]["code"] == -32601


async def test_files_and_extensions_are_lent_where_they_are_given() -> None:
    written: list[tuple[str, str]] = []

    async def read(request: Any) -> str:
        return f"text of {request.path}"

    async def write(request: Any) -> None:
        written.append((request.path, request.content))

    async def ping(params: object) -> object:
        return params

    settings: Any = {"read_text_file": read, "write_text_file": write, "extensions": {"_ping": ping}}
    async with connected(1, **settings) as (client, agent):
        await new_session(client, agent)
        agent.say({"id": "r", "method": "fs/read_text_file", "params": {"sessionId": "s", "path": "/a"}})
        assert (await agent.answer("r"))["result"] == {"content": "text of /a"}
        body = {"sessionId": "s", "path": "/b", "content": "c"}
        agent.say({"id": "w", "method": "fs/write_text_file", "params": body})
        assert "result" in await agent.answer("w")
        assert written == [("/b", "c")]
        agent.say({"id": "p", "method": "_ping", "params": {"n": 1}})
        assert (await agent.answer("p"))["result"] == {"n": 1}


@both_versions
async def test_what_the_user_wrote_to_a_no_is_sent_beside_it(version: int) -> None:
    async def refuse(request: RequestPermission) -> PermissionAnswer:
        return PermissionAnswer(Selected("no"), meta={FEEDBACK: "use pnpm"})

    permissions = PermissionHandler(PermissionPolicy("read"), ["/"], refuse)
    async with connected(version, permission=permissions) as (client, agent):
        await new_session(client, agent)
        agent.say(permission(version))
        answer = await agent.answer("q")
    assert answer["result"] == chosen("no") | {"_meta": {FEEDBACK: "use pnpm"}}
