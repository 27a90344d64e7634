"""Hosted models: what goes out and what comes back, with the real SDKs against servers of our own."""

import asyncio
import json
import logging
import statistics
import sys
import time
from contextlib import aclosing
from typing import Any

import pytest

from dragoman.coder.context import (
    ContextAssistantMessage,
    ContextSummary,
    ContextToolCall,
    ContextToolResult,
    ContextUserMessage,
    Item,
)
from dragoman.coder.models.contract import (
    ModelFailed,
    ModelFinished,
    ModelRequest,
    TextDelta,
    ThoughtDelta,
    ToolCallRequested,
    UsageReported,
)
from dragoman.coder.models.descriptions import Prices
from dragoman.coder.models.endpoints import Family
from dragoman.vocabulary.content import Audio, BlobResource, Image, Resource, ResourceLink, Text, TextResource
from tests.coder.models.asking import CANARY, ask, connected, endpoint, raw_of, said, without_raw
from tests.support.provider_streams import (
    anthropic_begins,
    anthropic_block,
    anthropic_ends,
    anthropic_thinks_says_and_calls,
    gemini,
    gemini_thinks_says_and_calls,
    openai_thinks_says_and_calls,
)
from tests.support.upstream import (
    DONE,
    Exchange,
    Reply,
    answers,
    chat,
    chat_call,
    chat_says,
    chat_usage,
    streams,
    upstream,
)

# One pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def chat_thinks_says_and_calls() -> Reply:
    return streams(
        chat({"role": "assistant", "reasoning": "Let me "}),
        chat({"reasoning": "see"}),
        chat({"content": "Rea"}),
        chat({"content": "ding"}),
        chat_call(0, id="call_1", type="function", function={"name": "read_file", "arguments": ""}),
        chat_call(0, function={"arguments": '{"path"'}),
        chat_call(0, function={"arguments": ': "x"}'}),
        chat({}, "tool_calls"),
        chat_usage(1000, 100),
        DONE,
    )


def mistral_thinks_says_and_calls() -> Reply:
    def thinks(text: str) -> bytes:
        return chat({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]})

    call = {"name": "read_file", "arguments": '{"path": "x"}'}
    return streams(
        chat({"role": "assistant", "content": ""}),
        thinks("Let me "),
        thinks("see"),
        chat({"content": [{"type": "text", "text": "Rea"}]}),
        chat({"content": "ding"}),
        chat_call(0, id="D681PevKs", function=call),
        chat({}, "tool_calls"),
        chat_usage(1000, 100),
        DONE,
    )


# Whose prices are known for the models here, and who sees its thoughts again.
PRICED = ("openai", "anthropic", "google", "mistral", "azure")
# What goes back of a thought, where a family seals one.
SEALS = {"openai": "SEALED", "anthropic": "SEALED", "google": "U0VBTEVE"}
SPEAKERS: list[tuple[Family, str, Reply, str]] = [
    ("openai", "gpt-5", openai_thinks_says_and_calls(), "/v1/responses"),
    ("anthropic", "claude-opus-4-8", anthropic_thinks_says_and_calls(), "/v1/messages"),
    ("google", "gemini-2.5-flash", gemini_thinks_says_and_calls(), "streamGenerateContent"),
    ("ollama", "qwen3:8b", chat_thinks_says_and_calls(), "/v1/chat/completions"),
    ("compatible", "some/model", chat_thinks_says_and_calls(), "/v1/chat/completions"),
    ("mistral", "mistral-medium-latest", mistral_thinks_says_and_calls(), "/v1/chat/completions"),
    ("azure", "gpt-5", chat_thinks_says_and_calls(), "/openai/v1/chat/completions"),
]
each_family = pytest.mark.parametrize(
    ("family", "model", "reply", "path"), SPEAKERS, ids=[speaker[0] for speaker in SPEAKERS]
)


