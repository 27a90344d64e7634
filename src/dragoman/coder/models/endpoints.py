"""Where a hosted model is reached, and with which key.

Promise: a key goes to its own provider's address, or to the one that its owner has set, and nowhere else: that of the
administrator's file, else `base_url` in `[providers.NAME]` of the user's config.toml, else the variable of the
provider's own SDK (`ADDRESS_VARIABLES`), else the default. No file of a project is read for them. Where the
administrator's file lists addresses, it goes to no other, whatever the user has set.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, cast
from urllib.parse import urlsplit

from dragoman.coder.credentials import (
    KEY_VARIABLES,
    Credentials,
    CredentialsError,
    Secret,
    check_key,
    without_secrets,
)
from dragoman.coder.managed_settings import NOTHING_MANAGED, ManagedSettings
from dragoman.coder.model_registry import MANAGED
from dragoman.coder.models.descriptions import NOTHING, ModelDescription
from dragoman.coder.models.known_providers import KINDS, KNOWN_PROVIDERS, Family
from dragoman.coder.models.names import ModelName
from dragoman.coder.models.provider_config import ModelUnavailable, ProviderConfig, configured, provider_config
from dragoman.host.variables import VariableMissing, fill

__all__ = [
    "ADDRESS_VARIABLES",
    "CONFIG_SOURCE",
    "DEFAULT_SOURCE",
    "Endpoint",
    "Family",
    "ModelUnavailable",
    "ProviderAddress",
    "ProviderConfig",
    "configured",
    "find_address",
    "find_endpoint",
    "find_family",
    "managed_in",
    "ollama_url",
    "provider_config",
]

# The variable that each provider's own SDK or program reads for its address.
ADDRESS_VARIABLES: Final = {
    name: known.address_variable for name, known in KNOWN_PROVIDERS.items() if known.address_variable
}
CONFIG_SOURCE: Final = "config.toml"
DEFAULT_SOURCE: Final = "default"
# What is put behind the address, by the provider's own SDK and by us, so that it must not stand there twice.
_ADDED_VERSIONS: Final = {"anthropic": ("/v1",), "google": ("/v1", "/v1beta")}
_OLLAMA_PORT: Final = 11434
# What is shown of an address that is none.
_SHOWN: Final = 80
# Where the user may have written the key by himself, for a gateway that wants it there.
_KEY_HEADERS: Final = frozenset({"authorization", "api-key", "x-api-key", "x-goog-api-key"})
# What a header may have in it, and at most.
_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e]{0,8192}")
# Where the clouds' own programs look for a region and a project.
_REGIONS: Final = {"bedrock": ("AWS_REGION", "AWS_DEFAULT_REGION"), "vertex": ("GOOGLE_CLOUD_LOCATION",)}
_REGION: Final = re.compile(r"[a-z0-9-]{1,40}")
_PROJECT_VARIABLE: Final = "GOOGLE_CLOUD_PROJECT"
_API_VERSION_VARIABLE: Final = "OPENAI_API_VERSION"


class ProviderAddress(NamedTuple):
    """Where a provider is reached, and where that was set: `config.toml`, a variable's name, `default`, or the path of
    the administrator's file."""

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
    # Sent with every request, before those of the wire form; names in small letters.
    headers: Mapping[str, Secret] = MappingProxyType({})

    @property
    def secrets(self) -> list[Secret]:
        """The texts that are shown to no one: the key, and the values of headers."""
        return [*([self.key] if self.key else []), *(value for value in self.headers.values() if value.reveal())]

    @property
    def sent_headers(self) -> dict[str, str]:
        """The headers with their values, for a request and nothing that is kept."""
        return {name: value.reveal() for name, value in self.headers.items()}

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
    if provider not in KNOWN_PROVIDERS and provider not in configured(config):
        raise ModelUnavailable(f"There is no provider {provider}; add [providers.{provider}] to the configuration.")
    settings = provider_config(config, provider)
    family = find_family(provider, settings)
    key = credentials.find(provider, environment, settings.api_key_env or None)
    address = find_address(provider, environment=environment, config=config)
    headers = _filled_headers(provider, settings, environment)
    if key is None and _needs_key(provider, settings):
        variable = settings.api_key_env or KEY_VARIABLES[provider]
        raise ModelUnavailable(f"{provider} needs a key. Set {variable}, or run: dragoman login {provider}", True)
    if key is not None:
        try:
            check_key(key.reveal())
        except CredentialsError:
            raise ModelUnavailable(f"What is set as the key of {provider} is no key.", True) from None
    settings = settings._replace(
        region=settings.region or _region(family, environment),
        project=settings.project or environment.get(_PROJECT_VARIABLE, "").strip(),
        api_version=settings.api_version or (environment.get(_API_VERSION_VARIABLE, "") if family == "azure" else ""),
    )
    return Endpoint(family, provider, name.name, address.url, key, settings, address.source, headers)


