"""The globs of permission rules and of search as they were before ripgrep alone searched: a fixed reference.

`tests/permissions/test_former_globs.py` compares `dragoman.host.wildcards` with it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from dragoman.errors import WorldError

# A person's pattern has some dozen characters. Long ones are generated, and so is what they do to us.
PATTERN_CHARACTERS: Final = 4096
# `*.{c,h,cc,hh,cpp,hpp}` in a few folders makes some dozen; each is matched on its own.
BRACE_EXPANSIONS: Final = 256
BRACES: Final = 32

_STAR: Final = None
_NEVER: Final = "(?!)"
_CLASSES: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class PatternRefused(WorldError):
    """A pattern that means nothing, or too much. The text is fit for the model."""


def expand_braces(pattern: str) -> list[str]:
    """The patterns a pattern with `{a,b}` stands for; refused if they are more than a person would write."""
    if not pattern or "\0" in pattern:
        raise PatternRefused("A pattern is needed, for example **/*.py.")
    if len(pattern) > PATTERN_CHARACTERS:
        raise PatternRefused(f"The pattern is longer than {PATTERN_CHARACTERS} characters; use a shorter one.")
    if pattern.count("{") > BRACES:
        raise PatternRefused(f"The pattern has more than {BRACES} braces; use fewer of them.")
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        one = waiting.pop()
        group = _first_group(one)
        if group is None:
            done.append(one)
        else:
            waiting += [one[: group.start] + choice + one[group.end :] for choice in reversed(group.choices)]
        if len(done) + len(waiting) > BRACE_EXPANSIONS:
            raise PatternRefused(f"The braces stand for more than {BRACE_EXPANSIONS} patterns; use fewer of them.")
    return list(dict.fromkeys(done))


def segment(pattern: str) -> str:
    """The regular expression for a pattern without slashes; what it matches has none either."""
    pieces = _pieces(pattern)
    if pieces is None:
        return _NEVER
    chunks: list[str] = [""]
    for piece in pieces:
        if piece is _STAR:
            if chunks[-1] or len(chunks) == 1:
                chunks.append("")
        else:
            chunks[-1] += piece
    if len(chunks) == 1:
        return chunks[0]
    middle = "".join(f"(?>[^/]*?{chunk})" for chunk in chunks[1:-1])
    return f"{chunks[0]}{middle}[^/]*{chunks[-1]}"


def path(pattern: str) -> str:
    """The regular expression for a whole relative path; `**` stands for any folders, at the end for anything below."""
    segments = _split(pattern)
    groups: list[list[str]] = [[]]
    for one in segments:
        if len(one) >= 2 and not one.strip("*"):
            if groups[-1] or len(groups) == 1:
                groups.append([])
        else:
            groups[-1].append(segment(one))
    head = "/".join(groups[0])
    if len(groups) == 1:
        return head
    start = f"{head}/" if groups[0] else ""
    middle = "".join(f"(?>(?:[^/]+/)*?{'/'.join(group)}/)" for group in groups[1:-1])
    return start + middle + (f"(?:[^/]+/)*{'/'.join(groups[-1])}" if groups[-1] else ".+")


def file_filter(patterns: Sequence[str]) -> Callable[[str, str], bool] | None:
    """Whether a file is wanted, by its folder (which ends in a slash, or is empty) and its name. None: every file is.

    A pattern without a slash means the name, wherever the file is; one with a slash means the path.
    """
    if not patterns:
        return None
    names = [segment(each) for each in patterns if "/" not in each]
    paths = [path(each.removeprefix("/")) for each in patterns if "/" in each]
    by_name = re.compile("|".join(names) if names else _NEVER, re.DOTALL).fullmatch
    by_path = re.compile("|".join(paths) if paths else _NEVER, re.DOTALL).fullmatch
    return lambda folder, name: by_name(name) is not None or by_path(folder + name) is not None


class _Group(NamedTuple):
    start: int
    end: int
    choices: list[str]


def _first_group(pattern: str) -> _Group | None:
    """The first `{a,b}`, outermost; braces without a comma or without an end mean themselves."""
    opened: list[tuple[int, list[int]]] = []
    found: _Group | None = None
    for at, sign in _signs(pattern):
        if sign == "{":
            opened.append((at, []))
        elif sign == "," and opened:
            opened[-1][1].append(at)
        elif sign == "}" and opened:
            start, commas = opened.pop()
            if commas and (found is None or start < found.start):
                edges = [start, *commas, at]
                choices = [pattern[left + 1 : right] for left, right in pairwise(edges)]
                found = _Group(start, at + 1, choices)
            if not opened and found is not None:
                break
    return found


def _signs(pattern: str) -> Iterator[tuple[int, str]]:
    """Every character that is not escaped and not inside `[...]`; none after a `[` that has no end."""
    at = 0
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 2
            continue
        if pattern[at] == "[":
            parsed = _bracket(pattern, at)
            if parsed is None:
                return
            at = parsed[1]
            continue
        yield at, pattern[at]
        at += 1


def _split(pattern: str) -> list[str]:
    """At the slashes, an escaped one included, but not inside `[...]`, nor after a `[` that has no end."""
    segments = [""]
    at = 0
    while at < len(pattern):
        end = at + 1
        if pattern[at] == "\\":
            end += 1
        elif pattern[at] == "[":
            parsed = _bracket(pattern, at)
            end = len(pattern) if parsed is None else parsed[1]
        taken = pattern[at:end]
        at = end
        if taken in ("/", "\\/"):
            segments.append("")
        else:
            segments[-1] += taken
    return segments


def _pieces(pattern: str) -> list[str | None] | None:
    """One regular expression for each character matched, `_STAR` for any number; None if it can match nothing."""
    pieces: list[str | None] = []
    at = 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == "*":
            pieces.append(_STAR)
        elif sign == "?":
            pieces.append("[^/]")
        elif sign == "\\":
            at += 1
            if at == len(pattern):
                return None
            pieces.append(re.escape(pattern[at]))
        elif sign == "[":
            parsed = _bracket(pattern, at)
            if parsed is None:
                return None
            pieces.append(parsed[0])
            at = parsed[1] - 1
        else:
            pieces.append(re.escape(sign))
        at += 1
    return pieces


def _bracket(pattern: str, start: int) -> tuple[str, int] | None:
    """Return the regex for `[...]` at `start` and the index after it; None if it has no end or an unknown class."""
    at = start + 1
    negated = at < len(pattern) and pattern[at] in "!^"
    at += negated
    parts: list[str] = []
    previous: str | None = None
    first = True
    while True:
        if at >= len(pattern):
            return None
        sign = pattern[at]
        if sign == "]" and not first:
            break
        first = False
        if sign == "[" and pattern.startswith("[:", at):
            end = pattern.find(":]", at + 2)
            name = pattern[at + 2 : end] if end >= 0 else ""
            if end >= 0 and "]" not in name:
                if name not in _CLASSES:
                    return None
                parts.append(_CLASSES[name])
                previous = None
                at = end + 2
                continue
        if sign == "-" and previous is not None and at + 1 < len(pattern) and pattern[at + 1] != "]":
            at += 1
            if pattern[at] == "\\":
                at += 1
                if at >= len(pattern):
                    return None
            if previous <= pattern[at]:
                parts.append(f"{re.escape(previous)}-{re.escape(pattern[at])}")
            previous = None
            at += 1
            continue
        if sign == "\\":
            at += 1
            if at >= len(pattern):
                return None
            sign = pattern[at]
        parts.append(re.escape(sign))
        previous = sign
        at += 1
    if not parts:
        return ("[^/]" if negated else _NEVER), at + 1
    return f"(?!/)[{'^' if negated else ''}{''.join(parts)}]", at + 1
