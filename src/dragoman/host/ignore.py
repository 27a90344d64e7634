"""What a tree's own rules leave out: `.ignore`, `.gitignore` and `.git/info/exclude`, as git reads them.

The last rule of a file that matches decides, the deepest file before the ones above it, and `.ignore` before git's.
A folder that is left out is not walked, so nothing inside it can be brought back. A folder with a `.git` of its own is
another repository: the rules of the one around it end there. Pure: the caller walks, and reads the files of rules.
"""

import re
from collections.abc import Callable, Container, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from dragoman.host import wildcards

OWN_FILE: Final = ".ignore"
GIT_FILE: Final = ".gitignore"
GIT_FOLDER: Final = ".git"
EXCLUDE_FILE: Final = ".git/info/exclude"
# The longest .gitignore files kept in public have some thousand lines. What stands after this is not read.
RULES_BYTES: Final = 256 * 1024

_SUFFIX: Final = re.compile(r"\*[^*?\[\\]+")


class IgnoreRule(NamedTuple):
    """One line. `anchored`: against the path from the file's folder; else against the last name of a path."""

    pattern: str
    brings_back: bool
    folders_only: bool
    anchored: bool

    @property
    def line(self) -> str:
        """As it stands in a file."""
        return f"{'!' * self.brings_back}{'/' * self.anchored}{self.pattern}{'/' * self.folders_only}"


def parse(text: str) -> list[IgnoreRule]:
    """The rules of a file, in order."""
    lines = text.removeprefix("\ufeff").split("\n")
    return [rule for line in lines if (rule := _parse_line(line.removesuffix("\r"))) is not None]


class Rules:
    """The rules of one file, arranged so that most names are judged by a look into a set."""

    def __init__(self, rules: Sequence[IgnoreRule]) -> None:
        self.all: Final = tuple(rules)
        self._runs: list[_Run] = []  # the last first
        for rule in rules:
            if not self._runs or self._runs[0].brings_back != rule.brings_back:
                self._runs.insert(0, _Run(rule.brings_back))
            self._runs[0].rules.append(rule)

    def judge(self, path: str, name: str, *, is_folder: bool) -> bool | None:
        """True: left out. False: brought back. None: no rule speaks of it."""
        for run in self._runs:
            if run.matches(path, name, is_folder):
                return not run.brings_back
        return None


class Ignores:
    """The rules that hold in one folder of a tree. Paths are relative to where the tree begins."""

    def __init__(
        self, own: "tuple[_Scope, ...]" = (), git: "tuple[_Scope, ...]" = (), exclude: "tuple[_Scope, ...]" = ()
    ) -> None:
        self._own = own
        self._git = git
        self._exclude = exclude
        self._all = own + git + exclude

    def inside(self, folder: str, names: Container[str], read: Callable[[str], str | None]) -> "Ignores":
        """The rules one folder down: `folder` ends in a slash (or is empty) and holds `names`."""
        own, git, exclude = self._own, self._git, self._exclude
        if GIT_FOLDER in names:
            git = ()
            exclude = _scopes(folder, read(EXCLUDE_FILE))
        if GIT_FILE in names:
            git = _scopes(folder, read(GIT_FILE)) + git
        if OWN_FILE in names:
            own = _scopes(folder, read(OWN_FILE)) + own
        if own is self._own and git is self._git and exclude is self._exclude:
            return self
        return Ignores(own, git, exclude)

    def leave_out(self, folder: str, name: str, *, is_folder: bool) -> bool:
        """Whether the rules leave out `name` in `folder` (which ends in a slash, or is empty)."""
        if name == GIT_FOLDER:
            return True
        for start, rules in self._all:
            verdict = rules.judge(folder[start:] + name, name, is_folder=is_folder)
            if verdict is not None:
                return verdict
        return False

    def floating(self) -> list[str]:
        """Return the lines that mean the same in every folder, the strongest last; none if others could overrule them.

        For a search program that starts further down and reads the rules from there on itself (ripgrep).
        """
        rules = [rule for scope in reversed(self._all) for rule in scope.rules.all]
        if self._own or any(rule.anchored and rule.brings_back for rule in rules):
            return []
        return [rule.line for rule in rules if not rule.anchored]


class _Scope(NamedTuple):
    """Rules, and how many characters of a path belong to the folder they stand in."""

    start: int
    rules: Rules


class _Run:
    """Neighbouring rules that say the same: their order does not matter."""

    def __init__(self, brings_back: bool) -> None:
        self.brings_back = brings_back
        self.rules: list[IgnoreRule] = []

    def matches(self, path: str, name: str, is_folder: bool) -> bool:
        return (is_folder and self._folders.match(path, name)) or self._any.match(path, name)

    @cached_property
    def _folders(self) -> "_Matcher":
        return _Matcher([rule for rule in self.rules if rule.folders_only])

    @cached_property
    def _any(self) -> "_Matcher":
        return _Matcher([rule for rule in self.rules if not rule.folders_only])


class _Matcher:
    def __init__(self, rules: list[IgnoreRule]) -> None:
        names: set[str] = set()
        suffixes: list[str] = []
        name_patterns: list[str] = []
        paths: set[str] = set()
        path_patterns: list[str] = []
        for rule in rules:
            literal = wildcards.literal(rule.pattern)
            if rule.anchored:
                if literal is not None:
                    paths.add(literal)
                else:
                    path_patterns.append(wildcards.path(rule.pattern))
            elif literal is not None:
                names.add(literal)
            elif _SUFFIX.fullmatch(rule.pattern):
                suffixes.append(rule.pattern[1:])
            else:
                name_patterns.append(wildcards.segment(rule.pattern))
        self._names = names
        self._suffixes = tuple(suffixes)
        self._name_pattern = _either(name_patterns)
        self._paths = paths
        self._path_pattern = _either(path_patterns)

    def match(self, path: str, name: str) -> bool:
        return (
            name in self._names
            or name.endswith(self._suffixes)
            or path in self._paths
            or (self._name_pattern is not None and self._name_pattern.fullmatch(name) is not None)
            or (self._path_pattern is not None and self._path_pattern.fullmatch(path) is not None)
        )


def _either(patterns: list[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(patterns), re.DOTALL) if patterns else None


def _scopes(folder: str, text: str | None) -> tuple[_Scope, ...]:
    rules = parse(text) if text else []
    return (_Scope(len(folder), Rules(rules)),) if rules else ()


def _parse_line(line: str) -> IgnoreRule | None:
    if line.startswith("#"):
        return None
    pattern = _without_trailing_spaces(line)
    brings_back = pattern.startswith("!")
    pattern = pattern[brings_back:]
    folders_only = pattern.endswith("/")
    if folders_only:
        pattern = pattern[:-1]
    anchored = "/" in pattern
    pattern = pattern.removeprefix("/")
    if not pattern:
        return None
    return IgnoreRule(pattern, brings_back, folders_only, anchored)


def _without_trailing_spaces(line: str) -> str:
    """Without the spaces at the end, unless a backslash stands before one."""
    kept = len(line.rstrip(" "))
    backslashes = kept - len(line[:kept].rstrip("\\"))
    return line[: kept + 1] if backslashes % 2 and kept < len(line) else line[:kept]
