"""A rewind in words: what it would do, and what it has done. Names of files are spelled out, so a line is one line."""

from collections.abc import Sequence
from typing import Final

from dragoman.coder.checkpoints.plan import FileTarget
from dragoman.coder.checkpoints.prompts import PromptPlace
from dragoman.coder.checkpoints.rewinding import RewindOutcome, RewindPlan
from dragoman.host.text import visible_line

# Lines of one list, and characters of a prompt.
_LINES: Final = 50
_CHARACTERS: Final = 60
_DEEDS: Final = {"restore": "bring back", "delete": "delete", "change": "change back"}
_DONE: Final = {"restore": "brought back", "delete": "deleted", "change": "changed back"}


def heading(plan: RewindPlan) -> str:
    """Return what a rewind is, in a sentence without its end."""
    what = {"both": "files and conversation", "files": "files", "conversation": "conversation"}[plan.scope]
    if plan.prompt is None:
        return f"Undo the last rewind: {what}"
    given = f"prompt {plan.prompt.turn_number}"
    if plan.prompt.turn_number != plan.prompt.number:
        return f"Rewind {what} to before {given}, in whose turn prompt {plan.prompt.number} was given"
    return f"Rewind {what} to before {given}: {in_short(plan.prompt.text)}"


def plan_lines(plan: RewindPlan) -> list[str]:
    """Return what a rewind would do, in lines; none where it would do nothing."""
    lines = _limited([f"{_DEEDS[shown.target.deed]} {visible_line(shown.target.path)}" for shown in plan.files])
    lines += _limited([_left_alone(target) for target in plan.troubled])
    if plan.dropped:
        prompts = ", ".join(str(prompt.number) for prompt in plan.dropped[:_LINES])
        lines.append(f"take out of the conversation: prompt {prompts}")
    elif plan.undoes and plan.scope != "files":
        lines.append("bring back what the rewind took out of the conversation")
    return lines + [f"note: {visible_line(sentence)}" for sentence in plan.left_out]


def outcome_lines(plan: RewindPlan, outcome: RewindOutcome) -> list[str]:
    """Return what a rewind has done, in lines."""
    lines = _limited([f"{_DONE[target.deed]} {visible_line(target.path)}" for target in outcome.changed])
    lines += _limited([_left_alone(target) for target in outcome.left_alone])
    if plan.scope != "files":
        count = len(plan.dropped)
        said = f"{count} prompt{'s' if count != 1 else ''} taken out of the conversation; the log keeps all"
        lines.append("the conversation is as before the rewind" if plan.undoes else said)
    return lines


def prompt_lines(prompts: Sequence[PromptPlace]) -> list[str]:
    """Return the last prompts with their numbers."""
    return [f"{prompt.number}. {in_short(prompt.text)}" for prompt in prompts[-_LINES:]]


def in_short(text: str) -> str:
    """Return a prompt in one short line."""
    line = visible_line(" ".join(text.split()))
    return line if len(line) <= _CHARACTERS else f"{line[: _CHARACTERS - 1]}…"


def _left_alone(target: FileTarget) -> str:
    return f"leave alone {visible_line(target.path)}: {target.trouble}"


def _limited(lines: list[str]) -> list[str]:
    more = len(lines) - _LINES
    return lines if more <= 0 else [*lines[:_LINES], f"… and {more:,} more"]
