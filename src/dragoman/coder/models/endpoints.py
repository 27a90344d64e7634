"""Where a hosted model is reached, and with which key.

Promise: a key goes to its own provider's address, or to the one that its owner has set, and nowhere else: `base_url` in
`[providers.NAME]` of the user's config.toml, else the variable of the provider's own SDK (`ADDRESS_VARIABLES`), else
the default. Both belong to the user: no file of a project is read for them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, cast
from urllib.parse import urlsplit

from dragoman.coder.credentials import (
    KEY_VARIABLES,
    OLLAMA_VARIABLE,
    Credentials,
    CredentialsError,
    Secret,
    check_key,
    without_secrets,
)
from dragoman.coder.models.descriptions import KEYS, NOTHING, ModelDescription, read_description
from dragoman.coder.models.names import DEMO, OFFLINE, PROVIDER_NAME, PROVIDERS, SCRIPT, ModelName
from dragoman.errors import echo_in_words

Family = Literal["openai", "anthropic", "google", "ollama", "compatible"]

_ADDRESSES: Final = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
    "ollama": "http://127.0.0.1:11434/v1",
}
# The variable that each provider's own SDK or program reads for its address.
ADDRESS_VARIABLES: Final = {
    "openai": "OPENAI_BASE_URL",
    "anthropic": "ANTHROPIC_BASE_URL",
    "google": "GOOGLE_GEMINI_BASE_URL",
    "ollama": OLLAMA_VARIABLE,
}
CONFIG_SOURCE: Final = "config.toml"
DEFAULT_SOURCE: Final = "default"
# What is put behind the address, by the provider's own SDK and by us, so that it must not stand there twice.
_ADDED_VERSIONS: Final = {"anthropic": ("/v1",), "google": ("/v1", "/v1beta")}
_OLLAMA_PORT: Final = 11434
# What is shown of an address that is none.
_SHOWN: Final = 80
_TEXT_KEYS: Final = ("base_url", "api_key_env", "model")
PROVIDER_KEYS: Final = (*_TEXT_KEYS, *KEYS, "models")


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


class ProviderAddress(NamedTuple):
    """Where a provider is reached, and where that was set: `config.toml`, a variable's name, or `default`."""

    url: str
    source: str


class Endpoint(NamedTuple):
    """The address of a model, its key, and its provider's configuration."""

    family: Family
    provider: str
    model: str
    base_url: str
    key: Secret | None
    config: ProviderConfig = ProviderConfig()
    # Where the address was set, as in `ProviderAddress`.
    source: str = DEFAULT_SOURCE

    @property
    def description(self) -> ModelDescription:
        """What the user says of this model in config.toml."""
        return self.config.models.get(self.model, NOTHING).over(self.config.every_model)

    @property
    def host(self) -> str:
        """The host, for sentences: no path, and nothing that was in front of an @."""
        parts = urlsplit(self.base_url)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)

    @property
    def is_here(self) -> bool:
        """Whether it is on this machine, by its address."""
        return urlsplit(self.base_url).hostname in ("localhost", "127.0.0.1", "::1")

    @property
    def place(self) -> str:
        """The host, and what has set it if that is not the default."""
        return self.host if self.source == DEFAULT_SOURCE else f"{self.host}, set by {self.source}"


def find_endpoint(
    name: ModelName, *, environment: Mapping[str, str], config: Mapping[str, object], credentials: Credentials
) -> Endpoint:
    """Return where the model is, or `ModelUnavailable`."""
    provider = name.provider
    if provider not in PROVIDERS and provider not in configured(config):
        raise ModelUnavailable(f"There is no provider {provider}; add [providers.{provider}] to the configuration.")
    settings = provider_config(config, provider)
    family: Family = cast(Family, provider) if provider in PROVIDERS else "compatible"
    key = credentials.find(provider, environment, settings.api_key_env or None)
    address = find_address(provider, environment=environment, config=config)
    if key is None and (settings.api_key_env or provider in KEY_VARIABLES):
        variable = settings.api_key_env or KEY_VARIABLES[provider]
        raise ModelUnavailable(f"{provider} needs a key. Set {variable}, or run: dragoman login {provider}", True)
    if key is not None:
        try:
            check_key(key.reveal())
        except CredentialsError:
            raise ModelUnavailable(f"What is set as the key of {provider} is no key.", True) from None
    return Endpoint(family, provider, name.name, address.url, key, settings, address.source)


def find_address(provider: str, *, environment: Mapping[str, str], config: Mapping[str, object]) -> ProviderAddress:
    """Return the provider's address: config.toml's, else the environment's, else the default.

    A variable that is empty or blank counts as not set. Raises `ModelUnavailable` where the address cannot be one.
    """
    settings = provider_config(config, provider)
    variable = ADDRESS_VARIABLES.get(provider, "")
    given = environment.get(variable, "").strip() if variable else ""
    if settings.base_url:
        # A dialect may have made the table from the same variable (`coder/resolver.py`).
        source = variable if settings.base_url == given else CONFIG_SOURCE
        name = f"base_url in [providers.{provider}]" if source == CONFIG_SOURCE else variable
        return ProviderAddress(_checked_url(settings.base_url, name), source)
    if given and provider == "ollama":
        return ProviderAddress(_checked_url(ollama_url(given), variable), variable)
    if given:
        url = _checked_url(given, variable)
        _check_path(url, provider, variable)
        return ProviderAddress(url, variable)
    if provider not in _ADDRESSES:
        raise ModelUnavailable(f"[providers.{provider}] in the configuration needs a base_url.")
    return ProviderAddress(_ADDRESSES[provider], DEFAULT_SOURCE)


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
    texts = {name: table[name] for name in _TEXT_KEYS if name in table}
    for name, value in texts.items():
        if not isinstance(value, str):
            raise ModelUnavailable(f"{place}: {name} has the wrong type.")
    every = _description({name: value for name, value in table.items() if name in KEYS}, place)
    return ProviderConfig(**texts, every_model=every, models=_descriptions(table.get("models", {}), provider))


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


def ollama_url(host: str) -> str:
    """Return the address that `OLLAMA_HOST` means: a host, a host with a port, or a URL.

    Its own default is this machine.
    """
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


def _checked_url(url: str, name: str) -> str:
    """Return the address without a slash at its end, or raise a sentence that begins with the `name` of the setting."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if good and "@" in parts.netloc:
        raise ModelUnavailable(f"{name} has a password in it. Take it out, and set the key as a key.")
    if not good or not url.isprintable() or " " in url or parts.query or parts.fragment:
        raise ModelUnavailable(
            f"{name} is no http or https URL{_url_text(url)}. Write https://HOST or https://HOST/PATH."
        )
    return url.rstrip("/")


def _check_path(url: str, provider: str, variable: str) -> None:
    """Refuse a path with which no request of the provider's own SDK finds its way.

    Only for variables: they have one meaning, that of the SDK. A `base_url` of config.toml was written for us.
    """
    for added in _ADDED_VERSIONS.get(provider, ()):
        if url.endswith(added):
            right = url.removesuffix(added)
            raise ModelUnavailable(f"{variable} ends in {added}, but the version is added to it. Write {right}")
    if provider == "openai" and not urlsplit(url).path:
        raise ModelUnavailable(f"{variable} has no path, and the addresses of openai end in one. Write {url}/v1")


def _url_text(url: str) -> str:
    """Return a URL behind a colon, for a sentence; nothing where a password may be in it."""
    if "@" in url or not url.isprintable() or without_secrets(url) != url:
        return ""
    return f": {url[:_SHOWN]}{'…' if len(url) > _SHOWN else ''}"
