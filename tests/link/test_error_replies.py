"""An error reply is bounded and counted as a result is, and repeats little of what the peer sent."""

import json

import pytest

from dragoman import limits
from dragoman.agent.session import Prompt, Session
from dragoman.errors import RequestFailed
from dragoman.vocabulary.asking import Reply, Request
from tests.support.links import agent_link, ping
from tests.support.messages import Message, prompt
from tests.support.served_agent import Reporting, end_of_turn, opened, served
from tests.support.versions import both_versions
from tests.support.waiting import settled, until

REST = "(the rest of this error was too large to be sent)"


@pytest.mark.parametrize("later", [False, True], ids=["at once", "later"])
async def test_an_error_over_the_limit_keeps_its_code_and_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, later: bool
) -> None:
    async with agent_link() as end:
        errors = [RequestFailed(-32042, "no", {"x": "y" * 5000}), RequestFailed(-32043, "n" * 5000)]

        def fail(request: Request) -> Reply:
            raise errors.pop(0)

        async def fail_later(request: Request) -> Reply:
            raise errors.pop(0)

        end.above.answer = fail_later if later else fail
        monkeypatch.setattr(limits, "FRAME_BYTES", 1000)
        end.wire.say(ping(1))
        assert (await end.wire.answer(1))["error"] == {"code": -32042, "message": f"no {REST}"}
        end.wire.say(ping(2))
        assert (await end.wire.answer(2))["error"] == {"code": -32043, "message": f"{'n' * 200}… {REST}"}


async def test_an_error_at_the_limit_is_sent_whole() -> None:
    async with agent_link() as end:
        data = {"x": "y" * limits.MIB}

        def fail(request: Request) -> Reply:
            raise RequestFailed(-32042, "no", data)

        end.above.answer = fail
        end.wire.say(ping(1))
        assert (await end.wire.answer(1))["error"] == {"code": -32042, "message": "no", "data": data}


async def test_errors_wait_for_room_as_results_do() -> None:
    async with agent_link() as end:

        def fail(request: Request) -> Reply:
            raise RequestFailed(-32042, "no", "y" * (3 * limits.MIB))

        end.above.answer = fail
        end.wire.pause()
        end.wire.say(*(ping(id) for id in range(1, 11)))
        await settled()
        assert 2 * limits.MIB < end.link.outbox.size <= limits.OUTBOX_BYTES
        end.wire.resume()
        for id in range(1, 11):
            assert (await end.wire.answer(id))["error"]["code"] == -32042


@pytest.mark.parametrize("data", [object(), {"x": "\ud800"}, {1: {object()}}], ids=["object", "surrogate", "set"])
async def test_data_that_no_json_can_carry_is_left_out_of_an_error(data: object) -> None:
    async with agent_link() as end:

        def fail(request: Request) -> Reply:
            raise RequestFailed(-32042, "no", data)

        end.above.answer = fail
        end.wire.say(ping(1))
        assert (await end.wire.answer(1))["error"] == {"code": -32042, "message": "no"}


@both_versions
async def test_a_huge_id_is_refused_and_not_repeated(version: int) -> None:
    async with served(_quiet(), version) as wire:
        for id in ("i" * (limits.ID_CHARACTERS + 1), "i" * (8 * limits.MIB)):
            before = wire.received
            wire.say({"id": id, "method": "session/list", "params": {}})
            await until(lambda: wire.received > before)  # noqa: B023  # it is done before the next round
            assert (wire.heard[-1]["id"], wire.heard[-1]["error"]["code"]) == (None, -32600)
            assert wire.received - before < 1000
        longest = "i" * limits.ID_CHARACTERS
        wire.say({"id": longest, "method": "session/list", "params": {}})
        assert "result" in await wire.answer(longest)


HUGE = "x" * (4 * limits.MIB)
REQUESTS: dict[str, Message] = {
    "method": {"method": HUGE, "params": {}},
    "extension": {"method": f"_{HUGE}", "params": {}},
    "session": {"method": "session/prompt", "params": {"sessionId": HUGE, "prompt": [{"type": "text", "text": "x"}]}},
    "path": {"method": "session/new", "params": {"cwd": HUGE, "mcpServers": []}},
    "absolute path": {"method": "session/new", "params": {"cwd": f"/{HUGE}", "mcpServers": []}},
    "wrong type": {"method": "session/new", "params": {"cwd": [HUGE], "mcpServers": {HUGE: HUGE}}},
    "bad initialize": {"method": "initialize", "params": {"protocolVersion": HUGE}},
    "login": {"method": "authenticate", "params": {"methodId": HUGE}},
}


@pytest.mark.parametrize("name", REQUESTS)
@both_versions
async def test_huge_input_comes_back_as_a_short_error(name: str, version: int) -> None:
    async with served(_quiet(), version) as wire:
        before = wire.received
        wire.say({"id": 1, **REQUESTS[name]})
        answer = await wire.answer(1)
        assert isinstance(answer["error"]["code"], int)
        assert wire.received - before < 8 * limits.KIB


@pytest.mark.parametrize("update", ["configId", "value"])
@both_versions
async def test_a_huge_option_comes_back_as_a_short_error(update: str, version: int) -> None:
    async with served(_quiet(), version) as wire:
        session_id = await opened(wire)
        before = wire.received
        params = {"sessionId": session_id, "configId": "c", "value": "v", "type": "id", update: HUGE}
        wire.say({"id": 2, "method": "session/set_config_option", "params": params})
        assert (await wire.answer(2))["error"]["code"] == -32602
        assert wire.received - before < 8 * limits.KIB


@both_versions
async def test_a_turn_that_fails_with_too_much_still_ends(version: int) -> None:
    agent = Reporting("x")

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None:
        raise RequestFailed(-32042, "\ud800no", {"x": "y" * (limits.FRAME_BYTES + 1)})

    async with served(agent, version) as wire:
        session_id = await opened(wire)
        wire.say(prompt(2, session_id))
        error = (await end_of_turn(wire, 2, version))["error"]
        assert (error["code"], error["message"], len(json.dumps(error)) < 1000) == (-32042, "\ufffdno", True)


def _quiet() -> Reporting:
    agent = Reporting("x")

    @agent.prompt
    async def work(session: Session, prompt: Prompt) -> None: ...

    return agent
