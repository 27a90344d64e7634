"""A command that is known to only read runs without a question in mode `ask`, and is kept to reading."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from dragoman.coder.execution import DirectExecution
from dragoman.host.paths import Roots
from dragoman.host.sandbox import Confinement
from tests.support.needs import need
from tests.support.scripted_turns import RecordingModel, apart, bash
from tests.support.whole_agent import User, events_of, whole

NOTHING = Confinement(None, 0, ("There is no bubblewrap.",))
# What reads the workspace as far as the text of the line goes; the middle one names no path at all.
LOOKS = ["ls", "cat a.txt | wc -l", "git status --short", "grep -rn needle ."]


def nothing_is_confined(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("dragoman.coder.execution.probe", "dragoman.host.sandbox.probe"):
        monkeypatch.setattr(place, lambda: NOTHING)


async def test_commands_that_only_read_run_in_mode_ask_without_a_question(tmp_path: Path) -> None:
    need("bwrap")
    (tmp_path / "a.txt").write_text("needle\n")
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(tmp_path)], check=True)
    user = User("reject_once")
    model = RecordingModel(apart(map(bash, LOOKS)))
    async with whole(tmp_path, model.make, user=user) as (_, session):
        await events_of(session)
    assert user.asked == []
    assert model.results == ["a.txt\n", "1\n", "?? a.txt\n", "./a.txt:1:needle\n"]


async def test_in_mode_ask_such_a_command_cannot_write_what_it_reads(tmp_path: Path) -> None:
    """Whatever the command turns out to be: here it is one that writes."""
    need("bwrap")
    execution = DirectExecution(None, Roots([str(tmp_path)]), lambda: "ask", {"PATH": "/usr/bin:/bin"}, "")
    start = await execution.start_looking(["/bin/sh", "-c", "echo x > made; echo x > /var/tmp/x; cat a.txt"])
    (tmp_path / "a.txt").write_text("read\n")
    try:
        process = await asyncio.create_subprocess_exec(
            *start.argv, env=dict(start.environment), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        output, errors = await process.communicate()
    finally:
        start.close()
    assert (output, b"Read-only file system" in errors) == (b"read\n", True)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


async def test_where_nothing_can_be_confined_such_a_command_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing_is_confined(monkeypatch)
    user = User("allow_once", "reject_once")
    model = RecordingModel(apart([bash("echo one"), bash("echo two")]))
    async with whole(tmp_path, model.make, user=user) as (_, session):
        await events_of(session)
    assert [question.title for question in user.asked] == ["echo one", "echo two"]
    assert model.results == ["one\n", "Permission denied. The user said no."]


async def test_a_folder_that_no_command_can_be_confined_in_asks(tmp_path: Path) -> None:
    """The folder of our own data is hidden from every confined command."""
    need("bwrap")
    user = User("reject_once")
    model = RecordingModel(apart([bash("ls")]))
    async with whole(tmp_path, model.make, user=user, home=tmp_path) as (_, session):
        await events_of(session)
    assert [question.title for question in user.asked] == ["ls"]


@pytest.mark.parametrize(("mode", "in_editor"), [("ask", False), ("workspace-write", False), ("full-access", True)])
def test_a_command_that_is_kept_to_reading_does_not_run_in_the_editors_terminal(
    tmp_path: Path, mode: str, in_editor: bool
) -> None:
    class Session:
        client = type("Client", (), {"terminal": True})

    execution = DirectExecution(Session(), Roots([str(tmp_path)]), lambda: mode, {}, "")  # type: ignore[arg-type]
    assert execution.terminal_of_editor(looks=True) == in_editor
