"""The texts that stand in the hunks of a unified patch, and what a tool's own patch says beside them. Pure.

Agents that speak version 2 show a change as a patch and not as two texts. A question that shows the patch shows these
texts, so it need not show them a second time as the tool's input.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

_HEADER: Final = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NO_NEWLINE: Final = "\\"
# Of the form that models of OpenAI write for `apply_patch`.
_BEGIN: Final = "*** Begin Patch"
_MARKS: Final = (_BEGIN, "*** End Patch", "*** End of File", "@@", "")


def hunk_texts(patch: str) -> Iterator[str]:
    """Yield the old and the new text of every hunk that is as long as its header says."""
    lines = patch.split("\n")
    for at, line in enumerate(lines):
        if header := _HEADER.match(line):
            yield from _sides(lines, at + 1, int(header[1] or 1), int(header[2] or 1))


def _sides(lines: Sequence[str], at: int, old_count: int, new_count: int) -> Iterator[str]:
    """Return the two texts of the hunk that begins at line `at`; none where its lines are not those announced."""
    old: list[str] = []
    new: list[str] = []
    last: tuple[list[str], ...] = ()
    for line in lines[at:]:
        if line.startswith(_NO_NEWLINE):
            for side in last:
                side[-1] = side[-1].removesuffix("\n")
            continue
        if (len(old), len(new)) == (old_count, new_count):
            break
        last = {"-": (old,), "+": (new,), " ": (old, new)}.get(line[:1], ())
        for side in last:
            side.append(f"{line[1:]}\n")
        if not last or len(old) > old_count or len(new) > new_count:
            return
    if (len(old), len(new)) == (old_count, new_count):
        yield "".join(old)
        yield "".join(new)


def untold_lines(patch: str, texts: Sequence[str]) -> str:
    """Return of a patch for `apply_patch` the lines that none of the texts has, such as its files; of others all."""
    lines = patch.strip().split("\n")
    if lines[0] != _BEGIN:
        return patch
    told = {line for text in texts for line in text.split("\n")}
    return "\n".join(line for line in lines if line not in _MARKS and not _is_told(line, told))


def _is_told(line: str, told: "set[str]") -> bool:
    return line.removeprefix("@@ ") in told if line.startswith("@@ ") else line[:1] in "+- " and line[1:] in told
