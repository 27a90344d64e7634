"""A text as lines with their ends, so that an edit changes what it is about and no line end beside it.

A line ends with `\\n` or `\\r\\n` and with nothing else: that is how editors, git and ripgrep count lines. Pure.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

BYTE_ORDER_MARK: Final = "\ufeff"


class FileLines(NamedTuple):
    """The lines of a text without their ends, and the ends: `\\n`, `\\r\\n`, or nothing behind the last line."""

    bodies: list[str]
    ends: list[str]

    @property
    def usual_end(self) -> str:
        """The end that most lines have; `\\n` where there is none."""
        counts = Counter(end for end in self.ends if end)
        return counts.most_common(1)[0][0] if counts else "\n"

    def join(self) -> str:
        """Return the text again."""
        return "".join(body + end for body, end in zip(self.bodies, self.ends, strict=True))


def split_lines(text: str) -> FileLines:
    """Return a text as lines. A text that ends with a line end has no empty line behind it."""
    parts = text.split("\n")
    last = parts.pop()
    ends = ["\r\n" if part.endswith("\r") else "\n" for part in parts]
    bodies = [part[:-1] if part.endswith("\r") else part for part in parts]
    return FileLines([*bodies, last], [*ends, ""]) if last else FileLines(bodies, ends)


def flat(text: str) -> str:
    """Return a text with `\\n` at the end of every line."""
    return text.replace("\r\n", "\n")


class FlatText:
    """A text with `\\n` alone, which remembers what stood at the end of each line."""

    def __init__(self, text: str) -> None:
        self.text: Final = flat(text)
        self._original: Final = text
        self._has_returns: Final = len(self.text) < len(text)
        self._starts: list[int] | None = None
        self._returns: list[int] = []

    def line_of(self, offset: int) -> int:
        """Return the line of an offset in the flat text, counted from 1."""
        return self.text.count("\n", 0, offset) + 1

    def original_offset(self, offset: int) -> int:
        """Return where an offset of the flat text lies in the text itself."""
        if not self._has_returns:
            return offset
        if self._starts is None:
            ends = split_lines(self._original).ends
            lengths = [len(line) + 1 for line in self.text.split("\n")]
            self._starts = [0, *accumulate(lengths)][:-1]
            self._returns = [0, *accumulate(end == "\r\n" for end in ends)]
        line = bisect_right(self._starts, offset) - 1
        return offset + self._returns[min(line, len(self._returns) - 1)]


def with_ends(lines: Sequence[str], replaced: Sequence[tuple[str, str]], usual: str) -> str:
    """Return new lines joined, each with the end of the line that it replaces or equals, a new one with the first end.

    `lines` are the pieces between line ends, so the last one gets none. `replaced` are the old pieces with their ends.
    """
    head = 0
    while head < min(len(lines), len(replaced)) and lines[head] == replaced[head][0]:
        head += 1
    tail = 0
    while tail < min(len(lines), len(replaced)) - head and lines[-tail - 1] == replaced[-tail - 1][0]:
        tail += 1
    is_one_for_one = len(lines) == len(replaced)
    first = next((end for _, end in replaced[head:] if end), next((end for _, end in replaced if end), usual))
    ends = [replaced[at][1] if at < head or is_one_for_one else first for at in range(len(lines) - tail)]
    ends += [end for _, end in replaced[len(replaced) - tail :]]
    return "".join([line + (end or first) for line, end in zip(lines[:-1], ends, strict=False)] + [lines[-1]])
