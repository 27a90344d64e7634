"""Only a whole answer becomes the summary of a conversation; after any other one nothing has changed."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from msgspec import UnsetType

from dragoman.coder.models.contract import ModelRequest, Piece, UsageReported
from dragoman.coder.models.providers import ProviderModel
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.events import AgentMessageChunk, AnyEvent, CompactionUpdate, Cost, UsageChanged
from tests.coder.models.asking import PATIENT, endpoint
from tests.support.conversation import TOLD
from tests.support.provider_streams import anthropic_begins, anthropic_block, anthropic_ends
from tests.support.upstream import (
    DONE,
    Reply,
    Request,
    Upstream,
    chat,
    chat_call,
    chat_says,
    chat_usage,
    streams,
    upstream,
)
from tests.support.whole_agent import events_of, whole

FACT = "the key fact is 42. " * 100
CALL = chat_call(0, id="c1", type="function", function={"name": "read_file", "arguments": '{"path": "x"}'})


class Quick(ProviderModel):
    """Tries again at once."""

    def retry_seconds(self, attempt: int) -> float:
        return 0.0


def model_at(server: Upstream, **config: object) -> Quick:
    return Quick(endpoint(server, **config), PATIENT)  # type: ignore[arg-type]


def said_in(body: dict[str, Any]) -> list[str]:
    """The conversation in a request, without the system prompt and what the agent tells by itself."""
    return [message["content"] for message in body["messages"][1:] if TOLD not in str(message)]


def words(events: list[AnyEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, AgentMessageChunk))


def stages(events: list[AnyEvent]) -> list[str]:
    return [event.status for event in events if isinstance(event, CompactionUpdate)]


def asks_for_summary(request: Request) -> bool:
    return "Sum up the conversation" in str(request.body["messages"][-1])


def says(text: str, finish: str) -> Reply:
    return chat_says(text, finish=finish)


def calls(text: str) -> Reply:
    return streams(chat({"content": text}), CALL, chat({}, "tool_calls"), chat_usage(7, 3), DONE)


NO_SUMMARY: dict[str, tuple[list[Reply], str]] = {
    "refused": ([says("I cannot", "content_filter")], "The model refused to sum up the conversation"),
    "cut off": ([says("The user wants to", "length")] * 2, "The model's summary is too long, and was cut off"),
    "endless": ([says("word " * 10_000, "stop")] * 2, "The model's summary is too long, and was cut off"),
    "a call": ([calls("I will look first.")] * 4, "The model called a tool instead of summing up"),
    "nothing": ([says(" ", "stop")] * 4, "The model gave no summary"),
}


@pytest.mark.parametrize("protocol", [1, 2])
@pytest.mark.parametrize(("replies", "reason"), NO_SUMMARY.values(), ids=NO_SUMMARY)
async def test_an_answer_that_is_no_summary_changes_nothing(
    tmp_path: Path, protocol: int, replies: list[Reply], reason: str
) -> None:
    async with upstream(chat_says(FACT), *replies, chat_says("back")) as server:
        model = model_at(server)
        async with whole(tmp_path, lambda _: model, protocol=protocol) as (_, session):
            await events_of(session, "first")
            told = words(await events_of(session, "/compact"))
            assert words(await events_of(session, "next")) == "back"
    assert told == f"The conversation could not be summed up: {reason}. Nothing was changed.\n"
    assert len(server.requests) == len(replies) + 2
    sent = said_in(server.requests[-1].body)
    assert sent == ["first", FACT, "next"]


async def test_an_automatic_summary_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    full = streams(chat({"content": FACT}), chat({}, "stop"), chat_usage(9_000, 500), DONE)
    async with upstream(full, says("no", "content_filter"), chat_says("back")) as server:
        model = model_at(server, window=10_000)
        async with whole(tmp_path, lambda _: model) as (_, session):
            await events_of(session, "first")
            events = await events_of(session, "second")
    assert [asks_for_summary(request) for request in server.requests] == [False, True, False]
    assert (stages(events), words(events)) == (["in_progress", "failed"], "back")
    assert said_in(server.requests[2].body) == ["first", FACT, "second"]


async def test_an_answer_that_anthropic_refuses_is_no_summary(tmp_path: Path) -> None:
    def claude(text: str, stop: str) -> Reply:
        block = anthropic_block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": text})
        return streams(anthropic_begins(), block, anthropic_ends(stop))

    replies = [claude(FACT, "end_turn"), claude("no", "refusal"), claude("back", "end_turn")]
    async with upstream(*replies) as server:
        model = Quick(endpoint(server, "anthropic", "claude-opus-4-8"), PATIENT)
        async with whole(tmp_path, lambda _: model) as (_, session):
            await events_of(session, "first")
            told = words(await events_of(session, "/compact"))
            await events_of(session, "next")
    assert "The model refused to sum up the conversation. Nothing was changed." in told
    assert "the key fact is 42" in str(server.requests[-1].body)


async def test_a_summary_that_was_cut_off_is_asked_for_once_more_and_shorter(tmp_path: Path) -> None:
    replies = [chat_says(FACT), says("The user wants to", "length"), chat_says("THE SUMMARY"), chat_says("back")]
    async with upstream(*replies) as server, whole(tmp_path, lambda _: model_at(server)) as (_, session):
        await events_of(session, "first")
        events = await events_of(session, "/compact")
        await events_of(session, "next")
    assert (stages(events), "was summed up" in words(events)) == (["in_progress", "completed"], True)
    assert "at most 300 words" in str(server.requests[2].body["messages"][-1])
    sent = said_in(server.requests[3].body)
    assert sent == ["first", "A summary of the conversation so far:\n\nTHE SUMMARY", "next"]


# -- how full it is afterwards ---------------------------------------------------------------------------------------


class Costly(Quick):
    """Each call costs a quarter of a dollar."""

    async def respond(self, inquiry: ModelRequest) -> AsyncGenerator[Piece, None]:
        async for piece in super().respond(inquiry):
            yield piece._replace(cost=0.25) if isinstance(piece, UsageReported) else piece


def usage(events: list[AnyEvent]) -> list[tuple[int, Cost | UnsetType | None]]:
    return [(event.used, event.cost) for event in events if isinstance(event, UsageChanged)]


@pytest.mark.parametrize("protocol", [1, 2])
async def test_compact_and_clear_tell_how_full_the_window_is_now_and_the_cost(tmp_path: Path, protocol: int) -> None:
    full = streams(chat({"content": FACT}), chat({}, "stop"), chat_usage(9_000, 500), DONE)
    async with upstream(full, says("no", "content_filter"), chat_says("short")) as server:
        model = Costly(endpoint(server, window=200_000), PATIENT)
        async with whole(tmp_path, lambda _: model, protocol=protocol) as (_, session):
            assert usage(await events_of(session, "first")) == [(9_500, Cost(0.25, "USD"))]
            assert usage(await events_of(session, "/compact")) == [(9_500, Cost(0.5, "USD"))]
            [(summed, cost)] = usage(await events_of(session, "/compact"))
            assert usage(await events_of(session, "/compact")) == []
            [(cleared, same)] = usage(await events_of(session, "/clear"))
    assert (cost, same) == (Cost(0.75, "USD"), Cost(0.75, "USD"))
    assert 0 < cleared < summed < 9_500


async def test_compact_tells_no_fill_of_a_window_that_is_not_known(tmp_path: Path) -> None:
    async with upstream(chat_says(FACT), chat_says("short")) as server:
        model = model_at(server)
        async with whole(tmp_path, lambda _: model) as (_, session):
            await events_of(session, "first")
            assert usage(await events_of(session, "/compact")) == []


@pytest.mark.requirement("CA11")
async def test_compact_right_after_a_resume_sends_the_system_prompt_and_the_tools(tmp_path: Path) -> None:
    replies = [chat_says(FACT), chat_says("THE SUMMARY")]
    store = SqliteStore(tmp_path / "store")
    async with (
        upstream(*replies) as server,
        whole(tmp_path, lambda _: model_at(server), store=store) as (client, session),
    ):
        await events_of(session, "first")
        await session.close()
        resumed = await client.resume_session(session.id, str(tmp_path))
        assert "was summed up" in words(await events_of(resumed, "/compact"))
    await store.close()
    first, summary = server.requests
    assert asks_for_summary(summary)
    assert (summary.body["tools"], summary.body["messages"][0]) == (first.body["tools"], first.body["messages"][0])
