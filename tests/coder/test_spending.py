"""The cost that is told is the session's, over all turns, also after a reload; the usage is the turn's."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from dragoman.coder import loop
from dragoman.coder.context import Context, ContextUserMessage
from dragoman.coder.models.contract import ModelRequest, Piece, UsageReported
from dragoman.coder.spending import load
from dragoman.store.entries import EventEntry, NoteEntry
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AnyEvent, Cost, Usage, UsageChanged, UserMessage
from tests.coder.strict_model import StrictModel
from tests.support.whole_agent import events_of, whole

pytestmark = pytest.mark.anyio


class Dear(StrictModel):
    """Each call costs half a dollar."""

    async def respond(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        async for piece in super().respond(request):
            yield piece
        yield UsageReported(10, 5, 0.5)

    def assistant(self, name: str) -> "Dear":
        return Dear([{"say": "report"}])


def costs(events: Sequence[AnyEvent]) -> list[float]:
    return [e.cost.amount for e in events if isinstance(e, UsageChanged) and isinstance(e.cost, Cost)]


@pytest.mark.requirement("CA8")
async def test_the_cost_grows_over_turns_and_a_reload_and_the_usage_is_the_turns(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store")
    async with whole(tmp_path, Dear([{"say": "a"}], window=100_000).make, store=store) as (_, session):
        assert costs(await events_of(session)) == [0.5]
        assert costs(await events_of(session)) == [1.0]
        turn = session.prompt("go")
        await turn.read()
        assert turn.usage == Usage(15, 10, 5)
    async with whole(tmp_path, Dear([{"say": "a"}], window=100_000).make, store=store) as (client, _):
        resumed = await client.resume_session(session.id, str(tmp_path))
        assert costs(await events_of(resumed)) == [2.0]
    await store.close()


async def test_context_tells_the_cost_where_no_window_is_known(tmp_path: Path) -> None:
    async with whole(tmp_path, Dear([{"say": "a"}]).make) as (_, session):
        assert "cost" not in (await session.prompt("/context").read()).text
        assert costs(await events_of(session)) == []
        told = (await session.prompt("/context").read()).text
    assert told.splitlines()[0].endswith(" The session has cost 0.5000 USD so far.")


async def test_what_a_helper_and_a_summary_cost_the_session_has_cost(tmp_path: Path) -> None:
    delegate = {"call": "agent", "input": {"prompt": "look", "description": "look"}}
    model = Dear([delegate, {"say": "done"}], [{"say": "more"}], window=100_000)
    async with whole(tmp_path, model.make) as (_, session):
        assert costs(await events_of(session)) == [0.5, 1.5]
        await events_of(session, "/compact")
        assert costs(await events_of(session)) == [2.5]


class _Log:
    def __init__(self, *entries: object) -> None:
        self._entries = entries

    async def read(self) -> AsyncGenerator[list[object], None]:
        yield [type("Record", (), {"entry": entry}) for entry in self._entries]


class _Core:
    """As much of a session as its spending looks at."""

    def __init__(self, *entries: object) -> None:
        self.journal = type("Journal", (), {"log": _Log(*entries)})

    async def record_note(self, kind: str, value: object) -> None:
        """Kept nowhere."""


def _session(*entries: object) -> object:
    return type("Session", (), {"_core": _Core(*entries)})


def told(amount: float) -> EventEntry:
    return EventEntry(UsageChanged(1, 2, Cost(amount, "USD")))


async def test_an_old_log_tells_the_cost_of_each_turn_and_is_summed() -> None:
    prompted = EventEntry(UserMessage("m", [Text("hi")]))
    old = [prompted, told(0.25), told(0.5), prompted, told(0.125)]
    assert (await load(_session(*old))).cost() == Cost(0.625, "USD")  # type: ignore[arg-type]
    new = [*old, prompted, NoteEntry("cost", 0.75), told(0.75)]
    assert (await load(_session(*new))).cost() == Cost(0.75, "USD")  # type: ignore[arg-type]


async def test_a_turn_without_a_session_tells_its_own_cost() -> None:
    async def unnoted(note: object) -> None:
        """Kept nowhere."""

    class Hands:
        def specs(self) -> list[object]:
            return []

    model = Dear([{"say": "a"}], window=100_000)
    model.begin_turn()
    turn = loop.turn(model, Context([], unnoted), Hands(), ContextUserMessage("m", [Text("go")]))  # type: ignore[arg-type]
    assert costs([event async for event in turn]) == [0.5]
