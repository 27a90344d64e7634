"""Providers that limit, are overloaded or cut an answer, through the whole agent: it waits, says so, and goes on.

The clock is the test's: what is waited is counted, and passes at once.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.models.endpoints import Family
from dragoman.coder.models.providers import ProviderModel
from dragoman.coder.retries import RetryPolicy
from dragoman.errors import RequestFailed
from dragoman.vocabulary.events import AgentMessageChunk, AnyEvent, Notice
from tests.coder.models.asking import endpoint
from tests.coder.models.plain_answers import answer, cut
from tests.support.upstream import Reply, Upstream, answers, upstream
from tests.support.whole_agent import events_of, text, whole

pytestmark = pytest.mark.anyio

RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}
LIMITS: list[tuple[Family, Reply, float]] = [
    ("anthropic", answers(429, {"error": {"type": "rate_limit_error", "message": "Slow."}}, retry_after="42"), 42.0),
    ("openai", answers(429, {"error": {"message": "Slow. Please try again in 1m3s."}}), 63.0),
    (
        "google",
        answers(
            429,
            {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Slow.", "details": [RETRY_INFO]}},
        ),
        34.0,
    ),
    (
        "compatible",
        answers(
            429,
            {"error": {"message": "Slow."}},
            x_ratelimit_remaining_requests="0",
            x_ratelimit_reset_requests="1m0.5s",
        ),
        60.5,
    ),
]
OVERLOADED: dict[Family, Reply] = {
    "anthropic": answers(529, {"error": {"type": "overloaded_error", "message": "Overloaded"}}),
    "openai": answers(503, {"error": {"message": "Overloaded"}}),
    "google": answers(503, {"error": {"code": 503, "status": "UNAVAILABLE", "message": "Overloaded"}}),
    "compatible": answers(503, {"error": {"message": "Overloaded"}}),
}


class Clock:
    """Sleeps in no time, and keeps for how long."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def policy(self, **more: Any) -> dict[str, Any]:
        return {"retries": RetryPolicy(sleep=self.sleep, random=lambda: 1.0, **more)}


def model_at(up: Upstream, family: Family) -> ProviderModel:
    return ProviderModel(endpoint(up, family))


def notices(events: list[AnyEvent]) -> list[str]:
    return [event.title for event in events if isinstance(event, Notice)]


@pytest.mark.parametrize(("family", "limit", "seconds"), LIMITS, ids=[case[0] for case in LIMITS])
async def test_a_limit_is_waited_for_as_long_as_the_provider_asks(
    tmp_path: Path, family: Family, limit: Reply, seconds: float
) -> None:
    clock = Clock()
    async with upstream(limit, answer(family, "Hello")) as up:
        model = model_at(up, family)
        async with whole(tmp_path, lambda _: model, setup=clock.policy()) as (_, session):
            events = await events_of(session)
    assert text(events) == "Hello"
    assert sum(clock.slept) == seconds
    assert "asks to slow down: Slow" in notices(events)[0]
    assert notices(events)[0].endswith("; a cancel ends the wait")


@pytest.mark.parametrize("family", OVERLOADED)
async def test_an_overloaded_provider_is_asked_again_over_minutes_and_its_reason_is_told(
    tmp_path: Path, family: Family
) -> None:
    clock = Clock()
    async with upstream(OVERLOADED[family]) as up:
        model = model_at(up, family)
        async with whole(tmp_path, lambda _: model, setup=clock.policy()) as (_, session):
            with pytest.raises(RequestFailed, match=r"is overloaded: Overloaded\. Tried 10 times in 5 min"):
                await events_of(session)
            assert sum(clock.slept) == 300.0
            assert len(up.requests) == 10
            up.replies[:] = [answer(family, "back")]
            assert text(await events_of(session)) == "back"


@pytest.mark.parametrize("family", OVERLOADED)
async def test_an_answer_that_was_cut_is_in_the_context_once(tmp_path: Path, family: Family) -> None:
    clock = Clock()
    async with upstream(cut(family, "The answ"), answer(family, "The answer"), answer(family, "Yes")) as up:
        model = model_at(up, family)
        model.retry_seconds = lambda attempt: 0.0  # type: ignore[method-assign]
        async with whole(tmp_path, lambda _: model, setup=clock.policy()) as (_, session):
            events = await events_of(session)
            await events_of(session, "really?")
    said = [event for event in events if isinstance(event, AgentMessageChunk)]
    assert [event.text for event in said] == ["The answ", "The answer"]
    assert len({event.message_id for event in said}) == 2  # two messages: no client joins them
    assert str(up.requests[-1].body).count("The answ") == 1


async def test_a_cancel_ends_the_wait_at_once(tmp_path: Path) -> None:
    waiting = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    family, limit, _ = LIMITS[0]
    async with upstream(limit) as up:
        model = model_at(up, family)
        async with whole(tmp_path, lambda _: model, setup={"retries": RetryPolicy(sleep=sleep)}) as (_, session):
            turn = session.prompt("go")
            following = asyncio.ensure_future(turn.read())
            await waiting.wait()
            await turn.cancel()
            await following
            assert turn.stop_reason == "cancelled"
        assert len(up.requests) == 1
