"""The variables that hold keys, as the user's configuration names them: no child process gets to see them.

`[providers.X] api_key_env = "NAME"` of `config.toml`; `$NAME` in the headers of a provider there, or of an MCP server,
there or in `acp.json`; `$NAME` as the token of an agent in `acp.json`.

A program that is to have one of them is given it by name: in the `env` of a server or of an agent. A project's own
files do not count here: they are data until they are trusted.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dragoman import limits
from dragoman.cli.home import own_path
from dragoman.cli.settings import Settings, read_settings
from dragoman.host.environment import keep_back
from dragoman.host.variables import variables_in

# A header may say who the user is; that is no secret, and every program expects to find it.
_EVERYDAY: Final = frozenset({"HOME", "HOSTNAME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "USER"})


def keep_keys_back(settings: Settings) -> None:
    """Take the configured keys out of the environment of every child from now on."""
    keep_back(key_variables(settings))


def hide_keys() -> None:
    """Keep the keys of the user's own settings back, and blank all keys in what /proc shows of this process.

    Raises `SettingsError`: where the settings cannot be read, it is not known what must be kept back.
    """
    from dragoman.host.process_privacy import blank_secrets

    try:
        keep_keys_back(read_settings())
    finally:
        blank_secrets()


def key_variables(settings: Settings) -> set[str]:
    """Return the names of the variables that the configuration says are keys or tokens."""
    providers, servers = settings.tables["providers"], settings.tables["mcp"]
    named = {str(table["api_key_env"]) for table in providers.values() if table.get("api_key_env")}
    secrets = [text for table in (*servers.values(), *providers.values()) for text in _secret_texts(table)]
    secrets += list(_secret_texts(_agents_file()))
    named.update(name for text in secrets for name in variables_in(text))
    return named - _EVERYDAY


def _agents_file() -> Any:
    """Return the user's `acp.json`, as far as it can be read: commands that use it report its mistakes."""
    from dragoman.host.regular_file import read_regular

    try:
        data = read_regular(own_path("acp.json"), limits.CONFIG_BYTES)
    except OSError:
        return None
    import msgspec

    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        # What cannot be parsed may still name a token.
        return {"token": data.decode("utf-8", "replace")}


def _secret_texts(value: Any) -> Iterator[str]:
    """Yield the texts that are a token or a header, at any depth."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name == "token" and isinstance(inner, str):
                yield inner
            elif name == "headers" and isinstance(inner, Mapping):
                yield from (text for text in inner.values() if isinstance(text, str))
            else:
                yield from _secret_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _secret_texts(inner)
