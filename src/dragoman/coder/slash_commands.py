"""Slash commands: ours, and the user's own as Markdown files. What ours say, the model does not hear."""

import os
import re
from typing import Final, NamedTuple

from msgspec import UNSET

from dragoman.host.regular_file import read_regular
from dragoman.vocabulary.options import AnyCommand, Command, CommandInput

# More of the user's own are not a menu any more; a longer one is a book.
OWN_COMMANDS: Final = 200
OWN_BYTES: Final = 64 * 1024
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.IGNORECASE)
_ARGUMENTS: Final = "$ARGUMENTS"

BUILT_IN: Final[dict[str, tuple[str, str]]] = {
    "help": ("What there is to say and to do here", ""),
    "compact": ("Sum up the conversation, to make room in the model's window", "what to keep above all"),
    "context": ("How full the model's window is, and with what", ""),
    "permissions": ("List what you have always allowed or forbidden; `revoke N` removes a rule", "revoke N"),
    "mode": ("Show or change what the agent may do", "mode"),
    "model": ("Show or change the model", "provider/name"),
    "mcp": ("The MCP servers of this session", ""),
    "tasks": ("List the commands that run in the background; `stop ID` ends one", "stop ID"),
    "plan": ("Make a plan and change nothing", "what to plan"),
    "undo": ("Take back the file changes of the last turn that made any", ""),
    "clear": ("Let the model forget the conversation; the transcript stays", ""),
}


class UserCommand(NamedTuple):
    """A command of the user's own: a text to prompt with."""

    name: str
    description: str
    text: str

    def prompt(self, arguments: str) -> str:
        """Return the text with the arguments in their place."""
        if _ARGUMENTS in self.text:
            return self.text.replace(_ARGUMENTS, arguments)
        return f"{self.text}\n\n{arguments}".strip()


def available_commands(own: dict[str, UserCommand]) -> list[AnyCommand]:
    """Return every command, as a client shows it."""
    built_in = [
        Command(name, description, CommandInput(hint) if hint else UNSET)
        for name, (description, hint) in BUILT_IN.items()
    ]
    return [*built_in, *(Command(one.name, one.description, CommandInput("arguments")) for one in own.values())]


def read_user_commands(folder: str) -> dict[str, UserCommand]:
    """Return the user's commands in a folder: `NAME.md`. What cannot be read is left out. Blocks: for a thread."""
    found: dict[str, UserCommand] = {}
    try:
        files = sorted(name for name in os.listdir(folder) if name.endswith(".md"))[:OWN_COMMANDS]
    except OSError:
        return found
    for file in files:
        name = file.removesuffix(".md")
        if not _NAME.fullmatch(name) or name in BUILT_IN:
            continue
        try:
            text = read_regular(os.path.join(folder, file), OWN_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
        found[name] = _own(name, text)
    return found


def _own(name: str, text: str) -> UserCommand:
    description = ""
    if text.startswith("---\n") and "\n---\n" in text[4:]:
        head, _, text = text[4:].partition("\n---\n")
        fields = dict(line.partition(":")[::2] for line in head.splitlines())
        description = fields.get("description", "").strip().strip("\"'")
    first = next((line.strip("# ").strip() for line in text.splitlines() if line.strip()), name)
    return UserCommand(name, description or first[:100], text.strip())
