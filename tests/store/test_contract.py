"""What every engine promises. A new engine is one more line in `ENGINES`."""

import asyncio
import time
from contextlib import suppress
from functools import partial

import pytest

from dragoman.store.contract import (
    BadCursor,
    Record,
    SessionHeld,
    SessionMeta,
    SessionMissing,
    SessionOpenHere,
    Store,
    StoreFailed,
)
from dragoman.store.entries import EventEntry, NoteEntry, TextEntry
from tests.store.scenes import (
    EVERY_KIND,
    IDLE,
    Place,
    entries_of,
    everything,
    ids,
    listed,
    meta,
    note,
    numbers_in,
    said,
    tried,
    write,
)

NO_NAMES = ["", ".", "..", "../x", "a/b", "a\0b", "-a", "ä", "a" * 300, "a\n", "index.db", " "]


# -- logs ------------------------------------------------------------------------------------------------------------


async def test_what_is_appended_is_read_in_order(store: Store) -> None:
    log = await store.create(meta("a"))
    await write(log, *EVERY_KIND)
    assert await everything(log.read()) == [Record(n, entry) for n, entry in enumerate(EVERY_KIND, 1)]


async def test_a_log_is_read_from_a_sequence_number(store: Store) -> None:
    log = await store.create(meta("a"))
    await write(log, *(note(n) for n in range(2_000)))
    assert await numbers_in(log.read(after=1_234)) == list(range(1_234, 2_000))
    assert await numbers_in(log.read(after=2_000)) == []
    assert await numbers_in(log.read(after=5_000)) == []


async def test_the_length_of_a_log_is_the_number_of_its_last_entry(store: Store, place: Place) -> None:
    log = await store.create(meta("a"))
    other = place()
    assert await other.length("a") == 0
    await write(log, *EVERY_KIND)
    assert await other.length("a") == len(EVERY_KIND)
    with pytest.raises(SessionMissing):
        await other.length("b")
    await other.close()


async def test_sessions_are_found_by_the_beginning_of_their_id(store: Store, place: Place) -> None:
    other = place()
    assert await other.ids() == []
    for name in ("ab1", "ab", "b", "ab2"):
        await store.create(meta(name))
    assert await other.ids("ab") == ["ab", "ab1", "ab2"]
    assert await other.ids() == ["ab", "ab1", "ab2", "b"]
    for no_name in [*NO_NAMES, "c"]:
        assert await other.ids(no_name or "c") == []
    await other.close()


async def test_a_log_is_read_without_holding_it(store: Store, place: Place) -> None:
    log = await store.create(meta("a"))
    await write(log, note(1), note(2))
    other = place()
    assert await numbers_in(other.read("a", after=1)) == [2]
    await other.close()


async def test_committed_is_called_once_for_each_append_in_order(store: Store) -> None:
    log = await store.create(meta("a"))
    called: list[tuple[int, StoreFailed | None]] = []

    def told(number: int, error: StoreFailed | None) -> None:
        called.append((number, error))

    for number in range(500):
        log.append((note(number),), partial(told, number))
    log.append((), partial(told, 500))
    await log.flush()
    assert called == [(number, None) for number in range(501)]


async def test_what_was_told_as_committed_is_there_for_another(store: Store, place: Place) -> None:
    log = await store.create(meta("a"))
    other = place()
    for number in range(20):
        assert await tried(log, note(number)) is None
        assert await numbers_in(other.read("a")) == list(range(number + 1))
    await other.close()


async def test_a_lone_entry_is_committed_at_once(store: Store) -> None:
    log = await store.create(meta("a"))
    await tried(log, note(0))
    spent = []
    for number in range(20):
        began = time.monotonic()
        await tried(log, note(number))
        spent.append(time.monotonic() - began)
    assert min(spent) < 0.1, spent  # the best of them: what we wait for, not what else the machine does


