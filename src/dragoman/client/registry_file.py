"""`acp.json`: where it is found, and what it says; errors name the line.

The file of the user's own folder counts as it is. A project's file is data until the user has trusted it.
"""

import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple, cast, get_args

from dragoman import limits
from dragoman.client.agent_entry import AgentEntry, NonInteractive, PolicyName, Processes
from dragoman.client.config_tables import ConfigTable, config_mistake, kind_of
from dragoman.client.known_agents import KNOWN
from dragoman.client.located_json import ConfigMistake, LocatedJson, parse
from dragoman.client.located_json import Path as Place
from dragoman.client.offered_capabilities import FORMS_ONLY, OfferedCapabilities
from dragoman.client.targets import SCHEMES
from dragoman.dialects.vendors.named import NAMES
from dragoman.errors import WorldError
from dragoman.host.regular_file import read_regular
from dragoman.host.trust import TrustFailed, TrustState, trust_state
from dragoman.permissions.rule import PATTERN_FIELDS, Effect, PermissionRule, RuleRefused
from dragoman.vocabulary.requests import EnvVariable, HttpHeader, McpHttp, McpServer, McpSse, McpStdio

NAME: Final = "acp.json"
# Which folders are trusted, beside the user's own file unless it is said to be elsewhere.
TRUST_NAME: Final = "trust.json"
# A project's file may stand beside its code, or out of the way.
_IN_PROJECT: Final = (NAME, ".dragoman/acp.json")
# The largest number of milliseconds (a day) and of restarts that a file may set.
_LONGEST_MS: Final = 24 * 60 * 60 * 1000
_MOST_RESTARTS: Final = 1000


class RegistryFileInvalid(WorldError):
    """A file that cannot be used; the text names the file, the line and the fix."""


class Terms(NamedTuple):
    """What a file says for all of its agents about permissions."""

    permission_policy: PolicyName = "prompt"
    non_interactive: NonInteractive = "reject_all"
    rules: tuple[PermissionRule, ...] = ()


class RegistryFile(NamedTuple):
    """What a file says."""

    entries: Mapping[str, AgentEntry]
    default: str = ""
    terms: Terms = Terms()
    # What is wrong with entries that are left out, by their names: a sentence with the file, the line and the field.
    # One of a list that has no name is called by its place: `servers[1]`.
    mistakes: Mapping[str, str] = {}
    # Why `default` is no agent; empty: it is one, or there is none.
    default_mistake: str = ""
    # What is perhaps not meant, and does no harm.
    remarks: tuple[str, ...] = ()


class RegistryFileFound(NamedTuple):
    """A file to read. The bytes are the ones that were trusted."""

    path: Path
    data: bytes
    # Of a project's file: how its folder is trusted. None: the user's own file.
    trust_state: TrustState | None = None


def find_files(home: Path, folder: Path | None, *, trust: Path | None = None) -> Iterator[RegistryFileFound]:
    """Yield the user's own file, then that of the nearest project folder, if it is trusted as it is.

    `trust` is the file that says what is trusted; None: `trust.json` in `home`.
    """
    own = home / NAME
    data = file_bytes(own)
    if data is not None:
        yield RegistryFileFound(own, data)
    project = None if folder is None else nearest(folder)
    if project is None or project == own:
        return
    found = _trusted(trust or home / TRUST_NAME, project)
    if isinstance(found, RegistryFileFound):
        yield found


def nearest(folder: Path) -> Path | None:
    """Return the file of the nearest folder, going up, that has one, trusted or not."""
    here = folder.absolute()
    for one in [here, *here.parents][: limits.PARENT_FOLDERS]:
        for name in _IN_PROJECT:
            if (one / name).is_file():
                return one / name
    return None


class Untrusted(NamedTuple):
    """A project's file that does not count, and why."""

    path: Path
    reason: str

    def __str__(self) -> str:
        folder = shlex.quote(str(project_folder(self.path)))
        return f"{self.path} is not used: {self.reason}. Look at it, then: dragoman trust {folder}"


def untrusted(home: Path, folder: Path, *, trust: Path | None = None) -> Untrusted | None:
    """Return the nearest project's file, if it is there and not used because the user does not trust it."""
    project = nearest(folder)
    if project is None or project == home / NAME:
        return None
    found = _trusted(trust or home / TRUST_NAME, project)
    return found if isinstance(found, Untrusted) else None


def changed_since(trust: Path, file: RegistryFileFound) -> str:
    """Return why a project's file, or a script that it starts, is not what was trusted any more; empty: it is."""
    now = _trusted(trust, file.path)
    if isinstance(now, Untrusted):
        return str(now)
    return "" if now.data == file.data else f"{file.path} has changed"


