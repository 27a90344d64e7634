"""How long a client waits, what it does then, and when its clock stands still."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman import limits
from dragoman.client.connect import Client, connect
from dragoman.client.timeouts import Timeouts
from dragoman.errors import TimedOut
from dragoman.transports.memory import memory_pair
from tests.client.raw_agent import RawAgent, connected, new_session
from tests.client.test_questions import permission
from tests.support.machine import lives
from tests.support.messages import Message, greeting
from tests.support.raw_peer import PIPE
from tests.support.rough_command import rough
from tests.support.versions import both_versions
from tests.support.waiting import until

pytestmark = pytest.mark.anyio

# The clock counts the loop's own steps: a machine that is busy with other things does not make it run.
QUICK = Timeouts(startup=60, request=0.2, prompt_idle=0.2, grace=0.2)


async def timed_out(work: Any) -> str:
    with pytest.raises(TimedOut) as error:
        await work
    return str(error.value)


def said(agent: RawAgent, method: str) -> list[Message]:
    return [message for message in agent.heard if message.get("method") == method]


async def test_an_agent_that_does_not_start_is_stopped(tmp_path: Path) -> None:
    client = connect(rough("dumb", "child"), timeouts=Timeouts(startup=0.5))
    message = await timed_out(client.__aenter__())
    assert message.startswith("the agent did not answer initialize within 0.5 s and was stopped")
    assert "child" in message  # what it wrote to stderr
    assert client.state == "failed"
    assert client._connection._child is not None
    assert not lives(client._connection._child.pid)


@both_versions
async def test_a_request_that_takes_too_long_is_withdrawn(version: int) -> None:
    async with connected(version, timeouts=QUICK) as (client, agent):
        session = await new_session(client, agent)
        message = await timed_out(session.close())
        assert message == "the agent did not answer CloseSession within 0.2 s; the request was withdrawn"
        await until(lambda: bool(said(agent, "$/cancel_request")))
        (asked,) = said(agent, "session/close")
        assert said(agent, "$/cancel_request")[0]["params"] == {"requestId": asked["id"]}
        # The connection is as good as before.
        assert client.state == "ready"
        await new_session(client, agent, "t")


@pytest.mark.requirement("8.5.11")
async def test_a_login_and_a_turn_are_no_requests() -> None:
    ours, theirs = memory_pair(PIPE)
    agent = RawAgent(theirs, 1)
    client = connect(ours, timeouts=Timeouts(request=0.2, prompt_idle=None))
    entering = asyncio.ensure_future(client.__aenter__())
    hello = greeting(1) | {"authMethods": [{"id": "m", "name": "M"}]}
    agent.say({"id": (await agent.request("initialize"))["id"], "result": hello})
    await entering
    session = await new_session(client, agent)
    login = asyncio.ensure_future(client.login("m"))
    turn = asyncio.ensure_future(session.ask("go"))
    await asyncio.sleep(0.5)
    assert (login.done(), turn.done()) == (False, False)
    agent.say({"id": (await agent.request("authenticate"))["id"], "result": {}})
    agent.finish(await agent.accept())
    await login
    await turn
    await client.close()
    await agent.leave()


@pytest.mark.requirement("8.5.3", "8.5.11")
@both_versions
async def test_a_turn_that_goes_on_is_not_disturbed_and_one_that_does_not_is_cancelled(version: int) -> None:
    async with connected(version, timeouts=QUICK) as (client, agent):
        session = await new_session(client, agent)
        answer = asyncio.ensure_future(session.ask("go"))
        number = await agent.accept()
        for _ in range(10):  # half a second in all, never a fifth of one without a word
            agent.tell("word ")
            await asyncio.sleep(0.05)
        assert not answer.done()
        await agent.request("session/cancel")
        agent.finish(number, "cancelled")
        assert await timed_out(answer) == "the agent has told nothing for 0.2 s; the turn was cancelled"
        assert client.state == "ready"
        again = asyncio.ensure_future(session.ask("again"))
        agent.finish(await agent.accept())
        assert (await again).stop_reason == "end_turn"


async def test_a_silent_turn_is_logged_without_what_was_said(caplog: pytest.LogCaptureFixture) -> None:
    async with connected(1, timeouts=QUICK) as (client, agent):
        session = await new_session(client, agent)
        answer = asyncio.ensure_future(session.ask("private"))
        number = await agent.accept()
        await agent.request("session/cancel")
        agent.finish(number, "cancelled")
        await timed_out(answer)
    said = [record.getMessage() for record in caplog.records if record.name == "dragoman.client.timeouts"]
    assert said == ["a turn was silent for 0.2 s and is cancelled"]


async def test_what_was_told_before_the_silence_is_read_first() -> None:
    async with connected(1, timeouts=QUICK) as (client, agent):
        session = await new_session(client, agent)
        turn = session.prompt("go")
        number = await agent.accept()
        agent.tell("first", "second")
        await agent.request("session/cancel")
        agent.finish(number, "cancelled")
        texts: list[str] = []

        async def read() -> None:
            async for event in turn:
                texts.append(getattr(event, "text", ""))

        await timed_out(read())
        assert [text for text in texts if text] == ["first", "second"]


async def turn_of(client: Client, folder: Path) -> str:
    session = await client.new_session(folder)
    return await timed_out(session.ask("go"))


async def test_an_agent_that_understands_only_a_withdrawal_is_told_so(tmp_path: Path) -> None:
    # A process of its own gets a second to react, however busy the machine is.
    async with connect(rough("stubborn"), timeouts=Timeouts(prompt_idle=0.2, grace=1)) as client:
        message = await turn_of(client, tmp_path)
        assert message.endswith("did not react to session/cancel; the prompt was withdrawn")
        assert client.state == "ready"


async def test_an_agent_that_understands_nothing_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHILD_EXIT_SECONDS", 0.05)
    monkeypatch.setattr(limits, "CHILD_TERM_SECONDS", 0.1)
    async with connect(rough("silent", "deaf"), timeouts=Timeouts(prompt_idle=0.2, grace=0.2)) as client:
        message = await turn_of(client, tmp_path)
        assert message.endswith("reacted neither to session/cancel nor to $/cancel_request; it was stopped")
        await client.wait_until_closed()
        assert client.state == "failed"
        assert isinstance(client.failure, TimedOut)
        assert client._connection._child is not None
        assert not lives(client._connection._child.pid)


@both_versions
async def test_the_clock_stands_still_while_the_user_is_asked(version: int) -> None:
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def think(request: Any) -> str:
        return await answer

    async with connected(version, timeouts=QUICK, permission=think) as (client, agent):
        session = await new_session(client, agent)
        turn = asyncio.ensure_future(session.ask("go"))
        request = asyncio.ensure_future(client.request("_x"))
        number = await agent.accept()
        agent.say(permission(version))
        await until(lambda: client.state == "waiting for you")
        await asyncio.sleep(0.5)
        assert (turn.done(), request.done(), said(agent, "session/cancel")) == (False, False, [])
        answer.set_result("yes")
        agent.say({"id": (await agent.request("_x"))["id"], "result": {}})
        await request
        await agent.request("session/cancel")  # now it counts again
        agent.finish(number, "cancelled")
        await timed_out(turn)


async def test_the_clock_stands_still_while_the_agent_waits_for_us() -> None:
    reading: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def read(request: Any) -> str:
        return await reading

    async with connected(1, timeouts=QUICK, read_text_file=read) as (client, agent):
        session = await new_session(client, agent)
        turn = asyncio.ensure_future(session.ask("go"))
        number = await agent.accept()
        agent.say({"id": "r", "method": "fs/read_text_file", "params": {"sessionId": "s", "path": "/x"}})
        await asyncio.sleep(0.5)
        assert said(agent, "session/cancel") == []
        reading.set_result("text")
        agent.finish(number)
        assert (await turn).stop_reason == "end_turn"


async def test_a_caller_that_is_cancelled_is_not_told_of_time() -> None:
    async with connected(1, timeouts=QUICK) as (client, agent):
        asking = asyncio.ensure_future(client.request("_x"))
        await agent.request("_x")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_states_of_a_connection() -> None:
    states = [connect(rough()).state]
    async with connected(1) as (client, agent):
        states.append(client.state)
        session = await new_session(client, agent)
        turn = asyncio.ensure_future(session.ask("go"))
        number = await agent.accept()
        states.append(client.state)
        agent.finish(number)
        await turn
        states.append(client.state)
    states.append(client.state)
    assert states == ["configured", "ready", "busy", "ready", "stopped"]
