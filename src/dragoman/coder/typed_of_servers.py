"""What a prompt takes from MCP servers: resources that it names as `@server:uri`, and a prompt typed as a command.

Every one is a call in a toolbox of its own, behind the gate of the session. What is not allowed, or cannot be read, is
named in the prompt in place of its content: the model knows that something is missing.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dragoman.agent.session import new_id
from dragoman.coder.context import ContextToolCall, ContextToolResult
from dragoman.coder.toolbox import Toolbox
from dragoman.vocabulary.content import Content, Text

if TYPE_CHECKING:
    from dragoman.coder.mcp import McpServers

_REASON_CHARACTERS = 300


class ServerCommand(NamedTuple):
    """A prompt of a server as it was typed: its name here, and the words behind it."""

    name: str
    arguments: str


class FetchedPrompt(NamedTuple):
    """A prompt of a server; `refusal` is why there is none."""

    content: Sequence[Content] = ()
    refusal: str = ""


async def fetch_prompt(name: str, arguments: str, servers: "McpServers", toolbox: Toolbox) -> FetchedPrompt:
    """Fetch the prompt that a command is. Waits for the user's yes where one is needed."""
    from dragoman.coder.mcp.typed import prompt_tool_name

    found = next((one for one in servers.typed_prompts() if one.name == name), None)
    if found is None:
        return FetchedPrompt(refusal=f"There is no prompt /{name}. `/mcp` shows the servers and what they have.")
    fields: dict[str, object] = {"prompt": found.prompt.name, "arguments": arguments}
    result = await _run(toolbox, prompt_tool_name(found.label), fields)
    if result.failed:
        return FetchedPrompt(refusal=result.text)
    return FetchedPrompt([*result.content, *([Text(result.text)] if result.text else [])])


async def read_resources(texts: Iterable[str], servers: "McpServers", toolbox: Toolbox) -> list[Content]:
    """Read the resources that these words name, in their order. Waits for the user's yes where one is needed."""
    from dragoman.coder.mcp.typed import resource_tool_name

    found: list[Content] = []
    for label, uri in dict.fromkeys(one for text in texts for one in servers.mentions_in(text)):
        result = await _run(toolbox, resource_tool_name(label), {"uri": uri})
        if result.failed or not result.content:
            reason = " ".join((result.text or "it is empty").split())[:_REASON_CHARACTERS]
            found.append(Text(f"[@{label}:{uri} is not here: {reason}]"))
        else:
            found += [*result.content, *([Text(result.text)] if result.text else [])]
    return found


async def _run(toolbox: Toolbox, tool: str, fields: dict[str, object]) -> ContextToolResult:
    results: list[ContextToolResult] = []

    async def finished(result: ContextToolResult) -> None:
        results.append(result)

    await toolbox.run([ContextToolCall(new_id("call"), tool, fields)], finished)
    return results[0]
