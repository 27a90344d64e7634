"""A hosted model that fails: in bound, in a kind, in a sentence without a secret. The real client, wicked servers."""

import asyncio
import logging
import math
import re
import traceback
from contextlib import aclosing
from pathlib import Path

import pytest

from dragoman.coder.models.contract import (
    FailureKind,
    ModelFailed,
    ModelFinished,
    ModelRequest,
    Piece,
    TextDelta,
    ToolCallRequested,
)
from dragoman.coder.models.endpoints import Endpoint
from dragoman.coder.models.providers import ProviderModel
from dragoman.coder.retries import RetryPolicy
from dragoman.vocabulary.events import AgentMessageChunk
from tests.coder.models.asking import CANARY, PATIENT, QUICK, ask, connected, endpoint, said, without_raw
from tests.support.upstream import (
    DONE,
    Exchange,
    Reply,
    answers,
    chat,
    chat_call,
    chat_says,
    data,
    streams,
    upstream,
)
from tests.support.whole_agent import events_of, whole


async def hangs(exchange: Exchange) -> None:
    await exchange.hung_up()


async def hangs_in_the_stream(exchange: Exchange) -> None:
    await exchange.begin_stream()
    await exchange.chunk(chat({"content": "Hel"}))
    await exchange.hung_up()


async def drips_bytes(exchange: Exchange) -> None:
    await exchange.begin_stream()
    while True:
        await exchange.chunk(b" ")
        await asyncio.sleep(0.02)


async def drips_words(exchange: Exchange) -> None:
    await exchange.begin_stream()
    while True:
        await exchange.chunk(chat({"content": "a"}))
        await asyncio.sleep(0.02)


async def resets(exchange: Exchange) -> None:
    exchange.reset()
    raise ConnectionResetError


async def resets_in_the_stream(exchange: Exchange) -> None:
    await exchange.begin_stream()
    await exchange.chunk(chat({"content": "Hel"}))
    await exchange.chunk(chat_call(0, id="c", type="function", function={"name": "read_file", "arguments": '{"path"'}))
    exchange.reset()
    raise ConnectionResetError


async def ends_in_the_stream(exchange: Exchange) -> None:
    """No length, no chunks: the end of the connection is the end of the answer, as far as HTTP can tell."""
    await exchange.head(200, content_type="text/event-stream", connection="close")
    await exchange.write(chat({"content": "Hel"}))
    await exchange.write(chat_call(0, id="c", type="function", function={"name": "read_file", "arguments": "{}"}))
    raise ConnectionResetError


BAD_CALL = chat_call(0, id="c", type="function", function={"name": "read_file", "arguments": '{"path": "x'})
NO_OBJECT = chat_call(0, id="c", type="function", function={"name": "read_file", "arguments": '["x"]'})
BROKEN: list[tuple[str, Reply, FailureKind]] = [
    ("resets", resets, "network"),
    ("resets mid-stream", resets_in_the_stream, "network"),
    ("ends mid-stream", ends_in_the_stream, "network"),
    ("garbage for a stream", streams(b"\x00\xff\xfe rubbish\n\n" * 10), "garbage"),
    ("garbage for HTTP", lambda exchange: exchange.write(b"\x16\x03\x01 nonsense\r\n\r\n"), "network"),
    ("half an event", streams(b'data: {"id": "c1", "choices": [{"de\n\n'), "garbage"),
    ("another kind of event", streams(data({"choices": 17}), data([1, 2]), DONE), "garbage"),
    ("200 with half JSON", answers(200, b'{"id": "c1", "choices": [{"de'), "garbage"),
    ("200 with a web page", answers(200, b"<html>hello</html>", content_type="text/html"), "garbage"),
    ("200 with nothing", answers(200, b""), "garbage"),
    ("compressed", answers(200, b"\x1f\x8b\x08 not really", content_encoding="gzip"), "garbage"),
    ("half arguments", streams(BAD_CALL, chat({}, "tool_calls"), DONE), "garbage"),
    ("arguments of another kind", streams(NO_OBJECT, chat({}, "tool_calls"), DONE), "garbage"),
    ("401", answers(401, {"error": {"message": f"Incorrect API key provided: {CANARY}"}}), "auth"),
    ("403", answers(403, {"error": {"message": "no"}}), "auth"),
    ("429", answers(429, {"error": {"message": "slow down"}}), "rate_limit"),
    ("500", answers(500, b"<html>boom</html>", content_type="text/html"), "server"),
    ("503", answers(503, {"error": {"message": "overloaded"}}), "server"),
    ("529", answers(529, b""), "server"),
    ("an error in the stream", streams(data({"error": {"message": "the model crashed", "code": 500}})), "server"),
]


