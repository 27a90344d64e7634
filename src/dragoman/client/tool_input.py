"""What the raw input of a tool call names: paths, commands, addresses. Pure.

Every agent has fields of its own, so a field is read by its name where that is known, and by its value elsewhere. What
a field holds that is neither a single plain word, nor a known kind of text, is a path, a command or an address by its
looks, or it makes the call `unclear`. Texts that are patches are read for the files they name, under whatever name
they stand.
"""

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import unquote, urlsplit

from dragoman.client.command_lines import line_of
from dragoman.client.patch_paths import patch_paths
from dragoman.host import wildcards
from dragoman.host.secrets import is_credential
from dragoman.permissions.facts import Action

# A tool's input has some dozen values. More is not for a rule to judge.
_VALUES: Final = 2_000
_DEPTH: Final = 16
# Each is looked up in the file system.
_PATHS: Final = 1_000


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Names of fields, in lower case and without `_`, `-` and `.`.
_COMMAND_NAMES: Final = frozenset(
    {"argv", "args", "arguments", "code", "program", "programs", "run", "runs", "script", "scripts", "shellscript"}
    | {"cellsource", "sql", "eval", "stdin", "entrypoint", "terminal"}
)
_COMMAND_PARTS: Final = re.compile(r"command|cmd|shell|bash|exec(?!policy|ution)|subprocess|runscript|torun")
# With these, a program's words stand in two fields.
_PROGRAM_NAMES: Final = frozenset({"command", "cmd", "program", "executable", "exec"})
_WORDS_NAMES: Final = frozenset({"args", "arguments", "argv", "commandargs", "cmdargs"})
_VARIABLE_NAMES: Final = frozenset({"env", "envs", "environ", "environment", "envvars", "environmentvariables"})
_ADDRESS_NAMES: Final = frozenset(
    {"url", "urls", "uri", "uris", "href", "endpoint", "host", "hostname", "link", "domain", "address"}
)
_PATH_ENDINGS: Final = ("path", "paths", "file", "files", "filename", "dir", "directory", "folder", "cwd", "workdir")
_FOLDER_ENDINGS: Final = ("cwd", "workdir", "workingdirectory", "workingdir", "basedir", "dir", "directory", "folder")
# Dictionaries whose keys are the files that are changed.
_KEYED_BY_PATH: Final = frozenset({"changes", "filechanges", "fileedits"})
# Texts that are written: a call that has one changes a file, whatever its kind says.
_WRITTEN_TEXTS: Final = _words(
    "text before after content contents newtext newstring newstr newcontent newcontents newsource patch patchtext diff "
    "unifieddiff filetext filecontent filecontents insert inserttext insertion replacement replace replacewith "
    "modifiedcontent aiproposedcontent codeedit new"
)
# The same, and lists of changes, which are no texts.
_CHANGE_LISTS: Final = frozenset({"edits", "changes"})
_WRITTEN_NAMES: Final = _WRITTEN_TEXTS | _CHANGE_LISTS
# Where something is put: the file is made or replaced.
_MADE: Final = re.compile(
    r"(new|out|output|dest|destination|save)(path|file|filename|dir|directory|folder)|destination|dest"
)
# What a call says that it does, in a word.
_ACTION_NAMES: Final = _words("operation op action verb method tool toolname mode")
_CHANGING: Final = re.compile(
    r".*(write|delete|remove|edit|create|append|move|rename|replace|insert|patch|truncate|unlink|save).*|(w|a|x|r\+)b?\+?b?"
)
_CHANGING_FLAGS: Final = _words("overwrite delete remove truncate")
# What is written, looked for or said, and not where.
_TEXT_NAMES: Final = _WRITTEN_TEXTS | _words(
    "old oldtext oldstring oldstr oldcontent originalcontent expectedcontent search find regex query explanation "
    "description title reason reasoning instruction instructions prompt summary message thought thoughts thinking "
    "justification comment note notes label goal purpose header question todo activeform instructionreminder"
)
# A pattern is a text to look for, or the names of files.
_PATTERN_NAMES: Final = frozenset({"pattern", "patterns", "glob", "globs", "include", "exclude", "searchpattern"})
# Patterns for the files whose text is read.
_READ_PATTERNS: Final = frozenset({"glob", "globs", "include"})
_WILD: Final = re.compile(r"[*?\[\]!]")
# What the editors of several agents are told to do, under the name of a command.
_EDITOR_VERBS: Final = frozenset({"view", "create", "write", "str_replace", "insert", "undo_edit"})
_BLANK: Final = re.compile(r"\s")
# No plain word has these: a call, a line for a shell, JSON in a text.
_NOT_PLAIN: Final = re.compile(r"[\s(){}<>;|&`'\"]")
_SEVERAL: Final = re.compile(r"[\s,;:|](?:/|~|\$|\.\./)")
_LEAVES: Final = re.compile(r"(?:^|[/\\])\.\.(?:$|[/\\])")


