"""The files that a patch text names: unified, git and context diffs, `*** Update File:` patches, search/replace blocks.

Pure. It reads names and not changes, and rather one name too many than one too few: a line of a file that looks like a
header of a patch is taken for one. Names are found in every way in which lines may end.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

# Some tens of thousands of changed lines; half a second.
_CHARACTERS: Final = 4 * 1024 * 1024
_NAMES: Final = 10_000
# Without any of these a text is no patch.
_MARKS: Final = ("--- ", "+++ ", "***", "diff --git", "rename ", "copy ", "Index: ", "<<<<<", "mode 1", ": /")
# How a line begins that names a file, `***` apart.
_STARTS: Final = (
    *(
        "diff --git ",
        "--- ",
        "+++ ",
        "rename ",
        "copy ",
        "Index: ",
        "<<<<<",
        "old mode ",
        "new mode ",
        "new file mode ",
    ),
    *("deleted file mode ", "add: /", "modify: /", "delete: /", "move: /", "copy: /"),
)
_DEV_NULL: Final = "/dev/null"
# `*** Update File: a`, `*** Add File: a`, `*** Delete File: a`, `*** Move to: a`, and others like them.
_MARKED: Final = re.compile(r"\s*\*\*\*\s*[A-Za-z][A-Za-z ]*:\s*(\S.*)")
_GIT_NAME: Final = re.compile(r"(?:rename from|rename to|copy from|copy to|Index:) +(\S.*)")
# `move: /a -> /b`: how a bridge to version 1 tells of a change whose texts are not known.
_DESCRIBED: Final = re.compile(r"(?:add|modify|delete|move|copy): (?:(/.*) -> )?(/.*)")
# `new file mode 120000` makes a link, 160000 another repository: what it leads to is not a name of a file.
_ODD_MODE: Final = re.compile(r"(?:new file |deleted file |old |new )mode (?:120000|160000)")
_SEARCH: Final = re.compile(r"<{5,}\s*(?:SEARCH|ORIGINAL)\b")
_ESCAPES: Final = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_OCTAL: Final = re.compile(r"[0-7]{1,3}")


class PatchPaths(NamedTuple):
    """The files of a patch. `unclear` says why there may be others, or more to it than files."""

    paths: tuple[str, ...] = ()
    unclear: str = ""
    # Whether there is more than was read.
    is_cut: bool = False


def patch_paths(text: str) -> PatchPaths:
    """Return the files that a text names as a patch does; none if it is no patch."""
    if not any(mark in text for mark in _MARKS):
        return PatchPaths()
    if len(text) > _CHARACTERS:
        return PatchPaths(unclear="a text in it is too long to be read for a patch", is_cut=True)
    reader = _PatchReader()
    lines = text.split("\n")
    reader.read([line.removesuffix("\r") for line in lines])
    others = text.splitlines()
    if len(others) != len(lines):
        reader.read(others)
    return PatchPaths(tuple(dict.fromkeys(reader.paths)), reader.unclear, len(reader.paths) > _NAMES)


class _PatchReader:
    def __init__(self) -> None:
        self.paths: list[str] = []
        self.unclear = ""

    def read(self, lines: Sequence[str]) -> None:
        for at, line in enumerate(lines):
            if not line.startswith(_STARTS) and "***" not in line:
                continue
            if len(self.paths) > _NAMES:
                self.unclear = "a patch in it names more files than can be judged"
                return
            before = lines[at - 1] if at else ""
            after = lines[at + 1] if at + 1 < len(lines) else ""
            if line.startswith("diff --git "):
                self._git_header(line.removeprefix("diff --git "))
            elif found := _GIT_NAME.fullmatch(line) or _MARKED.fullmatch(line):
                self._name(found[1])
            elif _is_header(before, line, after):
                self._name(line[4:], prefixed=True)
            elif described := _DESCRIBED.fullmatch(line):
                self.paths += [name for name in described.groups() if name]
            elif _ODD_MODE.match(line):
                self.unclear = "a patch in it makes a link or a repository"
            elif _SEARCH.match(line):
                self._block(lines, at)

    def _git_header(self, names: str) -> None:
        """Read two names in one line, with nothing but a blank between them."""
        if names.startswith('"') or names.endswith('"'):
            parts = _quoted_pair(names)
        else:
            half = len(names) // 2
            same = names[:half] if names[half : half + 1] == " " else ""
            parts = [same, names[half + 1 :]] if same and same[1:] == names[half + 2 :] else names.split(" ")
        if len(parts) != 2:
            self.unclear = "a patch in it has names that cannot be told apart"
            return
        for part in parts:
            self._name(part, prefixed=True)

    def _name(self, name: str, *, prefixed: bool = False) -> None:
        """Read one name of a header: perhaps in quotes, with a time behind a tab, `a/` or `b/` before it."""
        name = name.rstrip("\r\n")
        if name.startswith('"'):
            plain, rest = _unquoted(name)
            if plain is None or (rest and not rest.startswith(("\t", " "))):
                self.unclear = "a patch in it has a name that cannot be read"
                return
            name = plain
        else:
            name = name.split("\t", 1)[0].strip()
        if prefixed and name.startswith(("a/", "b/")):
            name = name[2:]
        if name and name != _DEV_NULL:
            self.paths.append(name)

    def _block(self, lines: Sequence[str], at: int) -> None:
        """Read a search/replace block: the name stands on the line before it, or before the fence around it."""
        above = [line.strip() for line in lines[max(at - 2, 0) : at]]
        for line in reversed(above):
            if line and not line.startswith(("```", ">>>>>", "=====", ":", "-----")):
                self.paths.append(line.strip("`*# "))
                return
            if not line.startswith("```"):
                return


def _is_header(before: str, line: str, after: str) -> bool:
    """Return whether a line names a file, by the lines around it: in a hunk, `--- a` is a removed line."""
    if line.startswith("--- "):
        return after.startswith(("+++ ", "@@", "***")) or before.startswith("*** ")
    if line.startswith("+++ "):
        return before.startswith("--- ") or after.startswith("@@")
    return line.startswith("*** ") and after.startswith("--- ")


def _quoted_pair(names: str) -> list[str]:
    """Return two names of which at least one is in quotes."""
    if names.startswith('"'):
        first, rest = _unquoted(names)
        end = len(names) - len(rest)
        return [] if first is None or not rest.startswith(" ") else [names[:end], rest[1:]]
    first_plain, separator, rest = names.partition(' "')
    return [first_plain, f'"{rest}'] if separator else []


def _unquoted(text: str) -> tuple[str | None, str]:
    """Return a name in git's quotes, and what stands behind them; None if that is no such name."""
    data = bytearray()
    at = 1
    while at < len(text) and text[at] != '"':
        if text[at] != "\\":
            data += text[at].encode(errors="surrogatepass")
            at += 1
        elif octal := _OCTAL.match(text, at + 1):
            data.append(int(octal[0], 8) & 0xFF)
            at = octal.end()
        elif text[at + 1 : at + 2] in _ESCAPES:
            data.append(_ESCAPES[text[at + 1]])
            at += 2
        else:
            return None, ""
    if at >= len(text):
        return None, ""
    return data.decode(errors="surrogateescape"), text[at + 1 :]
