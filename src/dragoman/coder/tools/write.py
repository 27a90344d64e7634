"""`write_file` and `edit_file`: shown as a diff before they are done, written whole or not at all."""

import asyncio
from typing import Final

from dragoman.agent.tool import ToolCall
from dragoman.coder.edits.lines import split_lines
from dragoman.coder.permissions import Approved, JudgedCall
from dragoman.coder.tools.arguments import only_known, schema, text_input
from dragoman.coder.tools.contract import BadInput, Preview, ToolContext, ToolOutcome
from dragoman.coder.tools.edit_text import MOST_EDITS, EditedText, apply_edits, read_edits
from dragoman.coder.tools.files import (
    FILE_BYTES,
    Loaded,
    check_unmoved,
    load,
    named_for_reading,
    place_of,
    reading,
    resolve_path,
    save,
    writing,
)
from dragoman.coder.tools.result_text import title_text
from dragoman.host.paths import Place
from dragoman.permissions.facts import ActionKind
from dragoman.vocabulary.tools import Diff, Location

_PATH: Final = {"type": "string", "description": "absolute, or relative to the working folder"}
_OLD: Final = {"type": "string", "description": "the text to replace, copied from the file; unique in it"}
_NEW: Final = {"type": "string", "description": "the text to put there"}
_ALL: Final = {"type": "boolean", "description": "replace every exact copy of old_string"}


class WriteFile:
    """`write_file(path, content)`."""

    name = "write_file"
    kind = "edit"
    does: ActionKind = "edit"
    description = (
        "Write a whole file of the workspace: a new one, with the folders above it, or an old one from its first line "
        "to its last. Use it for new files and for files that change nearly everywhere; use edit_file for everything "
        "else, which is shorter and keeps what you do not mention. Read an old file before you write it anew: what "
        'content leaves out is gone. Never write a remark such as "rest unchanged" in the place of lines. The user '
        f"sees the difference. Up to {FILE_BYTES // 1024 // 1024} MiB of UTF-8 text, line ends as given. Example: "
        '{"path": "docs/notes.md", "content": "# Notes\\n\\nFirst line.\\n"}'
    )
    schema = schema(["path", "content"], path=_PATH, content={"type": "string", "description": "the whole file"})

    def check(self, call: JudgedCall) -> None:
        only_known(call, "path", "content")
        text_input(call, "path")
        if len(text_input(call, "content")) > FILE_BYTES:
            raise BadInput(f"write_file writes up to {FILE_BYTES} bytes.")

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        place = place_of(text_input(call, "path"), context)
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
    """`edit_file(path, old_string, new_string, replace_all?)`, or `edit_file(path, edits)` with several of them."""

    name = "edit_file"
    kind = "edit"
    does: ActionKind = "edit"
    description = (
        "Replace pieces of a text file of the workspace. Copy old_string from the file, without the line numbers of "
        "read_file, with two or three lines around the change so that it is in the file exactly once; otherwise the "
        "edit is refused and you are told where it is, or what the nearest place looks like. Differences in white "
        "space, indentation and line ends are made up for where the place is certain; words must be the same. An empty "
        "new_string deletes. For several changes of one file give edits: they are made in order, each on the result "
        "of the one before, all or none. replace_all replaces every exact copy. An empty old_string makes a new file. "
        'Example: {"path": "app.py", "edits": [{"old_string": "x = 1\\n", "new_string": "x = 2\\n"}]}'
    )
    schema = schema(
        ["path"],
        path=_PATH,
        old_string=_OLD,
        new_string=_NEW,
        replace_all=_ALL,
        edits={
            "type": "array",
            "description": "several edits in place of old_string and new_string",
            "minItems": 1,
            "maxItems": MOST_EDITS,
            "items": schema(["old_string", "new_string"], old_string=_OLD, new_string=_NEW, replace_all=_ALL),
        },
    )

    def check(self, call: JudgedCall) -> None:
        only_known(call, "path", "old_string", "new_string", "replace_all", "edits")
        text_input(call, "path")
        read_edits(call)

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        place = place_of(text_input(call, "path"), context)
        before = await load(place, context)
        look = reading(place.path, context)
        title = title_text(f"Edit {call.input['path']}{named_for_reading(look)}")
        try:
            text = (await _edited(call, place, before)).text
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
        edited = await _edited(approved.call, place, before)
        await save(approved, place, before, edited.text, context)
        return ToolOutcome(_outcome_text(edited, place), raw={"path": place.path, "replaced": edited.replaced})


def _outcome_text(edited: EditedText, place: Place) -> str:
    """Say what was done, and where the text of the model was not exactly that of the file."""
    times = "once" if edited.replaced == 1 else f"{edited.replaced} times"
    text = f"Replaced {times} in {place.path}."
    if edited.tolerant:
        ways = ", ".join(dict.fromkeys(edited.tolerant.values()))
        text += f" old_string was not exactly what the file has (matched by: {ways}); the file's own form was kept."
    return text


async def _edited(call: JudgedCall, place: Place, before: Loaded) -> EditedText:
    """Return the file with its pieces replaced. In a thread: a large file takes a second."""
    edits = read_edits(call)
    if not edits[0].old:
        return _new_file(edits[0].new, place, before)
    if before.text is None:
        raise BadInput(f"{place.path}: no such file or directory.")
    if not before.whole:
        raise BadInput(f"{place.path} cannot be edited: {before.lacks}.")
    edited = await asyncio.to_thread(apply_edits, before.text, edits, place.path)
    if len(edited.text) > FILE_BYTES:
        raise BadInput(f"{place.path} would be larger than {FILE_BYTES} bytes.")
    return edited


def _new_file(text: str, place: Place, before: Loaded) -> EditedText:
    """Return the text of a file that is made by an edit of nothing; an empty one may be there already."""
    if before.text:
        raise BadInput(
            f"old_string is empty, and {place.path} is there and is not empty. Give the text to replace; use "
            "write_file to write the whole file anew."
        )
    return EditedText(text, 1, {})


async def _preview(title: str, place: Place, before: Loaded, text: str, context: ToolContext) -> Preview:
    return Preview(
        title,
        [await asyncio.to_thread(writing, place, context)],
        content=[Diff.of(place.path, before.text, text)],
        locations=[Location(place.path, first_difference(before.text or "", text))],
        stamp=before.stamp,
    )


def first_difference(before: str, after: str) -> int:
    """Return the first line that changes, counted from 1."""
    old, new = split_lines(before).bodies, split_lines(after).bodies
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
