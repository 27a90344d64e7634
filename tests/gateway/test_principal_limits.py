"""What a principal may use of a server: each limit is refused with its name, and what is given back counts no more."""

import asyncio
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Session, connect
from dragoman.client.client import Client
from dragoman.errors import LIMIT_REACHED, RequestFailed, UsageError
from dragoman.gateway.day_spend import DaySpend
from dragoman.gateway.principal_limits import LimitName, LimitTable, PrincipalLimits, limit_reached
from dragoman.gateway.principal_usage import PrincipalUsage
from dragoman.transports.remote import transport_for
from dragoman.vocabulary.events import Cost, Idle, UsageChanged
from tests.support.gateway import Served, gateway
from tests.support.versions import both_versions
from tests.support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


def limited(ledger: DaySpend | None = None, **limits: Any) -> PrincipalUsage:
    """These limits for every principal but `free`."""
    return PrincipalUsage(LimitTable(PrincipalLimits(**limits), {"free": PrincipalLimits()}), ledger)


class Waiting:
    """An agent whose turns end when they are told to; `dollars` is what its session has cost by the first piece."""

    def __init__(self, dollars: float = 0.0) -> None:
        self.agent = Agent("waiting")
        self.may_end = asyncio.Event()
        self.begun = 0

        @self.agent.prompt
        async def reply(session: Session, prompt: object) -> None:
            self.begun += 1
            if dollars:
                await session.emit(UsageChanged(1, 2, Cost(dollars * self.begun, "USD")))
            await self.may_end.wait()


def client(served: Served, token: str = "", version: int = 2) -> Client:
    return connect(transport_for(served.ws, token or served.token), protocol=version)


def refused(error: RequestFailed) -> tuple[int, object]:
    assert isinstance(error.data, dict)
    return error.code, error.data


def limit(name: str, most: float) -> tuple[int, object]:
    return LIMIT_REACHED, {"reason": "limit", "limit": name, "most": most, "retry": True}


@pytest.mark.requirement("K72")
@both_versions
async def test_a_principal_has_so_many_sessions_open_over_all_its_connections(tmp_path: Path, version: int) -> None:
    async with gateway(Waiting().agent, tmp_path, usage=limited(sessions=2)) as served:
        other = served.token_of("free")
        async with client(served, version=version) as first, client(served, version=version) as second:
            opened = await first.new_session(tmp_path)
            await second.new_session(tmp_path)
            for each in (first, second):
                with pytest.raises(RequestFailed) as failed:
                    await each.new_session(tmp_path)
                assert refused(failed.value) == limit("sessions", 2)
            async with client(served, other) as free:
                for _ in range(3):
                    await free.new_session(tmp_path)
            await opened.close()
            await second.new_session(tmp_path)


@pytest.mark.requirement("K72")
async def test_sessions_that_are_opened_at_once_do_not_get_past_the_limit(tmp_path: Path) -> None:
    async with gateway(Waiting().agent, tmp_path, usage=limited(sessions=3)) as served, client(served) as one:
        outcomes = await asyncio.gather(*(one.new_session(tmp_path) for _ in range(20)), return_exceptions=True)
        assert sum(not isinstance(outcome, Exception) for outcome in outcomes) == 3
        assert {refused(each)[0] for each in outcomes if isinstance(each, RequestFailed)} == {LIMIT_REACHED}


@pytest.mark.requirement("K72")
@both_versions
async def test_a_principal_has_so_many_turns_running(tmp_path: Path, version: int) -> None:
    agent = Waiting()
    async with gateway(agent.agent, tmp_path, usage=limited(turns=2)) as served:
        async with client(served, version=version) as one, client(served, version=version) as two:
            sessions = [await each.new_session(tmp_path) for each in (one, one, two)]
            running = [asyncio.ensure_future(session.ask("go")) for session in sessions[:2]]
            await until(lambda: agent.begun == 2, "both turns")
            with pytest.raises(RequestFailed) as failed:
                await sessions[2].ask("go")
            assert refused(failed.value) == limit("turns", 2)
            agent.may_end.set()
            await asyncio.gather(*running)
            await sessions[2].ask("go")
        assert "turns=0" in repr(served.hub.usage)


async def test_a_turn_counts_no_more_when_its_session_is_closed(tmp_path: Path) -> None:
    agent = Waiting()
    async with gateway(agent.agent, tmp_path, usage=limited(turns=1)) as served, client(served) as one:
        first, second = await one.new_session(tmp_path), await one.new_session(tmp_path)
        running = asyncio.ensure_future(first.ask("go"))
        await until(lambda: agent.begun == 1, "the turn")
        await first.close()
        await asyncio.gather(running, return_exceptions=True)
        agent.may_end.set()
        await second.ask("go")