@each_family
async def test_thoughts_words_calls_usage_and_cost_come_through(
    family: Family, model: str, reply: Reply, path: str
) -> None:
    async with upstream(reply) as up, connected(endpoint(up, family, model)) as it:
        *words, used, call = without_raw(await ask(it))
    assert words == [ThoughtDelta("Let me see"), TextDelta("Reading")]
    assert isinstance(call, ToolCallRequested) and call[:2] == ("read_file", {"path": "x"}) and call.id
    assert isinstance(used, UsageReported) and used[:2] == (1000, 100)
    assert (used.cost is not None and 0 < used.cost < 0.1) == (family in PRICED)
    [request] = up.requests
    assert path in request.path
    assert CANARY in json.dumps(request.headers) and CANARY not in request.path


@each_family
async def test_a_thought_goes_back_sealed_to_who_had_it_and_its_call_with_the_result(
    family: Family, model: str, reply: Reply, path: str
) -> None:
    async with upstream(reply) as up, connected(endpoint(up, family, model)) as it:
        pieces = await ask(it)
        [call] = [piece for piece in pieces if isinstance(piece, ToolCallRequested)]
        raw = json.loads(json.dumps(raw_of(pieces)))
        answer = ContextAssistantMessage(
            "Reading", "Let me see", [ContextToolCall(call.id, call.tool, call.input)], raw
        )
        history: list[Item] = [said("hi"), answer, ContextToolResult(call.id, "read_file", "RESULT", failed=True)]
        await ask(it, *history)
    sent = json.dumps(up.requests[1].body)
    assert "RESULT" in sent and "Reading" in sent and "Be brief." in sent
    assert {seal for seal in SEALS.values() if seal in sent} == ({SEALS[family]} if family in SEALS else set())
    if family == "anthropic":
        result = up.requests[1].body["messages"][-1]["content"][0]
        assert (result["type"], result["tool_use_id"], result["is_error"]) == ("tool_result", "toolu_1", True)


async def test_the_form_of_another_provider_is_left_alone() -> None:
    async with upstream(anthropic_thinks_says_and_calls()) as up:
        async with connected(endpoint(up, "anthropic", "claude-opus-4-8")) as it:
            raw = raw_of(await ask(it))
        answer = ContextAssistantMessage(
            "Reading", "Let me see", [ContextToolCall("toolu_1", "read_file", {"path": "x"})], raw
        )
        up.replies[:] = [chat_says("Hello")]
        async with connected(endpoint(up)) as it:
            await ask(it, said("hi"), answer, ContextToolResult("toolu_1", "read_file", "RESULT"))
    messages = up.requests[-1].body["messages"]
    assert "SEALED" not in json.dumps(messages) and "Let me see" not in json.dumps(messages)
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool"]
    assert messages[2]["content"] == "Reading" and messages[2]["tool_calls"][0]["id"] == "toolu_1"


@pytest.mark.parametrize(
    "raw",
    [
        {"by": "mine", "message": {"kind": "response", "parts": "rubbish"}},
        {"by": "mine", "message": {"kind": "request", "parts": []}},
        {"by": "mine"},
        ["mine"],
        {
            "by": "mine",
            "message": {"kind": "response", "parts": [{"part_kind": "text", "content": "without the call"}]},
        },
    ],
)
async def test_a_form_that_does_not_fit_is_left_alone(raw: object) -> None:
    async with upstream(chat_says("Hello")) as up, connected(endpoint(up)) as it:
        answer = ContextAssistantMessage("Reading", "", [ContextToolCall("c1", "read_file", {"path": "x"})], raw)
        await ask(it, said("hi"), answer, ContextToolResult("c1", "read_file", ""))
    _, _, assistant, result = up.requests[0].body["messages"]
    assert assistant["content"] == "Reading" and assistant["tool_calls"][0]["function"]["name"] == "read_file"
    assert result["tool_call_id"] == "c1" and result["content"] == "(no output)"


