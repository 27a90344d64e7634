"""What a remembered answer says about a command line: allow rules, deny rules. Pure.

An allow rule is a list of words. It covers a command that consists of exactly these words, and a longer one only where
the options that may follow are known to be harmless. It never covers what was not seen: every command of a line must be
covered, or read only what may be read, also in branches, loops, functions and substitutions. Files and unknown words
are never covered; assignments only by a rule that begins with the very same ones; nor is a program that is fed by a
command whose words no rule looks at, or one of git in a folder that the line goes to. A function that is called like
something a rule or the table of read-only commands knows leaves nothing covered.
A deny rule is the other way around: it holds wherever the program may be run, by whatever name, wrapper or nesting.
"""

import fnmatch
import posixpath
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Final

from dragoman.host import wildcards
from dragoman.host.command_options import Grammar
from dragoman.host.possible_commands import PossibleCommand, TooMuchToParse, commands_in, name_of
from dragoman.host.read_only_commands import KNOWN, is_read_only, read_paths
from dragoman.host.shell import Parsed, Simple, Unparsed, parse
from dragoman.host.shell_lexer import HOLE
from dragoman.host.shell_values import entered
from dragoman.host.unrecoverable_commands import is_unrecoverable

__all__ = [
    "covers",
    "denies",
    "is_list_of_programs",
    "is_read_only",
    "is_unrecoverable",
    "paths_in",
    "paths_of",
    "prefix_of",
    "prefixes",
    "read_paths",
]

Prefix = tuple[str, ...]


def paths_of(parsed: Parsed | Unparsed) -> tuple[str, ...] | None:
    """Return the paths a line of read-only commands reads; None if it does more, or if they are unknown.

    Behind a `cd` to a known folder each relative path is named twice, from both folders.
    """
    if isinstance(parsed, Unparsed) or _ends_elsewhere(parsed) or parsed.functions & KNOWN:
        return None
    found = [_paths_read(simple) for simple in parsed.commands]
    return tuple(path for part in found if part is not None for path in part) if None not in found else None


def paths_in(parsed: Parsed | Unparsed) -> tuple[str, ...]:
    """Return the paths that the read-only commands of a line read, and the folders that it goes to."""
    commands = () if isinstance(parsed, Unparsed) else parsed.commands
    return tuple(path for simple in commands for path in _paths_read(simple) or ())


def prefix_of(simple: Simple) -> Prefix:
    """Return the words that an "always" about this command should remember; none if it should not be remembered."""
    given = _given(simple)
    if given is None or not _is_plain(simple):
        return ()
    if is_read_only(simple):
        if simple.argv[0] != "git":
            return simple.argv[:1]
        return simple.argv[:2] if not simple.argv[1].startswith("-") else simple.argv
    for prefix in (simple.argv[:1], simple.argv[:2]):
        if prefix in _EXTENSIBLE and _extends(prefix, simple, lambda path: False):
            return (*given, *prefix)
    return (*given, *simple.argv) if simple.literal else ()


def prefixes(parsed: Parsed | Unparsed) -> tuple[Prefix, ...]:
    """Return what an "always" about a whole line should remember; none if any part of it should not be."""
    if isinstance(parsed, Unparsed) or _ends_elsewhere(parsed):
        return ()
    found = tuple(dict.fromkeys(prefix_of(simple) for simple in parsed.commands if not _is_passed_over(simple)))
    return found if () not in found and covers(found, parsed, readable=lambda path: True) else ()


def covers(
    rules: Collection[Prefix], parsed: Parsed | Unparsed, *, readable: Callable[[str], bool] = lambda path: False
) -> bool:
    """Return whether allow rules cover every command of a line.

    `readable` says which paths may be read without asking.
    """
    if isinstance(parsed, Unparsed) or _feeds_unseen(parsed) or _hides_a_program(parsed, rules):
        return False
    ruled = [_is_ruled(simple, rules, readable) for simple in parsed.commands]
    return any(ruled) and all(
        is_ruled or _is_harmless(simple, readable) for is_ruled, simple in zip(ruled, parsed.commands, strict=True)
    )


def is_list_of_programs(parsed: Parsed | Unparsed) -> bool:
    """Return whether a line is no more than programs with their words, one after another or in pipelines."""
    return not isinstance(parsed, Unparsed) and parsed.is_plain and not any(map(_does_more, parsed.commands))


