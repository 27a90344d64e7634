"""What a model can do, known at once and without an import: its window, its levels of thought, whether it sees images.

The first source that says something counts: the user's config.toml, the provider's own list as far as it was read
before, the tables here. The window has one source more, the price list (`prices`), which is loaded with the first call.
A model that no source knows works: nothing is sent that it might refuse, and its window is unknown.

The tables have what no list has. Their first line that fits a name decides; a name that no line fits has no level.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from dragoman.coder.models.descriptions import NOTHING, OFF, ModelDescription
from dragoman.coder.models.endpoints import DEFAULT_SOURCE, Endpoint, Family

_LEVELS: Final = ("low", "medium", "high")
_WITH_OFF: Final = (OFF, *_LEVELS)
# `pydantic_ai.profiles` knows these too, but is part of a package that takes a second to import, and levels stand in
# the answer to `session/new`. tests/coder/models/test_facts.py compares the two.
# A row is about a provider, by its name, or about all of a family.
_THOUGHT_LEVELS: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    ("openai", r"(o\d|gpt-5).*-(pro|chat)", ()),  # these have one level each
    ("openai", r"o\d|gpt-5(-codex|-mini|-nano|-20|$)|gpt-5\.1-codex", _LEVELS),
    ("openai", r"gpt-(5\.[1-6]|6-sol|6-luna|6\.1-terra)", _WITH_OFF),
    ("openai", r"gpt-6", _LEVELS),
    ("anthropic", r"claude-(opus-5-5|fable|mythos)", _LEVELS),
    ("anthropic", r"claude-(3-7|(sonnet|opus|haiku)-[45])", _WITH_OFF),
    ("google", r"gemini-2\.5-flash(?!-image)", _WITH_OFF),
    ("google", r"gemini-3-pro", ("low", "high")),
    ("google", r"gemini-(2\.5-pro|[34])", _LEVELS),
    ("bedrock", r"([a-z-]+\.)?anthropic\.claude-(opus-5-5|fable|mythos)", _LEVELS),
    ("bedrock", r"([a-z-]+\.)?anthropic\.claude-(3-7|(sonnet|opus|haiku)-[45])", _WITH_OFF),
    ("xai", r"grok-4\.[5-7]", _LEVELS),
    ("xai", r"grok-(4\.3|latest$)", _WITH_OFF),
    ("groq", r"openai/gpt-oss-(20b|120b)$", _LEVELS),
    ("cerebras", r"gpt-oss-120b$", _LEVELS),
    ("together", r"openai/gpt-oss-120b$", _LEVELS),
    ("openrouter", r"anthropic/claude-(opus-5\.5|fable|mythos)", _LEVELS),
    ("openrouter", r"anthropic/claude-(3\.7|(sonnet|opus|haiku)-[45])", _WITH_OFF),
    ("openrouter", r"openai/(o\d|gpt-5|gpt-oss)(?!.*-(pro|chat))", _LEVELS),
)
# Families whose models are those of another.
_SAME_MODELS: Final[Mapping[Family, Family]] = {"azure": "openai", "vertex": "google"}
# Of the families that look at images, the names that do; the providers' lists say it for Anthropic alone.
_SEES_IMAGES: Final[dict[Family, str]] = {
    "openai": r"o[13](?!-mini)|o[4-9]|gpt-(?!3|4$|4-0)",
    "anthropic": r"claude-",
    "google": r"gemini-",
    "bedrock": r"([a-z-]+\.)?(anthropic\.claude-|amazon\.nova-(lite|pro|premier|2)|meta\.llama4|mistral\.pixtral)",
}
# Of these, the names of models that take PDF documents.
_SEES_DOCUMENTS: Final[dict[Family, str]] = {
    "openai": _SEES_IMAGES["openai"],
    "anthropic": r"claude-(3-[57]|[a-z]+-\d)",
    "google": r"gemini-(?!.*(image|live|tts|robotics))",
    "vertex": r"gemini-(?!.*(image|live|tts|robotics))",
    "bedrock": r"([a-z-]+\.)?anthropic\.claude-(3-[57]|[a-z]+-\d)",
}

# Models whose provider searches the web for them; tests/coder/models/test_facts.py compares with the price list.
_SEARCHES_WEB: Final[dict[Family, str]] = {
    "openai": r"gpt-(4o|4\.1)(-mini)?(-20|$)|o3(-20|$)|o4-mini(-20|$)|gpt-[5-9](?!.*(chat|cyber|image|search))",
    "anthropic": r"claude-(3-[57]|[a-z]+-\d)",
    "google": r"gemini-(2\.0-flash|2\.5|[3-9])(?!.*(2\.0-flash-lite|image|live|omni|robotics|tts))",
}


class ModelFacts(NamedTuple):
    """What a model can do. `window` and `max_output` in tokens; None: unknown."""

    window: int | None = None
    max_output: int | None = None
    thought_levels: tuple[str, ...] = ()
    images: bool = False
    # Whether its provider searches the web for it, on request.
    web_search: bool = False
    # Whether it sees PDF documents.
    documents: bool = False


def model_facts(endpoint: Endpoint, listed: ModelDescription = NOTHING) -> ModelFacts:
    """Return what is known of the model at that place; `listed` is what its provider's list says of it."""
    known = endpoint.description.over(listed)
    family, name = endpoint.family, endpoint.model.removeprefix("models/")
    alike = _SAME_MODELS.get(family, family)
    images, documents = known.images, known.documents
    if images is None:
        images = _matches(_SEES_IMAGES, alike, name)
    if documents is None:
        documents = _matches(_SEES_DOCUMENTS, family, name)
    levels = known.thought_levels
    if levels is None:
        about = (endpoint.provider, alike)
        levels = next((levels for of, names, levels in _THOUGHT_LEVELS if of in about and re.match(names, name)), ())
    web_search = known.web_search
    if web_search is None:
        # A server at another address may speak the provider's API and have no search.
        is_providers_own = endpoint.source == DEFAULT_SOURCE
        web_search = is_providers_own and _matches(_SEARCHES_WEB, family, name)
    searches = web_search and family in _SEARCHES_WEB
    return ModelFacts(known.window, known.max_output, levels, images, searches, documents)


def _matches(names: Mapping[Family, str], family: Family, name: str) -> bool:
    return family in names and re.match(names[family], name) is not None
