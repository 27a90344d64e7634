"""A search by the provider: what is asked of each, what comes back, and what it costs."""

from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import Any

import pytest

from dragoman.coder.models.contract import (
    ModelRequest,
    Piece,
    SearchReport,
    SearchSource,
    TextDelta,
    UsageReported,
)
from dragoman.coder.models.descriptions import Prices
from dragoman.coder.models.endpoints import CONFIG_SOURCE, Family
from dragoman.coder.models.providers import ProviderModel
from tests.coder.models.asking import ask, connected, endpoint, said
from tests.support.provider_streams import anthropic_begins, anthropic_block, anthropic_ends
from tests.support.search_streams import CITED, OTHER, SENTENCE, anthropic_searches, gemini_searches, openai_searches
from tests.support.upstream import Reply, streams, upstream

ANTHROPIC_TOOL = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
PAGES = tuple(SearchSource(*page) for page in (CITED, OTHER))
SPEAKERS: list[tuple[Family, str, Callable[[], Reply], Any, SearchReport]] = [
    ("anthropic", "claude-opus-4-8", anthropic_searches, ANTHROPIC_TOOL, SearchReport(1, PAGES[:1])),
    ("openai", "gpt-5", openai_searches, {"type": "web_search"}, SearchReport(1, PAGES[:1])),
    ("google", "gemini-2.5-flash", gemini_searches, {"googleSearch": {}}, SearchReport(1, PAGES)),
    (
        "google",
        "gemini-3.5-flash",
        partial(gemini_searches, "gemini-3.5-flash"),
        {"googleSearch": {}},
        SearchReport(2, PAGES),
    ),
]
each_provider = pytest.mark.parametrize(
    ("family", "model", "reply", "tool", "report"), SPEAKERS, ids=[speaker[1] for speaker in SPEAKERS]
)


async def search(model: ProviderModel) -> list[Piece]:
    request = ModelRequest([said("httpx proxies")], (), "Search.", "low", "search")
    async with aclosing(model.respond(request)) as coming:
        return [piece async for piece in coming]


def text_of(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))


def report_of(pieces: list[Piece]) -> SearchReport:
    (report,) = [piece for piece in pieces if isinstance(piece, SearchReport)]
    return report


@each_provider
async def test_the_provider_is_asked_to_search_and_its_answer_has_the_pages(
    family: Family, model: str, reply: Callable[[], Reply], tool: Any, report: SearchReport
) -> None:
    async with upstream(reply()) as up, connected(endpoint(up, family, model)) as it:
        assert it.search_host == f"127.0.0.1:{up.port}"
        pieces = await search(it)
    assert up.requests[0].body["tools"] == [tool]
    assert text_of(pieces) == f"I look. {SENTENCE}"
    assert report_of(pieces) == report


@each_provider
async def test_a_search_costs_its_tokens_and_what_the_provider_bills_for_searching(
    family: Family, model: str, reply: Callable[[], Reply], tool: Any, report: SearchReport
) -> None:
    prices = Prices(input=1.0, output=0.0)
    async with upstream(reply()) as up, connected(endpoint(up, family, model, prices=prices)) as it:
        [used] = [piece for piece in await search(it) if isinstance(piece, UsageReported)]
    each = {"claude-opus-4-8": 0.01, "gpt-5": 0.01, "gemini-2.5-flash": 0.035, "gemini-3.5-flash": 0.014}[model]
    assert used.cost == pytest.approx(used.input / 1e6 + each * report.searches)


async def test_a_failed_search_names_the_providers_code() -> None:
    error = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    async with upstream(anthropic_searches(error)) as up, connected(endpoint(up, "anthropic", "claude-opus-4-8")) as it:
        assert report_of(await search(it)).failure == "max_uses_exceeded"


async def test_pages_that_no_sentence_cites_are_named_where_none_is_cited() -> None:
    pages = [{"type": "web_search_result", "url": OTHER[0], "title": None}]
    result = {"type": "web_search_tool_result", "tool_use_id": "s", "content": pages}
    reply = streams(anthropic_begins(), anthropic_block(0, result), anthropic_ends("end_turn"))
    async with upstream(reply) as up, connected(endpoint(up, "anthropic", "claude-opus-4-8")) as it:
        assert report_of(await search(it)).sources == (SearchSource(OTHER[0]),)


async def test_a_turn_has_no_report_and_asks_for_no_search() -> None:
    async with upstream(openai_searches()) as up, connected(endpoint(up, "openai", "gpt-5")) as it:
        assert not any(isinstance(piece, SearchReport) for piece in await ask(it))
    assert {tool["type"] for tool in up.requests[0].body["tools"]} == {"function"}


@pytest.mark.parametrize(
    ("family", "model", "source", "described", "searches"),
    [
        ("openai", "gpt-5", "default", None, True),
        ("openai", "gpt-5", "default", False, False),
        ("openai", "gpt-5", CONFIG_SOURCE, None, False),
        ("openai", "gpt-5", CONFIG_SOURCE, True, True),
        ("openai", "gpt-4.1-nano", "default", None, False),
        ("anthropic", "claude-3-opus-latest", "default", None, False),
        ("google", "gemini-2.5-flash-image", "default", None, False),
        ("compatible", "gpt-5", "default", True, False),
        ("ollama", "gpt-5", "default", None, False),
    ],
)
async def test_a_search_is_there_where_the_provider_itself_is_asked_or_the_user_says_so(
    family: Family, model: str, source: str, described: bool | None, searches: bool
) -> None:
    async with upstream(openai_searches()) as up:
        to = endpoint(up, family, model, web_search=described)._replace(source=source)
    assert bool(ProviderModel(to).search_host) == searches
