"""Where a hosted model is reached, and with which key.

Promise: a key goes to its own provider's address, or to the one its owner's configuration names, and nowhere else.
The SDKs' own variables (`OPENAI_BASE_URL` and the like) are not read: every address is given to them.
"""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, cast
from urllib.parse import urlsplit

from dragoman.coder.credentials import KEY_VARIABLES, OLLAMA_VARIABLE, Credentials, CredentialsError, Secret, check_key
from dragoman.coder.models.names import LOCAL, OFFLINE, PROVIDER_NAME, PROVIDERS, SCRIPT, ModelName

Family = Literal["openai", "anthropic", "google", "ollama", "compatible"]

_ADDRESSES: Final = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
}
_OLLAMA_PORT: Final = 11434
_KNOWN_KEYS: Final = {"base_url", "api_key_env", "model", "images", "window"}


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
    # Whether its models look at pictures, and how many tokens they see; None: as far as it is known.
    images: bool | None = None
    window: int | None = None


class Endpoint(NamedTuple):
    """One model's place in the world."""

    family: Family
    provider: str
    model: str
    base_url: str
    key: Secret | None
    config: ProviderConfig = ProviderConfig()

    @property
    def place(self) -> str:
        """The host, for sentences: no path, and nothing that was in front of an @."""
        parts = urlsplit(self.base_url)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def find_endpoint(
    name: ModelName, *, environment: Mapping[str, str], config: Mapping[str, object], credentials: Credentials
) -> Endpoint:
    """Where the model is, or `ModelUnavailable`."""
    provider = name.provider
    if provider not in PROVIDERS and provider not in configured(config):
        raise ModelUnavailable(f"There is no provider {provider}; add [providers.{provider}] to the configuration.")
    settings = provider_config(config, provider)
    family: Family = cast(Family, provider) if provider in PROVIDERS else "compatible"
    key = credentials.find(provider, environment, settings.api_key_env or None)
    base_url = settings.base_url or _ADDRESSES.get(provider, "")
    if family == "ollama" and not settings.base_url:
        base_url = ollama_url(environment.get(OLLAMA_VARIABLE, ""))
    if not base_url:
        raise ModelUnavailable(f"[providers.{provider}] in the configuration needs a base_url.")
    _check_url(base_url, provider)
    if key is None and (settings.api_key_env or provider in KEY_VARIABLES):
        variable = settings.api_key_env or KEY_VARIABLES[provider]
        raise ModelUnavailable(f"{provider} needs a key. Set {variable}, or run: dragoman login {provider}", True)
    if key is not None:
        try:
            check_key(key.reveal())
        except CredentialsError:
            raise ModelUnavailable(f"What is set as the key of {provider} is no key.", True) from None
    return Endpoint(family, provider, name.name, base_url, key, settings)


def configured(config: Mapping[str, object]) -> list[str]:
    """The providers the configuration names."""
    tables = config.get("providers", {})
    if not isinstance(tables, Mapping):
        raise ModelUnavailable("The configuration's providers must be tables: [providers.NAME].")
    names = [str(name) for name in tables]
    for name in names:
        if PROVIDER_NAME.fullmatch(name) is None or name in (OFFLINE, SCRIPT, LOCAL):
            raise ModelUnavailable(f"[providers.{name!r}] in the configuration cannot be the name of a provider.")
    return names


def provider_config(config: Mapping[str, object], provider: str) -> ProviderConfig:
    """A provider's table, checked."""
    if provider not in configured(config):
        return ProviderConfig()
    table = cast(Mapping[str, object], config["providers"])[provider]
    place = f"[providers.{provider}] in the configuration"
    if not isinstance(table, Mapping):
        raise ModelUnavailable(f"{place} must be a table.")
    kinds: dict[str, type] = {"base_url": str, "api_key_env": str, "model": str, "images": bool, "window": int}
    for name, value in table.items():
        if name not in _KNOWN_KEYS:
            raise ModelUnavailable(f"{place}: unknown {name}; known are {', '.join(sorted(_KNOWN_KEYS))}.")
        if type(value) is not kinds[name]:
            raise ModelUnavailable(f"{place}: {name} has the wrong type.")
    window = table.get("window")
    if isinstance(window, int) and window < 1:
        raise ModelUnavailable(f"{place}: window must be 1 or more.")
    return ProviderConfig(**table)


def ollama_url(host: str) -> str:
    """The address that `OLLAMA_HOST` means: a host, a host with a port, or a URL. Its own default is this machine."""
    host = host.strip().rstrip("/") or "127.0.0.1"
    scheme, separator, rest = host.partition("://")
    if not separator:
        scheme, rest = "http", host
    authority, slash, path = rest.partition("/")
    name, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        name, port = authority, "" if separator else str(_OLLAMA_PORT)
    # What a server binds to is no address to call.
    name = "127.0.0.1" if name in ("", "0.0.0.0", "[::]") else name
    return f"{scheme}://{name}{':' if port else ''}{port}{slash}{path}/v1"


def _check_url(url: str, provider: str) -> None:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good or not url.isprintable() or " " in url or parts.query or parts.fragment:
        raise ModelUnavailable(f"The address of {provider} is no http or https URL.")
    if "@" in parts.netloc:
        raise ModelUnavailable(f"The address of {provider} has a password in it. Put the key into api_key_env instead.")
