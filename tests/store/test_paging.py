"""Paging against a model: whatever happens between two pages, what was there all the time is listed exactly once."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.store import listing
from dragoman.store.contract import ArchiveFilter, BadCursor, SessionMeta, Store
from dragoman.store.postgres import listing as postgres_listing
from tests.store.scenes import ENGINES, OLDER_ENGINES, Place, ids, listed, meta, note, write

# Each example is a life of two stores on disk; the profile says how hard to try.
EXAMPLES = settings().max_examples // 3
FOLDERS = ["/one", "/two"]
ACTIONS = st.one_of(
    st.tuples(st.just("create"), st.sampled_from(FOLDERS), st.booleans()),
    st.tuples(st.sampled_from(["touch", "archive", "unarchive", "title", "delete"]), st.integers(0, 30), st.just(0)),
)
FILTERS = st.tuples(st.sampled_from([None, *FOLDERS]), st.sampled_from(["exclude", "include", "only"]))


class World:
    """A store and what we know must be in it."""

    def __init__(self, place: Place) -> None:
        # Two processes, as far as a store can tell.
        self.stores = [place(), place()]
        self.sessions: dict[str, SessionMeta] = {}
        self.count = 0

    async def act(self, action: tuple[Any, Any, Any]) -> None:
        what, which, _ = action
        store = self.stores[self.count % 2]
        self.count += 1
        if what == "create":
            log = await store.create(meta(f"s{self.count * 7919 % 1000:03}x{self.count}", which))
            await log.release()
            self.sessions[log.meta.id] = log.meta
            return
        if not self.sessions:
            return
        name = sorted(self.sessions)[which % len(self.sessions)]
        if what == "touch":
            log = await store.open(name)
            await write(log, note(1))
            await log.release()
            self.sessions[name] = await store.read_meta(name)
        elif what == "delete":
            await store.delete(name)
            del self.sessions[name]
        elif what == "title":
            self.sessions[name] = await store.change(name, title=f"title {self.count}")
        else:
            self.sessions[name] = await store.change(name, archived=what == "archive")

    def matching(self, cwd: str | None, archived: ArchiveFilter) -> dict[str, SessionMeta]:
        wanted = {"exclude": (False,), "only": (True,), "include": (False, True)}[archived]
        found = {n: m for n, m in self.sessions.items() if cwd in (None, m.cwd) and m.archived in wanted}
        return dict(sorted(found.items(), key=lambda each: (each[1].activity, each[0]), reverse=True))

    async def close(self) -> None:
        for store in self.stores:
            await store.close()


def set_bounds(patch: pytest.MonkeyPatch, **bounds: int) -> None:
    """Set the size of a page, or how many changes a cursor outlives, for every engine."""
    for module in (listing, postgres_listing):
        for name, value in bounds.items():
            patch.setattr(module, name, value)


@pytest.mark.parametrize("engine", [*ENGINES, *(pytest.param(name, marks=pytest.mark.slow) for name in OLDER_ENGINES)])
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    before=st.lists(ACTIONS, min_size=3, max_size=25),
    between=st.lists(st.lists(ACTIONS, max_size=5), min_size=1, max_size=8),
    filters=FILTERS,
)
def test_paging_agrees_with_the_model(
    engine: str, before: Sequence[Any], between: Sequence[Sequence[Any]], filters: tuple[str | None, ArchiveFilter]
) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        {**ENGINES, **OLDER_ENGINES}[engine](Path(folder) / "sessions") as place,
    ):
        asyncio.run(page_through(place, before, between, *filters))


async def page_through(
    place: Place, before: Sequence[Any], between: Sequence[Sequence[Any]], cwd: str | None, archived: ArchiveFilter
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        set_bounds(patch, PAGE_SIZE=3)
        world = World(place)
        for action in before:
            await world.act(action)
        at_first = world.matching(cwd, archived)
        throughout = set(at_first)
        found: list[str] = []
        cursor = None
        for actions in [*between, *([[]] * 30)]:
            page = await world.stores[len(found) % 2].list(cwd=cwd, archived=archived, cursor=cursor)
            # What a page shows is true when it is shown.
            assert all(world.matching(cwd, archived)[each.id] == each for each in page.sessions)
            found += ids(page)
            cursor = page.cursor
            if cursor is None:
                break
            for action in actions:
                await world.act(action)
            throughout &= set(world.matching(cwd, archived))
        assert cursor is None
        assert len(found) == len(set(found))
        assert throughout <= set(found) <= set(at_first)
        assert found == [name for name in at_first if name in found]
        assert await listed_plainly(world, cwd, archived) == list(world.matching(cwd, archived))
        await world.close()


async def listed_plainly(world: World, cwd: str | None, archived: ArchiveFilter) -> list[str]:
    filters: dict[str, str] = {"archived": archived} if cwd is None else {"archived": archived, "cwd": cwd}
    return await listed(world.stores[0], **filters)


async def test_a_cursor_is_good_for_ten_thousand_changes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    set_bounds(monkeypatch, PAGE_SIZE=2, CHANGES=20)
    for name in "abcd":
        await (await store.create(meta(name))).release()
    cursor = (await store.list()).cursor
    for number in range(20):
        await store.change("a", archived=number % 2 == 0)
    assert ids(await store.list(cursor=cursor)) == ["b", "a"]
    await store.change("b", archived=True)
    with pytest.raises(BadCursor):
        await store.list(cursor=cursor)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("archived", ["include", "exclude"])
async def test_a_session_that_moves_to_and_fro_is_listed_once(
    store: Store, monkeypatch: pytest.MonkeyPatch, archived: ArchiveFilter, size: int
) -> None:
    set_bounds(monkeypatch, PAGE_SIZE=size)
    for name in "abcdef":
        await (await store.create(meta(name))).release()
    page = await store.list(archived=archived)
    found = ids(page)
    for name in "afc":
        for state in (True, False, True, False):
            await store.change(name, archived=state)
    while page.cursor is not None:
        page = await store.list(archived=archived, cursor=page.cursor)
        found += ids(page)
    assert found == ["f", "e", "d", "c", "b", "a"]
