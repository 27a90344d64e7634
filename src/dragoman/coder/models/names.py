"""The names of models: `provider:name`, `provider/name`, or a bare name, as people and clients write them.

Promise: on the wire a model is always `provider/name`, never a path. `offline`, `script:FILE` and `local:…` are
recognised first. A client names what somebody pays for, never a file: for it `script:` and `local:` do not exist.
"""

import re
from collections.abc import Collection
from typing import Final, NamedTuple

OFFLINE: Final = "offline"
SCRIPT: Final = "script"
LOCAL: Final = "local"
# What reads a file of this machine, and so is for the one who started us to choose.
_FILES: Final = (SCRIPT, LOCAL)

PROVIDERS: Final = ("openai", "anthropic", "google", "ollama")
_OTHER_NAMES: Final = {"gemini": "google"}
# Bare names that say who made them.
_FAMILIES: Final = (
    (re.compile(r"(gpt|chatgpt|codex)-|o[1-9](-|$)"), "openai"),
    (re.compile(r"claude-"), "anthropic"),
    (re.compile(r"gemini-"), "google"),
)
# Names go into URLs: no spaces, nothing that needs escaping, no way up. The longest real ones have about 80 characters.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}")
PROVIDER_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class BadModelName(ValueError):
    """A name that means no model; the text is fit for the user."""


class ModelName(NamedTuple):
    """One model. For `script` and `local` the name is what came after the colon: a file, or a model of ours."""

    provider: str
    name: str = ""

    def __str__(self) -> str:
        """As it is shown: without a path."""
        if self.provider == LOCAL:
            return f"{LOCAL}/{self.name.replace(chr(92), '/').rpartition('/')[2]}"
        return self.provider if self.provider in (OFFLINE, SCRIPT) else f"{self.provider}/{self.name}"


def parse(text: str, *, configured: Collection[str] = (), current: ModelName | None = None) -> ModelName:
    """What the one who started us means. `configured` are the providers of the configuration.

    A bare name stays with the current provider; without one, its family decides.
    """
    text = text.strip()
    if text.lower() == OFFLINE:
        return ModelName(OFFLINE)
    kind, colon, rest = text.partition(":")
    if colon and kind.lower() in _FILES:
        if not rest:
            raise BadModelName(f"Which file? Write {kind.lower()}:FILE.")
        return ModelName(kind.lower(), rest)
    return _hosted(text, {*PROVIDERS, *configured}, current)


def parse_from_client(text: str, *, configured: Collection[str] = (), current: ModelName | None = None) -> ModelName:
    """What a client means. It may keep a model that reads a file, and never choose one."""
    if current is not None and text.strip() == str(current):
        return current
    if re.split("[:/]", text.strip(), maxsplit=1)[0].lower() in _FILES:
        raise BadModelName("A model that reads a file of this machine is chosen when the agent is started.")
    return parse(text, configured=configured, current=current)


def _hosted(text: str, known: set[str], current: ModelName | None) -> ModelName:
    found = re.search("[:/]", text)
    if found is not None:
        provider, name = text[: found.start()].lower(), text[found.end() :]
        provider = provider if provider in known else _OTHER_NAMES.get(provider, provider)
        if provider in known:
            return ModelName(provider, _checked(name))
        # `llama3.2:3b` is a whole name at Ollama.
        if found[0] == "/" or not _stays(current):
            raise BadModelName(f"Unknown provider {_short(provider)}; there are {', '.join(sorted(known))}.")
    name = _checked(text)
    if current is not None and _stays(current):
        return ModelName(current.provider, name)
    for family, provider in _FAMILIES:
        if family.match(name):
            return ModelName(provider, name)
    raise BadModelName(f"Whose model is {_short(name)}? Write PROVIDER/NAME, for example ollama/{_short(name)}.")


def _stays(current: ModelName | None) -> bool:
    return current is not None and current.provider not in (OFFLINE, *_FILES)


def _checked(name: str) -> str:
    if not name:
        raise BadModelName("Which model? Write PROVIDER/NAME.")
    if _NAME.fullmatch(name) is None or ".." in name or "//" in name:
        raise BadModelName(f"{_short(name)} cannot be the name of a model.")
    return name


def _short(text: str) -> str:
    """A stranger's text, short and harmless enough for a sentence."""
    clean = "".join(letter if letter.isprintable() else "?" for letter in text[:60])
    return clean + ("…" if len(text) > 60 else "")
