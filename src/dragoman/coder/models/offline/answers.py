"""Reading what the tools say: a command's end, a list of paths, matching lines."""

import re
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

_EXIT: Final = re.compile(r"\n?\[exit code (-?\d+)\]\s*$")
_STOPPED: Final = re.compile(r"\n?\[((?:stopped after|ended by) [^\]]+)\]\s*$")
_CUT: Final = re.compile(
    r"\[… \d+ (?:characters|bytes) cut …\]|\[(?:only the first \d+ bytes were read|it is not all UTF-8)"
)
_HIT: Final = re.compile(r"^(?P<path>[^:\n]+):(?P<line>\d+)[:\-]\s?(?P<text>.*)$")
_HIT_BELOW: Final = re.compile(r"^\s*(?P<line>\d+)[:\-\t]\s?(?P<text>.*)$")


class Ran(NamedTuple):
    """A command's output and how it ended. `code` None: it did not end by itself."""

    output: str
    code: int | None
    ending: str


class Hit(NamedTuple):
    """A line that matches."""

    path: str
    line: int
    text: str


def ran(text: str, failed: bool) -> Ran:
    """What came of a command."""
    ended = _EXIT.search(text)
    if ended:
        return Ran(text[: ended.start()], int(ended[1]), f"exit code {ended[1]}")
    stopped = _STOPPED.search(text)
    if stopped:
        return Ran(text[: stopped.start()], None, stopped[1])
    return Ran(text, None, "it could not be run") if failed else Ran(text, 0, "exit code 0")


def is_cut(text: str) -> bool:
    """Whether a tool left something out of a file."""
    return _CUT.search(text) is not None


def paths(text: str, pattern: str) -> list[str]:
    """The paths in an answer of `glob`; sentences around them are not paths."""
    name = pattern.rpartition("/")[2]
    wanted = "*" if "{" in name else name
    lines = [line.strip() for line in text.splitlines() if not _is_sentence(line)]
    return [line for line in lines if line and fnmatchcase(line.rpartition("/")[2], wanted)]


def entries(text: str) -> list[str]:
    """The names in an answer of `list_files`; folders end in a slash, links in an @."""
    return [line.strip() for line in text.splitlines() if line.strip() and not _is_sentence(line)]


def _is_sentence(line: str) -> bool:
    """`The folder is empty.`, `[Only the first 1000 entries are shown.]`."""
    return line.startswith("[") or (line.endswith(".") and " " in line)


def hits(text: str) -> list[Hit]:
    """The lines in an answer of `grep`, each with its path, or below it."""
    found: list[Hit] = []
    path = ""
    for line in text.splitlines():
        hit = _HIT.match(line)
        below = _HIT_BELOW.match(line) if path and hit is None else None
        if hit is not None and not hit["path"].strip().isdigit():
            found.append(Hit(hit["path"].strip(), int(hit["line"]), hit["text"]))
        elif below is not None:
            found.append(Hit(path, int(below["line"]), below["text"]))
        else:
            path = line.strip().rstrip(":")
    return found


def tail(text: str, lines: int) -> str:
    """The last lines."""
    kept = text.rstrip().splitlines()
    return "\n".join(kept[-lines:])


def fenced(text: str, info: str = "") -> str:
    """A block that its content cannot end."""
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`{3,}", text)), default=2))
    return f"{ticks}{info}\n{text.rstrip(chr(10))}\n{ticks}\n"
