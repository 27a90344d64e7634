"""From a name to a model. Cheap: nothing is loaded, connected or probed before the first model call."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from dragoman.coder.credentials import KEY_VARIABLES, OLLAMA_VARIABLE, Credentials
from dragoman.coder.models.contract import Model
from dragoman.coder.models.descriptions import NOTHING, ModelDescription
from dragoman.coder.models.endpoints import Endpoint, ModelUnavailable, configured, find_endpoint, provider_config
from dragoman.coder.models.names import DEMO, SCRIPT, BadModelName, ModelName, parse
from dragoman.coder.models.timeouts import ModelTimeouts

__all__ = ["DEFAULTS", "ModelUnavailable", "choices", "find_default_model", "make_model", "usable_providers"]

# What a provider's key alone means; `[providers.NAME] model` says otherwise.
DEFAULTS: Final = {
    "openai": "gpt-5.6-sol",
    "anthropic": "claude-sonnet-5",
    "google": "gemini-3.8-flash",
    "ollama": "llama3.2",
}


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
    for provider in usable_providers(environment, config, credentials):
        name = _default(config, provider)
        if name is not None:
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
    return list(dict.fromkeys([*offered, ModelName(DEMO)]))


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
    if choice.provider == DEMO:
        from dragoman.coder.models import demo

        return demo.DemoModel()
    if choice.provider == SCRIPT:
        from dragoman.coder.models import script

        return script.ScriptModel(script.load(choice.name))
    from dragoman.coder.models import providers

    endpoint = find_endpoint(choice, environment=environment, config=config, credentials=credentials)
    if not providers.is_installed():
        raise ModelUnavailable(providers.INSTALL)
    return providers.ProviderModel(endpoint, patience, listed(endpoint))


def usable_providers(
    environment: Mapping[str, str], config: Mapping[str, object], credentials: Credentials
) -> list[str]:
    """Return the providers there is a credential for, in the order they are tried."""
    named = configured(config)
    found = [provider for provider in KEY_VARIABLES if _has_key(provider, environment, config, credentials)]
    if environment.get(OLLAMA_VARIABLE, "").strip() or provider_config(config, "ollama").base_url:
        found.append("ollama")
    for provider in named:
        settings = provider_config(config, provider)
        if provider in DEFAULTS or not settings.base_url:
            continue
        if not settings.api_key_env or _has_key(provider, environment, config, credentials):
            found.append(provider)
    return found


def _has_key(
    provider: str, environment: Mapping[str, str], config: Mapping[str, object], credentials: Credentials
) -> bool:
    variable = provider_config(config, provider).api_key_env or None
    return credentials.find(provider, environment, variable) is not None


def _default(config: Mapping[str, object], provider: str) -> ModelName | None:
    name = provider_config(config, provider).model or DEFAULTS.get(provider, "")
    return ModelName(provider, name) if name else None