def denies(rule: Sequence[str], command: str, *, portable: bool = False, wild: bool = False) -> bool:
    """Return whether a deny rule (a program, and words that follow it) may be about anything in a text.

    `portable`: it is not known that bash reads the text. `wild`: `*`, `?` and `[...]` in the rule are wildcards.
    """
    try:
        found = commands_in(command)
    except TooMuchToParse:
        return True
    if any(_may_run(rule, possible, wild) for possible in found):
        return True
    names = {name for possible in found for name, _ in possible.names()}
    parsed = parse(command, portable=portable)
    is_certain = not isinstance(parsed, Unparsed) and parsed.is_plain
    return (not is_certain or any(map(_INTERPRETER.fullmatch, names))) and _mentions(rule, command, wild)


def _feeds_unseen(parsed: Parsed) -> bool:
    """Return whether a program that does more than read is fed by one that prints any text: `echo anything | bash`.

    What it does then depends on words of another command, which a rule for that command does not look at.
    """
    for starts in parsed.pipelines:
        is_fed = False
        for start, end in pairwise(starts):
            reads = [is_read_only(simple) for simple in parsed.commands[start:end]]
            if is_fed and not all(reads):
                return True
            is_fed = is_fed or any(reads)
    return False


def _hides_a_program(parsed: Parsed, rules: Collection[Prefix]) -> bool:
    return bool(parsed.functions) and not parsed.functions.isdisjoint(KNOWN | {word for rule in rules for word in rule})


def _ends_elsewhere(parsed: Parsed) -> bool:
    """Return whether nothing comes of a `cd`, so that no more than a folder would be remembered."""
    return parsed.commands[-1].argv[:1] == ("cd",)


def _does_more(simple: Simple) -> bool:
    return bool(simple.assignments) or simple.argv[:1] == ("cd",)


def _is_ruled(simple: Simple, rules: Collection[Prefix], readable: Callable[[str], bool]) -> bool:
    given = _given(simple)
    if given is None or not _is_plain(simple):
        return False
    own = [rule[len(given) :] for rule in rules if rule[: len(given)] == given]
    return (simple.literal and simple.argv in own) or any(_extends(rule, simple, readable) for rule in own)


def _is_harmless(simple: Simple, readable: Callable[[str], bool]) -> bool:
    """Return whether a command needs no rule beside the rules of others."""
    if not simple.argv and not _is_passed_over(simple):
        return False  # what is fed to all the commands in it
    paths = _paths_read(simple)
    return paths is not None and all(map(readable, paths))


def _is_passed_over(simple: Simple) -> bool:
    """Return whether there is nothing in a command to remember.

    It goes to a folder, throws away what is printed, or prints a text of the line itself.
    """
    is_silent = not simple.argv and not simple.assignments and not _has_files(simple)
    is_fed = any(kind == "text" for kind, _, _ in simple.redirects)
    return (
        is_silent or _goes_to(simple) is not None or (is_fed and bool(simple.argv) and read_paths(simple) is not None)
    )


def _paths_read(simple: Simple) -> tuple[str, ...] | None:
    """Return the paths that a command reads or goes to, from each folder it may run in; None if it does more."""
    folder = _goes_to(simple)
    paths = read_paths(simple) if folder is None else (folder,)
    if paths is None or not _is_where_it_seems(simple):
        return None
    return tuple(posixpath.join(base, path) for base in simple.folders for path in paths)


def _goes_to(simple: Simple) -> str | None:
    return None if simple.redirects else entered(simple)


def _is_where_it_seems(simple: Simple) -> bool:
    """Return whether the folders of a command are known. Git runs what the configuration of a folder tells it to."""
    return bool(simple.folders) and (simple.argv[:1] != ("git",) or simple.folders == ("",))


def _given(simple: Simple) -> tuple[str, ...] | None:
    """Return the assignments before a command as words; None if it must not be remembered with them."""
    if not simple.argv or simple.argv[0] in _CHANGES_THE_SHELL or _ASSIGNMENT.match(simple.argv[0]):
        return None
    if (
        _means_other_files(simple)
        or not _is_where_it_seems(simple)
        or any(_STEERS.fullmatch(name) for name, _ in simple.assignments)
    ):
        return None
    words = tuple(f"{name}={value}" for name, value in simple.assignments)
    return None if any(HOLE in word for word in words) else words


