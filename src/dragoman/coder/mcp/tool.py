"""A server's tool behind our contract. What is approved is this tool as it was defined then, of this very server."""

from typing import Any

from dragoman.agent.tool import ToolCall
from dragoman.coder.mcp.definition import Definition
from dragoman.coder.mcp.server import McpServerConnection, ServerUnavailable
from dragoman.coder.permissions import Approved, JudgedCall
from dragoman.coder.tools.contract import BadInput, Preview, ToolContext, ToolOutcome
from dragoman.coder.tools.result_text import title_text
from dragoman.permissions.facts import Action, ActionKind

_TITLE_CHARACTERS = 120


class McpTool:
    """One tool of one MCP server. The server checks its arguments; its annotations are not used in decisions."""

    kind = "other"
    does: ActionKind = "foreign"

    def __init__(
        self, name: str, definition: Definition, server: McpServerConnection, *, guarded: bool = False
    ) -> None:
        """`guarded`: its server is a program that a client has brought, which no confined token may use."""
        self._guarded = guarded
        self.name = name
        self.description = definition.description
        self.schema: dict[str, Any] = definition.schema
        self._tool = definition.tool
        self._server = server

    def check(self, call: JudgedCall) -> None:
        """Accept every input: the server checks its own."""

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        try:
            definition = await self._server.definition(self._tool)
        except ServerUnavailable as gone:
            raise BadInput(str(gone)) from None
        title = title_text(f"{self._server.name}: {self._tool}", _TITLE_CHARACTERS)
        return Preview(title, [self._act(definition)], stamp=definition.digest)

    async def run(self, approved: Approved, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        call = approved.call
        try:
            definition = await self._server.definition(self._tool)
        except ServerUnavailable as gone:
            return ToolOutcome(str(gone), failed=True)
        if list(call.acts) != [self._act(definition)]:
            return ToolOutcome(
                "The MCP server has defined this tool anew since it was approved. JudgedCall it again.", True
            )
        return await self._server.call(self._tool, call.input)

    def _act(self, definition: Definition) -> Action:
        return Action("foreign", f"{self.name} {definition.digest}", guarded=self._guarded)
