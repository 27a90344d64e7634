"""Waiting for a folder, and names that another process cleans away."""

import fcntl
import os
import time
from pathlib import Path

import pytest

from dragoman.store import locks
from dragoman.store.contract import StoreFailed
from dragoman.store.locks import Holder, locked


def test_who_waits_too_long_for_the_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.0)
    busy = pytest.raises(StoreFailed, match="keeps the session store busy")
    with locked(tmp_path, alone=True), busy, locked(tmp_path, alone=False):
        raise AssertionError


def test_who_waits_gets_the_folder_when_it_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        os.close(other)

    monkeypatch.setattr(time, "sleep", pause)
    with locked(tmp_path, alone=True):
        assert len(waited) == 1


def test_a_name_that_is_cleaned_away_too_early_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same, asked = locks.same_file, []

    def first_gone(path: Path, identity: os.stat_result) -> bool:
        asked.append(path)
        if len(asked) == 1:
            path.unlink()
        return same(path, identity)

    monkeypatch.setattr(locks, "same_file", first_gone)
    holder = Holder(tmp_path)
    assert holder.name == asked[1].name
    assert len(asked) == 2
    assert os.listdir(tmp_path) == [holder.name]
    holder.end()


def test_a_name_that_another_looks_at_just_now_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, tries = fcntl.flock, []

    def first_busy(fd: int, kind: int) -> None:
        tries.append(fd)
        if len(tries) == 1:
            raise BlockingIOError
        lock(fd, kind)

    monkeypatch.setattr(fcntl, "flock", first_busy)
    holder = Holder(tmp_path)
    assert holder.name
    assert len(tries) == 2
    holder.end()
