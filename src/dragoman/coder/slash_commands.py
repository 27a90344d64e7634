"""Slash commands: ours, those that stand in files (`prompt_files`), and the prompts of MCP servers.

What ours say, the model does not hear.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.coder.prompt_files import PromptFiles
from dragoman.vocabulary.options import AnyCommand, Command, CommandInput

if TYPE_CHECKING:
    from dragoman.coder.mcp.servers import TypedPrompt

# The key of `_meta`, of the command `/mcp`, of what may be typed behind an `@`: [["docs:file:///guide", "Guide"], …].
MENTIONS: Final = "dragoman/mentions"
# More than a menu shows; each is sent with every list of commands.
_MOST_MENTIONS: Final = 200
_MENTION_CHARACTERS: Final = 300
BUILT_IN: Final[dict[str, tuple[str, str]]] = {
    "help": ("What there is to say and to do here", ""),
    "compact": ("Sum up the conversation, to make room in the model's window", "what to keep above all"),
    "context": ("How full the model's window is, and with what", ""),
    "cost": ("What the session has cost, helpers and summaries included", ""),
    "permissions": ("List what you have always allowed or forbidden; `revoke N` removes a rule", "revoke N"),
    "mode": ("Show or change what the agent may do", "mode"),
    "model": ("Show or change the model", "provider/name"),
    "mcp": ("The MCP servers of this session; `refresh` shows the model the tools they have now", "refresh"),
    "tasks": ("List the commands that run in the background; `stop ID` ends one", "stop ID"),
    "plan": ("Make a plan and change nothing", "what to plan"),
    "sandbox": (
        "What mode sandbox has changed and not applied; `apply` asks about it again, `discard` throws it away",
        "apply or discard",
    ),
    "undo": ("Take back the file changes of the last turn that made any", ""),
    "rewind": (
        "Go back to before a prompt, with files and conversation; shows what would happen first",
        "N files|conversation, or undo",
    ),
    "clear": ("Let the model forget the conversation; the transcript stays", ""),
}

# Those that change files of the workspace.
CHANGING: Final = frozenset({"undo", "sandbox"})


def available_commands(
    files: PromptFiles, prompts: "Iterable[TypedPrompt]" = (), mentions: Sequence[tuple[str, str]] = ()
) -> list[AnyCommand]:
    """Return every command, as a client shows it.

    `prompts` are those of MCP servers. `mentions` are the resources of servers, each with its name: the command `/mcp`
    carries them for clients that complete words.
    """
    built_in = [
        Command(name, description, CommandInput(hint) if hint else UNSET)
        for name, (description, hint) in BUILT_IN.items()
    ]
    short = [[word, name] for word, name in mentions if len(word) <= _MENTION_CHARACTERS][:_MOST_MENTIONS]
    if short:
        built_in = [replace(one, meta={MENTIONS: short}) if one.name == "mcp" else one for one in built_in]
    return [
        *built_in,
        *(Command(one.name, one.about, CommandInput(one.hint or "arguments")) for one in files.commands.values()),
        *(_of_server(one) for one in prompts if one.name not in files.commands),
    ]


def _of_server(one: "TypedPrompt") -> Command:
    hint = one.prompt.hint
    return Command(
        one.name, f"{one.prompt.description} (MCP server {one.label})", CommandInput(hint) if hint else UNSET
    )