def _means_other_files(simple: Simple) -> bool:
    """Return whether the words of a rule may name other files than they did, because the line has gone to a folder."""
    is_named = simple.argv[0] in _TAKES_FILES or any("/" in word or "." in word for word in simple.argv)
    return simple.folders != ("",) and is_named


def _is_plain(simple: Simple) -> bool:
    """Return whether the words, and what quoted `$(…)` print, are all there is to a command."""
    return not simple.expands and simple.has_literal_files and not _has_files(simple)


def _has_files(simple: Simple) -> bool:
    return any(kind == "text" or target != "/dev/null" for kind, target, _ in simple.redirects)


# Programs whose plain words are files, or that run them.
_TAKES_FILES: Final = frozenset(
    {
        *(
            "rm",
            "rmdir",
            "mv",
            "cp",
            "ln",
            "dd",
            "tee",
            "touch",
            "truncate",
            "shred",
            "install",
            "rsync",
            "chmod",
            "chown",
        )
    }
    | {*("sh", "bash", "dash", "zsh", "python", "python3", "node", "perl", "ruby", "php", "sed", "awk", "tar", "unzip")}
)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
# Variables that decide which code a program runs, where it finds it, or what it takes for its user's wishes.
_STEERS: Final = re.compile(
    r"(?i)PATH|ENV|IFS|SHELL|HOME|PS4|CC|CXX|LD|AR|GO.*|(LD|DYLD|BASH|PYTHON|PERL|RUBY|GEM|NODE|NPM|YARN|GIT|SSH|SSL|JAVA"
    r"|JDK|LUA|PHP|CARGO|RUST|RUSTC|PIP|UV|MAKE|MFLAGS|DOCKER|KUBE|XDG|LESS|TMP|TEMP|EDITOR|VISUAL|PAGER)[A-Z0-9_]*"
    r"|[A-Z0-9_]*(PATH|PRELOAD|FLAGS|OPTS|OPTIONS|ARGS|PLUGINS|HOME|CONFIG|RC|PAGER|EDITOR|COMMAND|CMD|PROGRAM|WRAPPER"
    r"|BROWSER|ASKPASS|PROXY|SHELL|EXEC|DIR|FILE|INIT|LIBRARY|LIB)"
)
# After these, other commands mean something else.
_CHANGES_THE_SHELL: Final = frozenset(
    {"cd", "pushd", "popd", "export", "set", "unset", "shopt", "read", "mapfile", "readarray", "getopts", "umask"}
)
# Beyond reading: commands that may get further words without becoming something else.
_EXTENSIBLE: Final[Mapping[Prefix, Grammar]] = {
    ("git", "add"): Grammar("-A -u -v -n -f --all --update --verbose --dry-run --force --intent-to-add -N"),
    ("git", "commit"): Grammar("-m: -a -q -v -s --message: --all --amend --no-edit --quiet --signoff --allow-empty"),
    ("pytest",): Grammar(
        "-q -v -x -s -l -k: -m: -n: --quiet --verbose --exitfirst --tb: --maxfail: --lf --ff --last-failed",
        "--failed-first --durations: --no-header --collect-only --stepwise",
    ),
    ("cargo", "build"): Grammar("-v -q --release --all --workspace --all-targets --tests --locked --offline"),
    ("cargo", "check"): Grammar("-v -q --release --all --workspace --all-targets --tests --locked --offline"),
    ("cargo", "test"): Grammar(
        "-v -q --release --all --workspace --all-targets --no-run --locked --offline --nocapture"
    ),
    ("go", "build"): Grammar("-v -x -race"),
    ("go", "vet"): Grammar(),
    ("go", "test"): Grammar("-v -race -short -count: -run:"),
}


def _extends(rule: Prefix, simple: Simple, readable: Callable[[str], bool]) -> bool:
    if simple.argv[: len(rule)] != rule or not rule:
        return False
    if rule in _EXTENSIBLE:
        return _EXTENSIBLE[rule].read(simple.argv[len(rule) :]) is not None
    return rule[0] in KNOWN and len(rule) <= 2 and _is_harmless(simple, readable)


# Programs that run texts of their own.
_INTERPRETER: Final = re.compile(
    r"(python|ipython|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|luajit|tclsh|expect|awk|gawk|mawk|nawk|make|osascript"
    r"|julia|Rscript|guile|pwsh|socat|gdb)[\d.]*"
)
_UNKNOWN: Final = re.compile(rf"[*?\[{HOLE}]")
_LONGEST_NAME: Final = 255  # what a file may be called


