"""The lines that take the place of matched ones, so that nothing changes but what the edit changes.

An edit says "these old lines become these new lines". The old lines are the file's, but for white space or look-alike
characters. So a line that is in both stays byte for byte as the file has it, with its blanks and its line end. A line
that is new or changed is the model's, brought to the file: its indentation by `IndentMap`, its line end, and the
quotes and dashes of the file where the line has kept them.

What cannot be known makes the edit `Doubtful`, and it is not made: a depth that no matched line shows, or plain quotes
in the middle of a text that has typographic ones. Pure.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from dragoman.coder.edits.indentation import IndentMap, indent_of, usual_step
from dragoman.coder.edits.lines import FileLines
from dragoman.coder.edits.matching import DASHES, QUOTES, LineMatch, alike, lines_of, statements_of

# `SequenceMatcher` is quadratic: of larger pieces only the equal lines at both ends are taken as unchanged.
_MOST_COMPARED_LINES: Final = 300
_MOST_COMPARED_CHARACTERS: Final = 1_000
_CLASSES: Final = (("quotes", QUOTES), ("dashes", DASHES))


class Doubtful(Exception):
    """The place of an edit is known and its result is not; the text says why, for the model."""


class ReplacedLines(NamedTuple):
    """New lines for a part of a file, with their ends."""

    start: int
    end: int
    bodies: list[str]
    ends: list[str]


def replace_lines(file: FileLines, match: LineMatch, old: Sequence[str], new: Sequence[str]) -> ReplacedLines:
    """Return what stands in the place of the match once the old lines have become the new ones. Raises `Doubtful`."""
    is_by_statement = match.level == "line breaks"
    new_units = statements_of(new) if is_by_statement else lines_of(new)
    writer = _Writer(file, match, old, new)
    old_keys = [_joined(old, unit) for unit in match.units]
    for tag, first, last, low, high in _changes(old_keys, [_joined(new, unit) for unit in new_units]):
        if tag == "equal":
            writer.keep(first, last)
        elif low < high:
            writer.write((first, last), (new_units[low][0], new_units[high - 1][1]))
    return writer.result()


def _joined(lines: Sequence[str], unit: tuple[int, int]) -> str:
    return "\n".join(line.rstrip() for line in lines[slice(*unit)])


def _changes(old: list[str], new: list[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield what is equal and what is not, as `SequenceMatcher.get_opcodes` does, for large pieces in a simple way."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-tail - 1] == new[-tail - 1]:
        tail += 1
    old_end, new_end = len(old) - tail, len(new) - tail
    if head:
        yield "equal", 0, head, 0, head
    if max(old_end, new_end) - head > _MOST_COMPARED_LINES:
        yield "replace", head, old_end, head, new_end
    else:
        matcher = SequenceMatcher(None, old[head:old_end], new[head:new_end], autojunk=False)
        for tag, first, last, low, high in matcher.get_opcodes():
            yield tag, first + head, last + head, low + head, high + head
    if tail:
        yield "equal", old_end, len(old), new_end, len(new)


class _Writer:
    """Collects the lines of a replacement."""

    def __init__(self, file: FileLines, match: LineMatch, old: Sequence[str], new: Sequence[str]) -> None:
        self._file = file
        self._match = match
        self._old = old
        self._new = new
        self._bodies: list[str] = []
        self._ends: list[str] = []
        ends = [end for end in file.ends[match.start : match.end] if end]
        self._end = ends[0] if ends else file.usual_end
        self._first = next((at for at, line in enumerate(new) if line.strip()), 0)
        pairs = list(self._pairs())
        wanted = [indent_of(line) for line in new if line.strip()]
        step = usual_step(file.bodies) if len(set(pairs)) == 1 else 0
        if match.level == "white space":
            pairs = []
        self._indents = IndentMap.learn(pairs, wanted, step)
        self._translation = self._learn_characters()

    def _pairs(self) -> Iterator[tuple[str, str]]:
        """Yield the indentation of each unit of the old text and of the file."""
        for unit, span in zip(self._match.units, self._match.spans, strict=True):
            if span[0] < span[1] and self._old[unit[0]].strip():
                yield indent_of(self._old[unit[0]]), indent_of(self._file.bodies[span[0]])

    def _learn_characters(self) -> dict[int, str]:
        """Return what the model wrote for plain characters of the file, if it did so throughout."""
        seen: dict[str, set[str]] = {}
        for old, found in self._line_pairs(range(len(self._match.units))):
            for one, other in zip(old, found, strict=True):
                if not (one.isascii() and other.isascii()):
                    seen.setdefault(one, set()).add(other)
        return {
            ord(one): next(iter(others))
            for one, others in seen.items()
            if len(others) == 1 and not one.isascii() and all(other.isascii() for other in others)
        }

    def _line_pairs(self, units: Sequence[int]) -> Iterator[tuple[str, str]]:
        """Yield old lines and lines of the file, stripped, that are the same but for look-alike characters."""
        for at in units:
            (first, last), (low, high) = self._match.units[at], self._match.spans[at]
            if last - first == 1 and low < high:
                old, found = self._old[first].strip(), self._file.bodies[low].strip()
                if len(old) == len(found) and alike(old) == alike(found):
                    yield old, found

    def keep(self, first: int, last: int) -> None:
        """Take the file's lines of these units."""
        low, high = self._match.spans[first][0], self._match.spans[last - 1][1]
        self._bodies += self._file.bodies[low:high]
        self._ends += [end or self._end for end in self._file.ends[low:high]]

    def write(self, replaced: tuple[int, int], lines: tuple[int, int]) -> None:
        """Write new lines for these old units, which may be none."""
        units = range(*replaced)
        kept = self._kept_characters(units, lines)
        low, high = (self._match.spans[units[0]][0], self._match.spans[units[-1]][1]) if units else (0, 0)
        line_end = next((end for end in self._file.ends[low:high] if end), self._end)
        for at in range(*lines):
            line = self._new[at]
            if line.strip():
                body = kept.get(at) or line.strip().translate(self._translation)
                line = self._indentation(at) + body + line[len(line.rstrip()) :]
            self._bodies.append(line)
            self._ends.append(line_end)
        self._check_characters(units, lines, kept)

    def _indentation(self, at: int) -> str:
        indent = indent_of(self._new[at])
        found = self._indents.of(indent, is_first=at == self._first)
        if found is None:
            raise Doubtful(
                "its indentation is not that of the file, and it is not certain how the new lines are to be indented"
            )
        return found

    def _kept_characters(self, units: range, lines: tuple[int, int]) -> dict[int, str]:
        """Return the new lines that replace as many old ones, with the characters of the file where they are kept."""
        if len(units) != lines[1] - lines[0] or self._match.level not in ("characters",):
            return {}
        kept: dict[int, str] = {}
        for at, line in zip(units, range(*lines), strict=True):
            for old, found in self._line_pairs([at]):
                if old != found and len(old) <= _MOST_COMPARED_CHARACTERS:
                    kept[line] = _with_characters_of(old, found, self._new[line].strip(), self._translation)
        return kept

    def _check_characters(self, units: range, lines: tuple[int, int], kept: dict[int, str]) -> None:
        """Raise `Doubtful` if plain quotes or dashes would stand where the file has typographic ones."""
        spans = [self._match.spans[at] for at in units]
        before = "".join(line for low, high in spans for line in self._file.bodies[low:high])
        old = "".join(line for at in units for line in self._old[slice(*self._match.units[at])])
        for name, table in _CLASSES:
            typographic, plain = set(map(chr, table)), set(table.values())
            if not typographic & set(before) or typographic & set(old):
                continue
            for at in range(*lines):
                written = kept.get(at, self._new[at])
                if plain & set(written) and (at not in kept or not plain & set(before)):
                    raise Doubtful(f"the file has typographic {name} there, and the edit has plain ones")

    def result(self) -> ReplacedLines:
        """Return what was collected; at the end of the file, without a line end where it had none."""
        start, end = self._match.start, self._match.end
        if self._ends and end == len(self._file.bodies) and not self._file.ends[-1]:
            self._ends[-1] = ""
        return ReplacedLines(start, end, self._bodies, self._ends)


def _with_characters_of(old: str, found: str, new: str, translation: dict[int, str]) -> str:
    """Return the new line with the file's characters for all that it has in common with the old line."""
    pieces: list[str] = []
    matcher = SequenceMatcher(None, old, new[:_MOST_COMPARED_CHARACTERS], autojunk=False)
    for tag, first, last, low, high in matcher.get_opcodes():
        pieces.append(found[first:last] if tag == "equal" else new[low:high].translate(translation))
    return "".join(pieces) + new[_MOST_COMPARED_CHARACTERS:]
