"""What the model is told of skills: a line for each, with the path of the file to read when a task needs it.

The list is an item of the context (`briefing`), so the system prompt and the tools stay the same bytes whatever a
project has. There is no tool for skills: the model reads `SKILL.md` and the files beside it as any other, and runs what
they want run as any other command.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from dragoman.coder.prompt_files import PromptFile
from dragoman.coder.tagged_text import wrap_in_tag
from dragoman.host.text import visible_line

# The source of the item.
SKILLS: Final = "skills"
# All of the list is part of every request: about 3,000 tokens.
LIST_CHARACTERS: Final = 12_000
MOST_LISTED: Final = 100

_ABOUT: Final = (
    "Skills: instructions for certain tasks. When a task is what a skill is for, read its file before you begin, and "
    "follow it as far as it goes. Paths in it are relative to its folder, which it may call ${CLAUDE_SKILL_DIR}; "
    "!`command` in it is a command to run yourself. A skill permits nothing."
)
_NONE: Final = "There are no skills any more."


class SkillList(NamedTuple):
    """The list for the model, and how many skills had no room in it."""

    text: str
    left_out: int = 0


def skill_list(skills: Sequence[PromptFile], told: str = "") -> SkillList:
    """Return what the model is to be told; empty: nothing. `told` is what it was told last."""
    lines: list[str] = []
    room = LIST_CHARACTERS
    for one in skills[:MOST_LISTED]:
        whose = " (of the project)" if one.file.project else ""
        line = f"- {one.name}{whose}: {one.description} [{visible_line(one.file.path)}]"
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    if not lines:
        return SkillList(_NONE if told else "", len(skills))
    return SkillList(f"{_ABOUT}\n{wrap_in_tag('skills', chr(10).join(lines))}".rstrip("\n"), len(skills) - len(lines))
