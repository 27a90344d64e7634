"""Lines of bash by chance, and what bash does with them: which commands run with which words, which files it opens.

Promise: a line is run in a folder of its own, in which the files of `FILES` stand, and can write nowhere else. Commands
are called `z0` … `z9`; each records its words and its folder, prints two words, and succeeds unless it is `z9`.
"""

import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.needs import need
from tests.support.opened_files import OpenedFiles

FILES = tuple(f"{folder}{name}" for folder in ("", "d1/", "d1/d2/") for name in ("r1", "r2"))
_LITERAL = (
    *("a", "-b", "é", "=", "%", "^", "!", ",", "..", ".", ":", "+", "@", "1", "22", "-", "_", "X=", "[", "]", "{", "}"),
    *("''", '""', "'x y'", '"x y"', "'\"'", '"\'"', "\\ ", "\\\\", "\\'", '\\"', "\\\n", '"\\$"', '"\\x"', "'\\\n'"),
    *('"$"', "\\*", "'{'", "'$x'", "\\#", "'\n'", '"\\\n"', "\\~", "a#b", "if", "done", "$", "'$(z1)'", "\\$\\(z1\\)"),
    *('"\\`"', "'`z1`'", '"a\\"b"', "\\;", "'&&'", '"|"', "'<<E'", "'#'", "then", "esac", "in", "do", "time"),
)
_EXPANDING = ("$X", '"$X"', "*", "~", "{a,b}", "{1..3}", "a?", "[ab]", "${X}", "$1", "$?", '"a${X}b"', "r*", "'a'$X")
_SEPARATORS = (";", " ; ", "\n", ";\n", "\n\n", " # c's\n", "; # it's $(z1)\n")


class Line(NamedTuple):
    """`is_certain`: every command in it runs once, and every file is opened."""

    text: str
    is_certain: bool


