"""Markdown that comes in pieces, cut into blocks that can be shown for good while the rest still comes.

A block ends at an empty line, or with its fence. A list goes on over empty lines while its items do. What has no end
within a bound is ended there: a block is laid out as a whole, and that must not take long.
"""

import re
from typing import Final, NamedTuple

from dragoman.cli.terminal.sanitize import LINE_LENGTH

# Prose seldom has paragraphs of a tenth of this; laying out more than this takes a noticeable time.
BLOCK_LENGTH: Final = 16 * 1024
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})([^`\n]*)$")
_ITEM: Final = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)")


class Block(NamedTuple):
    """Some text, to be laid out as Markdown or to be shown as it is."""

    text: str
    markdown: bool = True


class Blocks:
    """Text in, whole blocks out."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._length = 0
        self._rest = ""
        self._fence = ""
        self._opened = ""
        self._blank = False

    @property
    def tail(self) -> str:
        """What has not come to an end yet."""
        return "\n".join([*self._lines, self._rest])

    def feed(self, text: str) -> list[Block]:
        """Add text; return the blocks that are whole now."""
        lines = (self._rest + text).split("\n")
        self._rest = lines.pop()
        found: list[Block] = []
        for line in lines:
            self._take(line, found)
        if len(self._rest) > LINE_LENGTH:
            self._end(found)
            found.append(Block(self._rest, markdown=False))
            self._rest = ""
        return found

    def finish(self) -> list[Block]:
        """Return the blocks that are left at the end of the text."""
        found: list[Block] = []
        rest, self._rest = self._rest, ""
        if rest:
            self._take(rest, found)
        self._fence = self._opened = ""
        self._end(found)
        return found

    def _take(self, line: str, found: list[Block]) -> None:
        if len(line) > LINE_LENGTH:
            self._end(found)
            found.append(Block(line, markdown=False))
            return
        if self._fence:
            self._add(line)
            if line.strip().startswith(self._fence) and not line.strip().strip(self._fence[0]):
                self._fence = self._opened = ""
                if not self._in_list():
                    self._end(found)
        elif not line.strip():
            self._blank = True
        else:
            if self._blank and not (self._in_list() and (line.startswith("  ") or _ITEM.match(line))):
                self._end(found)
            self._open_fence(line, found)
        if self._length > BLOCK_LENGTH:
            self._cut(found)

    def _open_fence(self, line: str, found: list[Block]) -> None:
        opening = _FENCE.match(line)
        if opening is not None:
            if not self._in_list():
                self._end(found)
            self._fence, self._opened = opening[1], line
        self._add(line)

    def _add(self, line: str) -> None:
        if self._blank and self._lines:
            self._lines.append("")
        self._blank = False
        self._lines.append(line)
        self._length += len(line) + 1

    def _in_list(self) -> bool:
        return bool(self._lines) and _ITEM.match(self._lines[0]) is not None

    def _cut(self, found: list[Block]) -> None:
        """End a block that is too long, and go on with another of the same kind."""
        fence, opened = self._fence, self._opened
        if fence:
            self._lines.append(fence)
        self._end(found)
        if fence:
            self._fence, self._opened = fence, opened
            self._add(opened)

    def _end(self, found: list[Block]) -> None:
        if self._lines:
            found.append(Block("\n".join(self._lines)))
        self._lines, self._length, self._blank = [], 0, False
