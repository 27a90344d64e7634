"""All sessions of one store in another: whole, once, and as they were."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from dragoman.store.contract import Record, SessionMeta, Store, StoreFailed
from dragoman.store.entries import Entry
from dragoman.store.migration import MigrationReport, migrate
from tests.store.scenes import (
    EVERY_KIND,
    Place,
    entries_of,
    everything,
    listed,
    meta,
    note,
    postgres_place,
    said,
    sqlite_place,
    write,
)


@pytest.fixture(params=["there", "back"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Place, Place]]:
    """A source and a target, one of each engine."""
    with sqlite_place(tmp_path / "sessions") as files, postgres_place(tmp_path) as database:
        yield (files, database) if request.param == "there" else (database, files)


async def copied(source: Store, target: Store) -> MigrationReport:
    return await migrate(source, target, lambda done, total: None)


async def fill(store: Store) -> None:
    for number in range(5):
        log = await store.create(meta(f"s{number}", title=f"Title {number}"))
        # In pieces: entries are counted, and speak of each other by their numbers.
        await write(log, *EVERY_KIND, said("one ", "m2"))
        await write(log, said("two", "m2"))
        await write(log, note(number))
        await log.release()
    await store.change("s3", archived=True)


async def contents(store: Store) -> list[tuple[SessionMeta, list[Record]]]:
    names = await listed(store, archived="include")
    return [(await store.read_meta(name), await everything(store.read(name, joined=False))) for name in names]


async def test_every_session_is_copied_with_its_times_and_its_place(places: tuple[Place, Place]) -> None:
    source, target = places[0](), places[1]()
    await fill(source)
    assert await copied(source, target) == MigrationReport(5, 0, {})
    assert await contents(target) == await contents(source)
    await source.close()
    await target.close()


async def test_a_copy_that_was_interrupted_goes_on_with_what_is_missing(places: tuple[Place, Place]) -> None:
    class Interrupted(Exception):
        pass

    def interrupt(done: int, total: int) -> None:
        if done == 3:
            raise Interrupted

    source, target = places[0](), places[1]()
    await fill(source)
    with pytest.raises(Interrupted):
        await migrate(source, target, interrupt)
    assert len(await target.ids()) == 3
    assert await copied(source, target) == MigrationReport(2, 3, {})
    assert await contents(target) == await contents(source)
    await source.close()
    await target.close()


async def test_a_session_that_is_open_is_left_for_the_next_time(places: tuple[Place, Place]) -> None:
    source, target, other = places[0](), places[1](), places[0]()
    await fill(source)
    log = await other.open("s1")
    report = await copied(source, target)
    assert (report.copied, list(report.failed)) == (4, ["s1"])
    assert "open in another process" in report.failed["s1"]
    await log.release()
    assert await copied(source, target) == MigrationReport(1, 4, {})
    for store in (source, target, other):
        await store.close()


async def test_a_session_that_went_on_in_the_target_is_kept(places: tuple[Place, Place]) -> None:
    source, target = places[0](), places[1]()
    await fill(source)
    await copied(source, target)
    log = await target.open("s1")
    await write(log, note(99))
    await log.release()
    assert await copied(source, target) == MigrationReport(0, 5, {})
    assert (await entries_of(target.read("s1")))[-2:] == [note(1), note(99)]
    await source.close()
    await target.close()


async def test_a_session_of_another_content_is_named_and_kept(places: tuple[Place, Place]) -> None:
    source, target = places[0](), places[1]()
    await fill(source)
    log = await target.create(meta("s2"))
    await write(log, note(7))
    await log.release()
    report = await copied(source, target)
    assert (report.copied, report.failed) == (4, {"s2": "the target has a session with this id and other content"})
    assert await entries_of(target.read("s2")) == [note(7)]
    await source.close()
    await target.close()


async def test_a_copy_that_fails_in_the_middle_leaves_no_half_session(places: tuple[Place, Place]) -> None:
    target = places[1]()
    bad: Sequence[Entry] = [note(1), note(2)._replace(value=object())]
    with pytest.raises(StoreFailed, match="an entry cannot be written down"):
        await target.restore(meta("a"), bad)
    assert await target.ids() == []
    await target.close()
