"""A turn and a rewind of which the process was killed, and what was changed by hand after that."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman.cli.session_rewind import StoredLog
from dragoman.coder.checkpoints.areas import Areas
from dragoman.coder.checkpoints.checkpoints import Checkpoints
from dragoman.coder.checkpoints.plan import FileTarget
from dragoman.coder.checkpoints.rewinding import Rewinder
from dragoman.host.git_images import ImageChange
from dragoman.store.contract import SessionMeta
from dragoman.store.entries import EventEntry
from dragoman.store.sqlite import SqliteStore
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import Idle, UserMessage
from tests.support.git_repository import repository

pytestmark = pytest.mark.anyio
SESSION = "sess_cut_off"


@asynccontextmanager
async def process(tmp_path: Path) -> AsyncIterator[tuple[StoredLog, Checkpoints, Rewinder]]:
    """The session in a process of its own, as far as what is in memory goes."""
    folder, home = tmp_path / "project", tmp_path / "home"
    store = SqliteStore(home / "sessions")
    held = SESSION in await store.ids()
    log = await store.open(SESSION) if held else await store.create(SessionMeta(SESSION, str(folder)))
    stored = StoredLog(log)

    async def warn(sentence: str) -> None:
        raise AssertionError(sentence)

    async def refusal(target: FileTarget) -> None:
        return None

    def find() -> Areas:
        return Areas.find(str(home), SESSION, [str(folder)], dict(os.environ))

    checkpoints = Checkpoints(stored, find, warn)
    try:
        yield stored, checkpoints, Rewinder(stored, checkpoints, [str(folder)], refusal, lambda: "rw_1")
    finally:
        await log.release()
        await store.close()


async def worked(tmp_path: Path) -> Path:
    """The folder of a session whose one turn has changed two files."""
    folder = repository(tmp_path / "project")
    async with process(tmp_path) as (log, checkpoints, _):
        await log.write([EventEntry(UserMessage("msg_1", [Text("write")]))])
        await checkpoints.before_change("msg_1", [])
        (folder / "file").write_text("mine\n")
        (folder / "other").write_text("mine\n")
        await checkpoints.end_turn()
        await log.write([EventEntry(Idle(stop_reason="end_turn"))])
    return folder


@pytest.mark.requirement("RW9")
async def test_what_was_changed_by_hand_after_a_rewind_was_killed_is_not_taken_for_its_work(tmp_path: Path) -> None:
    folder = await worked(tmp_path)
    async with process(tmp_path) as (_, checkpoints, rewinder):
        plan = await rewinder.plan("files")
        changes = {one.target.path: ImageChange(one.target.now, one.target.target) for one in plan.files}
        await checkpoints.begin_rewind(plan.id, changes)
    (folder / "other").unlink()  # as far as it came
    (folder / "file").write_text("by hand\n")
    async with process(tmp_path) as (_, _, rewinder):
        plan = await rewinder.plan("files")
        assert (plan.files, [one.trouble for one in plan.troubled]) == ([], ["changed since"])
        await rewinder.apply(plan)
    assert (folder / "file").read_text() == "by hand\n"


@pytest.mark.requirement("RW9")
async def test_of_a_turn_that_was_killed_the_preview_says_what_cannot_be_known(tmp_path: Path) -> None:
    folder = await worked(tmp_path)
    async with process(tmp_path) as (log, checkpoints, _):
        await log.write([EventEntry(UserMessage("msg_2", [Text("more")]))])
        await checkpoints.before_change("msg_2", [])
    (folder / "file").write_text("of the turn, or by hand\n")
    async with process(tmp_path) as (log, _, rewinder):
        await log.write([EventEntry(Idle(stop_reason="cancelled"))])
        plan = await rewinder.plan("files")
        assert [one.target.path for one in plan.files] == [str(folder / "file")]
        assert "was cut off" in plan.left_out[0]


@pytest.mark.requirement("RW14")
async def test_of_a_turn_that_was_killed_what_was_unsaved_before_it_comes_back(tmp_path: Path) -> None:
    folder = await worked(tmp_path)
    file = folder / "file"
    async with process(tmp_path) as (log, checkpoints, _):
        await log.write([EventEntry(UserMessage("msg_2", [Text("more")]))])
        await checkpoints.before_change("msg_2", [str(file)], {str(file): b"typed\n"})
    file.write_text("of the turn\n")
    async with process(tmp_path) as (log, _, rewinder):
        await log.write([EventEntry(Idle(stop_reason="cancelled"))])
        await rewinder.apply(await rewinder.plan("files"))
    assert file.read_text() == "typed\n"


@pytest.mark.requirement("RW9")
async def test_of_a_rewind_that_was_killed_its_own_leavings_go_and_those_of_others_stay(tmp_path: Path) -> None:
    folder = await worked(tmp_path)
    async with process(tmp_path) as (_, checkpoints, rewinder):
        plan = await rewinder.plan("files")
        changes = {one.target.path: ImageChange(one.target.now, one.target.target) for one in plan.files}
        await checkpoints.begin_rewind(plan.id, changes)
    for name in (".dragoman-rw_1.tmp", ".dragoman-rw_2.tmp", ".dragoman-notes.tmp"):
        (folder / name).write_text("half\n")
    async with process(tmp_path) as (_, checkpoints, _):
        await checkpoints.settle()
    assert sorted(path.name for path in folder.glob(".dragoman-*")) == [".dragoman-notes.tmp", ".dragoman-rw_2.tmp"]


@pytest.mark.requirement("RW3")
async def test_a_file_that_has_moved_behind_a_link_since_the_preview_is_left_alone_and_said_so(tmp_path: Path) -> None:
    folder = repository(tmp_path / "project")
    async with process(tmp_path) as (log, checkpoints, rewinder):
        await log.write([EventEntry(UserMessage("msg_1", [Text("write")]))])
        await checkpoints.before_change("msg_1", [])
        (folder / "made").mkdir()
        (folder / "made" / "new").write_text("mine\n")
        await checkpoints.end_turn()
        plan = await rewinder.plan("files")
        (folder / "made").rename(folder / "kept")
        (folder / "made").symlink_to("kept")
        outcome = await rewinder.apply(plan)
    left = [(one.path, one.trouble) for one in outcome.left_alone]
    assert (list(outcome.changed), left) == ([], [(str(folder / "made" / "new"), "changed since")])
    assert (folder / "kept" / "new").read_text() == "mine\n"
