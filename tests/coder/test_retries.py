"""How long a call waits for which failure, in what steps, and what is said meanwhile and at the end."""

import math
from contextlib import aclosing

import pytest

from dragoman.coder.models.contract import ModelFailed
from dragoman.coder.models.request_failures import NEVER, OverMinuteLimit, ProviderBusy, RequestRejected
from dragoman.coder.models.script import ScriptModel, parse
from dragoman.coder.retries import Retries, RetryPolicy, in_words, may_pass
from dragoman.vocabulary.events import Notice

pytestmark = pytest.mark.anyio

MODEL = ScriptModel(parse({"turns": [{"steps": []}]}))


class Clock:
    """Sleeps in no time, and keeps for how long."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def busy(asked: float | None = None) -> ProviderBusy:
    return ProviderBusy("server", "acme is overloaded", asked)


def waits(retries: Retries, failure: ModelFailed) -> list[float]:
    """The pauses until the call is given up."""
    found: list[float] = []
    while (pause := retries.after(failure)) is not None:
        found.append(pause.seconds)
        assert len(found) < 100
    return found


def test_an_overloaded_provider_is_waited_for_over_minutes_longer_each_time() -> None:
    retries = Retries(MODEL, RetryPolicy(random=lambda: 1.0))
    assert waits(retries, busy()) == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 58.0]
    assert str(retries.given_up(busy())) == "acme is overloaded. Tried 10 times in 5 min"


def test_the_steps_have_jitter_so_that_many_do_not_come_back_together() -> None:
    least = waits(Retries(MODEL, RetryPolicy(random=lambda: 0.0)), busy())
    assert least[:5] == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert sum(least) == 300.0


def test_what_the_provider_asks_for_is_waited_exactly() -> None:
    retries = Retries(MODEL, RetryPolicy())
    assert waits(retries, busy(90.0)) == [90.0, 90.0, 90.0]
    why = "It asks to wait 90 s, and a call waits at most 5 min in all"
    assert str(retries.given_up(busy(90.0))) == f"acme is overloaded. {why}"


def test_more_than_the_bound_is_not_waited_and_the_user_hears_how_long_it_would_be() -> None:
    retries = Retries(MODEL, RetryPolicy())
    assert waits(retries, busy(3900.0)) == []
    why = "It asks to wait 1 h 5 min, and a call waits at most 5 min in all"
    assert str(retries.given_up(busy(3900.0))) == f"acme is overloaded. {why}"


def test_a_provider_that_asks_for_no_wait_is_not_asked_all_the_time() -> None:
    assert waits(Retries(MODEL, RetryPolicy()), busy(0.0))[:4] == [0.0, 2.0, 4.0, 8.0]


def test_with_another_model_at_hand_the_wait_is_shorter() -> None:
    policy = RetryPolicy(random=lambda: 1.0)
    assert waits(Retries(MODEL, policy, has_fallback=True), busy()) == [2.0, 4.0, 8.0, 16.0]
    assert waits(Retries(MODEL, policy, has_fallback=True), busy(45.0)) == []


def test_no_wait_at_all_can_be_chosen() -> None:
    assert waits(Retries(MODEL, RetryPolicy(longest=0)), busy()) == []


@pytest.mark.parametrize("kind", ["network", "server", "garbage", "rate_limit"])
def test_what_passes_in_seconds_is_tried_three_times(kind: str) -> None:
    assert len(waits(Retries(MODEL), ModelFailed(kind, "broken"))) == 3  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "failure", [ModelFailed("auth", "no"), RequestRejected("no"), ModelFailed("rate_limit", "no credit", NEVER)]
)
def test_what_does_not_pass_is_not_tried_again(failure: ModelFailed) -> None:
    retries = Retries(MODEL)
    assert waits(retries, failure) == []
    assert retries.given_up(failure) is failure


async def test_a_long_wait_says_how_long_it_is_and_then_once_a_minute() -> None:
    clock = Clock()
    retries = Retries(MODEL, RetryPolicy(sleep=clock.sleep))
    pause = retries.after(busy(200.0))
    assert pause is not None
    sentence = "acme is overloaded; trying again in 3 min 20 s; a cancel ends the wait"
    assert pause.notice == Notice("warning", sentence)
    async with aclosing(retries.wait(pause)) as notices:
        told = [notice async for notice in notices]
    assert told == [Notice("info", f"Still waiting for script: {left} left") for left in ("2 min 20 s", "80 s", "20 s")]
    assert clock.slept == [60.0, 60.0, 60.0, 20.0]


@pytest.mark.parametrize(
    ("failure", "passes"),
    [
        (busy(), True),
        (ModelFailed("rate_limit", "no credit", NEVER), True),
        (ModelFailed("network", "gone"), True),
        (ModelFailed("server", "failed (status 500)"), True),
        (ModelFailed("server", "no such model", NEVER), False),
        (ModelFailed("auth", "bad key"), False),
        (ModelFailed("garbage", "unreadable"), False),
        (RequestRejected("no"), False),
        (OverMinuteLimit("too many tokens for a minute"), False),
    ],
)
def test_another_model_may_do_better_at_limits_overload_and_outages_alone(failure: ModelFailed, passes: bool) -> None:
    assert may_pass(failure) is passes


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (119, "119 s"), (120, "2 min"), (150, "2 min 30 s"), (3600, "1 h"), (3900, "1 h 5 min")],
)
def test_times_are_said_as_people_say_them(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_the_real_jitter_is_inside_its_bounds() -> None:
    assert all(0 <= RetryPolicy().random() <= 1 for _ in range(10)) and math.isfinite(RetryPolicy().longest)
