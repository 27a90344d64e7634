"""The system prompt: what is true of every session, the same bytes in every request of one.

The text stands in `prompts/*.md`: the agent's or a helper's, and a short part for the family of the model. What is
true of one session (its folders, mode, notes) is not in here but in items of the context (`briefing`), because a
provider keeps the beginning of a request in its cache only as long as no byte of it changes.
"""

import functools
import re
from importlib.resources import files
from typing import Final, Literal

# Of instructions that a user has written.
SYSTEM_PROMPT_BYTES: Final = 64 * 1024

ModelFamily = Literal["anthropic", "openai", "google", "other"]

_FAMILIES: Final[tuple[tuple[ModelFamily, "re.Pattern[str]"], ...]] = (
    ("anthropic", re.compile(r"claude")),
    ("google", re.compile(r"gemini")),
    ("openai", re.compile(r"gpt|codex|(^|/)o[1-9]\b")),
)


def family_of(model: str) -> ModelFamily:
    """Return the family of a model by its name, at whatever address: `openrouter/anthropic/claude-…` is Anthropic's."""
    return next((family for family, pattern in _FAMILIES if pattern.search(model.lower())), "other")


@functools.cache
def system_prompt(family: ModelFamily, *, for_helper: bool = False) -> str:
    """Return the instructions for a model of this family. Blocks at the first call: reads two small files."""
    return f"{_text('helper' if for_helper else 'system')}\n{_text(family)}"


def _text(name: str) -> str:
    return (files("dragoman.coder") / "prompts" / f"{name}.md").read_text(encoding="utf-8")
