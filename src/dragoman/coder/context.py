"""What the model sees: the conversation as the model has it, kept as notes in the session's log.

An item is noted when it is complete, so the log of a killed process may lack the end of an answer, or the result of a
call that ran. Reading mends both: text that the user saw and no note tells of is put back, and every call has a result.
No provider takes a call without one.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from dragoman.agent.session import Session
from dragoman.store.entries import Entry, Noted, Said, hear_extras
from dragoman.vocabulary.content import Content

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


class Forgotten(msgspec.Struct, frozen=True, tag_field="who", tag="forgotten"):
    """This message of the user and everything after it is not shown to the model again; empty: everything."""

    message_id: str = ""


Item = UserSaid | ModelSaid | ToolSaid | Summed
_Note = Item | Forgotten


class Context:
    """The items, in order."""

    def __init__(self, session: Session) -> None:
        self.items: list[Item] = []
        self._session = session

    async def load(self) -> None:
        """Read what the session's log has; nothing where nothing is kept."""
        if self._session.journal is not None:
            entries: list[Entry] = []
            async for records in self._session.journal.log.read():
                entries += [record.entry for record in records]
            self.items = read(entries)

    async def add(self, item: Item) -> None:
        """The model sees this from now on, also after a restart."""
        self._take(item)
        await self._session.remember(NOTE, item)

    async def forget(self, message_id: str = "") -> None:
        """Leave out a message and everything after it; without an id, everything."""
        self._take(Forgotten(message_id))
        await self._session.remember(NOTE, Forgotten(message_id))

    def _take(self, note: _Note) -> None:
        self.items = _after(self.items, note)


def read(entries: Iterable[Entry]) -> list[Item]:
    """The items in a log, mended."""
    items: list[Item] = []
    unnoted: list[str] = []
    for entry in entries:
        if type(entry) is Said and entry.kind == "agent_message_chunk":
            unnoted.append(entry.text)
        elif isinstance(entry, Noted) and entry.kind == NOTE:
            note = msgspec.convert(entry.value, _Note, dec_hook=hear_extras)
            if unnoted and isinstance(note, UserSaid):
                items.append(ModelSaid("".join(unnoted) + INTERRUPTED))
            unnoted = []
            items = _after(items, note)
    if unnoted and items:
        items.append(ModelSaid("".join(unnoted) + INTERRUPTED))
    return answered(items)


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
    if not isinstance(note, Forgotten):
        return [*items, note] if not items else _pushed(items, note)
    if not note.message_id:
        return []
    for index, item in enumerate(items):
        if isinstance(item, UserSaid) and item.message_id == note.message_id:
            return items[:index]
    return items


def _pushed(items: list[Item], note: Item) -> list[Item]:
    items.append(note)
    return items
