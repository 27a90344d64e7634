"""Slash commands: ours, and the user's own as Markdown files. What ours say, the model does not hear."""

from typing import Final, NamedTuple

from msgspec import UNSET

from dragoman.host.markdown_files import own_markdown, split_front_matter
from dragoman.vocabulary.options import AnyCommand, Command, CommandInput

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
    return {one.name: _own(one.name, one.text) for one in own_markdown(folder) if one.name not in BUILT_IN}


def _own(name: str, text: str) -> UserCommand:
    fields, text = split_front_matter(text)
    first = next((line.strip("# ").strip() for line in text.splitlines() if line.strip()), name)
    return UserCommand(name, fields.get("description") or first[:100], text.strip())
