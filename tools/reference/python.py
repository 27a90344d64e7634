"""Signatures and docstrings, as they are written in the source."""

import ast
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Final, NamedTuple

from tools.reference.markdown import cell
from tools.reference.source import SOURCE


class Shown(NamedTuple):
    """A class or function to be shown; of a class those members that are for users, all if none is named.

    `made`: its users make it themselves, so the constructor is theirs to know.
    """

    module: str
    name: str
    members: tuple[str, ...] = ()
    made: bool = False


AGENTS: Final = (
    Shown(
        "dragoman",
        "Agent",
        (
            *("prompt", "command", "session_opened", "session_closed", "option_changed", "extension", "notification"),
            *("login", "logout", "auth_status", "run", "serve_stdio", "serve"),
        ),
        made=True,
    ),
    Shown(
        "dragoman.agent.session",
        "Session",
        (
            *(
                "roots",
                "mcp_servers",
                "client",
                "options",
                "commands",
                "title",
                "usage",
                "say",
                "think",
                "emit",
                "tool",
                "terminal",
                "plan",
                "notice",
                "show_usage",
            ),
            *("set_title", "set_commands", "set_options", "option", "queued_prompts", "ask_permission", "permissions"),
            *("forget_permissions", "ask_user"),
            *("read_text_file", "write_text_file", "client_terminal", "remember", "recall", "request", "notify"),
        ),
    ),
    Shown("dragoman.agent.session", "Prompt"),
    Shown("dragoman.agent.session", "Permission"),
    Shown("dragoman.agent.permission", "RememberedPermission"),
    Shown("dragoman.agent.tool", "ToolCall", ("update", "add", "diff", "end")),
    Shown("dragoman.agent.tool", "DisplayTerminal"),
    Shown("dragoman.agent.client_services", "ClientTerminal"),
    Shown("dragoman.vocabulary.options", "Select", ("choices",), made=True),
    Shown("dragoman.vocabulary.options", "Choice", made=True),
    Shown("dragoman.vocabulary.options", "ChoiceGroup", made=True),
    Shown("dragoman.vocabulary.options", "Toggle", made=True),
    Shown("dragoman.vocabulary.options", "PlanEntry", made=True),
    Shown("dragoman.vocabulary.tools", "Location", made=True),
    Shown("dragoman.vocabulary.services", "PermissionOption", made=True),
    Shown("dragoman.store.sqlite", "SqliteStore", ("close",), made=True),
)
CLIENTS: Final = (
    Shown("dragoman", "connect"),
    Shown(
        "dragoman.client.connect",
        "Client",
        (
            *("close", "state", "stderr_tail", "new_session", "resume_session", "load_session", "list_sessions"),
            *("login", "logout", "request", "notify"),
        ),
    ),
    Shown(
        "dragoman.client.conversation",
        "Conversation",
        (
            *("prompt", "ask", "cancel", "set_option", "set_mode", "set_model", "set_title", "cancel_tool_call"),
            *("fork", "close"),
        ),
    ),
    Shown("dragoman.client.turn", "Turn"),
    Shown("dragoman", "connect_sync"),
    Shown("dragoman.client.workspace", "Workspace", ("callbacks", "close"), made=True),
    Shown("dragoman.client.permission_handler", "PermissionHandler", ("permits", "new_turn"), made=True),
    Shown("dragoman.client.permission_policy", "PermissionPolicy", made=True),
    Shown("dragoman.permissions.rule", "PermissionRule", made=True),
    Shown("dragoman.client.registry", "AgentRegistry"),
    Shown("dragoman.client.timeouts", "Timeouts", made=True),
)
TESTING: Final = tuple(
    Shown("dragoman.testing", name, made=True)
    for name in (
        *("pair", "ScriptedAgent", "ScriptedClient"),
        *("acp_pair", "scripted_agent", "scripted_client"),
    )
)

# A signature that is longer gets a line for each parameter.
ONE_LINE: Final = 90
Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_page(title: str, about: str, shown: Sequence[Shown]) -> str:
    parts = [f"# {title}", about]
    for one in shown:
        node = definition(one)
        parts.append(f"## {one.name}")
        parts.append(how_to_get(one, node))
        if isinstance(node, ast.ClassDef):
            parts += described_class(node, one)
        else:
            parts += described_function(node)
    return "\n\n".join(parts) + "\n"


def how_to_get(shown: Shown, node: ast.ClassDef | Function) -> str:
    """The import to write; a fixture is no function to call, and is had by naming it as a parameter."""
    if any(ast.unparse(one).startswith("pytest.fixture") for one in node.decorator_list):
        return f'A pytest fixture: `async def test_it({shown.name})`, with `pytest_plugins = ["{shown.module}"]`.'
    return f"`from {shown.module} import {shown.name}`"


