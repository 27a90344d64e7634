"""Make a git patch of the old and new text of a file, and get the text of a new file back out of one.

Paths are absolute, quoted as git quotes them. They stand without `a/` and `b/`, as the schema of version 2 wants it; or
with these in the place of their root, as `git diff` and editors have it (`prefixed`).
"""

import re
from itertools import takewhile
from operator import eq
from typing import Final, NamedTuple

from msgspec import UNSET

from dragoman.vocabulary.tools import FileChange

# Above this a line-by-line comparison costs seconds; the whole file is shown as replaced instead.
COMPARED_LINES: Final = 4_000
_NO_NEWLINE: Final = "\\ No newline at end of file\n"
# A line is what ends in a newline: str.splitlines would also split at form feeds and other marks, git does not.
_LINES: Final = re.compile(r"[^\n]*\n|[^\n]+")
# A path of Windows, whose separators git writes as slashes.
_DRIVE: Final = re.compile(r"^(?:[A-Za-z]:|\\\\).*", re.S)
# Lines around a change.
_CONTEXT: Final = 3
_HUNK: Final = re.compile(r"^@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@", re.A)
# What git quotes in a path, with `core.quotePath` on: control characters, quotes, backslashes, all that is not ASCII.
_UNUSUAL: Final = re.compile(r"[\x00-\x1f\x7f\"\\\\]|[^\x00-\x7f]")
_SHORT_ESCAPES: Final = dict(zip('\a\b\t\n\v\f\r"\\', 'abtnvfr"\\', strict=True))
# The one hunk of a new file: nothing before, lines from the first on.
_ADDED: Final = re.compile(r"@@ -0,0 \+1(?:,(\d+))? @@[^\n]*\n")


class _Names(NamedTuple):
    """The paths of one file, as they stand in the headers of its patch; `bare` behind `rename from` and `rename to`."""

    old: str
    new: str
    old_bare: str
    new_bare: str


def git_patch(change: FileChange, *, prefixed: bool = False) -> str | None:
    """Return the patch of one file; None where its texts are not known, or nothing of it has changed."""
    names = _names(change, prefixed)
    match change.operation:
        case "delete":
            return _deletion(change, names)
        case "move" | "copy":
            return _from_elsewhere(change, names)
        case _:
            return _modification(change, names)


def _names(change: FileChange, prefixed: bool) -> _Names:
    is_from_elsewhere = change.operation in ("move", "copy") and isinstance(change.old_path, str)
    old, new = str(change.old_path) if is_from_elsewhere else change.path, change.path
    if not prefixed:
        return _Names(old, new, old, new)
    old, new = (_DRIVE.sub(_with_slashes, path).lstrip("/") for path in (old, new))
    return _Names(f"a/{old}", f"b/{new}", old, new)


def _with_slashes(path: "re.Match[str]") -> str:
    return path[0].replace("\\", "/")


def _modification(change: FileChange, names: _Names) -> str | None:
    if not isinstance(change.new_text, str) or change.old_text is UNSET or change.old_text == change.new_text:
        return None
    old = change.old_text if isinstance(change.old_text, str) else None
    head = _head(names) + ("new file mode 100644\n" if old is None else "")
    return head + _body(None if old is None else names.old, old or "", names.new, change.new_text)


def _deletion(change: FileChange, names: _Names) -> str | None:
    if not isinstance(change.old_text, str):
        return None
    return _head(names) + "deleted file mode 100644\n" + _body(names.old, change.old_text, None, "")


def _from_elsewhere(change: FileChange, names: _Names) -> str | None:
    """Return the patch of a file that was moved or copied; only the headers where its texts are equal."""
    if not isinstance(change.old_path, str) or not isinstance(change.new_text, str):
        return None
    if not isinstance(change.old_text, str):
        return None
    verb = "rename" if change.operation == "move" else "copy"
    head = _head(names) + f"{verb} from {_quoted(names.old_bare)}\n{verb} to {_quoted(names.new_bare)}\n"
    return head + _body(names.old, change.old_text, names.new, change.new_text)


