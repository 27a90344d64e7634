"""Providers without a wire form of ours, by pydantic-ai: its chat completions model stands for all of them here."""

import asyncio
import json
import traceback
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import httpx2
import pytest
from pydantic_ai.models import Model as LibraryModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from dragoman.coder.context import ContextAssistantMessage, ContextToolCall, ContextToolResult, Item
from dragoman.coder.models.contract import (
    FailureKind,
    ModelFailed,
    ModelFinished,
    ModelRequest,
    TextDelta,
    ThoughtDelta,
    ToolCallRequested,
    UsageReported,
)
from dragoman.coder.models.endpoints import Endpoint
from dragoman.coder.models.facts import ModelFacts
from dragoman.coder.models.library_connection import LibraryConnection
from dragoman.coder.models.providers import ProviderModel
from dragoman.coder.models.timeouts import ModelTimeouts
from tests.coder.models.asking import CANARY, PATIENT, QUICK, ask, endpoint, raw_of, said, without_raw
from tests.coder.models.test_provider_failures import Watched, drips_bytes, ends_in_the_stream, resets
from tests.coder.models.test_providers import chat_thinks_says_and_calls
from tests.support.upstream import DONE, Reply, answers, chat, chat_says, data, streams, upstream

# A stream that just ends has broken off.
WHOLE: Any = {"openai_chat_streaming_requires_finish_reason": True}


def by_chat(to: Endpoint, known: ModelFacts, timeouts: ModelTimeouts) -> LibraryConnection:
    return LibraryConnection(to, known, timeouts, chat_model)


def chat_model(to: Endpoint, client: httpx2.AsyncClient) -> LibraryModel:
    assert to.key is not None
    provider = OpenAICompatibleProvider(
        name=to.provider,
        base_url=to.base_url,
        api_key=to.key.reveal(),
        http_client=client,
        profile=WHOLE,
    )
    return OpenAIChatModel(to.model, provider=provider)


@asynccontextmanager
async def by_library(to: Endpoint, patience: ModelTimeouts = PATIENT) -> AsyncGenerator[ProviderModel, None]:
    model = ProviderModel(to, patience, connect=by_chat)
    try:
        yield model
    finally:
        await model.close()


async def test_thoughts_words_calls_and_usage_come_through_and_go_back() -> None:
    async with upstream(chat_thinks_says_and_calls()) as up, by_library(endpoint(up)) as model:
        pieces = await ask(model)
        assert without_raw(pieces) == [
            ThoughtDelta("Let me see"),
            TextDelta("Reading"),
            UsageReported(1000, 100),
            ToolCallRequested("read_file", {"path": "x"}, "call_1"),
        ]
        raw = json.loads(json.dumps(raw_of(pieces)))
        answer = ContextAssistantMessage("Reading", "", [ContextToolCall("call_1", "read_file", {"path": "x"})], raw)
        await ask(model, said("hi"), answer, ContextToolResult("call_1", "read_file", "RESULT"), said("and?"))
    sent = up.requests[1].body["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "user"]
    assert (sent[2]["content"], sent[3]["content"]) == ("Reading", "RESULT")


async def test_a_session_goes_from_the_library_to_a_wire_form_and_back() -> None:
    async with upstream(chat_thinks_says_and_calls()) as up:
        async with by_library(endpoint(up)) as model:
            raw = raw_of(await ask(model))
        answer = ContextAssistantMessage("Reading", "", [ContextToolCall("call_1", "read_file", {"path": "x"})], raw)
        history: list[Item] = [said("hi"), answer, ContextToolResult("call_1", "read_file", "RESULT")]
        model = ProviderModel(endpoint(up), PATIENT)
        again = raw_of(await ask(model, *history))
        await model.close()
        assert up.requests[-1].body["messages"][2]["reasoning"] == "Let me see"
        async with by_library(endpoint(up)) as model:
            later = ContextAssistantMessage("Reading", "", [ContextToolCall("call_1-2", "read_file", {})], again)
            await ask(model, *history, later, ContextToolResult("call_1-2", "read_file", "MORE"))
    assert [message.get("tool_call_id") for message in up.requests[-1].body["messages"]][-1] == "call_1-2"


FAILURES: dict[str, tuple[Reply, FailureKind]] = {
    "401": (answers(401, {"error": {"message": f"no, {CANARY}"}}), "auth"),
    "429": (answers(429, {"error": {"message": "slow"}}, retry_after="7"), "rate_limit"),
    "500": (answers(500, {"error": {"message": CANARY}}), "server"),
    "too long": (answers(400, {"error": {"message": "maximum context length is 8 tokens"}}), "server"),
    "in the stream": (streams(data({"error": {"message": "the model crashed", "code": 500}})), "server"),
    "no JSON": (answers(200, b"<html>"), "garbage"),
    "compressed": (answers(200, b"\x1f\x8b\x08", content_encoding="gzip"), "garbage"),
    "half an event": (streams(b'data: {"id": "c1", "choices": [{"de\n\n'), "garbage"),
    "reset": (resets, "network"),
    "broken off": (streams(chat({"content": "Hel"}), DONE), "network"),
    "ended": (ends_in_the_stream, "network"),
}


@pytest.mark.parametrize(("reply", "kind"), FAILURES.values(), ids=FAILURES)
async def test_its_failures_are_those_of_every_model(reply: Reply, kind: FailureKind) -> None:
    async with upstream(reply) as up, by_library(endpoint(up)) as model:
        with pytest.raises(ModelFailed) as caught:
            await ask(model)
        assert (caught.value.kind, len(up.requests)) == (kind, 1)
        assert "canary" not in "".join(traceback.format_exception(caught.value))
        up.replies[:] = [chat_says("Hello")]
        assert TextDelta("Hello") in await ask(model)


async def test_it_is_told_how_long_to_wait_and_that_a_window_is_full() -> None:
    async with upstream(FAILURES["429"][0], FAILURES["too long"][0]) as up, by_library(endpoint(up)) as model:
        with pytest.raises(ModelFailed) as slow:
            await ask(model)
        with pytest.raises(ModelFailed, match="too long for mine/m"):
            await ask(model)
    assert slow.value.retry_seconds == 7.0


async def test_an_answer_that_drips_is_given_up() -> None:
    async with upstream(drips_bytes) as up, by_library(endpoint(up), QUICK) as model:
        with pytest.raises(ModelFailed, match="did not answer in time"):
            await ask(model)


async def test_an_answer_that_was_cut_off_or_refused_says_so() -> None:
    ends = chat_says("Hel", finish="length"), chat_says("", finish="content_filter")
    async with upstream(*ends) as up, by_library(endpoint(up)) as model:
        assert (await ask(model))[-1] == ModelFinished("max_tokens")
        assert (await ask(model))[-1] == ModelFinished("refusal")


async def test_leaving_it_closes_the_connection() -> None:
    reply = Watched()
    async with upstream(reply) as up, by_library(endpoint(up)) as model:
        async with aclosing(model.respond(ModelRequest([said("hi")]))) as coming:
            assert await anext(coming) == TextDelta("Hel")
        async with asyncio.timeout(30):
            await reply.closed.wait()
