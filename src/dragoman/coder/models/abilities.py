"""What is known of hosted models by their names alone, before any SDK is loaded.

The first line that fits decides. A name that no line fits gets no option it might refuse: no levels of thought, and,
where the provider is a stranger, no pictures. The window is looked up again in the price list once that is loaded.
"""

import re
from typing import Final, NamedTuple

from dragoman.coder.models.endpoints import Endpoint, Family

OFF: Final = "off"
_LEVELS: Final = ("low", "medium", "high")
_WITH_OFF: Final = (OFF, *_LEVELS)


class Abilities(NamedTuple):
    """What a model can do. `window` in tokens; None: unknown."""

    window: int | None = None
    thought_levels: tuple[str, ...] = ()
    images: bool = False


_M: Final = 1_000_000
_K: Final = 1_000
_TABLE: Final[tuple[tuple[Family, str, Abilities], ...]] = (
    ("openai", r"gpt-3", Abilities(16_385)),
    ("openai", r"gpt-4($|-0)", Abilities(8_192)),
    ("openai", r"gpt-4\.1", Abilities(_M, (), True)),
    ("openai", r"gpt-4", Abilities(128 * _K, (), True)),
    ("openai", r"o[1-9].*-pro|gpt-5.*-pro", Abilities(None, (), True)),
    ("openai", r"o[1-9]-mini|o3-mini", Abilities(200 * _K, _LEVELS)),
    ("openai", r"o[1-9]", Abilities(200 * _K, _LEVELS, True)),
    ("openai", r"gpt-5.*-chat", Abilities(400 * _K, (), True)),
    ("openai", r"gpt-5(-codex|-mini|-nano|-20|$)|gpt-5\.1-codex", Abilities(400 * _K, _LEVELS, True)),
    ("openai", r"gpt-5\.[1-3]|gpt-5\.4-(mini|nano)", Abilities(400 * _K, _WITH_OFF, True)),
    ("openai", r"gpt-5\.[4-6]", Abilities(1_050_000, _WITH_OFF, True)),
    ("openai", r"gpt-6-(sol|luna)", Abilities(1_050_000, _WITH_OFF, True)),
    ("openai", r"gpt-6", Abilities(1_050_000, _LEVELS, True)),
    ("openai", r"gpt-", Abilities(None, (), True)),
    ("anthropic", r"claude-3-7", Abilities(200 * _K, _WITH_OFF, True)),
    ("anthropic", r"claude-3", Abilities(200 * _K, (), True)),
    ("anthropic", r"claude-(sonnet-4-6|opus-4-[6-9]|sonnet-5|haiku-5|opus-5(?!-5))", Abilities(_M, _WITH_OFF, True)),
    ("anthropic", r"claude-(opus-5-5|fable|mythos)", Abilities(_M, _LEVELS, True)),
    ("anthropic", r"claude-(sonnet|opus|haiku)-4", Abilities(200 * _K, _WITH_OFF, True)),
    ("anthropic", r"claude-", Abilities(200 * _K, (), True)),
    ("google", r"(models/)?gemini-2\.0", Abilities(_M, (), True)),
    ("google", r"(models/)?gemini-2\.5-flash-image", Abilities(None, (), True)),
    ("google", r"(models/)?gemini-2\.5-flash", Abilities(1_048_576, _WITH_OFF, True)),
    ("google", r"(models/)?gemini-2\.5-pro", Abilities(1_048_576, _LEVELS, True)),
    ("google", r"(models/)?gemini-3-pro", Abilities(1_048_576, ("low", "high"), True)),
    ("google", r"(models/)?gemini-[34]", Abilities(_M, _LEVELS, True)),
    ("google", r"(models/)?gemini-", Abilities(None, (), True)),
)


def abilities(endpoint: Endpoint) -> Abilities:
    """Return what the model at that place can do; the owner's configuration has the last word."""
    found = next(
        (known for family, pattern, known in _TABLE if family == endpoint.family and re.match(pattern, endpoint.model)),
        Abilities(),
    )
    images, window = endpoint.config.images, endpoint.config.window
    return found._replace(
        images=found.images if images is None else images, window=found.window if window is None else window
    )
