"""`read_file` and `write_file`: through the editor where it lends its files, else from the disk, inside the roots."""

import asyncio
from typing import Final

from dragoman.agent.tool import ToolCall
from dragoman.coder.permissions import Approved, Call
from dragoman.coder.tools.contract import BadInput, Desk, Outcome, count_input, cut, only_known, text_input
from dragoman.errors import RequestFailed
from dragoman.host.paths import PathRefused, Place, read_bytes, write_bytes
from dragoman.vocabulary.tools import Diff, Location

# A file of more is not for a model to read at once.
READ_BYTES: Final = 4 * 1024 * 1024


class ReadFile:
    """`read_file(path, start_line?, end_line?)`."""

    name = "read_file"
    kind = "read"

    def check(self, call: Call) -> None:
        only_known(call, "path", "start_line", "end_line")
        text_input(call, "path")
        start, end = count_input(call, "start_line", 1), count_input(call, "end_line", 1)
        if start is not None and end is not None and end < start:
            raise BadInput("end_line must not be before start_line.")

    def title(self, call: Call) -> str:
        return f"Read {call.input['path']}"

    def paths(self, call: Call) -> list[str]:
        return [text_input(call, "path")]

    async def run(self, approved: Approved, shown: ToolCall, desk: Desk) -> Outcome:
        call = approved.call
        start, end = count_input(call, "start_line", 1) or 1, count_input(call, "end_line", 1)
        try:
            place = desk.roots.place(text_input(call, "path"))
            text = await _read(place, desk)
        except (PathRefused, RequestFailed) as error:
            return Outcome(str(error), failed=True)
        lines = text.splitlines(keepends=True)[start - 1 : end]
        return Outcome(cut("".join(lines)))


class WriteFile:
    """`write_file(path, content)`."""

    name = "write_file"
    kind = "edit"

    def check(self, call: Call) -> None:
        only_known(call, "path", "content")
        text_input(call, "path")
        text_input(call, "content")

    def title(self, call: Call) -> str:
        return f"Write {call.input['path']}"

    def paths(self, call: Call) -> list[str]:
        return [text_input(call, "path")]

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
        return Outcome(f"Wrote {len(content.encode())} bytes to {place.path}.")


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
