"""The prompts of a session that count, in order, and the rewinds that stand among them. Pure.

A prompt that was given while a turn ran has no state of files of its own: to go back before it is to go back before
its turn. The command `/rewind` is no prompt that is counted.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from dragoman.store.contract import Record
from dragoman.store.entries import EventEntry, TextEntry
from dragoman.store.log_places import Rewind, rewind_in, timeline_of
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import Idle, UserMessage

COMMAND: Final = "/rewind"


class PromptPlace(NamedTuple):
    """A prompt: its number from 1, its words, where it stands, and where the turn begins that took it."""

    number: int
    message_id: str
    text: str
    sequence: int
    turn: int
    turn_number: int


class RewindPlace(NamedTuple):
    """A rewind, and its place in the log."""

    sequence: int
    rewind: Rewind


def rewinds_in(records: Sequence[Record]) -> list[RewindPlace]:
    """Return all rewinds of a log."""
    found = ((record.sequence, rewind_in(record.entry)) for record in records)
    return [RewindPlace(sequence, rewind) for sequence, rewind in found if rewind is not None]


def prompts_in(records: Sequence[Record]) -> list[PromptPlace]:
    """Return the prompts that count."""
    timeline = timeline_of(records)
    found: list[PromptPlace] = []
    seen: set[str] = set()
    # Where the running turn began, and the number of its first prompt.
    turn, turn_number = 0, 0
    for sequence, entry in records:
        if not timeline.counts(sequence):
            continue
        if isinstance(entry, EventEntry) and isinstance(entry.event, Idle) and isinstance(entry.event.stop_reason, str):
            turn = 0
        message = _message(entry)
        if message is None or message[0] in seen:
            continue
        seen.add(message[0])
        is_counted = not is_rewind_command(message[1])
        if not turn:
            turn, turn_number = sequence, len(found) + is_counted
        if is_counted:
            found.append(PromptPlace(len(found) + 1, *message, sequence, turn, turn_number))
    return found


def is_rewind_command(text: str) -> bool:
    """Return whether a prompt is the command that rewinds."""
    return text.split(maxsplit=1)[:1] == [COMMAND]


def undoable(rewinds: Sequence[RewindPlace]) -> RewindPlace | None:
    """Return the last rewind that is not undone; None: there is none."""
    undone = {place.rewind.undoes for place in rewinds if place.rewind.undoes}
    own = [place for place in rewinds if not place.rewind.undoes and place.rewind.id not in undone]
    return own[-1] if own else None


def _message(entry: object) -> tuple[str, str] | None:
    """Return the id and the words of a user's message."""
    if isinstance(entry, TextEntry) and entry.kind == "user_message_chunk":
        return entry.message_id, entry.text
    if isinstance(entry, EventEntry) and isinstance(entry.event, UserMessage):
        words = " ".join(block.text for block in entry.event.content or () if isinstance(block, Text))
        return entry.event.message_id, words
    return None
