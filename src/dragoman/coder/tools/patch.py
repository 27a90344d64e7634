"""`apply_patch(patch)`: changes of several files in one call, with one question and one diff; all of them or none."""

import asyncio
import hashlib
import json
import logging
from typing import Final, NamedTuple

from dragoman.agent.tool import ToolCall
from dragoman.coder.edits.patch_text import FilePatch, PatchRefused, parse_patch, patched
from dragoman.coder.permissions import Approved, JudgedCall
from dragoman.coder.tools.arguments import only_known, schema, text_input
from dragoman.coder.tools.contract import BadInput, Preview, ToolContext, ToolOutcome
from dragoman.coder.tools.files import (
    FILE_BYTES,
    Loaded,
    check_unmoved,
    load,
    named_for_reading,
    place_of,
    reading,
    remove,
    save,
    writing,
)
from dragoman.coder.tools.result_text import title_text
from dragoman.coder.tools.write import first_difference
from dragoman.host.paths import Place
from dragoman.permissions.facts import ActionKind
from dragoman.vocabulary.tools import Diff, FileChange, Location, UnknownChange

_log = logging.getLogger(__name__)
_MODELS: Final = "openai"


class PlannedWrite(NamedTuple):
    """One file of a patch: how it is, and its text afterwards; None: it is deleted. `moved_from` of a moved file."""

    place: Place
    before: Loaded
    after: str | None
    moved_from: str = ""


