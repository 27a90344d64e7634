"""The grammar of bash, for `shell`: from words and operators to commands. Pure.

A descent, one token ahead, over what `Lexer` reads. It raises `UnknownMeaning` for all that it does not know, so that a
line is understood whole or not at all. Commands are collected in the order in which they end. A substitution is read
where it stands, in the middle of a word; a here-document at the newline behind its command, when the command is there
already: so the files of commands are lists that are completed until the line is read.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from dragoman.host.shell_lexer import HOLE, REDIRECTS, Heredoc, Lexer, Operator, ShellWord, WordParts
from dragoman.host.shell_values import Parsed, Redirect, RedirectKind, Simple, UnknownMeaning, entered

# A user who is asked for permission cannot be expected to read more than this.
SUB_COMMANDS: Final = 50
# Brackets, branches and substitutions in each other.
_DEPTH: Final = 12
# Folders that a command may run in, where a `cd` before it may have failed.
_FOLDERS: Final = 4


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_RESERVED: Final = _words(
    "! { } [[ ]] if then elif else fi for while until do done case esac select in function time coproc"
)
# Builtins after which words mean something else, or that take a word for a program.
_CHANGING: Final = _words(
    ". source eval exec builtin trap alias unalias enable hash let declare typeset local readonly"
)
# A function of such a name would change what the rest of the line does, or be passed over.
_BUILTINS: Final = _CHANGING | _words(
    ": [ bg bind break caller cd command compgen complete compopt continue dirs disown echo exit export false fc fg"
    " getopts help history jobs kill logout mapfile popd printf pushd pwd read readarray return set shift shopt suspend"
    " test times true type ulimit umask unset wait"
)
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
# Variables by which bash reads the rest of a line in another way, or goes elsewhere.
_OF_THE_SHELL: Final = re.compile(r"POSIXLY_CORRECT|BASH.*|SHELLOPTS|CDPATH")
_DESCRIPTOR: Final = re.compile(r"[0-9]{1,4}-?|-")
_ONCE: Final = re.compile(r"[A-Za-z0-9_./@%+=:, -]+")
_FUNCTION: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)[ \t]*\([ \t]*\)")
# Of a loop. A name with an underscore or a capital may be a variable of the environment, which programs read.
_LOOP_NAME: Final = re.compile(r"[a-z][a-z0-9]{0,15}")
# Stands for the text of a here-document until it is read.
_AWAITED: Final = Redirect("text", HOLE, literal=False)


class CommandParser(Lexer):
    """A descent through the grammar, one token ahead. Commands are collected in the order in which they end."""

    def __init__(self, command: str) -> None:
        super().__init__(command)
        self._command = command
        # The token that is looked at; none yet if this is empty.
        self._ahead: list[ShellWord | Operator | None] = []
        self._commands: list[Simple] = []
        # The files of each command: texts of here-documents come later than the command.
        self._files: list[list[Redirect]] = []
        self._bodies: list[list[Redirect]] = []
        self._pipelines: list[tuple[int, ...]] = []
        self._functions = set[str]()
        self._is_plain = True
        self._folders: tuple[str, ...] = ("",)
        # How many brackets, branches and substitutions are around, and how many of them are loops and functions.
        self._depth = self._repeats = 0
        # How many functions were called, and how many here-documents begun, until now.
        self._calls = self._heredocs = 0
        self._compound: dict[str, Callable[[], None]] = {
            "{": lambda: self._group("}"),
            "if": self._if,
            "while": self._while,
            "until": self._while,
            "for": self._for,
            "case": self._case,
        }

    def read(self) -> Parsed:
        self._list("")
        if self.heredocs:
            raise UnknownMeaning("a here-document does not end")
        if not self._commands:
            raise UnknownMeaning("it is empty")
        pairs = zip(self._commands, self._files, strict=True)
        commands = tuple(simple._replace(redirects=tuple(files)) if files else simple for simple, files in pairs)
        return Parsed(self._command, commands, tuple(self._pipelines), frozenset(self._functions), self._is_plain)

    # -- what the lexer finds ------------------------------------------------------------------------------------------

    def unclear(self, reason: str) -> None:
        raise UnknownMeaning(reason)

    def read_braces(self, text: str) -> None:
        raise UnknownMeaning("it computes the value of a variable")

    def value_of(self, variable: str) -> str:
        self._is_plain = False
        return HOLE

    def read_substitution(self, opening: str, *, is_quoted: bool) -> None:
        if self.text.startswith("(", self.at) and opening == "$(":
            raise UnknownMeaning("it has arithmetic")
        if self.heredocs:
            raise UnknownMeaning("it has a substitution between a here-document and its text")
        commands, heredocs = len(self._commands), self._heredocs
        with self._below():
            if opening == "`":
                self._between_backticks()
            else:
                self._list(")")
        if self.heredocs:
            raise UnknownMeaning("a here-document does not end")
        if self._heredocs > heredocs and len(self._commands) > commands + 1:
            # Bash 5.2 writes the commands down again before it runs them, and then loses what separates them.
            raise UnknownMeaning("a substitution has a here-document and other commands")

    def _between_backticks(self) -> None:
        start, end = self.at, self.text.find("`", self.at)
        if end < 0 or "\\" in self.text[start:end]:
            raise UnknownMeaning("it has an odd command substitution")
        self._read_apart(self.text[start:end], lambda: self._list(""))
        self.at = end + 1

    def read_body(self, heredoc: Heredoc, body: str) -> None:
        redirects = self._bodies.pop(0)
        at = redirects.index(_AWAITED)
        redirects[at] = Redirect("text", body)
        if not heredoc.is_literal:
            if "\\\n" in body:
                raise UnknownMeaning("a line of a here-document is continued")
            parts = WordParts()
            with self._below():
                self._read_apart(body, lambda: self.read_expanding(parts))
            redirects[at] = Redirect("text", "".join(parts.text), not parts.expands)

    def _read_apart(self, text: str, read: Callable[[], object]) -> None:
        """Read another text in the middle of this one."""
        kept = self.text, self.at, self._ahead, self.heredocs, self._bodies
        self.text, self.at, self._ahead, self.heredocs, self._bodies = text, 0, [], [], []
        read()
        if self.heredocs:
            raise UnknownMeaning("a here-document does not end")
        self.text, self.at, self._ahead, self.heredocs, self._bodies = kept

    # -- lists ---------------------------------------------------------------------------------------------------------

    def _peek(self) -> ShellWord | Operator | None:
        if not self._ahead:
            self._ahead.append(self.token())
        return self._ahead[0]

    def _next(self) -> ShellWord | Operator | None:
        token = self._peek()
        self._ahead.clear()
        return token

    def _is_at(self, *texts: str) -> bool:
        """Return whether an operator of these comes next."""
        token = self._peek()
        return isinstance(token, Operator) and token.text in texts

    def _is_word(self, *texts: str) -> bool:
        """Return whether a word of these comes next, without quotes."""
        token = self._peek()
        return isinstance(token, ShellWord) and token.is_plain and token.text in texts

    def _skip_newlines(self) -> None:
        while self._is_at("\n"):
            self._next()

    def _expect(self, text: str) -> None:
        if not self._is_word(text):
            raise UnknownMeaning(f"a {text!r} is missing")
        self._next()

    @contextmanager
    def _below(self, *, is_subshell: bool = True) -> Iterator[None]:
        """Go one level deeper; a subshell leaves its folder behind."""
        self._is_plain = False
        folders = self._folders
        self._depth += 1
        if self._depth > _DEPTH:
            raise UnknownMeaning("it has too many commands inside of commands")
        yield
        self._depth -= 1
        if is_subshell:
            self._folders = folders

    def _list(self, *ends: str, may_be_empty: bool = False) -> str:
        """Read commands up to one of these words or operators, and that; return which. The empty one is the end."""
        is_separated = True
        while True:
            self._skip_newlines()
            end = self._ending(ends)
            if end is not None:
                if not may_be_empty:
                    raise UnknownMeaning("a command is missing")
                return end
            if not is_separated:
                raise UnknownMeaning("commands are not separated")
            self._and_or()
            may_be_empty = True
            is_separated = self._is_at(";", "&", "\n")
            if self._repeats and self._is_at("&"):
                raise UnknownMeaning("it starts commands in the background again and again")
            if is_separated:
                self._next()

    def _ending(self, ends: tuple[str, ...]) -> str | None:
        token = self._peek()
        if token is None and "" not in ends:
            raise UnknownMeaning("it ends in the middle")
        text = "" if token is None else token.text
        if text not in ends or (isinstance(token, ShellWord) and not (token.is_plain and text)):
            return None
        self._next()
        return text

    def _and_or(self) -> None:
        if self._depth == 0 and self._function():
            return
        self._pipeline()
        while self._is_at("&&", "||"):
            self._next()
            self._skip_newlines()
            self._pipeline()

    def _pipeline(self) -> None:
        if self._is_word("!"):
            self._is_plain = False
            self._next()
        starts, calls = [len(self._commands)], self._calls
        self._any_command()
        while self._is_at("|", "|&"):
            self._next()
            self._skip_newlines()
            starts.append(len(self._commands))
            self._any_command()
        if len(starts) > 1:
            if calls != self._calls:
                raise UnknownMeaning("a function is called in a pipeline")
            self._pipelines.append((*starts, len(self._commands)))

    # -- commands ------------------------------------------------------------------------------------------------------

    def _any_command(self) -> None:
        token = self._peek()
        if isinstance(token, Operator) and token.text == "(":
            if self.text.startswith("(", self.at):
                raise UnknownMeaning("it has arithmetic")
            self._next()
            self._with_files(lambda: self._group(")"))
        elif isinstance(token, ShellWord) and token.is_plain and token.text in _RESERVED:
            if token.text not in self._compound:
                raise UnknownMeaning(f"it has a control structure: {token.text}")
            self._next()
            self._with_files(self._compound[token.text])
        else:
            self._simple()

    def _with_files(self, read: Callable[[], None]) -> None:
        """Read a compound command, and the redirects behind it."""
        read()
        files: list[Redirect] = []
        while self._is_at(*REDIRECTS):
            self._redirect(files)
        if files:
            self._add(Simple((), folders=self._folders), files)

    def _group(self, end: str) -> None:
        with self._below(is_subshell=end == ")"):
            self._list(end)

    def _if(self) -> None:
        with self._below(is_subshell=False):
            end = "elif"
            while end == "elif":
                self._list("then")
                end = self._list("elif", "else", "fi")
            if end == "else":
                self._list("fi")

    def _while(self) -> None:
        with self._below(is_subshell=False):
            self._repeats += 1
            self._list("do")
            self._list("done")
            self._repeats -= 1

    def _for(self) -> None:
        name = self._next()
        if not isinstance(name, ShellWord) or not name.is_plain or not _LOOP_NAME.fullmatch(name.text):
            raise UnknownMeaning("a loop sets a variable that may mean something to programs")
        self._skip_newlines()
        self._expect("in")
        with self._below(is_subshell=False):
            while isinstance(self._peek(), ShellWord):
                self._next()
            if not self._is_at(";", "\n"):
                raise UnknownMeaning("a loop has no commands")
            self._next()
            self._skip_newlines()
            self._expect("do")
            self._repeats += 1
            self._list("done")
            self._repeats -= 1

    def _case(self) -> None:
        if not isinstance(self._next(), ShellWord):
            raise UnknownMeaning("a word is missing")
        self._skip_newlines()
        self._expect("in")
        with self._below(is_subshell=False):
            end = ";;"
            while end != "esac":
                self._skip_newlines()
                if self._is_word("esac"):
                    self._next()
                    break
                self._patterns()
                end = self._list(";;", ";&", ";;&", "esac", may_be_empty=True)

    def _patterns(self) -> None:
        if self._is_at("("):
            self._next()
        while isinstance(self._next(), ShellWord):
            if self._is_at(")"):
                self._next()
                return
            if not self._is_at("|"):
                break
            self._next()
        raise UnknownMeaning("it has an odd pattern")

    def _function(self) -> bool:
        """Read the definition of a function, if one begins here."""
        token = self._peek()
        match = _FUNCTION.match(self.text, token.start) if isinstance(token, ShellWord) else None
        if match is None:
            return False
        name = match[1]
        if name in _BUILTINS | _RESERVED | self._functions or any(name in one.argv[:1] for one in self._commands):
            raise UnknownMeaning(f"{name} becomes something else")
        self._ahead.clear()
        self.at = match.end()
        self._skip_newlines()
        before = len(self._commands)
        self._repeats += 1
        if self._is_at("("):
            self._any_command()
        else:
            self._expect("{")
            self._with_files(self._compound["{"])
        self._repeats -= 1
        if any(name in one.argv[:1] for one in self._commands[before:]):
            raise UnknownMeaning(f"{name} starts itself")
        if not (self._peek() is None or self._is_at(";", "\n")):
            raise UnknownMeaning(f"it is not known whether {name} is defined")
        self._functions.add(name)
        return True

    def _simple(self) -> None:
        words: list[ShellWord] = []
        assignments: list[tuple[str, str]] = []
        files: list[Redirect] = []
        while (token := self._peek()) is not None:
            if isinstance(token, Operator):
                if token.text not in REDIRECTS:
                    break
                self._redirect(files)
            elif not words and (match := _ASSIGNMENT.match(token.text)) and match.end() <= token.quoted_from:
                assignments.append(_assignment(match, self._taken(token)))
                self._is_plain = self._is_plain and HOLE not in assignments[-1][1]
            else:
                words.append(self._taken(token))
        if self._is_at("("):
            raise UnknownMeaning("it has brackets: an array, or a function inside of something")
        if not (words or assignments or files):
            raise UnknownMeaning("a command is missing")
        if words:
            self._check_name(words[0])
        if words and words[0].text in self._functions:
            self._call(assignments, files)
            return
        argv = tuple(word.text for word in words)
        expands = frozenset(at for at, word in enumerate(words) if word.expands)
        simple = Simple(argv, tuple(assignments), (), expands, self._folders)
        self._add(simple, files)
        self._follow(simple)

    def _taken(self, token: ShellWord) -> ShellWord:
        self._next()
        return token

    def _call(self, assignments: list[tuple[str, str]], files: list[Redirect]) -> None:
        """Leave out the call of a function, whose commands are listed; but not its files."""
        self._calls += 1
        if assignments or files:
            self._add(Simple((), tuple(assignments), folders=self._folders), files)

    def _check_name(self, word: ShellWord) -> None:
        if word.expands or HOLE in word.text:
            raise UnknownMeaning("the shell makes the name of a command from something else")
        if word.text in _CHANGING:
            raise UnknownMeaning(f"{word.text} changes what words mean")
        if word.text == "unset" and (self._functions or self._repeats):
            raise UnknownMeaning("a function may be unset")

    def _add(self, simple: Simple, files: list[Redirect]) -> None:
        self._commands.append(simple)
        self._files.append(files)
        if len(self._commands) > SUB_COMMANDS:
            raise UnknownMeaning(f"it has more than {SUB_COMMANDS} commands")

    def _follow(self, simple: Simple) -> None:
        """Note where a command leads those behind it, if it succeeds."""
        name, is_elsewhere = simple.argv[:1], False
        if name == ("command",):
            is_elsewhere = bool(simple.expands) or not {"cd", "pushd", "popd"}.isdisjoint(simple.argv)
        if name not in (("cd",), ("pushd",), ("popd",)) and not is_elsewhere:
            return
        if self._repeats:
            raise UnknownMeaning("it changes the folder again and again")
        folder = entered(simple)
        found = (posixpath.join(before, folder) for before in self._folders) if folder is not None else ()
        self._folders = tuple(dict.fromkeys((*found, *self._folders))) if folder is not None else ()
        if len(self._folders) > _FOLDERS:
            self._folders = ()

    def _redirect(self, files: list[Redirect]) -> None:
        operator, target = self._next(), self._next()
        assert isinstance(operator, Operator)
        if not isinstance(target, ShellWord):
            raise UnknownMeaning("a redirect leads nowhere")
        if operator.text in ("<<", "<<-"):
            self._heredoc(operator, target, files)
            return
        if operator.text in (">&", "<&"):
            if _DESCRIPTOR.fullmatch(target.text):
                return
            # Bash expands the name of such a file twice: `>& '$X'` does not write to `$X`.
            if operator.text == "<&" or operator.descriptor or target.expands or not _ONCE.fullmatch(target.text):
                raise UnknownMeaning("it copies something that is no descriptor")
        kind: RedirectKind = "read" if operator.text == "<" else "append" if operator.text.endswith(">>") else "write"
        if operator.text == "<<<":
            self._is_plain = False
            kind = "text"
        is_known = not target.expands and (kind == "text" or HOLE not in target.text)
        files.append(Redirect(kind, target.text, is_known))

    def _heredoc(self, operator: Operator, end: ShellWord, files: list[Redirect]) -> None:
        if end.expands or HOLE in end.text or "\n" in end.text:
            raise UnknownMeaning("a here-document has an odd end")
        self._is_plain = False
        self._heredocs += 1
        files.append(_AWAITED)
        self._bodies.append(files)
        self.heredocs.append(Heredoc(end.text, not end.is_plain, operator.text == "<<-"))


def _assignment(match: re.Match[str], word: ShellWord) -> tuple[str, str]:
    if _OF_THE_SHELL.fullmatch(match[1]):
        raise UnknownMeaning(f"{match[1]} means something to the shell itself")
    is_known = not word.expands and not match[2]
    return match[1], word.text[match.end() :] if is_known else HOLE
