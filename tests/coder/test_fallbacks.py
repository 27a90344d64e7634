"""Models that answer while the chosen one cannot: which one, when, for how long, and what is told."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.fallbacks import Fallbacks
from dragoman.coder.managed_settings import ManagedModels, ManagedSettings
from dragoman.coder.models.contract import ModelFailed, ModelRequest, Piece
from dragoman.coder.models.request_failures import ProviderBusy, RequestRejected
from dragoman.coder.models.script import ScriptModel, parse
from dragoman.coder.retries import RetryPolicy
from dragoman.coder.session_options import is_option
from dragoman.errors import RequestFailed
from dragoman.vocabulary.content import Image, Text
from dragoman.vocabulary.events import AgentMessageChunk, AnyEvent, Cost, Notice, UsageChanged
from tests.support.scripted_turns import call
from tests.support.whole_agent import Several, events_of, text, whole

pytestmark = pytest.mark.anyio

FIRST, SECOND, THIRD = "acme/first", "beta/second", "gamma/third"


async def no_sleep(seconds: float) -> None:
    """Wait for nothing."""


RETRIES = RetryPolicy(sleep=no_sleep, random=lambda: 1.0)


class Named(ScriptModel):
    """Plays a script under a name; raises these failures first, one for each call."""

    def __init__(self, name: str, *steps: dict[str, Any], failures: list[ModelFailed] | None = None) -> None:
        super().__init__(parse({"turns": [{"steps": list(steps)}], "window": 100_000}))
        self.name = name
        self.failures = failures or []
        self.asked: list[ModelRequest] = []

    async def respond(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        self.asked.append(request)
        if self.failures:
            raise self.failures.pop(0)
        async for piece in super().respond(request):
            yield piece


def busy(asked: float | None = None) -> ProviderBusy:
    return ProviderBusy("server", "acme is overloaded", asked)


def always(failure: ModelFailed) -> list[ModelFailed]:
    return [failure] * 100


def setup(*names: str, **more: Any) -> dict[str, Any]:
    return {"fallback_models": names, "retries": RETRIES} | more


def models(*each: Named) -> Several:
    return Several({model.name: model for model in each})


def told(events: list[AnyEvent]) -> list[str]:
    return [event.title for event in events if isinstance(event, Notice)]


async def test_another_model_answers_where_the_chosen_one_stays_overloaded_and_the_notice_names_it(
    tmp_path: Path,
) -> None:
    first, second = Named(FIRST, failures=always(busy())), Named(SECOND, {"say": "Here."})
    async with whole(tmp_path, lambda name: first, models=models(first, second), setup=setup(SECOND)) as (_, session):
        events = await events_of(session)
        chosen = next(option for option in session.options if is_option(option, "model"))
    assert text(events) == "Here."
    assert len(first.asked) == 5  # over half a minute, not five
    assert told(events)[-1] == (
        "acme is overloaded. Tried 5 times in 30 s. beta/second answers to the end of this turn"
    )
    assert chosen.current_value == FIRST


async def test_a_wait_that_is_longer_than_the_bound_is_not_begun(tmp_path: Path) -> None:
    first, second = Named(FIRST, failures=always(busy(45.0))), Named(SECOND, {"say": "Here."})
    async with whole(tmp_path, lambda name: first, models=models(first, second), setup=setup(SECOND)) as (_, session):
        assert text(await events_of(session)) == "Here."
    assert len(first.asked) == 1


@pytest.mark.parametrize(
    "failure",
    [
        ModelFailed("auth", "acme does not accept the key"),
        RequestRejected("acme refuses the request"),
        ModelFailed("server", "acme has no model first", float("inf")),
    ],
)
async def test_a_bad_key_and_a_bad_request_are_the_users_to_know(tmp_path: Path, failure: ModelFailed) -> None:
    first, second = Named(FIRST, failures=always(failure)), Named(SECOND, {"say": "Here."})
    async with whole(tmp_path, lambda name: first, models=models(first, second), setup=setup(SECOND)) as (_, session):
        with pytest.raises(RequestFailed, match="acme"):
            await events_of(session)
    assert second.asked == []


async def test_the_turn_goes_on_with_what_was_done_and_stays_with_the_other_model(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("forty-two\n")
    first = Named(FIRST, call("read_file", path="a.txt"))
    second = Named(SECOND, call("list_files"), {"say": "Done."})

    async def respond(request: ModelRequest) -> AsyncGenerator[Piece, None]:
        if first.asked:
            raise busy(99.0)
        async for piece in Named.respond(first, request):
            yield piece

    first.respond = respond  # type: ignore[method-assign]
    async with whole(tmp_path, lambda name: first, models=models(first, second), setup=setup(SECOND)) as (_, session):
        assert text(await events_of(session)) == "Done."
    assert "forty-two" in str(second.asked[0].items)
    assert len(second.asked) == 2


async def test_the_next_prompt_tries_the_chosen_model_again_unless_its_provider_named_a_time(tmp_path: Path) -> None:
    now = [0.0]
    first, second = Named(FIRST, {"say": "first"}, failures=[busy(90.0)]), Named(SECOND, {"say": "second"})
    more = setup(SECOND, retries=RETRIES._replace(clock=lambda: now[0]))
    async with whole(tmp_path, lambda name: first, models=models(first, second), setup=more) as (_, session):
        assert text(await events_of(session)) == "second"
        events = await events_of(session)
        assert text(events) == "second"
        now[0] = 91.0
        assert text(await events_of(session)) == "first"
    assert told(events) == [
        "acme/first is not to be asked for another 90 s. beta/second answers to the end of this turn"
    ]


async def test_what_was_streamed_before_the_other_model_took_over_is_marked_and_not_in_its_context(
    tmp_path: Path,
) -> None:
    class Breaking(Named):
        async def respond(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
            from dragoman.coder.models.contract import TextDelta

            yield TextDelta("Half an")
            raise busy(99.0)

    first, second = Breaking(FIRST), Named(SECOND, {"say": "The whole."})
    async with whole(tmp_path, lambda name: first, models=models(first, second), setup=setup(SECOND)) as (_, session):
        events = await events_of(session)
        await events_of(session, "more")
    [notice] = [event for event in events if isinstance(event, Notice)]
    assert notice.meta == {"dragoman/brokenOff": True}
    assert [event.text for event in events if isinstance(event, AgentMessageChunk)] == ["Half an", "The whole."]
    assert "Half an" not in str(second.asked[-1].items)
    assert "The whole." in str(second.asked[-1].items)


async def test_a_model_whose_window_is_too_small_is_passed_over(tmp_path: Path) -> None:
    small, third = Named(SECOND, {"say": "small"}), Named(THIRD, {"say": "third"})
    small.window = 1_000
    first = Named(FIRST, failures=always(busy(99.0)))
    listed = models(first, small, third)
    async with whole(tmp_path, lambda name: first, models=listed, setup=setup(SECOND, THIRD)) as (_, session):
        assert text(await events_of(session, "word " * 2_000)) == "third"
    assert small.asked == []


async def test_a_model_that_does_not_see_the_images_answers_and_the_user_is_told(tmp_path: Path) -> None:
    first, second = Named(FIRST, failures=always(busy(99.0))), Named(SECOND, {"say": "Here."})
    second.sees = frozenset()
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    async with whole(tmp_path, lambda name: first, models=models(first, second), setup=setup(SECOND)) as (_, session):
        turn = session.prompt([Text("what is it?"), Image(pixel, "image/png")])
        events = [event async for event in turn]
    assert told(events)[-1].endswith("beta/second answers to the end of this turn; it does not see the images")


async def test_the_level_of_thought_follows_where_the_other_model_has_it(tmp_path: Path) -> None:
    first, second = Named(FIRST, failures=always(busy(99.0))), Named(SECOND, {"say": "Here."})
    first.thought_levels = ("low", "high")  # type: ignore[attr-defined]
    second.thought_levels = ("high", "max")  # type: ignore[attr-defined]
    more = setup(SECOND, thought_level="high")
    async with whole(tmp_path, lambda name: first, models=models(first, second), setup=more) as (_, session):
        await events_of(session)
    assert [request.thought_level for request in (first.asked[0], second.asked[0])] == ["high", "high"]


async def test_the_cost_is_that_of_the_model_that_answered(tmp_path: Path) -> None:
    first = Named(FIRST, {"usage": {"input": 10, "output": 5, "cost": 9.0}}, failures=always(busy(99.0)))
    second = Named(SECOND, {"say": "Here."}, {"usage": {"input": 10, "output": 5, "cost": 0.5}})
    async with whole(tmp_path, lambda name: first, models=models(first, second), setup=setup(SECOND)) as (_, session):
        events = await events_of(session)
    assert [event.cost for event in events if isinstance(event, UsageChanged)] == [Cost(0.5, "USD")]


async def test_all_models_busy_ends_the_turn_with_the_last_reason(tmp_path: Path) -> None:
    first, second = Named(FIRST, failures=always(busy(99.0))), Named(SECOND)
    second.failures = always(ProviderBusy("rate_limit", "beta asks to slow down", 3600.0))
    async with whole(tmp_path, lambda name: first, models=models(first, second), setup=setup(SECOND)) as (_, session):
        with pytest.raises(RequestFailed, match=r"beta asks to slow down\. It asks to wait 1 h, and a call waits at"):
            await events_of(session)


@pytest.mark.parametrize(
    ("managed", "sentence"),
    [
        (ManagedModels(allowed=("acme/*",)), "does not allow the model beta/second"),
        (ManagedModels(fallback=False), None),
    ],
)
async def test_the_administrators_bounds_hold_for_other_models_too(
    tmp_path: Path, managed: ManagedModels, sentence: str | None
) -> None:
    bounds = ManagedSettings(models=managed, file="/etc/dragoman/managed.toml")
    first, second = Named(FIRST, {"say": "hm"}, failures=[]), Named(SECOND, {"say": "Here."})
    listed = models(first, second)
    async with whole(tmp_path, lambda name: first, models=listed, setup=setup(SECOND), managed=bounds) as (_, session):
        warnings = told(await events_of(session))
        first.failures = always(busy(399.0))
        with pytest.raises(RequestFailed, match="acme is overloaded"):
            await events_of(session)
    assert second.asked == []
    assert [sentence in one for one in warnings if sentence] == ([True] if sentence else [])


async def test_a_name_of_the_list_that_cannot_be_used_is_told_with_the_first_prompt(tmp_path: Path) -> None:
    first, second = Named(FIRST, {"say": "a"}), Named(SECOND)
    listed = models(first, second)
    async with whole(tmp_path, lambda name: first, models=listed, setup=setup("beta/secnd", SECOND)) as (_, session):
        assert told(await events_of(session)) == [
            "beta/secnd of fallback_models is not used: There is no model beta/secnd."
        ]
        assert told(await events_of(session)) == []


async def test_a_helper_falls_back_as_well(tmp_path: Path) -> None:
    delegate = call("agent", prompt="look", description="look")

    class Main(Named):
        def assistant(self, name: str) -> Named:
            return Named(FIRST, failures=always(busy(99.0)))

    first, second = Main(FIRST, delegate, {"say": "done"}), Named(SECOND, {"say": "the report"})
    async with whole(tmp_path, lambda name: first, models=models(first, second), setup=setup(SECOND)) as (_, session):
        events = await events_of(session)
    assert text(events) == "done"
    assert "the report" in str(first.asked[-1].items)


def test_a_long_rest_is_bounded_by_a_day() -> None:
    now = [0.0]
    known = Fallbacks(clock=lambda: now[0])
    model = Named(FIRST)
    known.leave_alone(model, busy(1e9))
    assert known.rest(model) == 24 * 3600.0
    now[0] = 24 * 3600.0
    assert known.rest(model) == 0.0