class _Generator:
    """One line, by the grammar."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._is_certain = True
        self._heredocs: list[str] = []
        self._names: list[str] = []

    def line(self) -> Line:
        text = self._list(0, top=True)
        return Line(text, self._is_certain)

    def _is(self, share: float) -> bool:
        return self._chance.random() < share

    def _one(self, options: Sequence[str]) -> str:
        return self._chance.choice(options)

    def _list(self, depth: int, *, top: bool = False) -> str:
        """Commands with a separator behind each but the last."""
        kept, self._heredocs = self._heredocs, []
        parts = []
        for _ in range(self._chance.choice((1, 1, 2, 3) if depth else (1, 2, 3, 4))):
            if top and self._is(0.08):
                parts.append(self._function())
            else:
                parts.append(self._and_or(depth) + self._separator())
        text = "".join(parts)
        if not self._heredocs and self._is(0.5) and text.endswith(";") and top:
            text = text[:-1]
        self._heredocs = kept
        return text

    def _separator(self) -> str:
        if self._heredocs:
            bodies, self._heredocs = "".join(self._heredocs), []
            return "\n" + bodies
        return self._one(_SEPARATORS) if self._is(0.97) else self._one((" &\n", "& "))

    def _and_or(self, depth: int) -> str:
        text = self._pipeline(depth)
        while self._is(0.2):
            self._is_certain = False
            text += self._one((" && ", " || ", "&&", "||", " &&\\\n")) + self._pipeline(depth)
        return text

    def _pipeline(self, depth: int) -> str:
        text = ("! " if self._is(0.05) else "") + self._command(depth)
        while self._is(0.15):
            text += self._one((" | ", "|", " |& ", "|\\\n")) + self._command(depth)
        return text

    def _command(self, depth: int) -> str:
        if depth > 2 or self._is(0.72):
            return self._simple(depth)
        inner = depth + 1
        kind = self._one(("(", "{", "if", "for", "while", "case", "cd"))
        if kind == "(":
            text = f"({self._list(inner)})" if self._is(0.5) else f"( {self._list(inner)} )"
            text = text.replace("((", "( (", 1) if text.startswith("((") else text
        elif kind == "{":
            text = f"{{ {self._list(inner)} }}"
        elif kind == "cd":
            return "cd " + self._one(("d1", "d1/d2", "./d1", "'d1'", "d9", "$X", "-"))
        else:
            self._is_certain = False
            text = self._branch(kind, inner)
        files = " ".join(self._redirects(depth)) if self._is(0.2) else ""
        return f"{text} {files}" if files else text

    def _branch(self, kind: str, depth: int) -> str:
        if kind == "if":
            other = f"elif {self._list(depth)} then {self._list(depth)}" if self._is(0.3) else ""
            other += f"else {self._list(depth)}" if self._is(0.4) else ""
            return f"if {self._list(depth)} then {self._list(depth)}{other} fi"
        if kind == "for":
            words = " ".join(self._word(depth) for _ in range(self._chance.randint(0, 3)))
            return f"for i in {words}" + self._one((";", "\n")) + f" do {self._list(depth)} done"
        if kind == "while":
            return self._one(("while", "until")) + f" {self._list(depth)} do {self._list(depth)} break; done"
        items = "".join(
            self._one(("", "(")) + self._one(("a", "b|a", "*", '"x"')) + f") {self._list(depth)} ;;\n"
            for _ in range(self._chance.randint(0, 2))
        )
        return "case " + self._one(("a", "b", "$X")) + f" in\n{items} esac"

    def _function(self) -> str:
        self._is_certain = False
        name = f"f{len(self._names)}"
        body = self._list(1)
        call = f"{name} {self._word(1)}\n" if self._is(0.8) else ""
        self._names.append(name)
        return f"{name}() {{ {body} }}\n{call}"

    def _simple(self, depth: int) -> str:
        parts = [f"{self._one('AB')}={self._word(depth)}"] if self._is(0.08) else []
        name = f"z{self._chance.randint(0, 9 if self._is(0.3) else 8)}"
        if name == "z9":
            self._is_certain = False
        parts.append(self._one((name, f"z'{name[1]}'", f'"{name}"', f"\\{name}", f"z\\\n{name[1]}")))
        parts += [self._word(depth) for _ in range(self._chance.randint(0, 3))]
        if self._is(0.3):
            for redirect in self._redirects(depth):
                parts.insert(self._chance.randint(0 if self._is(0.2) else 1, len(parts)), redirect)
        return "".join(part + self._one((" ", "  ", "\t", " \\\n", " ")) for part in parts[:-1]) + parts[-1]

    def _redirects(self, depth: int) -> list[str]:
        found = []
        for _ in range(self._chance.choice((1, 1, 2))):
            kind = self._one(
                ("<", ">", ">", ">>", "&>", ">|", "<>", "<<<", "<<", "<<", "2>&1", "3>", "2>>", ">&", "&>>")
            )
            space = self._one(("", " "))
            if kind == "<":
                found.append(f"<{space}" + self._one(("r1", "r2", "'r1'")))
            elif kind == "<<<":
                found.append(f"<<<{space}{self._word(depth)}")
            elif kind == "<<":
                found.append(self._heredoc(depth))
            elif kind == "2>&1":
                found.append(kind)
            else:
                found.append(f"{kind}{space}" + self._one(("w1", "w2", "w1", "'w$X'", '"w 3"', "w\\4", "/dev/null")))
        return found

    def _heredoc(self, depth: int) -> str:
        end, quoted, tabs = self._one(("E", "EOF")), self._is(0.5), self._is(0.2)
        lines = [" E", "E ", "it's", "a 'b", '"', "$X", "z1", "E F", "\\$(z2)", "#", "\tE2", "((", "x)", ""]
        body = [self._one(lines) for _ in range(self._chance.randint(0, 3))]
        if self._is(0.3):
            body.append(f"a $(z{self._chance.randint(0, 8)} b) c" if not quoted else "a $(z1) `z2` c")
        tab = "\t" if tabs else ""
        self._heredocs.append("".join(f"{tab}{line}\n" for line in [*body, end]))
        word = self._one((f"'{end}'", f'"{end}"', f"\\{end}")) if quoted else end
        return ("<<-" if tabs else "<<") + self._one(("", " ")) + word

    def _word(self, depth: int) -> str:
        if depth < 3 and self._is(0.12):
            inner = self._list(depth + 1)
            inner = f" {inner}" if inner.startswith("(") else inner
            kind = self._one(("$(%s)", '"$(%s)"', 'a"b$(%s)c"', "`%s`", "<(%s)"))
            return kind % (inner if kind != "`%s`" or not re.search(r"[`\\]", inner) else "z1 a")
        if self._is(0.1):
            return self._one(_EXPANDING)
        return "".join(self._one(_LITERAL) for _ in range(self._chance.choice((1, 1, 2, 3))))


_TOKENS = (
    *_LITERAL,
    *_EXPANDING,
    ";",
    "&",
    "|",
    "&&",
    "(",
    ")",
    "<",
    ">",
    "<<E",
    "\n",
    " ",
    "{ ",
    "}",
    "fi",
    "for",
    "$(",
    "`",
)


def random_line(chance: random.Random) -> Line:
    """Return a line of the grammar, or one of three times one with something cut, doubled or put in."""
    line = _Generator(chance).line()
    if chance.random() < 0.67:
        return line
    text = line.text
    for _ in range(chance.choice((1, 1, 2, 3))):
        at = chance.randint(0, len(text))
        end = min(len(text), at + chance.randint(0, 4))
        text = text[:at] + chance.choice(("", chance.choice(_TOKENS), text[at:end] * 2)) + text[end:]
    # A loop that has lost its `break` would not end.
    return Line(text, False) if "while" not in text and "until" not in text else line


# -- what bash does --------------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """A command that ran: the folder it ran in, seen from that of the line, and its words."""

    folder: str
    argv: tuple[str, ...]


class Seen(NamedTuple):
    """What a line did: the commands in the order of their records, and the files that were opened."""

    runs: tuple[Run, ...]
    read: frozenset[str]
    written: frozenset[str]


# Each process has a file for its records, because bash writes them in pieces, and those of a pipeline would mix.
_HARNESS = r"""
shown() { printf '%s\0' "$PWD" "$#" "$@" >>"$LOG.$BASHPID"; echo p q; echo e >&2; [[ $1 != z9 ]]; }
for name in z{0..9}; do eval "$name() { shown $name \"\$@\"; }"; done
unset name
command_not_found_handle() { shown "$@"; }
readonly -f shown
trap '' PIPE
exec 8>&1
FUNCNEST=60 X='1 2' at=0
for line in "$@"; do
    cd "$BASE/$at" || exit
    OLDPWD=$PWD/d1
    (LOG=$LOGS/$at; unset at; set --; eval "$line") >/dev/null 2>&1 </dev/null
    at=$((at + 1))
