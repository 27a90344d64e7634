"""The edits of one call, made on a text one after the other, all or none; why not, in words for the model."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from dragoman.coder.edits.engine import EXACT, Ambiguous, Applied, NotFound, find_edit
from dragoman.coder.permissions import JudgedCall
from dragoman.coder.tools.arguments import flag_input, list_input, only_known, text_input
from dragoman.coder.tools.contract import BadInput

# Of one call. A model that needs more writes the file anew.
MOST_EDITS: Final = 100
_NAMES: Final = ("old_string", "new_string", "replace_all")


class TextEdit(NamedTuple):
    """One replacement: a piece of a text and what takes its place."""

    old: str
    new: str
    replace_all: bool = False


class EditedText(NamedTuple):
    """A text after its edits: how many pieces were replaced, and which edits were not exact, by their number."""

    text: str
    replaced: int
    tolerant: dict[int, str]


def read_edits(call: JudgedCall) -> list[TextEdit]:
    """Return the edits of a call, in either form. Raises `BadInput` for what can never be made."""
    edits = list_input(call, "edits", MOST_EDITS)
    if edits is None:
        return [_checked(_edit(call), "")]
    if any(name in call.input for name in _NAMES):
        raise BadInput("edit_file takes one old_string and new_string, or edits with several of them; not both.")
    read: list[TextEdit] = []
    for number, given in enumerate(edits, 1):
        part = call._replace(tool=f"edit {number} of edit_file", input=given)
        only_known(part, *_NAMES)
        read.append(_checked(_edit(part), f"Edit {number}: " if len(edits) > 1 else ""))
    if len(read) > 1 and any(not edit.old for edit in read):
        raise BadInput("An empty old_string makes a new file; that is one edit, and no other beside it.")
    return read


def _edit(call: JudgedCall) -> TextEdit:
    return TextEdit(text_input(call, "old_string"), text_input(call, "new_string"), flag_input(call, "replace_all"))


def _checked(edit: TextEdit, which: str) -> TextEdit:
    if edit.old == edit.new:
        raise BadInput(f"{which}old_string and new_string are the same.")
    return edit


def apply_edits(text: str, edits: Sequence[TextEdit], path: str) -> EditedText:
    """Return the text after all edits, each made on the result of the one before. Raises `BadInput` if one has no
    certain place; then none is made."""
    replaced, tolerant = 0, dict[int, str]()
    for number, edit in enumerate(edits, 1):
        which = f"Edit {number} of {len(edits)}: " if len(edits) > 1 else ""
        found = find_edit(text, edit.old, edit.new, replace_all=edit.replace_all)
        match found:
            case NotFound():
                raise BadInput(which + _not_found_text(found, path) + _nothing_made(edits))
            case Ambiguous():
                raise BadInput(which + _ambiguous_text(found, edit, path) + _nothing_made(edits))
            case Applied():
                if found.result == text:
                    raise BadInput(f"{which}it changes nothing: {path} has the new text there.{_nothing_made(edits)}")
                text = found.result
                replaced += found.times
                if found.how != EXACT:
                    tolerant[number] = found.how
    return EditedText(text, replaced, tolerant)


def _nothing_made(edits: Sequence[TextEdit]) -> str:
    return "\nNone of the edits was made." if len(edits) > 1 else ""


def _not_found_text(found: NotFound, path: str) -> str:
    text = f"old_string is not in {path}"
    if found.reason:
        text = f"The edit of {path} was not made: {found.reason}"
    if found.nearest is None:
        return f"{text}. Read the file and copy it exactly."
    first, last, difference = found.nearest
    where = f"line {first}" if first == last else f"lines {first}-{last}"
    return (
        f"{text}. The nearest place is {where} (- old_string, + file):\n{difference}\n"
        "Copy the lines of the file exactly, or read it again."
    )


def _ambiguous_text(found: Ambiguous, edit: TextEdit, path: str) -> str:
    lines = ", ".join(map(str, found.lines)) + (", …" if found.places > len(found.lines) else "")
    alike = "" if found.how == EXACT else ", but for white space"
    way_out = "Give more of the lines around it" + ("." if edit.replace_all else ", or replace_all.")
    if edit.replace_all:
        way_out = "replace_all replaces exact copies only. Copy the text exactly, or edit one place after the other."
    return f"old_string is {found.places} times in {path}{alike} (lines {lines}). {way_out}"
