"""A server made with the official SDK, for every way to reach it. As a program it speaks on its pipes."""

import asyncio

from mcp.server.mcpserver import Context, MCPServer


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

    return server


if __name__ == "__main__":
    make_server().run()
