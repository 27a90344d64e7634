"""What a request of an agent is about, by what it carries: paths, commands, addresses. Pure.

Titles and names are for display and are not looked at. The kind is the agent's own word: it can make a request look
more serious than what it carries, never less. What cannot be understood is said to be `unclear`, and nobody but a
person or a rule for everything says yes to that.
"""

import shlex
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from dragoman.vocabulary.events import ToolCallUpdate
from dragoman.vocabulary.services import (
    CommandSubject,
    CreateTerminal,
    ReadTextFile,
    RequestPermission,
    ToolCallSubject,
    WriteTextFile,
)
from dragoman.vocabulary.tools import (
    ClientTerminalItem,
    Diff,
    FileChange,
    Location,
    TerminalItem,
    UnknownItem,
)

Judged = RequestPermission | ReadTextFile | WriteTextFile | CreateTerminal
ActKind = Literal["read", "edit", "execute", "fetch", "other"]

# A tool's input has some dozen values. More is not for a rule to judge.
_VALUES: Final = 2_000
_DEPTH: Final = 16

_READING: Final = frozenset({"read", "search"})
_EDITING: Final = frozenset({"edit", "delete", "move"})
# Names of input fields, in lower case and without `_` and `-`.
_COMMAND_KEYS: Final = frozenset(
    {"command", "commands", "cmd", "commandline", "script", "shell", "argv", "args", "code", "exec", "program", "bash"}
    | {"executable", "parsedcmd", "powershell", "cellsource", "sql", "eval"}
)
_ADDRESS_KEYS: Final = frozenset(
    {"url", "urls", "uri", "uris", "href", "endpoint", "host", "hostname", "link", "domain", "address"}
)
_PATH_ENDINGS: Final = ("path", "paths", "file", "files", "filename", "dir", "directory", "folder", "cwd", "workdir")
# What is written or looked for, not where.
_TEXT_KEYS: Final = frozenset(
    {"content", "contents", "text", "oldtext", "newtext", "oldstring", "newstring", "oldstr", "newstr", "patch", "diff"}
    | {"unifieddiff", "filetext", "insert", "replacement", "pattern", "regex", "glob", "explanation", "description"}
    | {"title", "reason", "instruction", "prompt", "modifiedcontent"}
)
_SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash", "/bin/sh", "/bin/bash", "/bin/zsh", "/usr/bin/bash"})


class Evidence(NamedTuple):
    """What a request carries."""

    kind: ActKind
    paths: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    unclear: str = ""


def evidence(request: Judged) -> Evidence:
    """What there is to judge by."""
    match request:
        case ReadTextFile(path=path):
            return Evidence("read", (path,))
        case WriteTextFile(path=path):
            return Evidence("edit", (path,))
        case CreateTerminal():
            return Evidence("execute", _folder(request.cwd), (command_line(request),))
        case RequestPermission(subject=CommandSubject(command=command, cwd=cwd)):
            return Evidence("execute", _folder(cwd), (command,))
        case RequestPermission(subject=ToolCallSubject(tool_call=call)):
            return _of_call(call)
        case RequestPermission():
            return Evidence("other", unclear="it does not say what it is about")


def command_line(request: CreateTerminal) -> str:
    """The command of a terminal as one line for a shell, with the variables it is given."""
    line = _joined([request.command, *request.args]) if request.args else request.command
    given = [f"{variable.name}={shlex.quote(variable.value)}" for variable in request.env or ()]
    return " ".join([*given, line])


def _folder(cwd: object) -> tuple[str, ...]:
    return (cwd,) if isinstance(cwd, str) and cwd else ()


def _of_call(call: ToolCallUpdate) -> Evidence:
    found = _Found()
    changes = False
    for location in call.locations or ():
        if isinstance(location, Location):
            found.paths.append(location.path)
    for item in call.content or ():
        match item:
            case Diff():
                changes = True
                found.diff(item)
            case TerminalItem() | ClientTerminalItem():
                found.unclear = "it shows a terminal, and the command in it is not known"
            case UnknownItem():
                found.unclear = "it carries content of an unknown kind"
            case _:
                pass
    if call.raw_input is not None and isinstance(call.raw_input, (dict, list, str)):
        found.input(call.raw_input)
    return found.told(call.kind if isinstance(call.kind, str) else "", changes=changes)


