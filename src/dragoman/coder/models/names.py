"""The names of models: `provider:name`, `provider/name`, or a bare name, as people and clients write them.

Promise: on the wire a model is always `provider/name`, never a path. `demo` and `script:FILE` are recognised
first. A client can never name a file: for it `script:` does not exist.
"""

import re
from collections.abc import Collection
from typing import Final, NamedTuple

from dragoman.coder.models.known_providers import KNOWN_PROVIDERS
from dragoman.errors import echo_in_words

DEMO: Final = "demo"
# Its former name, which means the demo for one more release.
OFFLINE: Final = "offline"
SCRIPT: Final = "script"
# Models that ran inside of Dragoman until 0.1; stored sessions and settings may still name one.
_FORMER: Final = "local"
_FORMER_TEXT: Final = (
    "Models no longer run inside of Dragoman. Start Ollama and write ollama/NAME, or start another server "
    "(llama.cpp, LM Studio, vLLM) and add it to config.toml as [providers.NAME] with its base_url."
)

PROVIDERS: Final = tuple(KNOWN_PROVIDERS)
_OTHER_NAMES: Final = {
    "gemini": "google",
    "grok": "xai",
    "moonshotai": "moonshot",
    "hf": "huggingface",
    "aws": "bedrock",
    "google-vertex": "vertex",
}
# Bare names that say who made them.
_FAMILIES: Final = (
    (re.compile(r"(gpt|chatgpt|codex)-|o[1-9](-|$)"), "openai"),
    (re.compile(r"claude-"), "anthropic"),
    (re.compile(r"gemini-"), "google"),
)
# Providers that models are named after, as Ollama has them: `mistral:7b`.
_MAKERS_OF_TAGS: Final = frozenset({"mistral", "meta", "cohere"})
_FAMILY_PROVIDERS: Final = frozenset(provider for _, provider in _FAMILIES)
# Providers in a sentence.
_SHOWN: Final = 8
# Names go into URLs: no spaces, nothing that needs escaping, no way up. The longest real ones have about 80 characters.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}")
PROVIDER_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class BadModelName(ValueError):
    """A name that means no model; the text is fit for the user."""


class ModelName(NamedTuple):
    """One model. For `script` the name is what came after the colon: a file."""

    provider: str
    name: str = ""

    def __str__(self) -> str:
        """Return the name as it is shown: without a path."""
        return self.provider if self.provider in (DEMO, SCRIPT) else f"{self.provider}/{self.name}"


def parse(text: str, *, configured: Collection[str] = (), current: ModelName | None = None) -> ModelName:
    """Parse a name that the user wrote. `configured` are the providers of the configuration.

    A bare name stays with the current provider, unless it is known to be another maker's; without one, its family
    decides.
    """
    text = text.strip()
    if text.lower() in (DEMO, OFFLINE):
        return ModelName(DEMO)
    kind, colon, rest = text.partition(":")
    if colon and kind.lower() == SCRIPT:
        if not rest:
            raise BadModelName("Which file? Write script:FILE.")
        return ModelName(SCRIPT, rest)
    return _hosted(text, {*PROVIDERS, *configured}, current)


def parse_from_client(text: str, *, configured: Collection[str] = (), current: ModelName | None = None) -> ModelName:
    """Parse a name that a client sent. A client may keep a model that reads a file, and never choose one."""
    if current is not None and text.strip() == str(current):
        return current
    if re.split("[:/]", text.strip(), maxsplit=1)[0].lower() == SCRIPT:
        raise BadModelName("A model that reads a file of this machine is chosen when the agent is started.")
    return parse(text, configured=configured, current=current)


def is_model_name(name: str) -> bool:
    """Return whether this can be the name of a provider's model, without the provider."""
    return _NAME.fullmatch(name) is not None and ".." not in name and "//" not in name


def _hosted(text: str, known: set[str], current: ModelName | None) -> ModelName:
    found = re.search("[:/]", text)
    if found is not None:
        provider, name = text[: found.start()].lower(), text[found.end() :]
        provider = provider if provider in known else _OTHER_NAMES.get(provider, provider)
        if provider in known and not (found[0] == ":" and _is_tag(text, provider, current)):
            return ModelName(provider, _checked(name))
        if provider == _FORMER:
            raise BadModelName(_FORMER_TEXT)
        # `llama3.2:3b` is a whole name at Ollama.
        if found[0] == "/" or not _stays(current):
            raise BadModelName(f"Unknown provider {echo_in_words(provider)}; there are {_names_text(known)}.")
    name = _checked(text)
    makers = [provider for family, provider in _FAMILIES if family.match(name)]
    # Other providers serve models of many makers, these only their own.
    stays = current is not None and _stays(current) and not (makers and current.provider in _FAMILY_PROVIDERS)
    if current is not None and stays:
        return ModelName(current.provider, name)
    if makers:
        return ModelName(makers[0], name)
    raise BadModelName(
        f"Model {echo_in_words(name)} needs a provider: write PROVIDER/NAME, e.g. ollama/{echo_in_words(name)}."
    )


def _names_text(known: set[str]) -> str:
    """Return the user's own providers and the first of the known ones, and where all are named."""
    own = sorted(known.difference(PROVIDERS))[:_SHOWN]
    return f"{', '.join([*own, *PROVIDERS[:_SHOWN]])} and {len(PROVIDERS) - _SHOWN} others that `dragoman login` names"


def _is_tag(text: str, provider: str, current: ModelName | None) -> bool:
    """Return whether `mistral:7b` is a whole name: that of a model which a server of many makers has in sizes."""
    is_makers = current is not None and current.provider in (*_FAMILY_PROVIDERS, provider)
    return _stays(current) and not is_makers and provider in _MAKERS_OF_TAGS


def _stays(current: ModelName | None) -> bool:
    return current is not None and current.provider not in (DEMO, SCRIPT)


def _checked(name: str) -> str:
    if not name:
        raise BadModelName("Which model? Write PROVIDER/NAME.")
    if not is_model_name(name):
        raise BadModelName(f"{echo_in_words(name)} cannot be the name of a model.")
    return name
