"""What a project's configuration would start, reach and be given, for the person who has to decide about it.

The text is made from the values that will be used, field by field: a field without words of its own is shown by its
name, so that none can be forgotten. Only values that are secrets by their name are hidden; what is filled in from the
user's environment is named.
"""

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import msgspec

from dragoman.cli.project_servers import NAME as SERVERS_FILE
from dragoman.cli.project_servers import document_of, tables_of
from dragoman.cli.project_servers import part_of as server_part
from dragoman.client.agent_entry import AgentEntry
from dragoman.client.known_agents import KNOWN
from dragoman.client.project_entry import LimitedEntry, part_of, project_entries
from dragoman.client.registry_file import RegistryFile, RegistryFileFound, RegistryFileInvalid, find_files, read_usable
from dragoman.coder.hook_files import hook_launch, parse_hooks
from dragoman.coder.mcp.config import HIDDEN, name_of, read_servers, texts_of
from dragoman.errors import UsageError
from dragoman.host.environment import is_kept_unseen, is_secret, without_keys
from dragoman.host.launch_names import Launch, runs_more
from dragoman.host.scripts import named_files, shown_name
from dragoman.host.trust import TrustState
from dragoman.host.trusted_parts import HOOK_FILES, read_part
from dragoman.host.variables import hide_words, secret_variables, variables_in
from dragoman.vocabulary.requests import McpHttp, McpServer, McpSse, McpStdio

# Label and text.
Row = tuple[str, str]
_NAME: Final = re.compile(r"[\w.@/+-]{1,64}")
_NAME_CHARACTERS: Final = 64
# Headers that carry a login, beside those that are called like a secret.
_LOGIN_HEADERS: Final = frozenset({"AUTHORIZATION", "PROXY_AUTHORIZATION", "COOKIE"})


class ConfigPart(NamedTuple):
    """An agent or a server of a configuration: what it is called, what it would do, what it would be given."""

    title: str
    rows: Sequence[Row]
    # How trust names it, and the secrets of the user that it wants.
    part: str = ""
    secrets: Sequence[str] = ()
    # Where it would send them; empty: it is a program of this machine.
    url: str = ""
    launches: Sequence[Launch] = ()

    def question(self, secret: str) -> str:
        """Return the question about one of its secrets."""
        return f"Let {self.title} {f'send {secret} to {self.url}' if self.url else f'have {secret}'}?"


def parts_of(folder: Path, files: Mapping[str, bytes], home: Path, environment: Mapping[str, str]) -> list[ConfigPart]:
    """Return every agent and server of every file, and what is wrong with files that are not used."""
    found: list[ConfigPart] = []
    for name, data in files.items():
        if name.endswith("acp.json"):
            found += _agents(folder, folder / name, data, home, environment, used=name == _first_registry_file(files))
        elif name == SERVERS_FILE:
            found += _servers(folder, name, data, environment)
        elif name in HOOK_FILES:
            found += _hooks(folder, name, data, environment)
        elif name.endswith(".md"):
            found.append(_markdown(name, data))
        else:
            found.append(ConfigPart(name, [("not used", f"servers are read from {SERVERS_FILE}")]))
    return found


def all_launches(parts: Sequence[ConfigPart]) -> list[Launch]:
    """Return every program that the parts start."""
    return [launch for part in parts for launch in part.launches]


# -- agents ----------------------------------------------------------------------------------------------------------


def _first_registry_file(files: Mapping[str, bytes]) -> str:
    return next(name for name in files if name.endswith("acp.json"))


def _agents(
    folder: Path, file: Path, data: bytes, home: Path, environment: Mapping[str, str], *, used: bool
) -> Iterator[ConfigPart]:
    name = str(file.relative_to(folder))
    try:
        read = read_usable(RegistryFileFound(file, data))
        own = _own(home)
    except RegistryFileInvalid as error:
        yield ConfigPart(name, [("not used", str(error))])
        return
    if not used:
        yield ConfigPart(name, [("not used", "acp.json stands beside it")])
        return
    if read.default:
        yield ConfigPart(name, [("default", f"the agent {read.default}")])
    for mistake in read.mistakes.values():  # the others of the file are used
        yield ConfigPart(name, [("not used", mistake)])
    if not read.entries:
        yield ConfigPart(name, [("starts", "nothing")])
    limits = project_entries(file, read, {**KNOWN, **own.entries}, own.terms, TrustState({}))
    for entry_name, limit in limits.items():
        yield _agent(folder, file, limit, own.entries.get(entry_name) or KNOWN.get(entry_name), environment)