@pytest.mark.requirement("K72")
async def test_a_principal_has_so_many_agents_running(tmp_path: Path) -> None:
    agent = Waiting()
    usage = limited(processes=2)
    async with gateway(agent.agent, tmp_path, usage=usage) as served, client(served) as one, client(served) as two:
        busy = [await each.new_session(tmp_path) for each in (one, two)]
        turns = [asyncio.ensure_future(session.ask("wait")) for session in busy]
        await until(lambda: agent.begun == 2, "both turns")
        with pytest.raises(RequestFailed) as failed:
            await client(served).__aenter__()
        assert refused(failed.value) == limit("processes", 2)
        async with client(served, served.token_of("free")):
            pass
        agent.may_end.set()
        await asyncio.gather(*turns)


@pytest.mark.requirement("K72")
@both_versions
async def test_a_principal_that_has_spent_its_day_is_cancelled_and_refused(tmp_path: Path, version: int) -> None:
    agent = Waiting(dollars=0.75)
    usage = limited(DaySpend(tmp_path / "spent.json"), spend=1.0)
    async with gateway(agent.agent, tmp_path, usage=usage) as served, client(served, version=version) as one:
        session = await one.new_session(tmp_path)
        running = asyncio.ensure_future(session.ask("go"))
        await until(lambda: usage.spend.today("default") == 0.75, "the cost")
        agent.may_end.set()
        await running
        agent.may_end.clear()
        events = [event async for event in session.prompt("more")]
        assert [event.stop_reason for event in events if isinstance(event, Idle) and event.stop_reason] == ["cancelled"]
        with pytest.raises(RequestFailed) as failed:
            await session.ask("still more")
        assert refused(failed.value) == limit("spend", 1.0)
        assert agent.begun == 2
    # Over a restart, and not over midnight.
    again = DaySpend(tmp_path / "spent.json")
    assert (again.today("default"), again.today("another")) == (1.5, 0.0)
    assert DaySpend(tmp_path / "spent.json", lambda: date(2001, 1, 1)).today("default") == 0.0


def test_a_refusal_says_the_limit_and_what_to_do() -> None:
    limits = PrincipalLimits(2, 3, 4, 64, 1 << 30, 2.5)
    names: list[LimitName] = ["sessions", "memory", "spend"]
    said = [limit_reached(name, limits).message for name in names]
    assert said == [
        "This principal may have at most 2 open sessions: close one first",
        "This principal may have at most 1,024 MiB of memory for its agents: close sessions, or try again later",
        "This principal may spend at most $2.50 a day; go on tomorrow",
    ]


def test_only_what_is_new_of_a_sessions_cost_is_added_and_nothing_of_one_that_is_not_known() -> None:
    spend = DaySpend()
    spend.begin_session("new")
    outcomes = [spend.add("ada", session, total) for session, total in (("new", 1.0), ("new", 1.0), ("new", 1.5))]
    assert (outcomes, spend.today("ada")) == ([True, False, True], 1.5)
    assert (spend.add("ada", "old", 100.0), spend.add("ada", "old", 101.0), spend.today("ada")) == (False, True, 2.5)
    assert (spend.add("ada", "new", float("nan")), spend.add("ada", "new", float("inf"))) == (False, False)


@pytest.mark.parametrize("first", [None, 1.0])
async def test_what_a_session_had_cost_before_a_restart_is_known_after_it(tmp_path: Path, first: float | None) -> None:
    before = DaySpend(tmp_path / "spent.json")
    if first is None:
        before.begin_session("s")
    else:
        before.add("ada", "s", first)  # of a session that is not known: nothing is added, and the next report is
    await before.save()
    after = DaySpend(tmp_path / "spent.json")
    assert after.add("ada", "s", 3.0)
    assert after.today("ada") == 3.0 - (first or 0.0)


@pytest.mark.parametrize("content", [b"{", b'{"principals": {"ada": "much"}}', b'{"principals": {"ada": 1e999}}'])
def test_a_file_of_what_was_spent_that_cannot_be_read_stops_the_start(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "spent.json"
    file.touch(mode=0o600)
    file.write_bytes(content)
    with pytest.raises(UsageError, match="mend or remove it"):
        DaySpend(file)
