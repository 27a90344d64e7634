"""`write_file` and `edit_file`: shown as a diff before they are done, written whole or not at all."""

import asyncio

from dragoman.agent.tool import ToolCall
from dragoman.coder.permissions import Approved, JudgedCall
from dragoman.coder.tools.arguments import flag_input, only_known, schema, text_input
from dragoman.coder.tools.contract import BadInput, Preview, ToolContext, ToolOutcome
from dragoman.coder.tools.files import (
    FILE_BYTES,
    Loaded,
    check_unmoved,
    load,
    named_for_reading,
    reading,
    resolve_path,
    save,
    writing,
)
from dragoman.coder.tools.result_text import title_text
from dragoman.host.paths import Place
from dragoman.permissions.facts import ActionKind
from dragoman.vocabulary.tools import Diff, Location

_PATH = {"type": "string", "description": "absolute, or relative to the working folder"}


class WriteFile:
    """`write_file(path, content)`."""

    name = "write_file"
    kind = "edit"
    does: ActionKind = "edit"
    description = "Write a file of the workspace: a new one, or the whole of an old one anew."
    schema = schema(["path", "content"], path=_PATH, content={"type": "string", "description": "the whole file"})

    def check(self, call: JudgedCall) -> None:
        only_known(call, "path", "content")
        text_input(call, "path")
        if len(text_input(call, "content")) > FILE_BYTES:
            raise BadInput(f"write_file writes up to {FILE_BYTES} bytes.")

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        place = resolve_path(call, context)
        before = await load(place, context)
        return await _preview(
            title_text(f"Write {call.input['path']}"), place, before, text_input(call, "content"), context
        )

    async def run(self, approved: Approved, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        place = resolve_path(approved.call, context, write=True)
        before = await _as_shown(approved, place, context)
        content = text_input(approved.call, "content")
        await save(approved, place, before, content, context)
        size = len(content.encode("utf-8", "replace"))
        return ToolOutcome(f"Wrote {size} bytes to {place.path}.", raw={"path": place.path, "bytes": size})


class EditFile:
    """`edit_file(path, old_string, new_string, replace_all?)`."""

    name = "edit_file"
    kind = "edit"
    does: ActionKind = "edit"
    description = (
        "Replace a piece of a file. old_string must be in it exactly once, unless replace_all is true; give enough "
        "of the lines around it to make it so."
    )
    schema = schema(
        ["path", "old_string", "new_string"],
        path=_PATH,
        old_string={"type": "string"},
        new_string={"type": "string"},
        replace_all={"type": "boolean"},
    )

    def check(self, call: JudgedCall) -> None:
        only_known(call, "path", "old_string", "new_string", "replace_all")
        text_input(call, "path")
        if not text_input(call, "old_string"):
            raise BadInput("old_string is empty; use write_file to write a whole file.")
        if text_input(call, "old_string") == text_input(call, "new_string"):
            raise BadInput("old_string and new_string are the same.")
        flag_input(call, "replace_all")

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        place = resolve_path(call, context)
        before = await load(place, context)
        look = reading(place.path, context)
        title = title_text(f"Edit {call.input['path']}{named_for_reading(look)}")
        try:
            text = _edited(call, place, before)[0]
        except BadInput:
            if not look.guarded:
                raise
            # Whether a text is in a file that holds credentials is told after a yes, and not before.
            return Preview(title, [await asyncio.to_thread(writing, place, context), look], stamp=before.stamp)
        shown_preview = await _preview(title, place, before, text, context)
        return shown_preview._replace(acts=[*shown_preview.acts, look]) if look.guarded else shown_preview

    async def run(self, approved: Approved, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        place = resolve_path(approved.call, context, write=True)
        before = await _as_shown(approved, place, context)
        text, count = _edited(approved.call, place, before)
        await save(approved, place, before, text, context)
        times = "once" if count == 1 else f"{count} times"
        return ToolOutcome(f"Replaced {times} in {place.path}.", raw={"path": place.path, "replaced": count})


def _edited(call: JudgedCall, place: Place, before: Loaded) -> tuple[str, int]:
    """Return the file with its piece replaced, and how often."""
    if before.text is None:
        raise BadInput(f"{place.path}: no such file or directory.")
    if not before.whole:
        raise BadInput(f"{place.path} cannot be edited: {before.lacks}.")
    old, new = text_input(call, "old_string"), text_input(call, "new_string")
    if "\r\n" in before.text and "\r\n" not in old:
        # Models write lines their own way; the file keeps its own.
        old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
    count = before.text.count(old)
    if count == 0:
        raise BadInput(f"old_string is not in {place.path}. Read the file and copy it exactly.")
    if count > 1 and not flag_input(call, "replace_all"):
        raise BadInput(
            f"old_string is {count} times in {place.path}. Give more of the lines around it, or replace_all."
        )
    return before.text.replace(old, new), count


async def _preview(title: str, place: Place, before: Loaded, text: str, context: ToolContext) -> Preview:
    first = _first_difference(before.text or "", text)
    return Preview(
        title,
        [await asyncio.to_thread(writing, place, context)],
        content=[Diff.of(place.path, before.text, text)],
        locations=[Location(place.path, first)],
        stamp=before.stamp,
    )


def _first_difference(before: str, after: str) -> int:
    """Return the first line that changes, counted from 1."""
    old, new = before.splitlines(), after.splitlines()
    for number, (one, other) in enumerate(zip(old, new, strict=False), 1):
        if one != other:
            return number
    return min(len(old), len(new)) + 1 if old and new else 1


async def _as_shown(approved: Approved, place: Place, context: ToolContext) -> Loaded:
    check_unmoved(approved, place)
    before = await load(place, context)
    if before.stamp != approved.call.stamp:
        raise BadInput(f"{place.path} has changed since it was shown. Read it again.")
    return before
