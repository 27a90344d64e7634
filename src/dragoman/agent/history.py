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
from msgspec.structs import replace

from dragoman.store.entries import Entry, EventEntry, TextEntry
from dragoman.vocabulary import events
from dragoman.vocabulary.compaction_state import CompactionState
from dragoman.vocabulary.content import Content, Text, text_of
from dragoman.vocabulary.options import Option, Plan, UnknownPlan
from dragoman.vocabulary.patches import apply_patch
from dragoman.vocabulary.tools import (
    FINAL_STATUSES,
    ContentItem,
    ExitStatus,
    TerminalItem,
    TerminalOutput,
    ToolContent,
)

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
    # `_meta` and unknown fields of the message, where it has any. Those of a chunk belong to the chunk.
    beside: events.Message | None = None

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
        if not (message.meta is message.extras is message.outer is UNSET):
            patch = self.kind(message.message_id, meta=message.meta, extras=message.extras, outer=message.outer)
            self.beside = apply_patch(self.beside or self.kind(message.message_id), patch)

    def whole(self, message_id: str) -> Any:
        content = [*(self.blocks or ()), *self._unsettled()]
        return self.kind(message_id, content) if self.beside is None else replace(self.beside, content=content)

    def _unsettled(self) -> tuple[Text, ...]:
        return (Text(self.text + "".join(self.more or ())),) if self.text else ()


class _Call(msgspec.Struct, gc=False):
    """A tool call: its last state, and what was appended to its content since."""

    update: events.ToolCallUpdate
    more: list[ToolContent] | None = None

    def patch(self, patch: events.ToolCallUpdate) -> None:
        if patch.content is not UNSET:
            self.more = None
        self.update = apply_patch(self.update, patch)

    def append(self, item: ToolContent) -> None:
        if self.more is None:
            self.more = []
        self.more.append(item)

    def whole(self) -> events.ToolCallUpdate:
        if self.more is None:
            return self.update
        return replace(self.update, content=[*(self.update.content or ()), *self.more])


class _Screen:
    """A display terminal as it grows."""

    __slots__ = ("has_output", "output", "update")

    def __init__(self, terminal_id: str) -> None:
        self.update = events.TerminalUpdate(terminal_id)
        self.output = bytearray()
        self.has_output = False

    def patch(self, update: events.TerminalUpdate) -> None:
        if update.output is not UNSET:
            self.output.clear()
            self.has_output = False
        if isinstance(update.output, TerminalOutput):
            self.feed(update.output.data)
        self.update = apply_patch(self.update, update)

    def feed(self, data: str) -> None:
        self.has_output = True
        try:
            self.output += base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            pass

    def whole(self) -> events.TerminalUpdate:
        if not self.has_output:
            return self.update  # unknown is not the same as empty
        output = self.update.output or TerminalOutput("")
        return replace(self.update, output=replace(output, data=base64.b64encode(self.output).decode("ascii")))


