"""Files for the tools: through the editor where it lends its own, else from the disk; inside the roots, and no others.

What is read is text. A file that is not, or is too big to be shown, is told to be so and never half changed.
"""

import asyncio
import hashlib
import os
from contextlib import suppress
from typing import Final, NamedTuple

from dragoman.coder.permissions import Approved, JudgedCall
from dragoman.coder.tools.arguments import text_input
from dragoman.coder.tools.contract import BadInput, CommandPlace, OutOfReach, ToolContext
from dragoman.errors import RequestFailed
from dragoman.host.decoding import decode_text, describe_binary, is_binary_text
from dragoman.host.failure_text import failure_text
from dragoman.host.openat import beside
from dragoman.host.paths import PathRefused, Place, facts_of, is_inside, read_bytes, remove_file, write_bytes
from dragoman.host.protected_names import is_protected_write
from dragoman.host.secrets import home_for, is_credential
from dragoman.permissions.facts import Action

# A file of more is not for a model to read at once, nor for a user to be shown as a diff.
FILE_BYTES: Final = 4 * 1024 * 1024
_CUT: Final = f"only the first {FILE_BYTES} bytes were read"
_CUT_BY_EDITOR: Final = f"only the first {FILE_BYTES} characters were read"
_NOT_TEXT: Final = "it is not all UTF-8 (what is not was read as \ufffd)"


class Loaded(NamedTuple):
    """A file as it is now. `text` None: there is none. `lacks` says what the text is not, where it is not the file.

    `stamp` is what it looks like, in short: also the bytes that the text does not show. `binary` names the kind and the
    size of a file that is not text; its `text` is a line that says so, for a diff.
    """

    text: str | None
    stamp: str = "none"
    lacks: str = ""
    binary: str = ""

    @property
    def whole(self) -> bool:
        """Whether the text is all of the file."""
        return not self.lacks


def resolve_path(call: JudgedCall, context: ToolContext, *, write: bool = False) -> Place:
    """Return where the path argument leads. Raises `BadInput`, with a text for the model, outside of the roots."""
    path = text_input(call, "path")
    if not write and (lent := _lent(path, context)) is not None:
        return lent
    return place_of(path, context, write=write)


def place_of(path: str, context: ToolContext, *, write: bool = False) -> Place:
    """Return where a path leads. Raises `BadInput`, with a text for the model, outside of the roots."""
    try:
        place = context.roots.place(path, write=write)
    except PathRefused as error:
        raise OutOfReach(str(error)) from None
    if _is_private(place.path, context):
        raise OutOfReach(f"{place.path} belongs to Dragoman itself and is neither read nor written.")
    return place


def _lent(path: str, context: ToolContext) -> Place | None:
    """Return the place of a file beyond the roots that may be read: a long result of this session, part of a skill.

    None: it is another path.
    """
    if not os.path.isabs(path):
        return None
    try:
        real = os.path.realpath(path)
    except OSError:  # something on the way has become another thing meanwhile
        return None
    for lent in (context.results.path if context.results is not None else "", *context.lent):
        if lent and is_inside(real, lent):
            folder = os.path.dirname(lent) if os.path.isfile(lent) else lent
            return Place(folder, tuple(os.path.relpath(real, folder).split("/")))
    return None


def writing(place: Place, context: ToolContext) -> Action:
    """Return the act of writing a file there.

    Blocks: looks whether a folder on the way is, or would become, a git folder.
    """
    guarded = any(is_inside(place.path, path) for path in (*context.own_folders, *context.protected_paths))
    guarded = guarded or _is_setting_of_home(place.path, context)
    return Action("edit", place.path, guarded=guarded or is_protected_write(place.root, place.parts))


def _is_setting_of_home(path: str, context: ToolContext) -> bool:
    """Return whether it is hidden in the user's home folder, all of which is in the workspace.

    There programs of the user find their settings, and no list has the names of all.
    """
    home = os.path.realpath(context.environment.get("HOME") or os.path.expanduser("~"))
    if not any(is_inside(home, root) for root in context.roots.real) or not is_inside(path, home):
        return False
    return os.path.relpath(path, home).startswith(".")


def reading(path: str, context: ToolContext) -> Action:
    """Return the act of reading a file or folder, by its real path.

    Credentials need a yes in every mode but full-access.
    """
    return Action("read", path, guarded=is_credential(path, user_home(context), is_folder=os.path.isdir(path)))


def user_home(context: CommandPlace) -> str:
    """Return the user's home folder, as it really is, by which `is_credential` judges what is in this workspace."""
    return home_for(context.roots.real, os.path.realpath(context.environment.get("HOME") or os.path.expanduser("~")))


def named_for_reading(act: Action) -> str:
    """Return what to add to the title of a call that reads this: why there is a question."""
    return ", which may hold credentials" if act.guarded else ""


def is_ours(path: str, context: ToolContext) -> bool:
    """Return whether it is our own data, keys and other conversations, that lies in the workspace by chance."""
    if _is_private(path, context):
        return True
    if any(path == os.path.join(folder, "credentials.toml") for folder in context.own_folders):
        return True
    root = context.roots.real[0]  # a working folder inside of one of ours opens that
    return any(is_inside(path, folder) and not is_inside(root, folder) for folder in context.own_folders)


def ours_in(folder: str, context: ToolContext) -> list[str]:
    """Return the real paths below a folder that are ours, as `is_ours` judges them."""
    ours = (*context.own_folders, *context.private)
    return [path for path in ours if is_inside(path, folder) and is_ours(path, context)]


def _is_private(path: str, context: ToolContext) -> bool:
    return any(is_inside(path, private) for private in context.private)


