"""What may be spent: no call is made beyond it, by turns, helpers and summaries, and the turn says why it ends."""

import sqlite3
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.day_spending import DaySpending
from dragoman.coder.managed_settings import ManagedSettings, ManagedSpending
from dragoman.coder.models.contract import ModelRequest, Piece, UsageReported
from dragoman.coder.models.descriptions import Prices
from dragoman.coder.models.endpoints import Family
from dragoman.coder.models.providers import ProviderModel
from dragoman.coder.spend_caps import SpendCap, SpendCaps, SpendLimits, caps_of, dollars
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.events import AnyEvent, Cost, Notice, UsageChanged
from tests.coder.models.asking import endpoint
from tests.coder.models.plain_answers import answer
from tests.coder.strict_model import StrictModel
from tests.support.scripted_turns import call
from tests.support.upstream import DONE, Reply, chat, data, streams, upstream
from tests.support.whole_agent import events_of, text, whole

pytestmark = pytest.mark.anyio

FILE = "/etc/dragoman/managed.toml"
LOOK = call("list_files")


class Dear(StrictModel):
    """Each call costs half a dollar, a helper's and a summary's too."""

    async def respond(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        async for piece in super().respond(request):
            yield piece
        yield UsageReported(10, 5, 0.5)

    def assistant(self, name: str) -> "Dear":
        return Dear([LOOK, {"say": "."}, LOOK, {"say": "report"}])


def working() -> Dear:
    """Would make five calls in each turn, and cost 2.5 dollars."""
    return Dear([LOOK, {"say": "."}, LOOK, {"say": "."}, LOOK, {"say": "."}, LOOK, {"say": "done"}], window=100_000)


def limits(**more: float) -> dict[str, Any]:
    return {"spend": SpendLimits(**more)}


def bounds(**more: float) -> ManagedSettings:
    return ManagedSettings(spending=ManagedSpending(**more), file=FILE)


def told(events: Sequence[AnyEvent]) -> list[tuple[str, str]]:
    return [(event.severity, event.title) for event in events if isinstance(event, Notice)]


def cost(events: Sequence[AnyEvent]) -> float:
    return max((e.cost.amount for e in events if isinstance(e, UsageChanged) and isinstance(e.cost, Cost)), default=0.0)


async def test_a_turn_that_has_cost_its_cap_ends_with_a_sentence_and_the_next_prompt_goes_on(tmp_path: Path) -> None:
    model = working()
    async with whole(tmp_path, model.make, setup=limits(turn=1.0)) as (_, session):
        turn = session.prompt("go")
        events = [event async for event in turn]
        assert turn.stop_reason == "max_turn_requests"
        assert told(events) == [
            (
                "error",
                (
                    "This turn has cost $1.00, and the spend cap of a turn is $1.00: prompt again to go on, or raise "
                    "--max-cost or spend.turn in config.toml"
                ),
            )
        ]
        assert len(model.asked) == 2
        assert cost(await events_of(session)) == 2.0


async def test_a_session_keeps_its_cap_over_a_restart(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store")
    model = Dear([{"say": "a"}], window=100_000)
    async with whole(tmp_path, model.make, store=store, setup=limits(session=1.0)) as (_, session):
        await events_of(session)
        await events_of(session)
    again = Dear([{"say": "a"}], window=100_000)
    async with whole(tmp_path, again.make, store=store, setup=limits(session=1.0)) as (client, _):
        resumed = await client.resume_session(session.id, str(tmp_path))
        assert "This session has cost $1.00" in told(await events_of(resumed))[0][1]
    assert again.asked == []
    await store.close()


async def test_the_day_is_that_of_all_sessions_and_of_other_processes(tmp_path: Path) -> None:
    home = tmp_path / "home"
    DaySpending(str(home / "spending.sqlite")).add(4.25)
    model = Dear([{"say": "a"}], window=100_000)
    async with whole(tmp_path, model.make, home=home, setup=limits(day=5.0)) as (client, session):
        await events_of(session)
        other = await client.new_session(str(tmp_path))
        await events_of(other)
        (_, sentence) = told(await events_of(session))[0]
    assert sentence.startswith(
        "All sessions of today have cost $5.25, and the spend cap of a day is $5.00: tomorrow begins"
    )
    assert DaySpending(str(home / "spending.sqlite")).total() == 5.25


async def test_what_is_spent_without_a_cap_counts_for_one_that_is_set_later(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with whole(tmp_path, Dear([{"say": "a"}], window=100_000).make, home=home) as (_, session):
        await events_of(session)
    assert DaySpending(str(home / "spending.sqlite")).total() == 0.5


async def test_a_helper_stops_at_the_cap_of_the_turn_that_it_works_in(tmp_path: Path) -> None:
    model = Dear([call("agent", prompt="look", description="look"), {"say": "done"}], window=100_000)
    async with whole(tmp_path, model.make, setup=limits(turn=1.5)) as (_, session):
        turn = session.prompt("go")
        events = [event async for event in turn]
        assert turn.stop_reason == "max_turn_requests"
    # The helper and the turn it works in say it once.
    assert [severity for severity, _ in told(events)] == ["error"]
    assert len(model.asked) == 1


async def test_a_summary_is_not_made_beyond_the_cap_and_nothing_is_lost(tmp_path: Path) -> None:
    model = Dear([{"say": "a"}], window=100_000)
    async with whole(tmp_path, model.make, setup=limits(session=0.5)) as (_, session):
        await events_of(session)
        said = text(await events_of(session, "/compact"))
    assert "could not be summed up: This session has cost $0.50" in said and "Nothing was changed" in said
    assert model.summaries == []


async def test_a_conversation_that_is_too_long_loses_nothing_where_a_summary_may_not_be_paid(tmp_path: Path) -> None:
    home = tmp_path / "home"
    others = DaySpending(str(home / "spending.sqlite"))

    class Meanwhile(Dear):
        """Refuses a conversation as too long, and meanwhile other sessions spend what is left of the day."""

        async def respond(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
            if self.fits is not None:
                others.add(10.0)
            async for piece in super().respond(request):
                yield piece

    model = Meanwhile([{"say": "a" * 4000}], window=100_000)
    async with whole(tmp_path, model.make, home=home, setup=limits(day=5.0)) as (_, session):
        await events_of(session)
        model.fits = 100
        events = await events_of(session, "more")
        model.fits = None
        others.add(-10.0)
        await events_of(session, "again")
    assert [severity for severity, _ in told(events)] == ["error"]
    assert model.summaries == []
    assert "a" * 4000 in str(model.asked[-1].items)


async def test_the_lower_cap_counts_and_the_administrators_is_named(tmp_path: Path) -> None:
    model = working()
    async with whole(tmp_path, model.make, setup=limits(turn=5.0), managed=bounds(turn=1.0)) as (_, session):
        (_, sentence) = told(await events_of(session))[0]
    assert sentence == f"This turn has cost $1.00, and the administrator's file {FILE} allows $1.00 for a turn"


@pytest.mark.parametrize(
    ("own", "allowed", "cap"),
    [
        (None, None, None),
        (1.0, None, SpendCap(1.0)),
        (None, 2.0, SpendCap(2.0, FILE)),
        (1.0, 2.0, SpendCap(1.0)),
        (3.0, 2.0, SpendCap(2.0, FILE)),
        (2.0, 2.0, SpendCap(2.0, FILE)),
        (0.0, 2.0, SpendCap(0.0)),
    ],
)
def test_of_two_caps_the_lower_one_counts(own: float | None, allowed: float | None, cap: SpendCap | None) -> None:
    managed = ManagedSettings(spending=ManagedSpending(day=allowed), file=FILE)
    assert caps_of(SpendLimits(day=own), managed) == SpendCaps(day=cap)


async def test_a_total_of_the_day_that_cannot_be_read_stops_where_the_day_has_a_cap(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "spending.sqlite").write_text("no database")
    model = Dear([{"say": "a"}], window=100_000)
    async with whole(tmp_path, model.make, home=home, setup=limits(day=5.0)) as (_, session):
        (_, sentence) = told(await events_of(session))[0]
    assert sentence.startswith("No model is called, because a day has a spend cap and what was spent today cannot be")
    assert model.asked == []


async def test_without_a_cap_it_is_told_once_and_the_work_goes_on(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "spending.sqlite").write_text("no database")
    async with whole(tmp_path, Dear([{"say": "a"}], window=100_000).make, home=home) as (_, session):
        first, second = await events_of(session), await events_of(session)
    assert [severity for severity, _ in told(first)] == ["warning"] and text(first) == "a"
    assert told(second) == [] and text(second) == "a"


async def test_two_processes_that_add_at_once_wait_for_each_other(tmp_path: Path) -> None:
    home = tmp_path / "home"
    file = home / "spending.sqlite"
    DaySpending(str(file)).add(1.0)
    holder = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")  # another process is in the middle of adding
    model = Dear([{"say": "a"}], window=100_000)
    async with whole(tmp_path, model.make, home=home) as (_, session):
        turn = session.prompt("go")
        async for event in turn:
            if not isinstance(event, Notice) and model.asked and holder.in_transaction:
                holder.execute("COMMIT")
    holder.close()
    assert DaySpending(str(file)).total() == 1.5


# -- prices ----------------------------------------------------------------------------------------------------------

PRICED: dict[Family, tuple[str, float]] = {
    "anthropic": ("claude-opus-4-8", 0.0075),
    "openai": ("gpt-5", 0.00225),
    "google": ("gemini-2.5-flash", 0.00055),
}


@pytest.mark.parametrize("family", PRICED)
async def test_each_provider_stops_at_the_cap(tmp_path: Path, family: Family) -> None:
    name, price = PRICED[family]
    async with upstream(answer(family, "Hello")) as up:
        model = ProviderModel(endpoint(up, family, name))
        async with whole(tmp_path, lambda _: model, setup=limits(session=price)) as (_, session):
            events = await events_of(session)
            assert cost(events) == pytest.approx(price)
            assert "This session has cost" in told(await events_of(session))[0][1]
        assert len(up.requests) == 1
        await model.close()


async def test_a_model_without_a_price_is_named_once_beside_the_users_cap(tmp_path: Path) -> None:
    async with upstream(answer("compatible", "Hello")) as up:
        model = ProviderModel(endpoint(up))
        async with whole(tmp_path, lambda _: model, setup=limits(turn=1.0)) as (_, session):
            first, second = await events_of(session), await events_of(session)
        await model.close()
    assert text(first) == text(second) == "Hello"
    assert told(second) == []
    assert told(first) == [
        (
            "warning",
            (
                "It is not known what mine/m costs, so it does not count for the spend cap: set its prices at "
                "[providers.mine] in config.toml"
            ),
        )
    ]


async def test_a_model_without_a_price_is_refused_where_the_administrator_has_a_cap(tmp_path: Path) -> None:
    async with upstream(answer("compatible", "Hello")) as up:
        model = ProviderModel(endpoint(up))
        async with whole(tmp_path, lambda _: model, managed=bounds(day=1.0)) as (_, session):
            ((severity, sentence),) = told(await events_of(session))
        assert up.requests == []
        await model.close()
    assert severity == "error"
    assert sentence.startswith(f"It is not known what mine/m costs, and the administrator's file {FILE} limits what")


async def test_a_model_that_costs_nothing_works_also_where_nothing_may_be_spent(tmp_path: Path) -> None:
    async with upstream(answer("compatible", "Hello")) as up:
        here = endpoint(up)._replace(family="ollama", provider="ollama")
        model = ProviderModel(here)
        async with whole(tmp_path, lambda _: model, managed=bounds(day=0.0)) as (_, session):
            assert text(await events_of(session)) == "Hello"
        await model.close()


PRICES = {"input": 1000.0, "output": 1000.0}


@pytest.mark.parametrize(
    ("usage", "at_least"),
    [
        ({}, 0.5),  # nothing is reported: our own estimate counts
        ({"prompt_tokens": 1000, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 10**9}}, 0.0),
        ({"prompt_tokens": 10**12, "completion_tokens": 0}, 1e6),
    ],
)
async def test_a_provider_that_lies_about_usage_does_not_lift_the_cap(
    tmp_path: Path, usage: dict[str, Any], at_least: float
) -> None:
    body = [chat({"content": "Hello"}), chat({}, "stop")]
    if usage:
        chunk = {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": usage}
        body.append(data(chunk))
    reply: Reply = streams(*body, DONE)
    async with upstream(reply) as up:
        model = ProviderModel(endpoint(up, window=1_000_000, prices=Prices(**PRICES)))
        async with whole(tmp_path, lambda _: model, home=tmp_path / "home") as (_, session):
            assert text(await events_of(session)) == "Hello"
        await model.close()
    assert DaySpending(str(tmp_path / "home" / "spending.sqlite")).total() >= at_least


def test_amounts_are_shown_in_cents_and_small_ones_with_more_digits() -> None:
    amounts = (0, 0.0123, 0.5, 1, 1234.5)
    assert [dollars(amount) for amount in amounts] == ["$0.00", "$0.0123", "$0.50", "$1.00", "$1,234.50"]
