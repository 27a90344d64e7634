"""What is known of a model: which source counts, and that our table of levels says nothing that the library denies."""

import re

import pytest

from dragoman.coder.models.descriptions import ModelDescription
from dragoman.coder.models.endpoints import Endpoint, Family, ProviderConfig
from dragoman.coder.models.facts import ModelFacts, model_facts

KNOWN: dict[Family, str] = {
    "openai": "gpt-3.5-turbo gpt-4 gpt-4o gpt-4.1 o1-pro o3 o3-mini o4-mini gpt-5 gpt-5-mini gpt-5-pro "
    "gpt-5-chat-latest gpt-5.1 gpt-5.1-codex gpt-5.2 gpt-5.2-pro gpt-5.3-codex gpt-5.4 gpt-5.4-mini gpt-5.5 "
    "gpt-5.6-sol gpt-6-astra gpt-6-sol gpt-6-luna gpt-6.1-sol gpt-6.1-terra",
    "anthropic": "claude-3-5-haiku-latest claude-3-7-sonnet-latest claude-haiku-4-5 claude-sonnet-4-5 "
    "claude-sonnet-4-6 claude-opus-4-8 claude-opus-5 claude-opus-5-5 claude-sonnet-5 claude-sonnet-5-5 "
    "claude-haiku-5-5 claude-fable-5-1",
    "google": "gemini-2.0-flash gemini-2.5-flash gemini-2.5-flash-image gemini-2.5-pro gemini-3-pro-preview "
    "gemini-3.8-flash gemini-4-argon",
}


def place(family: Family, model: str, config: ProviderConfig | None = None) -> Endpoint:
    return Endpoint(family, family, model, "", None, config or ProviderConfig())


def test_the_levels_are_ones_that_the_library_would_send() -> None:
    from pydantic_ai.models import infer_model_profile

    wrong = []
    for family, names in KNOWN.items():
        for name in names.split():
            ours = model_facts(place(family, name)).thought_levels
            theirs = infer_model_profile(f"{family}:{name}")
            if bool(ours) > bool(theirs.get("supports_thinking")):
                wrong.append(f"{name} does not think")
            if "off" in ours and theirs.get("thinking_always_enabled"):
                wrong.append(f"{name} always thinks")
    assert wrong == []


@pytest.mark.parametrize(
    ("family", "model", "levels", "images"),
    [
        ("openai", "gpt-4", (), False),
        ("openai", "gpt-4o", (), True),
        ("openai", "o3-mini", ("low", "medium", "high"), False),
        ("openai", "o4-mini", ("low", "medium", "high"), True),
        ("openai", "gpt-5.2-pro", (), True),
        ("openai", "gpt-5.6-sol", ("off", "low", "medium", "high"), True),
        ("openai", "gpt-9", (), True),
        ("anthropic", "claude-sonnet-5", ("off", "low", "medium", "high"), True),
        ("anthropic", "claude-opus-5-5", ("low", "medium", "high"), True),
        ("google", "models/gemini-2.5-flash", ("off", "low", "medium", "high"), True),
        ("google", "gemini-2.5-flash-image", (), True),
        ("google", "gemini-3-pro-preview", ("low", "high"), True),
        ("openai", "who-knows", (), False),
        ("ollama", "claude-sonnet-5", (), False),
        ("compatible", "gpt-5", (), False),
    ],
)
def test_a_name_that_no_source_knows_gets_nothing_that_it_might_refuse(
    family: Family, model: str, levels: tuple[str, ...], images: bool
) -> None:
    assert model_facts(place(family, model))[:4] == (None, None, levels, images)


def test_the_users_word_on_a_model_comes_before_that_on_the_provider_the_list_and_the_table() -> None:
    every = ModelDescription(window=9_000, max_output=1_000, images=False)
    config = ProviderConfig(
        every_model=every, models={"gpt-5": ModelDescription(window=5_000, thought_levels=("max",))}
    )
    listed = ModelDescription(window=7_000, images=True)
    assert model_facts(place("openai", "gpt-5", config), listed) == ModelFacts(
        5_000, 1_000, ("max",), False, web_search=True, documents=True
    )
    assert model_facts(place("openai", "gpt-5.1", config), listed)[:2] == (9_000, 1_000)
    assert model_facts(place("openai", "gpt-4"), listed) == ModelFacts(7_000, None, (), True)


def test_searches_are_offered_for_models_that_the_price_list_has_a_price_of_a_search_for() -> None:
    """But for those that answer in sound or pictures, or as one long piece of research."""
    from genai_prices.data_snapshot import get_snapshot

    families: dict[str, Family] = {"openai": "openai", "anthropic": "anthropic", "google": "google"}
    priced = {
        (families[provider.id], model.id)
        for provider in get_snapshot().providers
        for model in provider.models
        if provider.id in families and "web_searches_kcount" in repr(model.prices)
    }
    missing = {name for family, name in priced if not model_facts(place(family, name)).web_search}
    others = re.compile("deep-research|image|live|banana|gpt-4o-2024-05")
    assert {name for name in missing if not others.search(name)} == set()
