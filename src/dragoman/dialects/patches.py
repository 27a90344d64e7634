"""Old and new text of a file as a git patch, and back where the patch tells everything."""

from difflib import unified_diff
from typing import Final

from msgspec import UNSET

from dragoman.vocabulary.tools import FileChange

# Above this a line-by-line comparison costs seconds; the whole file is shown as replaced instead.
COMPARED_LINES: Final = 4_000
_NO_NEWLINE: Final = "\\ No newline at end of file\n"


def git_patch(change: FileChange) -> str | None:
    """The patch of one change, with absolute paths; None where the texts are not known."""
    if not isinstance(change.new_text, str) or change.old_text is UNSET:
        return None
    old = change.old_text if isinstance(change.old_text, str) else None
    name = change.path.lstrip("/")
    before = "/dev/null" if old is None else f"a/{name}"
    head = f"diff --git a/{name} b/{name}\n" + ("new file mode 100644\n" if old is None else "")
    lines = _hunks((old or "").splitlines(keepends=True), change.new_text.splitlines(keepends=True))
    if not lines:
        return head
    return head + f"--- {before}\n+++ b/{name}\n" + "".join(lines)


def _hunks(old: list[str], new: list[str]) -> list[str]:
    if old == new:
        return []
    if len(old) + len(new) > COMPARED_LINES:
        lines = [f"@@ -{_span(len(old))} +{_span(len(new))} @@\n"]
        lines += [f"-{line}" for line in old] + [f"+{line}" for line in new]
    else:
        lines = list(unified_diff(old, new))[2:]
    return [line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in lines]


def _span(count: int) -> str:
    return f"{min(count, 1)},{count}"