async def test_a_flood_is_committed_in_groups(store: Store) -> None:
    log = await store.create(meta("a"))
    for number in range(10_000):
        log.append((said(f"{number} "),), lambda error: None)
    (record,) = await everything(log.read())
    assert record.entry == said("".join(f"{number} " for number in range(10_000)))
    assert record.sequence < 1_000


async def test_pieces_of_one_message_are_read_as_one_entry(store: Store) -> None:
    log = await store.create(meta("a"))
    for piece in ["one ", "two ", "three"]:
        await write(log, said(piece))
    await write(log, said("next", "m2"), EventEntry(IDLE), said("again", "m2"))
    assert await entries_of(log.read()) == [
        said("one two three"),
        said("next", "m2"),
        EventEntry(IDLE),
        said("again", "m2"),
    ]


async def test_a_reader_that_saw_a_part_of_a_message_gets_the_rest_once(store: Store) -> None:
    log = await store.create(meta("a"))
    await write(log, said("one "))
    await write(log, said("two "))
    seen = await everything(log.read())
    await write(log, said("three "))
    await write(log, said("four"), EventEntry(IDLE))
    rest = await everything(log.read(after=seen[-1].sequence))
    assert [record.entry for record in seen + rest] == [said("one two "), said("three four"), EventEntry(IDLE)]


async def test_a_long_message_of_many_commits_is_read_as_one_entry(store: Store) -> None:
    log = await store.create(meta("a"))
    for number in range(1_200):
        await write(log, said(f"{number} "))
    assert await entries_of(log.read()) == [said("".join(f"{number} " for number in range(1_200)))]


async def test_kinds_of_a_message_are_kept_apart(store: Store) -> None:
    log = await store.create(meta("a"))
    thought = TextEntry("agent_thought_chunk", "m1", "hm")
    await write(log, thought, said("a"), thought)
    assert await entries_of(log.read()) == [thought, said("a"), thought]


async def test_large_entries_are_kept(store: Store) -> None:
    log = await store.create(meta("a"))
    large = NoteEntry("large", "x" * 9_000_000)
    await write(log, large, large, note(1))
    assert await entries_of(log.read()) == [large, large, note(1)]


async def test_half_of_a_character_becomes_a_replacement_and_two_halves_a_character(store: Store) -> None:
    log = await store.create(meta("a"))
    await write(log, said("a\ud83d"), said("\ude00b\ud83d"))
    assert await entries_of(log.read()) == [said("a😀b�")]


async def test_an_entry_that_cannot_be_written_fails_and_the_log_goes_on(store: Store) -> None:
    log = await store.create(meta("a"))
    assert isinstance(await tried(log, NoteEntry("bad", object())), StoreFailed)
    assert isinstance(await tried(log, NoteEntry("bad", "\ud83d")), StoreFailed)
    assert await tried(log, note(1)) is None
    assert await numbers_in(log.read()) == [1]


async def test_what_waits_behind_a_failure_fails_too(store: Store) -> None:
    log = await store.create(meta("a"))
    outcomes: list[bool] = []
    for entry in [note(0), NoteEntry("bad", object()), *(note(n) for n in range(1, 50))]:
        log.append((entry,), lambda error: outcomes.append(error is None))
    await tried(log)
    await write(log, note(99))
    kept = outcomes.index(False)
    assert outcomes == [True] * kept + [False] * (51 - kept)
    assert await numbers_in(log.read()) == [*range(kept), 99]


async def test_a_callback_that_raises_harms_no_other(store: Store) -> None:
    log = await store.create(meta("a"))
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
    mistake = ValueError("mine")

    def raising(_: object) -> None:
        raise mistake

    log.append((note(1),), raising)
    assert await tried(log, note(2)) is None
    assert reported == [mistake]


async def test_a_tail_gives_what_is_there_and_what_comes(store: Store) -> None:
    log = await store.create(meta("a"))
    await write(log, note(0))
    seen: asyncio.Queue[object] = asyncio.Queue()

    async def follow() -> None:
        async for records in log.tail():
            for record in records:
                seen.put_nowait(record.entry)

    task = asyncio.create_task(follow())
    for number in range(1, 30):
        assert await seen.get() == note(number - 1)
        await write(log, note(number))
    assert await seen.get() == note(29)
    await log.release()
    await asyncio.wait_for(task, 5)


