"""`read_file` and `write_file`: through the editor where it lends its files, else from the disk, inside the roots."""

import asyncio
import hashlib
from typing import Final

from msgspec import UNSET

from dragoman.agent.tool import ToolCall
from dragoman.coder.permissions import Act, ActKind, Approved, Call
from dragoman.coder.tools.contract import (
    BadInput,
    Desk,
    Outcome,
    Preview,
    count_input,
    cut,
    only_known,
    schema,
    text_input,
)
from dragoman.errors import RequestFailed
from dragoman.host.paths import PathRefused, Place, read_bytes, write_bytes
from dragoman.vocabulary.tools import Diff, Location

# A file of more is not for a model to read at once.
READ_BYTES: Final = 4 * 1024 * 1024


class ReadFile:
    """`read_file(path, start_line?, end_line?)`."""

    name = "read_file"
    kind = "read"
    does: ActKind = "read"
    description = "Read a text file of the workspace, whole or from one line to another (1-based, both included)."
    schema = schema(
        ["path"],
        path={"type": "string", "description": "absolute, or relative to the working folder"},
        start_line={"type": "integer", "minimum": 1},
        end_line={"type": "integer", "minimum": 1},
    )

    def check(self, call: Call) -> None:
        only_known(call, "path", "start_line", "end_line")
        text_input(call, "path")
        start, end = count_input(call, "start_line", 1), count_input(call, "end_line", 1)
        if start is not None and end is not None and end < start:
            raise BadInput("end_line must not be before start_line.")

    async def preview(self, call: Call, desk: Desk) -> Preview:
        place = placed(call, desk)
        start = count_input(call, "start_line", 1)
        where = Location(place.path, UNSET if start is None else start)
        return Preview(f"Read {call.input['path']}", [Act("read", place.path)], locations=[where])

    async def run(self, approved: Approved, shown: ToolCall, desk: Desk) -> Outcome:
        call = approved.call
        start, end = count_input(call, "start_line", 1) or 1, count_input(call, "end_line", 1)
        try:
            place = desk.roots.place(text_input(call, "path"))
            text = await _read(place, desk)
        except (PathRefused, RequestFailed) as error:
            return Outcome(str(error), failed=True)
        lines = text.splitlines(keepends=True)[start - 1 : end]
        return Outcome(cut("".join(lines)), raw={"lines": len(lines)})


class WriteFile:
    """`write_file(path, content)`."""

    name = "write_file"
    kind = "edit"
    does: ActKind = "write"
    description = "Write a file of the workspace: a new one, or the whole of an old one anew."
    schema = schema(
        ["path", "content"],
        path={"type": "string", "description": "absolute, or relative to the working folder"},
        content={"type": "string", "description": "the whole file"},
    )

    def check(self, call: Call) -> None:
        only_known(call, "path", "content")
        text_input(call, "path")
        text_input(call, "content")

    async def preview(self, call: Call, desk: Desk) -> Preview:
        place = placed(call, desk)
        before = await _before(place, desk)
        return Preview(
            f"Write {call.input['path']}",
            [Act("write", place.path)],
            content=[Diff.of(place.path, before, text_input(call, "content"))],
            locations=[Location(place.path)],
            stamp=stamp(before),
        )

    async def run(self, approved: Approved, shown: ToolCall, desk: Desk) -> Outcome:
        call = approved.call
        content = text_input(call, "content")
        try:
            place = desk.roots.place(text_input(call, "path"))
            before = await _before(place, desk)
            if desk.session.client.write_text_file:
                await desk.session.write_text_file(place.path, content)
            else:
                await asyncio.to_thread(write_bytes, place, content.encode())
        except (PathRefused, RequestFailed) as error:
            return Outcome(str(error), failed=True)
        await shown.update(content=[Diff.of(place.path, before, content)], locations=[Location(place.path)])
        size = len(content.encode())
        return Outcome(f"Wrote {size} bytes to {place.path}.", raw={"bytes": size})


def placed(call: Call, desk: Desk, name: str = "path") -> Place:
    """Where a path argument leads; outside of the roots is a mistake the model is told of."""
    try:
        return desk.roots.place(text_input(call, name))
    except PathRefused as error:
        raise BadInput(str(error)) from None


def stamp(text: str | None) -> str:
    """What a file looks like, in short."""
    return "" if text is None else hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


async def _read(place: Place, desk: Desk) -> str:
    if desk.session.client.read_text_file:
        return await desk.session.read_text_file(place.path)
    data, more = await asyncio.to_thread(read_bytes, place, READ_BYTES)
    text = data.decode("utf-8", "replace")
    return f"{text}\n[the file is longer than {READ_BYTES} bytes; the rest was not read]" if more else text


async def _before(place: Place, desk: Desk) -> str | None:
    """The file as it was, for the diff; None: there was none that can be shown."""
    try:
        return await _read(place, desk)
    except (PathRefused, RequestFailed):
        return None