async def test_a_call_that_was_not_run_is_not_told_of() -> None:
    async with upstream(chat_thinks_says_and_calls(), chat_says("Hello")) as up, connected(endpoint(up)) as it:
        raw = raw_of(await ask(it))
        await ask(it, said("hi"), ContextAssistantMessage("Reading", "", [], raw), said("go on"))
    assert "tool_calls" not in json.dumps(up.requests[1].body["messages"])


async def test_calls_get_ids_of_their_own_where_the_server_repeats_itself() -> None:
    same = {"type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    twice = streams(chat_call(0, id="call_0", **same), chat_call(1, id="call_0", **same), chat({}, "tool_calls"), DONE)
    async with upstream(twice) as up, connected(endpoint(up)) as it:
        earlier: list[Item] = [
            said("hi"),
            ContextAssistantMessage("", "", [ContextToolCall("call_0", "read_file", {})]),
            ContextToolResult("call_0", "read_file", ""),
        ]
        pieces = await ask(it, *earlier)
        calls = [piece for piece in pieces if isinstance(piece, ToolCallRequested)]
        assert [call.id for call in calls] == ["call_0-2", "call_0-3"]
        now = ContextAssistantMessage(
            "", "", [ContextToolCall(call.id, call.tool, call.input) for call in calls], raw_of(pieces)
        )
        await ask(it, *earlier, now, *(ContextToolResult(call.id, call.tool, "") for call in calls))
    results = [message["tool_call_id"] for message in up.requests[1].body["messages"] if message["role"] == "tool"]
    assert results == ["call_0", "call_0-2", "call_0-3"]


async def test_neighbours_of_ours_are_one_request_and_a_summary_is_told() -> None:
    reply = streams(anthropic_begins(), anthropic_ends("end_turn"))
    async with upstream(reply) as up, connected(endpoint(up, "anthropic", "claude-opus-4-8")) as it:
        call = ContextAssistantMessage(
            "", "", [ContextToolCall("c1", "read_file", {}), ContextToolCall("c2", "read_file", {})]
        )
        results = [ContextToolResult("c1", "read_file", "one"), ContextToolResult("c2", "read_file", "two")]
        pieces = await ask(it, ContextSummary("we read files"), said("go on"), call, *results, said("and?"))
    assert without_raw(pieces) == [UsageReported(1000, 100, 0.0075)]
    roles = [message["role"] for message in up.requests[0].body["messages"]]
    assert roles == ["user", "assistant", "user"]
    sent = json.dumps(up.requests[0].body["messages"])
    assert "A summary of the conversation so far:\\n\\nwe read files" in sent
    kinds = [block["type"] for block in up.requests[0].body["messages"][2]["content"]]
    assert kinds == ["tool_result", "tool_result", "text"]


# -- why it stopped --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "model", "reply", "stop"),
    [
        ("compatible", "m", chat_says("Hel", finish="length"), "max_tokens"),
        ("compatible", "m", chat_says("Hel", finish="content_filter"), "refusal"),
        (
            "openai",
            "gpt-5",
            openai_thinks_says_and_calls("incomplete", incomplete_details={"reason": "max_output_tokens"}),
            "max_tokens",
        ),
        (
            "openai",
            "gpt-5",
            openai_thinks_says_and_calls("incomplete", incomplete_details={"reason": "content_filter"}),
            "refusal",
        ),
        ("anthropic", "claude-opus-4-8", streams(anthropic_begins(), anthropic_ends("max_tokens")), "max_tokens"),
        ("anthropic", "claude-opus-4-8", streams(anthropic_begins(), anthropic_ends("refusal")), "refusal"),
        ("google", "gemini-2.5-flash", streams(gemini({"text": "Hel"}, finish="MAX_TOKENS")), "max_tokens"),
        ("google", "gemini-2.5-flash", streams(gemini({"text": "Hel"}, finish="SAFETY")), "refusal"),
        (
            "google",
            "gemini-2.5-flash",
            streams(gemini(promptFeedback={"blockReason": "SAFETY"}, candidates=[])),
            "refusal",
        ),
    ],
)
async def test_an_end_that_is_more_than_being_done_is_told(family: Family, model: str, reply: Reply, stop: str) -> None:
    async with upstream(reply) as up, connected(endpoint(up, family, model)) as it:
        pieces = await ask(it)
    assert pieces[-1] == ModelFinished(stop)
    assert [piece for piece in pieces if isinstance(piece, ToolCallRequested)] == []