class ToolInput:
    """Collects what a call names; `unclear` is why that may not be all, or empty."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.commands: list[Action] = []
        self.addresses: list[str] = []
        self.folders: list[str] = []
        # Patterns for the files whose text is read, and names of credentials in them.
        self._patterns: list[str] = []
        self._credentials: list[str] = []
        self.unclear = ""
        # Whether there is more than was read.
        self.is_cut = False
        # Whether something is written.
        self.writes = False
        # Whether it says in another way that it changes files.
        self.changes = False

    def read(self, given: object) -> None:
        """Read an input: an object, a list of them, or a bare text or list of texts, which may be a command."""
        if isinstance(given, str):
            if given.strip() and not self.patch(given):
                self.commands.append(Action("execute", given, portable=True))
            return
        if isinstance(given, list) and given and all(isinstance(word, str) for word in given):
            self._command("", given)
            return
        for count, (key, value) in enumerate(_values(given)):
            if count > _VALUES:
                self.unclear, self.is_cut = "its input is too large to judge", True
                return
            self._value(key, value)
        if not self.paths:
            self.paths += self._patterns  # from the folder that the agent works in, as no other is named
        self.paths += self._credentials

    def path(self, path: str) -> None:
        """Note a path, or the address of a file."""
        if scheme_of(path):
            self.address(path)
        else:
            self.paths.append(path)

    def patch(self, text: str) -> bool:
        """Note the files that a text names as a patch does; whether there are any."""
        found = patch_paths(text)
        for path in found.paths:
            self.path(path)
        self.unclear = found.unclear or self.unclear
        self.is_cut = self.is_cut or found.is_cut
        self.writes = self.writes or bool(found.paths)
        return bool(found.paths)

    def address(self, address: str) -> None:
        """Note an address; one of a file is its path, with and without what is escaped in it."""
        if scheme_of(address) != "file":
            self.addresses.append(address)
            return
        try:
            parts = urlsplit(address.strip())
        except ValueError:
            self.unclear = "an address in it cannot be read"
            return
        if parts.netloc in ("", "localhost"):
            self.paths += dict.fromkeys([unquote(parts.path), parts.path])
        else:
            self.addresses.append(address)

    def all_paths(self) -> tuple[str, ...]:
        """Return every path once; a relative one also from each folder that the call names."""
        paths, folders = list(dict.fromkeys(self.paths)), list(dict.fromkeys(self.folders))
        relative = [path for path in paths if not path.startswith(("/", "~"))]
        if len(paths) + len(relative) * len(folders) > _PATHS:
            self.unclear, self.is_cut = self.unclear or "it names more files than can be judged", True
            return tuple(paths[:_PATHS])
        joined = [posixpath.join(folder, path) for folder in folders for path in relative if path != folder]
        return tuple(dict.fromkeys([*paths, *joined]))

    def _value(self, key: str, value: object) -> None:
        name = plain_name(key)
        self.writes = self.writes or (name in _WRITTEN_NAMES and value not in (None, "", [], {}))
        self.changes = self.changes or _says_that_it_changes(name, value)
        if value is _TOO_DEEP:
            self.unclear, self.is_cut = "its input is too deep to judge", True
        elif isinstance(value, _Keys):
            self._keys(name, value)
        elif name in _VARIABLE_NAMES:
            if value not in (None, "", [], {}):
                self.unclear = "it sets variables, which may change what a command means"
        elif is_command_name(name):
            self._command(key, value)
        elif isinstance(value, str) and value:
            self._text(key, name, value)

    def _keys(self, name: str, keys: "_Keys") -> None:
        """Read the keys of an object that may be paths: agents list changes by the file they are made to."""
        for key in keys:
            if name in _KEYED_BY_PATH or _looks_like_path(key) or "/" in key or "\\" in key:
                self.path(key)

    def _command(self, key: str, value: object) -> None:
        given: list[object] = value if isinstance(value, list) else [value]
        words = [word for word in given if isinstance(word, str)]
        if words and len(words) == len(given):
            is_line = len(words) == 1
            self.commands.append(Action("execute", words[0], portable=True) if is_line else line_of(words))
            for word in words:
                self.patch(word)
        elif not _is_read_whole(plain_name(key), value) or isinstance(value, (bool, int, float)):
            return  # its parts are read one by one; a number is no command
        elif value not in (None, [], {}):
            self.unclear = f"its {key[:40]!r} cannot be judged"

    def _text(self, key: str, name: str, value: str) -> None:
        is_patch = self.patch(value)
        if name in _TEXT_NAMES:
            return
        if scheme_of(value):
            self.address(value)
        elif name in _PATTERN_NAMES:
            if _looks_like_path(value):
                self.paths.append(value)
            elif name in _READ_PATTERNS:
                self._credentials += _credentials_in(value)
                self._patterns.append("**" if value.startswith("!") else value if "/" in value else f"**/{value}")
        elif name in _ADDRESS_NAMES and not value.startswith("/"):
            self.addresses.append(value)
        elif name in _ADDRESS_NAMES or name.endswith(_PATH_ENDINGS):
            self._named_path(key, name, value)
        elif not is_patch:
            self._unknown(key, value)

    def _named_path(self, key: str, name: str, value: str) -> None:
        """Read a path by the name of its field; several of them in one text cannot be told apart."""
        self.paths.append(value)
        if name.endswith(_FOLDER_ENDINGS):
            self.folders.append(value)
        if "\n" in value or (name.endswith("s") and _SEVERAL.search(value)):
            self.unclear = f"its {key[:40]!r} may be several paths"

    def _unknown(self, key: str, value: str) -> None:
        """Read a text of unknown meaning: harmless if it is one plain word, a path if it looks like one."""
        if _looks_like_path(value) or "/" in value or "\\" in value:
            self.paths.append(value)
        is_run = plain_name(key) in _ACTION_NAMES and is_command_name(plain_name(value))
        if is_run or _NOT_PLAIN.search(value):
            self.unclear = f"it is not known what its {key[:40]!r} is"


class _Keys(tuple[str, ...]):
    """The keys of an object."""


_TOO_DEEP: Final = object()


def plain_name(key: str) -> str:
    """Return the name of a field, however it is spelled: `shell_command` is `shellCommand`, `old_str_1` is `oldStr`."""
    return key.lower().replace("_", "").replace("-", "").replace(".", "").rstrip("0123456789")


def is_command_name(name: str) -> bool:
    """Return whether a field with this plain name holds something that is run."""
    return name in _COMMAND_NAMES or _COMMAND_PARTS.search(name) is not None


def _says_that_it_changes(name: str, value: object) -> bool:
    """Return whether a field with this plain name says that files are made, changed or removed."""
    if name in _CHANGING_FLAGS:
        return value is True
    if not isinstance(value, str) or not value:
        return False
    return _MADE.fullmatch(name) is not None or (
        name in _ACTION_NAMES and _CHANGING.fullmatch(value.lower()) is not None
    )


def is_shown_by_diff(key: str, value: object, paths: Sequence[str], texts: Sequence[str], depth: int = 0) -> bool:
    """Return whether a field says nothing that the paths and texts of a diff do not say. A command never does.

    A list of edits is shown if each field of each of them is.
    """
    name = plain_name(key)
    if isinstance(value, list) and name in _CHANGE_LISTS and depth < _DEPTH:
        fields = [item.items() if isinstance(item, dict) else [("", item)] for item in value]
        return all(is_shown_by_diff(str(at), one, paths, texts, depth + 1) for each in fields for at, one in each)
    if value is None or isinstance(value, (bool, int, float)):
        return True
    if is_command_name(name) or not isinstance(value, str):
        return False
    if name.endswith(_PATH_ENDINGS):
        return value in paths
    return name in _TEXT_NAMES and any(value in text for text in texts)


def scheme_of(value: str) -> str:
    """Return the scheme of an address; empty for what is none."""
    scheme, separator, _ = value.strip().partition("://")
    plain = separator and scheme.isascii() and scheme.replace("+", "").replace("-", "").replace(".", "").isalnum()
    if plain:
        return scheme.lower()
    return "file" if value[:5].lower() == "file:" else ""


def _looks_like_path(value: str) -> bool:
    return value.startswith(("/", "~", "./", "../", "$", "\\")) or _LEAVES.search(value) is not None


def _values(given: object, key: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    """Yield every value with the name of its field; a list's values have the list's name.

    A command is one value, words and all; a program and its words in two fields are one command.
    """
    if depth > _DEPTH:
        yield key, _TOO_DEEP
    elif isinstance(given, dict):
        yield key, _Keys(str(name) for name in given)
        whole = _program_and_words(given)
        if whole is not None:
            yield "command", whole
        verb = _editor_verb(given) if whole is None else None
        if verb is not None:
            yield "edits", "" if verb == "view" else verb
        for name, value in given.items():
            if verb is not None and name == "command":
                continue
            if whole is not None and plain_name(str(name)) in _PROGRAM_NAMES | _WORDS_NAMES:
                continue
            yield str(name), value
            if isinstance(value, (dict, list)) and not _is_read_whole(plain_name(str(name)), value):
                yield from _values(value, str(name), depth + 1)
    elif isinstance(given, list):
        for value in given:
            yield from _values(value, key, depth + 1)
    else:
        yield key, given


def _editor_verb(given: "dict[object, object]") -> str | None:
    """Return the verb of `{"command": "view", "path": "a", …}`; None for anything else: a word alone is a program."""
    verb = given.get("command")
    is_verb = isinstance(verb, str) and verb in _EDITOR_VERBS and isinstance(given.get("path"), str)
    return str(verb) if is_verb else None


def _credentials_in(pattern: str) -> list[str]:
    """Return the names of credentials that a pattern for files names itself: `*.{key,pem}`, `.env*`."""
    try:
        patterns = wildcards.expand_braces(pattern)
    except wildcards.PatternRefused:
        patterns = [pattern]
    names = (_WILD.sub("", one).strip("/") for one in patterns)
    return [name for name in names if is_credential(f"/{name}", "")]


def _is_read_whole(name: str, value: object) -> bool:
    """Return whether a value is read as one: variables, and a command in words."""
    if is_command_name(name):
        return not (isinstance(value, list) and value and all(isinstance(one, dict) for one in value))
    return name in _VARIABLE_NAMES


def _program_and_words(given: "dict[object, object]") -> list[str] | str | None:
    """Return `{"command": "git", "args": ["status"]}` as a list of words, or as one line; None for anything else."""
    named = {plain_name(str(name)): value for name, value in given.items()}
    programs = [value for name, value in named.items() if name in _PROGRAM_NAMES]
    words = [value for name, value in named.items() if name in _WORDS_NAMES]
    if len(programs) != 1 or len(words) != 1 or len(named) != len(given):
        return None
    program, following = (_as_words(value) for value in (programs[0], words[0]))
    if not program or not following:
        return None
    if isinstance(program, list) and isinstance(following, list):
        return [*program, *following]
    return " ".join(part if isinstance(part, str) else shlex.join(part) for part in (program, following))


def _as_words(value: object) -> list[str] | str | None:
    """Return a list of words, one word as such a list, or a line of them; None for anything else."""
    if isinstance(value, str):
        return value if _BLANK.search(value) else [value]
    words = value if isinstance(value, list) else []
    return words if all(isinstance(word, str) for word in words) else None
