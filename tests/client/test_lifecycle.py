"""An agent that is hostile or broken at `initialize`, in prompts and in cancels; what idle sessions cost."""

import asyncio
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from dragoman import limits
from dragoman.client.connect import connect
from dragoman.client.workspace import Workspace
from dragoman.errors import DragomanError, UsageError
from dragoman.transports.memory import memory_pair
from dragoman.vocabulary.hello import AgentCapabilities
from dragoman.vocabulary.services import RequestPermission
from tests.client.raw_agent import RawAgent, connected, new_session
from tests.support.messages import Message, greeting
from tests.support.raw_peer import PIPE
from tests.support.versions import both_versions
from tests.support.waiting import settled, until

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("C1")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("fs/read_text_file", {"sessionId": "s", "path": "/etc/passwd"}),
        ("terminal/create", {"sessionId": "s", "command": "id"}),
        ("session/request_permission", {"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": []}),
        ("elicitation/create", {"sessionId": "s", "mode": "form", "message": "Who?", "requestedSchema": {}}),
        ("_agentao.cn/ask_user", {"sessionId": "s", "question": "Who?"}),
    ],
)
async def test_an_agent_that_asks_before_it_has_answered_initialize_gets_nothing(
    method: str, params: Message, tmp_path: Path
) -> None:
    asked: list[object] = []

    async def ask(request: object) -> None:
        asked.append(request)

    ours, theirs = memory_pair(PIPE)
    agent = RawAgent(theirs, 1)
    async with Workspace([tmp_path], environment=os.environ) as workspace:
        client = connect(ours, permission=ask, elicitation=ask, ask_user=ask, **workspace.callbacks())
        entering = asyncio.ensure_future(client.__aenter__())
        number = (await agent.request("initialize"))["id"]
        agent.say({"id": "early", "method": method, "params": params})
        assert (await agent.answer("early"))["error"]["code"] < 0
        agent.say({"id": number, "result": greeting(1)})
        await entering
        await client.close()
        await agent.leave()
    assert asked == []


@pytest.mark.requirement("C2")
@pytest.mark.parametrize("body", [1, 2])
@pytest.mark.parametrize("version", [0, 99, "1", -1, None, 1.5, True, [], 2**70])
async def test_whatever_version_an_agent_claims_it_is_talked_to_or_left_with_a_reason(version: Any, body: int) -> None:
    ours, theirs = memory_pair(PIPE)
    agent = RawAgent(theirs, body)
    client = connect(ours)
    entering = asyncio.ensure_future(client.__aenter__())
    number = (await agent.request("initialize"))["id"]
    agent.say({"id": number, "result": greeting(body) | {"protocolVersion": version}})
    refused = await asyncio.gather(entering, return_exceptions=True)
    if isinstance(refused[0], BaseException):
        assert isinstance(refused[0], DragomanError)
        assert client.state == "failed"
    else:
        await new_session(client, agent)
    async with asyncio.timeout(30):
        await client.close()
        await agent.leave()


@pytest.mark.requirement("C3")
@both_versions
@pytest.mark.parametrize("odd", [None, [], "yes", 7, {"session": 1, "sessionCapabilities": "x", "loadSession": "y"}])
async def test_capabilities_that_are_none_are_absent_and_unknown_ones_are_ignored(version: int, odd: Any) -> None:
    ours, theirs = memory_pair(PIPE)
    agent = RawAgent(theirs, version)
    client = connect(ours)
    entering = asyncio.ensure_future(client.__aenter__())
    number = (await agent.request("initialize"))["id"]
    key = "agentCapabilities" if version == 1 else "capabilities"
    agent.say({"id": number, "result": greeting(version) | {key: odd, "unheardOf": {"deep": [1]}}})
    await entering
    able = client.agent.capabilities
    assert [able.load, able.resume, able.list, able.close, able.fork] == [False] * 5
    assert able.mcp_http is AgentCapabilities().mcp_http
    await client.close()
    await agent.leave()


@pytest.mark.requirement("C5")
@both_versions
async def test_a_second_prompt_is_refused_and_the_first_is_unharmed(version: int) -> None:
    async with connected(version) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("one")
        number = await agent.accept()
        for _ in range(100):
            with pytest.raises(UsageError, match="still running"):
                session.prompt("two")
        agent.tell("one")
        agent.finish(number)
        assert (await turn.read()).text == "one"
        assert sum(message.get("method") == "session/prompt" for message in agent.heard) == 1


@pytest.mark.requirement("C6", "C7")
@both_versions
@pytest.mark.parametrize("phase", ["before", "model", "permission", "after"])
async def test_a_thousand_cancels_in_any_phase_have_one_outcome(version: int, phase: str) -> None:
    async def never(request: RequestPermission) -> None:
        await asyncio.get_running_loop().create_future()

    async with connected(version, permission=never) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("hi")
        if phase != "before":
            number = await agent.accept()
            agent.tell("so far")
        if phase == "permission":
            options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
            about: Message = {"toolCall": {"toolCallId": "c"}}
            if version == 2:
                about = {"title": "May I?", "subject": {"type": "tool_call", **about}}
            asking = {"sessionId": "s", "options": options, **about}
            agent.say({"id": "q", "method": "session/request_permission", "params": asking})
            await until(lambda: client.state == "waiting for you")
        if phase == "after":
            agent.finish(number)
            await turn.read()
        for _ in range(1000):
            await turn.cancel()
            await session.cancel()
        if phase == "permission":
            assert (await agent.answer("q"))["result"]["outcome"] == {"outcome": "cancelled"}
        if phase in ("model", "permission"):
            await agent.request("session/cancel")
            agent.finish(number, "cancelled")
        answer = await turn.read()
        await settled()
        told = sum(message.get("method") == "session/cancel" for message in agent.heard)
        assert told == (1 if phase in ("model", "permission") else 0)
        assert turn.stop_reason == ("end_turn" if phase == "after" else "cancelled")
        assert answer.text == ("so far" if phase in ("model", "permission") else "")


@pytest.mark.requirement("C12")
@pytest.mark.parametrize("count", [100, pytest.param(10_000, marks=pytest.mark.slow)])
async def test_a_session_that_is_open_and_idle_costs_little(count: int) -> None:
    async with connected(1) as (client, agent):
        await new_session(client, agent, "first")
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        sessions = [await new_session(client, agent, f"s{number}") for number in range(count)]
        agent.heard.clear()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert (after - before) / count < 64 * limits.KIB / 4
        assert len(sessions) == count
