"""Places in a log, by the sequence numbers of entries: where a message ends, and what counts after rewinds.

A rewind is a note (`REWIND`) with the sequence number that the conversation goes back to. The log keeps everything;
what counts behind a rewind is what counted at that number, and what comes after the note. To undo a rewind is to go
back to the entry before its note, so both are the same entry, and every one of them can be undone.
"""

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from dragoman.errors import UsageError
from dragoman.store.contract import Record
from dragoman.store.entries import Entry, EventEntry, NoteEntry, TextEntry
from dragoman.vocabulary import events

# How the note is called in a log.
REWIND: Final = "rewind"
Scope = Literal["both", "files", "conversation"]
# What describes the session and not its conversation: the last one counts, wherever the conversation has gone back to.
_SETTINGS: Final = (events.OptionsChanged, events.CommandsChanged, events.SessionInfoChanged, events.UsageChanged)
# What may stand behind the last piece of a message and still belongs to it: notes, and the end of its turn.
_BESIDE: Final = (*_SETTINGS, events.Running, events.RequiresAction, events.Idle, events.Notice)


class Rewind(msgspec.Struct, frozen=True, rename="camel"):
    """The note of a rewind. `to` is the sequence number of the last entry that counts then.

    `message_id` is the prompt that it goes back before; empty: it undoes the rewind with the id `undoes`.
    """

    id: str
    to: int
    scope: Scope
    message_id: str = ""
    undoes: str = ""
    # What became of files, in numbers for a transcript.
    files: int = 0

    @property
    def rewinds_conversation(self) -> bool:
        """Whether the conversation goes back, and not only files."""
        return self.scope != "files"


def rewind_in(entry: Entry) -> Rewind | None:
    """Return the rewind that an entry is; None: it is none, or one of another release."""
    if not isinstance(entry, NoteEntry) or entry.kind != REWIND:
        return None
    try:
        return msgspec.convert(entry.value, Rewind)
    except msgspec.ValidationError:
        return None


def rewind_note(rewind: Rewind) -> NoteEntry:
    """Return the entry for a log."""
    return NoteEntry(REWIND, msgspec.to_builtins(rewind))


class _Span(NamedTuple):
    """Entries that count: from the first number to the last one."""

    first: int
    last: int


class Timeline:
    """Which entries of a log count: `add` its rewinds in order."""

    def __init__(self) -> None:
        # The number of each note, and what counted up to it.
        self._marks: list[tuple[int, list[_Span]]] = [(0, [])]

    def __repr__(self) -> str:
        return f"<Timeline rewinds={len(self._marks) - 1}>"

    def __bool__(self) -> bool:
        """Whether there is any rewind."""
        return len(self._marks) > 1

    def add(self, sequence: int, rewind: Rewind) -> None:
        """Add the rewind that stands at this number."""
        self._marks.append((sequence, self._spans(min(rewind.to, sequence - 1))))

    def counts(self, sequence: int) -> bool:
        """Return whether the entry counts at the end of the log."""
        number, spans = self._marks[-1]
        return sequence > number or any(first <= sequence <= last for first, last in spans)

    def _spans(self, to: int) -> list[_Span]:
        """Return what counted when the entry `to` was the last one."""
        number, spans = next(mark for mark in reversed(self._marks) if mark[0] <= to)
        return [*spans, _Span(number + 1, to)] if to > number else spans


def counts_always(entry: Entry) -> bool:
    """Return whether an entry counts wherever the conversation has gone back to: settings, and notes about them."""
    return isinstance(entry, EventEntry) and isinstance(entry.event, _SETTINGS)


def timeline_of(records: Iterable[Record], timeline: Timeline | None = None) -> Timeline:
    """Return which entries of a log count, by its rewinds; `timeline` is that of the records before these."""
    timeline = Timeline() if timeline is None else timeline
    for sequence, entry in records:
        rewind = rewind_in(entry)
        if rewind is not None and rewind.rewinds_conversation:
            timeline.add(sequence, rewind)
    return timeline


async def counting(read: Callable[[], AsyncIterable[Sequence[Record]]]) -> AsyncIterator[Sequence[Record]]:
    """Yield the entries of a log that count; `read` begins to read it, and is called twice."""
    timeline = Timeline()
    async for records in read():
        timeline_of(records, timeline)
    async for records in read():
        counted = [record for record in records if timeline.counts(record.sequence) or counts_always(record.entry)]
        if counted:
            yield counted


class MessageTakenOut(UsageError):
    """A rewind has taken the message out of the conversation."""


async def end_of_counted_message(read: Callable[[], AsyncIterable[Sequence[Record]]], message_id: str) -> int | None:
    """Return the number of the last entry that belongs to a message; None if there is no such message.

    A copy of the log up to there would bring back what a rewind has taken out: raises `MessageTakenOut`. `read` begins
    to read the log, and is called twice.
    """
    timeline = Timeline()
    async for records in read():
        timeline_of(records, timeline)
    end = await end_of_message(read(), message_id)
    if end is not None and not timeline.counts(end):
        raise MessageTakenOut
    return end


async def end_of_message(log: AsyncIterable[Sequence[Record]], message_id: str) -> int | None:
    """Return the number of the last entry that belongs to a message; None if there is no such message.

    What the agent notes behind it belongs to it, and the end of the turn, if nothing else comes before that.
    """
    end, is_behind = None, False
    async for records in log:
        for sequence, entry in records:
            if message_id_of(entry) == message_id:
                end, is_behind = sequence, True
            elif is_behind and _stands_beside(entry):
                end = sequence
            else:
                is_behind = False
    return end


def message_id_of(entry: Entry) -> str:
    """Return the id of the message that an entry is, or is a piece of; empty: of none."""
    if isinstance(entry, TextEntry):
        return entry.message_id
    if isinstance(entry, EventEntry) and isinstance(entry.event, events.Message | events.Chunk):
        return entry.event.message_id or ""
    return ""


def _stands_beside(entry: Entry) -> bool:
    if isinstance(entry, NoteEntry):
        return entry.kind != REWIND
    return isinstance(entry, EventEntry) and isinstance(entry.event, _BESIDE)
