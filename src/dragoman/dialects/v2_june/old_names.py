"""Read the names of the June 2026 draft of version 2 as today's names, and the other way round.

Both drafts say version 2, and lists drop what they cannot read without a word: so odd names are looked for, and only
messages that have one come here. Current names win over old ones.
"""

from typing import Any

import msgspec
from msgspec import Raw

from dragoman.dialects.codec.git_patches import git_patch
from dragoman.dialects.handshake.json_fields import JsonDict
from dragoman.vocabulary.tools import Diff, FileChange

# One of these names is in every message that needs a change. Some are also in messages that need none; then the search
# costs a decode, and changes nothing.
_ID, _GROUP, _COMMANDS = b'"id"', b'"group"', b'"availableCommands"'
_NEW_TEXT, _TOOL_CALL = b'"newText"', b'"toolCall"'


def modern(message: Raw) -> Raw:
    """Return the params of an update or a permission request, or a result, with today's names."""
    raw = bytes(message)
    # Written out: a generator would take longer than all the searching in a small message.
    if not (_ID in raw or _GROUP in raw or _COMMANDS in raw or _NEW_TEXT in raw or _TOOL_CALL in raw):
        return message
    try:
        body = msgspec.json.decode(raw)
    except (ValueError, RecursionError, OverflowError):
        return message
    if not isinstance(body, dict):
        return message
    # Which message it is shows by its fields: a permission (row 8.2.12), an update, or a result with options.
    if isinstance(body.get("toolCall"), dict) and "subject" not in body:
        return Raw(msgspec.json.encode(_permission(body)))
    if isinstance(body.get("update"), dict):
        return Raw(msgspec.json.encode({**body, "update": _update(body["update"])}))
    return Raw(msgspec.json.encode(_with_options(body)))


def with_modern_options(result: Raw) -> Raw:
    """Return a result that has session options with today's names of them."""
    raw = bytes(result)
    return modern(result) if _ID in raw or _GROUP in raw else result


def _update(update: JsonDict) -> JsonDict:
    renamed = _with_options(update)
    plan = renamed.get("plan")
    if isinstance(plan, dict):  # row 8.2.10
        renamed["plan"] = _renamed(plan, "id", "planId")
    if isinstance(renamed.get("availableCommands"), list):
        renamed["availableCommands"] = [_command(command) for command in renamed["availableCommands"]]
    if isinstance(renamed.get("content"), list):
        renamed["content"] = [_item(item) for item in renamed["content"]]
    elif isinstance(renamed.get("content"), dict):
        renamed["content"] = _item(renamed["content"])
    return renamed


def _permission(body: JsonDict) -> JsonDict:
    """Return a permission request in today's form: with a title, and its tool call as the subject."""
    call = _update(body["toolCall"])
    title = call.get("title") if isinstance(call.get("title"), str) else "Permission needed"
    rest = {name: value for name, value in body.items() if name != "toolCall"}
    return {"title": title, **rest, "subject": {"type": "tool_call", "toolCall": call}}


def _with_options(body: JsonDict) -> JsonDict:
    found = body.get("configOptions")
    return {**body, "configOptions": [_option(option) for option in found]} if isinstance(found, list) else dict(body)


def _option(option: Any) -> Any:
    if not isinstance(option, dict):
        return option
    renamed = _renamed(option, "id", "configId")  # row 8.2.8
    if isinstance(renamed.get("options"), list):
        renamed["options"] = [
            _renamed(entry, "group", "groupId") if isinstance(entry, dict) else entry for entry in renamed["options"]
        ]
    return renamed


def _command(command: Any) -> Any:
    if not isinstance(command, dict):
        return command
    # Today's input has a type (row 8.2.11); a reader drops a command whose input it cannot read.
    hint: Any = command.get("input")
    untyped = isinstance(hint, dict) and "type" not in hint and isinstance(hint.get("hint"), str)
    return {"type": "command", **command, **({"input": {"type": "text", **hint}} if untyped else {})}


def _item(item: Any) -> Any:
    """Return a diff with both texts as today's change and patch (row 8.2.14)."""
    if not isinstance(item, dict) or item.get("type") != "diff" or "changes" in item:
        return item
    path, old, new = item.get("path"), item.get("oldText"), item.get("newText")
    if not isinstance(path, str) or not isinstance(new, str) or not isinstance(old, str | None):
        return item
    (change,) = Diff.of(path, old, new).changes
    assert isinstance(change, FileChange)
    patch = git_patch(change)
    rest = {name: value for name, value in item.items() if name not in ("path", "oldText", "newText")}
    text = {} if patch is None else {"patch": {"format": "git_patch", "text": patch}}
    return {**rest, "changes": [{"operation": change.operation, "path": path}], **text}


def _renamed(body: JsonDict, old: str, new: str) -> JsonDict:
    # Today's name wins: a message that has both was written for today's readers.
    if new in body or old not in body:
        return dict(body)
    return {(new if name == old else name): value for name, value in body.items()}