async def test_an_idle_tail_sleeps(store: Store) -> None:
    log = await store.create(meta("a"))
    reads: list[int] = []
    first = asyncio.Event()

    async def follow() -> None:
        async for records in log.tail():
            reads.append(len(records))
            first.set()

    task = asyncio.create_task(follow())
    await write(log, note(1))
    await first.wait()
    for _ in range(10):
        await log.flush()
    assert reads == [1]
    await log.release()
    await task


async def test_nothing_can_be_appended_after_a_release(store: Store) -> None:
    log = await store.create(meta("a"))
    await write(log, note(1))
    await log.release()
    await log.release()
    assert isinstance(await tried(log, note(2)), StoreFailed)
    await log.flush()
    assert await numbers_in(store.read("a")) == [1]


# -- sessions --------------------------------------------------------------------------------------------------------


async def test_a_session_is_there_for_another_when_it_is_created(store: Store, place: Place) -> None:
    log = await store.create(SessionMeta("a", "/work", ("/more", "/ä"), "A title"))
    assert log.meta == SessionMeta("a", "/work", ("/more", "/ä"), "A title", log.meta.created, log.meta.created)
    assert log.salvaged is None
    other = place()
    assert await other.read_meta("a") == log.meta
    assert (await other.list()).sessions == [log.meta]
    await other.close()


async def test_a_session_is_created_once(store: Store) -> None:
    first = await store.create(meta("a"))
    await write(first, note(1))
    await first.release()
    with pytest.raises(StoreFailed):
        await store.create(meta("a", "/elsewhere"))
    assert (await store.read_meta("a")).cwd == "/work"
    assert await numbers_in(store.read("a")) == [1]


async def test_a_stored_session_goes_on_where_it_stopped(place: Place) -> None:
    store = place()
    await write(await store.create(meta("a")), note(1))
    await store.close()
    store = place()
    log = await store.open("a")
    await write(log, note(2))
    assert [record.sequence for record in await everything(log.read())] == [1, 2]
    await store.close()


async def test_the_missing_are_missing(store: Store) -> None:
    for work in (store.open("a"), store.read_meta("a"), store.change("a", title="x"), store.fork("a", meta("b"))):
        with pytest.raises(SessionMissing):
            await work
    with pytest.raises(SessionMissing):
        await everything(store.read("a"))
    assert await store.delete("a") is False
    assert await listed(store) == []


@pytest.mark.parametrize("name", NO_NAMES)
async def test_what_is_no_name_is_missing(store: Store, name: str) -> None:
    await store.create(meta("a"))
    for work in (store.create(meta(name)), store.open(name), store.read_meta(name), store.change(name, title="x")):
        with pytest.raises(SessionMissing):
            await work
    with pytest.raises(SessionMissing):
        await everything(store.read(name))
    assert await store.delete(name) is False
    assert await listed(store) == ["a"]


async def test_a_fork_is_a_copy_that_goes_its_own_way(store: Store) -> None:
    source = await store.create(meta("a", title="One"))
    await write(source, *EVERY_KIND)
    copy = await store.fork("a", meta("b", "/elsewhere", title="Two"))
    await write(copy, note(2))
    await write(source, note(3))
    assert await entries_of(copy.read()) == [*EVERY_KIND, note(2)]
    assert await entries_of(source.read()) == [*EVERY_KIND, note(3)]
    assert (copy.meta.cwd, copy.meta.title) == ("/elsewhere", "Two")


async def test_a_fork_of_a_session_held_elsewhere_is_allowed(store: Store, place: Place) -> None:
    await write(await store.create(meta("a")), note(1))
    other = place()
    assert await numbers_in((await other.fork("a", meta("b"))).read()) == [1]
    await other.close()


