"""Which server to start or to reach: read from `[mcp.NAME]` tables, described for people, and what is secret in it."""

import shlex
from collections.abc import Mapping
from typing import Final, assert_never
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec.structs import replace

from dragoman.errors import UsageError
from dragoman.host.environment import is_secret
from dragoman.host.text import harmless
from dragoman.host.variables import VariableMissing, fill, is_passable
from dragoman.vocabulary.requests import (
    EnvVariable,
    HttpHeader,
    McpAcp,
    McpHttp,
    McpServer,
    McpSse,
    McpStdio,
    UnknownMcp,
)

Config = McpServer
HIDDEN: Final = "[hidden]"
# Shorter values are words like `true` and `8080`, which stand in every other line.
_SECRET_CHARACTERS: Final = 6
_KEYS: Final = {
    "stdio": frozenset({"type", "command", "args", "env"}),
    "http": frozenset({"type", "url", "headers"}),
    "sse": frozenset({"type", "url", "headers"}),
}


def from_config(tables: Mapping[str, object], environment: Mapping[str, str]) -> list[Config]:
    """Return the servers of `config.toml`: `tables` is its `mcp` table. `UsageError` names the key that is wrong.

    `$NAME` and `${NAME}` in the values of `env` and `headers` are taken from `environment`; `$$` is a dollar. Commands
    and URLs are taken as they are: what stands there is shown, and a secret would be too.
    """
    return [fill_variables(config, environment) for config in read_servers(tables)]


def read_servers(tables: Mapping[str, object]) -> list[Config]:
    """Return the servers as they are written, variables and all. `UsageError` names the key that is wrong."""
    return [_server(name, table) for name, table in tables.items()]


def fill_variables(config: Config, environment: Mapping[str, str]) -> Config:
    """Return a server with the values of its variables; `UsageError` names one that is not set."""
    match config:
        case McpStdio():
            env = [replace(one, value=_filled(config, "env", one, environment)) for one in config.env or ()]
            return replace(config, env=env)
        case McpHttp() | McpSse():
            headers = [replace(one, value=_filled(config, "headers", one, environment)) for one in config.headers or ()]
            return replace(config, headers=headers)
    return config


def texts_of(config: Config) -> list[str]:
    """Return the texts of a server as it is written in which variables are filled in."""
    match config:
        case McpStdio():
            return [one.value for one in config.env or ()]
        case McpHttp() | McpSse():
            return [one.value for one in config.headers or ()]
    return []


def describe(config: Config) -> str:
    """Return all of what would be started or reached, for a person who has to decide. Only secrets are left out."""
    match config:
        case McpStdio():
            variables = [f"{one.name}={_shown(one)}" for one in config.env or ()]
            return harmless(" ".join([*variables, shlex.join([config.command, *(config.args or ())])]))
        case McpHttp() | McpSse():
            return harmless(shown_url(config.url))
        case McpAcp():
            return "a server behind the client"
        case UnknownMcp():
            return f"a server of the unknown type {harmless(config.kind)}"
    assert_never(config)


def name_of(config: Config) -> str:
    """Return the name of a thing, whatever its type."""
    return str(config.fields.get("name", config.kind)) if isinstance(config, UnknownMcp) else config.name


def identity(config: Config) -> list[str]:
    """Return what makes it this server: another program or address under the same name is another server."""
    match config:
        case McpStdio():
            return ["stdio", config.name, config.command, *(config.args or ())]
        case McpHttp() | McpSse():
            return ["http", config.name, shown_url(config.url)]
    return [describe(config)]


def how_to_log_in(config: Config) -> str:
    """Return what to run to log in at a server: by its name, and so for one of the user's own; else by its address."""
    match config:
        case McpHttp() | McpSse():
            return f"run `dragoman mcp login {shlex.quote(harmless(shown_url(config.url)))}`"
    return "it cannot be logged in to"


def shown_url(url: str) -> str:
    """Return the URL without user, password and query: all three carry keys."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.scheme}://{host}{parts.path}" + ("?…" if parts.query else "")


def secrets_of(config: Config) -> list[str]:
    """Return the values that must not be printed, longest first: so `hide` leaves no part of one."""
    found: set[str] = set()
    match config:
        case McpStdio():
            found.update(one.value for one in config.env or ())
        case McpHttp() | McpSse():
            for header in config.headers or ():
                found.update([header.value, *header.value.split()])
            found.update(_secrets_in(config.url))
    return sorted((one for one in found if len(one) >= _SECRET_CHARACTERS), key=len, reverse=True)


def hide(text: str, secrets: list[str]) -> str:
    """Return the text without the secrets."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text


def _secrets_in(url: str) -> list[str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return [url]
    user = parts.netloc.rpartition("@")[0]
    found = [user, *user.split(":", 1), parts.query, *(value for _, value in parse_qsl(parts.query))]
    return [*found, *map(unquote, found)]


def _shown(variable: EnvVariable) -> str:
    return HIDDEN if is_secret(variable.name, variable.value) else shlex.quote(variable.value)


def _server(name: str, table: object) -> Config:
    if not isinstance(table, Mapping):
        raise UsageError(f"mcp.{name} has to be a table, with `command` or `url`.")
    for key, value in table.items():
        if not is_passable([name, key]) or not is_passable(value):
            raise UsageError(f"mcp.{name}.{key} has a NUL or half a character in it, which no program can be given.")
    kind = table.get("type", "http" if "url" in table else "stdio")
    if not isinstance(kind, str) or kind not in _KEYS:
        raise UsageError(f"mcp.{name}.type has to be stdio, http or sse.")
    for key in table:
        if key not in _KEYS[kind]:
            known = ", ".join(sorted(_KEYS[kind]))
            raise UsageError(f"mcp.{name}.{key} is not known; a server of type {kind} has {known}.")
    if kind == "stdio":
        variables = _texts(f"mcp.{name}.env", table.get("env", {}))
        env = [EnvVariable(key, value) for key, value in variables.items()]
        return McpStdio(name, _text(f"mcp.{name}.command", table), _arguments(f"mcp.{name}.args", table), env)
    url = _text(f"mcp.{name}.url", table)
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"mcp.{name}.url has to begin with http:// or https://.")
    values = _texts(f"mcp.{name}.headers", table.get("headers", {}))
    headers = [HttpHeader(key, value) for key, value in values.items()]
    return McpSse(name, url, headers) if kind == "sse" else McpHttp(name, url, headers)


def _text(where: str, table: Mapping[str, object]) -> str:
    value = table.get(where.rpartition(".")[2])
    if not isinstance(value, str) or not value:
        raise UsageError(f"{where} has to be a text.")
    return value


def _arguments(where: str, table: Mapping[str, object]) -> list[str]:
    value = table.get("args", [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise UsageError(f"{where} has to be a list of texts.")
    return list(value)


def _texts(where: str, value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise UsageError(f"{where} has to be a table of texts.")
    for key, one in value.items():
        if not isinstance(one, str):
            raise UsageError(f"{where}.{key} has to be a text.")
    return {str(key): one for key, one in value.items()}


def _filled(
    config: McpStdio | McpHttp | McpSse, key: str, one: EnvVariable | HttpHeader, environment: Mapping[str, str]
) -> str:
    try:
        return fill(one.value, environment)
    except VariableMissing as error:
        where = f"mcp.{config.name}.{key}.{one.name}"
        raise UsageError(f"{where} needs the environment variable {error.name}, which is not set.") from None