def _own(home: Path) -> RegistryFile:
    """Return the user's own file."""
    return next((read_usable(file) for file in find_files(home, None)), RegistryFile({}))


def _agent(
    folder: Path, file: Path, limit: LimitedEntry, replaced: AgentEntry | None, environment: Mapping[str, str]
) -> ConfigPart:
    entry = limit.entry
    rows = list(agent_rows(entry))
    if replaced is not None:
        rows.append(("replaces", "a built-in agent" if replaced.built_in else "an agent of your own"))
    rows += [("ignored", f"{one}: a project can forbid, not allow") for one in limit.ignored]
    launches = [_server_launch(server) for server in entry.mcp_servers if isinstance(server, McpStdio)]
    if not entry.url and entry.project:
        launches.insert(0, entry.launch())
    rows += _filled_in(entry.texts(), environment)
    rows += _files(folder, launches, environment)
    secrets = entry.secrets_wanted(environment)
    rows += _wanted(secrets)
    url = described_url(entry.url) if entry.url else ""
    return ConfigPart(f"agent {shown_name_of(entry.name)}", rows, part_of(file, entry.name), secrets, url, launches)


def agent_rows(entry: AgentEntry) -> Iterator[Row]:
    """Describe an agent field by field; a field that is as it is for every agent is left out."""
    for field in fields(AgentEntry):
        value = getattr(entry, field.name)
        match field.name:
            case "name" | "args" | "source" | "install" | "built_in" | "project" | "allowed_secrets":
                pass  # the title; beside the command; what we add about it ourselves
            case "command":
                if value:
                    yield "starts", shlex.join(entry.command_line())
            case "url":
                if value:
                    yield "reaches", described_url(value)
            case "cwd":
                if value:
                    yield "in", value
            case "env":
                yield from (("env", f"{name}={shown_value(name, text)}") for name, text in value.items())
            case "token":
                if value:
                    yield "token", hide_words(value, HIDDEN) if variables_in(value) else HIDDEN
            case "token_file":
                if value:
                    yield "token file", value
            case "ca_file":
                if value:
                    yield "believes the authorities in", value
            case "key_variables":
                if value:
                    yield "is given", f"{', '.join(value)} of your environment, where set"
            case "rules":
                yield from (("rule", str(rule).removeprefix("the rule ")) for rule in value)
            case "offered":
                lent = [name for name, on in zip(_LENT, (value.read, value.write, value.terminal), strict=True) if on]
                forms = ["forms to fill in"] if value.elicitation else []
                yield "is lent", ", ".join([*lent, *forms]) or "nothing"
            case "permission_policy":
                yield "questions", {"prompt": "you are asked"}.get(value, value)
            case "mcp_servers":
                for server in value:
                    yield "MCP server", shown_name_of(name_of(server))
                    yield from ((f"  {label}", text) for label, text in server_rows(server))
            case _:
                if value != _default(field):
                    yield _label(field.name), str(value)


_LENT: Final = ("reading files", "writing files", "terminals")


def _default(field: "Field[Any]") -> object:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _label(name: str) -> str:
    return name.replace("_ms", " in ms").replace("_", " ")


# -- servers ---------------------------------------------------------------------------------------------------------


def _servers(folder: Path, file: str, data: bytes, environment: Mapping[str, str]) -> Iterator[ConfigPart]:
    try:
        servers = read_servers(tables_of(data))
        others = [key for key in document_of(data) if key != "mcpServers"]
    except UsageError as error:
        yield ConfigPart(file, [("not used", str(error))])
        return
    if others:
        yield ConfigPart(file, [("not read", f"the keys {', '.join(others)}")])
    if not servers:
        yield ConfigPart(file, [("starts", "nothing")])
    for server in servers:
        launches = [_server_launch(server)] if isinstance(server, McpStdio) else []
        secrets = secret_variables(texts_of(server), environment)
        rows = [*server_rows(server), *_filled_in(texts_of(server), environment)]
        rows += [*_files(folder, launches, environment), *_wanted(secrets)]
        name = name_of(server)
        url = described_url(server.url if isinstance(server, McpHttp | McpSse) else "")
        yield ConfigPart(f"MCP server {shown_name_of(name)}", rows, server_part(name), secrets, url, launches)


def server_rows(server: McpServer) -> Iterator[Row]:
    """Describe a server field by field."""
    for field in msgspec.structs.fields(server):
        value = getattr(server, field.name)
        match field.name:
            case "name" | "args":
                pass  # the title; beside the command
            case "command":
                yield "starts", shlex.join([value, *(getattr(server, "args", ()) or ())])
            case "url":
                yield "reaches", described_url(value)
            case "env":
                yield from (("env", f"{one.name}={shown_value(one.name, one.value)}") for one in value or ())
            case "headers":
                yield from (("header", f"{one.name}: {shown_header(one.name, one.value)}") for one in value or ())
            case _:
                if value is not msgspec.UNSET:
                    yield field.encode_name, str(value)


