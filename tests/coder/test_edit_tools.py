"""`edit_file`, `apply_patch` and `read_file` in the whole agent: what is shown is written, all of it or nothing."""

import base64
import json
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.context import ContextToolResult
from dragoman.coder.models.contract import ModelRequest, Piece
from dragoman.errors import RequestFailed
from dragoman.vocabulary.content import BlobResource, Image, Resource
from dragoman.vocabulary.events import ToolCallUpdate
from dragoman.vocabulary.services import ReadTextFile, RequestPermission, ToolCallSubject, WriteTextFile
from dragoman.vocabulary.tools import Diff, FileChange
from tests.support.scripted_turns import RecordingModel, apart, call
from tests.support.whole_agent import User, events_of, whole

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40


class PatchingModel(RecordingModel):
    """A model with a name of OpenAI's, which keeps the names of the tools that it is offered."""

    def __init__(self, *steps: dict[str, Any]) -> None:
        super().__init__(apart(steps))
        self.name = "openai/gpt-5.5"
        self.offered: list[str] = []
        self.last: ContextToolResult | None = None

    async def respond(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        self.offered = [tool.name for tool in request.tools]
        results = [item for item in request.items if isinstance(item, ContextToolResult)]
        self.last = results[-1] if results else None
        async for piece in super().respond(request):
            yield piece


def changes_of(question: RequestPermission) -> list[FileChange]:
    subject = question.subject
    assert isinstance(subject, ToolCallSubject)
    assert isinstance(subject.tool_call.content, list)
    (diff,) = [item for item in subject.tool_call.content if isinstance(item, Diff)]
    return [change for change in diff.changes if isinstance(change, FileChange)]


def patch(*lines: str) -> dict[str, Any]:
    return call("apply_patch", patch="\n".join(["*** Begin Patch", *lines, "*** End Patch"]))


async def results_of(folder: Path, *steps: dict[str, Any], user: User | None = None, mode: str = "ask") -> list[str]:
    model = PatchingModel(*steps)
    async with whole(folder, model.make, user=user or User("allow_once"), mode=mode) as (_, session):
        await events_of(session)
    return model.results


FOUR = ("*** Update File: a.txt", "-one", "+1", "*** Add File: deep/new.txt", "+new", "*** Delete File: old.txt")


def with_files(folder: Path) -> None:
    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / "old.txt").write_text("old\n")
    (folder / "from.txt").write_text("x\ny\n")


# -- edit_file ---------------------------------------------------------------------------------------------------------


async def test_several_edits_are_one_question_and_one_diff(tmp_path: Path) -> None:
    with_files(tmp_path)
    user = User("allow_once")
    edits = [{"old_string": "one", "new_string": "1"}, {"old_string": "1\ntwo", "new_string": "1\n2"}]
    (result,) = await results_of(tmp_path, call("edit_file", path="a.txt", edits=edits), user=user)
    assert len(user.asked) == 1
    assert (tmp_path / "a.txt").read_text() == "1\n2\n"
    assert result == f"Replaced 2 times in {tmp_path / 'a.txt'}."


async def test_edits_that_come_as_a_text_of_json_are_read(tmp_path: Path) -> None:
    with_files(tmp_path)
    edits = json.dumps([{"old_string": "one", "new_string": "1"}])
    await results_of(tmp_path, call("edit_file", path="a.txt", edits=edits))
    assert (tmp_path / "a.txt").read_text() == "1\ntwo\n"


async def test_one_edit_without_a_place_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    with_files(tmp_path)
    edits = [{"old_string": "one", "new_string": "1"}, {"old_string": "three", "new_string": "3"}]
    user = User("allow_once")
    (result,) = await results_of(tmp_path, call("edit_file", path="a.txt", edits=edits), user=user)
    assert result.startswith(f"Edit 2 of 2: old_string is not in {tmp_path / 'a.txt'}")
    assert result.endswith("None of the edits was made.")
    assert (user.asked, (tmp_path / "a.txt").read_text()) == ([], "one\ntwo\n")


