"""Where the commands of a loosely read text may run, and where their paths then lead. Pure: nothing is looked up.

For those who look for bad things: `cd / && rm -rf home` deletes `/home`. Several folders are possible at a time, and
where a folder cannot be known (`cd $X`, `cd -`, `popd`) it may be any that was named before.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from dragoman.host.possible_commands import PossibleCommand
from dragoman.host.shell_lexer import HOLE

# Folders that are remembered, and how long their names may be; a text that names more of them is judged by the first.
_FOLDERS: Final = 4
_FOLDER_CHARACTERS: Final = 500
_ENTERS: Final = ("cd", "chdir", "pushd", "popd")
# Programs that run another one elsewhere, and their options for that.
_ELSEWHERE: Final = {
    "env": ("-C", "--chdir"),
    "sudo": ("-D", "--chdir"),
    "systemd-run": ("-d", "--working-directory"),
    "unshare": ("-w", "--wd"),
    "nsenter": ("-w", "--wd"),
    "bwrap": ("--chdir",),
}
# Words of a command that are no paths.
_NO_PATHS: Final = frozenset({"(", ")", "!", "{}", ";", "+", ","})


class WorkingFolders:
    """The folders that the next command may run in; none: only the one that the text begins in."""

    def __init__(self, spellings: Callable[[str], Sequence[str]]) -> None:
        """`spellings` says what braces make of a word."""
        self._spellings = spellings
        self._now: list[str] = []
        self._entered_folders: list[str] = []

    def follow(self, possible: PossibleCommand) -> None:
        """Note where a command leads those after it."""
        for name, at in possible.names():
            if name in _ENTERS:
                self._enter(name, possible.words[at + 1 :])

    def words_from(self, possible: PossibleCommand, at: int) -> list[list[str]]:
        """Return the words of a command behind `at`, relative paths completed, once for each folder it may run in."""
        words = possible.words[at + 1 :]
        return [[_completed(base, word) for word in words] for base in [*self._now, *self._elsewhere(possible, at)]]

    def paths(self, path: str) -> list[str]:
        """Return what a path may mean, as it is and in each folder."""
        return [path, *(joined(base, path) for base in self._now)]

    def _enter(self, name: str, words: Sequence[str]) -> None:
        operands = [word for word in words if word == "-" or not word.startswith("-")]
        if name in ("pushd", "popd"):
            operands = [word for word in operands if not word.startswith("+")]
        target = operands[0] if operands else "~" if name in ("cd", "chdir") else "-"
        known = target.replace(HOLE, "")
        if target == "-" or (HOLE in target and not known.startswith(("/", "~"))):
            self._now = list(self._entered_folders)
            return
        entered = _some([joined(base, path) for path in self._spellings(known) for base in self._now or [""]])
        self._entered_folders = _some([*self._entered_folders, *entered])
        self._now = _some([*entered, *self._entered_folders]) if HOLE in target else entered

    def _elsewhere(self, possible: PossibleCommand, at: int) -> list[str]:
        """Folders that a program before `at` runs the rest in."""
        found: list[str] = []
        for name, place in possible.names():
            words = possible.words[place + 1 : at]
            if name == "chroot":
                found += [word for word in words if not word.startswith("-")][:1]
            for option in _ELSEWHERE.get(name, ()):
                found += [after for word, after in pairwise(words) if word == option]
                found += [word.removeprefix(option).removeprefix("=") for word in words if _has_value(word, option)]
        return [joined(base, path) for path in found for base in self._now or [""]]


def _some(folders: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(folder for folder in folders if len(folder) <= _FOLDER_CHARACTERS))[:_FOLDERS]


def _has_value(word: str, option: str) -> bool:
    return word.startswith(f"{option}=") or (len(option) == 2 and word.startswith(option) and len(word) > 2)


def _completed(base: str, word: str) -> str:
    if word.startswith("of="):  # dd
        return "of=" + joined(base, word.removeprefix("of="))
    return word if word.startswith("-") or word in _NO_PATHS else joined(base, word)


def joined(base: str, path: str) -> str:
    """Complete a relative path with its folder."""
    path = without_proc(path)
    return path if not base or path.startswith(("/", "~", HOLE)) else f"{base.rstrip('/')}/{path}"


def without_proc(path: str) -> str:
    """Follow the links of /proc that lead to the working folder and the root, of whichever process."""
    if not path.startswith("/"):
        return path
    parts: list[str] = []
    above = 0  # how many folders above the working folder, once a link has led there
    is_relative = False
    for part in path.split("/"):
        if part == "..":
            above += is_relative and not parts
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
        where = _link_of_proc(parts) if not is_relative else ""
        if where:
            parts, is_relative = [], where == "cwd"
    start = "/".join([".", *[".."] * above]) if is_relative else ""
    end = "/" if path.endswith(("/", "/.")) and parts else ""
    return (start + "/" + "/".join(parts) + end) if parts or not is_relative else start


def _link_of_proc(parts: Sequence[str]) -> str:
    """Return which link of a process a path is: `cwd`, `root`, or none."""
    is_of_process = len(parts) == 3 or (len(parts) == 5 and parts[2] == "task")
    return parts[-1] if is_of_process and parts[0] == "proc" and parts[-1] in ("cwd", "root") else ""
