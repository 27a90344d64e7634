"""Conversations that went wrong, at servers that are as strict as the real ones: the next prompt is accepted."""

import asyncio
import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dragoman.coder.models.endpoints import Family
from dragoman.coder.models.providers import ProviderModel
from dragoman.errors import RequestFailed
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.content import Image, Text
from dragoman.vocabulary.events import AgentMessageChunk, AnyEvent, CompactionUpdate
from tests.coder.models.asking import PATIENT, endpoint
from tests.coder.models.plain_answers import answer
from tests.support.conversation import TOLD
from tests.support.provider_rules import refusal
from tests.support.provider_server import KEY, provider_server
from tests.support.provider_streams import (
    anthropic_thinks_says_and_calls,
    gemini_thinks_says_and_calls,
    openai_thinks_says_and_calls,
)
from tests.support.upstream import DONE, Reply, answers, chat, chat_call, chat_says, streams, upstream
from tests.support.whole_agent import events_of, whole

# One pixel each, which every decoder takes.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
GIF = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
# Nothing but the first bytes of a picture.
MAGIC = {
    "image/png": base64.b64encode(b"\x89PNG\r\n\x1a\n").decode(),
    "image/jpeg": base64.b64encode(b"\xff\xd8\xff").decode(),
    "image/gif": base64.b64encode(b"GIF89a").decode(),
    "image/webp": base64.b64encode(b"RIFF1234WAVE").decode(),
}


def chat_says_and_calls() -> Reply:
    call = {"name": "read_file", "arguments": '{"path": "x"}'}
    called = chat_call(0, id="call_1", type="function", function=call)
    return streams(chat({"content": "Reading"}), called, chat({}, "tool_calls"), DONE)


CALLS: dict[Family, tuple[str, Callable[[], Reply]]] = {
    "compatible": ("m", chat_says_and_calls),
    "openai": ("gpt-5", openai_thinks_says_and_calls),
    "anthropic": ("claude-opus-4-8", anthropic_thinks_says_and_calls),
    "google": ("gemini-2.5-flash", gemini_thinks_says_and_calls),
}
# Only whether the request is accepted matters; what follows is an end that is quick.
NO_KEY = answers(401, {"error": {"message": "who are you", "code": 401, "status": "UNAUTHENTICATED"}})


@pytest.mark.parametrize("is_loaded", [False, True], ids=["live", "loaded"])
@pytest.mark.parametrize("family", CALLS)
async def test_after_a_cancelled_call_the_next_request_is_accepted(
    tmp_path: Path, family: Family, is_loaded: bool
) -> None:
    called = asyncio.Event()

    async def read(request: object) -> str:
        called.set()
        await asyncio.Event().wait()
        return ""

    (tmp_path / "x").write_text("x")
    name, calls = CALLS[family]
    store = SqliteStore(tmp_path / "store")
    async with upstream(calls(), NO_KEY) as server:
        to = endpoint(server, family, name)
        fakes: dict[str, Any] = {"protocol": 1, "store": store, "read_text_file": read}
        async with whole(tmp_path, lambda _: ProviderModel(to, PATIENT), **fakes) as (client, session):
            turn = session.prompt("go")
            following = asyncio.ensure_future(turn.read())
            await called.wait()
            await turn.cancel()
            await following
            if is_loaded:
                await session.close()
            goes_on = await client.load_session(session.id, str(tmp_path)) if is_loaded else session
            with pytest.raises(RequestFailed, match="does not accept the key"):
                await events_of(goes_on, "next")
        assert server.refusals == []
        assert len(server.requests) == 2
        assert "[interrupted]" in str(server.requests[1].body)
    await store.close()


# -- refused for what it holds ---------------------------------------------------------------------------------------

BAD_IMAGE = answers(400, {"error": {"message": "You uploaded an unsupported image.", "type": "invalid_request_error"}})


def spoken(events: list[AnyEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, AgentMessageChunk))


@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_refused_image_is_left_out_and_the_session_goes_on(tmp_path: Path, protocol: int) -> None:
    async with upstream(BAD_IMAGE, chat_says("back")) as server:
        model = ProviderModel(endpoint(server, images=True), PATIENT)
        async with whole(tmp_path, lambda _: model, protocol=protocol) as (_, session):
            with pytest.raises(RequestFailed, match=r"The model does not see 1 file \(image/png\) any more"):
                await session.prompt([Text("what is this?"), Image(PIXEL, "image/png")]).read()
            assert spoken(await events_of(session, "next")) == "back"
    sent = str(server.requests[1].body)
    assert "what is this?" in sent
    assert "[image/png left out: the model's provider refused it]" in sent
    assert PIXEL not in sent


