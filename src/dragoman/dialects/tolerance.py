"""What peers are known to send that the schema does not allow and that can mean only one thing (digest, section 8).

`mended` is asked only after a message was refused, so a conforming peer never comes here. Nothing here touches
permissions, paths or capabilities: those are never read leniently.
"""

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from dragoman.vocabulary.events import ToolCallUpdate
from dragoman.vocabulary.word import Extras

# Names under which agents of section 8.1 (rows 12 and 13) know these methods.
ALIASES: Final = {"sessions/list": "session/list", "config/set": "session/set_config_option"}
_OPENING: Final = ("session/new", "session/load", "session/resume", "session/fork")


def mended(method: str, params: Raw) -> Raw | None:
    """The params as they were meant; None where they mean nothing else than they say."""
    try:
        body = msgspec.json.decode(params or b"{}")
    except (ValueError, RecursionError, OverflowError):
        return None
    if not isinstance(body, dict):
        return None
    change = _change(method, body)
    return Raw(msgspec.json.encode({**body, **change})) if change else None


def _change(method: str, body: dict[str, Any]) -> dict[str, Any]:
    if method in _OPENING and not isinstance(body.get("mcpServers"), list):
        return {"mcpServers": []}
    if method == "session/prompt" and isinstance(body.get("prompt"), str):
        return {"prompt": [{"type": "text", "text": body["prompt"]}]}
    if method == "session/set_config_option" and "type" not in body:
        # Row 13: a value says by itself whether it is a switch or one of several.
        if isinstance(body.get("value"), bool):
            return {"type": "boolean"}
        return {"type": "id"} if isinstance(body.get("value"), str) else {}
    update = body.get("update")
    if method == "session/update" and isinstance(update, dict) and update.get("sessionUpdate") == "current_mode_update":
        # The documentation of version 1 once called the field so.
        rest = {name: value for name, value in update.items() if name != "modeId"}
        return {"update": {**rest, "currentModeId": update["modeId"]}} if "modeId" in update else {}
    return {}


def with_raw_fields(call: ToolCallUpdate) -> ToolCallUpdate:
    """Row 17 of section 8.1: `raw_input` and `raw_output`, as Python writes them."""
    if not isinstance(call.extras, Extras) or not call.extras.fields.keys() & {"raw_input", "raw_output"}:
        return call
    fields = dict(call.extras.fields)
    said: dict[str, Any] = {}
    for name in ("raw_input", "raw_output"):
        if name in fields and getattr(call, name) is UNSET:
            said[name] = fields.pop(name)
    return replace(call, **said, extras=Extras(fields) if fields else UNSET)