async def test_a_tolerant_edit_writes_what_its_question_showed(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("if x:\n    y = 1  \n    z = 2\n")
    user = User("allow_once")
    step = call("edit_file", path="a.py", old_string="y = 1\nz = 2", new_string="y = 1\nz = 3")
    model = PatchingModel(step)
    async with whole(tmp_path, model.make, user=user, protocol=1) as (_, session):
        await events_of(session)
    expected = "if x:\n    y = 1  \n    z = 3\n"
    assert [change.new_text for change in changes_of(user.asked[0])] == [expected]
    assert file.read_text() == expected
    assert "matched by: indentation" in model.results[0]


async def test_an_edit_of_nothing_makes_a_new_file_and_no_other(tmp_path: Path) -> None:
    with_files(tmp_path)
    new = call("edit_file", path="b.txt", old_string="", new_string="b\n")
    old = call("edit_file", path="a.txt", old_string="", new_string="b\n")
    results = await results_of(tmp_path, new, old)
    assert (tmp_path / "b.txt").read_text() == "b\n"
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"
    assert "is there and is not empty" in results[1]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "needs 'old_string' as text"),
        ({"edits": []}, "with at least one"),
        ({"edits": "no json"}, "as a list of objects"),
        ({"edits": [{"old_string": "a", "new_string": "a"}]}, "are the same"),
        ({"edits": [{"old_string": "a", "new_string": "b"}], "old_string": "x"}, "not both"),
        ({"edits": [{"old_string": "a", "new_string": "b", "line": 3}]}, "has no argument 'line'"),
        ({"edits": [{"old_string": "a", "new_string": "b"}] * 101}, "takes up to 100 edits"),
    ],
)
async def test_wrong_arguments_are_told(tmp_path: Path, given: dict[str, Any], why: str) -> None:
    with_files(tmp_path)
    (result,) = await results_of(tmp_path, call("edit_file", path="a.txt", **given))
    assert why in result


# -- apply_patch -------------------------------------------------------------------------------------------------------


async def test_only_models_of_openai_are_offered_patches(tmp_path: Path) -> None:
    model = PatchingModel({"say": "."})
    async with whole(tmp_path, model.make, mode="ask") as (_, session):
        await events_of(session)
        assert "apply_patch" in model.offered
        model.name = "anthropic/claude-opus-5"
        await events_of(session)
        assert "apply_patch" not in model.offered


async def test_all_files_of_a_patch_are_one_question_and_one_diff(tmp_path: Path) -> None:
    with_files(tmp_path)
    user = User("allow_once")
    moves = ("*** Update File: from.txt", "*** Move to: to.txt", " x", "-y", "+z")
    (result,) = await results_of(tmp_path, patch(*FOUR, *moves), user=user)
    assert len(user.asked) == 1
    shown = [(change.operation, os.path.relpath(change.path, tmp_path)) for change in changes_of(user.asked[0])]
    assert shown == [("modify", "a.txt"), ("add", "deep/new.txt"), ("delete", "old.txt"), ("move", "to.txt")]
    there = {str(file.relative_to(tmp_path)): file.read_text() for file in tmp_path.rglob("*.txt")}
    assert there == {"a.txt": "1\ntwo\n", "deep/new.txt": "new\n", "to.txt": "x\nz\n"}
    assert result.startswith("Done: changed ")


async def test_a_patch_is_undone_whole(tmp_path: Path) -> None:
    with_files(tmp_path)
    before = {file.name: file.read_text() for file in tmp_path.iterdir()}
    model = PatchingModel(patch(*FOUR, "*** Update File: from.txt", "*** Move to: to.txt"))
    async with whole(tmp_path, model.make, user=User("allow_once"), mode="full-access") as (_, session):
        await events_of(session)
        await events_of(session, "/undo")
    assert {file.name: file.read_text() for file in tmp_path.iterdir() if file.is_file()} == before


