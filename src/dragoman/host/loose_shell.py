"""Any shell text, taken apart as far as it goes, for those who look for bad things in it.

`shell.parse` answers only when it is sure. This one always answers: it finds every place where a command may stand,
also in substitutions, functions, loops and in texts handed to another shell. It may find commands where there are
none; it should not miss one that is there. Pure, and bounded by `SCANNED_BYTES`.
"""

import posixpath
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from dragoman.host import wildcards

# What Linux takes as one argument (MAX_ARG_STRLEN): a longer text cannot be handed to a shell.
TEXT_BYTES: Final = 128 * 1024
# Nesting of shells and substitutions. Real commands stay far below this.
DEPTH: Final = 12
# What is read in all, texts inside of texts included: about half a second.
SCANNED_BYTES: Final = 8 * TEXT_BYTES

# Stands in a word for what an expansion makes of it. No text that can be run has this character.
HOLE: Final = "\0"


class TooMuchToParse(Exception):
    """More than can be looked through; the message is the reason."""


class Loose(NamedTuple):
    """A command that may run: its words without quotes, the files it may write, and what it may be fed."""

    words: tuple[str, ...]
    written: tuple[str, ...] = ()
    # The words behind `<`, `<<` and `<<<`: a file, or the text itself.
    read: tuple[str, ...] = ()

    def names(self) -> Iterator[tuple[str, int]]:
        """Every name this command may go by, without its folder, and where in `words` it stands."""
        starts = True  # a command may begin with the next word
        wrapped = False
        before = set[str]()
        for at, word in enumerate(self.words):
            if starts and (_ASSIGNMENT.match(word) or word in _PREFIXES):
                continue
            if starts and word in ("-p", "--") and "time" in self.words[max(at - 2, 0) : at]:
                continue  # options of a word of the shell
            if starts or wrapped:
                yield name_of(word), at
            wrapped = wrapped or word in _RUNS_THE_REST or (starts and name_of(word) in WRAPPERS | SHELLS)
            wrapped = wrapped or (word in _RUNS_AFTER and not _RUNS_AFTER[word].isdisjoint(before))
            before.add(name_of(word))
            starts = word == "{"  # a group may begin in the middle: `function f { rm x`, `coproc NAME { rm x`


def name_of(word: str) -> str:
    """A program's name without its folder."""
    return posixpath.basename(word)


def commands_in(text: str) -> list[Loose]:
    """Every command that may be in a text; `TooMuchToParse` if that cannot be said."""
    if len(text.encode(errors="replace")) > TEXT_BYTES:
        raise TooMuchToParse("it is longer than a command line can be")
    scan = _Scan()
    scan.read(text, 0)
    return scan.found


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SHELLS: Final = _words("sh bash dash zsh ksh mksh ash fish csh tcsh rbash")
# What runs a command that stands among its words.
WRAPPERS: Final = _words(
    "sudo doas su runuser env nice ionice chrt taskset nohup setsid timeout stdbuf command builtin exec time watch"
    " xargs parallel chroot unshare nsenter busybox toybox strace ltrace gdb flock script eval ssh systemd-run bwrap"
    " firejail proot fakeroot setpriv setarch linux32 linux64 valgrind rlwrap unbuffer entr fd fdfind pkexec chronic"
    " tmux screen gosu su-exec xvfb-run dbus-run-session dbus-launch caffeinate numactl cgexec catchsegv prlimit chpst"
    " softlimit cpulimit choom run0 watchexec dumb-init tini ssh-agent uvx bunx pnpx proxychains proxychains4 sg"
)
# What runs a text.
_TEXT_RUNNERS: Final = SHELLS | _words(
    "eval su runuser ssh script watch parallel trap env flock tmux screen npx npm pnpm yarn vi vim nvim ex emacs"
    " sg hyperfine nodemon concurrently watchexec nix-shell man"
)
# A word behind which a command stands, for these programs.
_RUN: Final = _words("docker podman uv poetry pdm hatch pipenv conda mamba micromamba mise rye pixi nix pipx compose")
_RUNS_AFTER: Final = {
    "run": _RUN | {"bisect"},
    "exec": _RUN | _words("bundle kubectl asdf direnv"),
    "foreach": frozenset({"submodule"}),
    "x": frozenset({"mise"}),
    "-c": frozenset({"nix"}),
    "--command": frozenset({"nix"}),
}
# What git runs as text: the word, or the beginning of the option, before it.
_GIT_TEXTS: Final = ("-x", "--exec", "foreach", "--extcmd", "filter-branch", "difftool")
_PREFIXES: Final = _words("! { } if then elif else while until do time coproc")
_RUNS_THE_REST: Final = _words("-exec -execdir -ok -okdir")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
# Variables whose values other programs run.
_RUN_VALUE: Final = re.compile(r"[A-Z_]*(?:PAGER|EDITOR|VISUAL|COMMAND|BROWSER|LESSOPEN|_SSH|ASKPASS)=(.+)", re.DOTALL)
_BEFORE_COMMENT: Final = frozenset(" \t\n;&|(")
_BLANKS: Final = re.compile(r"[^\S\n]+")
_PLAIN: Final = re.compile(r"[^\s'\"\\`$<>|&;()]+")
_QUOTED: Final = re.compile(r"[^\"\\`$]+")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!_-]")
_HOME: Final = frozenset({"HOME", "{HOME}"})
_DESCRIPTOR: Final = re.compile(r"[0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\}")
_WRITES: Final = re.compile(r"&>>?|>>|>\||>&|<>|>(?!\()")
_READS: Final = re.compile(r"<<<|<<-?|<&|<(?!\()")
_ANSI: Final = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|(.))", re.DOTALL
)
_LETTERS: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
}


