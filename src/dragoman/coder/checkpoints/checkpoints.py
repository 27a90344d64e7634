"""Keep what files were before a turn changes them: once before its first change, and once behind its last.

Promise: a step counts when the log has it, which is after everything it names is on disk. A kill at any point leaves
the step before, and the next look finds again what came after it.

Nothing here stops a turn: where files cannot be kept, the user is told once, and the turn goes on without.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Final, Protocol

from dragoman.coder.checkpoints.areas import Areas, failures_named
from dragoman.coder.checkpoints.records import (
    CheckpointState,
    CheckpointStep,
    StepKind,
    entry_of,
    step_in,
    steps_of,
)
from dragoman.coder.checkpoints.restoring import remove_leavings
from dragoman.host.git_images import FileImage, ImageChange, Look
from dragoman.host.git_run import ShadowFailed
from dragoman.host.paths import is_inside
from dragoman.store.contract import Record
from dragoman.store.entries import Entry

_log = logging.getLogger(__name__)


class SessionLog(Protocol):
    """The log of one session, as checkpoints use it."""

    async def read(self) -> list[Record]:
        """Return all entries."""

    async def write(self, entries: Sequence[Entry]) -> None:
        """Add entries; they are on disk when this returns. Raises `StoreFailed`."""


class Checkpoints:
    """The checkpoints of one session. `find_areas` blocks; it is called with the first change."""

    def __init__(
        self, log: SessionLog, find_areas: Callable[[], Areas], warn: Callable[[str], Awaitable[None]]
    ) -> None:
        self._log: Final = log
        self._find_areas = find_areas
        self._warn = warn
        self._state: CheckpointState | None = None
        self._areas: Areas | None = None
        self._told: set[str] = set()
        # Calls of one turn run together, and helpers as well.
        self._lock: Final = asyncio.Lock()
        self._syncing: asyncio.Future[None] | None = None
        # The turn that is being ended in this process.
        self._ending = ""
        # The turn whose first change is covered, and the files that it has begun to write, by whole path.
        self._turn = ""
        self._written: set[str] = set()

    def __repr__(self) -> str:
        return f"<Checkpoints turn={self._turn!r} {self._state!r}>"

    async def before_change(
        self, turn: str, paths: Sequence[str], unsaved: Mapping[str, bytes] = MappingProxyType({})
    ) -> None:
        """Keep what is there before a call of a turn changes it; `paths`: the files that it is known to write.

        `unsaved`: what an editor shows of some of them, by whole path, where the disk does not have it.
        """
        async with self._lock:
            try:
                state, areas = await self._load()
                if self._turn != turn or state.open_owner != turn:
                    await self._look("others")
                    await self._record([CheckpointStep("begin", turn, left_out=list(areas.left_out))])
                    self._turn, self._written = turn, set()
                await self._touch([path for path in areas.touches(paths) if path not in state.touched])
                # What is typed while the turn runs, behind its first write of a file, counts as the turn's.
                await self._keep_unsaved(turn, {one: unsaved[one] for one in unsaved if one not in self._written})
                self._written.update(paths)
                await self._wait_until_synced()
            except ShadowFailed as failed:
                await self._tell(f"{_NOT_KEPT}: {failed}.")

    async def end_turn(self) -> None:
        """Keep what the turn has left, if it has changed anything."""
        async with self._lock:
            turn, self._turn = self._turn, ""
            if not turn or self._state is None:
                return
            self._ending = turn
            try:
                await self._look("others")
                if self._areas is not None:
                    # In the meantime: what is on its way to the disk is needed by the next change, not by this turn.
                    self._syncing = asyncio.ensure_future(asyncio.to_thread(_sync, self._areas))
            except ShadowFailed as failed:
                await self._tell(f"{_NOT_KEPT}: {failed}.")

    async def _wait_until_synced(self) -> None:
        """Wait until every content that a rewind may need is on the disk."""
        if self._syncing is not None:
            await self._syncing
            self._syncing = None
        if self._areas is not None:
            await asyncio.to_thread(_sync, self._areas)

    async def settle(self) -> Areas:
        """Bring the log up to date with the files as they are now, and return the areas. Raises `ShadowFailed`."""
        async with self._lock:
            _, areas = await self._load()
            await self._look("others")
            return areas

    async def begin_rewind(self, rewind_id: str, files: Mapping[str, ImageChange]) -> Areas:
        """Write down which files, by whole path, a rewind is about to change, and how; return the areas."""
        _, areas = await self._load()
        await self._wait_until_synced()
        await self._record(steps_of("rewinding", rewind_id, "", Look("", files, ())))
        return areas

    async def end_rewind(self, files: Mapping[str, FileImage | None]) -> None:
        """Write down what the rewind has changed, which is no more than these whole paths; what they were before it.

        Raises `ShadowFailed`.
        """
        async with self._lock:
            await self._look("others", files)

    # -- steps -------------------------------------------------------------------------------------------------------

    async def _load(self) -> tuple[CheckpointState, Areas]:
        if self._state is None or self._areas is None:
            state = CheckpointState()
            steps = [step for record in await self._log.read() if (step := step_in(record)) is not None]
            state.apply(steps)
            areas = await asyncio.to_thread(self._find_areas)
            await asyncio.to_thread(_adopt, areas, steps)
            self._areas, self._state = areas, state
            for sentence in areas.left_out:
                await self._tell(f"{_NOT_EVERYTHING}: {sentence}.")
        return self._state, self._areas

    async def _look(self, kind: StepKind, only: Mapping[str, FileImage | None] | None = None) -> None:
        """Find what has changed since the last step: it is that of the turn or rewind that has begun, or of others."""
        state, areas = await self._load()
        owner = state.open_owner
        if owner:
            kind = "turn" if state.rewinding is None else "rewind"
            if state.rewinding is not None:
                await asyncio.to_thread(remove_leavings, owner, list(state.rewinding))
        looks = await asyncio.to_thread(_look_at_all, areas, dict(state.indexes), dict(state.touched), only)
        steps: list[CheckpointStep] = []
        for top, look in looks:
            is_first = bool(top) and not state.indexes.get(top)
            if is_first:
                steps += steps_of("first", "", top, look)
            elif look.changes or (top and look.index_file != state.indexes[top]):
                mine, others = _told_apart(look, top, state)
                if others.changes:
                    steps += steps_of("others", "", top, others)
                steps += steps_of(kind, owner, top, mine)
            for sentence in look.left_out:
                await self._tell(f"{_NOT_EVERYTHING}: {sentence}.")
        if owner:
            # A turn that this process does not end was killed, and nothing has looked since.
            is_cut_off = kind == "turn" and owner != self._ending
            steps.append(CheckpointStep("end", owner, left_out=[_CUT_OFF] if is_cut_off else []))
        await self._record(steps)

    async def _touch(self, paths: Sequence[str]) -> None:
        if not paths:
            return
        _, areas = await self._load()
        found = await asyncio.to_thread(_keep_all, areas, paths)
        # From nothing to what is there: where the file is none, the chain begins with that.
        changes = {path: ImageChange(None, image) for path, image in found.items()}
        await self._record(steps_of("first", "", "", Look("", changes, ())))

    async def _keep_unsaved(self, turn: str, unsaved: Mapping[str, bytes]) -> None:
        if unsaved:
            _, areas = await self._load()
            await self._record(await asyncio.to_thread(_keep_texts, areas, turn, unsaved))

    async def _record(self, steps: Sequence[CheckpointStep]) -> None:
        """Write steps to the log. What they name is kept by now."""
        if not steps:
            return
        state, areas = await self._load()
        await self._log.write([entry_of(step) for step in steps])
        state.apply(steps)
        await asyncio.to_thread(_accept, areas, steps)
        _log.debug("%d steps of checkpoints written", len(steps))

    async def _tell(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            await self._warn(sentence)


def _told_apart(look: Look, top: str, state: CheckpointState) -> tuple[Look, Look]:
    """Return what a turn or rewind has done, and what other hands have done meanwhile, as far as that is known.

    A rewind does what it has said before; anything else is not its work. Of a file with unsaved text the user has
    changed it to that text, and the turn has gone on from there.
    """
    rewinding = state.rewinding
    if rewinding is None:
        mine, others = dict(look.changes), {}
        for path, change in look.changes.items():
            typed = state.unsaved.get(os.path.join(top, path))
            if typed is not None:
                others[path], mine[path] = ImageChange(change.before, typed), ImageChange(typed, change.after)
        return look._replace(changes=mine), look._replace(changes=others, index_file="", left_out=())
    mine = {path: one for path, one in look.changes.items() if rewinding.get(os.path.join(top, path)) == one}
    others = {path: one for path, one in look.changes.items() if path not in mine}
    # The index counts with the step that is written last.
    return look._replace(changes=mine), look._replace(changes=others, index_file="", left_out=())


_CUT_OFF: Final = "the turn was cut off: what was changed by hand since then counts as its work"
_NOT_EVERYTHING: Final = "A rewind does not cover everything here"
_NOT_KEPT: Final = "What this turn changes cannot be rewound"


def _look_at_all(
    areas: Areas,
    indexes: Mapping[str, str],
    touched: Mapping[str, FileImage | None],
    only: Mapping[str, FileImage | None] | None,
) -> list[tuple[str, Look]]:
    """Look at every area, at `only` these whole paths; blocks."""
    found: list[tuple[str, Look]] = []
    with failures_named():
        for top, area in areas.git.items():
            inside = None
            if only is not None:
                inside = {os.path.relpath(path, top): image for path, image in only.items() if is_inside(path, top)}
            if inside is None or inside:
                found.append((top, area.look(indexes.get(top, ""), inside)))
        known = {path: image for path, image in touched.items() if only is None or path in only}
        found.append(("", areas.touched.look(known)))
    return found


def _sync(areas: Areas) -> None:
    for area in areas.git.values():
        area.sync()


def _keep_all(areas: Areas, paths: Sequence[str]) -> dict[str, FileImage | None]:
    with failures_named():
        return {path: areas.touched.keep(path) for path in paths}


def _keep_texts(areas: Areas, turn: str, texts: Mapping[str, bytes]) -> list[CheckpointStep]:
    steps: list[CheckpointStep] = []
    with failures_named():
        for path, data in texts.items():
            top = areas.top_of(path)
            image = (areas.of(top) or areas.touched).keep_text(path, data)
            name = os.path.relpath(path, top) if top else path
            steps += steps_of("unsaved", turn, top, Look("", {name: ImageChange(None, image)}, ()))
    return steps


def _adopt(areas: Areas, steps: Sequence[CheckpointStep]) -> None:
    with failures_named():
        areas.adopt(steps)


def _accept(areas: Areas, steps: Sequence[CheckpointStep]) -> None:
    for step in steps:
        with suppress(OSError, ShadowFailed):  # what is not removed now is removed with the next step
            _accept_one(areas, step)


def _accept_one(areas: Areas, step: CheckpointStep) -> None:
    if step.index and (area := areas.of(step.area)) is not None:
        area.accept(step.index)
