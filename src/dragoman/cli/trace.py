"""`--trace FILE`: each frame as a JSON line, with the time and the direction; secrets are left out."""

import os
import re
import time
from collections.abc import Callable
from typing import Final, Literal

import msgspec

Trace = Callable[[Literal["in", "out"], bytes], None]

_REDACTED: Final = "[redacted]"
_SECRET_NAME: Final = re.compile(
    r"(api[-_]?key|auth(orization)?$|cookie|credential|passw(or)?d|private[-_]?key|secret|token$)", re.IGNORECASE
)
_SECRET_TEXT: Final = re.compile(
    r"\b(sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|xox[abprs]-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{20,}|AKIA[A-Z0-9]{12,})"
    r"|(?<=Bearer )[A-Za-z0-9._~+/=-]{8,}"
)


def open_trace(path: str) -> Trace:
    """A trace that appends to a file only its owner can read. Each line is written at once: crashes are what it is for."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def trace(direction: Literal["in", "out"], frame: bytes) -> None:
        line = {"time": round(time.time(), 6), "direction": direction, "frame": redacted(frame)}
        try:
            os.write(descriptor, msgspec.json.encode(line) + b"\n")
        except OSError:
            pass  # a full disk must not stop the conversation

    return trace


def redacted(frame: bytes) -> object:
    """The frame as JSON without secrets; as text where it is no JSON."""
    try:
        return _clean(msgspec.json.decode(frame))
    except (ValueError, RecursionError):
        return _clean(frame.decode("utf-8", "replace"))


def _clean(value: object) -> object:
    if isinstance(value, dict):
        named = value.get("name")
        hides = isinstance(named, str) and _SECRET_NAME.search(named) is not None and "value" in value
        return {
            key: _REDACTED
            if _SECRET_NAME.search(key) and isinstance(item, str) or (hides and key == "value")
            else _clean(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, str):
        return _SECRET_TEXT.sub(_REDACTED, value)
    return value
