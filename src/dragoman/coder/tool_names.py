"""What Claude Code calls our tools: files of its users name them so, in hooks, commands, skills and kinds of helpers.

Pure. A name that is not in the table is a name of ours, or of an MCP server's tool, which are called the same.
"""

from typing import Final

from dragoman.coder.sandbox import PREFIX

_PATCH: Final = "apply_patch"
# Theirs, and what of ours does that. A list that has writing or editing has `apply_patch` too.
OURS: Final[dict[str, tuple[str, ...]]] = {
    "Bash": ("bash",),
    "BashOutput": ("bash_output",),
    "KillShell": ("bash_stop",),
    "Read": ("read_file",),
    "LS": ("list_files",),
    "Glob": ("glob",),
    "Grep": ("grep",),
    "Edit": ("edit_file", _PATCH),
    "MultiEdit": ("edit_file", _PATCH),
    "Write": ("write_file", _PATCH),
    "WebFetch": ("web_fetch",),
    "WebSearch": ("web_search",),
    "Task": ("agent",),
    "Agent": ("agent",),
    "TodoWrite": ("update_plan",),
    "AskUserQuestion": ("ask_user",),
}
_THEIRS: Final = {
    ours: tuple(name for name, known in OURS.items() if ours in known) for known in OURS.values() for ours in known
}


def our_names(word: str) -> tuple[str, ...]:
    """Return our tools that a word of a list means: `Read`, `read_file`, `Bash(git add:*)`."""
    name = word.partition("(")[0]
    return OURS.get(name, (name,))


def plain_name(tool: str) -> str:
    """Return a tool's name without that of the sandbox around it."""
    return tool.removeprefix(PREFIX)


def names_of(tool: str) -> tuple[str, ...]:
    """Return every name that a tool may be meant by; the first is Claude's, where it has one."""
    plain = plain_name(tool)
    return tuple(dict.fromkeys((*_THEIRS.get(plain, ()), plain, tool)))
