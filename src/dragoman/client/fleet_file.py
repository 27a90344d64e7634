"""`acp.json`: read with errors that name the line, changed without losing what we do not know.

The file of the user's own folder counts as it is. A project's file is data until the user has trusted it.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, cast, get_args

from dragoman.client.entry import DIALECTS, Entry, NonInteractive, PermissionPolicy
from dragoman.client.known import KNOWN
from dragoman.client.located import Located, Misplaced, parse
from dragoman.client.located import Path as Place
from dragoman.client.policy import Effect, Rule
from dragoman.errors import UsageError, WorldError
from dragoman.host.trust import COVERED_BYTES, TrustFailed, covered, is_trusted
from dragoman.vocabulary.requests import EnvVariable, HttpHeader, McpHttp, McpServer, McpSse, McpStdio

NAME: Final = "acp.json"
# A project's file may stand beside its code, or out of the way.
_IN_PROJECT: Final = (NAME, ".dragoman/acp.json")
# A folder has no more folders above it: PATH_MAX is 4096.
_FOLDERS: Final = 2048
# What a number of milliseconds or restarts may be at most: a day, and more than anybody waits for.
_LONGEST_MS: Final = 24 * 60 * 60 * 1000
_MOST_RESTARTS: Final = 1000
T = TypeVar("T")


class FleetFileWrong(WorldError):
    """A file that cannot be used; the text names the file, the line and the fix."""


class FleetFile(NamedTuple):
    """What a file says."""

    entries: Mapping[str, Entry]
    default: str = ""


class Found(NamedTuple):
    """A file to read. The bytes are the ones that were trusted."""

    path: Path
    data: bytes


def find_files(home: Path, folder: Path | None) -> Iterator[Found]:
    """The user's own file, then that of the nearest project folder, if it is trusted as it is."""
    own = home / NAME
    data = _bytes(own)
    if data is not None:
        yield Found(own, data)
    project = None if folder is None else nearest(folder)
    if project is None or project == own:
        return
    trusted = _trusted(home, project)
    if trusted is not None:
        yield Found(project, trusted)


def nearest(folder: Path) -> Path | None:
    """The file of the nearest folder, going up, that has one, trusted or not."""
    here = folder.absolute()
    for one in [here, *here.parents][:_FOLDERS]:
        for name in _IN_PROJECT:
            if (one / name).is_file():
                return one / name
    return None


def untrusted(home: Path, folder: Path) -> Path | None:
    """The nearest project's file, if it is there and does not count because nobody has trusted it."""
    project = nearest(folder)
    if project is None or project == home / NAME or _trusted(home, project) is not None:
        return None
    return project


def project_folder(file: Path) -> Path:
    """The folder that a project's file, and trust, is about."""
    return file.parent.parent if file.parent.name == ".dragoman" else file.parent


def _trusted(home: Path, project: Path) -> bytes | None:
    """What a trusted file says. Read before and after trust was checked: what was checked is what counts."""
    folder = project_folder(project)
    name = project.relative_to(folder).as_posix()
    try:
        before = covered(folder).get(name)
        fine = is_trusted(home / "trust.json", folder) and covered(folder).get(name) == before
    except TrustFailed:
        return None
    return before if fine else None


