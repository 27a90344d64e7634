"""The connection behind every wire form: how long it stays, what it shares, and when it asks again."""

import asyncio
import ssl

import httpx2
import pytest

from dragoman.coder.models.contract import ModelFailed, TextDelta
from dragoman.coder.models.wires.http import new_client
from tests.coder.models.asking import PATIENT, ask, connected, endpoint
from tests.support.provider_streams import anthropic_thinks_says_and_calls
from tests.support.upstream import DONE, Exchange, answers, chat, chat_says, upstream


async def test_a_server_that_does_not_end_its_stream_is_not_waited_for() -> None:
    async def stays(exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.chunk(chat({"content": "Hello"}, "stop") + DONE)
        await exchange.hung_up()

    async with upstream(stays, chat_says("Hello")) as up, connected(endpoint(up)) as model:
        async with asyncio.timeout(PATIENT.chunk / 2):
            assert TextDelta("Hello") in await ask(model)
            await up.ended.wait()
        assert TextDelta("Hello") in await ask(model)
        assert up.connections == 2


async def test_events_that_are_cut_anywhere_are_whole_again() -> None:
    whole = chat({"content": "Hel"}) + chat({"content": "lo"}, "stop") + DONE

    async def drips(exchange: Exchange) -> None:
        await exchange.begin_stream()
        for at in range(len(whole)):
            await exchange.chunk(whole[at : at + 1])
        await exchange.write(b"0\r\n\r\n")

    async with upstream(drips) as up, connected(endpoint(up)) as model:
        assert (await ask(model))[0] == TextDelta("Hello")


async def test_a_request_that_can_do_with_less_is_made_again_once() -> None:
    words = "messages.1.content.0: the signature is invalid. The block is bound to a different conversation."
    refuses = answers(400, {"type": "error", "error": {"type": "invalid_request_error", "message": words}})
    replies = refuses, anthropic_thinks_says_and_calls(), refuses
    async with upstream(*replies) as up, connected(endpoint(up, "anthropic", "claude-opus-5-5")) as model:
        assert TextDelta("Reading") in await ask(model)
        with pytest.raises(ModelFailed, match="bound to a different conversation"):
            await ask(model)
    assert ["anthropic-beta" in request.headers for request in up.requests] == [False, True, True]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [({"retry_after_ms": "250"}, 0.25), ({"retry_after": "7"}, 7.0), ({"retry_after": "-1"}, None)],
)
async def test_what_a_server_asks_to_wait_is_passed_on(header: dict[str, str], seconds: float | None) -> None:
    async with upstream(answers(429, {"error": {"message": "slow"}}, **header)) as up, connected(endpoint(up)) as model:
        with pytest.raises(ModelFailed) as caught:
            await ask(model)
    assert caught.value.retry_seconds == seconds


async def test_the_list_of_authorities_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[ssl.SSLContext] = []
    make = httpx2.create_ssl_context

    def counted() -> ssl.SSLContext:
        made.append(make(trust_env=False))
        return made[-1]

    monkeypatch.setenv("SSL_CERT_DIR", "/nowhere/but/here")
    monkeypatch.setattr(httpx2, "create_ssl_context", counted)
    for _ in range(2):
        await new_client("https://models.example.org/v1", PATIENT).aclose()
    assert len(made) == 1


async def test_a_redirect_and_a_compressed_answer_are_not_asked_for() -> None:
    async with upstream(chat_says("Hello")) as up, connected(endpoint(up)) as model:
        await ask(model)
    headers = up.requests[0].headers
    assert (headers["accept-encoding"], headers["accept"]) == ("identity", "text/event-stream")
    assert headers["user-agent"].startswith("dragoman/")