done
"""


def seen_by_bash(lines: Sequence[str], folder: Path) -> list[Seen]:
    """Run each line by bash, in a new folder below this one."""
    base, logs = folder / "base", folder / "logs"
    for made in (base, logs):
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir()
    for at in range(len(lines)):
        (base / str(at) / "d1" / "d2").mkdir(parents=True)
        for name in FILES:
            (base / str(at) / name).write_text("text\n")
    with OpenedFiles(
        [str(base / str(at) / below) for at in range(len(lines)) for below in ("", "d1", "d1/d2")]
    ) as opened:
        box = [need("bwrap"), "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-net"]
        box += ["--bind", str(folder), str(folder), "--die-with-parent", "--", "/bin/bash", "--noprofile", "--norc"]
        environment = {
            "PATH": "/nowhere",
            "LC_ALL": "C.UTF-8",
            "HOME": "/nowhere",
            "BASE": str(base),
            "LOGS": str(logs),
        }
        # The pipe ends when every process that a line has left behind has ended, too.
        subprocess.run(
            [*box, "-c", _HARNESS, "bash", *lines], stdout=subprocess.PIPE, check=True, timeout=50, env=environment
        )
        read, written = opened.read()
    records = [b""] * len(lines)
    for log in sorted(logs.iterdir()):
        records[int(log.stem)] += log.read_bytes()
    return [_seen(f"{base / str(at)}/", record.decode(), read, written) for at, record in enumerate(records)]


def _seen(own: str, records: str, read: set[str], written: set[str]) -> Seen:
    runs = tuple(Run(os.path.relpath(folder, own), argv) for folder, argv in _records(records))
    files = (frozenset(path.removeprefix(own) for path in paths if path.startswith(own)) for paths in (read, written))
    return Seen(runs, *files)


def _records(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    fields = iter(text.split("\0")[:-1])
    for folder in fields:
        yield folder, tuple(next(fields) for _ in range(int(next(fields))))
