"""From a name to a model. Cheap: nothing is loaded, connected or probed before the first model call."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from dragoman.coder.credentials import Credentials
from dragoman.coder.models.contract import Model
from dragoman.coder.models.descriptions import NOTHING, ModelDescription
from dragoman.coder.models.endpoints import (
    ADDRESS_VARIABLES,
    Endpoint,
    ModelUnavailable,
    configured,
    find_address,
    find_endpoint,
    managed_in,
    provider_config,
)
from dragoman.coder.models.known_providers import KNOWN_PROVIDERS, LIBRARY_EXTRAS
from dragoman.coder.models.names import DEMO, SCRIPT, BadModelName, ModelName, parse
from dragoman.coder.models.timeouts import ModelTimeouts

__all__ = ["DEFAULTS", "ModelUnavailable", "choices", "find_default_model", "make_model", "usable_providers"]

# What a provider's key alone means; `[providers.NAME] model` says otherwise.
DEFAULTS: Final = {name: known.model for name, known in KNOWN_PROVIDERS.items() if known.model}


def find_default_model(
    environment: Mapping[str, str], config: Mapping[str, object], credentials: Credentials
) -> ModelName:
    """Return the model used without `--model`: the configured one, else of the first provider with a key, else `demo`.

    Ollama counts when its address is given. No provider is contacted to see whether it is running. Raise
    `ModelUnavailable` if the configuration has a bad model name.
    """
    wanted = config.get("model")
    if isinstance(wanted, str) and wanted:
        try:
            return parse(wanted, configured=configured(config))
        except BadModelName as error:
            raise ModelUnavailable(f"model in the configuration: {error}") from None
    allowed = managed_in(config).models
    for provider in usable_providers(environment, config, credentials):
        name = _default(config, provider)
        if name is not None and allowed.allows(str(name)):
            return name
    return ModelName(DEMO)


def choices(
    environment: Mapping[str, str],
    config: Mapping[str, object],
    credentials: Credentials,
    current: ModelName,
    listed: Callable[[str], Iterable[str]] = lambda provider: (),
) -> list[ModelName]:
    """Return what a client is offered: the current model, the models of every provider that can be used, and `demo`.

    Of a provider that is its default, then what it has `listed`.
    """
    offered = [current]
    for provider in usable_providers(environment, config, credentials):
        default = _default(config, provider)
        offered += [] if default is None else [default]
        offered += [ModelName(provider, name) for name in listed(provider)]
    allowed = managed_in(config).models
    found = [name for name in [*offered, ModelName(DEMO)] if name == current or allowed.allows(str(name))]
    return list(dict.fromkeys(found))


def make_model(
    choice: ModelName,
    *,
    environment: Mapping[str, str],
    config: Mapping[str, object],
    credentials: Credentials,
    patience: ModelTimeouts | None = None,
    listed: Callable[[Endpoint], ModelDescription] = lambda endpoint: NOTHING,
) -> Model:
    """Return a model for one session, or `ModelUnavailable`; for a script that cannot be played `ScriptError`.

    `listed` returns what a provider's list says of a model.
    """
    managed = managed_in(config)
    if not managed.models.allows(str(choice)):
        refusal = managed.says(f"the model {choice}")
        raise ModelUnavailable(f"{refusal[:1].upper()}{refusal[1:]}.")
    if choice.provider == DEMO:
        from dragoman.coder.models import demo

        return demo.DemoModel()
    if choice.provider == SCRIPT:
        from dragoman.coder.models import script

        return script.ScriptModel(script.load(choice.name))
    from dragoman.coder.models import providers

    endpoint = find_endpoint(choice, environment=environment, config=config, credentials=credentials)
    if missing := providers.how_to_have(endpoint.family):
        raise ModelUnavailable(missing)
    return providers.ProviderModel(endpoint, patience, listed(endpoint))


def usable_providers(
    environment: Mapping[str, str], config: Mapping[str, object], credentials: Credentials
) -> list[str]:
    """Return the providers there is a credential for, and an address that is allowed, in the order they are tried: the
    known ones first."""
    named = configured(config)
    order = dict.fromkeys([*KNOWN_PROVIDERS, *named])
    found = [name for name in order if _is_usable(name, environment, config, credentials)]
    if managed_in(config).models.addresses is None:
        return found
    return [name for name in found if _has_allowed_address(name, environment, config)]


def _has_allowed_address(provider: str, environment: Mapping[str, str], config: Mapping[str, object]) -> bool:
    try:
        find_address(provider, environment=environment, config=config)
    except ModelUnavailable:
        return False
    return True


def _is_usable(
    provider: str, environment: Mapping[str, str], config: Mapping[str, object], credentials: Credentials
) -> bool:
    known, settings = KNOWN_PROVIDERS.get(provider), provider_config(config, provider)
    is_named = provider in configured(config)
    is_placed = bool(settings.base_url or environment.get(ADDRESS_VARIABLES.get(provider, ""), "").strip())
    # An own name with a `kind` is at that provider's address.
    is_reachable = is_placed or bool(known.url if known else settings.kind)
    if known is not None and known.keyless:
        # On this machine, or with credentials that a library finds: where the user says that it is there.
        return is_placed or (known.family in LIBRARY_EXTRAS and is_named) or provider in credentials.keys
    if _has_key(provider, environment, config, credentials):
        is_meant = known is None or not known.shares_key or is_named or provider in credentials.keys
        return is_reachable and is_meant
    # A server of the user's own wants no key, unless one is named.
    is_own = settings.base_url != "" and (known is None or known.family == "compatible")
    return is_own and not settings.api_key_env


def _has_key(
    provider: str, environment: Mapping[str, str], config: Mapping[str, object], credentials: Credentials
) -> bool:
    variable = provider_config(config, provider).api_key_env or None
    return credentials.find(provider, environment, variable) is not None


def _default(config: Mapping[str, object], provider: str) -> ModelName | None:
    name = provider_config(config, provider).model or DEFAULTS.get(provider, "")
    return ModelName(provider, name) if name else None
