"""What is on the disk is for our eyes only, and what comes from outside reaches no path."""

import contextlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.store.contract import SessionMissing, StoreFailed
from dragoman.store.sqlite import SqliteStore
from tests.store.scenes import everything, meta, note, write
from tests.store.test_contract import NO_NAMES


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


async def test_folders_are_0700_and_files_0600_whatever_the_umask(tmp_path: Path) -> None:
    with umask(0):
        store = SqliteStore(tmp_path / "home" / "sessions")
        log = await store.create(meta("a"))
        await write(log, note(1))
        await store.fork("a", meta("b"))
        await store.list()
        found = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "home" / "sessions").rglob("*")}
        assert len(found) > 8
        assert {mode for path, mode in found.items() if path.is_dir()} == {0o700}
        assert {mode for path, mode in found.items() if path.is_file()} == {0o600}
        assert stat.S_IMODE((tmp_path / "home" / "sessions").stat().st_mode) == 0o700
        await store.close()


async def test_a_folder_that_others_may_enter_is_closed(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir(mode=0o755)
    store = SqliteStore(tmp_path / "sessions")
    await store.create(meta("a"))
    assert stat.S_IMODE((tmp_path / "sessions").stat().st_mode) == 0o700
    await store.close()


@pytest.mark.parametrize("name", NO_NAMES)
async def test_what_is_no_name_does_not_reach_the_disk(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.session").write_text("precious")
    store = SqliteStore(tmp_path / "sessions")
    for work in (store.create(meta(name)), store.open(name), store.read_meta(name), store.change(name, title="x")):
        with pytest.raises(SessionMissing):
            await work
    with pytest.raises(SessionMissing):
        await store.fork(name, meta("b"))
    with pytest.raises(SessionMissing):
        await everything(store.read(name))
    assert await store.delete(name) is False
    assert not (tmp_path / "sessions").exists()
    assert (tmp_path / "x.session").read_text() == "precious"
    await store.close()


async def test_failures_name_no_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = SqliteStore(tmp_path / "file" / "sessions")
    for work in (store.create(meta("a")), store.list(), store.read_meta("a"), store.open("a")):
        with pytest.raises(StoreFailed) as failure:
            await work
        assert "/" not in str(failure.value)
    await store.close()


@pytest.mark.parametrize("text", ["\ud83d", "\0", "a\nb", "x" * 100_000, "'; DROP TABLE session; --"])
async def test_any_title_is_kept_or_refused(tmp_path: Path, text: str) -> None:
    store = SqliteStore(tmp_path)
    log = await store.create(meta("a"))
    is_text = text != "\ud83d"
    with contextlib.nullcontext() if is_text else pytest.raises(StoreFailed):
        await log.change(title=text)
    title = text if is_text else ""
    assert (await store.list()).sessions[0].title == title
    assert (await store.read_meta("a")).title == title
    await store.close()