@pytest.mark.parametrize(
    ("family", "model", "reply", "kind"),
    [
        ("openai", "gpt-5", streams(b"event: response.created\n\n"), "garbage"),
        (
            "anthropic",
            "claude-opus-4-8",
            streams(anthropic_begins(), anthropic_block(0, {"type": "text", "text": "a"})),
            "network",
        ),
        ("google", "gemini-2.5-flash", streams(gemini({"text": "Hel"})), "network"),
    ],
)
async def test_a_stream_without_an_end_has_broken_off(family: Family, model: str, reply: Reply, kind: str) -> None:
    async with upstream(reply) as up, connected(endpoint(up, family, model)) as it:
        with pytest.raises(ModelFailed) as caught:
            await ask(it)
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("family", "model"), [("openai", "gpt-5"), ("anthropic", "claude-opus-4-8"), ("google", "gemini-2.5-flash")]
)
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((401, "auth"), (429, "rate_limit"), (500, "server")),
        *(pytest.param(status, kind, marks=pytest.mark.slow) for status, kind in ((403, "auth"), (529, "server"))),
    ],
)
async def test_every_provider_fails_in_the_same_kinds(family: Family, model: str, status: int, kind: str) -> None:
    body = {"type": "error", "error": {"type": "some_error", "code": status, "message": f"no, {CANARY}"}}
    async with upstream(answers(status, body)) as up, connected(endpoint(up, family, model)) as it:
        with pytest.raises(ModelFailed) as caught:
            await ask(it)
    assert caught.value.kind == kind and "canary" not in str(caught.value)
    assert len(up.requests) == 1, "retries are the loop's"