async def test_a_refused_message_without_media_is_left_out(tmp_path: Path) -> None:
    refuses = answers(400, {"error": {"message": "Not so.", "type": "invalid_request_error"}})
    async with upstream(chat_says("hello"), refuses, chat_says("back")) as server:
        model = ProviderModel(endpoint(server), PATIENT)
        async with whole(tmp_path, lambda _: model) as (_, session):
            await events_of(session, "first")
            with pytest.raises(RequestFailed, match=r": Not so\. Your message was left out of the conversation"):
                await events_of(session, "poison")
            assert spoken(await events_of(session, "next")) == "back"
    messages = server.requests[2].body["messages"]
    sent = [message["content"] for message in messages if message["role"] == "user" and TOLD not in str(message)]
    assert sent == ["first", "next"]


async def test_a_model_that_refuses_what_another_accepted_goes_on_after_compact(tmp_path: Path) -> None:
    refuses = answers(400, {"error": {"message": "no", "type": "invalid_request_error"}})
    store = SqliteStore(tmp_path / "store")
    async with upstream(chat_says("poison")) as server:
        to = endpoint(server)
        async with whole(tmp_path, lambda _: ProviderModel(to, PATIENT), store=store) as (_, session):
            await events_of(session, "first")
            await events_of(session, "more")
        server.replies[:] = [refuses, refuses, chat_says("summary"), chat_says("back")]
        async with whole(tmp_path, lambda _: ProviderModel(to, PATIENT), store=store) as (client, _):
            session = await client.resume_session(session.id, str(tmp_path))
            with pytest.raises(RequestFailed, match="if it does, mine/m refuses what was said before: /compact"):
                await events_of(session, "second")
            assert "was summed up" in spoken(await events_of(session, "/compact"))
            assert spoken(await events_of(session, "third")) == "back"
    assert "poison" not in str(server.requests[-1].body)
    await store.close()


OTHER_REASONS: dict[str, tuple[Family, str, dict[str, Any]]] = {
    "a limit of the account": ("anthropic", "You have reached your specified API usage limits.", {}),
    "an account that was closed": ("anthropic", "This organization has been disabled.", {}),
    "a setting": ("anthropic", "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens", {}),
    "the schema of a tool": ("anthropic", "tools.3.custom.input_schema: JSON schema is invalid.", {}),
    "a country": ("google", "User location is not supported for the API use.", {"status": "FAILED_PRECONDITION"}),
    "a parameter": ("openai", "Unsupported value: 'low'", {"param": "reasoning.effort", "code": "unsupported_value"}),
    "streams": ("openai", "Your organization must be verified to stream this model.", {"param": "stream"}),
    "tools": ("compatible", "registry.ollama.ai/library/x does not support tools", {}),
}


@pytest.mark.parametrize(("family", "words", "fields"), OTHER_REASONS.values(), ids=OTHER_REASONS)
async def test_a_refusal_for_another_reason_leaves_out_nothing(
    tmp_path: Path, family: Family, words: str, fields: dict[str, Any]
) -> None:
    refuses = answers(400, {"type": "error", "error": {"type": "invalid_request_error", "message": words, **fields}})
    async with upstream(refuses, NO_KEY) as server:
        model = ProviderModel(endpoint(server, family, CALLS[family][0], images=True), PATIENT)
        async with whole(tmp_path, lambda _: model) as (_, session):
            with pytest.raises(RequestFailed) as raised:
                await session.prompt([Text("what is this?"), Image(PIXEL, "image/png")]).read()
            with pytest.raises(RequestFailed, match="does not accept the key"):
                await events_of(session, "next")
    assert raised.value.message == f"{model.name.partition('/')[0]} refuses the request: {words.rstrip('.')}"
    sent = str(server.requests[1].body).replace("-", "+").replace("_", "/")
    assert ("what is this?" in sent, PIXEL in sent) == (True, True)


@pytest.mark.parametrize("family", CALLS)
async def test_a_conversation_that_outgrows_the_providers_window_is_summed_up(tmp_path: Path, family: Family) -> None:
    async with upstream(answer(family, "word " * 2000)) as server:
        model = ProviderModel(endpoint(server, family, CALLS[family][0]), PATIENT)
        async with whole(tmp_path, lambda _: model) as (_, session):
            await events_of(session, "first")
            # Room for the first request and a little more: too little for the answer as well.
            server.window = len(json.dumps(server.requests[0].body)) // 4 + 1000
            server.replies[:] = [answer(family, "short")]
            events = await events_of(session, "second")
    stages = [event.status for event in events if isinstance(event, CompactionUpdate)]
    assert (spoken(events), stages) == ("short", ["in_progress", "completed"])
    assert server.refusals != []
    sent = json.dumps(server.requests[-1].body)
    assert ('"first"' in sent, '"second"' in sent, "word word" in sent) == (True, True, False)


