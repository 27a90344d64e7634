"""A request that a provider refuses costs neither the user's words nor finished work, and the session goes on."""

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder import loop
from dragoman.coder.context import (
    Context,
    ContextAssistantMessage,
    ContextToolCall,
    ContextToolResult,
    ContextUserMessage,
    Item,
)
from dragoman.coder.models.contract import ModelFailed, ModelRequest, Piece, TextDelta, ToolSpec
from dragoman.coder.models.endpoints import Family
from dragoman.coder.models.providers import ProviderModel
from dragoman.coder.models.request_failures import MediaRejected, ProviderCrashed, RequestRejected, RequestTooLarge
from dragoman.errors import RequestFailed
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.content import Content, Image, Text, text_of
from dragoman.vocabulary.events import AgentMessageChunk, AnyEvent, Idle
from tests.coder.models.asking import PATIENT, endpoint
from tests.coder.models.refusals import error_event, response_failed
from tests.coder.strict_model import StrictModel
from tests.support.conversation import TOLD
from tests.support.upstream import DONE, Exchange, Reply, answers, chat, chat_call, chat_says, streams, upstream
from tests.support.whole_agent import events_of, whole

pytestmark = pytest.mark.anyio

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = Image(PIXEL, "image/png")
REFUSES = answers(400, {"error": {"message": "Not so.", "type": "invalid_request_error"}})
NOTHING_REMOVED = (
    "Nothing was removed from the conversation: your message and all that was done since are still there. If {} "
    "refuses the next message as well: /compact sums the conversation up, /clear lets the model forget it, /model "
    "chooses another model"
)


class Hasty(ProviderModel):
    """Waits as a test does."""

    def retry_seconds(self, attempt: int) -> float:
        return 0.0


def spoken(events: list[AnyEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, AgentMessageChunk))


def calls_write(path: str) -> Reply:
    call = {"name": "write_file", "arguments": json.dumps({"path": path, "content": "x"})}
    called = chat_call(0, id="call_1", type="function", function=call)
    return streams(chat({"content": "Writing"}), called, chat({}, "tool_calls"), DONE)


def sent(body: dict[str, Any]) -> str:
    """A request, with images in one spelling: Google's SDK sends base64 for addresses."""
    return json.dumps(body).replace("-", "+").replace("_", "/")


# -- a conversation that is too long, in the words of several servers ------------------------------------------------

