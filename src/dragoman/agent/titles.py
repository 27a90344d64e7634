"""Default title of a session without one: the first prompt that is not just a command to show or set something."""

from collections.abc import Iterable
from typing import Final

from dragoman.vocabulary.options import AnyCommand, Option

# What a list can show of a first prompt.
TITLE_CHARACTERS: Final = 80


def title_from(prompt: str) -> str:
    """A title: the first line of the first prompt, short."""
    line = next((line.strip() for line in prompt.splitlines() if line.strip()), "")
    return line if len(line) <= TITLE_CHARACTERS else line[: TITLE_CHARACTERS - 1].rstrip() + "…"


def is_order(prompt: str, commands: Iterable[AnyCommand], options: Iterable[Option]) -> bool:
    """A command that only shows or sets something says nothing about what the session is for."""
    name, *arguments = prompt.split(maxsplit=1) or [""]
    if not name.startswith("/") or not any(getattr(one, "name", "") == name[1:] for one in commands):
        return False
    return not arguments or any(getattr(one, "config_id", "") == name[1:] for one in options)
