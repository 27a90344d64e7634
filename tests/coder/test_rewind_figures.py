"""What a checkpoint and a rewind cost in a repository of 100,000 files, beside git's own commands in the same run."""

import os
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from dragoman.cli.session_rewind import StoredLog
from dragoman.coder.checkpoints.areas import Areas
from dragoman.coder.checkpoints.checkpoints import Checkpoints
from dragoman.coder.checkpoints.plan import FileTarget
from dragoman.coder.checkpoints.rewinding import Rewinder
from dragoman.store.contract import SessionMeta
from dragoman.store.entries import EventEntry
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import Idle, UserMessage
from tests.support.needs import need

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(1800)]

FILES, TOUCHED, ROUNDS = 100_000, 100, 5
SESSION = "sess_figures"


class Large:
    """A repository of so many files, each of 160 bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        for number in range(FILES):
            if number % 100 == 0:
                self.path(number).parent.mkdir(parents=True)
            self.path(number).write_text(f"file {number:06}\n" * 13)
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "all")

    def path(self, number: int) -> Path:
        return self.folder / f"d{number // 1000}" / f"s{number // 100 % 10}" / f"f{number}.txt"

    def git(self, *words: str) -> None:
        settings = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "gc.auto=0")
        subprocess.run([need("git"), "-C", str(self.folder), *settings, *words], check=True, capture_output=True)

    def change(self, word: str) -> int:
        """Change files all over the repository; return how many bytes they have."""
        paths = [self.path(number) for number in range(0, FILES, FILES // TOUCHED)]
        for path in paths:
            path.write_text(f"{path.name} {word}\n" * 20)
        return sum(path.stat().st_size for path in paths)


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


async def seconds(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


@pytest.mark.requirement("RW12")
async def test_a_checkpoint_costs_no_more_than_two_stashes_and_a_rewind_than_two_checkouts(tmp_path: Path) -> None:
    large = Large(tmp_path / "large")
    home = tmp_path / "home"
    store = SqliteStore(home / "sessions")
    log = await store.create(SessionMeta(SESSION, str(large.folder)))
    stored = StoredLog(log)
    said: list[str] = []

    async def warn(sentence: str) -> None:
        said.append(sentence)

    async def refusal(target: FileTarget) -> None:
        return None

    def find() -> Areas:
        return Areas.find(str(home), SESSION, [str(large.folder)], dict(os.environ))

    async def git(*words: str) -> float:
        began = time.perf_counter()
        large.git(*words)
        return time.perf_counter() - began

    checkpoints = Checkpoints(stored, find, warn)
    rewinder = Rewinder(stored, checkpoints, [str(large.folder)], refusal, lambda: f"rw_{os.urandom(4).hex()}")
    await checkpoints.before_change("msg_first", [])
    await checkpoints.end_turn()
    ratios: list[tuple[float, float]] = []
    for turn in range(ROUNDS):
        name = f"msg_{turn}"
        await stored.write([EventEntry(UserMessage(name, [Text(name)]))])
        kept = size(home / "checkpoints")
        checkpoint = await seconds(lambda: checkpoints.before_change(name, []))  # noqa: B023
        changed = large.change(name)
        checkpoint += await seconds(checkpoints.end_turn)
        await stored.write([EventEntry(Idle(stop_reason="end_turn"))])
        stash = await git("stash", "create")
        assert size(home / "checkpoints") - kept <= changed

        async def rewind() -> None:
            outcome = await rewinder.apply(await rewinder.plan("files"))
            assert (len(outcome.changed), list(outcome.left_alone)) == (TOUCHED, [])

        back = await seconds(rewind)
        large.git("status")
        large.change(name)
        checkout = await git("checkout", "-q", "--", ".")
        ratios.append((checkpoint / stash, back / checkout))
        print(f"checkpoint {checkpoint:.2f} s, stash {stash:.2f} s; rewind {back:.2f} s, checkout {checkout:.2f} s")
    await log.release()
    await store.close()
    assert said == []
    # The best of each: a machine that is busy with something else makes all of them slower, and not to the same degree.
    assert min(one for one, _ in ratios) <= 2
    assert min(other for _, other in ratios) <= 2