def _head(names: _Names) -> str:
    return f"diff --git {_quoted(names.old)} {_quoted(names.new)}\n"


def _body(old_path: str | None, old: str, path: str | None, new: str) -> str:
    """Return the lines that differ, if any do; a path of None is the side on which there is no file."""
    lines = _hunks(_LINES.findall(old), _LINES.findall(new))
    return f"--- {_side(old_path)}\n+++ {_side(path)}\n" + "".join(lines) if lines else ""


def _side(path: str | None) -> str:
    if path is None:
        return "/dev/null"
    name = _quoted(path)
    # As git does: a tab ends a name that has a space in it.
    return name + ("\t" if " " in name and not name.startswith('"') else "")


def added_text(patch: str) -> str | None:
    """Return the text of a file that a patch of one new file adds; None for any other patch."""
    if not patch.startswith("diff --git ") or "\nnew file mode " not in patch or "\ndiff --git " in patch:
        return None
    if "\n--- " not in patch:
        return ""  # an empty file has no lines to show
    start = _ADDED.search(patch)
    if start is None:
        return None
    lines = _LINES.findall(patch[start.end() :])
    if lines and lines[-1].startswith("\\"):
        del lines[-1]
        lines[-1:] = [lines[-1].removesuffix("\n")] if lines else []
    # A patch that was cut short, or whose hunk says another number of lines, gives no text: half a file is none.
    complete = len(lines) == int(start[1] or 1) and all(line.startswith("+") for line in lines)
    return "".join(line[1:] for line in lines) if complete else None


def _hunks(old: list[str], new: list[str]) -> list[str]:
    """Return the lines of the hunks. What both texts begin and end with is not compared, as a long file mostly is."""
    # Some lines of it stay, as the context of the first and the last hunk.
    skipped = max(_common(old, new) - _CONTEXT, 0)
    ending = max(_common(old[skipped:][::-1], new[skipped:][::-1]) - _CONTEXT, 0)
    old, new = old[skipped : len(old) - ending], new[skipped : len(new) - ending]
    if len(old) + len(new) > COMPARED_LINES:
        lines = _replaced(old, new)
    else:
        from difflib import unified_diff  # imported late: only needed to show a diff

        lines = list(unified_diff(old, new, n=_CONTEXT))[2:]
    lines = [_HUNK.sub(lambda found: _moved(found, skipped), line) for line in lines] if skipped else lines
    return [line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in lines]


def _common(one: list[str], other: list[str]) -> int:
    return sum(1 for _ in takewhile(bool, map(eq, one, other)))


def _replaced(old: list[str], new: list[str]) -> list[str]:
    """Return one hunk that takes out all that differs and puts in the other, between the lines around it."""
    before = min(_common(old, new), _CONTEXT)
    after = min(_common(old[before:][::-1], new[before:][::-1]), _CONTEXT)
    end = len(old) - after
    lines = [f"@@ -{_span(len(old))} +{_span(len(new))} @@\n"]
    lines += [f" {line}" for line in old[:before]]
    lines += [f"-{line}" for line in old[before:end]] + [f"+{line}" for line in new[before : len(new) - after]]
    return lines + [f" {line}" for line in old[end:]]


def _moved(hunk: "re.Match[str]", lines: int) -> str:
    return f"@@ -{int(hunk[1]) + lines}{hunk[2]} +{int(hunk[3]) + lines}{hunk[4]} @@"


def _span(count: int) -> str:
    return f"{min(count, 1)},{count}"


def _quoted(path: str) -> str:
    """Return the path as git writes it (`quote.c`, with core.quotePath): unusual bytes as escapes, in quotes."""
    if _UNUSUAL.search(path) is None:
        return path
    return '"' + _UNUSUAL.sub(_escape, path) + '"'


def _escape(found: "re.Match[str]") -> str:
    character = found[0]
    if character in _SHORT_ESCAPES:
        return "\\" + _SHORT_ESCAPES[character]
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "replace"))
