"""The table of commands that only read: how each may be used, with uses that it must allow and uses it must refuse.

Data and nothing else: `read_only_commands` reads it when it judges its first command, and refuses to work with a table
whose examples do not hold. How options are written is said in `command_options`. An option that is not in here is
refused, whatever it would do, so what is new belongs here only where it neither writes, nor runs anything, nor follows
links out of a tree.
"""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

Operands = Literal["paths", "text", "pattern"]


class ReadOnlyUsage(NamedTuple):
    """How a command may be used: its options, and what its operands are: paths, text, or a pattern and then paths.

    `most` is how many operands it may have; another one may be written to. `yes` are words that may follow the name,
    `no` words that must not, each with a `;` between.
    """

    options: str = ""
    operands: Operands = "paths"
    most: int | None = None
    yes: str = ""
    no: str = ""


USAGES: Final[Mapping[str, ReadOnlyUsage]] = {
    "ls": ReadOnlyUsage(
        "-a -A -b -B -c -C -d -f -F -g -G -h -H -i -k -l -L -m -n -N -o -p -q -Q -r -R -s -S -t -u -U -v -x -X -1"
        " -Z -I: -w: -T: --all --almost-all --color= --directory --classify= --human-readable --recursive --reverse"
        " --size --sort= --time= --time-style= --full-time --group-directories-first --inode --ignore: --hide:",
        yes="-la --color=auto src",
        no="--zero",
    ),
    "cat": ReadOnlyUsage(
        "-A -b -e -E -n -s -t -T -u -v --number --number-nonblank --show-all --squeeze-blank",
        yes="-n a /etc/passwd",
        no="--show-everything a",
    ),
    "head": ReadOnlyUsage(
        "-n: -c: -q -v -z -# --lines: --bytes: --quiet --silent --verbose", yes="-n 5 a; -20 a", no="--lines"
    ),
    "tail": ReadOnlyUsage(
        "-n: -c: -q -v -z -f -F -# --lines: --bytes: --quiet --silent --verbose --follow= --retry",
        yes="-n5 -f a",
        no="--pid=1 a; -s 1 a",
    ),
    "wc": ReadOnlyUsage(
        "-c -m -l -w -L --bytes --chars --lines --words --max-line-length", yes="-l a", no="--files0-from=f"
    ),
    "nl": ReadOnlyUsage("-b: -n: -s: -w: -v: -i: --body-numbering:", yes="-ba a", no="-d x a"),
    "tac": ReadOnlyUsage("-s: -b -r", yes="-r a", no="--x a"),
    "rev": ReadOnlyUsage("", yes="a", no="-x a"),
    "cut": ReadOnlyUsage(
        "-b: -c: -d: -f: -s -n -z --bytes: --characters: --delimiter: --fields: --output-delimiter:",
        yes="-d/ -f2 a; --fields=1 a",
        no="--output=x a",
    ),
    "paste": ReadOnlyUsage("-d: -s --delimiters: --serial", yes="-sd, a b", no="-x a"),
    "comm": ReadOnlyUsage(
        "-1 -2 -3 -z --check-order --nocheck-order --total", yes="-12 a b", no="--output-delimiter=x a b"
    ),
    "cmp": ReadOnlyUsage(
        "-b -l -s -n: -i: --print-bytes --silent --quiet --bytes: --verbose", yes="-s a b", no="-x a b"
    ),
    "diff": ReadOnlyUsage(
        "-u -U: -c -C: -q -w -b -B -i -y -W: -s -a -N -p -E -Z --brief --unified= --side-by-side --color= --width:"
        " --ignore-all-space --ignore-space-change --ignore-blank-lines --ignore-case --text --new-file --minimal"
        " --report-identical-files --suppress-common-lines --no-dereference --strip-trailing-cr --label:",
        yes="-u --color=auto a b; -U 3 a b",
        no="-r a b; --to-file=x a",
    ),
    "fold": ReadOnlyUsage("-b -s -w: --width: --spaces", yes="-sw 80 a", no="-x a"),
    "expand": ReadOnlyUsage("-i -t: --tabs:", yes="-t 4 a", no="-x a"),
    "unexpand": ReadOnlyUsage("-a -t: --tabs:", yes="-a a", no="-x a"),
    "column": ReadOnlyUsage("-t -s: -n -c: -x", yes="-ts, a", no="-J a"),
    "od": ReadOnlyUsage("-A: -t: -N: -j: -c -x -b -d -o -v -w?", yes="-An -tx1 a", no="--strings a"),
    "hexdump": ReadOnlyUsage("-C -n: -s: -v -c -x", yes="-C -n 16 a", no="-e x a; -f x a"),
    "sort": ReadOnlyUsage(
        "-b -d -f -g -i -M -h -n -R -r -V -c -C -m -s -u -z -k: -t: --key: --field-separator: --reverse --unique"
        " --numeric-sort --general-numeric-sort --human-numeric-sort --version-sort --ignore-case --stable --check="
        " --dictionary-order --ignore-leading-blanks --ignore-nonprinting --month-sort --zero-terminated",
        yes="-k2 -nr a; -t, --unique a",
        no="-o f a; -of a; --output=f a; --outp=f a; --compress-program=x a; -T /x a; --files0-from=f",
    ),
    "uniq": ReadOnlyUsage(
        "-c -d -u -i -D -z -f: -s: -w: --count --repeated --unique --ignore-case", most=1, yes="-c a", no="a b; -c a b"
    ),
    "tr": ReadOnlyUsage(
        "-c -C -d -s -t --complement --delete --squeeze-repeats --truncate-set1",
        "text",
        yes="a-z A-Z; -d x",
        no="-x a b",
    ),
    "seq": ReadOnlyUsage("-f: -s: -w", "text", yes="1 10; -s, 3", no="-x 3"),
    "true": ReadOnlyUsage("", "text", yes="", no="-x"),
    "false": ReadOnlyUsage("", "text", yes="", no="-x"),
    ":": ReadOnlyUsage("", "text", yes="a b", no="-x"),
    "pwd": ReadOnlyUsage("-L -P", "text", yes="-P", no="-x"),
    "basename": ReadOnlyUsage("-a -s: -z", "text", yes="-s .c a.c", no="-x a"),
    "dirname": ReadOnlyUsage("-z", "text", yes="a/b", no="-x a"),
    "realpath": ReadOnlyUsage(
        "-e -m -L -P -q -s -z --relative-to:@ --relative-base:@", yes="--relative-to=/x a", no="--x a"
    ),
    "readlink": ReadOnlyUsage("-f -e -m -n -q -s -v -z", yes="-f a", no="--x a"),
    "stat": ReadOnlyUsage(
        "-L -f -c: -t --format: --printf: --dereference --file-system --terse", yes="-c %a a", no="--cached=never a"
    ),
    "file": ReadOnlyUsage(
        "-b -i -k -h -L -N -n -r -0 -F: --brief --mime --mime-type --mime-encoding --keep-going --no-dereference"
        " --dereference --no-pad --raw --print0 --separator:",
        yes="-b a",
        no="-m x a; -C -m x; -z a; -f list; --magic-file=x a",
    ),
    "du": ReadOnlyUsage(
        "-a -s -h -k -m -c -b -x -S -0 -t: -d: --all --summarize --human-readable --max-depth: --total"
        " --apparent-size --exclude: --one-file-system --bytes --threshold: --time=",
        yes="-sh a; --max-depth=1",
        no="--files0-from=f; -X f",
    ),
    "df": ReadOnlyUsage(
        "-h -k -T -i -a -P -H --human-readable --print-type --total --inodes --output=", yes="-h", no="--sync"
    ),
    "tree": ReadOnlyUsage(
        "-a -d -f -i -p -s -h -u -g -D -F -r -t -C -n -L: -I: -P: --dirsfirst --noreport --prune --gitignore",
        yes="-L 2 src",
        no="-o f; -R",
    ),
    "which": ReadOnlyUsage("-a -s", "text", yes="-a python", no="--read-alias x"),
    "type": ReadOnlyUsage("-a -t -p -P -f", "text", yes="-a ls", no="-x ls"),
    "id": ReadOnlyUsage("-u -g -G -n -r -z", "text", yes="-un", no="-x"),
    "groups": ReadOnlyUsage("", "text", yes="a", no="-x"),
    "whoami": ReadOnlyUsage("", "text", yes="", no="-x"),
    "uname": ReadOnlyUsage("-a -s -n -r -v -m -p -i -o --all", "text", yes="-a", no="-x"),
    "arch": ReadOnlyUsage("", "text", yes="", no="-x"),
    "nproc": ReadOnlyUsage("--all --ignore:", "text", yes="--all", no="-x"),
    "hostname": ReadOnlyUsage("-s -f -I", "text", most=0, yes="-f", no="x; -F f"),
    **dict.fromkeys(
        ("md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum"),
        ReadOnlyUsage("-b -t -z --tag", yes="-b a", no="-c f; --check f"),
    ),
    **dict.fromkeys(
        ("grep", "egrep", "fgrep"),
        ReadOnlyUsage(
            "-i -v -w -x -c -l -L -n -H -h -o -q -s -r -E -F -G -P -a -I -z -Z -b -T -U -y -e: -f:@ -m: -A: -B: -C: -#"
            " --include: --exclude: --exclude-dir: --exclude-from:@ --color= --colour= --ignore-case --null"
            " --invert-match --word-regexp --line-regexp --line-number --files-with-matches --files-without-match"
            " --count --only-matching --quiet --silent --no-messages --recursive --extended-regexp --fixed-strings"
            " --perl-regexp --basic-regexp --text --regexp: --file:@ --max-count: --after-context: --before-context:"
            " --context: --line-buffered --with-filename --no-filename --byte-offset",
            "pattern",
            yes="-rn x src; -e x -f /patterns a; --color=auto x",
            no="-R x .; --devices=read x",
        ),
    ),
    "rg": ReadOnlyUsage(
        "-i -s -S -v -w -x -c -l -n -N -H -I -o -F -P -U -a -u -. -p -q -0 -b -e: -f:@ -g: -t: -T: -m: -M: -A: -B:"
        " -C: -d: -E: -j: -r: --ignore-case --case-sensitive --smart-case --hidden --no-ignore --no-ignore-vcs"
        " --files --files-with-matches --files-without-match --count --count-matches --line-number --no-line-number"
        " --with-filename --no-filename --only-matching --fixed-strings --word-regexp --multiline --line-regexp"
        " --multiline-dotall --text --glob: --iglob: --type: --type-not: --type-list --max-count: --max-depth:"
        " --after-context: --before-context: --context: --regexp: --file:@ --color: --heading --no-heading --column"
        " --json --sort: --sortr: --stats --trim --vimgrep --pcre2 --null --quiet --replace: --max-columns:"
        " --max-filesize: --no-messages --invert-match --ignore-file:@ --no-config --version",
        "pattern",
        yes="-i x -g *.py src; --files src",
        no="--pre x y; --pre=x y; -z x; --hostname-bin=x y; -L x; --follow x",
    ),
}

