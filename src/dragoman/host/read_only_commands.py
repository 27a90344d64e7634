"""Commands that only read, in the forms in which they only read.

`is_read_only` says yes to what it knows and no to everything else. A command that can run another one, write a file or
follow links out of a tree is known by the options under which it does none of that; they stand in `read_only_table`.
Programs are taken for what their names say; the caller that runs them checks the PATH. Git runs what a repository's own
configuration names, so even a read-only git command belongs in a sandbox in which nothing can be written, with the
settings of `safe_git`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

from dragoman.host.command_options import Grammar
from dragoman.host.read_only_table import GIT_LISTS, GIT_OPTIONS, GIT_USAGES, SPECIAL_EXAMPLES, USAGES, ReadOnlyUsage
from dragoman.host.shell import Simple
from dragoman.host.shell_lexer import HOLE

_NOWHERE: Final = "/dev/null"
# A word that begins like this may become one that begins with a dash.
_MAY_BECOME_AN_OPTION: Final = ("*", "?", "[", "{", "-")


def is_read_only(simple: Simple) -> bool:
    """Return whether a command changes nothing and starts nothing else."""
    return _reading(simple) is not None


def read_paths(simple: Simple) -> tuple[str, ...] | None:
    """Return the paths a read-only command reads beside the folder it runs in.

    None if it is not one, or if they are unknown.

    More may be named than are read: a revision of git, a value of an option. Nothing is left out.
    """
    paths = _reading(simple)
    if paths is None or simple.expands or not simple.has_literal_files:
        return None
    return paths


def _reading(simple: Simple) -> tuple[str, ...] | None:
    """Return the paths that are read, as far as the words tell; None for a command that does more."""
    if simple.assignments:
        return None
    if any(kind in ("write", "append") and target != _NOWHERE for kind, target, _ in simple.redirects):
        return None
    files = tuple(target for kind, target, _ in simple.redirects if kind == "read")
    if not simple.argv:
        return files  # those of a compound command
    if any(simple.argv[at].startswith(_MAY_BECOME_AN_OPTION) for at in simple.expands):
        return None
    name, *words = simple.argv
    if name != "echo" and any(HOLE in word for word in words):
        return None
    check_table()
    found = _reading_words([name, *words], simple.literal)
    return (*found, *files) if found is not None else None


def _reading_words(argv: Sequence[str], literal: bool = True) -> tuple[str, ...] | None:
    name, *words = argv
    special = _SPECIAL.get(name)
    return special(words, literal) if special is not None else _paths(name, words, literal)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _paths(name: str, words: list[str], literal: bool) -> tuple[str, ...] | None:
    known = _known(name)
    arguments = known[1].read(words) if known is not None else None
    if known is None or arguments is None:
        return None
    usage = known[0]
    if usage.most is not None and (len(arguments.operands) > usage.most or not literal):
        return None
    match usage.operands:
        case "text":
            return arguments.paths
        case "pattern" if not arguments.options & _PATTERN_ELSEWHERE:
            return (*arguments.paths, *arguments.operands[1:])
        case _:
            return (*arguments.paths, *arguments.operands)


_PATTERN_ELSEWHERE: Final = frozenset({"-e", "-f", "--regexp", "--file", "--files", "--type-list"})


@cache
def _known(name: str) -> tuple[ReadOnlyUsage, Grammar] | None:
    """Return how a command, or `git NAME`, may be used; checked when it is looked up for the first time."""
    table, last = (GIT_USAGES, name.removeprefix("git ")) if name.startswith("git ") else (USAGES, name)
    return (table[last], Grammar(table[last].options)) if last in table else None


@cache
def check_table() -> None:
    """Raise `ValueError` unless every example of the table holds; done once, before the first command is judged.

    Also without `python -O`, and in every installation: a table that says otherwise than it means allows nothing.
    """
    tables = (USAGES, SPECIAL_EXAMPLES, _under_git(GIT_USAGES), _under_git(GIT_LISTS))
    for name, usage in ((name, usage) for table in tables for name, usage in table.items()):
        for examples, is_allowed in ((usage.yes, True), (usage.no, False)):
            for words in examples.split(";") if examples else ():
                if (_reading_words([*name.split(), *words.split()]) is not None) != is_allowed:
                    raise ValueError(f"the table of read-only commands: {name}{words} has the wrong answer")


def _under_git(table: Mapping[str, ReadOnlyUsage]) -> dict[str, ReadOnlyUsage]:
    return {f"git {name}": usage for name, usage in table.items()}


# A format with this asks a program about signatures.
_SIGNATURE: Final = "%G"
_GIT_OPTIONS: Final = _words(GIT_OPTIONS)
_GIT_LISTS: Final = {name: Grammar(usage.options) for name, usage in GIT_LISTS.items()}


def _git(words: list[str], literal: bool) -> tuple[str, ...] | None:
    while words and words[0] in _GIT_OPTIONS:
        words = words[1:]
    if words == ["--version"]:
        return ()
    if not words or any(_SIGNATURE in word for word in words):
        return None
    name, *rest = words
    if name in _GIT_LISTS:
        arguments = _GIT_LISTS[name].read(rest)
        if arguments is None or not literal:
            return None
        return () if not arguments.operands or arguments.options & {"--list", "-l"} else None
    if (name, *rest) in (("stash", "list"), ("worktree", "list"), ("reflog",), ("reflog", "show")):
        return ()
    return _paths(f"git {name}", rest, literal)


_FIND_TESTS: Final = frozenset(
    f"-{name}"
    for name in _words(
        "name iname path ipath wholename iwholename regex iregex regextype type xtype size mtime mmin atime amin ctime"
        " cmin newermt maxdepth mindepth perm user group uid gid links inum printf used fstype"
    )
)
_FIND_PATH_TESTS: Final = frozenset({"-newer", "-anewer", "-cnewer", "-samefile"})
_FIND_FLAGS: Final = _words(
    "-print -print0 -prune -empty -not ! ( ) , -o -or -a -and -readable -writable -executable -depth -d -xdev -mount"
    " -ls -true -false -quit -daystart -noleaf -nouser -nogroup -ignore_readdir_race"
)


def _find(words: list[str], literal: bool) -> tuple[str, ...] | None:
    rest = list(reversed(words))
    paths: list[str] = []
    if rest and rest[-1] == "-P":
        rest.pop()
    while rest and not rest[-1].startswith(("-", "(", "!")):
        paths.append(rest.pop())
    while rest:
        word = rest.pop()
        if word in _FIND_FLAGS:
            continue
        if word not in _FIND_TESTS | _FIND_PATH_TESTS or not rest or not literal:
            return None
        value = rest.pop()
        if word in _FIND_PATH_TESTS:
            paths.append(value)
    return tuple(paths)


_SED: Final = Grammar("-n -E -r -s -e: --quiet --silent --regexp-extended --expression:")
# Lines by number, printed or left out: `1,20p`, `$p`, `5q`, `10,$d`. Everything else of sed may write or run.
_SED_COMMAND: Final = r"\s*(\d+|\$)?(,(\d+|\$|\+\d+))?\s*[pdq=]\s*"
_SED_SCRIPT: Final = re.compile(rf"{_SED_COMMAND}(;{_SED_COMMAND})*;?\s*")


def _sed(words: list[str], literal: bool) -> tuple[str, ...] | None:
    arguments = _SED.read(words)
    if arguments is None or not literal:
        return None
    scripts, files = arguments.values, arguments.operands
    if not scripts:
        scripts, files = files[:1], files[1:]
    return files if scripts and all(_SED_SCRIPT.fullmatch(script) for script in scripts) else None


def _test(words: list[str], literal: bool) -> tuple[str, ...] | None:
    """`-v` and `-R` evaluate the index of an array, and an index may hold a command."""
    return tuple(words) if literal and not {"-v", "-R"} & set(words) else None


_PRINTF_STORES: Final = re.compile(r"%[^%A-Za-z]*[hlLjztq]*n")


def _printf(words: list[str], literal: bool) -> tuple[str, ...] | None:
    """`-v` and `%n` assign variables."""
    if not words or words[0].startswith("-") or not literal or _PRINTF_STORES.search(words[0]):
        return None
    return ()


_DATE: Final = Grammar("-u -R -I? -d: --utc --universal --rfc-email --rfc-3339: --iso-8601= --date:")


def _date(words: list[str], literal: bool) -> tuple[str, ...] | None:
    """Accept `date` with formats only: any other operand sets the clock."""
    arguments = _DATE.read(words)
    return () if arguments is not None and all(word.startswith("+") for word in arguments.operands) else None


def _command(words: list[str], literal: bool) -> tuple[str, ...] | None:
    return () if literal and words[:1] in (["-v"], ["-V"]) else None


def _echo(words: list[str], literal: bool) -> tuple[str, ...] | None:
    return ()


_SPECIAL: Final[Mapping[str, Callable[[list[str], bool], tuple[str, ...] | None]]] = {
    "echo": _echo,
    "git": _git,
    "find": _find,
    "sed": _sed,
    "test": _test,
    "[": _test,
    "printf": _printf,
    "date": _date,
    "command": _command,
}
KNOWN: Final = frozenset(USAGES) | frozenset(_SPECIAL)