def _server_launch(server: McpStdio) -> Launch:
    return Launch(server.command, server.args or (), {one.name: one.value for one in server.env or ()})


# -- hooks, commands, skills, kinds of helpers -------------------------------------------------------------------------


def _hooks(folder: Path, name: str, data: bytes, environment: Mapping[str, str]) -> Iterator[ConfigPart]:
    found = parse_hooks(data, name, "project", str(folder))
    if found.mistakes:
        yield ConfigPart(name, [("not used", mistake.removeprefix(f"{name}: ")) for mistake in found.mistakes])
    for hook in found.hooks:
        launches = [hook_launch(hook)]
        rows = [("runs", hook.line()), ("for", f"{hook.seconds:g} s at most, as you, confined by nothing")]
        rows += [("if", hook.condition)] if hook.condition else []
        rows += _files(folder, launches, environment)
        about = f" {hook.matcher}" if hook.matcher not in ("", "*") else ""
        yield ConfigPart(f"hook at {hook.event}{about} ({name})", rows, launches=launches)


def _markdown(name: str, data: bytes) -> ConfigPart:
    commands, model = read_part(data)
    rows = [("runs", f"{line}, when it is used, judged as a command of the model") for line in commands]
    return ConfigPart(name, [*rows, *([("model", model)] if model else [])])


# -- values ----------------------------------------------------------------------------------------------------------


def shown_name_of(name: str) -> str:
    """Write a name so that it cannot be taken for a part of the sentence it stands in."""
    return name if _NAME.fullmatch(name) else shlex.quote(name if len(name) <= _NAME_CHARACTERS else f"{name[:60]}…")


def shown_value(name: str, value: str) -> str:
    """Write a value as it is in the file, without the keys in it; of a secret nothing but the variables in it."""
    if not is_kept_unseen(name, value):
        value = without_keys(value, HIDDEN)
        return shlex.quote(value) if not variables_in(value) else value
    return hide_words(value, HIDDEN) if variables_in(value) else HIDDEN


def shown_header(name: str, value: str) -> str:
    """Write the value of a header, which is not quoted; of a secret nothing but the variables in it."""
    spelled = name.upper().replace("-", "_")
    if spelled not in _LOGIN_HEADERS and not is_secret(spelled, value):
        return value
    return hide_words(value, HIDDEN) if variables_in(value) else HIDDEN


def described_url(url: str) -> str:
    """Write an address with all of its parts; user, password and values named like a secret are hidden."""
    try:
        parts = urlsplit(url)
        user, _, host = parts.netloc.rpartition("@")
    except ValueError:
        return url
    if user and not variables_in(user):
        host = f"{HIDDEN}@{host}"
    elif user:
        host = parts.netloc
    query = "&".join(map(_shown_parameter, parts.query.split("&")))
    return urlunsplit((parts.scheme, host, parts.path, query, parts.fragment))


def _shown_parameter(text: str) -> str:
    name, equals, value = text.partition("=")
    if variables_in(value) or not is_secret(name.replace("-", "_"), value):
        return text
    return f"{name}{equals}{HIDDEN}"


def _filled_in(texts: Sequence[str], environment: Mapping[str, str]) -> Iterator[Row]:
    """Yield the variables that come from the user's environment, with their values where they are no secrets."""
    secrets = secret_variables(texts, environment)
    for name in dict.fromkeys(name for text in texts for name in variables_in(text)):
        if name in secrets:
            yield "filled in", f"{name}, a secret"
        else:
            yield "filled in", f"{name}={shlex.quote(environment[name])}" if name in environment else f"{name}, not set"


def _files(folder: Path, launches: Sequence[Launch], environment: Mapping[str, str]) -> Iterator[Row]:
    """Yield the files of the folder that are started, which are trusted as they are now."""
    real = os.path.realpath(folder)
    for name, state in named_files(real, launches, environment).items():
        if state:
            where = f", which {state}" if state.startswith("leads to") else ""
            yield "file", f"{shown_name(real, name)}{where}"
    if any(runs_more(real, launch, environment) for launch in launches):
        yield "and", "may run other files of this folder, which are not checked"


def _wanted(secrets: Sequence[str]) -> Iterator[Row]:
    for secret in secrets:
        yield "needs a yes", f"of its own for {secret}"