_DIFF: Final = (
    "-p -u -s -U: -w -b -a -z -R -M? -C? -S: -G: -W --patch --no-patch --stat= --shortstat --numstat --summary"
    " --raw --name-only --name-status --cached --staged --color= --no-color --word-diff= --unified:"
    " --ignore-all-space --ignore-space-change --ignore-blank-lines --diff-filter: --find-renames= --find-copies="
    " --no-renames --minimal --patience --histogram --diff-algorithm: --function-context --no-ext-diff --no-textconv"
    " --exit-code --quiet --no-prefix --relative --full-index --abbrev= --pickaxe-regex --pickaxe-all --merge-base"
    " --compact-summary --dirstat= --text --submodule= --inter-hunk-context: --cc -c -m"
)
_LOG: Final = (
    "-n: -# -i -E -F -P --max-count: --skip: --oneline --graph --all --branches= --tags= --remotes= --decorate="
    " --no-decorate --since: --until: --after: --before: --author: --committer: --grep: --invert-grep --all-match"
    " --format: --pretty= --abbrev-commit --no-abbrev-commit --no-merges --merges --first-parent --reverse --follow"
    " --date: --date-order --topo-order --author-date-order --left-right --cherry-pick --boundary --simplify-merges"
    " --full-history --ancestry-path --source --no-notes --parents --children --min-parents: --max-parents:"
    " --no-expand-tabs --full-diff --walk-reflogs -g"
)
# Options of git itself, before the name of one of its commands.
GIT_OPTIONS: Final = "--no-pager -P --no-optional-locks --literal-pathspecs"
GIT_USAGES: Final[Mapping[str, ReadOnlyUsage]] = {
    "status": ReadOnlyUsage(
        "-s -b -v -u? -z --short --branch --porcelain= --long --verbose --untracked-files= --ignored= --show-stash"
        " --ahead-behind --no-ahead-behind --renames --no-renames --ignore-submodules= --column= --no-column",
        yes="-sb; --porcelain=v2 src",
        no="--foo",
    ),
    "diff": ReadOnlyUsage(
        f"{_DIFF}", yes="--stat HEAD~1 -- src", no="--ext-diff; --ext-d; --output f; -O/x; --no-index a b; --textconv"
    ),
    "log": ReadOnlyUsage(
        f"{_DIFF} {_LOG}",
        yes="--oneline -5; --format=%h -n 3",
        no="--output=f; --outpu=f; --textconv; --show-signature; --format=%G?",
    ),
    "show": ReadOnlyUsage(f"{_DIFF} {_LOG}", yes="HEAD:a", no="--textconv; --ext-diff"),
    "shortlog": ReadOnlyUsage(
        "-s -n -e -c --summary --numbered --email --all --no-merges --since: --until:", yes="-sn", no="--x"
    ),
    "rev-list": ReadOnlyUsage(f"{_LOG} --count --objects", yes="--count HEAD", no="--use-bitmap-index"),
    "rev-parse": ReadOnlyUsage(
        "-q --abbrev-ref= --short= --verify --quiet --show-toplevel --show-prefix --show-cdup --git-dir --all"
        " --git-common-dir --is-inside-work-tree --is-inside-git-dir --is-bare-repository --symbolic-full-name"
        " --absolute-git-dir --symbolic --branches= --tags= --remotes= --show-superproject-working-tree",
        yes="--abbrev-ref HEAD",
        no="--parseopt",
    ),
    "ls-files": ReadOnlyUsage(
        "-c -d -m -o -i -s -u -k -t -v -z -x: --cached --deleted --modified --others --ignored --stage --unmerged"
        " --exclude: --exclude-standard --full-name --error-unmatch --directory --abbrev=",
        yes="-m src",
        no="-X /x",
    ),
    "ls-tree": ReadOnlyUsage(
        "-d -r -t -l -z --long --name-only --name-status --full-name --full-tree --abbrev=",
        yes="-r HEAD",
        no="--x HEAD",
    ),
    "cat-file": ReadOnlyUsage("-t -s -e -p", yes="-p HEAD", no="--textconv x; --filters x; --batch"),
    "blame": ReadOnlyUsage(
        "-L: -w -M? -C? -s -e -l -t -f -n -b --porcelain --line-porcelain --show-email --show-name --date: --root",
        yes="-L 1,5 a",
        no="--contents /x a",
    ),
    "describe": ReadOnlyUsage(
        "--tags --all --long --always --dirty= --abbrev= --match: --exclude: --exact-match --contains",
        yes="--tags",
        no="--x",
    ),
    "name-rev": ReadOnlyUsage("--tags --name-only --all --always", yes="--tags x", no="--stdin"),
    "merge-base": ReadOnlyUsage("-a --all --octopus --is-ancestor --fork-point", yes="a b", no="--x"),
    "grep": ReadOnlyUsage(
        "-i -v -w -c -l -L -n -h -H -o -q -E -F -G -P -I -a -W -p -e: -A: -B: -C: -m: -# --ignore-case"
        " --line-number --invert-match --word-regexp --files-with-matches --count --only-matching --extended-regexp"
        " --cached --fixed-strings --perl-regexp --untracked --name-only --max-depth: --show-function"
        " --function-context --heading --break --column --context: --after-context: --before-context: --and --or"
        " --not --all-match",
        "pattern",
        yes="-n x",
        no="-O x; --open-files-in-pager=x y; -f /x",
    ),
    "remote": ReadOnlyUsage("-v --verbose", most=0, yes="-v", no="add a b; show a"),
    "version": ReadOnlyUsage("--build-options", most=0, yes="", no="x"),
}
_LISTING: Final = (
    "--sort: --format: --color= --no-color --column= --no-column --ignore-case -i --points-at: --contains:"
    " --no-contains: --merged: --no-merged:"
)
# Without `--list` a name among these makes a branch or a tag. To an old git, `branch -l NAME` makes one, too.
GIT_LISTS: Final[Mapping[str, ReadOnlyUsage]] = {
    "branch": ReadOnlyUsage(
        "-a -r -v --list --all --remotes --verbose --show-current --abbrev= " + _LISTING,
        yes="-a; --list x*",
        no="x; -l x; -D x; -v x; -m a b",
    ),
    "tag": ReadOnlyUsage("-n? -l --list " + _LISTING, yes="; -l x*", no="x; -d x; -v x"),
}