# -- the servers themselves ------------------------------------------------------------------------------------------

USER = {"role": "user", "content": "hi"}


def chat_call_with(arguments: str) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": arguments}}]}


CHAT_CALL = chat_call_with("{}")
CHAT_RESULT = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}]}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
G_USER = {"role": "user", "parts": [{"text": "hi"}]}
G_CALL = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
G_RESULT = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}
R_CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
R_THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}
R_RESULT = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
CHAT, MESSAGES, RESPONSES, GEMINI = "/v1/chat/completions", "/v1/messages", "/v1/responses", "/m:streamGenerateContent"


def picture(data: str, kind: str = "image/png") -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}]}


def shots(count: int) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    return {"role": "user", "content": [{"type": "image", "source": source}] * count}


def gemini_picture(data: str, kind: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"inlineData": {"mimeType": kind, "data": data}}]}


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "chat: no result": (CHAT, {"messages": [USER, CHAT_CALL, USER]}, "must be followed by tool messages"),
    "chat: no result at the end": (CHAT, {"messages": [USER, CHAT_CALL]}, "must be followed by tool messages"),
    "chat: no call": (CHAT, {"messages": [USER, CHAT_RESULT]}, "must be a response to a preceeding message"),
    "chat: two results": (CHAT, {"messages": [USER, CHAT_CALL, CHAT_RESULT, CHAT_RESULT]}, "must be a response"),
    "chat: empty": (CHAT, {"messages": [USER, {"role": "assistant", "content": None}, USER]}, "expected a string"),
    "chat: no picture": (CHAT, {"messages": [picture("aGk=")]}, "unsupported image"),
    "chat: wrong label": (CHAT, {"messages": [picture(PIXEL, "image/jpeg")]}, "unsupported image"),
    **{
        f"chat: nothing but the first bytes, {kind}": (CHAT, {"messages": [picture(data, kind)]}, "unsupported image")
        for kind, data in MAGIC.items()
    },
    "chat: a picture in a result": (
        CHAT,
        {"messages": [USER, CHAT_CALL, CHAT_RESULT | {"content": picture(PIXEL)["content"]}]},
        "this message with role 'tool' contains an image URL",
    ),
    "chat: broken arguments": (CHAT, {"messages": [USER, chat_call_with('{"pa'), CHAT_RESULT]}, "JSON object"),
    "chat: bad base64": (CHAT, {"messages": [picture("%%%")]}, "unsupported image"),
    "responses: no result": (RESPONSES, {"input": [USER, R_CALL, USER]}, "No tool output found for function call c1"),
    "responses: broken arguments": (RESPONSES, {"input": [USER, R_CALL | {"arguments": "{"}, R_RESULT]}, "JSON object"),
    "responses: a thought at the end": (RESPONSES, {"input": [USER, R_THOUGHT]}, "without its required following item"),
    "responses: a thought before the user": (
        RESPONSES,
        {"input": [USER, R_THOUGHT, USER]},
        "'rs_1' of type 'reasoning' was provided without its required following item",
    ),
    "responses: a thought before a thought": (
        RESPONSES,
        {"input": [USER, R_THOUGHT, R_THOUGHT | {"id": "rs_2"}, R_CALL, R_RESULT]},
        "'rs_1' of type 'reasoning' was provided without its required following item",
    ),
    "responses: no call": (RESPONSES, {"input": [USER, R_RESULT]}, "No tool call found for function call output"),
    "anthropic: no result": (MESSAGES, {"messages": [USER, USE, USER]}, "ids were found without `tool_result`"),
    "anthropic: result after text": (
        MESSAGES,
        {"messages": [USER, USE, {"role": "user", "content": [{"type": "text", "text": "x"}, RESULT]}]},
        "ids were found without `tool_result`",
    ),
    "anthropic: no call": (MESSAGES, {"messages": [{"role": "user", "content": [RESULT]}]}, "unexpected `tool_use_id`"),
    "anthropic: begins with the assistant": (MESSAGES, {"messages": [USE]}, 'must use the "user" role'),
    "anthropic: empty text": (MESSAGES, {"messages": [{"role": "user", "content": " "}]}, "non-whitespace"),
    **{
        f"anthropic: ends in {kind}": (
            MESSAGES,
            {"messages": [USER, {"role": "assistant", "content": [{"type": kind}]}, USER]},
            "The final block in an assistant message cannot be `thinking`",
        )
        for kind in ("thinking", "redacted_thinking")
    },
    "anthropic: the assistant has the last word": (
        MESSAGES,
        {"messages": [USER, {"role": "assistant", "content": "Well,"}]},
        "must end with a user message",
    ),
    "anthropic: blank text in a result": (
        MESSAGES,
        {"messages": [USER, USE, {"role": "user", "content": [RESULT | {"content": [{"type": "text", "text": " "}]}]}]},
        "non-whitespace",
    ),
    "anthropic: too many images": (MESSAGES, {"messages": [shots(50), USER, shots(51)]}, "too many images"),
    "anthropic: no tools": (
        MESSAGES,
        {"messages": [USER, USE, {"role": "user", "content": [RESULT]}]},
        "must define tools",
    ),
    "gemini: no result": (GEMINI, {"contents": [G_USER, G_CALL, G_USER]}, "number of function response parts"),
    "gemini: no call": (GEMINI, {"contents": [G_USER, G_RESULT]}, "immediately after a function call turn"),
    "gemini: empty text": (GEMINI, {"contents": [{"role": "user", "parts": [{"text": ""}]}]}, "initialized field"),
    "gemini: a GIF": (GEMINI, {"contents": [gemini_picture(GIF, "image/gif")]}, "Unsupported MIME type: image/gif"),
    "gemini: empty": (GEMINI, {"contents": [{"role": "user", "parts": []}]}, "must not be empty"),
}
ACCEPTED: list[tuple[str, dict[str, Any]]] = [
    (CHAT, {"messages": [USER, CHAT_CALL, CHAT_RESULT, USER]}),
    (CHAT, {"messages": [picture(PIXEL)]}),
    (CHAT, {"messages": [picture(GIF, "image/gif")]}),
    (RESPONSES, {"input": [USER, R_CALL, R_RESULT, USER]}),
    (RESPONSES, {"input": [USER, R_THOUGHT, R_CALL, R_RESULT]}),
    (RESPONSES, {"input": [USER, R_THOUGHT, {"type": "message", "role": "assistant", "content": "Well."}, USER]}),
    (MESSAGES, {"messages": [shots(50), USER, shots(50)]}),
    (GEMINI, {"contents": [gemini_picture(PIXEL, "image/png")]}),
    (MESSAGES, {"tools": [{}], "messages": [USER, USE, {"role": "user", "content": [RESULT]}, USER]}),
    (GEMINI, {"contents": [G_USER, G_CALL, G_RESULT]}),
]


