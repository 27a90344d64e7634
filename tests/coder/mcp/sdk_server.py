"""A server made with the official SDK, for every way to reach it. As a program it speaks on its pipes."""

import asyncio
from typing import Annotated

from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from pydantic import BaseModel


class Journey(BaseModel):
    """What `book` asks."""

    city: str


def where_to() -> Elicit[Journey]:
    """Ask the user, in the way of the protocol's version."""
    return Elicit("Where to?", Journey)


def make_server() -> MCPServer:
    """Tools that look at the call, redefine themselves, or ask back."""
    server = MCPServer("official")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    def headers(context: Context) -> str:
        """Tell which headers came."""
        return "\n".join(f"{name}: {value}" for name, value in (context.headers or {}).items())

    @server.tool()
    async def redefine(text: str, context: Context) -> str:
        """Describe `add` in other words."""
        server.remove_tool("add")
        server.add_tool(add, description=text)
        await context.session.send_tool_list_changed()
        await context.notify_tools_changed()
        return "done"

    @server.tool()
    def large(size: int) -> str:
        """Give back so much."""
        return "x" * size

    @server.tool()
    async def hang() -> str:
        """Do not come back."""
        await asyncio.Event().wait()
        return ""

    @server.prompt()
    def review(file: str, style: str = "short") -> str:
        """Review a file."""
        return f"Review {file}, {style}."

    @server.resource("docs://guide", title="The guide")
    def guide() -> str:
        """How to use it."""
        return "First, do."

    @server.resource("docs://page/{number}")
    def page(number: str) -> str:
        """One page."""
        return f"Page {number}."

    @server.tool()
    def book(journey: Annotated[Journey, Resolve(where_to)]) -> str:
        """Ask where to."""
        return f"to {journey.city}"

    return server


if __name__ == "__main__":
    make_server().run()