@pytest.mark.parametrize(
    ("family", "model"), [("openai", "gpt-5"), ("anthropic", "claude-opus-4-8"), ("google", "gemini-2.5-flash")]
)
async def test_every_provider_is_left_at_once(family: Family, model: str) -> None:
    first = {
        "openai": b"event: ping\n\n",
        "anthropic": anthropic_begins(),
        "google": gemini({"text": "Hel"}),
    }[family]
    begun, closed = asyncio.Event(), asyncio.Event()

    async def waits(exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.chunk(first)
        begun.set()
        await exchange.hung_up()
        closed.set()

    async with upstream(waits) as up, connected(endpoint(up, family, model)) as it:
        task = asyncio.create_task(ask(it))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await closed.wait()


# -- pictures and the like -------------------------------------------------------------------------------------------

ATTACHED = ContextUserMessage(
    "m1",
    [
        Text("look"),
        Image(PNG, "image/png"),
        Image("not base64!", "image/png"),
        Audio("AAAA", "audio/wav"),
        ResourceLink("notes", "file:///notes.md"),
        Resource(TextResource("the text", "file:///a.txt")),
        Resource(BlobResource("AAAA", "file:///a.bin")),
    ],
)
AS_TEXT = [
    *("[image: image/png]", "[audio: audio/wav]", "[notes](file:///notes.md)", "file:///a.txt:\n\nthe text"),
    "[file: application/octet-stream] file:///a.bin",
]


async def test_a_model_that_looks_at_pictures_gets_them_and_words_for_the_rest() -> None:
    async with upstream(chat_says("Hello")) as up, connected(endpoint(up, images=True)) as it:
        await ask(it, ATTACHED)
    blocks = up.requests[0].body["messages"][1]["content"]
    pictures = [block["image_url"]["url"] for block in blocks if block["type"] == "image_url"]
    assert pictures == [f"data:image/png;base64,{PNG}"]
    texts = "\n".join(block.get("text", "") for block in blocks)
    assert [text for text in AS_TEXT if text not in texts] == []


@pytest.mark.requirement("8.1.9")
async def test_a_model_that_does_not_look_gets_markers_in_one_text() -> None:
    async with upstream(chat_says("Hello")) as up, connected(endpoint(up)) as it:
        await ask(it, ATTACHED)
    sent = up.requests[0].body["messages"][1]["content"]
    assert PNG not in sent and sent.count("[image: image/png]") == 2


async def test_a_picture_from_a_tool_is_seen() -> None:
    reply = streams(anthropic_begins(), anthropic_ends("end_turn"))
    async with upstream(reply) as up, connected(endpoint(up, "anthropic", "claude-opus-4-8")) as it:
        shot = ContextToolResult("c1", "read_file", "a picture", content=[Image(PNG, "image/png")])
        await ask(it, said("hi"), ContextAssistantMessage("", "", [ContextToolCall("c1", "read_file", {})]), shot)
    assert PNG in json.dumps(up.requests[0].body["messages"])


# -- how hard it thinks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "model", "reply", "level", "sent"),
    [
        ("openai", "gpt-5", SPEAKERS[0][2], "low", {"reasoning": {"effort": "low", "summary": "auto"}}),
        ("openai", "gpt-5.4", SPEAKERS[0][2], "off", {"reasoning": {"effort": "none"}}),
        ("anthropic", "claude-opus-4-8", SPEAKERS[1][2], "high", {"output_config": {"effort": "high"}}),
        ("anthropic", "claude-opus-5", SPEAKERS[1][2], "off", {"thinking": {"type": "disabled"}}),
        ("google", "gemini-2.5-flash", SPEAKERS[2][2], "off", {"thinkingConfig": {"thinkingBudget": 0}}),
        ("google", "gemini-2.5-flash", SPEAKERS[2][2], "", {"thinkingConfig": {"includeThoughts": True}}),
    ],
)
async def test_a_level_of_thought_reaches_the_provider(
    family: Family, model: str, reply: Reply, level: str, sent: dict[str, dict[str, Any]]
) -> None:
    async with upstream(reply) as up, connected(endpoint(up, family, model)) as it:
        assert not level or level in it.thought_levels
        await ask(it, level=level)
    body = up.requests[0].body
    body = body.get("generationConfig", body)
    for name, fields in sent.items():
        assert {key: body[name].get(key) for key in fields} == fields


async def test_a_level_that_a_model_does_not_have_is_not_sent() -> None:
    async with upstream(chat_says("Hello")) as up, connected(endpoint(up)) as it:
        await ask(it, level="high")
    assert up.requests[0].body.keys() <= {"model", "stream", "messages", "stream_options", "tools", "tool_choice"}


async def test_what_the_configuration_says_of_a_model_is_sent_and_counts() -> None:
    levels, prices = ("off", "high"), Prices(10.0, 100.0)
    for level, effort in (("high", "high"), ("off", "none")):
        async with upstream(chat_thinks_says_and_calls()) as up:
            place = endpoint(up, thought_levels=levels, max_output=512, prices=prices)
            async with connected(place) as it:
                pieces = await ask(it, level=level)
        # 1,000 tokens in, 100 out.
        assert [piece.cost for piece in pieces if isinstance(piece, UsageReported)] == [pytest.approx(0.02)]
        body = up.requests[0].body
        assert (body["reasoning_effort"], body.get("max_completion_tokens", body.get("max_tokens"))) == (effort, 512)


async def test_openai_is_asked_again_where_it_does_not_tell_its_thoughts() -> None:
    refuses = answers(400, {"error": {"message": "must be verified to generate reasoning summaries"}})
    async with upstream(refuses, SPEAKERS[0][2]) as up, connected(endpoint(up, "openai", "gpt-5")) as it:
        assert TextDelta("Reading") in await ask(it)
        await ask(it)
    assert ["summary" in request.body.get("reasoning", {}) for request in up.requests] == [True, False, False]


