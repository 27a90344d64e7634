"""What of a project's Markdown files and hooks does more than tell the model something: the part that trust is about.

The words of a command, a skill or a kind of helper are content, as those of AGENTS.md are, and count without trust. A
command line in them (`` !`git diff` ``), and the model that they choose, do not before the user has trusted exactly
these; nor do hooks. So trust names for each file these parts alone, in one canonical form: its prose may change.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from dragoman.host.markdown_files import project_markdown, split_front_matter
from dragoman.host.regular_file import read_whole

# Where a project has hooks.
HOOK_FILES: Final = (".agents/hooks.json", ".claude/settings.json")
HOOK_BYTES: Final = 256 * 1024
KINDS: Final = ("commands", "skills", "agents")
# Claude's names for models, which say nothing to other providers: the session's model.
OWN_MODELS: Final = frozenset({"", "inherit", "default", "sonnet", "opus", "haiku", "opusplan", "best", "fable"})
# At the beginning of a line or behind a blank; a block of lines between fences.
_EMBEDDED: Final = re.compile(
    r"^```!\n(?P<block>.*?)^```[ \t]*$|(?:(?<=\s)|^)!`(?P<line>[^`\n]+)`", re.MULTILINE | re.DOTALL
)
# More of them in one file is a script.
MOST_EMBEDDED: Final = 20


class Embedded(NamedTuple):
    """A command line in a text, between `start` and `end`."""

    start: int
    end: int
    line: str


def embedded_commands(body: str) -> Iterator[Embedded]:
    """Yield the command lines that a text wants replaced by what they print, in their order."""
    for found in _EMBEDDED.finditer(body):
        line = (found["block"] if found["block"] is not None else found["line"]).strip()
        if line:
            yield Embedded(found.start(), found.end(), line)


def chosen_model(fields: Mapping[str, str]) -> str:
    """Return the model that front matter chooses; empty: the session's."""
    model = fields.get("model", "").strip()
    return "" if model.lower() in OWN_MODELS else model


def trusted_part(text: str) -> bytes:
    """Return what of a Markdown file needs trust; nothing: its words alone."""
    fields, body = split_front_matter(text)
    commands, model = [one.line for one in embedded_commands(body)], chosen_model(fields)
    if not commands and not model:
        return b""
    return _canonical({"commands": commands, "model": model})


def read_part(data: bytes) -> tuple[list[str], str]:
    """Return the command lines and the model of a `trusted_part`."""
    part = json.loads(data)
    return part["commands"], part["model"]


def hooks_object(name: str, document: Any) -> Any:
    """Return the hooks of a file, by event; None: it has none. One that is called `hooks.json` may be that object."""
    if not isinstance(document, dict):
        return None
    return document.get("hooks", document if name.endswith("hooks.json") else None)


def hooks_part(name: str, data: bytes) -> bytes:
    """Return the hooks of a file in one form; nothing: it has none. What is no JSON is taken as it is."""
    try:
        hooks = hooks_object(name, json.loads(data))
    except (ValueError, RecursionError):
        return data
    return _canonical({"hooks": hooks}) if hooks else b""


def covered_parts(folder: str) -> dict[str, bytes]:
    """Return what of a project's hooks and Markdown needs trust, by file. `OSError` for hooks that cannot be read.

    Most projects have neither of the two folders, and cost two looks. Blocks.
    """
    found: dict[str, bytes] = {}
    for name in HOOK_FILES:
        try:
            part = hooks_part(name, read_whole(os.path.join(folder, name), HOOK_BYTES))
        except (FileNotFoundError, NotADirectoryError):
            continue
        if part:
            found[name] = part
    for kind in KINDS:
        for file in project_markdown(os.path.realpath(folder), kind):
            if part := trusted_part(file.text):
                found[file.place] = part
    return found


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=True).encode()
