"""Find the one place that an edit means, and compute the text that results: `find_edit`.

An edit is an old text and a new one, as a model wrote them. The old text should be in the file exactly once. Where it
is not, models have often changed what does not show: white space, indentation, line ends, quotes. The stages go from
exact to tolerant, and the first that finds anything decides: one place is taken, several are refused.

1. exact, with the line ends of the file
2. the levels of `matching`, for whole lines
3. without line numbers, if all lines have some and the file has these lines there
4. without one level of escapes (`\\n`, `\\"`), if that is in the file exactly, and the new text has no other escapes
5. without the lines that a mark such as `# ... existing code ...` stands for, if both texts have the same marks and
   every piece between them has one place, in this order

A wrong edit is worse than a refused one. So a place that is not unique is refused, a result that is not certain is
refused (`compose.Doubtful`), and words are never matched by likeness: an old text that has another word than the file
is not in it. The refusal tells the nearest place with its difference. Every stage is linear in the file. Pure.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dragoman.coder.edits.compose import Doubtful, ReplacedLines, replace_lines
from dragoman.coder.edits.indentation import IndentMap, indent_of
from dragoman.coder.edits.lines import BYTE_ORDER_MARK, FileLines, FlatText, flat, split_lines, with_ends
from dragoman.coder.edits.matching import MOST_PLACES, SeveralPlaces, match_lines, occurrences
from dragoman.coder.edits.nearest import NearestPlace, nearest_place

EXACT: Final = "exact"
# A file of more is looked through for the exact text alone: it is no source that a model has read.
MOST_LINES: Final = 200_000
# Of lines left out in one edit; each piece between two of them is a search.
_MOST_ELISIONS: Final = 20
_NUMBERED: Final = re.compile(r"\s*(\d+)(?:\t|\s?[|:→]\s?|\s*→)(.*)")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
# Without the mark of a comment nothing may stand beside the dots: `...args` is code.
_ELISION: Final = re.compile(
    r"\s*(?:[(\[]?\s*(?:\.{3}|…)\s*[)\]]?"
    r"|(?:#+|//+|--+|/\*+|<!--|;+|%+|\{/\*)\s*[(\[]?\s*(?:\.{3}|…)[^\n]{0,100})\s*"
)
# A remark in place of code: nothing that a programmer leaves in a file.
_PLACEHOLDER: Final = re.compile(
    r"\s*(?:#+|//+|--+|/\*+|<!--|;+|%+|\{/\*)\s*\(?\s*(?:"
    r"(?:\.{3}|…)\s*[^\n]{0,40}\b(?:existing|unchanged|remaining|rest|same|previous|other|omitted)\b[^\n]{0,60}"
    r"|(?:the\s+)?(?:rest|remainder)\s+of\s+(?:the\s+)?[^\n]{0,40}(?:unchanged|same|here|\.{3}|…)[^\n]{0,20}"
    r"|(?:existing|remaining|previous|unchanged)\s+(?:code|lines|methods|functions|content|imports)\b[^\n]{0,40}"
    r"(?:\.{3}|…|unchanged|same|here)[^\n]{0,20}"
    r")",
    re.IGNORECASE,
)


class Applied(NamedTuple):
    """The whole text with the edit made. `how` names the stage; `times` is how often it was made."""

    result: str
    how: str
    times: int = 1


class NotFound(NamedTuple):
    """The old text has no place, or its result is not certain; `reason` says more, where more is known."""

    nearest: NearestPlace | None
    reason: str = ""


class Ambiguous(NamedTuple):
    """The old text has several places: the lines where the first of them begin, counted from 1, and how many."""

    lines: list[int]
    places: int
    how: str = EXACT


EditResult = Applied | NotFound | Ambiguous


def find_edit(text: str, old: str, new: str, *, replace_all: bool = False) -> EditResult:
    """Return the text with `old` replaced by `new`, or why that is not certain. `old` must not be empty."""
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    old, new = old.removeprefix(BYTE_ORDER_MARK), new.removeprefix(BYTE_ORDER_MARK)
    body = text[len(mark) :]
    try:
        found = _find(body, flat(old), flat(new), replace_all=replace_all)
    except Doubtful as doubt:
        is_small = body.count("\n") <= MOST_LINES
        nearest = nearest_place(split_lines(body).bodies, split_lines(flat(old)).bodies) if is_small else None
        found = NotFound(nearest, str(doubt))
    return found._replace(result=mark + found.result) if isinstance(found, Applied) else found


def _find(text: str, old: str, new: str, *, replace_all: bool) -> EditResult:
    source = FlatText(text)
    placeholder = _placeholder(source.text, old, new)
    if placeholder:
        raise Doubtful(f"new_string has {placeholder!r} in the place of code; write the code itself, or leave it out")
    found = _exact(source, text, old, new, replace_all=replace_all)
    if found is not None or not old.strip():
        return found or NotFound(None)
    if source.text.count("\n") > MOST_LINES:
        return NotFound(None, f"it is not there exactly, and the file has more than {MOST_LINES:,} lines")
    file = split_lines(text)
    return (
        _by_lines(file, old, new)
        or _without_numbers(source, text, old, new)
        or _without_escapes(source, text, old, new)
        or _elided(file, old, new)
        or NotFound(nearest_place(file.bodies, split_lines(old).bodies))
    )


def _placeholder(text: str, old: str, new: str) -> str:
    """Return a line of the new text that stands for code, and that neither the old text nor the file has."""
    for line in new.split("\n"):
        if _PLACEHOLDER.match(line) and line.strip() not in old and line.strip() not in text:
            return line.strip()
    return ""


# -- exact -------------------------------------------------------------------------------------------------------------


def _exact(source: FlatText, text: str, old: str, new: str, *, replace_all: bool) -> EditResult | None:
    places = occurrences(source.text, old)
    if not places:
        return None
    if replace_all:
        return _replace_every(source, text, old, new)
    if len(places) > 1:
        return Ambiguous([source.line_of(at) for at in places[:MOST_PLACES]], len(places))
    start, end = places[0], places[0] + len(old)
    elsewhere = _less_indented(source.text, start, old)
    if elsewhere is not None:
        return elsewhere
    start, end, new = _whole_lines(source.text, start, end, old, new)
    return Applied(_spliced(source, text, [(start, end)], new), EXACT)


def _less_indented(text: str, start: int, old: str) -> Ambiguous | None:
    """Return all places of lines that stand deeper in the file than in the old text, if some are less deep.

    Then the text is in the file once only because its indentation is a part of that of one line.
    """
    begin = text.rfind("\n", 0, start) + 1
    if begin == start or text[begin:start].strip() or old[0] not in " \t" or text.count("\n") > MOST_LINES:
        return None
    stripped, piece = ("\n".join(["", *map(str.strip, split_lines(one).bodies), ""]) for one in (text, old))
    places = occurrences(stripped, piece)
    if len(places) < 2:
        return None
    return Ambiguous([stripped.count("\n", 0, at) + 1 for at in places[:MOST_PLACES]], len(places), "white space")


def _replace_every(source: FlatText, text: str, old: str, new: str) -> Applied:
    places: list[tuple[int, int]] = []
    at = source.text.find(old)
    while at >= 0:
        places.append((at, at + len(old)))
        at = source.text.find(old, at + len(old))
    return Applied(_spliced(source, text, places, new), EXACT, len(places))


def _spliced(source: FlatText, text: str, places: Sequence[tuple[int, int]], new: str) -> str:
    """Return the text with these places of the flat text replaced, and with its line ends."""
    if len(source.text) == len(text):
        pieces, reached = list[str](), 0
        for start, end in places:
            pieces += [text[reached:start], new]
            reached = end
        return "".join([*pieces, text[reached:]])
    pieces, reached = [], 0
    usual = split_lines(text).usual_end
    for start, end in places:
        first, last = source.original_offset(start), source.original_offset(end)
        replaced = split_lines(text[first:last])
        old_pieces = list(zip(replaced.bodies, replaced.ends, strict=True))
        if not replaced.ends or replaced.ends[-1]:
            old_pieces.append(("", ""))
        pieces += [text[reached:first], with_ends(new.split("\n"), old_pieces, usual)]
        reached = last
    return "".join([*pieces, text[reached:]])


def _whole_lines(text: str, start: int, end: int, old: str, new: str) -> tuple[int, int, str]:
    """Return the place and the new text, where the old text is whole lines and the model has left out white space.

    Three things are certain then: new lines do not run into the line behind them; to delete all of a line is to delete
    its end as well; and an indentation that is the end of a longer one was meant as a whole.
    """
    begin = text.rfind("\n", 0, start) + 1
    if text[begin:start].strip():
        return start, end, new
    if old.endswith("\n") and new and not new.endswith("\n"):
        return start, end, f"{new}\n"
    if not new and not old.endswith("\n") and text[end : end + 1] in ("\n", ""):
        return begin, end + 1 if end < len(text) else end, new
    if start > begin and old[0] in " \t" and "\n" not in old.strip("\n") and "\n" in new:
        return start, end, _shifted(text[begin:start], old, new)
    return start, end, new


def _shifted(more: str, old: str, new: str) -> str:
    """Return new lines with the indentation that the file has before the old text. Raises `Doubtful`."""
    indents = [indent_of(line) for line in new.split("\n") if line.strip()]
    known = IndentMap.learn([(indent_of(old), more + indent_of(old))], indents)
    lines: list[str] = []
    for line in new.split("\n"):
        indent = known.of(indent_of(line)) if line.strip() else ""
        if indent is None:
            raise Doubtful("its indentation is not that of the file, and it is not certain how to indent the new lines")
        lines.append(indent + line.lstrip() if line.strip() else line)
    return "\n".join(lines).removeprefix(more)


# -- tolerant ----------------------------------------------------------------------------------------------------------


def _by_lines(file: FileLines, old: str, new: str) -> EditResult | None:
    old_lines, new_lines = split_lines(old).bodies, split_lines(new).bodies
    match = match_lines(file.bodies, old_lines)
    if match is None:
        return None
    if isinstance(match, SeveralPlaces):
        return Ambiguous([line + 1 for line in match.lines], match.places, "white space")
    return _written(file, [replace_lines(file, match, old_lines, new_lines)], match.level)


def _written(file: FileLines, parts: Sequence[ReplacedLines], how: str) -> Applied:
    """Return the file with some of its lines replaced, in order."""
    bodies, ends, reached = list[str](), list[str](), 0
    for part in parts:
        bodies += [*file.bodies[reached : part.start], *part.bodies]
        ends += [*file.ends[reached : part.start], *part.ends]
        reached = part.end
    return Applied(FileLines([*bodies, *file.bodies[reached:]], [*ends, *file.ends[reached:]]).join(), how)


def _without_numbers(source: FlatText, text: str, old: str, new: str) -> EditResult | None:
    """Make the edit without the line numbers that `read_file` shows, if they are those of the place."""
    numbered = _numbers(old)
    if numbered is None:
        return None
    first, plain = numbered
    places = occurrences(source.text, plain)
    if not places:
        return None
    plain_new = _numbers(new)
    if plain_new is None and any(_NUMBERED.fullmatch(line) for line in new.split("\n")):
        raise Doubtful("line numbers are no part of the file; leave them out of old_string and new_string")
    # Lines that were copied with their numbers are whole lines.
    new = new if plain_new is None else plain_new[1]
    new = new if plain.endswith("\n") else new.removesuffix("\n")
    found = _exact(source, text, plain, new, replace_all=False)
    if isinstance(found, Applied) and source.line_of(places[0]) == first:
        return found._replace(how="line numbers")
    raise Doubtful("line numbers are no part of the file; leave them out of old_string and new_string")


def _numbers(text: str) -> tuple[int, str] | None:
    """Return the first number and the text without them, if every line begins with the number after the one before."""
    lines = text.removesuffix("\n").split("\n")
    found = [_NUMBERED.fullmatch(line) for line in lines]
    numbers = [int(one[1]) for one in found if one is not None and len(one[1]) < 10]
    if len(numbers) < len(lines) or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return None
    plain = "\n".join(one[2] for one in found if one is not None)
    return numbers[0], plain + ("\n" if text.endswith("\n") else "")


def _without_escapes(source: FlatText, text: str, old: str, new: str) -> EditResult | None:
    """Make the edit without one level of escapes, if the file proves that there is one too many."""
    plain, plain_new = _unescaped(old), _unescaped(new)
    if plain is None or plain_new is None or plain == old:
        return None
    if not set(_ESCAPE.findall(new)) <= set(_ESCAPE.findall(old)):
        return None
    found = _exact(source, text, plain, plain_new, replace_all=False)
    return found._replace(how="escapes") if isinstance(found, Applied | Ambiguous) else None


def _unescaped(text: str) -> str | None:
    """Return a text without one level of JSON escapes; None: it has characters that would have been escaped."""
    if '"' in re.sub(r"\\.", "", text, flags=re.DOTALL):
        return None
    try:
        plain = json.loads('"' + text.replace("\\'", "'") + '"', strict=False)
    except ValueError:
        return None
    return plain if isinstance(plain, str) else None


# -- elided lines ------------------------------------------------------------------------------------------------------


def _elided(file: FileLines, old: str, new: str) -> EditResult | None:
    old_pieces, new_pieces = list(_pieces(old)), list(_pieces(new))
    if not 1 < len(old_pieces) <= _MOST_ELISIONS + 1:
        return None
    if len(old_pieces) != len(new_pieces):
        raise Doubtful(
            "old_string leaves lines out, and new_string does not leave out the same; write them, or edit the piece "
            "before and the piece after them in two edits"
        )
    parts: list[ReplacedLines] = []
    reached = 0
    for piece, replacement in zip(old_pieces, new_pieces, strict=True):
        if not any(map(str.strip, piece)):
            if any(map(str.strip, replacement)):
                raise Doubtful("old_string has no line before or after the lines that it leaves out")
            continue
        match = match_lines(file.bodies, piece)
        if isinstance(match, SeveralPlaces):
            raise Doubtful("old_string leaves lines out, and a piece of it is not unique; write these lines")
        if match is None or match.start < reached:
            return None
        parts.append(replace_lines(file, match, piece, replacement))
        reached = match.end
    return _written(file, parts, "elided lines")


def _pieces(text: str) -> Iterator[list[str]]:
    """Yield the lines between the marks that stand for lines left out."""
    piece: list[str] = []
    for line in split_lines(text).bodies:
        if _ELISION.fullmatch(line):
            yield piece
            piece = []
        else:
            piece.append(line)
    yield piece
