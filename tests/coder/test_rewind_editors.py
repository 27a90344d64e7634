"""Rewinding files that are open in an editor, which may show another text than the disk has."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import RequestFailed
from dragoman.vocabulary.services import ReadTextFile, WriteTextFile
from tests.support.git_repository import repository
from tests.support.rewind_desk import desk, tree
from tests.support.scripted_turns import bash, call

pytestmark = pytest.mark.anyio


class Buffers:
    """An editor that shows files: what was typed and not saved stands in `typed`. What the agent writes is saved."""

    def __init__(self, typed_after_a_write: str = "") -> None:
        self.typed: dict[str, str] = {}
        self._typed_after_a_write = typed_after_a_write

    async def read(self, request: ReadTextFile) -> str:
        try:
            return self.typed.get(request.path) or Path(request.path).read_text("utf-8-sig")
        except OSError as error:
            raise RequestFailed(-32002, "no such file") from error

    async def write(self, request: WriteTextFile) -> None:
        self.typed.pop(request.path, None)
        Path(request.path).write_text(request.content)
        if self._typed_after_a_write:
            self.typed[request.path] = self._typed_after_a_write

    def options(self) -> dict[str, Any]:
        return {"protocol": 1, "read_text_file": self.read, "write_text_file": self.write}


WRITE = [call("read_file", path="file"), {"say": "."}, call("write_file", path="file", content="agent\n")]


@pytest.mark.requirement("RW14")
async def test_what_the_agent_wrote_through_the_editor_comes_back(tmp_path: Path) -> None:
    steps = [*WRITE, {"say": "."}, call("write_file", path="new/deep", content="x\n"), {"say": "done"}]
    async with desk(tmp_path, steps, **Buffers().options()) as it:
        await it.say("write")
        assert tree(it.folder) == {"file": "- agent\n", "new/deep": "- x\n"}, it.model.results
        await it.rewind(scope="files")
        assert tree(it.folder) == {"file": "- one\n"}


@pytest.mark.requirement("RW14")
async def test_a_file_that_is_unsaved_in_the_editor_is_left_alone_until_it_is_saved(tmp_path: Path) -> None:
    buffers = Buffers()
    async with desk(
        tmp_path, [*WRITE, {"say": "."}, bash("echo x > other"), {"say": "done"}], **buffers.options()
    ) as it:
        await it.say("write")
        buffers.typed[str(it.folder / "file")] = "agent\nand the user\n"
        done = await it.rewind(scope="files")
        assert it.names(done) == {("file", "change", "unsaved in the editor"), ("other", "delete", "")}
        assert tree(it.folder) == {"file": "- agent\n"}
        buffers.typed.clear()
        await it.rewind(scope="files")
        assert tree(it.folder) == {"file": "- one\n"}


@pytest.mark.requirement("RW14")
@pytest.mark.parametrize("is_repository", [True, False])
async def test_what_was_unsaved_before_the_turn_comes_back_with_the_file(tmp_path: Path, is_repository: bool) -> None:
    folder = tmp_path / "project"
    repository(folder) if is_repository else folder.mkdir()
    (folder / "file").write_text("one\n")
    buffers = Buffers()
    async with desk(tmp_path, [*WRITE, {"say": "done"}], folder=folder, **buffers.options()) as it:
        buffers.typed[str(folder / "file")] = "one\nand what the user typed\n"
        await it.say("write")
        assert tree(folder) == {"file": "- agent\n"}
        await it.rewind(scope="files")
        assert tree(folder) == {"file": "- one\nand what the user typed\n"}
        await it.rewind(scope="files", undo=True)
        assert tree(folder) == {"file": "- agent\n"}


@pytest.mark.requirement("RW14")
async def test_what_is_typed_while_the_turn_runs_counts_as_its_work(tmp_path: Path) -> None:
    again = [{"say": "."}, call("read_file", path="file"), {"say": "."}]
    steps = [*WRITE, *again, call("write_file", path="file", content="agent again\n"), {"say": "done"}]
    buffers = Buffers("typed meanwhile\n")
    async with desk(tmp_path, steps, **buffers.options()) as it:
        await it.say("write")
        assert tree(it.folder) == {"file": "- agent again\n"}, it.model.results
        buffers.typed.clear()
        await it.rewind(scope="files")
        assert tree(it.folder) == {"file": "- one\n"}


@pytest.mark.requirement("RW14")
@pytest.mark.parametrize("before", [b"one\r\ntwo\r\n", b"\xef\xbb\xbfone\n", b"one\r\ntwo\n", b"", b"\xff\xfe latin\n"])
async def test_how_an_editor_shows_a_file_makes_it_no_unsaved_one(tmp_path: Path, before: bytes) -> None:
    folder = repository(tmp_path / "project")
    (folder / "file").write_bytes(before)

    async def read(request: ReadTextFile) -> str:
        data = Path(request.path).read_bytes().decode("utf-8-sig", "replace")
        return data.replace("\r\n", "\n")

    async with desk(
        tmp_path, [bash("printf 'x\\r\\n' > file"), {"say": "."}], folder=folder, protocol=1, read_text_file=read
    ) as it:
        await it.say("write")
        done = await it.rewind(scope="files")
        assert it.names(done) == {("file", "change", "")}
        assert (folder / "file").read_bytes() == before


@pytest.mark.requirement("RW14")
@pytest.mark.parametrize("after", ["", "x\n" * 300_000])
async def test_an_unsaved_file_is_left_alone_however_large_it_is(tmp_path: Path, after: str) -> None:
    buffers = Buffers()
    write = bash(f'python3 -c \'print({len(after)} // 2 * "x\\n", end="")\' > file')
    async with desk(tmp_path, [write, {"say": "."}], **buffers.options()) as it:
        await it.say("write")
        assert (it.folder / "file").read_text() == after, it.model.results
        buffers.typed[str(it.folder / "file")] = "typed\n"
        assert it.names(await it.rewind(scope="files")) == {("file", "change", "unsaved in the editor")}
        assert (it.folder / "file").read_text() == after


@pytest.mark.requirement("RW14")
@pytest.mark.parametrize("before", [b"one\r\ntwo\r\n", b"\xef\xbb\xbfone\n", b"one\r\ntwo\n"])
async def test_a_saved_file_that_the_agent_writes_comes_back_byte_by_byte(tmp_path: Path, before: bytes) -> None:
    folder = repository(tmp_path / "project")
    (folder / "file").write_bytes(before)
    async with desk(tmp_path, [*WRITE, {"say": "done"}], folder=folder, **Buffers().options()) as it:
        await it.say("write")
        assert (folder / "file").read_bytes() == b"agent\n", it.model.results
        await it.rewind(scope="files")
        assert (folder / "file").read_bytes() == before


@pytest.mark.requirement("RW14")
async def test_undo_leaves_a_file_alone_that_is_unsaved_in_the_editor_until_it_is_saved(tmp_path: Path) -> None:
    buffers = Buffers()
    async with desk(tmp_path, [*WRITE, {"say": "done"}], **buffers.options()) as it:
        await it.say("write")
        buffers.typed[str(it.folder / "file")] = "agent\nand the user\n"
        await it.say("/undo")
        assert tree(it.folder) == {"file": "- agent\n"}
        assert (await it.shown())[-1] == f"- left alone {it.folder / 'file'}: it is unsaved in the editor"
        buffers.typed.clear()
        await it.say("/undo")
        assert tree(it.folder) == {"file": "- one\n"}
