"""What the loss table says should come out, written as plain changes of JSON: the oracle of the round-trip tests.

Every change is marked with the row it stands for. A row that has no change here is one of many events or of state, and
is proved by its example in `test_losses.py` alone.
"""

import json
from collections.abc import Callable
from typing import Any

from dragoman.dialects.losses import LOSSES

Json = dict[str, Any]
Change = Callable[[Json], Json]
APPLIED: set[str] = set()
TOOL_UPDATES = ("tool_call", "tool_call_update")
CHUNKS = ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk")


def row(id: str) -> Callable[[Change], Change]:
    """Mark a change with the row of the loss table that it is."""
    assert any(loss.id == id for loss in LOSSES), id
    APPLIED.add(id)
    return lambda change: change


# -- changes of single objects ---------------------------------------------------------------------------------------


@row("message-without-id")
def with_id(update: Json) -> Json:
    return {**update, "messageId": update.get("messageId") or "dragoman-1"}


@row("null-in-tool-call")
def without_nulls(call: Json) -> Json:
    return {key: value for key, value in call.items() if value is not None}


@row("diff-without-old-text")
def with_old_text(item: Json) -> Json:
    return {**item, "oldText": item.get("oldText")}


@row("form-that-lacks-parts")
def whole_form(form: Json) -> Json:
    form = {"type": "object", "properties": {}, **form}
    for name, field in list(form["properties"].items()):
        items = field.get("items") if field.get("type") == "array" else None
        if isinstance(items, dict) and (items.get("enum") == [] or items.get("anyOf") == []):
            del form["properties"][name]
            if form.get("required") is not None:
                form["required"] = [other for other in form["required"] if other != name]
        elif field.get("type") == "string":
            form["properties"][name] = {k: v for k, v in field.items() if k not in ("enum", "oneOf") or v != []}
    return form


@row("type-of-a-config-value")
def without_value_type(params: Json) -> Json:
    return {k: v for k, v in params.items() if k != "type"} if isinstance(params.get("value"), str) else params


@row("type-of-a-stdio-server")
def without_stdio(server: Json) -> Json:
    return {k: v for k, v in server.items() if k != "type"} if server.get("type") == "stdio" else server


# -- whole messages --------------------------------------------------------------------------------------------------


def after(chain: str, name: str, message: Any) -> Any:
    """The message after a chain of versions: "11", "22", "121" or "212"."""
    found = json.loads(json.dumps(message))
    return CHAINS[chain](name, found)


def unchanged(name: str, message: Any) -> Any:
    return message


def through_v1(name: str, message: Any) -> Any:
    """What version 1 does to its own messages."""
    if name in CHUNKS:
        message["update"] = with_id(message["update"])
    if name in TOOL_UPDATES:
        message["update"] = _tool_call(message["update"])
    if name == "RequestPermissionRequest":
        message["toolCall"] = _tool_call(message["toolCall"])
    if name == "CreateElicitationRequest" and message["mode"] == "form":
        message["requestedSchema"] = whole_form(message["requestedSchema"])
    if name == "SetSessionConfigOptionRequest":
        message = without_value_type(message)
    if isinstance(message, dict) and isinstance(message.get("mcpServers"), list):
        message["mcpServers"] = [without_stdio(server) for server in message["mcpServers"]]
    return message


def _tool_call(call: Json) -> Json:
    call = without_nulls(call)
    if isinstance(call.get("content"), list):
        call["content"] = [with_old_text(item) if item.get("type") == "diff" else item for item in call["content"]]
    return call


CHAINS: dict[str, Callable[[str, Any], Any]] = {"11": through_v1, "22": unchanged, "121": through_v1, "212": unchanged}
