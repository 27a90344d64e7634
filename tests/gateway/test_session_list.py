"""A list has what is one's own, page by page, and says nothing about the rest."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.agent.agent import Agent
from dragoman.gateway import session_list
from dragoman.gateway.session_list import Cursors
from dragoman.store import listing
from dragoman.store.sqlite import SqliteStore
from tests.support.gateway import RawHttp, counting, gateway, raw_http

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqliteStore]:
    monkeypatch.setattr(listing, "PAGE_SIZE", 2)
    kept = SqliteStore(tmp_path / "sessions")
    yield kept
    await kept.close()


async def page(raw: RawHttp, id: int, cursor: str | None = None) -> dict[str, Any]:
    await raw.post({"id": id, "method": "session/list", "params": {} if cursor is None else {"cursor": cursor}})
    answer: dict[str, Any] = await raw.answer(id)
    return answer


async def pages(raw: RawHttp) -> list[list[str]]:
    found: list[list[str]] = []
    cursor = None
    while True:
        result = (await page(raw, 100 + len(found), cursor))["result"]
        found.append([info["sessionId"] for info in result["sessions"]])
        cursor = result.get("nextCursor")
        if cursor is None:
            return found


def kept_in(store: SqliteStore) -> Agent:
    agent = Agent("kept", store=store)
    agent.prompt(counting(1)._core.prompt_handler)  # type: ignore[arg-type]
    return agent


async def test_pages_without_anything_of_ones_own_are_passed_over(store: SqliteStore, tmp_path: Path) -> None:
    async with (
        gateway(kept_in(store), tmp_path) as served,
        raw_http(served) as mine,
        raw_http(served, token=served.token_of("bob", ("read", "prompt"))) as bob,
    ):
        his = [await bob.session(1, stream=False)]
        hers = [await mine.session(id, stream=False) for id in range(2, 11)]
        his.append(await bob.session(11, stream=False))
        assert await pages(bob) == [[his[1]], [his[0]]]
        assert [name for names in await pages(mine) for name in names] == hers[::-1]


async def test_a_cursor_tells_nothing_and_is_known_to_its_connection_only(store: SqliteStore, tmp_path: Path) -> None:
    async with gateway(kept_in(store), tmp_path) as served:
        bobs = served.token_of("bob", ("read", "prompt"))
        async with raw_http(served) as mine, raw_http(served, token=bobs) as bob, raw_http(served, token=bobs) as other:
            for id in (1, 2):
                await bob.session(id, stream=False)
            for id in (3, 4, 5):
                await mine.session(id, stream=False)
            await bob.session(6, stream=False)
            cursor = (await page(bob, 7))["result"]["nextCursor"]
            assert len(cursor) == 16  # whatever the agent's has in it
            refused = (await page(other, 8, cursor))["error"]
            assert (refused["code"], refused["message"][:25]) == (-32602, "There is no such cursor h")
            assert len((await page(bob, 9, cursor))["result"]["sessions"]) > 0


async def test_one_request_looks_through_so_many_pages(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_list, "_PAGES", 3)
    async with gateway(kept_in(store), tmp_path) as served:
        bobs = served.token_of("bob", ("read", "prompt"))
        async with raw_http(served) as mine, raw_http(served, token=bobs) as bob:
            for id in range(1, 17):
                await mine.session(id, stream=False)
            assert await pages(bob) == [[], [], []]


def test_the_oldest_cursor_is_forgotten() -> None:
    cursors = Cursors()
    given = [cursors.hide(f"place {number}") for number in range(17)]
    assert cursors.resolve(given[16]) == "place 16"
    assert cursors.resolve(given[1]) == "place 1"
    with pytest.raises(Exception, match="no such cursor"):
        cursors.resolve(given[0])