def find_family(provider: str, settings: ProviderConfig) -> Family:
    """Return how a provider is spoken to: its `kind`, else as its name says, else by chat completions."""
    known = KNOWN_PROVIDERS.get(provider)
    return KINDS[settings.kind] if settings.kind else known.family if known else "compatible"


def managed_in(config: Mapping[str, object]) -> ManagedSettings:
    """Return the administrator's settings that come with a configuration."""
    return cast(ManagedSettings, config.get(MANAGED, NOTHING_MANAGED))


def find_address(provider: str, *, environment: Mapping[str, str], config: Mapping[str, object]) -> ProviderAddress:
    """Return the provider's address: the administrator's, else config.toml's, the environment's, the default.

    A variable that is empty or blank counts as not set. Raises `ModelUnavailable` where the address cannot be one, and
    where the administrator does not allow it.
    """
    managed = managed_in(config)
    found = _named_address(provider, environment, config)
    if provider in managed.models.base_urls:
        return found._replace(source=managed.file)
    if not managed.models.allows_address(found.url):
        refusal = managed.says(f"{provider} to be reached at {found.url}")
        raise ModelUnavailable(f"{refusal[:1].upper()}{refusal[1:]} ({found.source}).")
    return found


def _named_address(provider: str, environment: Mapping[str, str], config: Mapping[str, object]) -> ProviderAddress:
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
    return ProviderAddress(_default_url(provider, settings, environment), DEFAULT_SOURCE)


def _default_url(provider: str, settings: ProviderConfig, environment: Mapping[str, str]) -> str:
    """Return the address that a provider has without being moved. Raises `ModelUnavailable` where it has none."""
    family = find_family(provider, settings)
    if family in _REGIONS:
        region = settings.region or _region(family, environment)
        if region:
            return _cloud_url(family, region)
        raise ModelUnavailable(
            f"{provider} needs a region: write region in [providers.{provider}], or set {_REGIONS[family][0]}."
        )
    # A name of the user's own with a `kind` is that provider with another key.
    known = KNOWN_PROVIDERS.get(provider if not settings.kind else family)
    if known is not None and known.url:
        return known.url
    variable = ADDRESS_VARIABLES.get(provider)
    others = f", or set {variable}" if variable else ""
    raise ModelUnavailable(f"[providers.{provider}] in the configuration needs a base_url{others}.")


def _region(family: Family, environment: Mapping[str, str]) -> str:
    """Return the region that the environment names, or the default one; empty: there is none."""
    given = next((value for name in _REGIONS.get(family, ()) if (value := environment.get(name, "").strip())), "")
    if given and _REGION.fullmatch(given) is None:
        raise ModelUnavailable(f"{_REGIONS[family][0]} is set to something that is no region.")
    return given or ("global" if family == "vertex" else "")


def _cloud_url(family: Family, region: str) -> str:
    if family == "bedrock":
        return f"https://bedrock-runtime.{region}.amazonaws.com"
    return "https://aiplatform.googleapis.com" if region == "global" else f"https://{region}-aiplatform.googleapis.com"


def _needs_key(provider: str, settings: ProviderConfig) -> bool:
    """Return whether nothing can be asked without a key."""
    if settings.api_key_env:
        return True
    known = KNOWN_PROVIDERS.get(provider)
    if known is None or known.keyless or not _KEY_HEADERS.isdisjoint(settings.headers):
        return False
    # A server of the user's own may speak like the provider and want no key.
    return not (settings.base_url and known.family == "compatible")


def _filled_headers(provider: str, settings: ProviderConfig, environment: Mapping[str, str]) -> dict[str, Secret]:
    """Return the headers with the values of their variables. No text that is raised has a value in it."""
    headers: dict[str, Secret] = {}
    for name, text in settings.headers.items():
        place = f"[providers.{provider}] in the configuration: the header {name}"
        try:
            value = fill(text, environment).strip()
        except VariableMissing as error:
            raise ModelUnavailable(f"{place} needs the variable {error.name}, which is not set.", True) from None
        if _HEADER_VALUE.fullmatch(value) is None:
            raise ModelUnavailable(f"{place} has a value that no header can have: one line of letters, digits, signs.")
        headers[name] = Secret(value)
    return headers


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
