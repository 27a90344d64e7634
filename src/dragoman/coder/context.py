"""What the model sees: the conversation as the model has it, kept as notes in the session's log.

An item is noted when it is complete: a response at its end, a tool result as soon as its call has ended. So a turn can
stop at any await, and a process at any byte, with text that was streamed and not noted, or with calls that have no
result yet. `Context.settle` closes both, in memory and in the log; it runs when a turn is interrupted, before a turn
begins, and after a log was read. What the model sees is therefore the same whether the session went on in this process
or was loaded again. (`well_formed` stands behind this for each single request, as no provider takes a call without a
result.)

How notes change the items is `_after`, and nothing else: it is used for a live session and for a log that is read.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeGuard

import msgspec

from dragoman.agent.client_services import check_turn
from dragoman.agent.session import Session, session_core
from dragoman.store.contract import Record
from dragoman.store.entries import Entry, EventEntry, NoteEntry, TextEntry, decode_extras
from dragoman.store.log_places import timeline_of
from dragoman.vocabulary.content import Audio, BlobResource, Content, Image, Resource, Text
from dragoman.vocabulary.events import BROKEN_OFF, AnyEvent, Notice, UserMessage

NOTE: Final = "context"
INTERRUPTED: Final = "[interrupted]"
# How everything begins that the agent tells the model on the user's side.
NOT_THE_USER: Final = "[This is Dragoman, not the user.]"


class ContextUserMessage(msgspec.Struct, frozen=True, tag_field="who", tag="user"):
    """A prompt, as the model is given it.

    `source`: what the agent itself tells the model on the user's side, and what about (`briefing`); empty: a prompt.
    """

    message_id: str
    content: list[Content]
    source: str = ""


class ContextToolCall(msgspec.Struct, frozen=True):
    """A tool call the model has made."""

    id: str
    tool: str
    input: dict[str, Any]


class ContextAssistantMessage(msgspec.Struct, frozen=True, tag_field="who", tag="model"):
    """A response of the model. `raw` is the provider's own form of it, for the provider that made it."""

    text: str = ""
    thought: str = ""
    calls: list[ContextToolCall] = []
    raw: Any = None


class ContextToolResult(msgspec.Struct, frozen=True, tag_field="who", tag="tool"):
    """What came of a call, in words for the model; pictures and the like in `content`."""

    call_id: str
    tool: str
    text: str
    failed: bool = False
    content: list[Content] = []


class ContextSummary(msgspec.Struct, frozen=True, tag_field="who", tag="summary"):
    """Everything before this, in short: a compaction."""

    text: str
    # The items after the summed ones that the model goes on seeing as they were.
    kept: int = 0
    # Ids of the user's messages among the summed items that the model goes on seeing word for word, before the summary.
    prompts: list[str] = []


class Trimmed(msgspec.Struct, frozen=True, tag_field="who", tag="trimmed"):
    """The results of these calls are shown to the model shortened: `keep` characters of each; 0: a line only."""

    call_ids: list[str]
    keep: int = 0


class MediaLeftOut(msgspec.Struct, frozen=True, tag_field="who", tag="media_left_out"):
    """Images and other media of these messages and results are shown to the model as a marker: a provider refused."""

    message_ids: list[str] = []
    call_ids: list[str] = []


class Forgotten(msgspec.Struct, frozen=True, tag_field="who", tag="forgotten"):
    """This message of the user and everything after it is not shown to the model again; empty: everything."""

    message_id: str = ""


Item = ContextUserMessage | ContextAssistantMessage | ContextToolResult | ContextSummary
_Note = Item | Trimmed | MediaLeftOut | Forgotten


class Context:
    """The items, in order. What is added is noted as well, so that it is there after a restart.

    Code of a turn that has ended already (a tool that ignored its cancel) cannot change it: the next turn owns it then.
    """

    def __init__(self, items: list[Item], note: Callable[[object], Awaitable[None]]) -> None:
        self.items = items
        # The text of the response that is being streamed; the owner of the list appends to it.
        self.streamed: list[str] = []
        # The model that has answered to these items; empty: not in this process.
        self.accepted_by = ""
        self._note = note

    async def add(self, item: Item) -> None:
        """Show this to the model from now on. A response takes the place of the text that was streamed for it."""
        if isinstance(item, ContextAssistantMessage):
            self.streamed = []
        await self._change(item)

    async def trim(self, call_ids: list[str], keep: int = 0) -> None:
        """Shorten the results of these calls to `keep` characters each; 0: to a line that says how long it was."""
        await self._change(Trimmed(call_ids, keep))

    async def leave_out_media(self, items: Sequence[Item]) -> None:
        """Show the images and other media of these items as markers."""
        users = [item.message_id for item in items if isinstance(item, ContextUserMessage)]
        calls = [item.call_id for item in items if isinstance(item, ContextToolResult)]
        await self._change(MediaLeftOut(users, calls))

    async def forget(self, message_id: str = "") -> None:
        """Leave out a message and everything after it; without an id, everything."""
        self.streamed = []
        await self._change(Forgotten(message_id))

    async def settle(self) -> None:
        """Close what was interrupted: keep streamed text with a mark, give every call without a result one."""
        streamed, self.streamed = self.streamed, []
        await self._change(*_settling(self.items, streamed))

    async def _change(self, *notes: _Note) -> None:
        """Apply all notes before the first await, so that a cancel leaves no half of them; then write them down."""
        check_turn()
        for note in notes:
            self.items = _after(self.items, note)
        for note in notes:
            await self._note(note)


