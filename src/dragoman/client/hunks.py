"""The texts that stand in the hunks of a unified patch. Pure.

Agents that speak version 2 show a change as a patch and not as two texts. A question that shows the patch shows these
texts, so it need not show them a second time as the tool's input.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

_HEADER: Final = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NO_NEWLINE: Final = "\\"


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
