"""`read_file(path, start_line?, end_line?)`: text with line numbers, pictures, documents and notebooks."""

import asyncio
from base64 import b64encode
from typing import Final

from msgspec import UNSET

from dragoman.agent.tool import ToolCall
from dragoman.coder.edits.lines import split_lines
from dragoman.coder.kept_results import RESULT_CHARACTERS
from dragoman.coder.permissions import Approved, JudgedCall
from dragoman.coder.tools.arguments import count_input, only_known, schema, text_input
from dragoman.coder.tools.contract import BadInput, Preview, ToolContext, ToolOutcome
from dragoman.coder.tools.files import check_not_ours, check_unmoved, load, named_for_reading, reading, resolve_path
from dragoman.coder.tools.notebook import render_notebook
from dragoman.coder.tools.result_text import cut, title_text
from dragoman.host.decoding import describe_binary
from dragoman.host.media import MEDIA_BYTES, PDF_BEGINS, PDF_TYPE, MediaRefused, check_picture, picture_type
from dragoman.host.paths import PathRefused, Place, read_bytes
from dragoman.permissions.facts import ActionKind
from dragoman.vocabulary.content import BlobResource, Content, Image, Resource
from dragoman.vocabulary.tools import Location

# Of one result, beside its characters: more is rarely read for one question, and can be asked for.
RESULT_LINES: Final = 2_000
# A sentence at the end has to fit behind the lines.
_PAGE_CHARACTERS: Final = RESULT_CHARACTERS - 500
# Of one line: data on one line, such as minified code, is not worth a result.
LINE_CHARACTERS: Final = 20_000
# Enough of a file to tell a picture or a document by.
_HEAD_BYTES: Final = 16
_NOTEBOOK: Final = ".ipynb"


class ReadFile:
    """`read_file(path, start_line?, end_line?)`."""

    name = "read_file"
    kind = "read"
    does: ActionKind = "read"
    description = (
        "Read a file of the workspace. Text comes with the number of each line and a tab before it; neither is part of "
        f"the file. Up to {RESULT_LINES:,} lines are shown at once, and the result says where to read on; start_line "
        "and end_line (counted from 1, both included) choose a part. Read a file before you edit it; read several "
        "files in one response when you need them. PNG, JPEG, GIF and WebP pictures are shown to you if you take "
        "images, and PDF files if you take documents. A notebook (.ipynb) is shown as its cells with their outputs; "
        "with start_line it is shown as the JSON that edit_file works on. Other binary files are named and not shown. "
        'Example: {"path": "src/app.py", "start_line": 40, "end_line": 80}'
    )
    schema = schema(
        ["path"],
        path={"type": "string", "description": "absolute, or relative to the working folder"},
        start_line={"type": "integer", "minimum": 1, "description": "first line to show"},
        end_line={"type": "integer", "minimum": 1, "description": "last line to show"},
    )

    def check(self, call: JudgedCall) -> None:
        only_known(call, "path", "start_line", "end_line")
        text_input(call, "path")
        start, end = count_input(call, "start_line", 1), count_input(call, "end_line", 1)
        if start is not None and end is not None and end < start:
            raise BadInput("end_line must not be before start_line.")

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        place = resolve_path(call, context)
        check_not_ours(place.path, context)
        start = count_input(call, "start_line", 1)
        where = Location(place.path, UNSET if start is None else start)
        act = reading(place.path, context)
        return Preview(title_text(f"Read {call.input['path']}{named_for_reading(act)}"), [act], locations=[where])

    async def run(self, approved: Approved, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        call = approved.call
        start, end = count_input(call, "start_line", 1), count_input(call, "end_line", 1)
        place = resolve_path(call, context)
        check_unmoved(approved, place)
        check_not_ours(place.path, context)
        media = await asyncio.to_thread(_media, place, context.sees)
        if media is not None:
            return media
        file = await load(place, context)
        if file.text is None:
            raise BadInput(f"{place.path}: no such file or directory.")
        if file.binary:
            raise BadInput(f"{place.path} is not text: {file.binary}.")
        lacks = f"\n[{file.lacks}]" if file.lacks else ""
        if place.path.endswith(_NOTEBOOK) and start is None and end is None:
            cells = await asyncio.to_thread(render_notebook, file.text)
            if cells is not None:
                return ToolOutcome(cut(cells, _PAGE_CHARACTERS) + lacks, raw={"cells": cells.count("\n[cell ") + 1})
        lines = split_lines(file.text).bodies
        if start is not None and start > len(lines) > 0:
            raise BadInput(f"{place.path} has {len(lines)} lines.")
        return ToolOutcome(_numbered(lines, start or 1, end) + lacks, raw={"lines": len(lines)})


def _numbered(lines: list[str], start: int, end: int | None) -> str:
    """Return lines with their numbers, as many as fit into a result, and how to read on."""
    if not lines:
        return "[the file is empty]"
    last = min(len(lines), end or len(lines))
    width = len(str(min(last, start + RESULT_LINES - 1)))
    shown: list[str] = []
    size = 0
    for number in range(start, last + 1):
        body = lines[number - 1]
        if len(body) > LINE_CHARACTERS:
            body = cut(body, LINE_CHARACTERS).replace("\n", " ")
        size += width + len(body) + 2
        if shown and (len(shown) == RESULT_LINES or size > _PAGE_CHARACTERS):
            reached = f"[lines {start}-{number - 1} of {len(lines)}; read on with start_line={number}]"
            return "\n".join([*shown, reached])
        shown.append(f"{number:>{width}}\t{body}")
    return "\n".join(shown)


def _media(place: Place, sees: frozenset[str]) -> ToolOutcome | None:
    """Return a picture or a document for a model that takes it; None: the file is to be read as text. Blocks.

    Raises `BadInput` for a picture that no provider would take, and a document that the model does not take. An editor
    lends texts, so media come from the disk.
    """
    try:
        head, _ = read_bytes(place, _HEAD_BYTES)
        kind = picture_type(head)
        is_document = head.startswith(PDF_BEGINS) and "document" in sees
        if head.startswith(PDF_BEGINS) and not is_document:
            raise BadInput(
                f"{place.path} is a PDF document, which is not shown to you. `pdftotext` may make text of it."
            )
        if not is_document and not (kind and "image" in sees):
            return None
        data, is_longer = read_bytes(place, MEDIA_BYTES)
    except PathRefused:
        return None  # `load` says why
    what = f"{place.path}: {describe_binary(data, len(data))}"
    if is_longer:
        raise BadInput(f"{place.path} is not shown: it has more than {MEDIA_BYTES:,} bytes.")
    encoded = b64encode(data).decode("ascii")
    block: Content
    if is_document:
        block = Resource(BlobResource(encoded, f"file://{place.path}", mime_type=PDF_TYPE))
    else:
        assert kind is not None
        try:
            check_picture(data, kind)
        except MediaRefused as refusal:
            raise BadInput(f"{place.path} {refusal}.") from None
        block = Image(encoded, kind)
    return ToolOutcome(f"{what}.", raw={"bytes": len(data)}, content=[block])