def is_withheld(path: str, context: ToolContext) -> bool:
    """Return whether a file is not to be read without a question: it is ours, it is denied, or it holds credentials."""
    return is_out_of_reach(path, context) or reading(path, context).guarded


def is_out_of_reach(path: str, context: ToolContext) -> bool:
    """Return whether a search shows nothing of a file: it is ours, or the administrator denies reading it."""
    return is_ours(path, context) or context.denies_reading(path)


def check_not_ours(path: str, context: ToolContext) -> None:
    """Raise `OutOfReach` for a path in a folder of ours: no tool reads that, but for what is lent (`_lent`)."""
    if is_ours(path, context) and _lent(path, context) is None:
        raise OutOfReach(f"{path} belongs to Dragoman itself and is not read.")


def check_unmoved(approved: Approved, place: Place) -> None:
    """Raise `BadInput` if a link on the path leads elsewhere than when the call was approved."""
    if place.path not in (act.subject for act in approved.call.acts):
        raise BadInput(f"{place.path} is not the file that was shown; something changed it meanwhile.")


async def load(place: Place, context: ToolContext) -> Loaded:
    """Return the file, for showing. Raises `BadInput` for what is no file."""
    if (
        context.execution.files_of_editor()
        and _lent(place.path, context) is None
        and context.session.client.read_text_file
        and await asyncio.to_thread(_is_file, place)
    ):
        try:
            return _loaded_by_editor(await context.session.read_text_file(place.path))
        except RequestFailed as error:
            raise BadInput(f"{place.path}: the editor says: {failure_text(error)}") from None
    try:
        data, more = await asyncio.to_thread(read_bytes, place, FILE_BYTES)
    except PathRefused as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return Loaded(None)
        raise BadInput(str(error)) from None
    facts = await asyncio.to_thread(facts_of, place) if more else None
    return _loaded(data, facts)


def _loaded(data: bytes, facts: os.stat_result | None) -> Loaded:
    """Return a file from its first bytes; `facts` where it has more of them."""
    stamp = _stamp(data, facts)
    decoded = decode_text(data, is_cut=facts is not None)
    if decoded is None:
        return _binary(describe_binary(data, facts.st_size if facts else len(data)), stamp)
    lacks = [_CUT] if facts else []
    lacks += [f"it is {decoded.encoding} and not UTF-8"] if decoded.encoding != "UTF-8" else []
    lacks += [] if decoded.is_exact else [_NOT_TEXT]
    return Loaded(decoded.text, stamp, ", and ".join(lacks))


def _loaded_by_editor(text: str) -> Loaded:
    stamp = _stamp(text.encode("utf-8", "surrogatepass"))
    if is_binary_text(text):
        return _binary(f"binary data, {len(text):,} characters in the editor", stamp)
    return Loaded(text[:FILE_BYTES], stamp, _CUT_BY_EDITOR) if len(text) > FILE_BYTES else Loaded(text, stamp)


def _binary(what: str, stamp: str) -> Loaded:
    return Loaded(f"[{what}]\n", stamp, f"it is not text: {what}", what)


async def save(approved: Approved, place: Place, before: Loaded, text: str, context: ToolContext) -> None:
    """Write a file, whole or not at all, and remember how it was, so that it can be undone."""
    async with context.changes.writing:
        await _check_still_unguarded(approved, place, context)
        await _put(place, text, context)
    context.changes.record_write(place, before.text, text, kept=before.whole)


async def remove(approved: Approved, place: Place, before: Loaded, context: ToolContext) -> None:
    """Delete a file, and remember how it was, so that it can be undone. Raises `BadInput`."""
    async with context.changes.writing:
        await _check_still_unguarded(approved, place, context)
        try:
            await asyncio.to_thread(remove_file, place)
        except PathRefused as error:
            raise BadInput(str(error)) from None
        if await asyncio.to_thread(_is_there, place.path, context):
            # A layer above the workspace: what is below it shows again.
            raise BadInput(f"{place.path} cannot be deleted here by a file tool; use sandbox_bash with rm.")
    context.changes.record_write(place, before.text, None, kept=before.whole)


def _is_there(path: str, context: ToolContext) -> bool:
    try:
        facts_of(context.roots.place(path))
    except PathRefused:
        return False
    return True


async def _check_still_unguarded(approved: Approved, place: Place, context: ToolContext) -> None:
    """Raise `BadInput` if another write has made the folder of an unguarded file a git folder meanwhile."""
    if any(act.guarded or act.kind != "edit" for act in approved.call.acts):
        return
    if (await asyncio.to_thread(writing, place, context)).guarded:
        raise BadInput(f"{place.path} is protected by now, because of a file that was written beside it. Try again.")


async def _put(place: Place, text: str, context: ToolContext) -> None:
    try:
        if context.execution.files_of_editor() and context.session.client.write_text_file:
            await asyncio.to_thread(_make_folder, place)
            await context.session.write_text_file(place.path, text)
        else:
            await asyncio.to_thread(write_bytes, place, text.encode("utf-8", "replace"))
    except RequestFailed as error:
        raise BadInput(f"{place.path}: the editor says: {failure_text(error)}") from None
    except PathRefused as error:
        raise BadInput(str(error)) from None


def _make_folder(place: Place) -> None:
    """Make the folder of a file: not every editor does. Where that fails, the editor's own word is the better one."""
    with suppress(OSError, PathRefused), beside(place, make=True):
        pass


def _stamp(data: bytes, more: os.stat_result | None = None) -> str:
    """Return a stamp of what was read; of a file that is longer than that, also of its last change."""
    beyond = "" if more is None else f" {more.st_ino} {more.st_size} {more.st_mtime_ns}"
    return hashlib.sha256(data).hexdigest() + beyond


def _is_file(place: Place) -> bool:
    return os.path.isfile(place.path)
