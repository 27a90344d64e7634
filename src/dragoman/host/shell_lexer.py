"""The words and operators of bash text: the one reader of quotes, expansions, here-documents and comments. Pure.

`Lexer` is read in two ways. The parser of `shell` has to be sure: its `unclear` raises. The scan of `possible_commands`
looks for bad things in any text: its `unclear` does nothing, and reading goes on with the likeliest meaning. What an
expansion encloses is handed to `read_substitution`, a here-document to `read_body`; each of the two has its own.

A backslash before a newline is skipped where bash skips it. Bash does so before it sees an operator or an expansion; in
the middle of one it is unclear here, because it is written there to deceive and for nothing else.
"""

import re
from typing import Final, NamedTuple

# Stands in a word for what an expansion makes of it. No text that can be run has this character.
HOLE: Final = "\0"


class ShellWord(NamedTuple):
    """A word without its quotes; `HOLE` is what the text does not tell.

    `expands`: the shell may make another word of it, or several, or none. A `HOLE` in a word that does not is what a
    quoted `$(…)` prints. `is_plain`: nothing in it is quoted. `quoted_from`: where in `text` the first quote stands.
    """

    text: str
    start: int = 0
    quoted_from: int = 0
    is_plain: bool = True
    expands: bool = False


class Operator(NamedTuple):
    """What separates words: an end of a command, a bracket, a redirect with the descriptor before it."""

    text: str
    descriptor: str = ""


class Heredoc(NamedTuple):
    """A here-document whose text follows at the next newline."""

    end: str
    is_literal: bool
    strips_tabs: bool


REDIRECTS: Final = frozenset(("&>>", "&>", "<<<", "<<-", "<<", ">>", ">|", ">&", "<&", "<>", ">", "<"))
_OPERATOR: Final = re.compile(r"&>>|<<<|<<-|;;&|&&|\|\||\|&|;;|;&|<<|>>|>\||>&|<&|<>|&>|[;|&<>()\n]")
_BLANKS: Final = re.compile(r"(?:[ \t]|\\\n)*")
_PLAIN: Final = re.compile(r"[^ \t\n'\"\\`$<>|&;()]+")
_QUOTED: Final = re.compile(r"[^\"\\`$]+")
# In a here-document a quote is a character.
_IN_BODY: Final = re.compile(r"[^\\`$]+")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]|\{(?:[A-Za-z_][A-Za-z0-9_]*|[0-9])\}")
_DESCRIPTOR: Final = re.compile(r"[0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\}")
# Behind a continued line, what may belong to the operator before it.
_CONTINUES_OPERATOR: Final = re.compile(r"(?:\\\n)+[&|;<>(-]")
_GLOB: Final = re.compile(r"[*?[]")
_BRACES: Final = re.compile(r",|\.\.")
_TILDE: Final = re.compile(r"(?:^|(?<=[=:]))~")
_ANSI: Final = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|(.))", re.DOTALL
)
_LETTERS: Final = dict(zip("ntrabeEfv", "\n\t\r\a\b\x1b\x1b\f\v", strict=True))
# Stands for a quoted character where only unquoted ones mean something.
_QUOTED_CHARACTER: Final = "x"
_BEFORE_COMMENT: Final = frozenset(" \t\n;&|(")


