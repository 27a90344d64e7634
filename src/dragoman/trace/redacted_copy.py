"""A trace again, without secrets, and if it is wanted without what was said and read. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from dragoman.trace.reader import RecordedTrace
from dragoman.trace.records import TraceFrame, encode_frame, encode_header, encode_note
from dragoman.trace.redaction import redact_frame, redact_value

# Under these names the wire has words of people and models, files, output of tools, and pictures.
_CONTENT: Final = frozenset(
    {"text", "content", "oldText", "newText", "data", "blob", "output", "rawInput", "rawOutput", "title", "description"}
)
# What stands under such a name and is structure all the same.
_STRUCTURE: Final = frozenset({"type", "sessionUpdate", "mimeType", "toolCallId", "terminalId", "kind", "status"})


def copy_lines(trace: RecordedTrace, known: Iterable[str], *, content: bool = False) -> Iterator[tuple[bytes, bool]]:
    """Yield the lines of the copy, each with whether it was changed. `content`: texts become their lengths."""
    secrets = tuple(known)
    header = trace.header._replace(is_redacted=True, frames=len(trace.frames()))
    yield encode_header(header), False
    for record in trace.records:
        if isinstance(record, TraceFrame):
            data = _without_content(record.data) if content else record.data
            found = redact_frame(data, secrets)
            written = found.text.encode("utf-8", "replace")
            is_changed = written != record.data
            yield encode_frame(record._replace(data=written, is_redacted=record.is_redacted or is_changed)), is_changed
        else:
            fields: dict[str, Any] = {name: redact_value(value, secrets) for name, value in record.fields.items()}
            if content and isinstance(fields.get("text"), str):
                fields["text"] = f"[{len(fields['text'])} characters]"
            yield encode_note(record._replace(fields=fields)), fields != record.fields


def _without_content(data: bytes) -> bytes:
    try:
        message = msgspec.json.decode(data)
    except (ValueError, RecursionError):
        # What is no message may be anything: the output of a program, a stack of calls with values.
        return f"[{len(data)} bytes]".encode()
    return msgspec.json.encode(_emptied(message))


def _emptied(value: Any, *, is_content: bool = False) -> Any:
    if isinstance(value, Mapping):
        return {
            key: one if key in _STRUCTURE else _emptied(one, is_content=is_content or key in _CONTENT)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [_emptied(one, is_content=is_content) for one in value]
    if is_content and isinstance(value, str):
        return f"[{len(value)} characters]"
    return value
