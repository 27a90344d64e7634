"""From two versions of a text to the smallest edit of whole lines that is clear."""

from typing import NamedTuple


class Edit(NamedTuple):
    """What `edit_file` is given: `old` is in the text exactly once."""

    old: str
    new: str


def edit(before: str, after: str) -> Edit:
    """The lines that differ, with as many around them as make them unique."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    shorter = min(len(old), len(new))
    head = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    tail = next((n for n in range(shorter - head) if old[-1 - n] != new[-1 - n]), shorter - head)
    while True:
        piece = "".join(old[head : len(old) - tail])
        # Lines that repeat may be found one line early and still be counted once.
        is_here = before.find(piece) == sum(map(len, old[:head]))
        if piece and is_here and before.count(piece) == 1:
            return Edit(piece, "".join(new[head : len(new) - tail]))
        if head == 0 and tail == 0:
            return Edit(before, after)
        head, tail = max(head - 1, 0), max(tail - 1, 0)
