"""Read requests that break the schema in ways that peers are known for, and that can mean only one thing.

`corrected_params` is called only after a message was refused, so a conforming peer never comes here. Nothing here
touches permissions, paths or capabilities: those are never read leniently.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from dragoman.dialects.handshake.json_fields import JsonDict
from dragoman.vocabulary.events import ToolCallUpdate
from dragoman.vocabulary.word import Extras

# Names of iac-code's document for these methods (rows 8.1.12, 8.1.13 and 8.1.18). Answered everywhere: no other peer
# uses them for something else, and we never send them, except to that agent in its dialect.
ALIASES: Final = {
    "sessions/list": "session/list",
    "config/set": "session/set_config_option",
    "request_permission": "session/request_permission",
}
# What one version calls otherwise than the other (row 8.2.2); looked up only where a name is not known.
SIBLINGS: Final = {
    "authenticate": "auth/login",
    "auth/login": "authenticate",
    "logout": "auth/logout",
    "auth/logout": "logout",
}
_OPENING: Final = ("session/new", "session/load", "session/resume", "session/fork")
# Row 8.1.8: content blocks under the names of their classes in the official Python SDK.
_BLOCKS: Final = {
    "TextContentBlock": "text",
    "ImageContentBlock": "image",
    "AudioContentBlock": "audio",
    "ResourceContentBlock": "resource_link",
    "EmbeddedResourceContentBlock": "resource",
}
# How base64 data of these types begins; any other data without a type is `_BYTES`.
_BEGINNINGS: Final = (
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("UklGR", "image/webp"),
    ("SUQz", "audio/mpeg"),
    ("T2dnU", "audio/ogg"),
)
_BYTES: Final = "application/octet-stream"


def corrected_params(method: str, params: Raw) -> Raw | None:
    """Return the params as they can only have been meant; None where there is nothing to correct.

    `wire.decode` is the judge of the result: a correction that does not make the params valid changes nothing.
    """
    try:
        body = msgspec.json.decode(params or b"{}")
    except (ValueError, RecursionError, OverflowError):
        return None
    if not isinstance(body, dict):
        return None
    change = _CHANGES.get(method, _no_change)(body)
    return Raw(msgspec.json.encode({**body, **change})) if change else None


def _no_change(body: JsonDict) -> JsonDict:
    return {}


# -- sessions --------------------------------------------------------------------------------------------------------


def _opening(body: JsonDict) -> JsonDict:
    """Correct `mcpServers`: missing means none, an object is a map by name, lists inside may be left out."""
    servers = body.get("mcpServers")
    # iac-code's document has an object and does not say of what (rows 8.1.2, 8.1.3). Values that look like servers are
    # what an editor's settings have; anything else starts nothing.
    if isinstance(servers, dict):
        found = [{"name": name, **server} for name, server in servers.items() if _is_server(server)]
        return {"mcpServers": [_listed(server) for server in found]}
    if not isinstance(servers, list):
        return {"mcpServers": []}
    whole = [_listed(server) if isinstance(server, dict) else server for server in servers]
    return {"mcpServers": whole} if whole != servers else {}


def _is_server(value: object) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(key), str) for key in ("command", "url"))


def _listed(server: JsonDict) -> JsonDict:
    # The schema requires these lists; servers from an editor's settings lack them, or have `env` as a map.
    names = ("args", "env") if server.get("type", "stdio") == "stdio" else ("headers",)
    lists: JsonDict = {name: [] for name in names if name not in server}
    if isinstance(server.get("env"), dict) and "env" in names:
        lists["env"] = [{"name": name, "value": value} for name, value in server["env"].items()]
    return {**server, **lists}


def _option(body: JsonDict) -> JsonDict:
    """Correct a value without its type (rows 8.1.13, 8.2.8): a JSON boolean is a switch, a text one of several."""
    if "type" in body:
        return {}
    if isinstance(body.get("value"), bool):
        return {"type": "boolean"}
    return {"type": "id"} if isinstance(body.get("value"), str) else {}


# -- prompts ---------------------------------------------------------------------------------------------------------


def _prompt(body: JsonDict) -> JsonDict:
    # simse's clients send a text (row 8.5.2). The schema's reader refuses it, so nothing else can be meant by it.
    prompt = body.get("prompt")
    if isinstance(prompt, str):
        return {"prompt": [{"type": "text", "text": prompt}]}
    if not isinstance(prompt, list):
        return {}
    blocks = [_block(block) if isinstance(block, dict) else block for block in prompt]
    return {"prompt": blocks} if blocks != prompt else {}


def _block(block: JsonDict) -> JsonDict:
    """Correct a block as elephant.ai's clients send it (row 8.3.8): a link without a name, media without a type."""
    kind = block.get("type")
    if kind == "resource_link" and "name" not in block and isinstance(block.get("uri"), str):
        uri = block["uri"]
        return {**block, "name": uri.rstrip("/").rpartition("/")[2] or uri}
    if kind in ("image", "audio") and "mimeType" not in block and isinstance(block.get("data"), str):
        # Only a beginning that fits the kind of block: a picture must not become a sound by its bytes.
        begins = (found for start, found in _BEGINNINGS if found.startswith(kind) and block["data"].startswith(start))
        return {**block, "mimeType": next(begins, _BYTES)}
    return block


def known_block(kind: str, fields: JsonDict) -> JsonDict | None:
    """Return a block that has the name of its Python class, with its wire name; None for an unknown name."""
    return _block({**fields, "type": _BLOCKS[kind]}) if kind in _BLOCKS else None


_CHANGES: Final[dict[str, Callable[[JsonDict], JsonDict]]] = {
    **dict.fromkeys(_OPENING, _opening),
    "session/prompt": _prompt,
    "session/set_config_option": _option,
}


def with_raw_fields(call: ToolCallUpdate) -> ToolCallUpdate:
    """Return a tool call with `raw_input` and `raw_output` read as the schema's fields (row 8.1.17).

    What the schema's own field says wins; then the other one stays an unknown field.
    """
    if not isinstance(call.extras, Extras) or not call.extras.fields.keys() & {"raw_input", "raw_output"}:
        return call
    fields = dict(call.extras.fields)
    moved: dict[str, Any] = {}
    for name in ("raw_input", "raw_output"):
        if name in fields and getattr(call, name) is UNSET:
            moved[name] = fields.pop(name)
    return replace(call, **moved, extras=Extras(fields) if fields else UNSET)
