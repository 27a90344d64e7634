"""A write that the user has just said yes to is not asked about again; anything else is."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.client.permission_handler import PermissionHandler
from dragoman.client.permission_policy import PermissionPolicy
from dragoman.client.workspace import Workspace
from dragoman.errors import RequestFailed
from dragoman.permissions.rule import PermissionRule
from dragoman.vocabulary.events import ToolCallUpdate
from dragoman.vocabulary.services import PermissionOption, RequestPermission, ToolCallSubject, WriteTextFile
from dragoman.vocabulary.tools import Diff, FileChange

pytestmark = pytest.mark.anyio

OPTIONS = [PermissionOption("yes", "Yes", "allow_once"), PermissionOption("no", "No", "reject_once")]


class Desk:
    """A user who answers, a folder with a file, and an agent's two ways to write it."""

    def __init__(self, folder: Path, *rules: PermissionRule) -> None:
        self.file = folder / "a.txt"
        self.file.write_text("one\ntwo\n")
        self.answer = "yes"
        self.titles: list[str] = []
        self.permissions = PermissionHandler(PermissionPolicy(rules=rules), [folder], self._ask)
        self.workspace = Workspace([folder], environment={}, permissions=self.permissions)

    async def _ask(self, request: RequestPermission) -> PermissionOption | None:
        self.titles.append(request.title)
        allows = self.answer == "yes"
        return next((option for option in request.options if option.kind.startswith("allow") == allows), None)

    async def asks(self, *items: Any, session: str = "s") -> Any:
        """The agent asks for an edit; the answer."""
        call = ToolCallUpdate("c", kind="edit", content=list(items))
        return await self.permissions(RequestPermission(session, "Edit", OPTIONS, subject=ToolCallSubject(call)))

    async def writes(self, content: str, *, session: str = "s", path: Path | None = None) -> bool:
        """The agent has us write the file; whether that was done."""
        try:
            await self.workspace.write_text_file(WriteTextFile(session, str(path or self.file), content))
        except RequestFailed:
            return False
        return True

    def whole(self, new: str, old: str | None = "one\ntwo\n") -> Diff:
        return Diff.of(str(self.file), old, new)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_the_write_that_was_allowed_is_made_without_a_second_question(desk: Desk) -> None:
    await desk.asks(desk.whole("one\nTWO\n"))
    desk.file.write_text("one\nTWO\n")  # the agent has written it itself
    desk.answer = "no"
    assert await desk.writes("one\nTWO\n")
    assert desk.titles == ["Edit"]


async def test_a_new_file_likewise(desk: Desk, tmp_path: Path) -> None:
    new = tmp_path / "new.txt"
    for before in (None, ""):
        await desk.asks(Diff.of(str(new), before, "x"))
        assert await desk.writes("x", path=new)
        new.unlink()
    assert desk.titles == ["Edit", "Edit"]


async def test_it_counts_once(desk: Desk) -> None:
    await desk.asks(desk.whole("x"))
    assert await desk.writes("x")
    desk.answer = "no"
    assert not await desk.writes("x")
    assert len(desk.titles) == 2


async def test_anything_else_is_asked(desk: Desk, tmp_path: Path) -> None:
    await desk.asks(desk.whole("x"))
    desk.answer = "no"
    assert not await desk.writes("y")
    assert not await desk.writes("x", session="other")
    assert not await desk.writes("x", path=tmp_path / "b.txt")
    assert len(desk.titles) == 4
    assert await desk.writes("x")


async def test_a_file_that_was_changed_after_the_yes_is_asked_about(desk: Desk, tmp_path: Path) -> None:
    await desk.asks(desk.whole("x"))
    await desk.asks(Diff.of(str(tmp_path / "new.txt"), None, "x"))
    desk.file.write_text("saved by the user meanwhile")
    (tmp_path / "new.txt").write_text("made by the user meanwhile")
    desk.answer = "no"
    assert not await desk.writes("x")
    assert not await desk.writes("x", path=tmp_path / "new.txt")
    assert desk.file.read_text() == "saved by the user meanwhile"
    assert len(desk.titles) == 4


async def test_a_no_grants_nothing(desk: Desk) -> None:
    desk.answer = "no"
    await desk.asks(desk.whole("x"))
    assert not await desk.writes("x")
    assert desk.file.read_text() == "one\ntwo\n"


@pytest.mark.parametrize("end", ["new_turn", "dismiss"])
async def test_it_ends_with_the_turn(end: str, desk: Desk) -> None:
    await desk.asks(desk.whole("x"))
    getattr(desk.permissions, end)()
    desk.permissions.new_turn()
    desk.answer = "no"
    assert not await desk.writes("x")


async def test_a_question_that_showed_a_part_of_the_file_grants_no_write_of_the_whole(desk: Desk) -> None:
    await desk.asks(Diff.of(str(desk.file), "two\n", "TWO\n"))
    desk.answer = "no"
    assert not await desk.writes("TWO\n")
    assert desk.file.read_text() == "one\ntwo\n"


async def test_a_link_is_the_file_it_leads_to(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("a.txt")
    await desk.asks(Diff.of(str(tmp_path / "link"), "one\ntwo\n", "x"))
    desk.answer = "no"
    assert await desk.writes("x")
    assert desk.titles == ["Edit"]


async def test_other_changes_grant_nothing(desk: Desk, tmp_path: Path) -> None:
    moved = FileChange("move", str(tmp_path / "b.txt"), old_path=str(desk.file), old_text=None, new_text="x")
    await desk.asks(Diff([moved]))
    desk.answer = "no"
    assert not await desk.writes("x", path=tmp_path / "b.txt")


async def test_a_rule_against_it_holds(tmp_path: Path) -> None:
    desk = Desk(tmp_path, PermissionRule("reject", path="a.txt"))
    await desk.asks(desk.whole("x"))
    assert not await desk.writes("x")
    assert desk.titles == []