async def test_what_the_list_shows_can_be_changed(store: Store) -> None:
    log = await store.create(meta("a"))
    changed = await log.change(title="New")
    assert (changed.title, changed.archived, changed.activity) == ("New", False, log.meta.activity)
    await log.release()
    assert await store.change("a", archived=True) == changed._replace(archived=True)
    assert await store.read_meta("a") == changed._replace(archived=True)
    assert await listed(store) == []
    assert await store.change("a", title="Newer", archived=False) == changed._replace(title="Newer")
    assert (await store.list()).sessions == [changed._replace(title="Newer")]


async def test_a_deleted_session_is_gone_for_all(store: Store, place: Place) -> None:
    log = await store.create(meta("a"))
    await write(log, note(1))
    assert await store.delete("a") is True
    assert isinstance(await tried(log, note(2)), StoreFailed)
    other = place()
    for each in (store, other):
        with pytest.raises(SessionMissing):
            await each.read_meta("a")
        assert await listed(each) == []
    await other.close()


# -- leases ----------------------------------------------------------------------------------------------------------


async def test_a_session_is_held_once(store: Store, place: Place) -> None:
    log = await store.create(meta("a"))
    other = place()
    for work in (store.open("a"), other.open("a"), other.change("a", title="x"), other.delete("a")):
        with pytest.raises(SessionHeld):
            await work
    await write(log, note(1))
    await log.release()
    taken = await other.open("a")
    with pytest.raises(SessionHeld):
        await store.open("a")
    assert await numbers_in(taken.read()) == [1]
    await other.close()
    await store.open("a")


async def test_a_session_that_is_being_opened_is_not_opened_twice(store: Store) -> None:
    await (await store.create(meta("a"))).release()
    outcomes = await asyncio.gather(*(store.open("a") for _ in range(5)), return_exceptions=True)
    refused = [type(outcome) for outcome in outcomes if isinstance(outcome, BaseException)]
    assert refused == [SessionOpenHere] * 4


async def test_a_caller_that_went_away_while_opening_holds_nothing(store: Store, place: Place) -> None:
    await (await store.create(meta("a"))).release()
    opening = asyncio.create_task(store.open("a"))
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    other, log = place(), None
    while log is None:  # it is let go when the opening, which is not waited for, is done
        with suppress(SessionHeld):
            log = await other.open("a")
    await other.close()


async def test_a_closed_store_holds_nothing_and_has_everything(place: Place) -> None:
    store = place()
    log = await store.create(meta("a"))
    log.append((note(1),), lambda error: None)
    await store.close()
    await store.close()
    for work in (store.read_meta("a"), store.list(), store.create(meta("b"))):
        with pytest.raises(StoreFailed):
            await work
    assert isinstance(await tried(log, note(2)), StoreFailed)
    other = place()
    assert await numbers_in((await other.open("a")).read()) == [1]
    await other.close()


# -- lists -----------------------------------------------------------------------------------------------------------


async def test_the_list_begins_with_the_latest_activity(store: Store) -> None:
    logs = [await store.create(meta(name)) for name in "abc"]
    assert await listed(store) == ["c", "b", "a"]
    await write(logs[0], note(1))
    await logs[0].touch()
    assert await listed(store) == ["a", "c", "b"]
    await write(logs[1], note(1))
    await logs[1].release()
    assert await listed(store) == ["b", "a", "c"]


async def test_giving_a_lease_back_is_no_activity(store: Store) -> None:
    first = await store.create(meta("a"))
    await store.create(meta("b"))
    await first.release()
    await (await store.open("a")).release()
    assert await listed(store) == ["b", "a"]


async def test_a_list_comes_in_pages_of_fifty(store: Store) -> None:
    for number in range(120):
        await (await store.create(meta(f"s{number:03}"))).release()
    pages = [await store.list()]
    while pages[-1].cursor is not None:
        pages.append(await store.list(cursor=pages[-1].cursor))
    assert [len(page.sessions) for page in pages] == [50, 50, 20]
    assert [name for page in pages for name in ids(page)] == [f"s{number:03}" for number in reversed(range(120))]


