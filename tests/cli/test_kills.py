"""The real agent: `dragoman acp` is killed at any moment.

Nothing an editor has seen is lost, nothing is invented, what was cut off is told as interrupted, the session goes on,
and what the agent had started is dead.
"""

import json
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cli.drawn_session import Item
from tests.cli.killed_sessions import lived, whole_truth
from tests.support.editor import Editor, turns
from tests.support.machine import marked
from tests.support.waiting import wait_until

# Two are promised, and looked at in the slow lane; here only what is not ended at all takes longer.
SECONDS = 20.0
PROMISED_SECONDS = 2.0
# Two at a time: the machine that runs this has other things to do.
AT_ONCE = 2
# About how often the store calls SQLite and the file system in one generation, each call counted before and after.
CALLS = 480


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> list[Item]:
    """What happens undisturbed; the same in both versions."""
    one, other = (whole_truth(tmp_path_factory.mktemp("truth"), version) for version in (1, 2))
    assert [item._replace(id="") for item in one] == [item._replace(id="") for item in other]
    return one


@pytest.mark.requirement("E1")
def test_four_kills_at_any_moment_lose_nothing(truth: list[Item], tmp_path: Path) -> None:
    assert lived(tmp_path, truth, seed=0, kills=4) >= 3


@pytest.mark.requirement("E1")
def test_four_kills_at_writes_lose_nothing(truth: list[Item], tmp_path: Path) -> None:
    assert lived(tmp_path, truth, seed=0, kills=4, places=range(7, CALLS, CALLS // 6)) >= 3


@pytest.mark.requirement("E1")
@pytest.mark.slow
def test_hundreds_of_kills_at_any_moment_lose_nothing(truth: list[Item], tmp_path: Path) -> None:
    assert sum(at_once(25, lambda seed: lived(tmp_path / str(seed), truth, seed, kills=12))) >= 250


@pytest.mark.requirement("E1")
@pytest.mark.slow
def test_a_kill_at_every_write_loses_nothing(truth: list[Item], tmp_path: Path) -> None:
    lives = CALLS // 12

    def life(seed: int) -> int:
        return lived(tmp_path / str(seed), truth, seed, kills=12, places=range(seed + 1, CALLS + 1, lives))

    # How many calls there are depends on how many entries each commit takes with it.
    assert sum(at_once(lives, life)) >= CALLS * 3 // 4


def at_once(lives: int, live: Callable[[int], int]) -> list[int]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(live, range(lives)))


def test_the_harness_notices_a_loss(truth: list[Item], tmp_path: Path) -> None:
    """An agent whose store drops every tenth append without a word does not get away with it."""
    with pytest.raises(AssertionError):
        lived(tmp_path / "life", truth, seed=0, kills=4, first=FORGETFUL)


FORGETFUL = """
from dragoman.store import files
kept, count = files.SessionFiles.append, 0
def append(self, session_id, entries, activity):
    global count
    count += 1
    kept(self, session_id, [] if count % 10 == 0 else entries, activity)
files.SessionFiles.append = append
"""


# -- what it had started ---------------------------------------------------------------------------------------------

# What is run, and how many sleep then.
CHILDREN = {
    "a sleeper": ("sleep 1000", 1),
    "one in a session of its own": ("setsid sleep 1000 & wait", 1),
    "one that was forked twice": ("(setsid sleep 1000 & ) & sleep 1000", 2),
    "one that ignores SIGTERM": ("trap '' TERM HUP INT; sleep 1000; sleep 1000", 1),
}


@pytest.mark.requirement("E10")
@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM", "EOF"])
def test_what_an_agent_had_started_is_dead_soon_after_its_end(how: str, tmp_path: Path) -> None:
    each = " ".join(f"({command}) &" for command, _ in CHILDREN.values())
    sleepers = sum(sleepers for _, sleepers in CHILDREN.values())
    is_dead_with_its_agent(f"{each} wait", sleepers, SECONDS, tmp_path, how)


@pytest.mark.requirement("E10")
@pytest.mark.slow
@pytest.mark.parametrize(("command", "sleepers"), CHILDREN.values(), ids=CHILDREN.keys())
def test_what_a_killed_agent_had_started_is_dead_within_two_seconds(
    command: str, sleepers: int, tmp_path: Path
) -> None:
    is_dead_with_its_agent(command, sleepers, PROMISED_SECONDS, tmp_path)


def is_dead_with_its_agent(command: str, sleepers: int, seconds: float, folder: Path, how: str = "SIGKILL") -> None:
    script = turns([{"call": "bash", "input": {"command": command}}])
    mark = f"PROOF_OF_DEATH={folder}"
    with Editor(folder, script, "--mode", "full", env=dict([mark.split("=")])) as editor:
        editor.open()
        editor.send({"id": 99, "method": "session/prompt", "params": editor.words("go")})
        while "sleep 1000" not in json.dumps(editor.read()):  # once it is shown, it is watched over
            pass
        wait_until(lambda: sum(map(is_sleeper, marked(mark))) >= sleepers, seconds=SECONDS)
        if how == "EOF":
            editor.stdin.close()
        else:
            editor.process.send_signal(signal.Signals[how])
        assert editor.process.wait(SECONDS) == {"SIGKILL": -signal.SIGKILL, "SIGTERM": 143, "EOF": 0}[how]
        editor.left = True
        wait_until(lambda: marked(mark) == [], seconds=seconds)


def is_sleeper(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep\0")
    except OSError:
        return False
