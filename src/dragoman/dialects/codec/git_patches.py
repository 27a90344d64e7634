"""Make a git patch of the old and new text of a file, and get the text of a new file back out of one.

Paths are absolute and stand without `a/` and `b/`, quoted as git quotes them: so the schema of version 2 wants it.
"""

import re
from typing import Final

from msgspec import UNSET

from dragoman.vocabulary.tools import FileChange

# Above this a line-by-line comparison costs seconds; the whole file is shown as replaced instead.
COMPARED_LINES: Final = 4_000
_NO_NEWLINE: Final = "\\ No newline at end of file\n"
# A line is what ends in a newline: str.splitlines would also split at form feeds and other marks, git does not.
_LINES: Final = re.compile(r"[^\n]*\n|[^\n]+")
# What git quotes in a path, with `core.quotePath` on: control characters, quotes, backslashes, all that is not ASCII.
_UNUSUAL: Final = re.compile(r"[\x00-\x1f\x7f\"\\\\]|[^\x00-\x7f]")
_SHORT_ESCAPES: Final = dict(zip('\a\b\t\n\v\f\r"\\', 'abtnvfr"\\', strict=True))
# The one hunk of a new file: nothing before, lines from the first on.
_ADDED: Final = re.compile(r"@@ -0,0 \+1(?:,(\d+))? @@[^\n]*\n")


def git_patch(change: FileChange) -> str | None:
    """Return the patch of one file; None where its texts are not known, or nothing of it has changed."""
    match change.operation:
        case "delete":
            return _deletion(change)
        case "move" | "copy":
            return _from_elsewhere(change)
        case _:
            return _modification(change)


def _modification(change: FileChange) -> str | None:
    if not isinstance(change.new_text, str) or change.old_text is UNSET or change.old_text == change.new_text:
        return None
    old = change.old_text if isinstance(change.old_text, str) else None
    head = _head(change.path, change.path) + ("new file mode 100644\n" if old is None else "")
    return head + _body(None if old is None else change.path, old or "", change.path, change.new_text)


def _deletion(change: FileChange) -> str | None:
    if not isinstance(change.old_text, str):
        return None
    return (
        _head(change.path, change.path) + "deleted file mode 100644\n" + _body(change.path, change.old_text, None, "")
    )


def _from_elsewhere(change: FileChange) -> str | None:
    """Return the patch of a file that was moved or copied; only the headers where its texts are equal."""
    if not isinstance(change.old_path, str) or not isinstance(change.new_text, str):
        return None
    if not isinstance(change.old_text, str):
        return None
    verb = "rename" if change.operation == "move" else "copy"
    head = _head(change.old_path, change.path)
    head += f"{verb} from {_quoted(change.old_path)}\n{verb} to {_quoted(change.path)}\n"
    return head + _body(change.old_path, change.old_text, change.path, change.new_text)


def _head(old_path: str, path: str) -> str:
    return f"diff --git {_quoted(old_path)} {_quoted(path)}\n"


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
    if len(old) + len(new) > COMPARED_LINES:
        lines = [f"@@ -{_span(len(old))} +{_span(len(new))} @@\n"]
        lines += [f"-{line}" for line in old] + [f"+{line}" for line in new]
    else:
        from difflib import unified_diff  # imported late: only needed to show a diff

        lines = list(unified_diff(old, new))[2:]
    return [line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in lines]


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