def definition(shown: Shown) -> ast.ClassDef | Function:
    """Where it is written, which may be another module than the one it is imported from."""
    there = getattr(import_module(shown.module), shown.name)
    home = getattr(there, "__module__", shown.module)
    for module in (home, shown.module):
        file = SOURCE.parent / f"{module.replace('.', '/')}.py"
        tree = ast.parse(file.read_text(encoding="utf-8")) if file.exists() else ast.Module([], [])
        for node in tree.body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == shown.name:
                return node
    raise LookupError(f"{shown.module} has no {shown.name} with a source; tools/reference/python.py names it")


def described_class(node: ast.ClassDef, shown: Shown) -> Iterator[str]:
    functions = {one.name: one for one in node.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))}
    making = functions.get("__init__")
    if shown.made:
        yield code(f"class {node.name}{signature(making) if making else fields(node)}")
    yield from filter(None, [ast.get_docstring(node)])
    for name in shown.members or [name for name in functions if not name.startswith("_")]:
        if name not in functions:
            raise LookupError(f"{shown.name} has no {name}; tools/reference/python.py names it")
        yield f"### {name}"
        yield from described_function(functions[name])


def described_function(node: Function) -> Iterator[str]:
    names = {ast.unparse(one).split("(")[0] for one in node.decorator_list}
    if "property" in names:
        yield code(f"{node.name}: {ast.unparse(node.returns) if node.returns else 'object'}")
    else:
        word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
        result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        yield code(f"{word} {node.name}{signature(node)}{result}")
    yield from filter(None, [ast.get_docstring(node)])


def signature(node: Function) -> str:
    """The parameters as they are written, without `self`; a line each where there are many."""
    given = node.args
    if given.args and given.args[0].arg in ("self", "cls"):
        given.args.pop(0)
    text = ast.unparse(given)
    if len(text) <= ONE_LINE:
        return f"({text})"
    bare = len(given.args) - len(given.defaults)
    lines = [ast.unparse(one) for one in given.args[:bare]]
    lines += [
        f"{ast.unparse(one)} = {ast.unparse(value)}"
        for one, value in zip(given.args[bare:], given.defaults, strict=True)
    ]
    if given.vararg is not None:
        lines.append(f"*{ast.unparse(given.vararg)}")
    elif given.kwonlyargs:
        lines.append("*")
    for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        lines.append(ast.unparse(one) if value is None else f"{ast.unparse(one)} = {ast.unparse(value)}")
    if given.kwarg is not None:
        lines.append(f"**{ast.unparse(given.kwarg)}")
    return "(\n" + "".join(f"    {line},\n" for line in lines) + ")"


def fields(node: ast.ClassDef) -> str:
    """The fields of a data class, as its constructor takes them."""
    found = [ast.unparse(one) for one in node.body if isinstance(one, ast.AnnAssign)]
    return f"({', '.join(found)})" if found else ""


def code(text: str) -> str:
    return f"```python\n{text.replace(chr(39) + chr(39), chr(34) * 2)}\n```"


def events_page() -> str:
    tree = ast.parse((SOURCE / "vocabulary" / "events.py").read_text(encoding="utf-8"))
    parts = [
        "# Python: events",
        (
            "`dragoman.vocabulary.events`: what an agent tells about a session. They are frozen values, and the same "
            "whatever version of the protocol is spoken. The middle column is the event's name in version 2, and the "
            "`type` of a line of `dragoman run --stream-json`."
        ),
    ]
    rows = ["| class | name | what it is | fields |", "|---|---|---|---|"]
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            tags = [ast.literal_eval(one.value) for one in node.keywords if one.arg == "tag"]
            own = [ast.unparse(one.target) for one in node.body if isinstance(one, ast.AnnAssign)]
            named_fields = ", ".join(f"`{name}`" for name in own if name != "ClassVar")
            about = cell(ast.get_docstring(node) or "")
            rows.append(f"| `{node.name}` | {f'`{tags[0]}`' if tags else ''} | {about} | {named_fields} |")
    return "\n\n".join([*parts, "\n".join(rows)]) + "\n"


def errors_page() -> str:
    tree = ast.parse((SOURCE / "errors.py").read_text(encoding="utf-8"))
    first, _, rest = (ast.get_docstring(tree) or "").partition("\n\n")
    drawing, _, after = rest.partition("\n\n")
    parts = [
        "# Python: errors",
        f"`dragoman.errors`. {first}",
        f"```text\n{drawing}\n```",
        after,
        "## Codes on the wire",
    ]
    rows = ["| code | name |", "|---|---|"]
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and node.value is not None and ast.unparse(node.value).startswith("-32"):
            rows.append(f"| `{ast.unparse(node.value)}` | `{ast.unparse(node.target)}` |")
    return "\n\n".join([*parts, "\n".join(rows)]) + "\n"
