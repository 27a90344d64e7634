"""Kinds of helpers: `agents/NAME.md` in the config folder, and in `.agents` and `.claude` of a project.

A kind says what a helper is told besides, which model it has, and which tools it may use: those and no others. It never
has a tool that a plain helper has not, and whatever it calls is judged as any call is. One of a project is content: it
is listed without trust, marked as the project's, and its model counts only where the user has trusted that.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from dragoman.coder.sandbox import PREFIX
from dragoman.coder.tagged_text import wrap_in_tag
from dragoman.coder.tool_names import our_names
from dragoman.host.markdown_files import (
    NAME,
    MarkdownFile,
    own_markdown,
    project_markdown,
    split_front_matter,
    words_in,
)
from dragoman.host.text import visible_line
from dragoman.host.trusted_parts import chosen_model

# What the model is told of each kind; all of them are part of every request.
DESCRIPTION_CHARACTERS: Final = 200
MOST_KINDS: Final = 50
# What a helper is called that is of no kind.
PLAIN: Final = "agent"


class HelperKind(NamedTuple):
    """A kind of helper. `tools` are the names of its tools, None: all that a helper has; `model` may be empty.

    `without` are tools that it has not. `project` is the folder that it is from; empty: it is the user's own.
    """

    name: str
    description: str
    tools: frozenset[str] | None
    model: str
    instructions: str
    without: frozenset[str] = frozenset()
    project: str = ""

    def has(self, tool: str) -> bool:
        """Return whether it may use a tool; one of the sandbox is called as the plain one."""
        plain = tool.removeprefix(PREFIX)
        if _is_named(tool, self.without) or _is_named(plain, self.without):
            return False
        return self.tools is None or _is_named(tool, self.tools) or _is_named(plain, self.tools)

    def told(self) -> str:
        """Return what a helper of this kind is told in its system prompt; empty: nothing."""
        if not self.instructions:
            return ""
        text = self.instructions
        if self.project:
            text = f"A file of the project says so; it permits nothing.\n{wrap_in_tag('kind', text)}".rstrip("\n")
        return f"\n\n# What kind of helper you are\n\n{text}\n"

    @property
    def about(self) -> str:
        """What the model is told of the kind before it chooses one."""
        return f"(of the project) {self.description}".strip() if self.project else self.description


def _is_named(tool: str, names: frozenset[str]) -> bool:
    """Return whether names have a tool, or the whole MCP server that it is from."""
    return tool in names or (tool.startswith("mcp__") and tool.rpartition("__")[0] in names)


def read_helper_kinds(
    folder: str, projects: Sequence[str] = (), refusal: Callable[[MarkdownFile, str], str] = lambda file, text: ""
) -> dict[str, HelperKind]:
    """Return the kinds in the user's folder and in projects, nearest first, by name; the first of a name counts.

    `refusal` says why the model of a project's file does not count. What cannot be read is left out. Blocks.
    """
    found: dict[str, HelperKind] = {}
    for kind in chain(_kinds(own_markdown(folder), refusal), *(_of_project(one, refusal) for one in projects)):
        if NAME.fullmatch(kind.name) and kind.name != PLAIN and len(found) < MOST_KINDS:
            found.setdefault(kind.name, kind)
    return found


_Refusal = Callable[[MarkdownFile, str], str]


def _of_project(project: str, refusal: _Refusal) -> Iterator[HelperKind]:
    return _kinds(project_markdown(project, "agents"), refusal)


def _kinds(files: Iterable[MarkdownFile], refusal: _Refusal) -> Iterator[HelperKind]:
    for file in files:
        fields, body = split_front_matter(file.text)
        model = chosen_model(fields)
        yield HelperKind(
            fields.get("name") or file.name.rpartition(":")[2],
            visible_line(" ".join(fields.get("description", "").split()))[:DESCRIPTION_CHARACTERS],
            # A list that names nothing is an empty one: a mistake in it must not give a helper more.
            _tools(fields["tools"]) if "tools" in fields and fields["tools"].strip() != "*" else None,
            "" if model and refusal(file, file.text) else model,
            body.strip(),
            _tools(fields.get("disallowedTools", "")),
            file.project,
        )


def _tools(listed: str) -> frozenset[str]:
    return frozenset(name for word in words_in(listed) for name in our_names(word))
