"""`[providers.NAME]` of the user's config.toml: its keys, and their check, in sentences for the user.

Only the user's own file has such tables: no file of a project is read for them.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, cast

from dragoman.coder.models.descriptions import KEYS, NOTHING, ModelDescription, read_description
from dragoman.coder.models.known_providers import KINDS
from dragoman.coder.models.names import DEMO, OFFLINE, PROVIDER_NAME, SCRIPT
from dragoman.errors import echo_in_words

_TEXT_KEYS: Final = ("kind", "base_url", "api_key_env", "model", "api_version", "region", "project")
PROVIDER_KEYS: Final = (*_TEXT_KEYS, "headers", *KEYS, "models")

_MOST_HEADERS: Final = 32
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
# What belongs to the connection: another value would make an answer that cannot be read, or no request at all.
_OUR_HEADERS: Final = frozenset(
    {
        *("accept", "accept-encoding", "connection", "content-length", "content-type", "expect", "host"),
        *("keep-alive", "te", "trailer", "transfer-encoding", "upgrade"),
    }
)
# They become a part of a host's name or of a path.
_PLACE: Final = re.compile(r"[a-z0-9][a-z0-9.:-]{0,62}")
_API_VERSION: Final = re.compile(r"[A-Za-z0-9.-]{1,40}")
_PATTERNS: Final = {"region": _PLACE, "project": _PLACE, "api_version": _API_VERSION}


class ModelUnavailable(Exception):
    """The model cannot be used as things are; the text says what to do. `needs_login`: a key is missing."""

    def __init__(self, reason: str, needs_login: bool = False) -> None:
        super().__init__(reason)
        self.needs_login = needs_login


class ProviderConfig(NamedTuple):
    """`[providers.NAME]` of the configuration."""

    base_url: str = ""
    # The environment variable that holds the key.
    api_key_env: str = ""
    # What this provider's name alone means.
    model: str = ""
    # What the user says of all its models, and of some by name.
    every_model: ModelDescription = NOTHING
    models: Mapping[str, ModelDescription] = MappingProxyType({})
    # How it is spoken to, one of `KINDS`; empty: as its name says, or by OpenAI's chat completions.
    kind: str = ""
    # Sent with every request; `$NAME` in a value is not filled in yet.
    headers: Mapping[str, str] = MappingProxyType({})
    # Of Azure; of Bedrock and Vertex; of Vertex.
    api_version: str = ""
    region: str = ""
    project: str = ""


def configured(config: Mapping[str, object]) -> list[str]:
    """Return the providers the configuration names."""
    tables = config.get("providers", {})
    if not isinstance(tables, Mapping):
        raise ModelUnavailable("The configuration's providers must be tables: [providers.NAME].")
    names = [str(name) for name in tables]
    for name in names:
        if PROVIDER_NAME.fullmatch(name) is None or name in (DEMO, OFFLINE, SCRIPT):
            raise ModelUnavailable(f"[providers.{name!r}] in the configuration cannot be the name of a provider.")
    return names


def provider_config(config: Mapping[str, object], provider: str) -> ProviderConfig:
    """Return a provider's table, checked."""
    if provider not in configured(config):
        return ProviderConfig()
    table = cast(Mapping[str, object], config["providers"])[provider]
    place = f"[providers.{provider}] in the configuration"
    if not isinstance(table, Mapping):
        raise ModelUnavailable(f"{place} must be a table.")
    for name in table:
        if name not in PROVIDER_KEYS:
            raise ModelUnavailable(f"{place}: unknown {name}; known are {', '.join(sorted(PROVIDER_KEYS))}.")
    every = _description({name: value for name, value in table.items() if name in KEYS}, place)
    return ProviderConfig(
        **_texts(table, place),
        every_model=every,
        models=_descriptions(table.get("models", {}), provider),
        headers=_headers(table.get("headers", {}), place),
    )


def _texts(table: Mapping[str, object], place: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name in _TEXT_KEYS:
        value = table.get(name, "")
        if not isinstance(value, str):
            raise ModelUnavailable(f"{place}: {name} has the wrong type.")
        if value and name in _PATTERNS and _PATTERNS[name].fullmatch(value) is None:
            raise ModelUnavailable(f"{place}: {echo_in_words(value)} cannot be the {name}.")
        texts[name] = value
    if texts["kind"] and texts["kind"] not in KINDS:
        raise ModelUnavailable(f"{place}: unknown kind {echo_in_words(texts['kind'])}; there are {', '.join(KINDS)}.")
    return texts


def _headers(table: object, place: str) -> dict[str, str]:
    """Return the headers with names in small letters. No text here has a value in it: it may be a key."""
    if not isinstance(table, Mapping):
        raise ModelUnavailable(f'{place}: headers must be a table such as {{ X-Team = "tools" }}.')
    if len(table) > _MOST_HEADERS:
        raise ModelUnavailable(f"{place}: there are {len(table)} headers, and {_MOST_HEADERS} at most can be sent.")
    headers: dict[str, str] = {}
    for name, value in table.items():
        if not isinstance(value, str) or _HEADER_NAME.fullmatch(name) is None:
            raise ModelUnavailable(f"{place}: the header {echo_in_words(str(name))} must be a name and a text.")
        if name.lower() in _OUR_HEADERS:
            raise ModelUnavailable(f"{place}: the header {name} belongs to the connection and cannot be set.")
        headers[name.lower()] = value
    return headers


def _descriptions(tables: object, provider: str) -> dict[str, ModelDescription]:
    """Return what the user says of some models of a provider, by their names."""
    if not isinstance(tables, Mapping):
        raise ModelUnavailable(f"models in [providers.{provider}] must be tables: [providers.{provider}.models.NAME].")
    return {
        str(name): _description(
            table, f'[providers.{provider}.models."{echo_in_words(str(name))}"] in the configuration'
        )
        for name, table in tables.items()
    }


def _description(table: object, place: str) -> ModelDescription:
    if not isinstance(table, Mapping):
        raise ModelUnavailable(f"{place} must be a table.")
    try:
        return read_description(table)
    except ValueError as error:
        raise ModelUnavailable(f"{place}: {error}.") from None
