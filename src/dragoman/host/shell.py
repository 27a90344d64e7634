"""A bash command line, read before it is judged. Pure: nothing is run and nothing is looked up.

`parse` says which commands a line may run, with the very words bash would hand them, or that this cannot be known from
the text alone. It is a descent through bash's grammar: lists and pipelines, redirects and here-documents, subshells,
groups, branches, loops, functions, and what `$(…)` and `<(…)` run. Every command that stands anywhere in there is in
one list; which of them a condition lets run is not said. A word that the shell still makes into others (a glob, braces,
a variable) is marked, and what it does not tell is a `HOLE`.

What would change the meaning of words (`eval`, `alias`, `exec`, variables of the shell itself), what names a command by
an expansion, arithmetic, `[[ ]]` and a text that would not look like what it is (control characters, odd blanks) are
`Unparsed`. So is everything that is not understood: no part of a line is guessed.

Other shells read some lines in another way: `a &>f b` is one command in bash and two in dash. `parse(…, portable=True)`
is for a line of which it is not known that bash reads it: what is parsed then means the same in sh, dash, zsh and bash.
"""

import re
from typing import Final

from dragoman.host.shell_grammar import SUB_COMMANDS, CommandParser
from dragoman.host.shell_values import Parsed, Redirect, Simple, UnknownMeaning, Unparsed
from dragoman.host.text import hidden_character

__all__ = ["COMMAND_BYTES", "SUB_COMMANDS", "Parsed", "Redirect", "Simple", "Unparsed", "parse"]

# A user who is asked for permission cannot be expected to read more than this.
COMMAND_BYTES: Final = 10_000


def parse(command: str, *, portable: bool = False) -> Parsed | Unparsed:
    """Return the commands of a line, if they can be known: from bash, or with `portable` from any shell."""
    try:
        _check_text(command)
        if portable:
            _check_portable(command)
        parsed = CommandParser(command).read()
        if portable and not parsed.is_plain:
            raise UnknownMeaning("shells other than bash may read it in another way")
        if portable and any(simple.argv[:1] and simple.argv[0] in _OTHER_WORDS for simple in parsed.commands):
            raise UnknownMeaning("it begins with a word that means something else in some shells")
        return parsed
    except UnknownMeaning as unknown:
        return Unparsed(command, str(unknown))


# Words that some shells do not take for a program.
_OTHER_WORDS: Final = frozenset(
    {*("-", "always", "end", "foreach", "integer", "float", "nocorrect", "noglob", "repeat"), "namespace", "nameref"}
    | {"autoload", "functions", "r"}
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
            raise UnknownMeaning(
                f"shells other than bash may read it in another way, from {command[at : at + 20]!r} on"
            )
        at = piece.end()


def _check_text(command: str) -> None:
    try:
        size = len(command.encode())
    except UnicodeEncodeError:
        raise UnknownMeaning("it holds half a character") from None
    if size > COMMAND_BYTES:
        raise UnknownMeaning(f"it is longer than {COMMAND_BYTES} bytes")
    if character := hidden_character(command):
        raise UnknownMeaning(f"it holds U+{ord(character):04X}, which does not show")
