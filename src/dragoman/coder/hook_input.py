"""What hooks are told of a call, in Claude Code's names for tools and their inputs, and back. Pure.

Hooks that people have read `tool_input.file_path` and `tool_input.command`; our tools call some of that otherwise. So a
hook is told a call in those names, and an input that it gives in the place of one (`updatedInput`) may use them.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dragoman.coder.permissions import JudgedCall
from dragoman.coder.tool_names import names_of, plain_name

# Their names for our modes: of each the one that asks as much.
_MODES: Final = {
    "plan": "plan",
    "read-only": "plan",
    "workspace-write": "acceptEdits",
    "sandbox": "acceptEdits",
    "full-access": "bypassPermissions",
}
# By our tools: our names of inputs, and theirs.
_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "bash": {"background": "run_in_background"},
    "read_file": {"path": "file_path"},
    "write_file": {"path": "file_path"},
    "edit_file": {"path": "file_path"},
    "grep": {"case_insensitive": "-i", "max_results": "head_limit"},
    "agent": {"name": "subagent_type"},
    "update_plan": {"entries": "todos"},
}
_PATCH: Final = "apply_patch"


def permission_mode(mode: str) -> str:
    """Return the name that hooks know for a mode."""
    return _MODES.get(mode, "default")


def hook_calls(call: JudgedCall, folder: str) -> list[dict[str, Any]]:
    """Return a call as hooks are told it: `tool_name` and `tool_input`; of a patch for each of its files, so that a
    hook that guards a file sees it. `folder` is where relative paths begin."""
    tool = plain_name(call.tool)
    name = names_of(call.tool)[0]
    if tool == _PATCH:
        paths = list(dict.fromkeys(act.subject for act in call.acts if act.kind in ("edit", "sandboxed")))
        return [{"tool_name": name, "tool_input": {"file_path": path, **call.input}} for path in paths or [""]]
    return [{"tool_name": name, "tool_input": _their_input(tool, call, folder)}]


def _their_input(tool: str, call: JudgedCall, folder: str) -> dict[str, Any]:
    names = _NAMES.get(tool, {})
    found: dict[str, Any] = {names.get(name, name): value for name, value in call.input.items()}
    if isinstance(path := found.get("file_path"), str):
        found["file_path"] = _real_path(path, call, folder)
    if tool == "bash" and isinstance(seconds := found.get("timeout"), int):
        found["timeout"] = seconds * 1000
    if tool == "read_file":
        start, end = found.pop("start_line", None), found.pop("end_line", None)
        found |= {} if start is None else {"offset": start}
        found |= {} if end is None else {"limit": end - (start or 1) + 1}
    return found


def _real_path(path: str, call: JudgedCall, folder: str) -> str:
    """Return where a path leads, as the call is judged; in a view of the workspace, where it would be."""
    known: Sequence[str] = [act.subject for act in call.acts if act.kind in ("read", "edit")]
    return known[0] if known else os.path.normpath(os.path.join(folder, path))


def our_input(tool: str, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the input of one of our tools from one in their names; None: this tool's cannot be given so."""
    tool = plain_name(tool)
    if tool == _PATCH:
        return None
    names = {theirs: ours for ours, theirs in _NAMES.get(tool, {}).items()}
    found: dict[str, Any] = {names.get(name, name): value for name, value in given.items()}
    if tool == "bash" and _is_number(found.get("timeout")):
        found["timeout"] = -(-found["timeout"] // 1000)
    if tool == "read_file":
        start, count = found.pop("offset", None), found.pop("limit", None)
        found |= {} if start is None else {"start_line": start}
        if _is_number(count):
            found["end_line"] = (start if _is_number(start) else 1) + count - 1
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def hook_response(tool: str, given: Mapping[str, Any], text: str, *, failed: bool) -> dict[str, Any]:
    """Return what came of a call as hooks are told it (`tool_response`). `given` is the `tool_input`."""
    response: dict[str, Any] = {"success": not failed, "text": text}
    if plain_name(tool) == "bash":
        response |= {"stdout": text, "stderr": "", "interrupted": False}
    if "file_path" in given:
        response["filePath"] = given["file_path"]
    return response
