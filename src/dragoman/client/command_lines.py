"""A command of an agent in the one form that is judged, shown and run.

Owns the way from a `terminal/create` request to the words of a process. `terminal_argv` says what is run, and
`terminal_line` says the same as text, for rules and for people; both come from the same request and shell, so that what
is judged is what runs. Pure: which shell this machine has comes in as an argument.

A list of words is run as it is, without a shell. A text with blanks and no arguments is a line for a shell, and
that shell is bash, which is what `host.shell` reads.
"""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

from dragoman.errors import INVALID_PARAMS, RequestFailed
from dragoman.permissions.facts import Action
from dragoman.vocabulary.services import CreateTerminal

BASH: Final = "/bin/bash"
# Without the files that change what a line means.
_BASH_OPTIONS: Final = ("--noprofile", "--norc", "-c")

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BASHES: Final = frozenset({"bash", "/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash"})
_OTHER_SHELLS: Final = frozenset(
    f"{folder}{name}" for folder in ("", "/bin/", "/usr/bin/") for name in ("sh", "dash", "ash", "zsh", "ksh", "mksh")
)
# `-l` reads the user's own profile, as each of the user's terminals does; a workspace has no part in that.
_TEXT_FOLLOWS: Final = re.compile(r"-[el]*c[el]*")
_BEFORE_TEXT: Final = frozenset({"--noprofile", "--norc", "--login", "-l", "-e"})
# What bash itself takes from the environment before it reads the line, so that the line means something else.
_STEERS_BASH: Final = re.compile(
    r"BASH_ENV|ENV|SHELLOPTS|BASHOPTS|BASH_FUNC_.*|BASH_COMPAT|BASH_XTRACEFD|POSIXLY_CORRECT|PS4|CDPATH|GLOBIGNORE"
)


def check_terminal(request: CreateTerminal) -> None:
    """Raise `RequestFailed` for what no process can get, and for names of variables that are none.

    A name with a blank or a `#` in it would show, and be judged, as another command.
    """
    for variable in request.env or ():
        if not _NAME.fullmatch(variable.name):
            raise _refused("env", "the name of a variable is letters, digits and _, and does not begin with a digit")
        _check_text(variable.value, "env")
    _check_text(request.command, "command")
    for word in request.args or ():
        _check_text(word, "args")
    if not request.command.strip():
        raise _refused("command", "there is no command in it")


def terminal_argv(request: CreateTerminal, shell: str = BASH) -> list[str]:
    """Return the words of the process that a terminal runs; `shell` runs a line of text."""
    if not _is_line(request):
        return [request.command, *(request.args or [])]
    return [shell, *(_BASH_OPTIONS if _is_bash(shell) else ("-c",)), request.command]


def terminal_line(request: CreateTerminal, shell: str = BASH) -> str:
    """Write the words of a terminal's process as one line with its variables: it is judged, and shown."""
    if _is_line(request) and not request.env and _is_bash(shell):
        return request.command
    given = [f"{variable.name}={shlex.quote(variable.value)}" for variable in request.env or ()]
    return " ".join([*given, _quoted(terminal_argv(request, shell))])


def judged_line(request: CreateTerminal, shell: str = BASH) -> Action:
    """Return the command of a terminal for rules: `bash -c TEXT` without variables is its text."""
    inner = None if request.env else text_for_shell(terminal_argv(request, shell))
    return inner or Action("execute", terminal_line(request, shell))


def terminal_environment(request: CreateTerminal, base: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a terminal: `base`, then those of the request; for a line, none that change its meaning.

    A relative folder of the PATH would let a file of the workspace take the name of a program.
    """
    kept = {name: value for name, value in base.items() if not (_is_line(request) and _STEERS_BASH.fullmatch(name))}
    if "PATH" in kept:
        kept["PATH"] = os.pathsep.join(filter(os.path.isabs, kept["PATH"].split(os.pathsep)))
    return kept | {variable.name: variable.value for variable in request.env or ()}


def line_of(words: Sequence[str]) -> Action:
    """Return the action of running words as one command line; `bash -c TEXT` is its text."""
    return text_for_shell(words) or Action("execute", _quoted(words))


def text_for_shell(words: Sequence[str]) -> Action | None:
    """Return the text that a shell is told to run by these words, if that is all they say."""
    if len(words) < 3 or not _TEXT_FOLLOWS.fullmatch(words[-2]):
        return None
    if words[0] in _BASHES and all(word in _BEFORE_TEXT for word in words[1:-2]):
        return Action("execute", words[-1])
    if words[0] in _OTHER_SHELLS and len(words) == 3:
        return Action("execute", words[-1], portable=True)
    return None


def _is_line(request: CreateTerminal) -> bool:
    """Return whether the command is a whole line for a shell; else it is a program, whose arguments stand apart."""
    return not request.args and any(character.isspace() for character in request.command)


def _is_bash(shell: str) -> bool:
    return os.path.basename(shell) == "bash"


def _quoted(words: Sequence[str]) -> str:
    """Return words quoted for a shell; the first is a program also where it looks like a variable."""
    texts = [shlex.quote(word) for word in words]
    if texts and "=" in texts[0] and not texts[0].startswith("'"):
        texts[0] = f"'{texts[0]}'"
    return " ".join(texts)


def _check_text(text: str, field: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _refused(field, "it holds half a character") from None
    if "\0" in text:
        raise _refused(field, "it holds a NUL, which no process can get")


def _refused(field: str, reason: str) -> RequestFailed:
    return RequestFailed(INVALID_PARAMS, f"Invalid params: {field}: {reason}", {"field": field, "reason": reason})