# Commands whose words are judged by a function of their own.
SPECIAL_EXAMPLES: Final[Mapping[str, ReadOnlyUsage]] = {
    "echo": ReadOnlyUsage(yes="--- /etc/passwd; "),
    "git": ReadOnlyUsage(
        yes="--no-pager status; --version; stash list; reflog",
        no="; -c core.pager=x status; -C /x status; --git-dir=/x status; -p log; stash; stash pop; reflog expire; push",
    ),
    "find": ReadOnlyUsage(
        yes=". -name *.py -not -path ./x/* -type f; /etc -newer /x",
        no=". -exec rm {} +; . -execdir x; . -ok x; . -delete; . -fprint f; . -fls f; -L . -name x; . -files0-from f",
    ),
    "sed": ReadOnlyUsage(
        yes="-n 1,20p a; -n -e 5p -e $p a", no="-i 1p a; e a; s/a/b/ a; -f s a; --in-place 1p a; -n 1r/x a; -n 1w/x a"
    ),
    "test": ReadOnlyUsage(yes="-f a", no="-v a; -R a"),
    "[": ReadOnlyUsage(yes="-f a ]", no="-v a ]"),
    "printf": ReadOnlyUsage(yes="%s a", no="-v PATH x; %n PATH; %-5n PATH; "),
    "date": ReadOnlyUsage(yes="+%s; -u", no="-s x; 01010101; -f /x"),
    "command": ReadOnlyUsage(yes="-v rm", no="ls; -p ls"),
}