class WordParts:
    """A word in the making: its text, and the same with every quoted character masked."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.mask: list[str] = []
        self.quoted_from: int | None = None
        self.expands = False

    def add(self, text: str) -> None:
        self.text.append(text)
        self.mask.append(text)

    def add_quoted(self, text: str) -> None:
        self.begin_quote()
        self.text.append(text)
        self.mask.append(_QUOTED_CHARACTER * len(text))

    def begin_quote(self) -> None:
        if self.quoted_from is None:
            self.quoted_from = sum(map(len, self.text))

    def word(self, start: int) -> ShellWord:
        text, mask = "".join(self.text), "".join(self.mask)
        brace = mask.find("{")
        expands = self.expands or (bool(_GLOB.search(mask)) and text != "[") or bool(_TILDE.search(mask))
        expands = expands or (brace >= 0 and bool(_BRACES.search(mask, brace)))
        is_plain = self.quoted_from is None
        return ShellWord(text, start, len(text) if self.quoted_from is None else self.quoted_from, is_plain, expands)


class Lexer:
    """Reads a text token by token, as bash does."""

    def __init__(self, text: str, *, has_comments: bool = True) -> None:
        self.text = text
        self.at = 0
        # Whose text follows at the next newline.
        self.heredocs: list[Heredoc] = []
        self._has_comments = has_comments
        self._lines_of: str | None = None
        self._lines: dict[tuple[str, bool], int] = {}

    def unclear(self, reason: str) -> None:
        """Take note that what follows is a guess."""

    def read_substitution(self, opening: str, *, is_quoted: bool) -> None:
        """Read what `$(`, `<(`, `>(` or a backtick encloses; `at` is behind that, and then behind its end."""
        raise NotImplementedError

    def read_braces(self, text: str) -> None:
        """Take the inside of a `${…}` that is more than a name."""

    def read_comment(self, text: str) -> None:
        """Take a comment."""

    def read_body(self, heredoc: Heredoc, body: str) -> None:
        """Take the text of a here-document."""

    def value_of(self, variable: str) -> str:
        """Return what stands in a word for a variable."""
        return HOLE

    def token(self) -> ShellWord | Operator | None:
        """Return the next word or operator; None at the end."""
        self._skip_blanks()
        if self.at >= len(self.text):
            return None
        match = _OPERATOR.match(self.text, self.at)
        if match is None or self._begins_process():
            return self._word()
        return self._operator(match[0])

    def _skip_blanks(self) -> None:
        match = _BLANKS.match(self.text, self.at)
        self.at = match.end() if match else self.at
        if self._has_comments and self.text.startswith("#", self.at):
            end = _index(self.text, "\n", self.at)
            self.read_comment(self.text[self.at : end])
            self.at = end

    def _operator(self, text: str, descriptor: str = "") -> Operator:
        self.at += len(text)
        if text != "\n" and _CONTINUES_OPERATOR.match(self.text, self.at):
            self.unclear("it has an operator that may go on in the next line")
        if text == "\n" and self.heredocs:
            self._read_bodies()
        return Operator(text, descriptor)

    def _read_bodies(self) -> None:
        waiting, self.heredocs = self.heredocs, []
        for heredoc in waiting:
            if self._last_lines().get((heredoc.end, heredoc.strips_tabs), -1) < self.at:
                self.unclear("a here-document does not end")
                continue  # its lines are read as commands
            self.read_body(heredoc, self._body(heredoc))

    def _body(self, heredoc: Heredoc) -> str:
        lines: list[str] = []
        while True:
            end = _index(self.text, "\n", self.at)
            line = self.text[self.at : end]
            self.at = min(end + 1, len(self.text))
            line = line.lstrip("\t") if heredoc.strips_tabs else line
            if line == heredoc.end:
                return "".join(lines)
            lines.append(line + "\n")

    def _last_lines(self) -> dict[tuple[str, bool], int]:
        """Return where each line stands for the last time, as it is and without tabs before it."""
        if self._lines_of is not self.text:
            self._lines, self._lines_of, at = {}, self.text, 0
            for line in self.text.split("\n"):
                self._lines[line, False] = self._lines[line.lstrip("\t"), True] = at
                at += len(line) + 1
        return self._lines

    # -- words ---------------------------------------------------------------------------------------------------------

    def _word(self) -> ShellWord | Operator:
        start, parts = self.at, WordParts()
        while self.at < len(self.text):
            character = self.text[self.at]
            if match := _PLAIN.match(self.text, self.at):
                parts.add(match[0])
                self.at = match.end()
            elif character == "\\":
                self._escaped(parts)
            elif character == "'":
                self._single_quoted(parts)
            elif character == '"':
                self.at += 1
                self.read_expanding(parts, _QUOTED)
                self._close_quote()
            elif character in "$`":
                self._expansion(parts, is_quoted=False)
            elif self._begins_process():
                self.at += 2
                self._substitution(parts, self.text[self.at - 2 : self.at], is_quoted=False)
            else:
                break
        word = parts.word(start)
        if word.is_plain and self.text[self.at : self.at + 1] in ("<", ">") and _DESCRIPTOR.fullmatch(word.text):
            return self._redirect_from(word.text)
        return word

    def _redirect_from(self, descriptor: str) -> Operator:
        if not descriptor.isdigit() or len(descriptor) > 4:
            self.unclear("it names a descriptor in an odd way")
        match = _OPERATOR.match(self.text, self.at)
        assert match is not None  # a `<` or a `>` stands here
        return self._operator(match[0], descriptor)

    def _begins_process(self) -> bool:
        return self.text.startswith(("<(", ">("), self.at)

    def _escaped(self, parts: WordParts) -> None:
        character = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if character != "\n":
            parts.add_quoted(character)
        if not character:
            self.unclear("it ends with a backslash")

    def _single_quoted(self, parts: WordParts) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            self.unclear("a quote is not closed")
            end = len(self.text)
        parts.add_quoted(self.text[self.at + 1 : end])
        self.at = end + 1

    def _close_quote(self) -> None:
        if self.at >= len(self.text):
            self.unclear("a quote is not closed")
        self.at += 1

    def read_expanding(self, parts: WordParts, plain: re.Pattern[str] = _IN_BODY) -> None:
        """Read text in which only `$`, backticks and backslashes mean something, up to a quote if that does, too."""
        parts.begin_quote()
        escaped = ("$", "`", "\\", '"') if plain is _QUOTED else ("$", "`", "\\")
        while self.at < len(self.text) and (self.text[self.at] != '"' or plain is _IN_BODY):
            after = self.text[self.at + 1 : self.at + 2]
            if match := plain.match(self.text, self.at):
                parts.add_quoted(match[0])
                self.at = match.end()
            elif self.text[self.at] != "\\":
                self._expansion(parts, is_quoted=True)
            elif after == "\n" or after in escaped:
                parts.add_quoted("" if after == "\n" else after)
                self.at += 2
            else:
                parts.add_quoted("\\")
                self.at += 1

    def _expansion(self, parts: WordParts, *, is_quoted: bool) -> None:
        """Read what a `$` or a backtick begins."""
        opening, after = self.text[self.at], self.text[self.at + 1 : self.at + 2]
        self.at += 1
        if opening == "`":
            self._substitution(parts, opening, is_quoted=is_quoted)
        elif after == "(":
            self.at += 1
            self._substitution(parts, "$(", is_quoted=is_quoted)
        elif match := _VARIABLE.match(self.text, self.at):
            self.at = match.end()
            parts.expands = True
            parts.add_quoted(self.value_of(match[0].strip("{}")))
        elif after == "{":
            end = closing(self.text, self.at, "{", "}")
            self.read_braces(self.text[self.at + 1 : end])
            parts.expands = True
            parts.add_quoted(HOLE)
            self.at = end + 1
        elif after == "'" and not is_quoted:
            self._ansi_quoted(parts)
        else:
            if after in ("[", "\\") or (after == '"' and not is_quoted):
                self._odd_dollar(after)
            if after != '"' or is_quoted:
                parts.add("$")

    def _odd_dollar(self, after: str) -> None:
        is_translated = after == '"'
        if after != "\\" or self.text.startswith("\\\n", self.at):
            self.unclear("it has a text to be translated" if is_translated else "it has an odd expansion")

    def _substitution(self, parts: WordParts, opening: str, *, is_quoted: bool) -> None:
        self.read_substitution(opening, is_quoted=is_quoted)
        parts.expands = parts.expands or not is_quoted
        parts.add_quoted(HOLE)

    def _ansi_quoted(self, parts: WordParts) -> None:
        self.unclear("it has a quote with escapes")
        end = self.at + 1
        while end < len(self.text) and self.text[end] != "'":
            end += 2 if self.text[end] == "\\" else 1
        parts.add_quoted(_ANSI.sub(_ansi_character, self.text[self.at + 1 : end]))
        self.at = end + 1


def closing(text: str, start: int, opens: str, closes: str) -> int:
    """Return where the bracket at `start` is closed, quotes and comments aside, or the end."""
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


def _index(text: str, character: str, start: int) -> int:
    """Return where a character stands, or the end."""
    at = text.find(character, start)
    return len(text) if at < 0 else at


def _ansi_character(match: re.Match[str]) -> str:
    for digits, base in ((match[1], 16), (match[2], 16), (match[3], 16), (match[4], 8)):
        if digits:
            number = int(digits, base)
            return chr(number) if number < 0x110000 else "?"
    return _LETTERS.get(match[5], match[5])