class _Scan:
    """All texts inside of a text, each read once."""

    def __init__(self) -> None:
        self.found: list[Loose] = []
        self._seen = set[str]()
        self._left = SCANNED_BYTES

    def read(self, text: str, depth: int) -> None:
        if text in self._seen:
            return
        self._seen.add(text)
        self._left -= len(text)
        if depth > DEPTH or self._left < 0:
            raise TooMuchToParse("it has too many commands inside of commands")
        reader = _Reader(text.replace("\\\n", ""))
        reader.read()
        self.found += reader.found
        inner = reader.inner
        if any(_runs_text(loose) for loose in reader.found):
            # Something here runs text. Which text cannot be told, so it is all of it.
            inner += [" ".join(loose.words[1:]) for loose in reader.found if len(loose.words) > 1]
            inner += [text for loose in reader.found for text in loose.read]
            texts = [word for loose in reader.found for word in loose.words if _may_be_text(word)]
            inner += [text for word in texts for text in (word, *_value_of(word))]
        values = (_RUN_VALUE.fullmatch(word) for loose in reader.found for word in loose.words)
        inner += [value[1] for value in values if value]
        inner += [word.partition("=!")[2] for loose in reader.found for word in loose.words if "=!" in word]  # git -c
        for part in inner:
            self.read(part, depth + 1)


def _runs_text(loose: Loose) -> bool:
    names = {name for name, _ in loose.names()}
    return bool(names & _TEXT_RUNNERS) or ("git" in names and any(word.startswith(_GIT_TEXTS) for word in loose.words))


def _value_of(word: str) -> Iterator[str]:
    """The text in an option (`--exec=rm x`, `-Srm x`) or in a command of an editor (`!rm x`)."""
    if word.startswith("!"):
        yield word[1:]
    elif word.startswith("--"):
        yield word.partition("=")[2]
    elif word.startswith("-"):
        yield word[2:]


def _may_be_text(word: str) -> bool:
    return any(character in " \t\n;&|" for character in word)