class ApplyPatch:
    """`apply_patch(patch)`."""

    name = "apply_patch"
    kind = "edit"
    does: ActionKind = "edit"
    description = (
        "Change, add, move and delete text files of the workspace by one patch; the user sees all of it as one "
        "difference, and either all of it is done or nothing. Between '*** Begin Patch' and '*** End Patch' each file "
        "has a header: '*** Update File: PATH' (then perhaps '*** Move to: PATH'), '*** Add File: PATH', or '*** "
        "Delete File: PATH'. A change has lines that stay (' '), go ('-') and come ('+'), three of context above and "
        "below. Its place must be unique: put '@@ LINE' above it with a line it stands below, such as a function. "
        'Lines are not numbered. New files have \'+\' before every line. Example: {"patch": "*** Begin Patch\\n*** '
        'Update File: a.py\\n@@ def f():\\n-    return 1\\n+    return 2\\n*** End Patch"}'
    )
    schema = schema(["patch"], patch={"type": "string", "description": "from '*** Begin Patch' to '*** End Patch'"})

    def check(self, call: JudgedCall) -> None:
        only_known(call, "patch")
        _parsed(call)

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        patches = _parsed(call)
        places = await asyncio.to_thread(_places, patches, context)
        acts = [await asyncio.to_thread(writing, place, context) for place in places]
        looks = [reading(place.path, context) for place in places]
        acts += [look for look in looks if look.guarded]
        hidden = next((named for look in looks if (named := named_for_reading(look))), "")
        title = title_text(f"Patch {', '.join(patch.path for patch in patches)}{hidden}")
        try:
            plan, stamp = await _plan(patches, context)
        except BadInput:
            if not hidden:
                raise
            # Whether lines are in a file that holds credentials is told after a yes, and not before.
            return Preview(title, acts, stamp=await _stamp(places, context))
        locations = [Location(one.place.path, first_difference(one.before.text or "", one.after or "")) for one in plan]
        return Preview(title, acts, content=[Diff(_changes(plan))], locations=locations, stamp=stamp)

    async def run(self, approved: Approved, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        patches = _parsed(approved.call)
        plan, stamp = await _plan(patches, context, write=True)
        for one in plan:
            check_unmoved(approved, one.place)
        if stamp != approved.call.stamp:
            raise BadInput("A file of the patch has changed since it was shown. Read it again.")
        await _write_all(approved, plan, context)
        done = [f"{_verb(one)} {one.place.path}" for one in plan if not _is_left(one, plan)]
        return ToolOutcome(f"Done: {', '.join(done)}.", raw={"files": [one.place.path for one in plan]})


def is_offered_to(family: str) -> bool:
    """Return whether models of this family are offered `apply_patch`: those that were trained on it."""
    return family == _MODELS


def _parsed(call: JudgedCall) -> list[FilePatch]:
    text = text_input(call, "patch")
    if len(text) > FILE_BYTES:
        raise BadInput(f"apply_patch takes up to {FILE_BYTES} bytes.")
    try:
        return parse_patch(text)
    except PatchRefused as refusal:
        raise BadInput(str(refusal)) from None


def _places(patches: list[FilePatch], context: ToolContext, *, write: bool = False) -> list[Place]:
    """Return where all files of a patch are, each once. Blocks. Raises `BadInput` if two of them are one file."""
    paths = [path for patch in patches for path in (patch.path, patch.moved_to) if path]
    places = [place_of(path, context, write=write) for path in paths]
    if len({place.path for place in places}) < len(places):
        raise BadInput("The patch names a file twice. Put all changes of a file below one header.")
    return places


async def _plan(
    patches: list[FilePatch], context: ToolContext, *, write: bool = False
) -> tuple[list[PlannedWrite], str]:
    """Return what the patch would write, in order, and a stamp of all files. Raises `BadInput`."""
    places = iter(await asyncio.to_thread(_places, patches, context, write=write))
    plan: list[PlannedWrite] = []
    for patch in patches:
        place = next(places)
        before = await load(place, context)
        after = await _after(patch, place, before)
        if not patch.moved_to:
            plan.append(PlannedWrite(place, before, after))
            continue
        target = next(places)
        there = await load(target, context)
        if there.text is not None:
            raise BadInput(f"{target.path} is there already; nothing is moved over it.")
        plan += [PlannedWrite(target, there, after, place.path), PlannedWrite(place, before, None)]
    return plan, _joined_stamp({one.place.path: one.before for one in plan})


async def _after(patch: FilePatch, place: Place, before: Loaded) -> str | None:
    if patch.kind == "add":
        if before.text is not None:
            raise BadInput(f"{place.path} is there already. Use '*** Update File:' to change it.")
        return patch.text
    if before.text is None:
        raise BadInput(f"{place.path}: no such file or directory.")
    if patch.kind == "delete":
        return None
    if not before.whole:
        raise BadInput(f"{place.path} cannot be edited: {before.lacks}.")
    try:
        text = await asyncio.to_thread(patched, before.text, patch)
    except PatchRefused as refusal:
        raise BadInput(f"{refusal}\nNothing of the patch was done.") from None
    if len(text) > FILE_BYTES:
        raise BadInput(f"{place.path} would be larger than {FILE_BYTES} bytes.")
    return text


async def _stamp(places: list[Place], context: ToolContext) -> str:
    return _joined_stamp({place.path: await load(place, context) for place in places})


def _joined_stamp(files: dict[str, Loaded]) -> str:
    # Sorted, because a move lists its two files in the order in which they are written.
    text = json.dumps(sorted((path, file.stamp) for path, file in files.items()))
    return hashlib.sha256(text.encode()).hexdigest()


def _changes(plan: list[PlannedWrite]) -> list[FileChange | UnknownChange]:
    """Return the one diff of all files."""
    texts = {one.place.path: one.before.text for one in plan}
    changes: list[FileChange | UnknownChange] = []
    for one in plan:
        path = one.place.path
        if one.after is None:
            if not _is_left(one, plan):
                changes.append(FileChange("delete", path, old_text=one.before.text))
        elif one.moved_from:
            old = texts[one.moved_from]
            changes.append(FileChange("move", path, old_path=one.moved_from, old_text=old, new_text=one.after))
        else:
            changes += Diff.of(path, one.before.text, one.after).changes
    return changes


def _is_left(one: PlannedWrite, plan: list[PlannedWrite]) -> bool:
    """Return whether a file goes because it moves."""
    return one.after is None and any(other.moved_from == one.place.path for other in plan)


def _verb(one: PlannedWrite) -> str:
    if one.after is None:
        return "deleted"
    if one.moved_from:
        return f"moved {one.moved_from} to"
    return "added" if one.before.text is None else "changed"


async def _write_all(approved: Approved, plan: list[PlannedWrite], context: ToolContext) -> None:
    """Write and delete all files; where one cannot be, put back those before it."""
    done: list[PlannedWrite] = []
    try:
        for one in plan:
            done.append(one)
            await _write(approved, one, context)
    except BaseException as error:
        # Also of the one that failed: an editor may have written it and said no.
        kept = await asyncio.shield(asyncio.ensure_future(_put_back(approved, done, context)))
        if isinstance(error, BadInput) and kept:
            raise BadInput(f"{error}\nThese files could not be put back: {', '.join(kept)}.") from None
        if isinstance(error, BadInput):
            raise BadInput(f"{error}\nNothing of the patch was done.") from None
        raise


async def _write(approved: Approved, one: PlannedWrite, context: ToolContext) -> None:
    if one.after is None:
        await remove(approved, one.place, one.before, context)
    else:
        await save(approved, one.place, one.before, one.after, context)


async def _put_back(approved: Approved, done: list[PlannedWrite], context: ToolContext) -> list[str]:
    """Put files back as they were, the last first; return those that could not be."""
    kept: list[str] = []
    for one in reversed(done):
        try:
            now = await load(one.place, context)
            if now.stamp == one.before.stamp:
                continue
            if one.before.text is None:
                await remove(approved, one.place, now, context)
            elif one.before.whole:
                await save(approved, one.place, now, one.before.text, context)
            else:
                kept.append(one.place.path)
        except BadInput:
            _log.warning("a file of a patch could not be put back")
            kept.append(one.place.path)
    return kept
