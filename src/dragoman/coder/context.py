"""What the model sees: the conversation as the model has it, kept as notes in the session's log.

An item is noted when it is complete, so the log of a killed process may lack the end of an answer, or the result of a
call that ran. Reading mends both: text that the user saw and no note tells of is put back, and every call has a result.
No provider takes a call without one.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from dragoman.agent.session import Session
from dragoman.store.entries import Entry, Happened, Noted, Said, hear_extras
from dragoman.vocabulary.content import Content
from dragoman.vocabulary.events import UserMessage

NOTE: Final = "context"
INTERRUPTED: Final = "[interrupted]"


class UserSaid(msgspec.Struct, frozen=True, tag_field="who", tag="user"):
    """A prompt, as the model is given it."""

    message_id: str
    content: list[Content]


class Asked(msgspec.Struct, frozen=True):
    """A tool call the model has made."""

    id: str
    tool: str
    input: dict[str, Any]


class ModelSaid(msgspec.Struct, frozen=True, tag_field="who", tag="model"):
    """One response. `raw` is the provider's own form of it, for the provider that made it."""

    text: str = ""
    thought: str = ""
    calls: list[Asked] = []
    raw: Any = None


class ToolSaid(msgspec.Struct, frozen=True, tag_field="who", tag="tool"):
    """What came of a call, in words for the model; pictures and the like in `content`."""

    call_id: str
    tool: str
    text: str
    failed: bool = False
    content: list[Content] = []


class Summed(msgspec.Struct, frozen=True, tag_field="who", tag="summary"):
    """Everything before this, in short: a compaction."""

    text: str
    # The items after the summed ones that the model goes on seeing as they were.
    kept: int = 0


class Trimmed(msgspec.Struct, frozen=True, tag_field="who", tag="trimmed"):
    """The results of these calls are shown to the model as a line only: it has seen them."""

    call_ids: list[str]


class Forgotten(msgspec.Struct, frozen=True, tag_field="who", tag="forgotten"):
    """This message of the user and everything after it is not shown to the model again; empty: everything."""

    message_id: str = ""


Item = UserSaid | ModelSaid | ToolSaid | Summed
_Note = Item | Trimmed | Forgotten


class Context:
    """The items, in order. What is added is noted as well, so that it is there after a restart."""

    def __init__(self, items: list[Item], note: Callable[[object], Awaitable[None]]) -> None:
        self.items = items
        self._note = note

    async def add(self, item: Item) -> None:
        """The model sees this from now on."""
        self.items = _after(self.items, item)
        await self._note(item)

    async def trim(self, call_ids: list[str]) -> None:
        """Shorten the results of these calls."""
        self.items = _after(self.items, Trimmed(call_ids))
        await self._note(Trimmed(call_ids))

    async def forget(self, message_id: str = "") -> None:
        """Leave out a message and everything after it; without an id, everything."""
        self.items = _after(self.items, Forgotten(message_id))
        await self._note(Forgotten(message_id))


async def load(session: Session) -> Context:
    """The context of a session, as its log has it; an empty one where nothing is kept."""
    entries: list[Entry] = []
    if session.journal is not None:
        async for records in session.journal.log.read():
            entries += [record.entry for record in records]
    return Context(read(entries), partial(session.remember, NOTE))


def read(entries: Iterable[Entry]) -> list[Item]:
    """The items in a log, mended."""
    items: list[Item] = []
    # What was said since the last note, in a turn that the model has a part in: commands say things as well.
    unnoted: list[str] = []
    models_turn = False
    for entry in entries:
        if type(entry) is Said and entry.kind == "agent_message_chunk":
            if models_turn:
                unnoted.append(entry.text)
        elif isinstance(entry, Noted) and entry.kind == NOTE:
            note = msgspec.convert(entry.value, _Note, dec_hook=hear_extras)
            models_turn = models_turn or isinstance(note, UserSaid)
            unnoted = []
            items = _after(items, note)
        elif isinstance(entry, Happened) and isinstance(entry.event, UserMessage):
            items += _cut_off(unnoted)
            unnoted, models_turn = [], False
    return answered([*items, *_cut_off(unnoted)])


def _cut_off(said: Sequence[str]) -> list[Item]:
    return [ModelSaid("".join(said) + INTERRUPTED)] if said else []


def answered(items: Sequence[Item]) -> list[Item]:
    """The items, with a result behind every call and no result without a call."""
    result: list[Item] = []
    waiting: dict[str, Asked] = {}

    def settle() -> None:
        result.extend(ToolSaid(call.id, call.tool, INTERRUPTED, failed=True) for call in waiting.values())
        waiting.clear()

    for item in items:
        if isinstance(item, ToolSaid):
            if waiting.pop(item.call_id, None) is not None:
                result.append(item)
            continue
        settle()
        result.append(item)
        if isinstance(item, ModelSaid):
            waiting = {call.id: call for call in item.calls}
    settle()
    return result


def _after(items: list[Item], note: _Note) -> list[Item]:
    if isinstance(note, Summed):
        return [note, *(items[len(items) - note.kept :])]
    if isinstance(note, Trimmed):
        trimmed = set(note.call_ids)
        return [_short(item) if isinstance(item, ToolSaid) and item.call_id in trimmed else item for item in items]
    if isinstance(note, Forgotten):
        return items[: _place(items, note.message_id)] if note.message_id else []
    return [*items, note]


def _short(item: ToolSaid) -> ToolSaid:
    return msgspec.structs.replace(item, text=f"[trimmed: {len(item.text)} characters]", content=[])


def _place(items: Sequence[Item], message_id: str) -> int:
    for index, item in enumerate(items):
        if isinstance(item, UserSaid) and item.message_id == message_id:
            return index
    return len(items)