def _bytes(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            data = file.read(COVERED_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise FleetFileWrong(f"{path}: {(error.strerror or 'cannot be read').lower()}") from error
    if len(data) > COVERED_BYTES:
        raise FleetFileWrong(f"{path}: longer than {COVERED_BYTES} bytes")
    return data


def read_file(found: Found) -> FleetFile:
    """What a file says, or `FleetFileWrong`."""
    try:
        text = found.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FleetFileWrong(f"{found.path}: not UTF-8 text") from None
    try:
        return _Reader(parse(text), found.path).read()
    except Misplaced as error:
        raise FleetFileWrong(f"{found.path}, line {error.line}: {error}") from None


# -- changing --------------------------------------------------------------------------------------------------------


def add_entry(path: Path, name: str, command: list[str]) -> None:
    """Put an agent into a file, in place of one that has its name. Everything else stays as it is."""
    document = _document(path)
    servers = document.setdefault("servers", {})
    entry: dict[str, object] = {"command": command[0], "args": command[1:]}
    if isinstance(servers, list):
        at = next((at for at, one in enumerate(servers) if one.get("name") == name), len(servers))
        before = servers[at] if at < len(servers) else {"name": name}
        servers[at : at + 1] = [before | entry]
    else:
        servers[name] = servers.get(name, {}) | entry
    _replace(path, document)


def remove_entry(path: Path, name: str) -> bool:
    """Take an agent out of a file. False: it is not in it."""
    document = _document(path)
    servers = document.get("servers", {})
    if isinstance(servers, list):
        kept = [one for one in servers if one.get("name") != name]
        gone = len(kept) < len(servers)
        document["servers"] = kept
    else:
        gone = servers.pop(name, None) is not None
    if gone:
        if document.get("defaultServer") == name:
            del document["defaultServer"]
        _replace(path, document)
    return gone


def _document(path: Path) -> dict[str, Any]:
    """A file as it is written. One that we cannot read is not written over."""
    data = _bytes(path)
    if data is None:
        return {}
    read_file(Found(path, data))
    return cast(dict[str, Any], json.loads(data.decode("utf-8-sig")))


def _replace(path: Path, document: dict[str, Any]) -> None:
    """Whole or not at all."""
    path = path.resolve()  # the file that a link leads to, not the link
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)  # `env` may hold keys
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(fd)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise FleetFileWrong(f"{path}: {(error.strerror or 'cannot be written').lower()}") from error


# -- reading ---------------------------------------------------------------------------------------------------------

_TOP: Final = frozenset(
    {"$schema", "servers", "defaultServer", "defaultAgent", "mcpServers", "permissionPolicy", "nonInteractivePolicy"}
    | {"permissions"}
)
_ENTRY: Final = frozenset(
    {"name", "command", "args", "env", "cwd", "dialect", "startupTimeoutMs", "requestTimeoutMs", "timeoutMs"}
    | {"promptIdleTimeoutMs", "permissionPolicy", "nonInteractivePolicy", "permissions", "autoStart", "description"}
    | {"maxRecoverableRestarts", "defaultAgent", "mcpServers", "capabilities"}
)
_EFFECTS: Final[tuple[Effect, ...]] = ("allow", "ask", "reject")


class _Reader:
    """Reads one file."""

    def __init__(self, located: Located, path: Path) -> None:
        self._located = located
        self._path = path

    def read(self) -> FleetFile:
        top = _Table(self, (), self._located.value, _TOP)
        shared = {
            "permission_policy": top.choice("permissionPolicy", get_args(PermissionPolicy)),
            "non_interactive": self._non_interactive(top),
            "default_agent": top.text("defaultAgent"),
        }
        common = {name: value for name, value in shared.items() if value is not None}
        rules, servers = self._rules(top), self._mcp(top)
        entries = {
            name: self._entry(name, table, common, rules, servers) for name, table in self._tables(top.given("servers"))
        }
        default = top.text("defaultServer") or ""
        if default and default not in entries and default not in KNOWN:
            raise top.wrong("defaultServer", f"there is no server {default!r} in this file")
        return FleetFile(entries, default)

    def _tables(self, servers: object) -> "Iterator[tuple[str, _Table]]":
        """A map, or a list of objects that say their names."""
        place: Place = ("servers",)
        if isinstance(servers, dict):
            for name, value in servers.items():
                if not name or not name.isprintable():
                    raise self.misplaced((*place, name), "a server needs a name")
                yield name, _Table(self, (*place, name), value, _ENTRY)
        elif isinstance(servers, list):
            seen: set[str] = set()
            for at, value in enumerate(servers):
                table = _Table(self, (*place, at), value, _ENTRY)
                name = table.text("name")
                if not name or not name.isprintable():
                    raise self.misplaced((*place, at), "a server in a list needs a name")
                if name in seen:
                    raise table.wrong("name", f"the name {name!r} is taken")
                seen.add(name)
                yield name, table
        elif servers is not None:
            raise self.misplaced(place, f"servers must be an object or a list, not {_kind(servers)}")

    def _entry(
        self,
        name: str,
        table: "_Table",
        common: Mapping[str, object],
        rules: tuple[Rule, ...],
        servers: tuple[McpServer, ...],
    ) -> Entry:
        known = KNOWN.get(name)
        command = table.text("command")
        if not command and known is None:
            raise table.wrong("command", "a server needs a command")
        base = known if known is not None and not command else Entry(name, command or "")
        if known is not None and command == known.command:
            base = replace(base, install=known.install, passed_on=known.passed_on)
        given: dict[str, object] = {
            "args": table.texts("args"),
            "env": table.env("env"),
            "cwd": self._folder(table.text("cwd")),
            "dialect": table.choice("dialect", DIALECTS),
            "startup_ms": table.number("startupTimeoutMs", _LONGEST_MS),
            "request_ms": self._request_ms(table),
            "prompt_idle_ms": table.number("promptIdleTimeoutMs", _LONGEST_MS),
            "permission_policy": table.choice("permissionPolicy", get_args(PermissionPolicy)),
            "non_interactive": self._non_interactive(table),
            "auto_start": table.flag("autoStart"),
            "max_recoverable_restarts": table.number("maxRecoverableRestarts", _MOST_RESTARTS, least=0),
            "description": table.text("description"),
            "default_agent": table.text("defaultAgent"),
            "capabilities": table.map("capabilities"),
        }
        chosen: dict[str, Any] = {**common, **{key: value for key, value in given.items() if value is not None}}
        return replace(
            base,
            rules=rules + self._rules(table),
            mcp_servers=servers + self._mcp(table),
            source=f"{self._path}, line {table.line}",
            built_in=False,
            **chosen,
        )

    def _folder(self, cwd: str | None) -> str | None:
        """Relative to where the file stands, unless a variable may yet make it absolute."""
        if not cwd or cwd.startswith("$"):
            return cwd
        return os.path.join(project_folder(self._path), os.path.expanduser(cwd))

    def _request_ms(self, table: "_Table") -> int | None:
        ours = table.number("requestTimeoutMs", _LONGEST_MS)
        alias = table.number("timeoutMs", _LONGEST_MS)
        if ours is not None and alias is not None and ours != alias:
            raise table.wrong("timeoutMs", "timeoutMs is another name of requestTimeoutMs; leave one of them out")
        return ours if ours is not None else alias

    def _non_interactive(self, table: "_Table") -> NonInteractive | None:
        if table.given("nonInteractivePolicy") is None:
            return None
        inner = table.table("nonInteractivePolicy", frozenset({"mode"}))
        mode = inner.choice("mode", get_args(NonInteractive))
        if mode is None:
            raise inner.wrong("mode", "mode is reject_all or accept_all")
        return cast(NonInteractive, mode)

    def _rules(self, table: "_Table") -> tuple[Rule, ...]:
        if table.given("permissions") is None:
            return ()
        inner = table.table("permissions", frozenset(_EFFECTS))
        found: list[Rule] = []
        for effect in _EFFECTS:
            for rule in inner.tables(effect, frozenset({"kind", "path", "command"})):
                named = {key: rule.text(key) or "" for key in ("kind", "path", "command")}
                try:
                    found.append(Rule(effect, **named))
                except UsageError as error:
                    raise self.misplaced(rule.place, str(error)) from None
        return tuple(found)

    def _mcp(self, table: "_Table") -> tuple[McpServer, ...]:
        given = table.given("mcpServers")
        keys = frozenset({"name", "type", "command", "args", "env", "url", "headers"})
        if isinstance(given, dict):
            inner = table.table("mcpServers", None)
            return tuple(self._mcp_server(name, inner.table(name, keys)) for name in given)
        return tuple(self._mcp_server(one.text("name"), one) for one in table.tables("mcpServers", keys))

    def _mcp_server(self, name: str | None, table: "_Table") -> McpServer:
        if not name:
            raise self.misplaced(table.place, "an MCP server needs a name")
        url, command = table.text("url"), table.text("command")
        if bool(url) == bool(command):
            raise self.misplaced(table.place, "an MCP server has a command, or a url")
        if command:
            env = [EnvVariable(key, value) for key, value in (table.env("env") or {}).items()]
            return McpStdio(name, command, list(table.texts("args") or ()), env)
        headers = [HttpHeader(key, value) for key, value in (table.env("headers") or {}).items()]
        kind = table.choice("type", ("http", "sse")) or "http"
        return (McpSse if kind == "sse" else McpHttp)(name, url or "", headers)

    def misplaced(self, place: Place, message: str) -> Misplaced:
        return Misplaced(self._located.line(place), message)


class _Table:
    """An object of the file, whose values are what they must be."""

    def __init__(self, reader: _Reader, place: Place, value: object, keys: frozenset[str] | None) -> None:
        self.place = place
        self._reader = reader
        if not isinstance(value, dict):
            raise reader.misplaced(place, f"{_name(place)} must be an object, not {_kind(value)}")
        self._value: dict[str, object] = value
        for key in value:
            if keys is not None and key not in keys:
                near = _near(key, keys)
                hint = f"; did you mean {near}?" if near else ""
                raise reader.misplaced((*place, key), f"unknown key {key!r}{hint}")

    @property
    def line(self) -> int:
        """Where it begins."""
        return self._reader.misplaced(self.place, "").line

    def given(self, key: str) -> object:
        return self._value.get(key)

    def wrong(self, key: str, message: str) -> Misplaced:
        return self._reader.misplaced((*self.place, key), message)

    def text(self, key: str) -> str | None:
        return cast(str | None, self._typed(key, "text", lambda value: isinstance(value, str)))

    def flag(self, key: str) -> bool | None:
        return cast(bool | None, self._typed(key, "true or false", lambda value: isinstance(value, bool)))

    def number(self, key: str, most: int, least: int = 1) -> int | None:
        """A whole number within bounds."""
        number = cast(int | None, self._typed(key, "a whole number", lambda value: type(value) is int))
        if number is not None and not least <= number <= most:
            raise self.wrong(key, f"{key} must be from {least} to {most}")
        return number

    def choice(self, key: str, choices: tuple[str, ...]) -> str | None:
        text = self.text(key)
        if text is not None and text not in choices:
            raise self.wrong(key, f"{key} is one of {', '.join(choices)}, not {text!r}")
        return text

    def texts(self, key: str) -> tuple[str, ...] | None:
        found = self._typed(key, "a list of texts", _is_texts)
        return None if found is None else tuple(cast(list[str], found))

    def map(self, key: str) -> dict[str, object] | None:
        return cast(dict[str, object] | None, self._typed(key, "an object", lambda value: isinstance(value, dict)))

    def env(self, key: str) -> dict[str, str] | None:
        """A map of texts, or a list of `{name, value}`."""
        value = self._value.get(key)
        if isinstance(value, list):
            pairs = [(one.text("name"), one.text("value")) for one in self.tables(key, frozenset({"name", "value"}))]
            if not all(name and text is not None for name, text in pairs):
                raise self.wrong(key, f"each entry of {key} has a name and a value")
            return {cast(str, name): cast(str, text) for name, text in pairs}
        found = self.map(key)
        for name, text in (found or {}).items():
            if not isinstance(text, str):
                raise self._reader.misplaced((*self.place, key, name), f"{key}.{name} must be text, not {_kind(text)}")
        return cast(dict[str, str] | None, found)

    def table(self, key: str, keys: frozenset[str] | None) -> "_Table":
        return _Table(self._reader, (*self.place, key), self._value.get(key), keys)

    def tables(self, key: str, keys: frozenset[str]) -> "list[_Table]":
        """A list of objects."""
        found = self._typed(key, "a list", lambda value: isinstance(value, list))
        rows = cast(list[object], found or [])
        return [_Table(self._reader, (*self.place, key, at), value, keys) for at, value in enumerate(rows)]

    def _typed(self, key: str, wanted: str, fits: Callable[[object], bool]) -> object:
        value = self._value.get(key)
        if value is not None and not fits(value):
            raise self.wrong(key, f"{key} must be {wanted}, not {_kind(value)}")
        if value is None and key in self._value:
            raise self.wrong(key, f"{key} must be {wanted}, not null; leave it out instead")
        return value


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "nothing")


def _name(place: Place) -> str:
    return ".".join(map(str, place)) or "the file"


def _near(key: str, keys: frozenset[str]) -> str:
    from difflib import get_close_matches

    return next(iter(get_close_matches(key, keys, n=1)), "")