class _Reader:
    """One text, in one pass. Quotes are honoured; where they make no sense the rest of the text is still read."""

    def __init__(self, text: str, *, has_comments: bool = True) -> None:
        self.found: list[Loose] = []
        self.inner: list[str] = []
        self._text = text
        self._has_comments = has_comments
        self._at = 0
        self._words: list[str] = []
        self._written: list[str] = []
        self._read: list[str] = []
        self._word: list[str] | None = None
        # Where the next word goes: among the words of the command, or to what a redirect names.
        self._into = self._words

    def read(self) -> None:
        text = self._text
        while self._at < len(text):
            character = text[self._at]
            if character == "#" and self._word is None and self._has_comments:
                self._comment()
            elif match := _PLAIN.match(text, self._at):
                self._take(match[0], match.end())
            elif match := _BLANKS.match(text, self._at):
                self._end_word()
                self._at = match.end()
            elif character in "<>&" and (match := _WRITES.match(text, self._at) or _READS.match(text, self._at)):
                self._redirect(match[0])
                self._at = match.end()
            elif character in "<>":
                self._substitution(self._at + 1)
            elif character in "|&;()\n":
                self._end_command()
                self._at += 1
            elif character == "'":
                end = _until(text, "'", self._at + 1)
                self._take(text[self._at + 1 : end], end + 1)
            elif character == '"':
                self._double_quoted()
            elif character == "\\":
                self._take(text[self._at + 1 : self._at + 2], self._at + 2)
            else:
                self._expansion(quoted=False)
        self._end_command()

    def _take(self, text: str, end: int) -> None:
        if self._word is None:
            self._word = []
        self._word.append(text)
        self._at = end

    def _comment(self) -> None:
        """Read a comment by itself: a quote in it ends with its line, or it would hide the lines below."""
        end = _until(self._text, "\n", self._at)
        comment = _Reader(self._text[self._at : end], has_comments=False)
        comment.read()
        self.found += comment.found
        self.inner += comment.inner
        self._at = end

    def _redirect(self, operator: str) -> None:
        """Begin what a redirect names. A number, or `{name}`, that touches it is no word: `2>/dev/null rm x`."""
        if self._word is not None and _DESCRIPTOR.fullmatch("".join(self._word)):
            self._word = None
        self._end_word()
        self._into = self._written if ">" in operator else self._read

    def _double_quoted(self) -> None:
        text = self._text
        self._take("", self._at + 1)
        while self._at < len(text) and text[self._at] != '"':
            if match := _QUOTED.match(text, self._at):
                self._take(match[0], match.end())
            elif text[self._at] == "\\":
                self._take(text[self._at + 1 : self._at + 2], self._at + 2)
            else:
                self._expansion(quoted=True)
        self._at += 1

    def _expansion(self, *, quoted: bool) -> None:
        """At a `$` or a backtick."""
        text, after = self._text, self._at + 1
        if text[self._at] == "`":
            end = _until(text, "`", after)
            self.inner.append(text[after:end].replace("\\`", "`"))
            self._take(HOLE, end + 1)
        elif text.startswith("(", after):
            self._substitution(after)
        elif text.startswith("{", after):
            end = _closing(text, after, "{", "}")
            self.inner.append(text[after + 1 : end])
            self._take("~" if text[after : end + 1] in _HOME else HOLE, end + 1)
        elif match := _VARIABLE.match(text, after):
            self._take("~" if match[0] in _HOME else HOLE, match.end())
        elif text.startswith("'", after) and not quoted:
            end = _ansi_end(text, after + 1)
            self._take(_ANSI.sub(_ansi_character, text[after + 1 : end]), end + 1)
        else:
            self._take("" if text.startswith('"', after) and not quoted else "$", after)

    def _substitution(self, bracket: int) -> None:
        end = _closing(self._text, bracket, "(", ")")
        self.inner.append(self._text[bracket + 1 : end])
        self._take(HOLE, end + 1)

    def _end_word(self) -> None:
        if self._word is not None:
            self._into.append("".join(self._word))
            self._into = self._words
        self._word = None

    def _end_command(self) -> None:
        self._end_word()
        if self._words or self._written or self._read:
            words = [*_expanded(self._words[0]), *self._words[1:]] if self._words else []
            self.found.append(Loose(tuple(words), tuple(self._written), tuple(self._read)))
        self._words, self._written, self._read = [], [], []
        self._into = self._words


def _expanded(word: str) -> list[str]:
    """Return the words that the braces in the name of a command make of it: `{rm,-rf,x}`."""
    if "{" not in word or "," not in word:
        return [word]
    try:
        return wildcards.expand_braces(word)
    except wildcards.PatternRefused:
        return [HOLE]


def _until(text: str, character: str, start: int) -> int:
    """Where a character stands that no backslash precedes (in '…' a backslash means nothing), or the end."""
    at = text.find(character, start)
    while character == "`" and at > 0 and text[at - 1] == "\\":
        at = text.find(character, at + 1)
    return len(text) if at < 0 else at


def _closing(text: str, start: int, opens: str, closes: str) -> int:
    """Where the bracket at `start` is closed, quotes aside, or the end."""
    depth = 0
    quote = ""
    at = start
    while at < len(text):
        character = text[at]
        if character == "\\" and quote != "'":
            at += 1
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "#" and opens == "(" and text[at - 1] in _BEFORE_COMMENT:
            at = max(at, text.find("\n", at))  # a quote or a bracket in a comment means nothing
        elif character == opens:
            depth += 1
        elif character == closes:
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return len(text)


def _ansi_end(text: str, start: int) -> int:
    at = start
    while at < len(text) and text[at] != "'":
        at += 2 if text[at] == "\\" else 1
    return min(at, len(text))


def _ansi_character(match: re.Match[str]) -> str:
    for digits, base in ((match[1], 16), (match[2], 16), (match[3], 16), (match[4], 8)):
        if digits:
            number = int(digits, base)
            return chr(number) if number < 0x110000 else "?"
    return _LETTERS.get(match[5], match[5])
