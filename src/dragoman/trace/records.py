"""The format of a trace: JSON lines, of which the first is a header and each other one a record.

A frame is written as a string, as it passed, and is not decoded: one that is no JSON is often the one that matters. The
header and the frames are those of `acp-inspector-trace` version 1, so what reads that format reads ours. We add:

    fields    `elapsed` (seconds since the connection was opened, by a clock that is never set), `redacted` and `cut`
              of a frame; `redacted`, `connections`, `continued` and `program` of the header
    records   `process` (a connection or an agent began or ended) and `stderr`, which are no frames

A reader must skip records and fields that it does not know. Pure: values and lines, no files and no clock.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

FORMAT: Final = "acp-inspector-trace"
VERSION: Final = 1
Direction = Literal["client -> agent", "agent -> client"]
TO_AGENT: Final = "client -> agent"
TO_CLIENT: Final = "agent -> client"
# Longer frames are cut, in what is written: a picture in a prompt need not fill the file.
KEPT_FRAME_BYTES: Final = 8 * 1024 * 1024
_HIDDEN: Final = "secrets of a known form were taken out"
_NOT_HIDDEN: Final = "nothing is redacted"
_WARNING: Final = "ACP frames may contain prompts, file contents, and tool output"
# Counters of the header have a fixed width, so that they can be written anew in their place.
_WIDTH: Final = 12
COUNTERS: Final = ("frames", "dropped", "connections")


class TraceFault(Exception):
    """A file that is no readable trace. `code` is for programs, the text for people, `line` says where (or 0)."""

    def __init__(self, code: str, sentence: str, line: int = 0) -> None:
        super().__init__(f"{sentence} ({code})")
        self.code = code
        self.line = line


class TraceHeader(NamedTuple):
    """What a file says of itself. `continued`: an earlier part is in another file."""

    at: int
    frames: int = 0
    dropped: int = 0
    connections: int = 0
    is_redacted: bool = False
    continued: bool = False
    program: str = ""


class TraceFrame(NamedTuple):
    """A frame, by whom it was sent and when: milliseconds since 1970, and seconds since the connection was opened.

    `cut` is the size it had, if only its beginning was kept.
    """

    line: int
    at: int
    connection: str
    direction: Direction
    data: bytes
    elapsed: float = 0.0
    is_redacted: bool = False
    cut: int = 0


class TraceNote(NamedTuple):
    """What is no frame: `kind` is `process` or `stderr`, or one that this release does not know."""

    line: int
    at: int
    connection: str
    kind: str
    fields: Mapping[str, Any]


Record = TraceFrame | TraceNote


def encode_header(header: TraceHeader) -> bytes:
    """Return the first line of a file."""
    counters = (f'"{name}":{getattr(header, name):<{_WIDTH}d}' for name in COUNTERS)
    rest = {
        "redacted": header.is_redacted,
        "continued": header.continued,
        "program": header.program,
        "warning": f"{_WARNING}; {_HIDDEN if header.is_redacted else _NOT_HIDDEN}",
    }
    start = f'{{"type":"header","format":"{FORMAT}","version":{VERSION},"at":{header.at}'
    return ",".join([start, *counters, msgspec.json.encode(rest).decode()[1:]]).encode() + b"\n"


def counter_place(line: bytes, name: str) -> tuple[int, int] | None:
    """Return where a counter stands in a header, and its value; None if it cannot be written anew in its place."""
    found = re.search(rb'"%b":(\d+ *),' % name.encode(), line)
    return None if found is None or len(found[1]) != _WIDTH else (found.start(1), int(found[1]))


def encode_counter(value: int) -> bytes:
    """Return a counter as it stands in a header."""
    return b"%-*d" % (_WIDTH, value)


def encode_frame(frame: TraceFrame) -> bytes:
    """Return the line of a frame."""
    record: dict[str, Any] = {
        "type": "frame",
        "at": frame.at,
        "connection": _as_number(frame.connection),
        "direction": frame.direction,
        "encoding": "utf8",
        "frame": "",
        "elapsed": round(frame.elapsed, 6),
    }
    data = frame.data
    if len(data) > KEPT_FRAME_BYTES or frame.cut:
        record["cut"] = frame.cut or len(data)
        # Not inside of a character.
        data = data[:KEPT_FRAME_BYTES].decode("utf-8", "ignore").encode()
    try:
        record["frame"] = data.decode()
    except UnicodeDecodeError:
        record |= {"encoding": "base64", "frame": base64.b64encode(data).decode()}
    if frame.is_redacted:
        record["redacted"] = True
    return msgspec.json.encode(record) + b"\n"


def encode_note(note: TraceNote) -> bytes:
    """Return the line of a note."""
    record = {"type": note.kind, "at": note.at, "connection": _as_number(note.connection), **note.fields}
    return msgspec.json.encode(record) + b"\n"


def decode_header(line: bytes) -> TraceHeader:
    """Read the first line of a file; raise `TraceFault` if that is no header of ours."""
    try:
        found = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.get("type") != "header" or found.get("format") != FORMAT:
        raise TraceFault("not-a-trace", f"the first line is no header of a trace ({FORMAT})", 1)
    if found.get("version") != VERSION:
        raise TraceFault("unknown-version", f"a trace of version {found.get('version')!r}; this release reads 1", 1)
    return TraceHeader(
        at=_number(found, "at"),
        frames=_number(found, "frames"),
        dropped=_number(found, "dropped"),
        connections=_number(found, "connections"),
        is_redacted=found.get("redacted") is True,
        continued=found.get("continued") is True,
        program=_text(found, "program"),
    )


def decode_record(line: bytes, number: int) -> Record:
    """Read a line behind the header; raise `TraceFault` if it is no record."""
    try:
        found = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("type"), str):
        raise TraceFault("bad-line", f"line {number} is no record of a trace", number)
    connection = str(found.get("connection", ""))
    if found["type"] != "frame":
        fields = {name: value for name, value in found.items() if name not in ("type", "at", "connection")}
        return TraceNote(number, _number(found, "at"), connection, found["type"], fields)
    direction = found.get("direction")
    if direction not in (TO_AGENT, TO_CLIENT):
        raise TraceFault("bad-line", f"line {number} has a frame without a direction", number)
    elapsed = found.get("elapsed", 0.0)
    return TraceFrame(
        number,
        _number(found, "at"),
        connection,
        direction,
        _frame_bytes(found, number),
        float(elapsed) if isinstance(elapsed, int | float) else 0.0,
        is_redacted=found.get("redacted") is True,
        cut=_number(found, "cut"),
    )


def _frame_bytes(found: Mapping[str, Any], number: int) -> bytes:
    text, encoding = found.get("frame"), found.get("encoding", "utf8")
    if isinstance(text, str) and encoding == "utf8":
        return text.encode("utf-8", "surrogatepass")
    if isinstance(text, str) and encoding == "base64":
        try:
            return base64.b64decode(text, validate=True)
        except binascii.Error:
            pass
    raise TraceFault("bad-line", f"line {number} has a frame in no encoding that is known", number)


def _number(found: Mapping[str, Any], name: str) -> int:
    value = found.get(name, 0)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name, "")
    return value if isinstance(value, str) else ""


def _as_number(connection: str) -> int | str:
    return int(connection) if connection.isdecimal() else connection
