"""What the user types of a server: `@server:uri` reads a resource, `/mcp__server__prompt` fetches a prompt.

Both are calls of the server, so they are shown, judged, asked about and recorded like those of its tools. The model is
not offered them: it has no tool of these names, which no server's tool can have either. What comes is content for the
prompt, bounded and spelled out (`sdk/results`).
"""

import hashlib
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, NamedTuple

from dragoman.agent.tool import ToolCall
from dragoman.coder.mcp.config import identity
from dragoman.coder.mcp.server import McpServerConnection
from dragoman.coder.permissions import Approved, JudgedCall
from dragoman.coder.tools.contract import BadInput, Preview, ToolContext, ToolOutcome
from dragoman.coder.tools.result_text import title_text
from dragoman.permissions.facts import Action, ActionKind

# Resources of one prompt; more do not fit into a model's window.
MOST_MENTIONS: Final = 20
_TITLE_CHARACTERS: Final = 120
_DIGEST_CHARACTERS: Final = 32
_MENTION: Final = re.compile(r'(?:(?<=\s)|^)@(?:"([^"\n]+)"|(\S+))')
# What may stand behind an address in a sentence, and is not its end.
_PUNCTUATION: Final = ".,;:!?)]}'\""


class ResourceMention(NamedTuple):
    """A resource that a prompt names: the label of its server, and its address there."""

    label: str
    uri: str


def mentions_in(text: str, labels: Collection[str], uris: Callable[[str], Collection[str]]) -> list[ResourceMention]:
    """Return the resources that a text names; what names no server of the session stays a word.

    `uris` has the addresses that the server of a label lists: of these one may end like a sentence does.
    """
    found: dict[ResourceMention, None] = {}
    for match in _MENTION.finditer(text):
        label, colon, uri = (match[1] or match[2]).partition(":")
        if not colon or label not in labels:
            continue
        known = uris(label)
        if match[1] is None and uri not in known:
            uri = uri.rstrip(_PUNCTUATION)
        if uri and len(found) < MOST_MENTIONS:
            found[ResourceMention(label, uri)] = None
    return list(found)


class _OfServer:
    """What both have: they are about one server, and judged as what is foreign."""

    does: ActionKind = "foreign"
    # Not offered to a model.
    description = ""
    schema: Final[dict[str, Any]] = {}

    def __init__(self, name: str, server: McpServerConnection, *, guarded: bool) -> None:
        self.name = name
        self._server = server
        self._guarded = guarded

    def _preview(self, what: str) -> Preview:
        # What is always allowed is for this very program or address, and for no other under its name.
        digest = hashlib.sha256("\0".join(identity(self._server.config)).encode("utf-8", "surrogatepass")).hexdigest()
        act = Action("foreign", f"{self.name} {digest[:_DIGEST_CHARACTERS]}", guarded=self._guarded)
        return Preview(title_text(f"{self._server.name}: {what}", _TITLE_CHARACTERS), [act])


class McpResourceTool(_OfServer):
    """Reads a resource of one server."""

    kind = "read"

    def check(self, call: JudgedCall) -> None:
        """Accept every address: the server knows which it has."""

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        return self._preview(str(call.input["uri"]))

    async def run(self, approved: Approved, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        return await self._server.resource(str(approved.call.input["uri"]))


class McpPromptTool(_OfServer):
    """Fetches a prompt of one server."""

    kind = "fetch"

    def check(self, call: JudgedCall) -> None:
        """Raise `BadInput` for a prompt that is not there any more, or that lacks a value."""
        self._values(call)

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        return self._preview(" ".join([str(call.input["prompt"]), *self._values(call).values()]))

    async def run(self, approved: Approved, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        return await self._server.prompt(str(approved.call.input["prompt"]), self._values(approved.call))

    def _values(self, call: JudgedCall) -> dict[str, str]:
        prompt = self._server.catalog.prompts.get(str(call.input["prompt"]))
        if prompt is None:
            raise BadInput(f"The MCP server {self._server.name} does not have this prompt any more.")
        try:
            return prompt.values(str(call.input["arguments"]))
        except ValueError as error:
            raise BadInput(f"The prompt was not fetched: {error}.") from None


def resource_tool_name(label: str) -> str:
    """Return the name of what reads the resources of a server."""
    return f"mcp__{label}__@resource"


def prompt_tool_name(label: str) -> str:
    """Return the name of what fetches the prompts of a server."""
    return f"mcp__{label}__@prompt"


def typed_tools(
    label: str, server: McpServerConnection, *, guarded: bool
) -> "Sequence[McpResourceTool | McpPromptTool]":
    """Return both for one server."""
    return (
        McpResourceTool(resource_tool_name(label), server, guarded=guarded),
        McpPromptTool(prompt_tool_name(label), server, guarded=guarded),
    )
