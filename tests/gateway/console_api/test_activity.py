"""What runs and what waits, for those whose sessions they are."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman.client.connect import connect
from dragoman.transports.remote import transport_for
from dragoman.vocabulary.services import PermissionOption, RequestPermission
from tests.support.console_api import ConsoleApi, asking
from tests.support.gateway import RawHttp, Served, counting, gateway, raw_http
from tests.support.waiting import until

pytestmark = pytest.mark.anyio


async def asked(client: RawHttp, session: str) -> dict[str, Any]:
    """The question that the agent asks after a prompt."""
    prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
    await client.post({"id": 90, "method": "session/prompt", "params": prompt}, session)
    found: list[dict[str, Any]] = []
    await until(lambda: bool(found) or bool(_questions(client, found)))
    return found[0]


def _questions(client: RawHttp, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found[:] = [message for message in client.heard if message.get("method") == "session/request_permission"]
    return found


async def sessions(api: ConsoleApi) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await api.answer("activity"))["sessions"]
    return found


@pytest.mark.requirement("K62")
async def test_a_question_is_in_the_inbox_of_its_principal_until_it_is_answered(served: Served) -> None:
    mine, other = ConsoleApi(served), ConsoleApi(served, served.token_of("bob", ("read", "prompt")))
    watcher = ConsoleApi(served, served.token_of("screen", ("read",), "default"))
    async with raw_http(served, 2) as client:
        session = await client.session()
        assert await sessions(mine) == []
        question = await asked(client, session)
        (waiting,) = await sessions(mine)
        assert (waiting["sessionId"], waiting["state"], waiting["agent"]) == (session, "waiting", "")
        (asks,) = waiting["questions"]
        assert asks["kind"] == "permission"
        assert 0 <= asks["seconds"] < 30
        # Never what is asked: that comes over ACP, to those who may answer.
        assert "secret plan" not in str(waiting)
        assert [one["sessionId"] for one in await sessions(watcher)] == [session]
        assert await sessions(other) == []
        option = next(one for one in question["params"]["options"] if one["kind"] == "allow_once")
        chosen = {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
        await client.post({"id": question["id"], "result": chosen}, session)
        await until(lambda: not served.hub.sessions[session].is_running)
        assert await sessions(mine) == []


@pytest.mark.requirement("K62")
async def test_the_inbox_has_the_questions_of_every_agent_with_its_name(tmp_path: Path) -> None:
    answered = asyncio.Event()

    async def permission(request: RequestPermission) -> PermissionOption:
        await answered.wait()
        return request.options[0]

    async with gateway(asking(), tmp_path, beside={"second": asking()}) as served:
        api = ConsoleApi(served)
        async with connect(transport_for(f"{served.ws}/second", served.token), permission=permission) as client:
            conversation = await client.new_session(tmp_path)
            turn = asyncio.create_task(conversation.ask("go"))
            await until(lambda: any(one.has_questions for one in served.server.hubs["second"].sessions.values()))
            (waiting,) = await sessions(api)
            assert (waiting["agent"], waiting["sessionId"], waiting["cwd"]) == (
                "second",
                conversation.id,
                str(tmp_path),
            )
            answered.set()
            assert (await turn).text == "yes"
        assert await sessions(api) == []


async def test_a_turn_that_runs_is_listed_behind_those_that_wait(tmp_path: Path) -> None:
    go_on = asyncio.Event()
    async with gateway(counting(2, go_on.wait), tmp_path) as served, raw_http(served, 2) as client:
        session = await client.session()
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "count"}]}
        await client.post({"id": 3, "method": "session/prompt", "params": prompt}, session)
        await until(lambda: served.hub.sessions[session].is_running)
        (running,) = await sessions(ConsoleApi(served))
        assert (running["state"], running["questions"]) == ("running", [])
        assert await sessions(ConsoleApi(served, served.token_of("bob", ("read", "prompt")))) == []
        go_on.set()
        await until(lambda: not served.hub.sessions[session].is_running)
