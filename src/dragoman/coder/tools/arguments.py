"""Declare and read the arguments of a tool call. A wrong one raises `BadInput`, whose text is for the model."""

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.coder.permissions import JudgedCall
from dragoman.coder.tools.contract import BadInput


def schema(required: Sequence[str], **properties: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an input."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def text_input(call: JudgedCall, name: str) -> str:
    """Return a text argument that must be there."""
    value = call.input.get(name)
    if not isinstance(value, str):
        raise BadInput(f"{call.tool} needs {name!r} as text.")
    return value


def count_input(call: JudgedCall, name: str, least: int) -> int | None:
    """Return a whole number that may be left out."""
    value = call.input.get(name)
    if value is None:
        return None
    if type(value) is not int or value < least:
        raise BadInput(f"{call.tool} needs {name!r} as a whole number, {least} or more.")
    return value


def flag_input(call: JudgedCall, name: str) -> bool:
    """Return a yes or no that may be left out; then it is no."""
    value = call.input.get(name)
    if value is not None and not isinstance(value, bool):
        raise BadInput(f"{call.tool} needs {name!r} as true or false.")
    return bool(value)


def only_known(call: JudgedCall, *names: str) -> None:
    """Raise `BadInput` for an argument that is not in `names`: the model meant something by it."""
    for name in call.input:
        if name not in names:
            raise BadInput(f"{call.tool} has no argument {name!r}; it takes {', '.join(names)}.")


def list_input(call: JudgedCall, name: str, most: int) -> list[dict[str, object]] | None:
    """Return a list of objects that may be left out. Some models send it as JSON in a text: that is read."""
    value = call.input.get(name)
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError:
            value = None
    if not isinstance(value, list) or not value or not all(isinstance(item, dict) for item in value):
        raise BadInput(f"{call.tool} needs {name!r} as a list of objects, with at least one.")
    if len(value) > most:
        raise BadInput(f"{call.tool} takes up to {most} {name}; {len(value)} were given. Make several calls.")
    return value
