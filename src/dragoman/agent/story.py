"""A log read as a story: what a session looks like now, told again as briefly as possible, and how it must be mended.

Pieces of a message become the message, patches of a tool call become its last state, output becomes a snapshot, and
everything stands where it first appeared; a terminal before the call that shows it. Notices and states are moments,
not part of the story.
"""

import base64
import binascii
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import UNSET

from dragoman.store.entries import Entry, Happened, Said
from dragoman.vocabulary import events
from dragoman.vocabulary.content import Content, Text, text_of
from dragoman.vocabulary.options import Option, UnknownPlan
from dragoman.vocabulary.tools import FINAL_STATUSES, ContentItem, ExitStatus, TerminalItem, TerminalOutput

INTERRUPTED: Final = "interrupted"
_WHOLE: Final[dict[str, type[events.Message]]] = {
    "user_message_chunk": events.UserMessage,
    "agent_message_chunk": events.AgentMessage,
    "agent_thought_chunk": events.AgentThought,
}
# What a chunk is a piece of. Chunks come by the hundred thousand, and looking a type up is quicker than `match`.
_CHUNKS: Final[dict[type, type[events.Message]]] = {
    events.UserMessageChunk: events.UserMessage,
    events.AgentMessageChunk: events.AgentMessage,
    events.AgentThoughtChunk: events.AgentThought,
}


# A story may have 100,000 messages, and most are one piece of text: such a one has nothing in it that the garbage
# collector has to look at, or it would look at all of them again and again.
class _Message(msgspec.Struct, gc=False):
    """A message as it grows: settled blocks, and the plain text behind them."""

    kind: type[events.Message]
    text: str = ""
    more: list[str] | None = None
    blocks: list[Content] | None = None

    def say(self, text: str) -> None:
        if not self.text:
            self.text = text
        elif self.more is None:
            self.more = [text]
        else:
            self.more.append(text)

    def add(self, block: Content) -> None:
        if type(block) is Text and block.annotations is block.meta is block.extras is UNSET:
            self.say(block.text)
        else:
            if self.blocks is None:
                self.blocks = []
            self.blocks += (*self._unsettled(), block)
            self.text, self.more = "", None

    def patch(self, message: events.Message) -> None:
        if message.content is not UNSET:
            self.text, self.more = "", None
            self.blocks = list(message.content or ())

    def whole(self, message_id: str) -> Any:
        return self.kind(message_id, [*(self.blocks or ()), *self._unsettled()])

    def _unsettled(self) -> tuple[Text, ...]:
        return (Text(self.text + "".join(self.more or ())),) if self.text else ()


class _Grown(msgspec.Struct, gc=False):
    """A tool call or a summary: its last state, and what was appended to one of its lists since."""

    update: Any
    list_name: str
    more: list[Any] | None = None

    def patch(self, patch: Any) -> None:
        if getattr(patch, self.list_name) is not UNSET:
            self.more = None
        self.update = _patched(self.update, patch)

    def append(self, item: Any) -> None:
        if self.more is None:
            self.more = []
        self.more.append(item)

    def whole(self) -> Any:
        if self.more is None:
            return self.update
        items = [*(getattr(self.update, self.list_name) or ()), *self.more]
        return msgspec.structs.replace(self.update, **{self.list_name: items})


class _Screen:
    """A display terminal as it grows."""

    __slots__ = ("output", "update")

    def __init__(self, terminal_id: str) -> None:
        self.update = events.TerminalUpdate(terminal_id)
        self.output = bytearray()

    def patch(self, update: events.TerminalUpdate) -> None:
        if update.output is not UNSET:
            self.output.clear()
        if isinstance(update.output, TerminalOutput):
            self.feed(update.output.data)
        self.update = _patched(self.update, update)

    def feed(self, data: str) -> None:
        try:
            self.output += base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            pass

    def whole(self) -> events.TerminalUpdate:
        output = TerminalOutput(base64.b64encode(self.output).decode("ascii"))
        return msgspec.structs.replace(self.update, output=output)


