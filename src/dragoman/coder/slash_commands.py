"""Slash commands: ours, and those that stand in files (`prompt_files`). What ours say, the model does not hear."""

from typing import Final

from msgspec import UNSET

from dragoman.coder.prompt_files import PromptFiles
from dragoman.vocabulary.options import AnyCommand, Command, CommandInput

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


def available_commands(files: PromptFiles) -> list[AnyCommand]:
    """Return every command, as a client shows it."""
    built_in = [
        Command(name, description, CommandInput(hint) if hint else UNSET)
        for name, (description, hint) in BUILT_IN.items()
    ]
    return [
        *built_in,
        *(Command(one.name, one.about, CommandInput(one.hint or "arguments")) for one in files.commands.values()),
    ]
