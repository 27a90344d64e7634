"""`read_file(path, start_line?, end_line?)`: read a text file of the workspace."""

from msgspec import UNSET

from dragoman.agent.tool import ToolCall
from dragoman.coder.permissions import Approved, JudgedCall
from dragoman.coder.tools.arguments import count_input, only_known, schema, text_input
from dragoman.coder.tools.contract import BadInput, Preview, ToolContext, ToolOutcome
from dragoman.coder.tools.files import check_not_ours, check_unmoved, load, named_for_reading, reading, resolve_path
from dragoman.coder.tools.result_text import cut, title_text
from dragoman.permissions.facts import ActionKind
from dragoman.vocabulary.tools import Location


class ReadFile:
    """`read_file(path, start_line?, end_line?)`."""

    name = "read_file"
    kind = "read"
    does: ActionKind = "read"
    description = "Read a text file of the workspace, whole or from one line to another (1-based, both included)."
    schema = schema(
        ["path"],
        path={"type": "string", "description": "absolute, or relative to the working folder"},
        start_line={"type": "integer", "minimum": 1},
        end_line={"type": "integer", "minimum": 1},
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
        start, end = count_input(call, "start_line", 1) or 1, count_input(call, "end_line", 1)
        place = resolve_path(call, context)
        check_unmoved(approved, place)
        check_not_ours(place.path, context)
        file = await load(place, context)
        if file.text is None:
            raise BadInput(f"{place.path}: no such file or directory.")
        if file.binary:
            raise BadInput(f"{place.path} is not text: {file.binary}.")
        lines = file.text.splitlines(keepends=True)
        chosen = "".join(lines[start - 1 : end])
        if start > len(lines) > 0:
            raise BadInput(f"{place.path} has {len(lines)} lines.")
        more = f"\n[{file.lacks}]" if file.lacks else ""
        return ToolOutcome(cut(chosen) + more, raw={"lines": len(lines)})
