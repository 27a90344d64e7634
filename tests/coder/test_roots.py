"""The roots of a session: found with its first prompt, and whatever is put in their place afterwards is none."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.coder.project_notes import NoteReader, ProjectNote
from dragoman.coder.tools.files import is_ours
from dragoman.host.paths import Roots
from tests.support.whole_agent import User, ends, events_of, scripted, whole

pytestmark = pytest.mark.anyio

SWAP = "cd .. && mv work away && ln -s outside work"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace, with a folder beside it that is none."""
    for folder in (tmp_path / "work", tmp_path / "outside"):
        folder.mkdir()
    (tmp_path / "outside" / "theirs").write_text("theirs")
    return tmp_path / "work"


@pytest.mark.parametrize("mode", ["full-access", "workspace-write", "sandbox"])
async def test_what_one_turn_puts_in_the_place_of_a_root_is_no_root_in_the_next(work: Path, mode: str) -> None:
    prefix = "sandbox_" if mode == "sandbox" else ""
    model = scripted(
        [{"call": "bash", "input": {"command": SWAP}}],
        [
            {"call": f"{prefix}write_file", "input": {"path": "new", "content": "ours"}},
            {"call": f"{prefix}read_file", "input": {"path": "theirs"}},
            {"call": f"{prefix}bash", "input": {"command": "touch ran"}},
        ],
    )
    home = work.parent / "home"
    async with whole(work, model, mode="full-access", user=User("allow_once"), home=home) as (_, session):
        assert ends(await events_of(session)) == [("bash", "completed")]
        await session.set_option("mode", mode)
        later = ends(await events_of(session))
    assert sorted(later) == [(f"{prefix}{name}", "failed") for name in ("bash", "read_file", "write_file")]
    outside = work.parent / "outside"
    assert [(file.name, file.read_text()) for file in outside.iterdir()] == [("theirs", "theirs")]


def test_nor_are_its_notes_told_to_the_model(work: Path) -> None:
    (work / "AGENTS.md").write_text("ours")
    (work.parent / "outside" / "AGENTS.md").write_text("of others")
    roots = Roots([str(work)])
    assert NoteReader(roots, lambda path: False).of_workspace(above=True) == [
        ProjectNote(str(work / "AGENTS.md"), "ours")
    ]
    swap(work)
    assert NoteReader(roots, lambda path: False).of_workspace(above=True) == []


def test_nor_does_it_open_our_own_data(work: Path) -> None:
    """A working folder inside of it would: who works there means it."""
    home = str(work.parent / "outside")
    context: Any = SimpleNamespace(roots=Roots([str(work), str(work.parent)]), own_folders=(home,), private=())
    swap(work)
    assert is_ours(f"{home}/sessions", context)


def swap(work: Path) -> None:
    work.rename(work.parent / "away")
    work.symlink_to(work.parent / "outside")