class Story:
    """Fed with a log's entries in order."""

    def __init__(self) -> None:
        self.running = False
        self.first_words = ""
        self.options: list[Option] | None = None
        # Everything that is told again, under a name, in the order of first appearance.
        self._told: dict[tuple[str, str], Any] = {}
        self._unknown = 0

    def take(self, entries: Iterable[Entry]) -> None:
        """The next entries."""
        for entry in entries:
            if type(entry) is Said:
                self._message(_WHOLE[entry.kind], entry.message_id).say(entry.text)
            elif type(entry) is Happened:
                event: Any = entry.event
                whole = _CHUNKS.get(type(event))
                if whole is None:
                    self._take(event)
                else:
                    self._message(whole, event.message_id).add(event.content)

    def retold(self) -> Iterable[events.AnyEvent]:
        """The story, told again. Its title is not in it: that may have changed while nobody wrote."""
        early: set[str] = set()  # terminals that were told before the call that shows them
        for (kind, name), thing in self._told.items():
            if kind == "info" or (kind == "terminal" and name in early):
                continue
            if isinstance(thing, _Message):
                yield thing.whole(name)
            elif isinstance(thing, _Grown):
                call = thing.whole()
                for screen in self._shown(call, early):
                    yield screen.whole()
                yield call
            elif isinstance(thing, _Screen):
                early.add(name)
                yield thing.whole()
            else:
                yield thing

    def _shown(self, call: Any, told: set[str]) -> Iterable[_Screen]:
        """The terminals that a call shows and nobody was told of: a call that has ended is told with its output."""
        for item in (call.content or ()) if isinstance(call, events.ToolCallUpdate) else ():
            screen = self._told.get(("terminal", item.terminal_id)) if isinstance(item, TerminalItem) else None
            if screen is not None and screen.update.terminal_id not in told:
                told.add(screen.update.terminal_id)
                yield screen

    def repairs(self) -> list[Entry]:
        """What a turn that was cut off still lacks: its open calls failed, and it ends as cancelled."""
        if not self.running:
            return []
        mended: list[Entry] = []
        for thing in self._told.values():
            call = thing.update if isinstance(thing, _Grown) else None
            if isinstance(call, events.ToolCallUpdate) and call.status not in FINAL_STATUSES:
                reason = ContentItem(Text(INTERRUPTED))
                mended.append(Happened(events.ToolCallContentChunk(call.tool_call_id, reason)))
                mended.append(Happened(events.ToolCallUpdate(call.tool_call_id, status="failed", capabilities=None)))
            elif isinstance(thing, _Screen) and not isinstance(thing.update.exit_status, ExitStatus):
                ended = events.TerminalUpdate(thing.update.terminal_id, exit_status=ExitStatus(), capabilities=None)
                mended.append(Happened(ended))
        return [*mended, Happened(events.Idle(stop_reason="cancelled"))]

    def _message(self, kind: type[events.Message], message_id: str) -> _Message:
        found = self._told.get(("message", message_id))
        if found is None:
            found = self._told["message", message_id] = _Message(kind)
        return found

    def _take(self, event: events.AnyEvent) -> None:
        match event:
            case events.Message():
                self._message(type(event), event.message_id).patch(event)
                if isinstance(event, events.UserMessage):
                    self.running = True
                    self.first_words = self.first_words or text_of(event.content or [])
            case events.ToolCallUpdate():
                self._call(event)
            case events.ToolCallContentChunk():
                self._call(events.ToolCallUpdate(event.tool_call_id)).append(event.content)
            case events.TerminalUpdate():
                self._screen(event.terminal_id).patch(event)
            case events.TerminalOutputChunk():
                self._screen(event.terminal_id).feed(event.data)
            case events.PlanUpdate():
                plan_id = event.plan.kind if isinstance(event.plan, UnknownPlan) else event.plan.plan_id
                self._told["plan", plan_id] = event
            case events.PlanRemoved():
                self._told.pop(("plan", event.plan_id), None)
            case events.Running() | events.RequiresAction():
                self.running = True
            case events.Idle():
                self.running = self.running and not isinstance(event.stop_reason, str)
            case events.Notice() | events.UnknownState():
                pass
            case _:
                self._rest(event)

    def _rest(self, event: events.AnyEvent) -> None:
        match event:
            case events.OptionsChanged():
                self.options = event.config_options
                self._told["options", ""] = event
            case events.CommandsChanged():
                self._told["commands", ""] = event
            case events.SessionInfoChanged():
                before = self._told.get(("info", ""))
                self._told["info", ""] = event if before is None else _patched(before, event)
            case events.UsageChanged():
                self._told["usage", ""] = event
            case events.CompactionUpdate():
                self._told["compaction", event.compaction_id] = _Grown(event, "summary")
            case events.CompactionSummaryChunk():
                before = self._told.get(("compaction", event.compaction_id))
                if before is not None:
                    before.append(event.content)
            case _:
                self._unknown += 1
                self._told["unknown", str(self._unknown)] = event

    def _call(self, patch: events.ToolCallUpdate) -> _Grown:
        found = self._told.get(("call", patch.tool_call_id))
        if found is None:
            found = self._told["call", patch.tool_call_id] = _Grown(patch, "content")
        else:
            found.patch(patch)
        return found

    def _screen(self, terminal_id: str) -> _Screen:
        found = self._told.get(("terminal", terminal_id))
        if found is None:
            found = self._told["terminal", terminal_id] = _Screen(terminal_id)
        return found


def _patched(before: Any, patch: Any) -> Any:
    """A patch applied: absent leaves alone, null clears, a value replaces; `_meta` merges by key."""
    changes: dict[str, object] = {}
    for name in before.__struct_fields__:
        value = getattr(patch, name)
        if value is UNSET:
            continue
        if name == "meta" and isinstance(value, dict) and isinstance(before.meta, dict):
            merged = {**before.meta, **value}
            value = {key: item for key, item in merged.items() if item is not None}
        changes[name] = UNSET if value is None else value
    return msgspec.structs.replace(before, **changes)
