"""Every command that any shell text may run, for those who look for bad things in it.

`shell.parse` answers only when it is sure. This one always answers: it finds every place where a command may stand,
also in substitutions, functions, loops and in texts handed to another shell. It may find commands where there are
none; it should not miss one that is there. Pure, and bounded by `SCANNED_BYTES`.

Both read words by `shell_lexer`. The grammar counts for nothing here, because a text that does not follow it may still
run in part; where a line is one that `parse` understands, what that has found is added.
"""

import posixpath
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from dragoman.host import wildcards
from dragoman.host.shell import COMMAND_BYTES, Unparsed, parse
from dragoman.host.shell_lexer import HOLE, REDIRECTS, Heredoc, Lexer, ShellWord, closing

# What Linux takes as one argument (MAX_ARG_STRLEN): a longer text cannot be handed to a shell.
TEXT_BYTES: Final = 128 * 1024
# Nesting of shells and substitutions. Real commands stay far below this.
DEPTH: Final = 12
# What is read in all, texts inside of texts included: about half a second.
SCANNED_BYTES: Final = 8 * TEXT_BYTES


class TooMuchToParse(Exception):
    """More than can be looked through; the message is the reason."""


class PossibleCommand(NamedTuple):
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


def commands_in(text: str) -> list[PossibleCommand]:
    """Every command that may be in a text; `TooMuchToParse` if that cannot be said."""
    if len(text.encode(errors="replace")) > TEXT_BYTES:
        raise TooMuchToParse("it is longer than a command line can be")
    scan = _Scan()
    scan.read(text, 0)
    return [*scan.found, *_parsed_commands(text)]


def _parsed_commands(text: str) -> Iterator[PossibleCommand]:
    parsed = parse(text) if len(text) <= COMMAND_BYTES else None
    if parsed is None or isinstance(parsed, Unparsed) or parsed.is_plain:
        return  # the scan reads a plain line as the parser does
    for simple in parsed.commands:
        written = tuple(one.target for one in simple.redirects if one.kind in ("write", "append"))
        read = tuple(one.target for one in simple.redirects if one.kind not in ("write", "append"))
        yield PossibleCommand(simple.argv, written, read)


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
# Blanks for those who look, as far as bash takes them for letters.
_OTHER_BLANKS: Final = re.compile(r"[^\S\n]")


class _Scan:
    """All texts inside of a text, each read once."""

    def __init__(self) -> None:
        self.found: list[PossibleCommand] = []
        self._seen = set[str]()
        self._left = SCANNED_BYTES

    def read(self, text: str, depth: int) -> None:
        if text in self._seen:
            return
        self._seen.add(text)
        self._left -= len(text)
        if depth > DEPTH or self._left < 0:
            raise TooMuchToParse("it has too many commands inside of commands")
        reader = _Reader(_OTHER_BLANKS.sub(" ", text.replace("\\\n", "")))
        reader.read()
        self.found += reader.found
        inner = reader.inner
        if any(_runs_text(one) for one in reader.found):
            # Something here runs text. Which text cannot be told, so it is all of it.
            inner += [" ".join(one.words[1:]) for one in reader.found if len(one.words) > 1]
            inner += [text for one in reader.found for text in one.read]
            texts = [word for one in reader.found for word in one.words if _may_be_text(word)]
            inner += [text for word in texts for text in (word, *_value_of(word))]
        values = (_RUN_VALUE.fullmatch(word) for one in reader.found for word in one.words)
        inner += [value[1] for value in values if value]
        inner += [word.partition("=!")[2] for one in reader.found for word in one.words if "=!" in word]  # git -c
        for part in inner:
            self.read(part, depth + 1)


def _runs_text(one: PossibleCommand) -> bool:
    names = {name for name, _ in one.names()}
    return bool(names & _TEXT_RUNNERS) or ("git" in names and any(word.startswith(_GIT_TEXTS) for word in one.words))


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


class _Reader(Lexer):
    """One text, in one pass. Quotes are honoured; where they make no sense the rest of the text is still read."""

    def __init__(self, text: str, *, has_comments: bool = True) -> None:
        super().__init__(text, has_comments=has_comments)
        self.found: list[PossibleCommand] = []
        self.inner: list[str] = []

    def read(self) -> None:
        words: list[str] = []
        written: list[str] = []
        read: list[str] = []
        redirect = ""
        into = words  # where the next word goes: among those of the command, or to what a redirect names
        while (token := self.token()) is not None:
            if isinstance(token, ShellWord):
                into.append(token.text)
                if redirect in ("<<", "<<-") and HOLE not in token.text:
                    self.heredocs.append(Heredoc(token.text, not token.is_plain, redirect == "<<-"))
                into, redirect = words, ""
            elif token.text in REDIRECTS:
                into, redirect = written if ">" in token.text else read, token.text
            else:
                self._end(words, written, read)
                words, written, read = [], [], []
                into, redirect = words, ""
        self._end(words, written, read)

    def read_substitution(self, opening: str, *, is_quoted: bool) -> None:
        start = self.at
        if opening == "`":
            end = self.text.find("`", start)
            while end > 0 and self.text[end - 1] == "\\":
                end = self.text.find("`", end + 1)
            end = len(self.text) if end < 0 else end
            self.inner.append(self.text[start:end].replace("\\`", "`"))
        else:
            end = closing(self.text, start - 1, "(", ")")
            self.inner.append(self.text[start:end])
        self.at = end + 1

    def read_braces(self, text: str) -> None:
        self.inner.append(text)

    def read_body(self, heredoc: Heredoc, body: str) -> None:
        """Look through a here-document as well: what it is fed to may run it, and a quote in it is none."""
        self.inner.append(body)

    def read_comment(self, text: str) -> None:
        """Look through a comment by itself: a quote in it ends with its line, or it would hide the lines below."""
        comment = _Reader(text, has_comments=False)
        comment.read()
        self.found += comment.found
        self.inner += comment.inner

    def value_of(self, variable: str) -> str:
        return "~" if variable == "HOME" else HOLE

    def _end(self, words: list[str], written: list[str], read: list[str]) -> None:
        if words or written or read:
            words = [*_expanded(words[0]), *words[1:]] if words else []
            self.found.append(PossibleCommand(tuple(words), tuple(written), tuple(read)))


def _expanded(word: str) -> list[str]:
    """Return the words that the braces in the name of a command make of it: `{rm,-rf,x}`."""
    if "{" not in word or "," not in word:
        return [word]
    try:
        return wildcards.expand_braces(word)
    except wildcards.PatternRefused:
        return [HOLE]
