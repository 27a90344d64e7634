"""Commands that only read, in the forms in which they only read.

`is_read_only` says yes to what it knows and no to everything else. A command that can run another one, write a file or
follow links out of a tree is known by the options under which it does none of that (`command_options.Grammar`).
Programs are taken for what their names say; the caller that runs them checks the PATH. Git runs what a repository's own
configuration names, so even a read-only git command belongs in a sandbox in which nothing can be written, with the
settings of `safe_git`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple

from dragoman.host.command_options import Grammar
from dragoman.host.shell import Simple

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
    if paths is None or not simple.literal:
        return None
    return paths


def _reading(simple: Simple) -> tuple[str, ...] | None:
    """Return the paths that are read, as far as the words tell; None for a command that does more."""
    if simple.assignments or not simple.argv:
        return None
    if any(kind != "read" and target != _NOWHERE for kind, target, _ in simple.redirects):
        return None
    if any(simple.argv[at].startswith(_MAY_BECOME_AN_OPTION) for at in simple.expands):
        return None
    name, *words = simple.argv
    special = _SPECIAL.get(name)
    if special is not None:
        found = special(words, simple.literal)
    else:
        found = _paths(_RULES.get(name), words, simple.literal)
    if found is None:
        return None
    return (*found, *(target for kind, target, _ in simple.redirects if kind == "read"))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


Operands = Literal["paths", "text", "pattern"]


class ReadOnlyUsage(NamedTuple):
    """How a command may be used, and what its operands are: paths, text, or a pattern and then paths."""

    grammar: Grammar
    operands: Operands = "paths"
    most: int | None = None  # operands; a second one may be written to


def _paths(rule: ReadOnlyUsage | None, words: list[str], literal: bool) -> tuple[str, ...] | None:
    arguments = rule.grammar.read(words) if rule is not None else None
    if rule is None or arguments is None:
        return None
    if rule.most is not None and (len(arguments.operands) > rule.most or not literal):
        return None
    match rule.operands:
        case "text":
            return arguments.paths
        case "pattern" if not arguments.options & _PATTERN_ELSEWHERE:
            return (*arguments.paths, *arguments.operands[1:])
        case _:
            return (*arguments.paths, *arguments.operands)


_PATTERN_ELSEWHERE: Final = frozenset({"-e", "-f", "--regexp", "--file", "--files", "--type-list"})

_RULES: Final[Mapping[str, ReadOnlyUsage]] = {
    "ls": ReadOnlyUsage(
        Grammar(
            "-a -A -b -B -c -C -d -f -F -g -G -h -H -i -k -l -L -m -n -N -o -p -q -Q -r -R -s -S -t -u -U -v -x -X -1",
            "-Z -I: -w: -T: --all --almost-all --color= --directory --classify= --human-readable --recursive --reverse",
            "--size --sort= --time= --time-style= --full-time --group-directories-first --inode --ignore: --hide:",
        )
    ),
    "cat": ReadOnlyUsage(
        Grammar("-A -b -e -E -n -s -t -T -u -v --number --number-nonblank --show-all --squeeze-blank")
    ),
    "head": ReadOnlyUsage(Grammar("-n: -c: -q -v -z -# --lines: --bytes: --quiet --silent --verbose")),
    "tail": ReadOnlyUsage(
        Grammar("-n: -c: -q -v -z -f -F -# --lines: --bytes: --quiet --silent --verbose --follow= --retry")
    ),
    "wc": ReadOnlyUsage(Grammar("-c -m -l -w -L --bytes --chars --lines --words --max-line-length")),
    "nl": ReadOnlyUsage(Grammar("-b: -n: -s: -w: -v: -i: --body-numbering:")),
    "tac": ReadOnlyUsage(Grammar("-s: -b -r")),
    "rev": ReadOnlyUsage(Grammar()),
    "cut": ReadOnlyUsage(
        Grammar("-b: -c: -d: -f: -s -n -z --bytes: --characters: --delimiter: --fields: --output-delimiter:")
    ),
    "paste": ReadOnlyUsage(Grammar("-d: -s --delimiters: --serial")),
    "comm": ReadOnlyUsage(Grammar("-1 -2 -3 -z --check-order --nocheck-order --total")),
    "cmp": ReadOnlyUsage(Grammar("-b -l -s -n: -i: --print-bytes --silent --quiet --bytes: --verbose")),
    "diff": ReadOnlyUsage(
        Grammar(
            "-u -U: -c -C: -q -w -b -B -i -y -W: -s -a -N -p -E -Z --brief --unified= --side-by-side --color= --width:",
            "--ignore-all-space --ignore-space-change --ignore-blank-lines --ignore-case --text --new-file --minimal",
            "--report-identical-files --suppress-common-lines --no-dereference --strip-trailing-cr --label:",
        )
    ),
    "fold": ReadOnlyUsage(Grammar("-b -s -w: --width: --spaces")),
    "expand": ReadOnlyUsage(Grammar("-i -t: --tabs:")),
    "unexpand": ReadOnlyUsage(Grammar("-a -t: --tabs:")),
    "column": ReadOnlyUsage(Grammar("-t -s: -n -c: -x")),
    "od": ReadOnlyUsage(Grammar("-A: -t: -N: -j: -c -x -b -d -o -v -w?")),
    "hexdump": ReadOnlyUsage(Grammar("-C -n: -s: -v -c -x")),
    "sort": ReadOnlyUsage(
        Grammar(
            "-b -d -f -g -i -M -h -n -R -r -V -c -C -m -s -u -z -k: -t: --key: --field-separator: --reverse --unique",
            "--numeric-sort --general-numeric-sort --human-numeric-sort --version-sort --ignore-case --stable --check=",
            "--dictionary-order --ignore-leading-blanks --ignore-nonprinting --month-sort --zero-terminated",
        )
    ),
    "uniq": ReadOnlyUsage(Grammar("-c -d -u -i -D -z -f: -s: -w: --count --repeated --unique --ignore-case"), most=1),
    "tr": ReadOnlyUsage(Grammar("-c -C -d -s -t --complement --delete --squeeze-repeats --truncate-set1"), "text"),
    "seq": ReadOnlyUsage(Grammar("-f: -s: -w"), "text"),
    "true": ReadOnlyUsage(Grammar(), "text"),
    "false": ReadOnlyUsage(Grammar(), "text"),
    ":": ReadOnlyUsage(Grammar(), "text"),
    "pwd": ReadOnlyUsage(Grammar("-L -P"), "text"),
    "basename": ReadOnlyUsage(Grammar("-a -s: -z"), "text"),
    "dirname": ReadOnlyUsage(Grammar("-z"), "text"),
    "realpath": ReadOnlyUsage(Grammar("-e -m -L -P -q -s -z --relative-to:@ --relative-base:@")),
    "readlink": ReadOnlyUsage(Grammar("-f -e -m -n -q -s -v -z")),
    "stat": ReadOnlyUsage(Grammar("-L -f -c: -t --format: --printf: --dereference --file-system --terse")),
    "file": ReadOnlyUsage(
        Grammar(
            "-b -i -k -h -L -N -n -r -0 -F: --brief --mime --mime-type --mime-encoding --keep-going --no-dereference",
            "--dereference --no-pad --raw --print0 --separator:",
        )
    ),
    "du": ReadOnlyUsage(
        Grammar(
            "-a -s -h -k -m -c -b -x -S -0 -t: -d: --all --summarize --human-readable --max-depth: --total",
            "--apparent-size --exclude: --one-file-system --bytes --threshold: --time=",
        )
    ),
    "df": ReadOnlyUsage(Grammar("-h -k -T -i -a -P -H --human-readable --print-type --total --inodes --output=")),
    "tree": ReadOnlyUsage(
        Grammar("-a -d -f -i -p -s -h -u -g -D -F -r -t -C -n -L: -I: -P: --dirsfirst --noreport --prune --gitignore")
    ),
    "which": ReadOnlyUsage(Grammar("-a -s"), "text"),
    "type": ReadOnlyUsage(Grammar("-a -t -p -P -f"), "text"),
    "id": ReadOnlyUsage(Grammar("-u -g -G -n -r -z"), "text"),
    "groups": ReadOnlyUsage(Grammar(), "text"),
    "whoami": ReadOnlyUsage(Grammar(), "text"),
    "uname": ReadOnlyUsage(Grammar("-a -s -n -r -v -m -p -i -o --all"), "text"),
    "arch": ReadOnlyUsage(Grammar(), "text"),
    "nproc": ReadOnlyUsage(Grammar("--all --ignore:"), "text"),
    "hostname": ReadOnlyUsage(Grammar("-s -f -I"), "text", most=0),
    **{
        f"{name}sum": ReadOnlyUsage(Grammar("-b -t -z --tag"))
        for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")
    },
    **{
        name: ReadOnlyUsage(
            Grammar(
                "-i -v -w -x -c -l -L -n -H -h -o -q -s -r -E -F -G -P -a -I -z -Z -b -T -U -y -e: -f:@ -m: -A: -B:",
                "-C: -# --include: --exclude: --exclude-dir: --exclude-from:@ --color= --colour= --ignore-case --null",
                "--invert-match --word-regexp --line-regexp --line-number --files-with-matches --files-without-match",
                "--count --only-matching --quiet --silent --no-messages --recursive --extended-regexp --fixed-strings",
                "--perl-regexp --basic-regexp --text --regexp: --file:@ --max-count: --after-context:",
                "--before-context: --context: --line-buffered --with-filename --no-filename --byte-offset",
            ),
            "pattern",
        )
        for name in ("grep", "egrep", "fgrep")
    },
    "rg": ReadOnlyUsage(
        Grammar(
            "-i -s -S -v -w -x -c -l -n -N -H -I -o -F -P -U -a -u -. -p -q -0 -b -e: -f:@ -g: -t: -T: -m: -M: -A: -B:",
            "-C: -d: -E: -j: -r: --ignore-case --case-sensitive --smart-case --hidden --no-ignore --no-ignore-vcs",
            "--files --files-with-matches --files-without-match --count --count-matches --line-number",
            "--no-line-number --with-filename --no-filename --only-matching --fixed-strings --word-regexp --multiline",
            "--line-regexp --multiline-dotall --text --glob: --iglob: --type: --type-not: --type-list --max-count:",
            "--max-depth: --after-context: --before-context: --context: --regexp: --file:@ --color: --heading",
            "--no-heading --column --json --sort: --sortr: --stats --trim --vimgrep --pcre2 --null --quiet --replace:",
            "--max-columns: --max-filesize: --no-messages --invert-match --ignore-file:@ --no-config --version",
        ),
        "pattern",
    ),
}

_DIFF: Final = (
    "-p -u -s -U: -w -b -a -z -R -M? -C? -S: -G: -W --patch --no-patch --stat= --shortstat --numstat --summary --raw"
    " --name-only --name-status --cached --staged --color= --no-color --word-diff= --unified: --ignore-all-space"
    " --ignore-space-change --ignore-blank-lines --diff-filter: --find-renames= --find-copies= --no-renames --minimal"
    " --patience --histogram --diff-algorithm: --function-context --no-ext-diff --no-textconv --exit-code --quiet"
    " --no-prefix --relative --full-index --abbrev= --pickaxe-regex --pickaxe-all --merge-base --compact-summary"
    " --dirstat= --text --submodule= --inter-hunk-context: --cc -c -m"
)
_LOG: Final = (
    "-n: -# -i -E -F -P --max-count: --skip: --oneline --graph --all --branches= --tags= --remotes= --decorate="
    " --no-decorate --since: --until: --after: --before: --author: --committer: --grep: --invert-grep --all-match"
    " --format: --pretty= --abbrev-commit --no-abbrev-commit --no-merges --merges --first-parent --reverse --follow"
    " --date: --date-order --topo-order --author-date-order --left-right --cherry-pick --boundary --simplify-merges"
    " --full-history --ancestry-path --source --no-notes --parents --children --min-parents: --max-parents:"
    " --no-expand-tabs --full-diff --walk-reflogs -g"
)
_GIT_OPTIONS: Final = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"})
_GIT: Final[Mapping[str, ReadOnlyUsage]] = {
    "status": ReadOnlyUsage(
        Grammar(
            "-s -b -v -u? -z --short --branch --porcelain= --long --verbose --untracked-files= --ignored= --show-stash",
            "--ahead-behind --no-ahead-behind --renames --no-renames --ignore-submodules= --column= --no-column",
        )
    ),
    "diff": ReadOnlyUsage(Grammar(_DIFF)),
    "log": ReadOnlyUsage(Grammar(_DIFF, _LOG)),
    "show": ReadOnlyUsage(Grammar(_DIFF, _LOG)),
    "shortlog": ReadOnlyUsage(Grammar("-s -n -e -c --summary --numbered --email --all --no-merges --since: --until:")),
    "rev-list": ReadOnlyUsage(Grammar(_LOG, "--count --objects")),
    "rev-parse": ReadOnlyUsage(
        Grammar(
            "-q --abbrev-ref= --short= --verify --quiet --show-toplevel --show-prefix --show-cdup --git-dir --all",
            "--git-common-dir --is-inside-work-tree --is-inside-git-dir --is-bare-repository --symbolic-full-name",
            "--absolute-git-dir --symbolic --branches= --tags= --remotes= --show-superproject-working-tree",
        )
    ),
    "ls-files": ReadOnlyUsage(
        Grammar(
            "-c -d -m -o -i -s -u -k -t -v -z -x: --cached --deleted --modified --others --ignored --stage --unmerged",
            "--exclude: --exclude-standard --full-name --error-unmatch --directory --abbrev=",
        )
    ),
    "ls-tree": ReadOnlyUsage(
        Grammar("-d -r -t -l -z --long --name-only --name-status --full-name --full-tree --abbrev=")
    ),
    "cat-file": ReadOnlyUsage(Grammar("-t -s -e -p")),
    "blame": ReadOnlyUsage(
        Grammar(
            "-L: -w -M? -C? -s -e -l -t -f -n -b --porcelain --line-porcelain --show-email --show-name --date: --root"
        )
    ),
    "describe": ReadOnlyUsage(
        Grammar("--tags --all --long --always --dirty= --abbrev= --match: --exclude: --exact-match --contains")
    ),
    "name-rev": ReadOnlyUsage(Grammar("--tags --name-only --all --always")),
    "merge-base": ReadOnlyUsage(Grammar("-a --all --octopus --is-ancestor --fork-point")),
    "grep": ReadOnlyUsage(
        Grammar(
            "-i -v -w -c -l -L -n -h -H -o -q -E -F -G -P -I -a -W -p -e: -A: -B: -C: -m: -# --ignore-case",
            "--line-number --invert-match --word-regexp --files-with-matches --count --only-matching --extended-regexp",
            "--cached --fixed-strings --perl-regexp --untracked --name-only --max-depth: --show-function",
            "--function-context --heading --break --column --context: --after-context: --before-context: --and --or",
            "--not --all-match",
        ),
        "pattern",
    ),
    "remote": ReadOnlyUsage(Grammar("-v --verbose"), most=0),
    "version": ReadOnlyUsage(Grammar("--build-options"), most=0),
}
_LISTING: Final = "--sort: --format: --color= --no-color --column= --no-column --ignore-case -i --points-at:"
_CONTAINING: Final = "--contains: --no-contains: --merged: --no-merged:"
# Without `--list` a name among these makes a branch or a tag. To an old git, `branch -l NAME` makes one, too.
_GIT_LISTS: Final[Mapping[str, Grammar]] = {
    "branch": Grammar(_LISTING, _CONTAINING, "-a -r -v --list --all --remotes --verbose --show-current --abbrev="),
    "tag": Grammar(_LISTING, _CONTAINING, "-n? -l --list"),
}
# A format with this asks a program about signatures.
_SIGNATURE: Final = "%G"


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
    return _paths(_GIT.get(name), rest, literal)


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
KNOWN: Final = frozenset(_RULES) | frozenset(_SPECIAL)