async def test_a_change_without_a_place_leaves_every_file_as_it_was(tmp_path: Path) -> None:
    with_files(tmp_path)
    user = User("allow_once")
    (result,) = await results_of(tmp_path, patch(*FOUR, "*** Update File: from.txt", "-w", "+v"), user=user)
    assert "from.txt: the change was not made" in result
    assert (user.asked, (tmp_path / "a.txt").read_text(), (tmp_path / "old.txt").exists()) == ([], "one\ntwo\n", True)


async def test_the_folder_of_a_new_file_is_there_when_the_editor_is_to_write_it(tmp_path: Path) -> None:
    async def write(request: WriteTextFile) -> None:
        Path(request.path).write_text(request.content)  # as many editors: no folder is made

    model = PatchingModel(call("write_file", path="new/deep/a.txt", content="x\n"))
    async with whole(tmp_path, model.make, mode="workspace-write", write_text_file=write, protocol=1) as (_, session):
        await events_of(session)
    assert (tmp_path / "new" / "deep" / "a.txt").read_text() == "x\n"


async def test_a_file_that_cannot_be_written_puts_the_others_back(tmp_path: Path) -> None:
    with_files(tmp_path)

    async def write(request: WriteTextFile) -> None:
        if request.path.endswith("last.txt"):
            raise RequestFailed(-32000, "the disk is full")
        Path(request.path).parent.mkdir(exist_ok=True)
        Path(request.path).write_text(request.content)

    async def read(request: ReadTextFile) -> str:
        return Path(request.path).read_text()

    model = PatchingModel(patch(*FOUR, "*** Add File: last.txt", "+x"))
    options: dict[str, Any] = {"read_text_file": read, "write_text_file": write, "protocol": 1}
    async with whole(tmp_path, model.make, mode="full-access", **options) as (_, session):
        await events_of(session)
    (result,) = model.results
    assert "the disk is full" in result
    assert result.endswith("Nothing of the patch was done.")
    assert not (tmp_path / "deep" / "new.txt").exists()
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"
    assert (tmp_path / "old.txt").read_text() == "old\n"


@pytest.mark.parametrize(
    "lines",
    [
        ("*** Add File: ../out.txt", "+x"),
        ("*** Delete File: /etc/passwd",),
        ("*** Update File: from.txt", "*** Move to: ../out.txt"),
        ("*** Update File: from.txt", "*** Move to: a.txt"),
        ("*** Add File: a.txt", "+x"),
        ("*** Delete File: none.txt",),
        ("*** Delete File: old.txt", "*** Delete File: ./old.txt"),
    ],
)
async def test_what_a_patch_must_not_do_is_refused_with_all_of_it(tmp_path: Path, lines: tuple[str, ...]) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with_files(work)
    before = {file.name: file.read_text() for file in work.iterdir()}
    step = patch("*** Add File: first.txt", "+x", *lines)
    await results_of(work, step, mode="full-access")
    assert {file.name: file.read_text() for file in work.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["work"]


@pytest.mark.parametrize("name", [".git/hooks/post-checkout", ".envrc"])
async def test_a_protected_file_of_a_patch_is_asked_about_in_a_mode_that_writes(tmp_path: Path, name: str) -> None:
    with_files(tmp_path)
    (tmp_path / ".git").mkdir()
    user = User("reject_once")
    await results_of(tmp_path, patch(*FOUR, f"*** Add File: {name}", "+x"), user=user, mode="workspace-write")
    assert len(user.asked) == 1
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"


async def test_a_file_that_changed_while_the_user_thought_is_shown_anew(tmp_path: Path) -> None:
    with_files(tmp_path)

    class Meddler(User):
        async def permission(self, request: RequestPermission) -> Any:
            if len(self.asked) == 0:
                (tmp_path / "a.txt").write_text("one\nmeanwhile\n")
            return await super().permission(request)

    user = Meddler("allow_once")
    await results_of(tmp_path, patch(*FOUR), user=user)
    assert len(user.asked) == 2
    assert (tmp_path / "a.txt").read_text() == "1\nmeanwhile\n"


# -- read_file ---------------------------------------------------------------------------------------------------------


async def test_a_long_file_says_how_to_read_on(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 5_001)))
    first, rest = await results_of(
        tmp_path, call("read_file", path="a.txt"), call("read_file", path="a.txt", start_line=4_990)
    )
    assert first.startswith("   1\tline 1\n")
    assert first.endswith("2000\tline 2000\n[lines 1-2000 of 5000; read on with start_line=2001]")
    assert rest.startswith("4990\tline 4990\n")
    assert rest.endswith("5000\tline 5000")


