"""What stands in a log, and how it is written down.

An entry is an event, or a note of the agent (what the model has seen, which rules the user has set). Events are kept
in the vocabulary's own JSON, so a log outlives the protocol version it was lived in. Neighbouring pieces of one
message become one entry.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final, NamedTuple

import msgspec

from dragoman.surrogates import replace_lone_surrogates
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import CHUNK_TYPES, AnyEvent
from dragoman.vocabulary.word import Extras


class TextEntry(NamedTuple):
    """A piece of text of a message: the entry that comes by the hundred thousand."""

    kind: str
    message_id: str
    text: str


class EventEntry(NamedTuple):
    """An event."""

    event: AnyEvent


class NoteEntry(NamedTuple):
    """Something the agent wants to find again; the store does not look inside."""

    kind: str
    value: object


Entry = TextEntry | EventEntry | NoteEntry


class Record(NamedTuple):
    """One entry as it stands in the log."""

    sequence: int
    entry: Entry


class Batch(NamedTuple):
    """Some entries of a log, whether the log ends with them, and what was lost by a repair; None: nothing."""

    records: Sequence[Record]
    is_last: bool
    lost: str | None = None


# The kinds of rows. They are part of the file format: a kind that is not known is an entry of another release.
_EVENT: Final = "event"
_NOTE: Final = "note:"


class UnreadableEntry(Exception):
    """A stored entry that is not what we write."""


class UnwritableEntry(Exception):
    """An entry that has no place in a log: our caller's mistake."""


def join_texts(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries, with neighbouring pieces of one message made one."""
    result: list[Entry] = []
    pieces: list[str] = []
    last: TextEntry | None = None
    for entry in entries:
        if (
            type(entry) is TextEntry
            and last is not None
            and entry.message_id == last.message_id
            and entry.kind == last.kind
        ):
            pieces.append(entry.text)
            continue
        if last is not None:
            result.append(TextEntry(last.kind, last.message_id, "".join(pieces)))
        if type(entry) is TextEntry:
            last, pieces = entry, [entry.text]
        else:
            last = None
            result.append(entry)
    if last is not None:
        result.append(TextEntry(last.kind, last.message_id, "".join(pieces)))
    return result


def encode_entry(entry: Entry) -> tuple[str, bytes]:
    """Return an entry as the kind and the body of a row; raise `UnwritableEntry` if that cannot be."""
    try:
        match entry:
            case TextEntry():
                return entry.kind, _encode_text(entry)
            case EventEntry():
                return _EVENT, _ENCODE(entry.event)
            case NoteEntry():
                return f"{_NOTE}{entry.kind}", _ENCODE(entry.value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UnwritableEntry(type(error).__name__) from error


def _encode_text(entry: TextEntry) -> bytes:
    try:
        return _ENCODE([entry.message_id, entry.text])
    except UnicodeEncodeError:
        # Half of a surrogate pair: two halves in neighbouring pieces become what was meant, a lone one U+FFFD.
        return _ENCODE([entry.message_id, replace_lone_surrogates(entry.text)])


def decode_entry(kind: str, body: bytes) -> Entry:
    """Return the entry in a row; raise `UnreadableEntry` if there is none."""
    try:
        if kind in CHUNK_TYPES:
            message_id, text = _DECODE_TEXT(body)
            return TextEntry(kind, message_id, text)
        if kind == _EVENT:
            return EventEntry(_event_decoder().decode(body))
        if kind.startswith(_NOTE):
            return NoteEntry(kind.removeprefix(_NOTE), msgspec.json.decode(body))
    except (ValueError, RecursionError) as error:
        raise UnreadableEntry(str(error)) from error
    raise UnreadableEntry(f"unknown kind {kind[:40]!r}")


def event_of(entry: Entry) -> AnyEvent | None:
    """Return the event that an entry stands for; None if it stands for none."""
    match entry:
        case TextEntry():
            return CHUNK_TYPES[entry.kind](Text(entry.text), message_id=entry.message_id)
        case EventEntry():
            return entry.event
        case NoteEntry():
            return None


def events_of(entries: Sequence[Entry]) -> list[AnyEvent]:
    """Return the events among the entries."""
    found = (event_of(entry) for entry in entries)
    return [event for event in found if event is not None]


# Extras are not a type msgspec knows, so that peers cannot fill them; in our own files they are plain objects.
def _encode_extras(value: object) -> object:
    if isinstance(value, Extras):
        return value.fields
    raise TypeError(f"{type(value).__name__} has no place in a log")


def decode_extras(kind: type, value: object) -> object:
    if kind is Extras and isinstance(value, dict):
        return Extras(value)
    if kind is object:
        return value  # plain JSON, as the field allows
    raise ValueError(f"{kind.__name__} has no place in a log")


_ENCODE: Final = msgspec.json.Encoder(enc_hook=_encode_extras).encode
_DECODE_TEXT: Final = msgspec.json.Decoder(tuple[str, str]).decode


@cache
def _event_decoder() -> "msgspec.json.Decoder[AnyEvent]":
    """Made when the first event is read: it costs milliseconds, and most agents start without reading one."""
    return msgspec.json.Decoder(AnyEvent, dec_hook=decode_extras)
