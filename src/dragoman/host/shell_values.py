"""What is known of a command line once it is read: its commands, with their words, files and folders. Values."""

from typing import Literal, NamedTuple

from dragoman.host.shell_lexer import HOLE

# `text` is what a here-document or a here-string hands to a command.
RedirectKind = Literal["read", "write", "append", "text"]


class Redirect(NamedTuple):
    """A file that is read from or written to, or a text. Copies of descriptors (`2>&1`) are none."""

    kind: RedirectKind
    target: str
    literal: bool = True


class Simple(NamedTuple):
    """One command: its words without quotes, what is assigned before it, and its files.

    `expands` has the indexes of the words in `argv` that the shell may turn into something else. A `HOLE` in another
    word is what a quoted `$(…)` of this line prints. A command without words is the files of a compound command, or
    assignments alone. `folders` are those that it may run in, the last one first: the empty one is where the line
    begins; none: it is not known.
    """

    argv: tuple[str, ...]
    assignments: tuple[tuple[str, str], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    expands: frozenset[int] = frozenset()
    folders: tuple[str, ...] = ("",)

    @property
    def literal(self) -> bool:
        """Whether every word is what the command gets."""
        return not self.expands and not any(HOLE in word for word in self.argv) and self.has_literal_files

    @property
    def has_literal_files(self) -> bool:
        """Whether the names of its files are what they are."""
        return all(redirect.literal for redirect in self.redirects)


class Parsed(NamedTuple):
    """The commands in the order of the text; those of a substitution stand before the command it belongs to.

    `pipelines` has the indexes at which the members of each pipeline begin, and the one behind its end. `functions` are
    the names that the line defines; calls of them are no commands, since the commands of their bodies are listed.
    `is_plain`: it is lists of simple commands without variables or substitutions.
    """

    text: str
    commands: tuple[Simple, ...]
    pipelines: tuple[tuple[int, ...], ...] = ()
    functions: frozenset[str] = frozenset()
    is_plain: bool = True


class Unparsed(NamedTuple):
    """What the text alone does not tell."""

    text: str
    reason: str


class UnknownMeaning(Exception):
    """A text that cannot be understood for sure; the reason is the message."""


def entered(simple: Simple) -> str | None:
    """Return the folder that a `cd` leads to, if that can be known: `cd -` and `cd` alone depend on the environment."""
    if simple.argv[:1] != ("cd",) or len(simple.argv) != 2 or not simple.literal or simple.assignments:
        return None
    folder = simple.argv[1]
    return None if not folder or folder.startswith("-") or ".." in folder.split("/") else folder
