"""What a server says that one of its tools is. Read from its own JSON, tolerantly, and bounded."""

import hashlib
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from dragoman import limits
from dragoman.coder.tools.result_text import cut
from dragoman.host.text import harmless

# A model has to read them all with every call: a hundred are already too many to choose from.
TOOLS: Final = 128
DESCRIPTION_CHARACTERS: Final = 4_000
# The largest real ones, of issue trackers, have about 10 KiB.
SCHEMA_BYTES: Final = 32 * limits.KIB
SCHEMA_DEPTH: Final = 32
# For us it only has to name a tool in a request; the specification says 128.
TOOL_NAME_CHARACTERS: Final = 1_000
# 128 bits: a server cannot find a second definition with the same digest.
_DIGEST_CHARACTERS: Final = 32


class Definition(NamedTuple):
    """A tool as its server defines it. `digest` is of the whole definition, before anything was cut."""

    tool: str
    description: str
    schema: dict[str, Any]
    digest: str


class Definitions(NamedTuple):
    """The tools of a server by the names it gives them, and how many of what it listed are of no use."""

    by_tool: dict[str, Definition]
    left_out: int


def read_definitions(listed: Sequence[object], server: Sequence[str]) -> Definitions:
    """Return the tools in an answer to `tools/list`. Of twins the first counts; `server` is who says so."""
    found: dict[str, Definition] = {}
    for one in listed:
        definition = _read(one, server) if len(found) < TOOLS else None
        if definition is not None:
            found.setdefault(definition.tool, definition)
    return Definitions(found, len(listed) - len(found))


def _read(fields: object, server: Sequence[str]) -> Definition | None:
    if not isinstance(fields, dict):
        return None
    tool, schema = fields.get("name"), fields.get("inputSchema")
    if not isinstance(tool, str) or not 0 < len(tool) <= TOOL_NAME_CHARACTERS or not isinstance(schema, dict):
        return None
    # Providers want an object; a server without arguments may have left that out.
    schema = {"type": "object"} | schema
    if schema["type"] != "object" or deeper_than(schema, SCHEMA_DEPTH):
        return None
    try:
        if len(msgspec.json.encode(schema)) > SCHEMA_BYTES:
            return None
        identity_parts = [tool, *(fields.get(key) for key in ("title", "description", "inputSchema", "annotations"))]
        digest = hashlib.sha256(msgspec.json.encode([list(server), identity_parts], order="sorted")).hexdigest()[
            :_DIGEST_CHARACTERS
        ]
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    description = fields.get("description")
    text = cut(description, DESCRIPTION_CHARACTERS) if isinstance(description, str) else ""
    return Definition(tool, harmless(text), schema, digest)


def deeper_than(value: object, depth: int) -> bool:
    """Return whether brackets stand inside brackets more often than that."""
    level = [value]
    for _ in range(depth):
        level = [inner for one in level if isinstance(one, dict | list) for inner in _inside(one)]
        if not level:
            return False
    return True


def _inside(value: "dict[str, object] | list[object]") -> "list[object]":
    return list(value.values()) if isinstance(value, dict) else value