class History:
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
            if type(entry) is TextEntry:
                self._message(_WHOLE[entry.kind], entry.message_id).say(entry.text)
            elif type(entry) is EventEntry:
                event: Any = entry.event
                whole = _CHUNKS.get(type(event))
                if whole is None:
                    self._take(event)
                else:
                    self._message(whole, event.message_id).add(event.content)

    def retold(self) -> Iterable[events.AnyEvent]:
        """Yield the events that replay this history, in order of first appearance.

        The title is left out: it can be changed without an entry in the log.
        """
        early: set[str] = set()  # terminals that were told before the call that shows them
        for (kind, name), thing in self._told.items():
            if kind == "terminal" and name in early:
                continue
            if isinstance(thing, _Message):
                yield thing.whole(name)
            elif isinstance(thing, CompactionState):
                yield thing.value
            elif isinstance(thing, events.SessionInfoChanged):
                if thing.meta or thing.extras:
                    yield replace(thing, title=UNSET, updated_at=UNSET)
            elif isinstance(thing, _Call):
                call = thing.whole()
                for screen in self._screens_of(call, early):
                    yield screen.whole()
                yield call
            elif isinstance(thing, _Screen):
                early.add(name)
                yield thing.whole()
            else:
                yield thing

    def _screens_of(self, call: events.ToolCallUpdate, replayed: set[str]) -> Iterable[_Screen]:
        """Yield the terminals of a call that were not replayed yet: an ended call is replayed with its output."""
        for item in call.content or ():
            screen = self._told.get(("terminal", item.terminal_id)) if isinstance(item, TerminalItem) else None
            if screen is not None and screen.update.terminal_id not in replayed:
                replayed.add(screen.update.terminal_id)
                yield screen

    def repairs(self) -> list[Entry]:
        """What a turn that was cut off still lacks: its open calls failed, its open compactions were cancelled, and it
        ends as cancelled."""
        if not self.running:
            return []
        mended: list[Entry] = []
        for thing in self._told.values():
            call = thing.update if isinstance(thing, _Call) else None
            if call is not None and call.status not in FINAL_STATUSES:
                reason = ContentItem(Text(INTERRUPTED))
                mended.append(EventEntry(events.ToolCallContentChunk(call.tool_call_id, reason)))
                mended.append(EventEntry(events.ToolCallUpdate(call.tool_call_id, status="failed", capabilities=None)))
            elif isinstance(thing, _Screen) and not isinstance(thing.update.exit_status, ExitStatus):
                ended = events.TerminalUpdate(thing.update.terminal_id, exit_status=ExitStatus(), capabilities=None)
                mended.append(EventEntry(ended))
            elif isinstance(thing, CompactionState) and thing.is_open:
                mended.append(EventEntry(events.CompactionUpdate(thing.value.compaction_id, "cancelled")))
        return [*mended, EventEntry(events.Idle(stop_reason="cancelled"))]

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
                self._call(event.tool_call_id).patch(event)
            case events.ToolCallContentChunk():
                self._call(event.tool_call_id).append(event.content)
            case events.TerminalUpdate():
                self._screen(event.terminal_id).patch(event)
            case events.TerminalOutputChunk():
                self._screen(event.terminal_id).feed(event.data)
            case events.PlanUpdate():
                self._told["plan", _plan_id(event.plan)] = event
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
                before = self._told.get(("info", ""), events.SessionInfoChanged())
                self._told["info", ""] = apply_patch(before, event)
            case events.UsageChanged():
                before = self._told.get(("usage", ""))
                # The cost is patched; everything else of a usage update is a value of its own.
                cost = before.cost if before is not None and event.cost is UNSET else event.cost
                self._told["usage", ""] = replace(event, cost=cost)
            case events.CompactionUpdate() | events.CompactionSummaryChunk():
                self._compaction(event.compaction_id).apply(event)
            case _:
                self._unknown += 1
                self._told["unknown", str(self._unknown)] = event

    def _call(self, tool_call_id: str) -> _Call:
        found = self._told.get(("call", tool_call_id))
        if found is None:
            found = self._told["call", tool_call_id] = _Call(events.ToolCallUpdate(tool_call_id))
        return found

    def _compaction(self, compaction_id: str) -> CompactionState:
        found = self._told.get(("compaction", compaction_id))
        if found is None:
            found = self._told["compaction", compaction_id] = CompactionState(compaction_id)
        return found

    def _screen(self, terminal_id: str) -> _Screen:
        found = self._told.get(("terminal", terminal_id))
        if found is None:
            found = self._told["terminal", terminal_id] = _Screen(terminal_id)
        return found


def _plan_id(plan: Plan) -> str:
    """Return the id that a plan is replaced by; a well-formed plan of an unknown kind has one too."""
    if not isinstance(plan, UnknownPlan):
        return plan.plan_id
    plan_id = plan.fields.get("planId")
    return plan_id if isinstance(plan_id, str) else plan.kind