async def load(session: Session) -> Context:
    """Return the context of a session, as its log has it; an empty one where nothing is kept."""
    records: list[Record] = []
    journal = session_core(session).journal
    if journal is not None:
        async for some in journal.log.read():
            records += some
    timeline = timeline_of(records)
    items, streamed = _replayed(entry for sequence, entry in records if timeline.counts(sequence))
    context = Context(items, partial(session_core(session).record_note, NOTE))
    context.streamed = streamed
    await context.settle()
    return context


def read(entries: Iterable[Entry]) -> list[Item]:
    """Return the items in a log, settled. Changes nothing in the log."""
    items, streamed = _replayed(entries)
    for note in _settling(items, streamed):
        items = _after(items, note)
    return items


def _replayed(entries: Iterable[Entry]) -> tuple[list[Item], list[str]]:
    """Return the items, and the text after them that was streamed and is in no item."""
    items: list[Item] = []
    # What was said since the last note, in a turn that the model has a part in: commands say things as well.
    streamed: list[str] = []
    is_model_turn = False
    # The answer has broken off: what is said next takes the place of what was streamed.
    is_broken_off = False
    for entry in entries:
        if type(entry) is TextEntry and entry.kind == "agent_message_chunk":
            if is_broken_off:
                streamed, is_broken_off = [], False
            if is_model_turn:
                streamed.append(entry.text)
        elif isinstance(entry, NoteEntry) and entry.kind == NOTE:
            note = msgspec.convert(entry.value, _Note, dec_hook=decode_extras)
            if not is_model_turn and _cut_off(streamed) != [note]:
                # Of a turn before this one. Where `settle` has noted it, it is not added twice.
                items += _cut_off(streamed)
            if isinstance(note, ContextUserMessage):
                items += interrupted_results(items)
            is_model_turn = is_model_turn or isinstance(note, ContextUserMessage)
            streamed, is_broken_off = [], False
            items = _after(items, note)
        elif isinstance(entry, EventEntry) and _is_breaking_off(entry.event):
            is_broken_off = True
        elif isinstance(entry, EventEntry) and isinstance(entry.event, UserMessage):
            is_model_turn = False
    return items, streamed


def _is_breaking_off(event: AnyEvent) -> bool:
    return isinstance(event, Notice) and isinstance(event.meta, Mapping) and event.meta.get(BROKEN_OFF) is True


def _settling(items: Sequence[Item], streamed: Sequence[str]) -> list[Item]:
    return [*_cut_off(streamed), *interrupted_results(items)]


def _cut_off(streamed: Sequence[str]) -> list[Item]:
    return [ContextAssistantMessage("".join(streamed) + INTERRUPTED)] if streamed else []


def interrupted_results(items: Sequence[Item]) -> list[Item]:
    """Return a result for every call of the last response that has none: it was interrupted."""
    done: set[str] = set()
    for item in reversed(items):
        if isinstance(item, ContextToolResult):
            done.add(item.call_id)
        elif isinstance(item, ContextAssistantMessage) and item.calls:
            return [interrupted_result(call) for call in item.calls if call.id not in done]
    return []


def interrupted_result(call: ContextToolCall) -> ContextToolResult:
    """Return the result of a call that was interrupted before it had one."""
    return ContextToolResult(call.id, call.tool, INTERRUPTED, failed=True)


# -- notes ------------------------------------------------------------------------------------------------------------


def _after(items: list[Item], note: _Note) -> list[Item]:
    match note:
        case ContextToolResult():
            return _with_result(items, note)
        case ContextSummary():
            summed, tail = items[: len(items) - note.kept], items[len(items) - note.kept :]
            told = newest_of_sources(items)
            verbatim = [item for item in summed if _is_named_prompt(item, note.prompts) or item in told]
            return [*verbatim, note, *tail]
        case Trimmed():
            trimmed = set(note.call_ids)
            return [
                shorten_result(item, note.keep)
                if isinstance(item, ContextToolResult) and item.call_id in trimmed
                else item
                for item in items
            ]
        case MediaLeftOut():
            return [_without_media(item) if _is_named(item, note) else item for item in items]
        case Forgotten():
            if not note.message_id:
                return []
            at = place_of_prompt(items, note.message_id)
            # A summary that was made in the turn of this prompt stands behind it, and is about what was before it.
            return [*items[:at], *(item for item in items[at:] if isinstance(item, ContextSummary))]
        case _:
            return [*items, note]


