"""The place of a file that is most like a text that is not in it, with the difference: what a model needs to try again.

Linear in the file: every line gets points for the words that it shares with the text, rare words more of them, and the
window with the most points wins. Only that window is compared by `difflib`, which is quadratic. Pure.
"""

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

# What is shown of a difference.
_SHOWN_LINES: Final = 60
_SHOWN_CHARACTERS: Final = 4_000
_COMPARED_LINES: Final = 200
_LINE_CHARACTERS: Final = 300
_NAMES: Final = re.compile(r"\w+")
_WORDS: Final = re.compile(r"\w+|[^\w\s]")
# A line that is the same but for its indentation tells more than words that it shares.
_SAME_LINE: Final = 3.0
# With less of the text's weight in common, no place is near.
_LEAST_SHARE: Final = 0.3
_DEEPEST_LINE: Final = 2_000


class NearestPlace(NamedTuple):
    """Lines of the file, counted from 1 and both included, and how they differ from the text: `-` text, `+` file."""

    first: int
    last: int
    difference: str


def nearest_place(file: Sequence[str], old: Sequence[str]) -> NearestPlace | None:
    """Return the lines that are most like the old ones; None: nothing is like them."""
    wanted = [line for line in old if line.strip()][:_COMPARED_LINES]
    if not wanted or not file:
        return None
    scores = _scores(file, wanted)
    size = min(len(old), _COMPARED_LINES, len(file))
    total = sum(scores[:size])
    best, best_at = total, 0
    for at in range(1, len(file) - size + 1):
        total += scores[at + size - 1] - scores[at - 1]
        if total > best + 1e-9:
            best, best_at = total, at
    if best < _LEAST_SHARE * sum(_scores(wanted, wanted)) / (1 + _SAME_LINE) and not any(
        line.strip() in {one.strip() for one in wanted} for line in file[best_at : best_at + size]
    ):
        return None
    first, last = _trimmed(file, wanted, best_at, best_at + size)
    return NearestPlace(first + 1, last, _difference(old[:_COMPARED_LINES], file[first:last]))


def _scores(file: Sequence[str], wanted: Sequence[str]) -> list[float]:
    """Return for every line of the file how much it shares with the wanted lines."""
    words = {word for line in wanted for word in _WORDS.findall(line[:_DEEPEST_LINE])}
    lines = {line.strip() for line in wanted}
    shared = [words.intersection(_WORDS.findall(line[:_DEEPEST_LINE])) if line else set() for line in file]
    counts = Counter(word for found in shared for word in found)
    return [
        sum(1 / counts[word] for word in found) * (1 + _SAME_LINE * (line.strip() in lines))
        for line, found in zip(file, shared, strict=True)
    ]


def _trimmed(file: Sequence[str], wanted: Sequence[str], first: int, last: int) -> tuple[int, int]:
    """Move the window so that it begins and ends with a line that has something in common, where that is possible."""
    words = {word for line in wanted for word in _NAMES.findall(line[:_DEEPEST_LINE])}
    lines = {line.strip() for line in wanted}

    def is_near(line: str) -> bool:
        return line.strip() in lines or bool(words.intersection(_NAMES.findall(line[:_DEEPEST_LINE])))

    while last - first > 1 and not is_near(file[first]):
        first += 1
    while last - first > 1 and not is_near(file[last - 1]):
        last -= 1
    return first, last


def _difference(old: Sequence[str], file: Sequence[str]) -> str:
    """Return the lines of both, marked; where only white space differs it is spelled out."""
    shown: list[str] = []
    for tag, first, last, low, high in SequenceMatcher(None, old, file, autojunk=False).get_opcodes():
        if tag == "equal":
            shown += [f"  {line}" for line in old[first:last]]
            continue
        removed, added = old[first:last], file[low:high]
        both = {"".join(line.split()) for line in removed} & {"".join(line.split()) for line in added}
        shown += [f"- {_spelled(line) if ''.join(line.split()) in both else line}" for line in removed]
        shown += [f"+ {_spelled(line) if ''.join(line.split()) in both else line}" for line in added]
    if len(shown) > _SHOWN_LINES:
        shown = [*shown[:_SHOWN_LINES], f"[… {len(shown) - _SHOWN_LINES} more lines]"]
    text = "\n".join(line if len(line) <= _LINE_CHARACTERS else f"{line[:_LINE_CHARACTERS]}…" for line in shown)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _spelled(line: str) -> str:
    """Return a line whose tabs and blanks at both ends can be seen."""
    body = line.strip()
    if not body:
        return _marked(line)
    at = line.index(body)
    return _marked(line[:at]) + body + _marked(line[at + len(body) :])


def _marked(blanks: str) -> str:
    return blanks.replace("\t", "\\t").replace(" ", "·").replace("\r", "\\r")
