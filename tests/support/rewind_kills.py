"""Checkpoints and rewinds of which a process is killed at any step, with real git, a real store and SIGKILL.

A program of its own, with one thread: it forks a child for each deed, which kills itself at the step it is told. Steps
are what reaches the disk: each run of git, each write of the log, each rename, link and unlink. After each kill every
file must be as it was before the deed or as it is after it; what was there must be kept; and the deed must be done
whole by the next one that tries. Every other kill comes at any moment, and to every process of the deed, git too.

    python -m tests.support.rewind_kills FOLDER KILLS SEED repository|plain

It prints how often each deed was killed.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dragoman.cli.session_rewind import StoredLog
from dragoman.coder.checkpoints.areas import Areas
from dragoman.coder.checkpoints.checkpoints import Checkpoints
from dragoman.coder.checkpoints.plan import FileTarget
from dragoman.coder.checkpoints.prompts import rewinds_in
from dragoman.coder.checkpoints.records import step_in
from dragoman.coder.checkpoints.rewinding import Rewinder
from dragoman.host.git_run import GitRuns
from dragoman.store.contract import SessionMeta
from dragoman.store.entries import EventEntry
from dragoman.store.log_places import Scope, rewind_in
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import Idle, Running, UserMessage
from tests.support.git_repository import repository

SESSION = "sess_killed"
# More steps than any deed has.
_NEVER = 10_000
# How many steps and seconds a deed has that was not done yet.
_STEPS = 40
_SECONDS = 0.25
Deed = Callable[[Checkpoints, Rewinder, StoredLog], Awaitable[None]]


class Steps:
    """Counts the steps of this process, and kills it at one of them."""

    def __init__(self, at: int) -> None:
        self.left = at
        self.made = 0

    def step(self) -> None:
        self.made += 1
        self.left -= 1
        if self.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def stepping(*given: Any, **named: Any) -> Any:
            self.step()
            try:
                return work(*given, **named)
            finally:
                self.step()

        return stepping

    def watch(self) -> None:
        patched: Any = GitRuns
        patched.run = self.around(GitRuns.run)
        for name in ("rename", "unlink", "symlink", "fsync"):
            setattr(os, name, self.around(getattr(os, name)))


class Killed:
    """A repository or a plain folder with a session, and the kills of its deeds."""

    def __init__(self, folder: Path, seed: int, kind: str) -> None:
        self.chance = random.Random(seed)
        self.folder = folder / "project"
        if kind == "plain":
            self.folder.mkdir()
        else:
            repository(self.folder)
        self.home = folder / "home"
        self.kills = 0
        self.kills_of: Counter[str] = Counter()
        self.turn = 0
        # What each deed took when it was last done, so that kills come at any part of it on a busy machine too.
        self.steps: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        for number in range(6):
            (self.folder / f"tracked{number}").write_text(f"{number}\n" * 50)
        self.child(_NEVER, self.open)

    # -- in a child --------------------------------------------------------------------------------------------------

    async def open(self, *_: object) -> None:
        """Do nothing: the session is made before every deed."""

    async def prompt(self, checkpoints: Checkpoints, rewinder: Rewinder, log: StoredLog) -> None:
        name = f"msg_{self.turn}"
        await log.write([EventEntry(UserMessage(name, [Text(f"prompt {self.turn}")])), EventEntry(Running())])

    async def work(self, checkpoints: Checkpoints, rewinder: Rewinder, log: StoredLog) -> None:
        name = f"msg_{self.turn}"
        await checkpoints.before_change(name, [])
        for path, text in self.changes():
            path.unlink(missing_ok=True)
            if text is not None:
                path.parent.mkdir(exist_ok=True)
                whole = self.home / "written"  # a kill while a turn itself writes is not what this is about
                whole.write_text(text)
                whole.replace(path)
        await checkpoints.end_turn()

    async def end(self, checkpoints: Checkpoints, rewinder: Rewinder, log: StoredLog) -> None:
        await self.settle(checkpoints, rewinder, log)
        await log.write([EventEntry(Idle(stop_reason="end_turn"))])

    async def rewind(self, checkpoints: Checkpoints, rewinder: Rewinder, log: StoredLog) -> None:
        name, scope = f"msg_{self.turn}", self.scope()
        if name in [prompt.message_id for prompt in await rewinder.prompts()]:  # else it was the kill that came late
            await rewinder.apply(await rewinder.plan(scope, message_id=name))
        counts = name in [prompt.message_id for prompt in await rewinder.prompts()]
        assert counts == (scope == "files"), "the conversation is not where the rewind has left it"

    async def undo(self, checkpoints: Checkpoints, rewinder: Rewinder, log: StoredLog) -> None:
        if not rewinds_in(await log.read())[-1].rewind.undoes:  # else the kill came behind its last step
            await rewinder.apply(await rewinder.plan_undo())

    def scope(self) -> Scope:
        return "both" if self.turn % 2 else "files"

    async def settle(self, checkpoints: Checkpoints, rewinder: Rewinder, log: StoredLog) -> None:
        areas = await checkpoints.settle()
        (area,) = areas.git.values()
        for text in tree(self.folder).values():
            name = area.image_of(text, 0).id
            assert area.read([name]), f"a content is lost: {text[:80]!r}"
        for record in await log.read():  # the log is whole
            step_in(record), rewind_in(record.entry)

    def changes(self) -> list[tuple[Path, str | None]]:
        chance = random.Random(self.turn)
        names = [f"tracked{number}" for number in range(6)] + [f"new{number}/file" for number in range(4)]
        some = chance.sample(names, 4)
        return [
            (self.folder / name, None if chance.random() < 0.3 else f"turn {self.turn} {name}\n" * 200) for name in some
        ]

    # -- in the parent -----------------------------------------------------------------------------------------------

    def killed(self, deed: Deed) -> bool:
        """Do it in a child that is killed, at a step or at a moment; return whether it was."""
        before, name = self.kills, deed.__name__
        if self.kills % 2:
            self.child(self.chance.randrange(self.steps.get(name, _STEPS)), deed)
        else:
            self.child(_NEVER, deed, self.chance.random() * self.seconds.get(name, _SECONDS))
        self.kills_of[name] += self.kills - before
        return self.kills > before

    def child(self, at: int, deed: Deed, seconds: float = 0) -> int:
        """Do it in a child that is killed at a step, or with all its children after some seconds.

        Return how many steps it made, negative if it was killed.
        """
        read, write = os.pipe()
        began = time.monotonic()
        process = os.fork()
        if process == 0:
            os.close(read)
            os.setpgid(0, 0)
            code = 1
            try:
                steps = Steps(at)
                steps.watch()
                asyncio.run(self._with_session(deed))
                os.write(write, str(steps.made).encode())
                code = 0
            finally:
                os._exit(code)
        os.close(write)
        if seconds:
            with suppress(PermissionError):  # it has done so itself
                os.setpgid(process, process)
            time.sleep(seconds)
            os.killpg(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        with open(read, "rb") as file:
            made = file.read()
        if os.WIFSIGNALED(status):
            assert os.WTERMSIG(status) == signal.SIGKILL
            self.kills += 1
            return -1
        assert status == 0, f"{deed} failed"
        self.steps[deed.__name__] = max(int(made), 1)
        self.seconds[deed.__name__] = time.monotonic() - began
        return int(made)

    async def _with_session(self, deed: Deed) -> None:
        store = SqliteStore(self.home / "sessions")
        if SESSION in await store.ids():
            log = await store.open(SESSION)
        else:
            log = await store.create(SessionMeta(SESSION, str(self.folder)))
        stored = StoredLog(log)

        def find() -> Areas:
            return Areas.find(str(self.home), SESSION, [str(self.folder)], dict(os.environ))

        async def warn(sentence: str) -> None:
            raise AssertionError(sentence)

        async def refusal(target: FileTarget) -> None:
            return None

        checkpoints = Checkpoints(stored, find, warn)
        rewinder = Rewinder(stored, checkpoints, [str(self.folder)], refusal, lambda: f"rw_{os.urandom(6).hex()}")
        await deed(checkpoints, rewinder, stored)
        await log.release()
        await store.close()

    def round(self) -> None:
        """A turn, a rewind, its undoing, and what settles each: killed once, then done."""
        self.turn += 1
        before = tree(self.folder)
        wanted = {str(path.relative_to(self.folder)): text for path, text in self.changes()}
        self.child(_NEVER, self.prompt)
        self.killed(self.work)
        written = {name: None if text is None else text.encode() for name, text in wanted.items()}
        self.check(before, {**before, **written})
        self.killed(self.settle)
        self.child(_NEVER, self.end)
        changed = tree(self.folder)
        was_killed = self.killed(self.rewind)
        self.check(changed, before)
        self.killed(self.settle)
        self.child(_NEVER, self.settle)
        if not was_killed:
            self.take_back(before, changed)
        self.child(_NEVER, self.rewind)
        assert tree(self.folder) == before, "the rewind that was killed was not done by the next"

    def take_back(self, rewound: dict[str, bytes], changed: dict[str, bytes]) -> None:
        """Undo the rewind, killed once, then done."""
        if self.killed(self.undo):
            self.check(rewound, changed)
            self.child(_NEVER, self.undo)
        assert tree(self.folder) == changed, "the rewind was not undone"

    def check(self, *states: "dict[str, bytes] | dict[str, bytes | None]") -> None:
        """Every file is as in one of the states."""
        for name, text in tree(self.folder).items():
            if not name.rpartition("/")[2].startswith(".dragoman-"):
                assert any(state.get(name) == text for state in states), f"{name} is half restored: {text[:80]!r}"


def tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def main(arguments: Sequence[str]) -> None:
    folder, kills, seed = Path(arguments[0]), int(arguments[1]), int(arguments[2])
    killed = Killed(folder, seed, arguments[3])
    while killed.kills < kills:
        killed.round()
    print(json.dumps(killed.kills_of))


if __name__ == "__main__":
    main(sys.argv[1:])
