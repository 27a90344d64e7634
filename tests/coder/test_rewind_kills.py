"""kill -9 in every phase of a checkpoint and of a rewind: no file is half restored, and nothing is lost."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

DEEDS = {"work", "settle", "rewind", "undo"}


def killed(folder: Path, kills: int, seed: int, kind: str = "repository") -> Counter[str]:
    """How often `tests.support.rewind_kills` killed each deed. It forks, so it is a process with one thread."""
    words = [sys.executable, "-m", "tests.support.rewind_kills", str(folder), str(kills), str(seed), kind]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Counter(json.loads(done.stdout))


@pytest.mark.timeout(240)  # some sixty processes one after the other, most of which run git
@pytest.mark.requirement("RW9")
def test_after_a_kill_every_file_is_whole_and_the_next_rewind_does_the_rest(tmp_path: Path) -> None:
    assert killed(tmp_path, 9, 1).total() >= 9  # the last turn may be killed more than once


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.requirement("RW9")
@pytest.mark.parametrize("seed", range(4))
def test_after_two_thousand_kills_every_file_is_whole(tmp_path: Path, seed: int) -> None:
    kills = killed(tmp_path, 500, seed)
    assert kills.total() >= 500 and set(kills) == DEEDS


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.requirement("RW16")
def test_after_five_hundred_kills_every_file_of_a_plain_folder_is_whole(tmp_path: Path) -> None:
    kills = killed(tmp_path, 500, 4, "plain")
    assert kills.total() >= 500 and set(kills) == DEEDS