async def test_openai_keeps_no_copy_and_anthropic_is_asked_to_cache() -> None:
    async with upstream(SPEAKERS[0][2]) as up, connected(endpoint(up, "openai", "gpt-5")) as it:
        await ask(it)
        assert up.requests[0].body["store"] is False
    async with upstream(SPEAKERS[1][2]) as up, connected(endpoint(up, "anthropic", "claude-opus-4-8")) as it:
        await ask(it)
        assert "cache_control" in json.dumps(up.requests[0].body)


# -- the surroundings ------------------------------------------------------------------------------------------------


async def test_no_variable_of_the_sdks_moves_the_address_or_the_key_and_no_log_has_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with upstream(answers(500)) as thief:
        for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "OLLAMA_BASE_URL"):
            monkeypatch.setenv(name, thief.url)
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
            monkeypatch.setenv(name, "key-of-another")
        monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
        monkeypatch.setenv("HTTP_PROXY", thief.url)
        for family, model, reply, _ in SPEAKERS:
            async with upstream(reply) as up, connected(endpoint(up, family, model)) as it:
                await ask(it)
            headers = json.dumps(up.requests[0].headers)
            assert CANARY in headers and "key-of-another" not in headers
        assert thief.requests == []
    assert caplog.records  # they do log
    assert [record.name for record in caplog.records if "canary" in record.getMessage()] == []


async def test_the_window_is_looked_up_in_the_price_list() -> None:
    async with upstream(SPEAKERS[0][2]) as up, connected(endpoint(up, "openai", "gpt-5-pro")) as it:
        windows = [it.window]
        await it.find_window()
        assert [*windows, it.window] == [None, 400_000]
        assert up.requests == []


@pytest.mark.slow
async def test_the_sdks_are_loaded_off_the_loop() -> None:
    """In a fresh interpreter, so that they are not there yet: the loop keeps turning meanwhile.

    In the fast lane a cancel is heard meanwhile: `tests/coder/test_cancel_speed.py`.
    """
    program = """
import asyncio, sys, time
from dragoman.coder.models.endpoints import Endpoint
from dragoman.coder.models.providers import ProviderModel
async def main():
    model = ProviderModel(Endpoint("openai", "openai", "gpt-5", "http://127.0.0.1:1/v1", None))
    assert "pydantic_ai" not in sys.modules and "httpx2" not in sys.modules
    loading = asyncio.create_task(model.prepare())
    turns = 0
    while not loading.done():
        await asyncio.sleep(0.005)
        turns += 1
    await loading
    await model.close()
    print(turns)
asyncio.run(main())
"""
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    out, _ = await asyncio.wait_for(child.communicate(), 50)
    assert child.returncode == 0 and int(out) > 10


@pytest.mark.parametrize("bound", [0.25, pytest.param(0.005, marks=pytest.mark.slow)])
async def test_a_word_is_passed_on_at_once(bound: float) -> None:
    """From the server's write to our piece, both in this process: a median below 5 ms, if the machine is idle."""
    written: list[float] = []
    go = asyncio.Semaphore(0)

    async def speaks(exchange: Exchange) -> None:
        await exchange.begin_stream()
        for _ in range(20):
            await go.acquire()
            written.append(time.perf_counter())
            await exchange.chunk(chat({"content": "a"}))
        await exchange.chunk(chat({}, "stop"))
        await exchange.write(b"0\r\n\r\n")

    async with upstream(speaks) as up, connected(endpoint(up)) as it:
        delays: list[float] = []
        go.release()
        async with aclosing(it.respond(ModelRequest([said("hi")]))) as coming:
            async for piece in coming:
                if isinstance(piece, TextDelta):
                    delays.append(time.perf_counter() - written[-1])
                    go.release()
    assert len(delays) == 20
    assert statistics.median(delays[1:]) < bound


async def test_two_calls_at_once_share_the_model() -> None:
    async with upstream(chat_says("Hello")) as up, connected(endpoint(up)) as it:
        heard = await asyncio.gather(ask(it), ask(it), ask(it))
    assert [pieces[0] for pieces in heard] == [TextDelta("Hello")] * 3