async def heard(model: ProviderModel) -> tuple[list[Piece], ModelFailed]:
    """What was said, and the failure it ended with."""
    pieces: list[Piece] = []
    try:
        async with asyncio.timeout(50), aclosing(model.respond(ModelRequest([said("hi")]))) as coming:
            async for piece in coming:
                pieces.append(piece)
    except ModelFailed as failure:
        return pieces, failure
    raise AssertionError(f"it did not fail, it said {pieces}")


@pytest.mark.parametrize(("reply", "kind"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
async def test_a_broken_provider_ends_the_call_in_bound_with_a_kind(reply: Reply, kind: FailureKind) -> None:
    async with upstream(reply) as up, connected(endpoint(up)) as model:
        pieces, failure = await heard(model)
        assert failure.kind == kind
        assert [piece for piece in pieces if isinstance(piece, ToolCallRequested)] == []
        assert len(up.requests) == 1, "retries are the loop's"
        # And the session stays usable.
        up.replies[:] = [chat_says("Hello")]
        assert TextDelta("Hello") in await ask(model)


@pytest.mark.parametrize("reply", [hangs, hangs_in_the_stream, drips_bytes, drips_words])
async def test_who_takes_too_long_is_left_and_told(reply: Reply) -> None:
    async with upstream(reply) as up, connected(endpoint(up), QUICK) as model:
        _, failure = await heard(model)
        await up.ended.wait()
    assert failure.kind == "network" and str(failure) == f"mine (127.0.0.1:{up.port}) did not answer in time"
    assert len(up.requests) == 1, "retries are the loop's"


@pytest.mark.parametrize("status", [200, 500])
async def test_a_line_without_an_end_is_not_kept(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.coder.models import provider_connection

    monkeypatch.setattr(provider_connection, "ANSWER_BYTES", 3_000_000)
    sent = 0

    async def floods(exchange: Exchange) -> None:
        nonlocal sent
        await exchange.head(status, content_type="text/event-stream", transfer_encoding="chunked")
        while True:
            await exchange.chunk(b"x" * 100_000)
            sent += 100_000

    async with upstream(floods) as up, connected(endpoint(up)) as model:
        with pytest.raises(ModelFailed) as caught:
            await ask(model)
    assert caught.value.kind == "garbage"
    assert sent < 20_000_000  # what was on its way in the kernel's buffers


async def test_who_is_not_there_is_a_network_failure() -> None:
    async with upstream() as up:
        gone = endpoint(up)
    async with connected(gone) as model:
        with pytest.raises(ModelFailed) as caught:
            await ask(model)
    assert re.fullmatch(r"The connection to mine \(127\.0\.0\.1:\d+\) failed: connection refused", str(caught.value))
    assert caught.value.kind == "network"


@pytest.mark.parametrize(
    ("reply", "kind", "wait"),
    [
        (answers(429, {"error": {"message": "slow"}}, retry_after="7"), "rate_limit", 7.0),
        (answers(503, {"error": {"message": "busy"}}, retry_after="3"), "server", 3.0),
        (answers(429, {"error": {"message": "slow"}}, retry_after="soon"), "rate_limit", None),
        (answers(429, {"error": {"message": "pay", "code": "insufficient_quota"}}), "rate_limit", math.inf),
        (answers(400, {"error": {"message": "no such parameter"}}), "server", math.inf),
        (answers(404, {"error": {"message": "no such model"}}), "server", math.inf),
    ],
)
async def test_it_is_known_whether_waiting_helps(reply: Reply, kind: FailureKind, wait: float | None) -> None:
    async with upstream(reply) as up, connected(endpoint(up)) as model:
        with pytest.raises(ModelFailed) as caught:
            await ask(model)
    assert (caught.value.kind, caught.value.retry_seconds) == (kind, wait)


async def test_a_conversation_that_is_too_long_is_told_apart() -> None:
    body = {"error": {"message": "maximum context length is 8 tokens", "code": "context_length_exceeded"}}
    async with upstream(answers(400, body)) as up, connected(endpoint(up)) as model:
        with pytest.raises(ModelFailed, match="too long for mine/m") as caught:
            await ask(model)
    assert type(caught.value).__name__ == "ContextFull"


async def test_what_was_said_before_a_failure_was_said() -> None:
    async with upstream(resets_in_the_stream) as up, connected(endpoint(up)) as model:
        assert (await heard(model))[0] == [TextDelta("Hel")]


async def test_an_answer_cut_off_by_its_length_brings_no_half_call() -> None:
    replies = streams(chat({"content": "Hel"}), BAD_CALL, chat({}, "length"), DONE)
    async with upstream(replies) as up, connected(endpoint(up)) as model:
        assert without_raw(await ask(model)) == [TextDelta("Hel"), ModelFinished("max_tokens")]


async def test_a_redirect_does_not_carry_the_key_away() -> None:
    async with upstream(chat_says("stolen")) as thief:
        moved = answers(307, b"", location=f"{thief.url}/v1/chat/completions")
        async with upstream(moved) as up, connected(endpoint(up)) as model:
            with pytest.raises(ModelFailed, match="another address") as caught:
                await ask(model)
        assert caught.value.retry_seconds == math.inf
        assert thief.requests == []


ECHOES = [
    answers(400, {"error": {"message": f"bad header Authorization: Bearer {CANARY}"}}),
    answers(401, {"error": {"message": f"Incorrect API key provided: {CANARY[:8]}****{CANARY[-4:]}"}}),
    answers(403, f"you are {CANARY}".encode(), content_type="text/plain"),
    answers(404, {"error": f"nothing at https://me:{CANARY}@example.org/"}),
    answers(429, {"error": {"message": CANARY, "code": "insufficient_quota"}}),
    answers(500, {"error": {"message": CANARY}}, x_echo=CANARY),
    answers(200, f'{{"{CANARY}": '.encode()),
    streams(data({"error": {"message": f"key {CANARY} has crashed the model"}})),
    streams(f"data: {CANARY}\n\n".encode()),
    streams(chat_call(0, id=CANARY, type="function", function={"name": CANARY, "arguments": CANARY}), chat({}, "stop")),
    resets_in_the_stream,
]


@pytest.mark.parametrize("reply", ECHOES)
async def test_the_key_is_in_no_sentence_no_traceback_and_no_log(
    reply: Reply, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with upstream(reply) as up, connected(endpoint(up)) as model:
        with pytest.raises(ModelFailed) as caught:
            await ask(model)
        assert up.requests[0].headers["authorization"] == f"Bearer {CANARY}"
        shown = "".join(traceback.format_exception(caught.value)) + repr(model) + str(vars(model))
    assert "canary" not in shown + str(caught.value) and CANARY[-4:] not in str(caught.value)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 500
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("dragoman")]
    assert "canary" not in "".join(ours)


async def test_a_missing_package_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "dragoman.coder.models.provider_connection", None)
    async with upstream() as up, connected(endpoint(up)) as model:
        with pytest.raises(ModelFailed, match=r"pip install 'dragoman\[models\]'"):
            await ask(model)


# -- leaving early ---------------------------------------------------------------------------------------------------


class Watched:
    """Streams one word, then waits for the client to hang up."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()

    async def __call__(self, exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.chunk(chat({"content": "Hel"}))
        await exchange.hung_up()
        self.closed.set()


async def test_leaving_the_generator_closes_the_connection() -> None:
    reply = Watched()
    async with upstream(reply) as up, connected(endpoint(up)) as model:
        async with aclosing(model.respond(ModelRequest([said("hi")]))) as coming:
            assert await anext(coming) == TextDelta("Hel")
        await reply.closed.wait()


async def test_cancelling_in_the_middle_of_a_wait_closes_the_connection() -> None:
    reply = Watched()
    async with upstream(reply) as up, connected(endpoint(up)) as model:
        heard = asyncio.Event()

        async def listen() -> None:
            async with aclosing(model.respond(ModelRequest([said("hi")]))) as coming:
                async for _ in coming:
                    heard.set()

        task = asyncio.create_task(listen())
        await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await reply.closed.wait()


async def test_cancelling_before_the_answer_begins_closes_the_connection() -> None:
    closed = asyncio.Event()
    asked = asyncio.Event()

    async def waits(exchange: Exchange) -> None:
        asked.set()
        await exchange.hung_up()
        closed.set()

    async with upstream(waits) as up, connected(endpoint(up)) as model:
        task = asyncio.create_task(ask(model))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await closed.wait()


async def test_a_connection_is_used_again_and_given_up_when_idle() -> None:
    async with upstream(chat_says("Hello")) as up, connected(endpoint(up), PATIENT._replace(idle=0.2)) as model:
        await ask(model)
        await ask(model)
        assert up.connections == 1
        await up.ended.wait()
        await ask(model)
        assert up.connections == 2


def test_a_model_waits_longer_each_time() -> None:
    model = ProviderModel(Endpoint("openai", "openai", "gpt-4o", "https://api.openai.com/v1", None))
    assert [model.retry_seconds(attempt) for attempt in (1, 2, 3, 9)] == [1.0, 2.0, 4.0, 30.0]


# -- a session with such a model -------------------------------------------------------------------------------------

ENDPOINTS: dict[str, Reply] = {
    "hangs": hangs,
    "hangs in the stream": hangs_in_the_stream,
    "resets": resets,
    "resets in the stream": resets_in_the_stream,
    "garbage": streams(b"data: {nonsense\n\n"),
    "half of it": streams(b'data: {"choices": [{"delta": {"con'),
    "no JSON": answers(200, b"<html>"),
    "too many": answers(429, {"error": {"message": "slow down"}}),
    "broken": answers(500, b"oops"),
    "not allowed": answers(401, {"error": {"message": "who are you"}}),
}
# One of each kind: how a model comes to them is shown above.
KINDS = ["resets in the stream", "garbage", "too many", "not allowed"]


class Hasty(ProviderModel):
    """Waits as a test does."""

    def retry_seconds(self, attempt: int) -> float:
        return 0.01


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    "name", [name if name in KINDS else pytest.param(name, marks=pytest.mark.slow) for name in ENDPOINTS]
)
async def test_an_endpoint_that_fails_ends_the_turn_and_the_next_one_works(tmp_path: Path, name: str) -> None:
    """With a reason, with few retries; the session goes on."""
    async with upstream(ENDPOINTS[name]) as server:
        model = Hasty(endpoint(server), patience=QUICK)
        async with whole(tmp_path, lambda _: model, setup={"retries": RetryPolicy(longest=0.1)}) as (_, session):
            with pytest.raises(Exception):  # noqa: B017, PT011  # what a client is told is a request that failed
                await events_of(session)
            assert 1 <= len(server.requests) <= 4
            server.replies[:] = [chat_says("back")]
            events = await events_of(session)
    assert "".join(event.text for event in events if isinstance(event, AgentMessageChunk)) == "back"