TOO_LONG: dict[str, tuple[int, dict[str, Any]]] = {
    "input and max_tokens": (400, {"message": "input length and `max_tokens` exceed context limit: 188240 + 21333"}),
    "bytes": (413, {"type": "request_too_large", "message": "Request exceeds the maximum size"}),
    "prompt length": (400, {"message": "This model's maximum prompt length is 131072 but the request contains 537812"}),
    "prompt token count": (400, {"message": "prompt token count of 141361 exceeds the limit of 128000"}),
    "inputs": (422, {"message": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096."}),
}


@pytest.mark.parametrize(("status", "error"), TOO_LONG.values(), ids=TOO_LONG)
async def test_an_overflow_in_any_words_is_summed_up_and_the_prompt_stays(
    tmp_path: Path, status: int, error: dict[str, Any]
) -> None:
    async with upstream(chat_says("answer " * 100)) as server:
        model = ProviderModel(endpoint(server), PATIENT)
        async with whole(tmp_path, lambda _: model) as (_, session):
            await events_of(session, "first")
            server.replies[:] = [answers(status, {"error": error}), chat_says("SUMMARY"), chat_says("fine")]
            assert spoken(await events_of(session, "second")) == "fine"
    last = sent(server.requests[-1].body)
    assert ("SUMMARY" in last, "second" in last) == (True, True)


async def test_a_limit_of_tokens_in_a_minute_removes_nothing_and_compact_helps(tmp_path: Path) -> None:
    words = "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 9000"

    async def limits(exchange: Exchange) -> None:
        is_large = len(json.dumps(exchange.request.body["messages"])) > 20_000
        await (answers(413, {"error": {"message": words}}) if is_large else chat_says("fine"))(exchange)

    async with upstream(chat_says("answer " * 2_000)) as server:
        model = ProviderModel(endpoint(server), PATIENT)
        async with whole(tmp_path, lambda _: model) as (_, session):
            await events_of(session, "first")
            await events_of(session, "second")
            server.replies[:] = [limits]
            with pytest.raises(RequestFailed) as refused:
                await events_of(session, "third")
            assert len(server.requests) == 3
            assert "was summed up" in spoken(await events_of(session, "/compact"))
            assert spoken(await events_of(session, "fourth")) == "fine"
    assert refused.value.message == (
        f"The request has more tokens than mine accepts in a minute: {words}. Nothing was removed from the "
        "conversation; /compact makes it shorter"
    )
    assert refused.value.data == {"reason": "rate_limit"}
    users = [message["content"] for message in server.requests[-1].body["messages"] if message["role"] == "user"]
    assert ("third" in users, users[-1]) == (True, "fourth")


# -- refused for an unknown reason -----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_loaded", [False, True], ids=["live", "loaded"])
@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_refusal_after_work_was_done_removes_nothing(tmp_path: Path, protocol: int, is_loaded: bool) -> None:
    store = SqliteStore(tmp_path / "store")
    async with upstream(calls_write("done.txt"), REFUSES, chat_says("back")) as server:
        to = endpoint(server)
        fakes: dict[str, Any] = {"protocol": protocol, "store": store, "mode": "full-access"}
        async with whole(tmp_path, lambda _: ProviderModel(to, PATIENT), **fakes) as (client, session):
            with pytest.raises(RequestFailed) as refused:
                await events_of(session, "build it")
            if is_loaded:
                await session.close()
            goes_on = await client.load_session(session.id, str(tmp_path)) if is_loaded else session
            assert spoken(await events_of(goes_on, "next")) == "back"
    await store.close()
    assert refused.value.message == f"mine refuses the request: Not so. {NOTHING_REMOVED.format('mine/m')}"
    assert (tmp_path / "done.txt").read_text() == "x"
    roles = [message["role"] for message in server.requests[-1].body["messages"] if TOLD not in str(message)]
    assert roles == ["system", "user", "assistant", "tool", "user"]
    assert "build it" in sent(server.requests[-1].body) and "done.txt" in sent(server.requests[-1].body)


async def test_a_conversation_that_is_refused_again_is_said_to_be_the_cause_and_compact_goes_on(tmp_path: Path) -> None:
    async with upstream(calls_write("done.txt"), REFUSES) as server:
        model = ProviderModel(endpoint(server), PATIENT)
        async with whole(tmp_path, lambda _: model, mode="full-access") as (_, session):
            with pytest.raises(RequestFailed, match="Nothing was removed from the conversation"):
                await events_of(session, "build it")
            refusals = []
            for prompt in ("second", "third"):
                with pytest.raises(RequestFailed) as refused:
                    await events_of(session, prompt)
                refusals.append(refused.value.message)
            server.replies[:] = [chat_says("SUMMARY: done.txt"), chat_says("back")]
            assert "was summed up" in spoken(await events_of(session, "/compact"))
            assert spoken(await events_of(session, "fourth")) == "back"
    again = (
        "mine refuses the request: Not so. Your message was left out of the conversation, and nothing else. mine/m has "
        "not accepted what stands before it either: /compact sums the conversation up, /clear lets the model forget "
        "it, /model chooses another model. Then send your message again"
    )
    assert refusals == [again, again]
    messages = server.requests[-1].body["messages"]
    users = [message["content"] for message in messages if message["role"] == "user" and TOLD not in str(message)]
    assert (users[0], users[-1], "SUMMARY: done.txt" in str(users)) == ("build it", "fourth", True)


async def test_after_clear_a_refused_conversation_is_gone_and_the_session_works(tmp_path: Path) -> None:
    async with upstream(calls_write("done.txt"), REFUSES) as server:
        model = ProviderModel(endpoint(server), PATIENT)
        async with whole(tmp_path, lambda _: model, mode="full-access") as (_, session):
            with pytest.raises(RequestFailed):
                await events_of(session, "build it")
            await events_of(session, "/clear")
            server.replies[:] = [chat_says("back")]
            assert spoken(await events_of(session, "next")) == "back"
    assert "build it" not in sent(server.requests[-1].body)


# -- an image that is refused in other ways than by 400 --------------------------------------------------------------


IMAGES: dict[str, tuple[Family, str, Callable[[], Reply], str]] = {
    "response.failed": (
        *("openai", "gpt-5", lambda: response_failed("invalid_image", "The image is not valid.")),
        "openai refuses the request: invalid_image: The image is not valid",
    ),
    "error event": (
        *("openai", "gpt-5", lambda: error_event("image_parse_error", "No.")),
        "openai refuses the request: image_parse_error: No",
    ),
    "500 that names it": (
        *("compatible", "m", lambda: answers(500, {"error": {"message": "failed to process inputs: image: unknown"}})),
        "mine refuses the request: failed to process inputs: image: unknown",
    ),
    "404": (
        *("compatible", "m"),
        lambda: answers(404, {"error": {"message": "No endpoints found that support image input", "code": 404}}),
        "mine refuses the request: No endpoints found that support image input",
    ),
    "500 of google that names nothing": (
        *("google", "gemini-2.5-flash"),
        lambda: answers(
            500, {"error": {"code": 500, "message": "An internal error has occurred", "status": "INTERNAL"}}
        ),
        "google failed (status 500). What was attached may be the cause",
    ),
    "413": (
        *("anthropic", "claude-opus-4-8"),
        lambda: answers(413, {"type": "error", "error": {"type": "request_too_large", "message": "too large"}}),
        "The conversation is larger than a request to anthropic/claude-opus-4-8 may be",
    ),
}


@pytest.mark.parametrize("protocol", [1, 2])
@pytest.mark.parametrize(("family", "name", "refuses", "sentence"), IMAGES.values(), ids=IMAGES)
async def test_an_image_that_is_refused_in_any_way_is_left_out_and_the_next_prompt_works(
    tmp_path: Path, family: Family, name: str, refuses: Callable[[], Reply], sentence: str, protocol: int
) -> None:
    no_key = answers(401, {"error": {"message": "who are you", "code": 401, "status": "UNAUTHENTICATED"}})

    async def refuses_images(exchange: Exchange) -> None:
        # Whether the next request is accepted is all that matters; a wrong key is the quickest answer.
        await (refuses() if PIXEL in sent(exchange.request.body) else no_key)(exchange)

    async with upstream(refuses_images) as server:
        model = Hasty(endpoint(server, family, name, images=True), PATIENT)
        async with whole(tmp_path, lambda _: model, protocol=protocol) as (_, session):
            with pytest.raises(RequestFailed) as refused:
                await session.prompt([Text("what is this?"), IMAGE]).read()
            with pytest.raises(RequestFailed, match="does not accept the key"):
                await events_of(session, "next")
    left_out = "The model does not see 1 file (image/png) any more; your text stays in the conversation"
    again = ". Send it again if the failure had another cause" if family == "google" else ""
    assert refused.value.message == f"{sentence}. {left_out}{again}"
    assert "what is this?" in json.dumps(server.requests[-1].body)


# -- what is left out, and when --------------------------------------------------------------------------------------


class Refusing(StrictModel):
    """Raises the failure at the calls with these numbers, after some text where there is some."""

    def __init__(self, failure: ModelFailed, at: Sequence[int], *turns: Sequence[Any], text: str = "") -> None:
        super().__init__(*turns)
        self._failure, self._at, self._text = failure, at, text
        self._calls = 0

    def retry_seconds(self, attempt: int) -> float:
        return 0.0

    async def respond(self, inquiry: ModelRequest) -> AsyncGenerator[Piece, None]:
        self._calls += 1
        if self._calls in self._at:
            if self._text:
                yield TextDelta(self._text)
            raise self._failure
        async for piece in super().respond(inquiry):
            yield piece


class Showing:
    """A tool that returns content."""

    def __init__(self, *content: Content) -> None:
        self._content = list(content)

    def specs(self) -> list[ToolSpec]:
        return []

    async def run(self, calls: Sequence[ContextToolCall], finished: loop.Finished) -> None:
        for call in calls:
            await finished(ContextToolResult(call.id, call.tool, "shown", content=self._content))


async def unnoted(note: object) -> None:
    """Kept nowhere."""


async def turn(model: Refusing, context: Context, prompt: list[Content], *shown: Content) -> Idle:
    model.begin_turn()
    message = ContextUserMessage(f"m{len(context.items)}", prompt)
    events = [event async for event in loop.turn(model, context, Showing(*shown), message)]
    assert isinstance(events[-1], Idle)
    return events[-1]


def texts(items: Sequence[Item]) -> list[str]:
    """What each item says, with its content."""
    return [
        item.text + text_of(item.content)
        if isinstance(item, ContextToolResult)
        else text_of(item.content)
        if isinstance(item, ContextUserMessage)
        else item.text
        for item in items
    ]


MARKER = "[image/png left out: the model's provider refused it]"


@pytest.mark.parametrize("failure", [RequestRejected("No"), MediaRejected("No"), RequestTooLarge("x")])
async def test_an_image_of_a_tool_result_is_left_out_and_the_work_of_the_turn_stays(failure: ModelFailed) -> None:
    model = Refusing(failure, [2], [{"say": "look"}, {"call": "show"}, {"say": "never"}], [{"say": "on"}])
    context = Context([], unnoted)
    end = await turn(model, context, [Text("go")], IMAGE)
    assert end.error and "does not see 1 file (image/png) any more" in end.error.message
    assert texts(context.items) == ["go", "look", f"shown{MARKER}"]


async def test_an_image_is_left_out_although_words_came_before_its_refusal() -> None:
    model = Refusing(MediaRejected("No"), [1], [{"say": "on"}], text="I see")
    context = Context([], unnoted)
    await turn(model, context, [Text("go"), IMAGE])
    assert texts(context.items) == [f"go{MARKER}", "I see[interrupted]"]


async def test_a_provider_that_crashes_does_not_cost_an_image_that_it_has_accepted() -> None:
    model = Refusing(ProviderCrashed("Failed"), range(2, 6), [{"say": "seen"}], [{"say": "never"}])
    context = Context([], unnoted)
    await turn(model, context, [Text("go"), IMAGE])
    end = await turn(model, context, [Text("next")])
    assert end.error and end.error.message == "Failed"
    assert texts(context.items) == ["go[image: image/png]", "seen", "next"]


async def test_a_provider_that_crashes_once_does_not_cost_an_image() -> None:
    model = Refusing(ProviderCrashed("Failed"), [1], [{"say": "seen"}])
    context = Context([], unnoted)
    assert (await turn(model, context, [Text("go"), IMAGE])).stop_reason == "end_turn"
    assert texts(context.items) == ["go[image: image/png]", "seen"]


async def test_a_refusal_that_names_images_where_there_are_none_removes_nothing() -> None:
    model = Refusing(MediaRejected("No image"), [1], [{"say": "never"}])
    context = Context([], unnoted)
    end = await turn(model, context, [Text("go")])
    assert end.error and end.error.message == f"No image. {NOTHING_REMOVED.format('script')}"
    assert texts(context.items) == ["go"]


async def test_images_that_were_accepted_are_left_out_where_the_provider_names_them() -> None:
    model = Refusing(MediaRejected("No images here"), [2], [{"say": "seen"}], [{"say": "never"}])
    context = Context([], unnoted)
    await turn(model, context, [Text("go"), IMAGE])
    await turn(model, context, [Text("next")])
    assert texts(context.items) == [f"go{MARKER}", "seen", "next"]


async def test_a_refused_prompt_after_a_turn_that_was_answered_is_left_out_alone() -> None:
    model = Refusing(RequestRejected("No"), [2], [{"say": "hello"}], [{"say": "never"}])
    context = Context([], unnoted)
    await turn(model, context, [Text("first")])
    end = await turn(model, context, [Text("poison")])
    assert end.error and end.error.message == (
        "No. Your message was left out of the conversation, so that the next one does not fail as well"
    )
    assert context.items == [ContextUserMessage("m0", [Text("first")]), ContextAssistantMessage("hello")]
