"""MCP servers as tools of the coding agent.

`McpServers` owns those of one session. The official `mcp` package is imported when a session has servers, in a thread
and not before: everything that imports it stands in `sdk/`, and nothing outside of this package imports that.

What a server says is data. Its tools are named so that they cannot be taken for ours, its words are cut and escaped,
its hints about itself decide nothing, and a tool that is defined anew has to be approved anew.
"""

from dragoman.coder.mcp.config import Config, describe, from_config
from dragoman.coder.mcp.servers import McpServers, McpServerStatus

__all__ = ["Config", "McpServerStatus", "McpServers", "describe", "from_config"]
