"""A bash command line, read before it is judged. Pure: nothing is run and nothing is looked up.

`parse` says which commands a line runs, with the very words bash would hand them, or that this cannot be known from
the text alone. It knows pipelines and lists, quotes and redirects. What depends on a variable, another command or an
earlier line is `Unparsed`, and so is a text that would not look like what it is (control characters, odd blanks).
A word the shell may still turn into others (a glob, braces, a tilde) is kept as written and marked.

Other shells read some lines in another way: `a &>f b` is one command in bash and two in dash. `parse(…, portable=True)`
is for a line of which it is not known that bash reads it: what is parsed then means the same in sh, dash, zsh and bash.
"""

import re
import shlex
from typing import Final, Literal, NamedTuple

from dragoman.host.text import hidden_character

# A user who is asked for permission cannot be expected to read more than this.
COMMAND_BYTES: Final = 10_000
SUB_COMMANDS: Final = 50

RedirectKind = Literal["read", "write", "append"]


class Redirect(NamedTuple):
    """A file that is read from or written to. Copies of descriptors (`2>&1`) are none."""

    kind: RedirectKind
    target: str
    literal: bool = True


class Simple(NamedTuple):
    """One command: its words without quotes, what is assigned before it, and its files.

    `expands` has the indexes of the words in `argv` that the shell may turn into something else.
    """

    argv: tuple[str, ...]
    assignments: tuple[tuple[str, str], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    expands: frozenset[int] = frozenset()

    @property
    def literal(self) -> bool:
        """Whether every word is what the command gets."""
        return not self.expands and all(redirect.literal for redirect in self.redirects)

    @property
    def display(self) -> str:
        """The command with every word in plain sight, quoted where that matters."""
        words = [f"{name}={shlex.quote(value)}" for name, value in self.assignments]
        words += [word if at in self.expands else shlex.quote(word) for at, word in enumerate(self.argv)]
        arrows = {"read": "<", "write": ">", "append": ">>"}
        words += [f"{arrows[kind]} {shlex.quote(target)}" for kind, target, _ in self.redirects]
        return " ".join(words)


class Parsed(NamedTuple):
    """The commands in order; `operators` has what stands after each: `;` `&` `&&` `||` `|` `|&`, or nothing."""

    text: str
    commands: tuple[Simple, ...]
    operators: tuple[str, ...]


class Unparsed(NamedTuple):
    """What the text alone does not tell."""

    text: str
    reason: str


def parse(command: str, *, portable: bool = False) -> Parsed | Unparsed:
    """The commands of a line, if they can be known: from bash, or with `portable` from any shell."""
    try:
        _check_text(command)
        if portable:
            _check_portable(command)
        parsed = _Reader(command).read()
        if portable and any(simple.argv[:1] and simple.argv[0] in _OTHER_WORDS for simple in parsed.commands):
            raise _Unknown("it begins with a word that means something else in some shells")
        return parsed
    except _Unknown as unknown:
        return Unparsed(command, str(unknown))


class _Unknown(Exception):
    """The reason is the message."""


class _Word(NamedTuple):
    text: str
    quoted_from: int  # index of the first character that was quoted
    expands: bool

    @property
    def plain(self) -> bool:
        return self.quoted_from >= len(self.text)


class _Operator(NamedTuple):
    text: str
    number: str = ""  # the descriptor before a redirect


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ENDS: Final = ("&&", "||", "|&", ";", "|", "&", "\n")
_CONTINUES: Final = ("&&", "||", "|&", "|")
_REDIRECTS: Final = ("&>>", "&>", "<<<", "<<", ">>", ">|", ">&", "<&", "<>", ">", "<")
_METACHARACTERS: Final = frozenset(" \t\n|&;()<>")
_RESERVED: Final = _words(
    "! { } [[ ]] if then elif else fi for while until do done case esac select in function time coproc"
)
# Builtins after which words mean something else, or that take a word for a program.
_CHANGING: Final = _words(
    ". source eval exec builtin trap alias unalias enable hash let declare typeset local readonly"
)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_NUMBER: Final = re.compile(r"[0-9]+")
_DESCRIPTOR: Final = re.compile(r"[0-9]{1,4}-?|-")
# What makes a `$` an expansion.
_AFTER_DOLLAR: Final = re.compile(r"[A-Za-z0-9_@*#?$!({\[-]")


# Words that some shells do not take for a program.
_OTHER_WORDS: Final = _words(
    "- always end foreach integer float nocorrect noglob repeat namespace nameref autoload functions r"
)
# One piece of a line that every shell reads alike: plain characters, quotes without escapes, blanks, ends of commands,
# and redirects that stand apart from the word before them. In zsh `=a` at the start of a word is the path of `a`.
_PORTABLE: Final = re.compile(
    r"""
      '[^']*' | "[^"$`\\!]*"
    | (?<![^\s;&|<>]) (?![0-9]*[<>]|=) [A-Za-z0-9_./:,@%+-] [A-Za-z0-9_./:,@%+=-]*   # a word
    | (?<=['"]) (?!=) [A-Za-z0-9_./:,@%+=-]+ (?![<>])                                     # what follows a quote
    | [ \t\n]+ | && | \|\| | ; | \|(?!&) | &(?!>)
    | (?<![^\s;&|]) [0-9]? (?: [<>]&[0-9-](?![^\s;&|]) | >>?(?![>&|(<]) | <(?![<&>(]) )
    """,
    re.VERBOSE,
)


def _check_portable(command: str) -> None:
    at = 0
    while at < len(command):
        piece = _PORTABLE.match(command, at)
        if piece is None:
            raise _Unknown(f"shells other than bash may read it in another way, from {command[at : at + 20]!r} on")
        at = piece.end()


def _check_text(command: str) -> None:
    try:
        size = len(command.encode())
    except UnicodeEncodeError:
        raise _Unknown("it holds half a character") from None
    if size > COMMAND_BYTES:
        raise _Unknown(f"it is longer than {COMMAND_BYTES} bytes")
    if character := hidden_character(command):
        raise _Unknown(f"it holds U+{ord(character):04X}, which does not show")


class _Reader:
    """One pass over the text, word by word as bash does it."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._text = _joined_lines(command)
        self._at = 0
        self._commands: list[Simple] = []
        self._operators: list[str] = []

    def read(self) -> Parsed:
        awaited = False  # a command must follow: after `&&`, `||` and `|`
        while (token := self._skip_newlines()) is not None:
            operator = self._command_from(token)
            if len(self._commands) > SUB_COMMANDS:
                raise _Unknown(f"it has more than {SUB_COMMANDS} commands")
            self._operators.append(";" if operator == "\n" else operator)
            awaited = operator in _CONTINUES
        if awaited:
            raise _Unknown("it ends in the middle")
        if not self._commands:
            raise _Unknown("it is empty")
        return Parsed(self._command, tuple(self._commands), tuple(self._operators))

    def _skip_newlines(self) -> _Word | _Operator | None:
        while (token := self._token()) == _Operator("\n"):
            pass
        return token

    def _command_from(self, token: _Word | _Operator | None) -> str:
        """Reads one command, and what stands after it."""
        words: list[_Word] = []
        assignments: list[tuple[str, str]] = []
        redirects: list[Redirect] = []
        expands = set[int]()
        while token is not None:
            if isinstance(token, _Word):
                if not words and (match := _ASSIGNMENT.match(token.text)) and match.end() <= token.quoted_from:
                    _check_assignment(token)
                    assignments.append((match[0].rstrip("+="), token.text[match.end() :]))
                else:
                    if not words:
                        _check_name(token)
                    elif token.expands:
                        expands.add(len(words))
                    words.append(token)
            elif token.text in _ENDS:
                break
            else:
                redirects += self._redirect(token)
            token = self._token()
        if not (words or assignments or redirects):
            raise _Unknown("a command is missing")
        argv = tuple(word.text for word in words)
        self._commands.append(Simple(argv, tuple(assignments), tuple(redirects), frozenset(expands)))
        return token.text if token is not None else ""

    def _redirect(self, operator: _Operator) -> list[Redirect]:
        if operator.text.startswith("<<"):
            raise _Unknown("it has a here-document")
        target = self._token()
        if not isinstance(target, _Word):
            raise _Unknown("a redirect leads nowhere")
        if operator.text in (">&", "<&"):
            if _DESCRIPTOR.fullmatch(target.text):
                return []
            if operator.text == "<&" or operator.number:
                raise _Unknown("it copies something that is no descriptor")
        kind: RedirectKind = "read" if operator.text == "<" else "append" if operator.text.endswith(">>") else "write"
        return [Redirect(kind, target.text, not target.expands)]

    def _token(self) -> _Word | _Operator | None:
        self._skip_blanks()
        text, at = self._text, self._at
        if at == len(text):
            return None
        if text[at] in "()":
            raise _Unknown("it has brackets: a subshell, a function or an array")
        if text[at] not in _METACHARACTERS:
            return self._word()
        for operator in (*_REDIRECTS, *_ENDS):  # `&>` before `&`
            if text.startswith(operator, at):
                return self._operator(operator)
        raise AssertionError(text[at])

    def _operator(self, operator: str, number: str = "") -> _Operator:
        self._at += len(operator)
        if operator == ";" and self._text.startswith((";", "&"), self._at):
            raise _Unknown("it has a case statement")
        if operator in ("<", ">") and self._text.startswith("(", self._at):
            raise _Unknown("it has a process substitution")
        return _Operator(operator, number)

    def _skip_blanks(self) -> None:
        text = self._text
        while self._at < len(text) and text[self._at] in " \t":
            self._at += 1
        if text.startswith("#", self._at):
            end = text.find("\n", self._at)
            self._at = len(text) if end < 0 else end

    def _word(self) -> _Word | _Operator:
        text = self._text
        characters: list[str] = []
        quoted_from: int | None = None
        glob = brace = expands = False
        while self._at < len(text) and (character := text[self._at]) not in _METACHARACTERS:
            if character in "'\"\\":
                quoted_from = len(characters) if quoted_from is None else quoted_from
                characters += self._quoted(character)
                continue
            self._refuse_expansion()
            before = characters[-1] if characters else ""
            glob |= character in "*?["
            brace |= character == "{"
            expands |= brace and (character == "," or (character == "." and before == "."))
            expands |= character == "~" and before in ("", "=", ":")
            characters.append(character)
            self._at += 1
        word = "".join(characters)
        if quoted_from is None and self._at < len(text) and text[self._at] in "<>":
            if _NUMBER.fullmatch(word) and len(word) <= 4:
                return self._numbered_redirect(word)
            if _NUMBER.fullmatch(word) or (word.startswith("{") and word.endswith("}")):
                raise _Unknown("it names a descriptor in an odd way")
        expands |= glob and word != "["
        return _Word(word, len(word) if quoted_from is None else quoted_from, expands)

    def _numbered_redirect(self, number: str) -> _Operator:
        for operator in _REDIRECTS:
            if self._text.startswith(operator, self._at):
                return self._operator(operator, number)
        raise AssertionError(number)

    def _quoted(self, quote: str) -> str:
        """What is meant by a quoted piece; leaves `_at` after it."""
        text, start = self._text, self._at + 1
        if quote == "\\":
            if start == len(text):
                raise _Unknown("it ends with a backslash")
            self._at = start + 1
            return text[start]
        if quote == "'":
            end = text.find("'", start)
            if end < 0:
                raise _Unknown("a quote is not closed")
            self._at = end + 1
            return text[start:end]
        return self._double_quoted(start)

    def _double_quoted(self, start: int) -> str:
        text = self._text
        pieces: list[str] = []
        self._at = start
        while self._at < len(text) and text[self._at] != '"':
            if text[self._at] == "\\" and text[self._at + 1 : self._at + 2] in ("$", "`", '"', "\\"):
                self._at += 1
            else:
                self._refuse_expansion(quoted=True)
            pieces.append(text[self._at])
            self._at += 1
        if self._at == len(text):
            raise _Unknown("a quote is not closed")
        self._at += 1
        return "".join(pieces)

    def _refuse_expansion(self, *, quoted: bool = False) -> None:
        character, after = self._text[self._at], self._text[self._at + 1 : self._at + 2]
        if character == "`":
            raise _Unknown("it has a command substitution")
        if character != "$":
            return
        if _AFTER_DOLLAR.match(after):
            raise _Unknown("it has a command substitution" if after == "(" else "it uses a variable")
        if after in ("'", '"') and not quoted:
            raise _Unknown("it has a quote with escapes")


def _check_name(word: _Word) -> None:
    if word.expands:
        raise _Unknown(f"the shell makes the name of a command from {word.text}")
    if word.plain and word.text in _RESERVED:
        raise _Unknown(f"it has a control structure: {word.text}")
    if word.text in _CHANGING:
        raise _Unknown(f"{word.text} changes what words mean")


def _check_assignment(word: _Word) -> None:
    if word.expands:
        raise _Unknown("a value that is assigned depends on the machine")


def _joined_lines(command: str) -> str:
    r"""The text as bash reads it: a backslash at the end of a line joins it to the next, except in '…' and comments."""
    if "\\\n" not in command:
        return command
    kept: list[str] = []
    quote = ""
    at = 0
    while at < len(command):
        character = command[at]
        if character == "\\" and quote in ("", '"'):
            pair = command[at : at + 2]
            if pair != "\\\n":
                kept.append(pair)
            at += 2
            continue
        if quote == "#":
            quote = "" if character == "\n" else "#"
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "#" and (not kept or kept[-1] in _METACHARACTERS):
            quote = "#"
        kept.append(character)
        at += 1
    return "".join(kept)
