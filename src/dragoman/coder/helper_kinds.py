"""Kinds of helpers of the user's own: `agents/NAME.md` in the config folder.

A kind says what a helper is told besides, which model it has, and which tools it may use: those and no others. It never
has a tool that a plain helper has not, and whatever it calls is judged as any call is.
"""

from typing import Final, NamedTuple

from dragoman.coder.markdown_files import NAME, read_folder, split_front_matter
from dragoman.coder.sandbox import PREFIX

# What the model is told of each kind; all of them are part of every request.
DESCRIPTION_CHARACTERS: Final = 200
MOST_KINDS: Final = 50
# What a helper is called that is of no kind.
PLAIN: Final = "agent"


class HelperKind(NamedTuple):
    """A kind of helper. `tools` are the names of its tools, None: all that a helper has; `model` may be empty."""

    name: str
    description: str
    tools: frozenset[str] | None
    model: str
    instructions: str

    def has(self, tool: str) -> bool:
        """Return whether it may use a tool; one of the sandbox is called as the plain one."""
        return self.tools is None or tool in self.tools or tool.removeprefix(PREFIX) in self.tools


def read_helper_kinds(folder: str) -> dict[str, HelperKind]:
    """Return the kinds in a folder, by name. What cannot be read is left out. Blocks: for a thread."""
    found: dict[str, HelperKind] = {}
    for file_name, text in read_folder(folder):
        kind = _kind(file_name, text)
        if NAME.fullmatch(kind.name) and kind.name != PLAIN and len(found) < MOST_KINDS:
            found.setdefault(kind.name, kind)
    return found


def _kind(file_name: str, text: str) -> HelperKind:
    fields, body = split_front_matter(text)
    listed = fields.get("tools")
    # A list that names nothing is an empty one: a mistake in it must not give a helper more.
    tools = None if listed is None else frozenset(filter(None, (one.strip(" []\"'") for one in listed.split(","))))
    description = " ".join(fields.get("description", "").split())[:DESCRIPTION_CHARACTERS]
    return HelperKind(fields.get("name") or file_name, description, tools, fields.get("model", ""), body.strip())