@pytest.mark.parametrize(("path", "body", "words"), REFUSED.values(), ids=REFUSED)
def test_what_the_real_apis_refuse_is_refused(path: str, body: dict[str, Any], words: str) -> None:
    refused = refusal(path, body)
    assert refused is not None
    assert (refused.status, words in refused.body["error"]["message"]) == (400, True)


@pytest.mark.parametrize(("path", "body"), ACCEPTED)
def test_what_the_real_apis_accept_is_accepted(path: str, body: dict[str, Any]) -> None:
    assert refusal(path, body) is None


@pytest.mark.parametrize(("path", "body"), ACCEPTED)
def test_more_than_the_window_is_refused_as_too_long(path: str, body: dict[str, Any]) -> None:
    refused = refusal(path, body, window=-1)
    assert refused is not None
    phrases = ("maximum context length", "context window", "prompt is too long", "maximum number of tokens")
    assert any(phrase in refused.body["error"]["message"] for phrase in phrases)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"messages": [USER]}),
        (RESPONSES, {"input": [USER]}),
        (MESSAGES, {"messages": [USER]}),
        (GEMINI, {"contents": [G_USER]}),
    ],
)
def test_the_schemas_of_the_tools_count_against_the_window(path: str, body: dict[str, Any]) -> None:
    tools = [{"name": "f", "schema": {name * 10: {"type": "string"} for name in "abcdefgh"}}]
    assert refusal(path, body, window=20) is None
    assert refusal(path, body | {"tools": tools}, window=20) is not None


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"messages": [USER, CHAT_CALL, USER]}),
        (RESPONSES, {"input": [USER, R_CALL, USER]}),
        (MESSAGES, {"messages": [USER, USE, USER]}),
        ("/v1beta/models/m:streamGenerateContent", {"contents": [G_USER, G_CALL, G_USER]}),
    ],
)
def test_the_server_for_processes_refuses_a_call_without_a_result(path: str, body: dict[str, Any]) -> None:
    with provider_server() as server:
        sent = httpx2.post(server.url + path, json=body, headers={"authorization": f"Bearer {KEY}"})
    assert (sent.status_code, sent.json()) == refusal(path, body)