class _Found:
    """Collects."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.commands: list[str] = []
        self.addresses: list[str] = []
        self.unclear = ""

    def diff(self, diff: Diff) -> None:
        for change in diff.changes:
            if isinstance(change, FileChange):
                self.paths.append(change.path)
                if isinstance(change.old_path, str):
                    self.paths.append(change.old_path)
            else:
                self.unclear = "it changes files in an unknown way"

    def input(self, given: object) -> None:
        if isinstance(given, str):
            self.commands.append(given)  # a bare text may be anything, a command too
            return
        for count, (key, value) in enumerate(_values(given)):
            if count > _VALUES:
                self.unclear = "its input is too large to judge"
                return
            self._value(key, value)

    def _value(self, key: str, value: object) -> None:
        name = _plain(key)
        if key.startswith(("/", "~")):
            self.paths.append(key)  # changes listed by the file they are made to
        if value is _TOO_DEEP:
            self.unclear = "its input is too deep to judge"
        elif name in _COMMAND_KEYS:
            words = value if isinstance(value, list) else [value]
            if all(isinstance(word, str) for word in words):
                self.commands.append(_joined(words))
            elif value not in (None, False, [], {}):
                self.unclear = f"its {key!r} cannot be judged"
        elif isinstance(value, str) and value:
            self._text(name, value)

    def _text(self, name: str, value: str) -> None:
        if name in _TEXT_KEYS:
            return
        scheme = urlsplit_scheme(value)
        if scheme == "file":
            self._file(value)
        elif scheme or name in _ADDRESS_KEYS:
            self.addresses.append(value)
        elif name.endswith(_PATH_ENDINGS) or value.startswith(("/", "~", "../")):
            self.paths.append(value)

    def _file(self, address: str) -> None:
        try:
            parts = urlsplit(address)
        except ValueError:
            self.unclear = "an address in it cannot be read"
            return
        if parts.netloc in ("", "localhost"):
            self.paths.append(unquote(parts.path))
        else:
            self.addresses.append(address)

    def told(self, label: str, *, changes: bool) -> Evidence:
        if self.commands or label == "execute":
            kind: ActKind = "execute"
        elif self.addresses or label == "fetch":
            kind = "fetch"
        elif changes or label in _EDITING:
            kind = "edit"
        elif label in _READING:
            kind = "read"
        else:
            kind = "other"
        unclear = self.unclear
        if not (unclear or self.paths or self.commands or self.addresses):
            unclear = "it names no file, no command and no address"
        return Evidence(kind, _once(self.paths), _once(self.commands), _once(self.addresses), unclear)


_TOO_DEEP: Final = object()


def _plain(key: str) -> str:
    return key.lower().replace("_", "").replace("-", "")


def _values(given: object, key: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    """Every value with the name of the field it stands in; a list's values have the list's name.

    A command is one value, words and all.
    """
    if depth > _DEPTH:
        yield key, _TOO_DEEP
    elif isinstance(given, dict):
        for name, value in given.items():
            yield str(name), value
            if isinstance(value, (dict, list)) and _plain(str(name)) not in _COMMAND_KEYS:
                yield from _values(value, str(name), depth + 1)
    elif isinstance(given, list):
        for value in given:
            yield from _values(value, key, depth + 1)
    else:
        yield key, given


def urlsplit_scheme(value: str) -> str:
    """The scheme of an address; empty for what is none."""
    scheme, separator, _ = value.partition("://")
    plain = separator and scheme.isascii() and scheme.replace("+", "").replace("-", "").replace(".", "").isalnum()
    return scheme.lower() if plain else ""


def _joined(words: Sequence[object]) -> str:
    """Words as one command line; `sh -c TEXT` is its text."""
    texts = [word for word in words if isinstance(word, str)]
    if len(texts) == 1:
        return texts[0]
    if len(texts) == 3 and texts[0] in _SHELLS and texts[1] in ("-c", "-lc"):
        return texts[2]
    return shlex.join(texts)


def _once(found: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))