async def test_a_picture_is_shown_to_a_model_that_takes_images(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    model = PatchingModel(call("read_file", path="a.png"))
    async with whole(tmp_path, model.make, mode="ask") as (_, session):
        await events_of(session)
        assert model.last is not None
        assert model.last.content == [Image(base64.b64encode(PNG).decode(), "image/png")]
        model.sees = frozenset()
        model._turn, model._step = -1, 0
        await events_of(session)
        assert (model.last.failed, model.last.content) == (True, [])
        assert model.last.text == f"{tmp_path / 'a.png'} is not text: PNG image, 48 bytes."


async def test_a_document_is_shown_to_a_model_that_takes_it_and_to_no_other_as_text(tmp_path: Path) -> None:
    pdf = b"%PDF-1.7\nall of it is plain ASCII\n%%EOF\n"
    (tmp_path / "a.pdf").write_bytes(pdf)
    model = PatchingModel(call("read_file", path="a.pdf"))
    model.sees = frozenset({"image", "document"})
    async with whole(tmp_path, model.make, mode="ask") as (_, session):
        await events_of(session)
        assert model.last is not None
        encoded = base64.b64encode(pdf).decode()
        blob = BlobResource(encoded, f"file://{tmp_path}/a.pdf", mime_type="application/pdf")
        assert model.last.content == [Resource(blob)]
        model.sees = frozenset({"image"})
        model._turn, model._step = -1, 0
        await events_of(session)
        assert (model.last.failed, model.last.content) == (True, [])
        assert model.last.text.startswith(f"{tmp_path / 'a.pdf'} is a PDF document, which is not shown to you.")


async def test_a_notebook_is_shown_as_its_cells(tmp_path: Path) -> None:
    output = {"output_type": "execute_result", "data": {"text/plain": ["2"], "image/png": "aGk="}}
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "Words"]},
        {"cell_type": "code", "source": "1 + 1", "outputs": [output, {"text": "x" * 5_000}]},
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4}))
    (tmp_path / "b.ipynb").write_text("{}")
    shown, raw, damaged = await results_of(
        tmp_path,
        call("read_file", path="a.ipynb"),
        call("read_file", path="a.ipynb", start_line=1),
        call("read_file", path="b.ipynb"),
    )
    assert shown.startswith("[cell 1, markdown]\n# Title\nWords\n\n[cell 2, code]\n1 + 1\n[output]\n2\n")
    assert "[image/png]" in shown
    assert "[… 3000 characters cut …]" in shown
    assert raw.startswith('1\t{"cells"')
    assert damaged == "1\t{}"


async def test_an_empty_file_is_told_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("")
    assert await results_of(tmp_path, call("read_file", path="a.txt")) == ["[the file is empty]"]


async def test_a_call_that_fails_shows_the_nearest_place_to_the_user_too(tmp_path: Path) -> None:
    with_files(tmp_path)
    model = PatchingModel(call("edit_file", path="a.txt", old_string="one\nthree", new_string="x"))
    async with whole(tmp_path, model.make, mode="full-access") as (_, session):
        events = await events_of(session)
    assert "nearest place" in repr([event.content for event in events if isinstance(event, ToolCallUpdate)])