def _with_result(items: list[Item], result: ContextToolResult) -> list[Item]:
    """Return the items with a result behind its call, in the order of the calls, whichever ended first.

    A result of no call, or a second one of a call, changes nothing.
    """
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if isinstance(item, ContextAssistantMessage) and (
            places := {call.id: at for at, call in enumerate(item.calls)}
        ):
            if result.call_id not in places:
                continue
            for at in range(index + 1, len(items)):
                other = items[at]
                if isinstance(other, ContextToolResult) and other.call_id == result.call_id:
                    return items
                if not isinstance(other, ContextToolResult) or places.get(other.call_id, 0) > places[result.call_id]:
                    return [*items[:at], result, *items[at:]]
            return [*items, result]
    return items


def is_prompt(item: Item) -> TypeGuard[ContextUserMessage]:
    """Return whether an item is a message of the user, and not something that the agent tells on the user's side."""
    return isinstance(item, ContextUserMessage) and not item.source


def newest_of_sources(items: Sequence[Item]) -> list[ContextUserMessage]:
    """Return what the agent tells on the user's side, of each source the newest: a summary leaves these as they are."""
    return list({item.source: item for item in items if isinstance(item, ContextUserMessage) and item.source}.values())


def _is_named_prompt(item: Item, message_ids: Sequence[str]) -> bool:
    return isinstance(item, ContextUserMessage) and item.message_id in message_ids


def _is_named(item: Item, note: MediaLeftOut) -> bool:
    return _is_named_prompt(item, note.message_ids) or (
        isinstance(item, ContextToolResult) and item.call_id in note.call_ids
    )


def shorten_result(item: ContextToolResult, keep: int) -> ContextToolResult:
    """Return a result with `keep` characters, from its beginning and its end; with 0, a line that says its length."""
    text = item.text
    if not keep:
        short = f"[trimmed: {len(text)} characters]"
    elif len(text) > keep:
        mark = f"\n[… {len(text) - keep} of {len(text)} characters left out here: too long for the model …]\n"
        short = text[: keep - keep // 2] + mark + text[len(text) - keep // 2 :]
    else:
        return item
    return msgspec.structs.replace(item, text=short, content=[])


def is_media(block: Content) -> bool:
    """Return whether a provider may refuse this block for what it is: everything but text."""
    is_blob = isinstance(block, Resource) and isinstance(block.resource, BlobResource)
    return isinstance(block, Image | Audio) or is_blob


def media_of(item: Item) -> list[Content]:
    """Return the images and other media of an item."""
    return (
        [block for block in item.content if is_media(block)]
        if isinstance(item, ContextUserMessage | ContextToolResult)
        else []
    )


def media_type(block: Content) -> str:
    """Return the media type of an image or the like, as its sender named it."""
    if isinstance(block, Resource) and isinstance(block.resource, BlobResource):
        kind = block.resource.mime_type
        return kind if isinstance(kind, str) else "application/octet-stream"
    return block.mime_type if isinstance(block, Image | Audio) else ""


def media_bytes(block: Content) -> int:
    """Return about how many bytes an image or the like has, decoded."""
    if isinstance(block, Resource) and isinstance(block.resource, BlobResource):
        return len(block.resource.blob) * 3 // 4
    return len(block.data) * 3 // 4 if isinstance(block, Image | Audio) else 0


def _without_media(item: Item) -> Item:
    return with_markers(item, len(media_of(item)), "left out: the model's provider refused it")


def with_markers(item: Item, count: int, reason: str) -> Item:
    """Return the item with markers that say why in place of its first `count` images or other media."""
    if not count or not isinstance(item, ContextUserMessage | ContextToolResult):
        return item
    content: list[Content] = []
    for block in item.content:
        is_left_out = count > 0 and is_media(block)
        content.append(Text(f"[{media_type(block)} {reason}]") if is_left_out else block)
        count -= is_left_out
    return msgspec.structs.replace(item, content=content)


def place_of_prompt(items: Sequence[Item], message_id: str | None) -> int:
    """Return the index of the prompt with this id; the number of items where there is none."""
    for index, item in enumerate(items):
        if isinstance(item, ContextUserMessage) and item.message_id == message_id:
            return index
    return len(items)
