"""The coding agent's tools, modes and slash commands, from their own tables."""

from tools.reference.markdown import table


def tools_page() -> str:
    from dragoman.coder.modes import MODES
    from dragoman.coder.slash_commands import BUILT_IN
    from dragoman.coder.tools.background_tools import BashOutput, BashStop
    from dragoman.coder.tools.bash import Bash
    from dragoman.coder.tools.diagnostics import Diagnostics
    from dragoman.coder.tools.plan_and_ask import AskUser, UpdatePlan
    from dragoman.coder.tools.read import ReadFile
    from dragoman.coder.tools.search import Glob, Grep, ListFiles
    from dragoman.coder.tools.subagent import Delegate, agent_schema
    from dragoman.coder.tools.web_fetch import WebFetch
    from dragoman.coder.tools.web_search import WebSearch
    from dragoman.coder.tools.write import EditFile, WriteFile

    files = (ReadFile, ListFiles, Glob, Grep, WriteFile, EditFile)
    kinds = (*files, Bash, BashOutput, BashStop, Diagnostics, WebFetch, WebSearch, Delegate, UpdatePlan, AskUser)
    # That of tool `agent` depends on the model; here it is whole.
    schemas = {one.name: agent_schema(("one", "other")) if one is Delegate else one.schema for one in kinds}
    tools = [
        (f"`{one.name}({inputs(schemas[one.name])})`", one.kind, f"`{one.does}`", one.description) for one in kinds
    ]
    modes = [(f"`{name}`", mode.description, *mode.policy[:6]) for name, mode in MODES.items()]
    commands = [(f"`/{name}{f' {hint}' if hint else ''}`", about) for name, (about, hint) in BUILT_IN.items()]
    parts = [
        "# Tools, modes and slash commands",
        "Of Dragoman's own coding agent.",
        "## Tools",
        (
            "Names and inputs are a contract; an input with a question mark may be left out. Paths are absolute, or "
            "relative to the working folder. The tools of an MCP server are named `mcp__SERVER__TOOL`. In mode "
            "`sandbox` the model sees `sandbox_…` tools in place of those for files and commands."
        ),
        table(("tool", "kind", "act", "what it does"), tools),
        (
            "After a refusal the model is told `Permission denied.` and the reason. `agent` has `name` only where "
            "there are [kinds of helpers](../how-to/helpers.md). `web_search` is offered where the model's provider "
            "[searches](../how-to/models.md#search-the-web), `diagnostics` where there is a "
            "[language server](../how-to/diagnostics.md)."
        ),
        "## Modes",
        (
            "What a mode says about each kind of act. `foreign` is the tool of an MCP server, `sandboxed` is what "
            "happens in a view of the workspace. What a mode denies is "
            "not offered to the model, and is refused if it is called."
        ),
        table(("mode", "", "read", "edit", "execute", "fetch", "foreign", "sandboxed"), modes),
        (
            "In `workspace-write` a command that is known to only look needs no question. Protected names ask in every "
            "mode but `full-access`. On the command line `full` is another name of `full-access`."
        ),
        "## Slash commands",
        table(("command", "what it does"), commands),
        "Your own are Markdown files: [how](../how-to/commands.md).",
    ]
    return "\n\n".join(parts) + "\n"


def inputs(schema: object) -> str:
    assert isinstance(schema, dict)
    return ", ".join(name if name in schema["required"] else f"{name}?" for name in schema["properties"])
