"""A prompt that its client sends twice, under one operation id, is accepted once and answered twice."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from dragoman.agent.agent import Agent
from dragoman.errors import RequestFailed
from dragoman.gateway import prompt_ledger
from dragoman.gateway.prompt_ledger import RETENTION_SECONDS, PromptLedger
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import Idle
from dragoman.vocabulary.requests import PromptAccepted, PromptRequest
from tests.support.gateway import RawHttp, gateway, raw_http
from tests.support.messages import Message, prompt, texts, updates
from tests.support.waiting import until

from .counters import counters

pytestmark = pytest.mark.anyio
both_versions = pytest.mark.parametrize("version", [1, 2])


class Once:
    """An agent that counts its turns, and waits in each until it may go on."""

    def __init__(self) -> None:
        self.turns = 0
        self.go_on = asyncio.Event()
        self.agent = Agent("once")

        @self.agent.prompt
        async def reply(session: Any, prompt: Any) -> None:
            self.turns += 1
            await session.say("begun ")
            await self.go_on.wait()
            if "fail" in prompt.text:
                raise RequestFailed(-32000, "It is broken")
            await session.say("done ")


def operation(id: int, session_id: str, name: object = "op-1", text: str = "go") -> Message:
    message = prompt(id, session_id, text)
    message["params"]["_meta"] = {"dragoman/operationId": name}
    return message


async def send(raw: RawHttp, message: Message) -> None:
    assert (await raw.post(message, message["params"]["sessionId"])).status_code == 202


async def join(raw: RawHttp, session_id: str) -> None:
    """Read a session from a further connection."""
    assert await raw.open(session_id) == 200


async def outcome(raw: RawHttp, id: int, version: int) -> Any:
    """What a prompt came to: the answer of version 1, and in version 2 the answer and the end of its turn."""
    answer = await raw.answer(id)
    if version == 1 or "error" in answer:
        return answer.get("result") or answer["error"]
    await until(lambda: "idle" in updates(raw.heard))
    ends = [m["params"]["update"] for m in raw.heard if updates([m]) == ["idle"]]
    return answer["result"], ends[-1]["stopReason"]


@pytest.mark.requirement("K25")
@both_versions
async def test_a_repeat_on_another_connection_waits_for_the_turn_of_the_first(version: int, tmp_path: Path) -> None:
    once = Once()
    async with (
        gateway(once.agent, tmp_path) as served,
        raw_http(served, version) as first,
        raw_http(served, version) as second,
    ):
        session_id = await first.session()
        await send(first, operation(2, session_id))
        await until(lambda: texts(first.heard))
        await join(second, session_id)
        await send(second, operation(7, session_id))
        once.go_on.set()
        assert await outcome(second, 7, version) == await outcome(first, 2, version)
        assert once.turns == 1


@pytest.mark.requirement("K25")
@both_versions
async def test_a_repeat_after_the_turn_gets_the_answer_of_the_first(version: int, tmp_path: Path) -> None:
    once = Once()
    once.go_on.set()
    async with (
        gateway(once.agent, tmp_path) as served,
        raw_http(served, version) as first,
        raw_http(served, version) as second,
    ):
        session_id = await first.session()
        await send(first, operation(2, session_id))
        expected = await outcome(first, 2, version)
        await send(first, operation(3, session_id))
        assert await outcome(first, 3, version) == expected
        await join(second, session_id)
        second.heard.clear()
        await send(second, operation(7, session_id))
        assert await outcome(second, 7, version) == expected
        assert once.turns == 1
        # It is told to the one that has asked, and the session goes on.
        await send(second, operation(8, session_id, "op-2"))
        await outcome(second, 8, version)
        assert once.turns == 2


@pytest.mark.parametrize("again", [2, 3])
async def test_a_repeat_on_the_same_connection_while_the_turn_runs_is_answered_with_it(
    again: int, tmp_path: Path
) -> None:
    once = Once()
    async with gateway(once.agent, tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        await send(raw, operation(2, session_id))
        await until(lambda: texts(raw.heard))
        await send(raw, operation(again, session_id))
        await send(raw, prompt(9, session_id))  # another prompt is refused as before
        assert (await raw.answer(9))["error"]["data"] == {"reason": "busy"}
        once.go_on.set()
        assert [(await raw.answer(id))["result"]["stopReason"] for id in (2, again)] == ["end_turn", "end_turn"]
        assert once.turns == 1


async def test_a_failed_turn_fails_again(tmp_path: Path) -> None:
    once = Once()
    once.go_on.set()
    async with gateway(once.agent, tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        for id in (2, 3):
            await send(raw, operation(id, session_id, text="fail"))
            assert (await raw.answer(id))["error"]["message"] == "It is broken"
        assert once.turns == 1


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [("op-1", "other", "operation_conflict"), ("", "go", "operation_id"), (7, "go", "operation_id")],
)
async def test_another_prompt_under_the_same_id_is_refused(
    name: object, text: str, reason: str, tmp_path: Path
) -> None:
    once = Once()
    once.go_on.set()
    async with gateway(once.agent, tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        await send(raw, operation(2, session_id))
        await raw.answer(2)
        await send(raw, operation(3, session_id, name, text))
        assert (await raw.answer(3))["error"]["data"] == {"reason": reason}
        assert once.turns == 1


async def test_the_same_id_in_another_session_is_another_operation(tmp_path: Path) -> None:
    once = Once()
    once.go_on.set()
    async with gateway(once.agent, tmp_path) as served, raw_http(served) as raw:
        for id in (1, 3):
            session_id = await raw.session(id)
            await send(raw, operation(id + 1, session_id))
            await raw.answer(id + 1)
        assert once.turns == 2


@pytest.mark.requirement("K25")
async def test_a_prompt_whose_agent_died_is_not_given_to_the_next_process(tmp_path: Path) -> None:
    async with gateway(counters(tmp_path / "agent"), tmp_path) as served, raw_http(served) as raw:
        session_id = await raw.session()
        await send(raw, operation(2, session_id, text="die"))
        error = (await raw.answer(2))["error"]
        await send(raw, operation(3, session_id, text="die"))
        assert (await raw.answer(3))["error"] == error
        # The agent starts again for another one.
        await send(raw, operation(4, session_id, "op-2", "hi"))
        assert "result" in await raw.answer(4)
        await send(raw, operation(5, session_id, text="die"))
        assert (await raw.answer(5))["error"] == error


async def test_initialize_says_how_long_an_operation_is_known(tmp_path: Path) -> None:
    async with gateway(Once().agent, tmp_path) as served, raw_http(served, greet=False) as raw:
        result = (await raw.hello(1))["result"]
        assert result["_meta"]["dragoman/operationId"] == {"retentionSeconds": 3600}


# -- the ledger itself -----------------------------------------------------------------------------------------------


def request(name: str) -> PromptRequest:
    return PromptRequest("s", [Text("go")], meta={"dragoman/operationId": name})


@pytest.mark.requirement("K25")
async def test_what_is_kept_is_bounded_for_each_principal_and_what_runs_goes_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prompt_ledger, "EACH", 3)
    monkeypatch.setattr(prompt_ledger, "ALL", 5)
    now = itertools.count()
    ledger = PromptLedger(lambda: float(next(now)))
    other, _ = await ledger.begin("bob", request("0"))
    running, _ = await ledger.begin("ada", request("0"))
    for number in range(1, 20):
        ended, is_first = await ledger.begin("ada", request(str(number)))
        assert ended is not None and is_first
        ended.accept(PromptAccepted("m"))
        ended.finish(Idle("end_turn"))
    assert await ledger.begin("ada", request("0")) == (running, False)
    assert await ledger.begin("bob", request("0")) == (other, False)
    assert (await ledger.begin("ada", request("1")))[1] is True  # it was evicted
    for number in range(10):
        await ledger.begin(f"p{number}", request("0"))
    assert ledger._count == sum(len(own) for own in ledger._operations.values()) == 5


async def test_an_operation_is_forgotten_when_its_time_is_over() -> None:
    loop = asyncio.get_running_loop()
    passed = 0.0
    ledger = PromptLedger(lambda: loop.time() + passed)
    first, _ = await ledger.begin("ada", request("a"))
    assert first is not None
    first.finish(Idle("end_turn"))
    passed = RETENTION_SECONDS - 10
    assert await ledger.begin("ada", request("a")) == (first, False)
    passed = RETENTION_SECONDS + 10
    again, is_first = await ledger.begin("ada", request("a"))
    assert is_first and again is not first


async def test_a_prompt_that_was_refused_may_be_sent_again() -> None:
    ledger = PromptLedger(asyncio.get_running_loop().time)
    first, _ = await ledger.begin("ada", request("a"))
    assert first is not None
    await ledger.forget(first)
    first.fail(RequestFailed(-32000, "full"))
    with pytest.raises(RequestFailed, match="full"):
        await first.reply()
    assert (await ledger.begin("ada", request("a")))[1] is True
    assert await ledger.begin("ada", PromptRequest("s", [Text("go")])) == (None, True)