def _may_run(rule: Sequence[str], possible: PossibleCommand, wild: bool) -> bool:
    wanted = name_of(rule[0])
    for place, (name, at) in enumerate(possible.names()):
        if _may_be(name, wanted, first=place == 0) or (wild and _is_like(name, wanted)):
            if _is_fed(possible.words, at):
                return True  # the words come from elsewhere
            if _in_order(rule[1:], possible.words[at + 1 :], wild):
                return True
            if not wild:
                return False  # what comes after a later place comes after this one
    return False


def _is_like(word: str, wanted: str) -> bool:
    """Return whether a pattern matches a word. The parts of the word that are not known may be anything."""
    return HOLE in word or fnmatch.fnmatchcase(word, wanted)


def _is_fed(words: Sequence[str], at: int) -> bool:
    """Return whether a program gets further words that do not stand here: from `xargs`, or for the braces of `find`."""
    return any(name_of(word) in ("xargs", "parallel") for word in words[:at]) or "{}" in words[at:]


def _may_be(name: str, wanted: str, *, first: bool) -> bool:
    """Return whether a program's name, as far as it is known, may be the wanted one."""
    if not _UNKNOWN.search(name):
        return name == wanted
    if len(name) > _LONGEST_NAME:
        return True
    if not first and not name.strip("*?"):
        return False  # a `*` among the arguments of a wrapper is seldom a program
    return fnmatch.fnmatchcase(wanted, name.replace(HOLE, "*"))


def _in_order(wanted: Sequence[str], words: Sequence[str], wild: bool) -> bool:
    """Return whether the wanted words may come one after another, whatever stands between them.

    Options of single letters may stand anywhere, together or apart: `-rf` is also `-f x -r`, and `--force --recursive`.
    """
    words = [each for word in words for each in _spellings(word)]
    rest = iter(words)
    if all(any(_is_wanted(word, one, wild) for word in rest) for one in wanted):
        return True
    letters = frozenset[str]().union(*(_letters(one) for one in wanted if _CLUSTER.fullmatch(one)))
    is_known = not any(HOLE in word for word in words)
    if not letters or (is_known and not letters <= frozenset().union(*map(_letters, words))):
        return False
    rest = iter(words)
    return all(any(_is_wanted(word, one, wild) for word in rest) for one in wanted if not _CLUSTER.fullmatch(one))


def _is_wanted(word: str, wanted: str, wild: bool) -> bool:
    return word == wanted or HOLE in word or (wild and _is_like(word, wanted))


# Options of single letters in a rule; longer ones are words behind one dash, as those of `find`.
_CLUSTER: Final = re.compile(r"-[A-Za-z]{1,3}")
_LETTERS: Final = re.compile(r"-[A-Za-z]+")
# What many programs call these letters. A long option may be cut.
_LONG: Final = {"recursive": "r", "force": "f"}


def _letters(word: str) -> frozenset[str]:
    """Return the options of single letters in a word. `-R` counts as `-r`: it is the same for most programs."""
    if word.startswith("--"):
        return frozenset(letter for name, letter in _LONG.items() if len(word) > 3 and name.startswith(word[2:]))
    return frozenset(word[1:].replace("R", "r")) if _LETTERS.fullmatch(word) else frozenset()


def _spellings(word: str) -> list[str]:
    """Return a word, and what a shell may make of the braces in it."""
    if "{" not in word or "," not in word:
        return [word]
    try:
        return [word, *wildcards.expand_braces(word)]
    except wildcards.PatternRefused:
        return [HOLE]


_QUOTES: Final = re.compile(r"[\\'\"]")
_WILDCARD: Final = re.compile(r"[*?]|\[[^\]]*\]")


def _mentions(rule: Sequence[str], command: str, wild: bool) -> bool:
    words = (name_of(rule[0]), *rule[1:])
    return any(all(_is_in(word, text, wild) for word in words) for text in (command, _QUOTES.sub("", command)))


def _is_in(word: str, text: str, wild: bool) -> bool:
    """Return whether a text has a word in it; of a word with wildcards, its known parts, anywhere."""
    if wild and _UNKNOWN.search(word):
        return all(part in text for part in _WILDCARD.split(word))
    return re.search(rf"(?<![\w.-]){re.escape(word)}(?![\w.-])", text) is not None