async def test_a_full_last_page_has_no_cursor(store: Store) -> None:
    for number in range(50):
        await store.create(meta(f"s{number}"))
    page = await store.list()
    assert (len(page.sessions), page.cursor) == (50, None)


async def test_a_list_is_filtered(store: Store) -> None:
    for name, cwd in [("a", "/one"), ("b", "/two"), ("c", "/one"), ("d", "/one")]:
        await store.create(meta(name, cwd))
    for name in "bc":
        await store.change(name, archived=True)
    assert await listed(store) == ["d", "a"]
    assert await listed(store, archived="include") == ["d", "c", "b", "a"]
    assert await listed(store, archived="only") == ["c", "b"]
    assert await listed(store, cwd="/one") == ["d", "a"]
    assert await listed(store, cwd="/one", archived="include") == ["d", "c", "a"]
    assert await listed(store, cwd="/two", archived="only") == ["b"]
    assert await listed(store, cwd="/three") == []


@pytest.mark.parametrize("cursor", ["", "x", "é", "=", "AAAA", "W10", "bnVsbA", "A" * 100_000, "[1]", "\0"])
async def test_a_cursor_we_did_not_give_is_refused(store: Store, cursor: str) -> None:
    await store.create(meta("a"))
    with pytest.raises(BadCursor):
        await store.list(cursor=cursor)


async def test_a_cursor_is_good_for_its_own_filter_only(store: Store) -> None:
    for number in range(60):
        await store.create(meta(f"s{number}"))
    cursor = (await store.list()).cursor
    assert cursor is not None
    assert len((await store.list(cursor=cursor)).sessions) == 10
    with pytest.raises(BadCursor):
        await store.list(cursor=cursor, cwd="/work")
    with pytest.raises(BadCursor):
        await store.list(cursor=cursor, archived="include")


@pytest.mark.requirement("E6")
async def test_time_that_goes_back_changes_no_order(place: Place) -> None:
    store = place()
    logs = [await store.create(meta(name)) for name in "ab"]
    await store.close()
    store = place(clock=lambda: time.time() - 86_400)
    other = place(clock=lambda: time.time() - 2 * 86_400)
    await store.create(meta("c"))
    await other.create(meta("d"))
    reopened = await store.open("a")
    await write(reopened, note(1))
    await reopened.touch()
    assert await listed(other) == ["a", "d", "c", "b"]
    assert logs[1].meta.activity < (await other.read_meta("c")).activity < (await other.read_meta("d")).activity
    await store.close()
    await other.close()


# -- whole sessions --------------------------------------------------------------------------------------------------


async def test_a_restored_session_is_what_it_was_and_is_free(store: Store, place: Place) -> None:
    await store.create(meta("newer"))
    old = SessionMeta("a", "/work", ("/more",), "A title", 1_000, 2_000, archived=True)
    await store.restore(old, EVERY_KIND)
    assert await store.read_meta("a") == old
    assert await entries_of(store.read("a")) == EVERY_KIND
    assert await listed(store, archived="include") == ["newer", "a"]
    other = place()
    log = await other.open("a")
    await write(log, note(2))
    assert await entries_of(log.read()) == [*EVERY_KIND, note(2)]
    await other.close()


async def test_a_session_is_restored_once(store: Store) -> None:
    await write(await store.create(meta("a")), note(1))
    with pytest.raises(StoreFailed):
        await store.restore(meta("a", "/elsewhere"), [note(2)])
    assert (await store.read_meta("a")).cwd == "/work"
    assert await numbers_in(store.read("a")) == [1]


async def test_what_comes_after_a_restored_session_is_later(store: Store) -> None:
    later = int((time.time() + 86_400) * 1_000_000)
    await store.restore(meta("a")._replace(created=later, activity=later), [])
    await store.create(meta("b"))
    assert await listed(store) == ["b", "a"]
