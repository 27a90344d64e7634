"""How the indentation of a model's lines becomes that of the file, learned from lines that both have.

`IndentMap.learn` is given pairs: how a line is indented in the old text of the edit, and in the file. It answers for
the lines of the new text, or says that it does not know. It knows

- the same indentation, where all pairs are the same;
- a shift: every line of the file has the same white space more, or less, than the model's;
- a scale: tabs for spaces, or steps of another width. One depth fixes a scale only if it is a usual one (2, 3, 4 or 8
  columns for a tab); two depths fix it and a shift with it;
- what it has seen, if deeper in one is deeper in the other.

The first line may have none in the old text where all others are as the file has them: models and their servers strip
the ends of a text. Everything else is not known, and then an edit is refused. Pure.
"""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Final

_TAB_WIDTHS: Final = (2, 3, 4, 8)
# A file shows its style in its first lines.
_STEP_LINES: Final = 5_000
_STEPS: Final = (Fraction(2), Fraction(1, 2))


def indent_of(line: str) -> str:
    """Return the white space at the beginning of a line."""
    return line[: len(line) - len(line.lstrip())]


def usual_step(bodies: Sequence[str]) -> int:
    """Return by how many spaces the lines of a file usually go deeper; 0: they do not, or have tabs."""
    deeper: Counter[int] = Counter()
    before = 0
    for body in bodies[:_STEP_LINES]:
        if body and not body.isspace() and "\t" not in (indent := indent_of(body)):
            deeper[len(indent) - before] += len(indent) > before
            before = len(indent)
    found = deeper.most_common(1)
    return found[0][0] if found and found[0][1] else 0


class IndentMap:
    """What an indentation of the model's text is in the file."""

    def __init__(self, answers: dict[str, str], first: str = "") -> None:
        """`answers` has every indentation that was asked for and is known; `first` is that of a stripped first line."""
        self._answers = answers
        self._first = first

    @classmethod
    def learn(cls, pairs: Sequence[tuple[str, str]], wanted: Sequence[str], step: int = 0) -> "IndentMap":
        """Learn from pairs of old and file indentation what the `wanted` ones of the new text are in the file.

        `step` is the number of spaces by which the file goes deeper; 0: unknown.
        """
        asked = list(dict.fromkeys(wanted))
        answers = _solve(list(dict.fromkeys(pairs)), asked, step)
        if answers is None and len(pairs) > 1 and not pairs[0][0] and pairs[0][1]:
            rest = _solve(list(dict.fromkeys(pairs[1:])), asked, step)
            if rest is not None:
                return cls(rest, pairs[0][1])
        return cls(answers or {})

    def of(self, indent: str, *, is_first: bool = False) -> str | None:
        """Return the file's indentation for a line of the new text; None: it is not known."""
        if is_first and not indent and self._first:
            return self._first
        return self._answers.get(indent)


def _solve(pairs: list[tuple[str, str]], wanted: list[str], step: int) -> dict[str, str] | None:
    """Return the answers of the first rule that all pairs follow; None: no rule fits."""
    if not pairs:
        return {indent: indent for indent in wanted}
    is_scaled = len(pairs) == 1 and "\t" not in pairs[0][0] + pairs[0][1] and _is_rather_scaled(pairs[0], wanted, step)
    rules = (_same, _scale, _shift, _seen) if is_scaled else (_same, _shift, _scale, _seen)
    for rule in rules:
        answers = rule(pairs, wanted)
        if answers is not None:
            return answers
    return None


def _same(pairs: list[tuple[str, str]], wanted: list[str]) -> dict[str, str] | None:
    return {indent: indent for indent in wanted} if all(old == found for old, found in pairs) else None


def _shift(pairs: list[tuple[str, str]], wanted: list[str]) -> dict[str, str] | None:
    old, found = pairs[0]
    if found.endswith(old):
        more = found[: len(found) - len(old)]
        if all(found == more + old for old, found in pairs):
            return _if_clean({indent: more + indent for indent in wanted}, pairs)
    if old.endswith(found):
        less = old[: len(old) - len(found)]
        if all(old == less + found for old, found in pairs):
            kept = {indent: indent[len(less) :] for indent in wanted if indent.startswith(less)}
            return _if_clean(kept, pairs)
    return None


def _if_clean(answers: dict[str, str], pairs: list[tuple[str, str]]) -> dict[str, str] | None:
    """Return the answers of a shift unless they mix tabs and spaces where the file does not.

    Spaces behind the tabs of a shift are what a model writes that does not see tabs: a scale, and no shift.
    """
    has_mixed_lines = any(_is_mixed(found) for _, found in pairs)
    return answers if has_mixed_lines or not any(map(_is_mixed, answers.values())) else None


def _is_mixed(indent: str) -> bool:
    return "\t" in indent and " " in indent


def _is_rather_scaled(pair: tuple[str, str], wanted: list[str], step: int) -> bool:
    """Return whether one pair of spaces is a scale: the new lines fit the steps of the file as a scale, and only so."""
    old, found = len(pair[0]), len(pair[1])
    if not step or not old or Fraction(found, old) not in _STEPS:
        return False
    offsets = [len(indent) - old for indent in wanted]
    return any(offset % step for offset in offsets) and not any(offset * found % (old * step) for offset in offsets)


def _scale(pairs: list[tuple[str, str]], wanted: list[str]) -> dict[str, str] | None:
    sign = _sign_of([found for _, found in pairs])
    old_sign = _sign_of([old for old, _ in pairs] + wanted)
    if sign is None or old_sign is None:
        return None
    points = sorted({(len(old), len(found)) for old, found in pairs})
    factor, offset = _line_through(points, is_same_sign=sign == old_sign)
    if factor is None or any(factor * old + offset != found for old, found in points):
        return None
    answers: dict[str, str] = {}
    for indent in wanted:
        width = factor * len(indent) + offset
        if width.denominator != 1 or width < 0:
            continue
        answers[indent] = sign * int(width)
    return answers


def _sign_of(indents: Sequence[str]) -> str | None:
    """Return the one character that all indentation is made of; None where there are two."""
    signs = set("".join(indents))
    return None if len(signs) > 1 else next(iter(signs), " ")


def _line_through(points: list[tuple[int, int]], *, is_same_sign: bool) -> tuple[Fraction | None, Fraction]:
    """Return factor and offset of the line through the points; a factor None: they do not fix one."""
    known = [point for point in points if point != (0, 0)]
    if not known:
        return None, Fraction(0)
    if len(points) > 1:
        (first, low), (last, high) = points[0], points[-1]
        if first == last or high <= low:
            return None, Fraction(0)
        factor = Fraction(high - low, last - first)
        return factor, low - factor * first
    old, found = points[0]
    if not old or not found:
        return None, Fraction(0)
    factor = Fraction(found, old)
    usual = (
        _STEPS if is_same_sign else tuple(Fraction(w) for w in _TAB_WIDTHS) + tuple(Fraction(1, w) for w in _TAB_WIDTHS)
    )
    return (factor if factor in usual else None), Fraction(0)


def _seen(pairs: list[tuple[str, str]], wanted: list[str]) -> dict[str, str] | None:
    """Return what was seen, if deeper in the old text is deeper in the file, and no depth is two."""
    known = dict(pairs)
    if len(known) < len(pairs):
        return None
    depths = sorted((len(old.expandtabs(8)), len(found.expandtabs(8))) for old, found in pairs)
    for (old, found), (next_old, next_found) in pairwise(depths):
        if next_old <= old or next_found <= found:
            return None
    return {indent: known[indent] for indent in wanted if indent in known}
