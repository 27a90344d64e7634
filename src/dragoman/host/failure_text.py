"""What an error answer says, for people and models: its message, and the details that its sender put beside it.

JSON-RPC leaves `data` to the sender. The official SDKs answer an exception with `Internal error` and the real reason in
`data`, so a reader who sees the message alone learns nothing. Owns where in `data` a reason is looked for; knows no
terminal. Promises: one line beyond the message, bounded, harmless on a terminal, without keys that can be known by
their looks. Pure.
"""

import json
from typing import Final

from dragoman.errors import DragomanError, RequestFailed
from dragoman.host.environment import without_keys
from dragoman.host.text import harmless, harmless_line

# Characters of the details; a stack trace or a whole response of a provider is cut.
DETAIL_CHARACTERS: Final = 500
# How deep a reason may be wrapped, and how long JSON inside a text may be to be looked into.
_DEPTH: Final = 5
_JSON_CHARACTERS: Final = 64 * 1024
# Fields that hold a reason, the most telling first.
_FIELDS: Final = ("details", "detail", "message", "error", "reason", "description")
# Messages that say no more than their code does.
_GENERIC: Final = frozenset(
    {"", "error", "internal error", "internal server error", "server error", "invalid params", "invalid request"}
)
_HIDDEN: Final = "[redacted]"


def failure_text(error: DragomanError) -> str:
    """Return what to tell of an error: its message and details; the code only where they say nothing."""
    if not isinstance(error, RequestFailed):
        return str(error)
    return error_text(error.code, error.message, error.data)


def error_text(code: int, message: str, data: object) -> str:
    """Return the same for the parts of an error answer."""
    message = harmless(without_keys(message, _HIDDEN)).strip()
    is_generic = message.rstrip(".").lower() in _GENERIC
    # What the details repeat need not be said twice.
    parts = [part for part in details(data, words=is_generic) if part not in message]
    if parts and message and message.rstrip(".").lower() in parts[0].lower():
        message = ""
    sentence = ": ".join(part for part in (message.rstrip(".") if parts else message, *parts) if part)
    if is_generic and not parts:
        return f"{sentence or 'Error'} ({code})"
    return sentence


def details(data: object, *, words: bool = True) -> list[str]:
    """Return the reasons in the data of an error, the outermost first, each on one line; together bounded.

    A `reason` of one word is a name for programs (`{"reason": "busy"}`): it is left out without `words`.
    """
    found: list[str] = []
    room = DETAIL_CHARACTERS
    for text in _reasons(data, words, _DEPTH):
        line = without_keys(harmless_line(text[: 4 * DETAIL_CHARACTERS]), _HIDDEN)
        if not line or room <= 0 or any(line in one for one in found):
            continue
        found.append(line if len(line) <= room else line[: room - 1] + "…")
        room -= len(found[-1])
    return found


def _reasons(data: object, words: bool, depth: int) -> list[str]:
    if depth == 0:
        return []
    if isinstance(data, str):
        inner = _json_in(data)
        return [data] if inner is None else _reasons(inner, words, depth - 1) or [data]
    if isinstance(data, list):
        return _reasons(data[0], words, depth - 1) if data else []
    if not isinstance(data, dict):
        return []
    found: list[str] = []
    for field in _FIELDS:
        value = data.get(field)
        if field == "reason" and not words and isinstance(value, str) and " " not in value:
            continue
        if found := _reasons(value, words, depth - 1):
            break
    return found + _reasons(data.get("cause"), words, depth - 1)


def _json_in(text: str) -> object:
    """Return the object or list that a text is, as some agents pass on the body of a response; None for other texts."""
    text = text.strip()
    if not text.startswith(("{", "[")) or len(text) > _JSON_CHARACTERS:
        return None
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value
