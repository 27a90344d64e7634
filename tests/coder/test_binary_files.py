"""What is not text does not flood the model: one sentence with the kind and the size, whatever way it came."""

import zlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from dragoman.coder.context import ContextToolResult, ContextUserMessage
from dragoman.coder.models.contract import Model, ModelRequest, Piece, TextDelta, ToolCallRequested
from dragoman.vocabulary.content import Content, Resource, ResourceLink, Text, TextResource, text_of
from dragoman.vocabulary.services import ReadTextFile
from tests.support.conversation import briefing, conversation
from tests.support.whole_agent import User, events_of, whole

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + zlib.compress(bytes(range(256)) * 400, 0)
# Compressed: no NUL, and no text. Deterministic, and the same on every machine.
GARBLED = bytes(byte or 1 for byte in zlib.compress("".join(str(n * n) for n in range(90_000)).encode()))


class Calling:
    """A model that makes one call, and remembers all that it was given."""

    name = "calling"
    window: int | None = None
    sees: frozenset[str] = frozenset()

    def __init__(self, tool: str = "", **given: object) -> None:
        self.inquiries: list[ModelRequest] = []
        self.told: list[dict[str, str]] = []
        self._call = ToolCallRequested(tool, given) if tool else None

    def make(self, name: str) -> Model:
        return self

    def begin_turn(self) -> None:
        """Nothing to remember."""

    def assistant(self, name: str) -> Model:
        return self

    def retry_seconds(self, attempt: int) -> float:
        return 0.01

    async def respond(self, inquiry: ModelRequest) -> AsyncGenerator[Piece, None]:
        self.told.append(briefing(inquiry.items))
        self.inquiries.append(inquiry._replace(items=conversation(inquiry.items)))
        if self._call is not None and not isinstance(inquiry.items[-1], ContextToolResult):
            yield self._call
        else:
            yield TextDelta("done")

    @property
    def result(self) -> ContextToolResult:
        last = self.inquiries[-1].items[-1]
        assert isinstance(last, ContextToolResult)
        return last

    @property
    def prompt(self) -> str:
        (first,) = [item for item in self.inquiries[0].items if isinstance(item, ContextUserMessage)]
        return text_of(first.content)


async def result_of(
    folder: Path, tool: str, client: dict[str, Any] | None = None, **given: object
) -> ContextToolResult:
    """What the model was given for one call, in a mode without questions."""
    model = Calling(tool, **given)
    options: dict[str, Any] = client or {}
    async with whole(folder, model.make, mode="full-access", user=User("allow_once"), **options) as (_, session):
        await events_of(session)
    return model.result


@pytest.mark.parametrize(
    ("name", "data", "what"),
    [
        ("logo.png", PNG, f"PNG image, {len(PNG):,} bytes"),
        ("packed", GARBLED, f"binary data, {len(GARBLED):,} bytes"),
        ("late.txt", b"text\n" * 5_000 + b"\0", "binary data, 25,001 bytes"),
        ("half.txt", b"\xff\xfea\0b", "binary data, 5 bytes"),
    ],
    ids=["image", "packed", "late NUL", "half of UTF-16"],
)
@pytest.mark.requirement("CA5")
async def test_reading_a_binary_file_fails_with_its_kind_and_size(
    tmp_path: Path, name: str, data: bytes, what: str
) -> None:
    (tmp_path / name).write_bytes(data)
    result = await result_of(tmp_path, "read_file", path=name)
    assert (result.text, result.failed) == (f"{tmp_path / name} is not text: {what}.", True)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
