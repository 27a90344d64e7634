"""The total of a day: kept for all processes of the user, whole after a kill, small, and private."""

import os
import signal
import stat
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import pytest

from dragoman.coder.day_spending import DaySpending, DaySpendingFailed

TODAY = date(2027, 1, 15)
ADDS = """
import sys
from dragoman.coder.day_spending import DaySpending
day = DaySpending(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2])):
    day.add(0.25)
    print("added", flush=True)
"""


def adding(file: Path, times: int) -> "subprocess.Popen[str]":
    """A process that waits for a line and then adds a quarter of a dollar so many times, a line each."""
    words = [sys.executable, "-c", ADDS, str(file), str(times)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_what_is_added_is_there_and_in_the_next_process_too(tmp_path: Path) -> None:
    day = DaySpending(str(tmp_path / "data" / "spending.sqlite"))
    assert day.total() == 0.0
    day.add(0.5)
    day.add(0.25)
    assert day.total() == 0.75
    day.close()
    assert DaySpending(str(tmp_path / "data" / "spending.sqlite")).total() == 0.75


def test_the_next_day_begins_at_nothing_and_days_long_over_are_gone(tmp_path: Path) -> None:
    file = str(tmp_path / "spending.sqlite")
    DaySpending(file, lambda: TODAY).add(2.0)
    tomorrow = DaySpending(file, lambda: TODAY + timedelta(days=1))
    assert tomorrow.total() == 0.0
    tomorrow.add(1.0)
    assert DaySpending(file, lambda: TODAY).total() == 2.0
    DaySpending(file, lambda: TODAY + timedelta(days=91)).add(1.0)
    assert DaySpending(file, lambda: TODAY).total() == 0.0


def test_every_file_is_the_users_alone(tmp_path: Path) -> None:
    day = DaySpending(str(tmp_path / "data" / "spending.sqlite"))
    day.add(1.0)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "data").iterdir()}
    assert modes == {0o600}
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


def test_processes_that_add_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "spending.sqlite"
    workers = [adding(file, 200) for _ in range(3)]
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.communicate("go\n", timeout=50)
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert DaySpending(str(file)).total() == 150.0


def test_a_kill_in_the_middle_of_adding_loses_nothing_that_was_added(tmp_path: Path) -> None:
    file = tmp_path / "spending.sqlite"
    before = 0.0
    for _ in range(5):
        worker = adding(file, 1_000_000)
        assert worker.stdin is not None and worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
        worker.stdin.write("go\n")
        worker.stdin.flush()
        added = [worker.stdout.readline() for _ in range(20)]
        os.kill(worker.pid, signal.SIGKILL)
        added += worker.stdout.readlines()
        worker.stdin.close()
        worker.stdout.close()
        worker.wait(50)
        whole = sum(line == "added\n" for line in added)
        total = DaySpending(str(file)).total()
        # One more may be on disk than the process came to say.
        assert (total - before) / 0.25 in (whole, whole + 1)
        before = total


@pytest.mark.parametrize("content", [b"not a database at all, but text", b"\0" * 5000])
def test_a_file_that_is_none_of_ours_is_refused_with_its_name(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "spending.sqlite"
    file.write_bytes(content)
    with pytest.raises(DaySpendingFailed, match=r"spending\.sqlite a file of yours, or move it away"):
        DaySpending(str(file)).total()


def test_a_place_that_cannot_be_written_is_refused_and_works_when_it_can(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    day = DaySpending(str(tmp_path / "data" / "spending.sqlite"))
    with pytest.raises(DaySpendingFailed, match="cannot be read or written"):
        day.add(1.0)
    (tmp_path / "data").unlink()
    day.add(1.0)
    assert day.total() == 1.0
