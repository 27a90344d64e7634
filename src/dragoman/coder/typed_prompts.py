"""A slash command that stands in a file, from the word that was typed to the prompt for the model.

The file is read when it is used. What of a project's file does more than tell something counts only when the user has
trusted exactly that (`trusted_parts`): without trust no command line of it runs, and the prompt is not sent without
what it lacks. A command line is a call of `bash` like one of the model: shown, judged by the mode and the rules, asked
about, confined, recorded; what it prints, or why it did not run, takes its place.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from dragoman.coder.project_trust import ProjectTrust
from dragoman.coder.prompt_expansion import expand
from dragoman.coder.prompt_files import PromptFile
from dragoman.coder.tools.result_text import cut
from dragoman.host.markdown_files import split_front_matter
from dragoman.host.paths import PathRefused, Roots
from dragoman.host.text import visible_line
from dragoman.host.trusted_parts import chosen_model, embedded_commands
from dragoman.vocabulary.content import Content, ResourceLink, Text

# What all command lines of one prompt may print into it.
OUTPUT_CHARACTERS: Final = 100_000
# Files that are named with `@` in one.
MOST_MENTIONS: Final = 20


class TypedCommand(NamedTuple):
    """What was typed: a file by its name, and the words behind it."""

    file: PromptFile
    arguments: str


class OpenedCommand(NamedTuple):
    """A file as it is now. `refusal`: why it cannot be used, `remark`: what of it is not used, both in sentences."""

    text: str = ""
    model: str = ""
    refusal: str = ""
    remark: str = ""


def open_command(typed: TypedCommand, trust: ProjectTrust) -> OpenedCommand:
    """Read the file of a command, and look whether the user trusts what it runs and chooses. Blocks."""
    file, name = typed.file.file, typed.file.name
    try:
        text = file.read_again()
    except OSError:
        return OpenedCommand(refusal=f"/{name} was not run: {visible_line(file.path)} cannot be read any more.")
    fields, body = split_front_matter(text)
    model, reason = chosen_model(fields), trust.refusal(file, text)
    if reason and any(embedded_commands(body)):
        return OpenedCommand(refusal=f"/{name} was not run, because it runs commands and {reason}")
    if reason:
        return OpenedCommand(text, remark=f"/{name} works with the model of the session and not with its own: {reason}")
    return OpenedCommand(text, model)


async def prompt_of(
    typed: TypedCommand, text: str, roots: Roots, session_id: str, run: Callable[[str], Awaitable[str]]
) -> list[Content]:
    """Return the prompt that a file becomes. `run` runs a command line and returns what is put in its place."""
    file = typed.file
    variables = {
        "CLAUDE_PROJECT_DIR": file.file.project or roots.real[0],
        "CLAUDE_SESSION_ID": session_id,
        **({"CLAUDE_SKILL_DIR": file.folder} if file.folder else {}),
    }
    expanded = expand(text, typed.arguments, variables)
    parts: list[str] = []
    room = OUTPUT_CHARACTERS
    for piece in expanded.pieces:
        words = cut(await run(piece.text), max(room, 1_000)) if piece.is_command else piece.text
        room -= len(words) if piece.is_command else 0
        parts.append(words)
    return [Text("".join(parts).strip()), *await asyncio.to_thread(_links, expanded.mentions, roots)]


def _links(mentions: Sequence[str], roots: Roots) -> list[Content]:
    """Return links to the files of the workspace among these paths; what is none stays a word of the text."""
    found: list[Content] = []
    for path in mentions[:MOST_MENTIONS]:
        try:
            place = roots.place(path)
        except (PathRefused, ValueError):
            continue
        if os.path.isfile(place.path):
            found.append(ResourceLink(path, Path(place.path).as_uri()))
    return found
