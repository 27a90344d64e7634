"""What the schema of a version has against one message: a sentence, or nothing.

The generated types judge. They read as tolerantly as the schema lets a reader be, so a message is read and written
again: what was malformed and read over is then missing, and that is the fault. Only `initialize` is judged before a
version is agreed on, by the version that it names.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from dragoman.errors import PeerMistake, echo
from dragoman.wire import types, v1, v2

Json = Any
SCHEMAS: Final[Mapping[int, Any]] = {1: v1, 2: v2}
REVISION: Final = v1.SOURCE.rpartition(" ")[2]
VERSIONS: Final = tuple(sorted(SCHEMAS))
# Where each version has what a client says of itself.
GREETING_FIELDS: Final = {1: ("clientInfo", "clientCapabilities"), 2: ("info", "capabilities")}
# Values that no revision of version 1 may add to; version 2 keeps all names without an underscore for itself.
_EXTENSION: Final = "_"


def envelope_fault(message: Json) -> str:
    """Return what is wrong with a message as JSON-RPC 2.0, whatever it is about."""
    if not isinstance(message, dict):
        return "a message is an object" if not isinstance(message, list) else "batches are not part of the protocol"
    if message.get("jsonrpc") != "2.0":
        return '"jsonrpc" is not "2.0"'
    if "method" in message:
        return _call_fault(message)
    if "id" not in message:
        return "neither a method nor an id"
    if ("result" in message) == ("error" in message):
        return "a response has exactly one of result and error"
    return error_fault(message["error"]) if "error" in message else ""


def _call_fault(message: Mapping[str, Json]) -> str:
    if not isinstance(message["method"], str):
        return "the method is no string"
    if "result" in message or "error" in message:
        return "a request with a result or an error"
    if "id" in message and not _is_id(message["id"]):
        return "an id is a string, an integer or null"
    if not isinstance(message.get("params", {}), dict | list):
        return "params are an object"
    return ""


def _is_id(value: Json) -> bool:
    return value is None or isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


def error_fault(error: Json) -> str:
    """Return what is wrong with the error of a response."""
    if not isinstance(error, dict):
        return "an error is an object"
    if not isinstance(error.get("code"), int) or isinstance(error.get("code"), bool):
        return "the code of an error is an integer"
    return "" if isinstance(error.get("message"), str) else "the message of an error is a string"


def call_fault(message: Mapping[str, Json], version: int, *, to_agent: bool) -> str:
    """Return what the schema has against the params of a request or a notification."""
    method = message["method"]
    if method.startswith(_EXTENSION):
        return ""
    schema = SCHEMAS[version]
    if "id" in message:
        known = schema.AGENT_METHODS if to_agent else schema.CLIENT_METHODS
        kind = known[method][0] if method in known else None
    else:
        notes = schema.AGENT_NOTIFICATIONS if to_agent else schema.CLIENT_NOTIFICATIONS
        kind = {**schema.PROTOCOL_NOTIFICATIONS, **notes}.get(method)
    if kind is None:
        return "" if method.startswith("$/") else f"version {version} has no {echo(method)} in this direction"
    return value_fault(message.get("params", {}), kind)


def result_fault(method: str, result: Json, version: int, *, of_agent: bool) -> str:
    """Return what the schema has against the result of a request of this method."""
    known = SCHEMAS[version].AGENT_METHODS if of_agent else SCHEMAS[version].CLIENT_METHODS
    if method not in known:
        return ""
    # Readers of version 1 accept null where all fields may be missing; its own pages answer `session/load` so.
    if result is None and version == VERSIONS[0]:
        result = {}
    return value_fault(result, known[method][1])


def value_fault(value: Json, kind: Any) -> str:
    """Return what a type has against a value."""
    data = msgspec.json.encode(value)
    try:
        read = types.decode(data, kind)
        written = msgspec.json.decode(types.encode(read))
    except PeerMistake as mistake:
        return mistake.message
    path = _first_difference(value, written)
    return "" if path is None else f"Invalid value at {echo('$' + path)}"


def unknown_variants(value: Any) -> list[str]:
    """Return the tags of all variants in a read message that the schema does not have and no extension may have."""
    if isinstance(value, types.UnknownVariant):
        return [] if value.tag.startswith(_EXTENSION) else [value.tag]
    if isinstance(value, tuple | list):
        return [tag for one in value for tag in unknown_variants(one)]
    if isinstance(value, msgspec.Struct):
        return [tag for name in value.__struct_fields__ for tag in unknown_variants(getattr(value, name))]
    return []


def foreign_variants(message: Mapping[str, Json], version: int) -> list[str]:
    """Return the unknown variants in the params of a call of an agent, none if they cannot be read at all."""
    schema = SCHEMAS[version]
    calls = {name: kinds[0] for name, kinds in schema.CLIENT_METHODS.items()} | schema.CLIENT_NOTIFICATIONS
    kind = calls.get(message.get("method", ""))
    if kind is None:
        return []
    try:
        return unknown_variants(types.decode(msgspec.json.encode(message.get("params", {})), kind))
    except PeerMistake:
        return []


def _first_difference(sent: Json, read: Json, path: str = "") -> str | None:
    """Return where a value was not read as it was sent; None if it was."""
    if isinstance(sent, dict) and isinstance(read, dict):
        for key, value in sent.items():
            if key not in read:
                if value is not None:
                    return f"{path}.{key}"
            elif (found := _first_difference(value, read[key], f"{path}.{key}")) is not None:
                return found
        return None
    if isinstance(sent, list) and isinstance(read, list):
        if len(sent) != len(read):
            return path or "."
        pairs = enumerate(zip(sent, read, strict=True))
        found_at = (_first_difference(one, other, f"{path}[{index}]") for index, (one, other) in pairs)
        return next((one for one in found_at if one is not None), None)
    return None if sent == read and isinstance(sent, bool) == isinstance(read, bool) else path or "."