def project_folder(file: Path) -> Path:
    """Return the folder that a project's file, and trust, is about."""
    return file.parent.parent if file.parent.name == ".dragoman" else file.parent


def _trusted(trust: Path, project: Path) -> RegistryFileFound | Untrusted:
    """Return a trusted file, with the very bytes that trust was checked for."""
    folder = project_folder(project)
    name = project.relative_to(folder).as_posix()
    try:
        found = trust_state(trust, folder)
    except TrustFailed as error:
        return Untrusted(project, str(error))
    if found.files is None:
        return Untrusted(project, found.reason)
    # One that came after we looked for it is another file than the one that was looked for.
    data = found.files.get(name)
    return Untrusted(project, "it comes and goes") if data is None else RegistryFileFound(project, data, found)


def file_bytes(path: Path) -> bytes | None:
    """Return the bytes of a file; None if there is none."""
    try:
        data = read_regular(path, limits.CONFIG_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise RegistryFileInvalid(f"{path}: {(error.strerror or 'cannot be read').lower()}") from error
    if len(data) > limits.CONFIG_BYTES:
        raise RegistryFileInvalid(f"{path}: longer than {limits.CONFIG_BYTES} bytes")
    return data


def read_file(found: RegistryFileFound) -> RegistryFile:
    """Return what a file says. Raise `RegistryFileInvalid` also for a mistake in an entry, or in the default."""
    read = read_usable(found)
    for sentence in (*read.mistakes.values(), read.default_mistake):
        if sentence:
            raise RegistryFileInvalid(sentence)
    return read


def read_usable(found: RegistryFileFound) -> RegistryFile:
    """Return what a file says, without the entries that have a mistake; `RegistryFileInvalid` for any other mistake."""
    try:
        text = found.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RegistryFileInvalid(f"{found.path}: not UTF-8 text") from None
    try:
        located = parse(text)
    except ConfigMistake as error:
        raise RegistryFileInvalid(f"{found.path}, line {error.line}: {error}") from None
    reader = _Reader(located, found.path)
    try:
        return reader.read()
    except ConfigMistake as error:
        raise RegistryFileInvalid(reader.sentence(error)) from None


_TOP: Final = frozenset(
    {"$schema", "servers", "defaultServer", "defaultAgent", "mcpServers", "permissionPolicy", "nonInteractivePolicy"}
    | {"permissions"}
)
_ENTRY: Final = frozenset(
    {"name", "command", "args", "env", "cwd", "dialect", "startupTimeoutMs", "requestTimeoutMs", "timeoutMs"}
    | {"promptIdleTimeoutMs", "permissionPolicy", "nonInteractivePolicy", "permissions", "autoStart", "description"}
    | {"maxRecoverableRestarts", "process", "idleTimeoutMs", "defaultAgent", "mcpServers", "capabilities"}
    | {"url", "token", "tokenFile", "caFile"}
)
# What only an agent has that is started here, and only one that is not.
OF_COMMANDS: Final = ("command", "args", "env", "cwd")
OF_ADDRESSES: Final = ("token", "tokenFile", "caFile")
_LENT: Final = frozenset({"fs", "terminal", "elicitation"})
_FILES: Final = frozenset({"readTextFile", "writeTextFile"})
# What files for other clients note about an agent under capabilities; it changes nothing here.
_REMARKS: Final = frozenset({"chat", "web"})
_EFFECTS: Final[tuple[Effect, ...]] = ("allow", "ask", "reject")


class _ServerText(NamedTuple):
    """A server as it stands in the file; `mistake` is what is wrong with its name."""

    name: str
    place: Place
    value: object
    mistake: ConfigMistake | None = None


class _Reader:
    """Reads one file."""

    def __init__(self, located: LocatedJson, path: Path) -> None:
        self._located = located
        self._path = path

    def read(self) -> RegistryFile:
        top = ConfigTable(self._located, (), self._located.value, _TOP)
        policy, unasked = top.choice("permissionPolicy", get_args(PolicyName)), self._non_interactive(top)
        shared = {
            "permission_policy": policy,
            "non_interactive": unasked,
            "default_agent": top.text("defaultAgent"),
        }
        common = {name: value for name, value in shared.items() if value is not None}
        rules, servers = self._rules(top), self._mcp(top)
        repeated = self._repeated_in_servers()
        entries: dict[str, AgentEntry] = {}
        mistakes: dict[str, str] = {}
        for name, place, value, mistake in self._servers(top.given("servers")):
            try:
                if wrong := mistake or repeated.get(place):
                    raise wrong
                table = ConfigTable(self._located, place, value, _ENTRY)
                entries[name] = self._entry(name, table, common, rules, servers)
            except ConfigMistake as error:
                mistakes.setdefault(name, self.sentence(error))
        default = top.text("defaultServer") or ""
        default_mistake = ""
        if default and default not in {*entries, *mistakes, *KNOWN}:
            wrong_default = top.wrong("defaultServer", f"there is no server {default!r} in this file")
            default_mistake = self.sentence(wrong_default)
        remarks = [top.wrong("servers", "the list of servers is empty")] if top.given("servers") == [] else []
        return RegistryFile(
            {name: entry for name, entry in entries.items() if name not in mistakes},  # one of two of a name is there
            default,
            Terms(cast(PolicyName, policy or "prompt"), unasked or "reject_all", rules),
            mistakes,
            default_mistake,
            tuple(map(self.sentence, remarks)),
        )

    def _repeated_in_servers(self) -> dict[Place, ConfigMistake]:
        """Return the first key of each server that stands twice, or the server itself, by the place of the server.

        A key that stands twice elsewhere counts for all servers, so it is raised.
        """
        found: dict[Place, ConfigMistake] = {}
        for mistake in self._located.repeated:
            if len(mistake.place) < 2 or mistake.place[0] != "servers":
                raise mistake
            found.setdefault(mistake.place[:2], mistake)
        return found

    def sentence(self, error: ConfigMistake) -> str:
        """Return a mistake with the file, the line, and the place in it: the entry, and the field."""
        place = self._located.name(error.place)
        return f"{self._path}, line {error.line}: {error}" + (f" ({place})" if place else "")

    def _servers(self, servers: object) -> Iterator[_ServerText]:
        """Yield the servers of a map, or of a list of objects with a `name`."""
        place: Place = ("servers",)
        if isinstance(servers, dict):
            for name, value in servers.items():
                at: Place = (*place, name)
                yield _ServerText(name, at, value, self._wrong_name(name, at, "a server needs a name"))
        elif isinstance(servers, list):
            seen: set[str] = set()
            for number, value in enumerate(servers):
                at = (*place, number)
                given = value.get("name") if isinstance(value, dict) else None
                name = given if isinstance(given, str) else ""
                mistake = self._wrong_name(name, at, "a server in a list needs a name")
                if mistake is None and name in seen:
                    mistake = config_mistake(self._located, (*at, "name"), f"the name {name!r} is taken")
                seen.add(name)
                yield _ServerText(name if name.strip() else f"servers[{number}]", at, value, mistake)
        elif servers is not None:
            raise config_mistake(self._located, place, f"servers must be an object or a list, not {kind_of(servers)}")

    def _wrong_name(self, name: str, place: Place, missing: str) -> ConfigMistake | None:
        if not name.strip():
            return config_mistake(self._located, place, missing)
        if not name.isprintable():
            return config_mistake(self._located, place, "the name of a server must have only visible characters")
        return None

    def _entry(
        self,
        name: str,
        table: ConfigTable,
        common: Mapping[str, object],
        rules: tuple[PermissionRule, ...],
        servers: tuple[McpServer, ...],
    ) -> AgentEntry:
        base = self._base(name, table)
        given: dict[str, object] = {
            "args": table.texts("args"),
            "env": table.env("env"),
            "cwd": self._folder(table.text("cwd")),
            "dialect": table.choice("dialect", NAMES),
            "startup_ms": table.number("startupTimeoutMs", _LONGEST_MS),
            "request_ms": self._request_ms(table),
            "prompt_idle_ms": table.number("promptIdleTimeoutMs", _LONGEST_MS),
            "permission_policy": table.choice("permissionPolicy", get_args(PolicyName)),
            "non_interactive": self._non_interactive(table),
            "auto_start": table.flag("autoStart"),
            "max_recoverable_restarts": table.number("maxRecoverableRestarts", _MOST_RESTARTS, least=0),
            "process": table.choice("process", get_args(Processes)),
            "idle_ms": table.number("idleTimeoutMs", _LONGEST_MS, least=0),
            "description": table.text("description"),
            "default_agent": table.text("defaultAgent"),
            "offered": self._offered(table, base.offered),
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

    def _base(self, name: str, table: ConfigTable) -> AgentEntry:
        """Return an entry before its other keys are read: a command, an address, or a known agent."""
        known, command, url = KNOWN.get(name), table.text("command"), table.text("url")
        for key in OF_COMMANDS if url else OF_ADDRESSES:
            if table.given(key) is not None:
                raise table.wrong(key, f"{key} is for an agent {'that is started here' if url else 'with a url'}")
        if url:
            return self._at_address(name, url, table)
        if not command and known is None:
            raise table.wrong("command", "a server needs a command, or a url")
        if known is not None and not command:
            return known
        if known is not None and command == known.command:
            return replace(known, args=(), description="", auto_start=True)
        return AgentEntry(name, command or "")

    def _at_address(self, name: str, url: str, table: ConfigTable) -> AgentEntry:
        token, file = table.text("token") or "", self._folder(table.text("tokenFile")) or ""
        if not url.lower().startswith(tuple(f"{scheme}://" for scheme in SCHEMES)) and not url.startswith("$"):
            raise table.wrong("url", f"url begins with https://, http://, wss:// or ws://, not {url!r}")
        if token and file:
            raise table.wrong("tokenFile", "token or tokenFile, not both")
        authorities = self._folder(table.text("caFile")) or ""
        return AgentEntry(name, "", url=url, token=token, token_file=file, ca_file=authorities, offered=FORMS_ONLY)

    def _offered(self, table: ConfigTable, before: OfferedCapabilities) -> OfferedCapabilities:
        """Return what is offered to the agent; what the file does not name stays as it was."""
        if table.given("capabilities") is None:
            return before
        inner = table.table("capabilities", _LENT | _REMARKS)
        if isinstance(inner.given("fs"), dict):
            files = inner.table("fs", _FILES)
            read, write = files.flag("readTextFile"), files.flag("writeTextFile")
        else:
            read = write = inner.flag("fs")
        found = {"read": read, "write": write} | {key: inner.flag(key) for key in ("terminal", "elicitation")}
        return replace(before, **{key: value for key, value in found.items() if value is not None})

    def _folder(self, cwd: str | None) -> str | None:
        """Relative to where the file stands, unless a variable may yet make it absolute."""
        if not cwd or cwd.startswith("$"):
            return cwd
        return os.path.join(project_folder(self._path), os.path.expanduser(cwd))

    def _request_ms(self, table: ConfigTable) -> int | None:
        ours = table.number("requestTimeoutMs", _LONGEST_MS)
        alias = table.number("timeoutMs", _LONGEST_MS)
        if ours is not None and alias is not None and ours != alias:
            raise table.wrong("timeoutMs", "timeoutMs is another name of requestTimeoutMs; leave one of them out")
        return ours if ours is not None else alias

    def _non_interactive(self, table: ConfigTable) -> NonInteractive | None:
        if table.given("nonInteractivePolicy") is None:
            return None
        inner = table.table("nonInteractivePolicy", frozenset({"mode"}))
        mode = inner.choice("mode", get_args(NonInteractive))
        if mode is None:
            raise inner.wrong("mode", "mode is reject_all or accept_all")
        return cast(NonInteractive, mode)

    def _rules(self, table: ConfigTable) -> tuple[PermissionRule, ...]:
        if table.given("permissions") is None:
            return ()
        inner = table.table("permissions", frozenset(_EFFECTS))
        found: list[PermissionRule] = []
        for effect in _EFFECTS:
            for rule in inner.tables(effect, frozenset(PATTERN_FIELDS)):
                named: dict[str, Any] = {key: text for key in PATTERN_FIELDS if (text := rule.text(key)) is not None}
                for key, text in named.items():
                    if not text.strip():
                        raise rule.wrong(key, f"{key} is empty; leave it out instead")
                if named.get("path", "").startswith("~/"):
                    named["path"] = os.path.expanduser(named["path"])
                try:
                    found.append(PermissionRule(effect, **named))
                except RuleRefused as error:
                    place = (*rule.place, error.field) if error.field else rule.place
                    raise config_mistake(self._located, place, str(error)) from None
        return tuple(found)

    def _mcp(self, table: ConfigTable) -> tuple[McpServer, ...]:
        given = table.given("mcpServers")
        keys = frozenset({"name", "type", "command", "args", "env", "url", "headers"})
        if isinstance(given, dict):
            inner = table.table("mcpServers", None)
            return tuple(self._mcp_server(name, inner.table(name, keys)) for name in given)
        return tuple(self._mcp_server(one.text("name"), one) for one in table.tables("mcpServers", keys))

    def _mcp_server(self, name: str | None, table: ConfigTable) -> McpServer:
        if not name:
            raise config_mistake(self._located, table.place, "an MCP server needs a name")
        url, command = table.text("url"), table.text("command")
        if bool(url) == bool(command):
            raise config_mistake(self._located, table.place, "an MCP server has a command, or a url")
        if command:
            env = [EnvVariable(key, value) for key, value in (table.env("env") or {}).items()]
            return McpStdio(name, command, list(table.texts("args") or ()), env)
        headers = [HttpHeader(key, value) for key, value in (table.env("headers") or {}).items()]
        kind = table.choice("type", ("http", "sse")) or "http"
        return (McpSse if kind == "sse" else McpHttp)(name, url or "", headers)
