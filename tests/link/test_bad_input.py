"""Bad input and handlers that raise: a code, no text, and the link lives."""

import json
from collections.abc import Awaitable, Callable

import pytest

from dragoman.vocabulary.asking import ExtensionResult, Note, Reply, Request
from tests.support.links import agent_link, codes, ping

pytestmark = pytest.mark.anyio


async def test_bad_input_gets_a_code_and_the_link_lives() -> None:
    async with agent_link() as end:
        end.wire.write(b"hello\n[]\n42\n")
        end.wire.say(
            {"id": 1, "method": "no/such"}, {"id": 2, "method": 7}, {"method": "no/such"}, {"id": 9, "result": 1}
        )
        end.wire.say({"id": 3, "method": "session/prompt", "params": {"sessionId": 5}}, ping(4))
        await end.wire.answer(4)
        assert codes(end.wire.heard) == [-32700, -32600, -32600, -32601, -32600, -32602]
        assert len(end.above.noises) == 2 and end.above.bugs == []


@pytest.mark.requirement("B15")
async def test_a_handlers_bug_is_told_without_its_text() -> None:
    async with agent_link() as end:

        def fail(request: Request) -> Reply:
            raise OSError("/secret")

        async def fail_later(request: Request) -> Reply:
            raise OSError("/secret")

        answers: list[Callable[[Request], Reply | Awaitable[Reply]]] = [fail, fail_later]
        for number, answer in enumerate(answers, 1):
            end.above.answer = answer
            end.wire.say(ping(number))
            error = (await end.wire.answer(number))["error"]
            assert error == {"code": -32603, "message": "Internal error"}
        assert [str(bug) for bug in end.above.bugs] == ["/secret", "/secret"]


async def test_an_answer_that_cannot_be_said_is_a_failure_and_not_a_silence() -> None:
    async with agent_link() as end:
        end.above.answer = lambda request: ExtensionResult(object())
        end.wire.say(ping(1))
        assert (await end.wire.answer(1))["error"]["code"] == -32603
        assert len(end.above.bugs) == 1


async def test_a_handler_that_raises_in_passing_does_not_harm_the_next_message() -> None:
    async with agent_link() as end:
        heard: list[Note] = []

        def on_notification(note: Note) -> None:
            heard.append(note)
            raise ValueError("bug")

        end.above.on_notification = on_notification  # type: ignore[method-assign]
        end.wire.say({"method": "_a", "params": {}}, {"method": "_b", "params": {}}, ping(1))
        await end.wire.answer(1)
        assert (len(heard), len(end.above.bugs)) == (2, 2)


@pytest.mark.requirement("A7")
async def test_a_frame_over_the_limit_is_refused_and_one_at_the_limit_is_heard() -> None:
    async with agent_link(frame_limit=1000) as end:
        for size, id in ((1000, 1), (1001, 2), (900, 3)):
            line = json.dumps({"jsonrpc": "2.0", **ping(id, pad="")}).encode()
            end.wire.write(line.replace(b'"pad": ""', b'"pad": "%b"' % (b"x" * (size - len(line)))) + b"\n")
        await end.wire.answer(3)
        assert (await end.wire.answer(1))["result"] == "done"
        refused = [m for m in end.wire.heard if "error" in m]
        assert [(m["id"], m["error"]["code"], m["error"]["data"]) for m in refused] == [(None, -32600, {"limit": 1000})]
