"""Providers that lie about usage, through the whole agent: nothing is summed up, lost or charged for a lie."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.models.endpoints import Family
from dragoman.coder.models.providers import ProviderModel
from dragoman.vocabulary.events import CompactionUpdate, Notice, UsageChanged
from tests.coder.models.asking import PATIENT, endpoint
from tests.coder.models.plain_answers import EVENTS
from tests.support.upstream import Exchange, Reply, upstream
from tests.support.whole_agent import events_of, text, whole

pytestmark = pytest.mark.anyio

NAMES: dict[Family, str] = {
    "anthropic": "claude-opus-4-8",
    "openai": "gpt-5",
    "google": "gemini-2.5-flash",
    "compatible": "m",
}
WINDOW = 100_000
LIES: dict[str, Any] = {
    "nothing": 0,
    "far too much": 10**12,
    "more than any number": 10**30,
    "less than nothing": -5000,
    "a text": "many",
    "a fraction": 12.5,
    "a list": [1],
}


def lying(family: Family, words: str, lie: Any) -> Reply:
    """An answer whose every count is this."""

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: lie if type(one) is int and "oken" in name else changed(one) for name, one in value.items()}
        return [changed(one) for one in value] if isinstance(value, list) else value

    def line(given: bytes) -> bytes:
        if not given.startswith(b"data: {"):
            return given
        return b"data: " + json.dumps(changed(json.loads(given[6:]))).encode()

    async def reply(exchange: Exchange) -> None:
        await exchange.stream([b"\n".join(map(line, event.split(b"\n"))) for event in EVENTS[family](words)])

    return reply


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("family", NAMES)
async def test_a_lie_about_tokens_changes_no_conversation_and_is_not_told(
    tmp_path: Path, family: Family, lie: str
) -> None:
    async with upstream(lying(family, "Hello", LIES[lie])) as up:
        model = ProviderModel(endpoint(up, family, NAMES[family], window=WINDOW), PATIENT)
        async with whole(tmp_path, lambda _: model) as (_, session):
            events = [event for words in ("one", "two", "three") for event in await events_of(session, words)]
    assert text(events) == "HelloHelloHello"
    assert [event for event in events if isinstance(event, CompactionUpdate | Notice)] == []
    told = [event.used for event in events if isinstance(event, UsageChanged)]
    assert told and all(2_000 < used < 10_000 for used in told), told
    assert len(up.requests) == 3


@pytest.mark.parametrize("family", NAMES)
async def test_a_server_that_counts_little_is_not_sent_more_than_its_window(tmp_path: Path, family: Family) -> None:
    """A server that cuts what is too long in silence, and counts what it has left, would lose the user's words."""
    window = 60_000
    async with upstream(lying(family, "word " * 40_000, 900)) as up:
        model = ProviderModel(endpoint(up, family, NAMES[family], window=window), PATIENT)
        async with whole(tmp_path, lambda _: model) as (_, session):
            await events_of(session, "one")
            up.replies[:] = [lying(family, "short", 900)]
            events = await events_of(session, "two")
    assert text(events) == "short"
    assert [event.status for event in events if isinstance(event, CompactionUpdate)] == ["in_progress", "completed"]
    last = json.dumps(up.requests[-1].body)
    assert (len(last) // 4 < window, '"one"' in last, '"two"' in last) == (True, True, True)