async def test_text_with_a_byte_order_mark_is_read(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes("größer\nzwei\n".encode(encoding))
    result = await result_of(tmp_path, "read_file", path="a.txt", end_line=1)
    assert result.text == f"1\tgrößer\n[it is {encoding.upper()} and not UTF-8]"
    edited = await result_of(tmp_path, "edit_file", path="a.txt", old_string="zwei", new_string="2")
    assert edited.text == f"{tmp_path / 'a.txt'} cannot be edited: it is {encoding.upper()} and not UTF-8."


async def test_a_binary_file_is_not_edited_and_not_searched(tmp_path: Path) -> None:
    (tmp_path / "logo.png").write_bytes(PNG)
    edited = await result_of(tmp_path, "edit_file", path="logo.png", old_string="IHDR", new_string="x")
    searched = await result_of(tmp_path, "grep", pattern="IHDR", path="logo.png")
    what = f"not text: PNG image, {len(PNG):,} bytes."
    assert (edited.text, edited.failed) == (f"{tmp_path / 'logo.png'} cannot be edited: it is {what}", True)
    assert (searched.text, searched.failed) == (f"{tmp_path / 'logo.png'} is {what}", True)
    assert (tmp_path / "logo.png").read_bytes() == PNG


async def test_a_search_of_a_folder_shows_no_lines_of_binary_files(tmp_path: Path) -> None:
    (tmp_path / "packed").write_bytes(b"needle\n" + GARBLED)
    (tmp_path / "a.txt").write_text("needle\n")
    result = await result_of(tmp_path, "grep", pattern="needle")
    assert result.text == "a.txt:1:needle"


async def test_a_binary_file_that_is_written_anew_is_shown_by_its_kind(tmp_path: Path) -> None:
    (tmp_path / "logo.png").write_bytes(PNG)
    user, model = User("allow_once"), Calling("write_file", path="logo.png", content="text\n")
    async with whole(tmp_path, model.make, user=user) as (_, session):
        await events_of(session)
    assert f"-[PNG image, {len(PNG):,} bytes]" in str(user.asked[0].subject)
    assert (tmp_path / "logo.png").read_text() == "text\n"


async def test_binary_output_of_a_command_is_a_sentence_between_its_lines(tmp_path: Path) -> None:
    (tmp_path / "packed").write_bytes(GARBLED)
    result = await result_of(tmp_path, "bash", command="echo before; cat packed; echo; echo after; exit 3")
    begin, middle, end = result.text.partition(" characters of binary data]\n")
    assert (begin.startswith("before\n["), len(begin) < 40, middle != "") == (True, True, True)
    assert (end, result.failed) == ("after\n\n[exit code 3]", True)


async def test_output_that_is_divided_by_nul_is_shown(tmp_path: Path) -> None:
    result = await result_of(tmp_path, "bash", command=r"printf 'first name\0second name\0'")
    assert result.text == "first name\0second name\0"


@pytest.mark.parametrize("data", [PNG, GARBLED], ids=["NUL", "flood"])
async def test_a_binary_file_read_by_the_editor_is_one_sentence(tmp_path: Path, data: bytes) -> None:
    text = data.decode("utf-8", "replace")

    async def read(request: ReadTextFile) -> str:
        return text

    (tmp_path / "logo.png").write_bytes(b"whatever")
    result = await result_of(tmp_path, "read_file", {"protocol": 1, "read_text_file": read}, path="logo.png")
    what = f"binary data, {len(text):,} characters in the editor"
    assert (result.text, result.failed) == (f"{tmp_path / 'logo.png'} is not text: {what}.", True)


async def prompted(folder: Path, *blocks: Content) -> str:
    """What the model was given of a prompt."""
    model = Calling()
    async with whole(folder, model.make) as (_, session):
        await session.prompt(list(blocks)).read()
    return model.prompt


async def test_a_link_to_a_binary_file_is_named_with_its_kind(tmp_path: Path) -> None:
    (tmp_path / "logo.png").write_bytes(PNG)
    (tmp_path / "wide.txt").write_bytes("größer".encode("utf-16"))
    links = [ResourceLink(name, (tmp_path / name).as_uri()) for name in ("logo.png", "wide.txt")]
    seen = await prompted(tmp_path, Text("look: "), *links)
    assert f"[logo.png]({links[0].uri}) (not text: PNG image, {len(PNG):,} bytes)" in seen
    assert ("größer" in seen, "\ufffd" in seen) == (True, False)


async def test_an_embedded_resource_that_is_no_text_is_named_only(tmp_path: Path) -> None:
    text = GARBLED.decode("utf-8", "replace")
    seen = await prompted(tmp_path, Text("look: "), Resource(TextResource(text, "file:///x/packed")))
    assert seen == f"look: [resource: file:///x/packed, not text, {len(text):,} characters]"


async def test_a_huge_embedded_resource_is_cut_and_the_cut_is_stated(tmp_path: Path) -> None:
    seen = await prompted(tmp_path, Text("look: "), Resource(TextResource("x" * 3_000_000, "file:///x/long")))
    assert (len(seen) < 2_100_000, "characters cut" in seen) == (True, True)


async def test_notes_of_a_project_that_are_no_text_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_bytes(PNG)
    model = Calling()
    async with whole(tmp_path, model.make) as (_, session):
        await events_of(session)
    assert model.told[0].keys() == {"environment", "mode"}
