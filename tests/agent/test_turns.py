"""Turns as a client sees them: one end each, whatever the handler does."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from dragoman import limits
from dragoman.agent.agent import Agent
from dragoman.agent.session import Prompt, Session
from dragoman.errors import AUTH_REQUIRED, LinkClosed, RequestFailed
from dragoman.vocabulary.events import AnyEvent, Idle, Usage
from tests.support.messages import Message, prompt, texts, updates
from tests.support.served_agent import Reporting, end_of_turn, opened, served
from tests.support.versions import both_versions
from tests.support.waiting import settled, until

pytestmark = pytest.mark.anyio


def cancel(session_id: str) -> Message:
    return {"method": "session/cancel", "params": {"sessionId": session_id}}


@pytest.mark.requirement("B16")
@both_versions
async def test_all_updates_of_a_turn_leave_before_its_end_and_nothing_after(version: int) -> None:
    agent = Agent("x")

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        for number in range(1000):
            await session.say(f"{number} ")

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        assert await end_of_turn(wire, 2, version) == {"stopReason": "end_turn"}
        await settled()
        assert texts(wire.heard) == [f"{number} " for number in range(1000)]
        last = wire.heard[-1]
        assert last.get("id") == 2 if version == 1 else last["params"]["update"]["state"] == "idle"


@both_versions
async def test_a_generator_says_what_it_yields_and_its_last_word_is_how_it_ends(version: int) -> None:
    agent = Agent("x")

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> AsyncGenerator[str | AnyEvent, None]:
        yield "one"
        yield "two"
        yield Idle(stop_reason="max_tokens", usage=Usage(3, 2, 1))

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        end = await end_of_turn(wire, 2, version)
        assert (texts(wire.heard), end["stopReason"]) == (["one", "two"], "max_tokens")


@both_versions
async def test_the_usage_of_one_turn_is_not_told_again_with_the_next(version: int) -> None:
    agent = Agent("x")

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        if prompt.text == "first":
            session.usage = Usage(3, 2, 1)

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        found = []
        for id, text in ((2, "first"), (3, "second")):
            wire.say(prompt(id, session_id, text))
            await end_of_turn(wire, id, version)
            await settled()
            end = wire.heard[-1]["result"] if version == 1 else wire.heard[-1]["params"]["update"]
            found.append((end["stopReason"], end.get("usage")))
        usage = {"totalTokens": 3, "inputTokens": 2, "outputTokens": 1}
        assert found == [("end_turn", usage), ("end_turn", None)]


@pytest.mark.requirement("C5")
@both_versions
async def test_a_second_prompt_is_refused_while_the_first_runs_and_taken_after_it(version: int) -> None:
    agent = Agent("x")
    going = asyncio.Event()

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        await session.say(prompt.text)
        await going.wait()

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id, "a"), prompt(3, session_id, "b"))
        refused = await wire.answer(3)
        assert (refused["error"]["code"], refused["error"]["data"]) == (-32600, {"reason": "busy"})
        going.set()
        assert await end_of_turn(wire, 2, version) == {"stopReason": "end_turn"}
        wire.say(prompt(4, session_id, "c"))
        await end_of_turn(wire, 4, version)
        assert texts(wire.heard) == ["a", "c"]


@both_versions
async def test_a_client_that_has_read_the_end_may_prompt_at_once(version: int) -> None:
    agent = Agent("x")

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        await session.say("x" * 70_000)

    async with served(agent, version, capacity=1000) as wire:
        session_id = await opened(wire)
        for id in range(2, 12):
            wire.say(prompt(id, session_id))
            await end_of_turn(wire, id, version)
        assert [m for m in wire.heard if "error" in m] == []


@pytest.mark.requirement("C6", "C7")
@both_versions
@pytest.mark.parametrize("when", ["at once", "while it waits", "storm"])
async def test_a_cancelled_turn_ends_once_as_cancelled(version: int, when: str) -> None:
    agent = Agent("x")
    states = [""]

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        states.append("began")
        try:
            await asyncio.sleep(60)  # until it is cancelled: its end is not waited for
        except asyncio.CancelledError:
            states.append("cancelled")
            raise

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        if when != "at once":
            await until(lambda: states[-1] == "began")
        wire.say(*[cancel(session_id)] * (1000 if when == "storm" else 1))
        assert await end_of_turn(wire, 2, version) == {"stopReason": "cancelled"}
        wire.say(cancel(session_id), prompt(3, session_id))
        await until(lambda: states[-1] == "began")
        await settled()
        assert len(await wire.answers(2)) == 1
        assert updates(wire.heard).count("idle") == (0 if version == 1 else 1)


@pytest.mark.requirement("C6")
@both_versions
@pytest.mark.parametrize("how", ["it returns", "with a reason", "with an error", "with an error of the protocol"])
async def test_a_cancelled_turn_ends_as_cancelled_however_its_handler_does(version: int, how: str) -> None:
    agent = Reporting("x")

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> str | None:
        await session.say("begun")
        try:
            await asyncio.sleep(60)  # until it is cancelled: its end is not waited for
        except asyncio.CancelledError:
            if how == "with an error":
                raise OSError("the connection was closed") from None
            if how == "with an error of the protocol":
                raise RequestFailed(AUTH_REQUIRED, "Log in first") from None
        return "refusal" if how == "with a reason" else None

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        await until(lambda: texts(wire.heard) == ["begun"])
        wire.say(cancel(session_id))
        assert await end_of_turn(wire, 2, version) == {"stopReason": "cancelled"}
    assert agent.bugs == []


@pytest.mark.requirement("C6")
@both_versions
async def test_a_cancel_without_a_turn_or_a_session_changes_nothing(version: int) -> None:
    agent = Agent("x")

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        await session.say("here")

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(cancel(session_id), cancel("nobody"), prompt(2, session_id))
        assert await end_of_turn(wire, 2, version) == {"stopReason": "end_turn"}


@both_versions
async def test_cancelling_the_prompts_request_cancels_the_turn(version: int) -> None:
    agent = Agent("x")

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        await session.say("begun")
        await asyncio.sleep(60)

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        await until(lambda: texts(wire.heard) == ["begun"])
        wire.say({"method": "$/cancel_request", "params": {"requestId": 2}})
        if version == 1:  # in version 2 the prompt has its answer already: the cancel names nothing
            assert await end_of_turn(wire, 2, version) == {"stopReason": "cancelled"}


@both_versions
async def test_a_handler_that_ignores_its_cancellation_is_left_behind_and_nothing_of_it_leaves(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CANCEL_GRACE_SECONDS", 0.02)
    agent = Agent("x")
    said: list[str] = []
    going = asyncio.Event()

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        await session.say("before")
        while not going.is_set():
            try:
                await going.wait()
            except asyncio.CancelledError:
                pass
        for attempt in ("say", "emit", "ask", "notify"):
            try:
                match attempt:
                    case "say":
                        await session.say("after")
                    case "emit":
                        await session.set_title("after")
                    case "ask":
                        await session.ask_permission("after")
                    case _:
                        await session.notify("_after")
                said.append(attempt)
            except asyncio.CancelledError:
                said.append(f"{attempt}: cancelled")

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        await until(lambda: texts(wire.heard) == ["before"])
        wire.say(cancel(session_id))
        assert await end_of_turn(wire, 2, version) == {"stopReason": "cancelled"}
        heard = len(wire.heard)
        going.set()
        await until(lambda: len(said) == 4)
        await settled()
        assert said == ["say: cancelled", "emit: cancelled", "ask: cancelled", "notify: cancelled"]
        assert wire.heard[heard:] == []


@both_versions
async def test_what_a_handlers_own_tasks_say_after_the_turn_does_not_leave(version: int) -> None:
    agent = Agent("x")
    child: list[asyncio.Task[None]] = []
    going = asyncio.Event()

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        async def later() -> None:
            await going.wait()
            await session.say("too late")

        child.append(asyncio.ensure_future(later()))

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        await end_of_turn(wire, 2, version)
        going.set()
        await asyncio.wait(child)
        await settled()
        assert (child[0].cancelled(), texts(wire.heard)) == (True, [])


@both_versions
async def test_what_is_said_while_the_end_waits_for_room_does_not_leave_behind_it(version: int) -> None:
    agent = Agent("x")
    child: list[asyncio.Task[None]] = []
    going = asyncio.Event()

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        async def later() -> None:
            await going.wait()
            await session.say("too late")

        child.append(asyncio.ensure_future(later()))
        await session.say("x" * (2 * limits.OUTBOX_BYTES))

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.pause()
        wire.say(prompt(2, session_id))
        await until(lambda: bool(child))
        await settled()
        going.set()
        await asyncio.wait(child)
        wire.resume()
        await end_of_turn(wire, 2, version)
        await settled()
        assert (child[0].cancelled(), len(texts(wire.heard))) == (True, 1)


@both_versions
async def test_cleaning_up_after_a_cancel_may_still_speak(version: int) -> None:
    agent = Agent("x")

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        async with session.tool("Build", id="call_1") as call:
            await call.add("building")
            await asyncio.sleep(60)

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        await until(lambda: "building" in str(wire.heard))
        wire.say(cancel(session_id))
        await end_of_turn(wire, 2, version)
        calls = [m["params"]["update"] for m in wire.heard if "call_1" in str(m)]
        assert calls[-1]["status"] == ("failed" if version == 1 else "cancelled")


@pytest.mark.requirement("B15")
@both_versions
async def test_a_handlers_bug_is_told_without_its_text_and_the_session_goes_on(version: int) -> None:
    agent = Reporting("x")

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        if prompt.text == "fail":
            raise OSError("/secret/path")
        await session.say("fine")

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id, "fail"))
        assert await end_of_turn(wire, 2, version) == {"error": {"code": -32603, "message": "Internal error"}}
        wire.say(prompt(3, session_id))
        await until(lambda: texts(wire.heard) == ["fine"])
        assert "secret" not in str(wire.heard)
        assert [str(bug) for bug in agent.bugs] == ["/secret/path"]


@both_versions
async def test_an_error_written_for_the_client_reaches_it_whole(version: int) -> None:
    agent = Agent("x")

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        raise RequestFailed(AUTH_REQUIRED, "Log in first", {"reason": "auth"})

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        error = {"code": AUTH_REQUIRED, "message": "Log in first", "data": {"reason": "auth"}}
        assert await end_of_turn(wire, 2, version) == {"error": error}


@both_versions
async def test_another_connection_that_closes_under_a_handler_is_a_failure_of_the_turn_and_not_its_silence(
    version: int,
) -> None:
    agent = Reporting("x")

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        raise LinkClosed("another agent went away")

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        assert (await end_of_turn(wire, 2, version))["error"]["code"] == -32603


@both_versions
@pytest.mark.parametrize("what", ["usage", "data"])
async def test_an_end_that_no_wire_can_say_is_said_without_what_cannot_be_said(version: int, what: str) -> None:
    agent = Reporting("x")

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        if what == "usage":
            session.usage = {"input": 1}  # type: ignore[assignment]
        else:
            raise RequestFailed(-1, "no", object())

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        end = await end_of_turn(wire, 2, version)
        expected: dict[str, Any] = {"error": {"code": -1, "message": "no"}}
        assert end == ({"stopReason": "end_turn"} if what == "usage" else expected)
        assert len(agent.bugs) == 1


@pytest.mark.requirement("C8")
@both_versions
async def test_closing_a_session_ends_its_turn_first_and_then_it_is_gone(version: int) -> None:
    agent = Agent("x")

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        await session.say("begun")
        await asyncio.sleep(60)

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        await until(lambda: texts(wire.heard) == ["begun"])
        wire.say({"id": 3, "method": "session/close", "params": {"sessionId": session_id}}, prompt(4, session_id))
        assert (await wire.answer(3))["result"] == {}
        # The prompt was read behind the close and before the turn had ended: the session is still busy with that.
        busy = {"code": -32600, "message": "The session is busy", "data": {"reason": "busy"}}
        assert (await wire.answer(4))["error"] == busy
        assert await end_of_turn(wire, 2, version) == {"stopReason": "cancelled"}
        (end,) = [at for at, message in enumerate(wire.heard) if '"cancelled"' in json.dumps(message)]
        assert end < wire.heard.index(await wire.answer(3))
        wire.say(prompt(5, session_id))
        assert (await wire.answer(5))["error"]["data"] == {"sessionId": session_id}


@pytest.mark.requirement("C8")
@both_versions
async def test_when_the_client_has_said_its_last_word_its_turn_still_ends_as_cancelled(version: int) -> None:
    agent = Agent("x")

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        await session.say("begun")
        await asyncio.sleep(60)

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        await until(lambda: texts(wire.heard) == ["begun"])
        wire.end()
        assert await end_of_turn(wire, 2, version) == {"stopReason": "cancelled"}
        await until(lambda: wire.lost == [None])


@both_versions
async def test_after_the_last_word_a_stubborn_handler_is_not_waited_for(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "EOF_ANSWER_SECONDS", 0.1)
    agent = Agent("x")
    going = asyncio.Event()

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        await session.say("begun")
        while not going.is_set():
            try:
                await going.wait()
            except asyncio.CancelledError:
                pass

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        await until(lambda: texts(wire.heard) == ["begun"])
        wire.end()
        assert await end_of_turn(wire, 2, version) == {"stopReason": "cancelled"}
        await until(lambda: wire.lost == [None])
    going.set()
    await settled()


@both_versions
async def test_a_slash_command_has_its_own_handler(version: int) -> None:
    agent = Agent("x")

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        await session.say("plain")

    @agent.command("/help", "What I can do", hint="topic")
    async def show_help(session: Session, prompt: Prompt) -> None:
        await session.say("help")

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        for id, text in ((2, "/help me"), (3, "/helpme"), (4, "help")):
            wire.say(prompt(id, session_id, text))
            await end_of_turn(wire, id, version)
        assert texts(wire.heard) == ["help", "plain", "plain"]
        assert "What I can do" in str(wire.heard)


@both_versions
@pytest.mark.parametrize("before", [[], [{"type": "text", "text": " \n"}]])
async def test_an_attached_file_that_reads_like_a_slash_command_is_none(version: int, before: list[object]) -> None:
    agent = Agent("x")

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        await session.say(prompt.text.strip())

    @agent.command("/wipe", "Forget everything")
    async def wipe(session: Session, prompt: Prompt) -> None:
        await session.say("wiped")

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        asked = prompt(2, session_id)
        file = {"type": "resource", "resource": {"uri": "file:///notes.txt", "text": "/wipe"}}
        asked["params"]["prompt"] = [*before, file]
        wire.say(asked)
        await end_of_turn(wire, 2, version)
        assert texts(wire.heard) == ["/wipe"]
