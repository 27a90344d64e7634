"""Own what a session looks like after its events: the one reducer (`SessionState`) and its parts. Pure.

Every part of the product that needs to know how things stand (the stored history, a permission question, the version 1
dialect, the terminal, a client that joins a turn) folds events here, or in the part it needs: `MessageState`,
`ToolCallState`, `TerminalState`, `CompactionState`. The rules:

| event | effect |
|---|---|
| `UserMessage`, `AgentMessage`, `AgentThought` | creates the message, or patches it: `content` replaces, null clears |
| their chunks | create the message if it is new, and append one block |
| `ToolCallUpdate`, `ToolCallContentChunk` | either creates; patched by field (`patches`), a chunk appends an item |
| `TerminalUpdate`, `TerminalOutputChunk` | either creates; patched by field, `output` replaces, a chunk appends bytes |
| `CompactionUpdate`, `CompactionSummaryChunk` | either creates, a chunk in progress; patched, a chunk appends a block |
| `PlanUpdate`, `PlanRemoved` | a plan replaces the one with its id, or is gone |
| `OptionsChanged`, `CommandsChanged` | replaced as a whole |
| `SessionInfoChanged` | patched by field |
| `UsageChanged` | replaced, but a cost that is absent stays |
| `Running`, `RequiresAction`, `Idle` | the state of the turn |
| `Notice`, `UnknownEvent` | kept in their place, each by itself: nothing can change them |
| `UnknownState` | none: what it means is not known |

`_meta` and unknown fields of whole messages, updates and session information merge by key. Those of a chunk belong to
the chunk and are not kept.

`apply` changes the state in place: a log has 100,000 chunks, and a new state for each would copy everything before it.
So a state has one owner and is not handed out; what it returns are frozen values.
"""

import base64
import binascii
from collections.abc import Iterator
from typing import Any, Final, assert_never

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from dragoman.vocabulary import events
from dragoman.vocabulary.content import Content, Text
from dragoman.vocabulary.options import AnyCommand, Option, Plan, UnknownPlan
from dragoman.vocabulary.patches import apply_patch
from dragoman.vocabulary.tool_call_state import ToolCallState
from dragoman.vocabulary.tools import ExitStatus, TerminalOutput

AnyMessage = events.UserMessage | events.AgentMessage | events.AgentThought
# The message that a chunk is a piece of.
MESSAGE_OF_CHUNK: Final[dict[type[events.Chunk], type[AnyMessage]]] = {
    events.UserMessageChunk: events.UserMessage,
    events.AgentMessageChunk: events.AgentMessage,
    events.AgentThoughtChunk: events.AgentThought,
}
_IN_PROGRESS: Final = "in_progress"


class SessionState:
    """The state of one session, or of the part of it whose events are applied."""

    def __init__(self) -> None:
        self.turn: events.Running | events.RequiresAction | events.Idle = events.Idle()
        # Everything but the turn, by kind and id, in the order of first appearance. A message has its class for a kind:
        # agents exist that give a message and its thought one id.
        self._parts: dict[tuple[object, str], Any] = {}
        self._unkeyed = 0

    def __repr__(self) -> str:
        return f"<SessionState {type(self.turn).__name__} parts={len(self._parts)}>"

    def apply(self, event: events.AnyEvent) -> None:
        """Fold the next event into the state."""
        match event:
            case events.Chunk():
                self.message(MESSAGE_OF_CHUNK[type(event)], event.message_id).append(event.content)
            case events.Message():
                self.message(type(event), event.message_id).patch(event)
            case events.ToolCallUpdate() | events.ToolCallContentChunk():
                self._part(ToolCallState, event.tool_call_id).apply(event)
            case events.TerminalUpdate() | events.TerminalOutputChunk():
                self._part(TerminalState, event.terminal_id).apply(event)
            case events.CompactionUpdate() | events.CompactionSummaryChunk():
                self._part(CompactionState, event.compaction_id).apply(event)
            case events.PlanUpdate():
                self._parts[events.PlanUpdate, plan_id(event.plan)] = event
            case events.PlanRemoved():
                self._parts.pop((events.PlanUpdate, event.plan_id), None)
            case events.OptionsChanged() | events.CommandsChanged():
                self._parts[type(event), ""] = event
            case events.SessionInfoChanged():
                before = self._parts.get((events.SessionInfoChanged, ""), events.SessionInfoChanged())
                self._parts[events.SessionInfoChanged, ""] = apply_patch(before, event)
            case events.UsageChanged():
                usage = self.usage
                if usage is not None and event.cost is UNSET:
                    event = replace(event, cost=usage.cost)
                self._parts[events.UsageChanged, ""] = event
            case events.Notice() | events.UnknownEvent():
                self._unkeyed += 1
                self._parts[type(event), str(self._unkeyed)] = event
            case events.Running() | events.RequiresAction() | events.Idle():
                self.turn = event
            case events.UnknownState():
                pass
            case _:
                assert_never(event)

    def snapshot(self) -> Iterator[events.AnyEvent]:
        """Yield the events that make this state anew, one for each thing, in the order of first appearance.

        The state of the turn is not among them. Do not apply events while this is read.
        """
        for part in self._parts.values():
            yield part.value if isinstance(part, _GROWING) else part

    def message(self, kind: type[AnyMessage], message_id: str) -> "MessageState":
        """Return a message to append to, made when it is first named.

        For text that comes without an event: a log has it by the hundred thousand pieces.
        """
        found = self._parts.get((kind, message_id))
        if found is None:
            found = self._parts[kind, message_id] = MessageState(kind, message_id)
        return found

    def text(self, kind: type[AnyMessage]) -> str:
        """Return the text of all messages of a kind, in the order of first appearance; other content is left out."""
        messages = [part.value for (of, _), part in self._parts.items() if of is kind]
        return "".join(block.text for message in messages for block in message.content if type(block) is Text)

    def tool_call(self, tool_call_id: str) -> events.ToolCallUpdate | None:
        """Return a tool call as it is now; None if no event was about it."""
        found = self._parts.get((ToolCallState, tool_call_id))
        return None if found is None else found.value

    def terminal(self, terminal_id: str) -> events.TerminalUpdate | None:
        """Return a display terminal as it is now; None if no event was about it."""
        found = self._parts.get((TerminalState, terminal_id))
        return None if found is None else found.value

    @property
    def options(self) -> list[Option] | None:
        """The session options; None before they were sent."""
        found = self._parts.get((events.OptionsChanged, ""))
        return None if found is None else list(found.config_options)

    @property
    def commands(self) -> list[AnyCommand] | None:
        """The slash commands; None before they were sent."""
        found = self._parts.get((events.CommandsChanged, ""))
        return None if found is None else list(found.available_commands)

    @property
    def usage(self) -> events.UsageChanged | None:
        """How full the context window is; None before that was sent."""
        return self._parts.get((events.UsageChanged, ""))

    @property
    def title(self) -> str | None:
        """The session's title, if it has one."""
        found = self._parts.get((events.SessionInfoChanged, ""))
        return found.title or None if found is not None else None

    def _part(self, kind: Any, id: str) -> Any:
        found = self._parts.get((kind, id))
        if found is None:
            found = self._parts[kind, id] = kind(id)
        return found


# A log may have 100,000 messages, and most are one piece of text: such a one has nothing in it that the garbage
# collector has to look at, or it would look at all of them again and again.
class MessageState(msgspec.Struct, gc=False):
    """A message as it grows: settled blocks, and the plain text behind them."""

    kind: type[AnyMessage]
    message_id: str
    _text: str = ""
    _more: list[str] | None = None
    _blocks: list[Content] | None = None
    # `_meta` and unknown fields of the message, where it has any.
    _beside: AnyMessage | None = None

    def __repr__(self) -> str:
        blocks = len(self._blocks or ()) + bool(self._text)
        return f"<MessageState {self.kind.__name__} {self.message_id!r} blocks={blocks}>"

    def append_text(self, text: str) -> None:
        """Append plain text; pieces that follow each other become one block."""
        if not self._text:
            self._text = text
        elif self._more is None:
            self._more = [text]
        else:
            self._more.append(text)

    def append(self, block: Content) -> None:
        """Append one block."""
        if type(block) is Text and block.annotations is block.meta is block.extras is UNSET:
            self.append_text(block.text)
        else:
            if self._blocks is None:
                self._blocks = []
            self._blocks += (*self._open_text(), block)
            self._text, self._more = "", None

    def patch(self, message: AnyMessage) -> None:
        """Fold a whole message into the state: its content if it has any, and what stands beside that."""
        if message.content is not UNSET:
            self._text, self._more = "", None
            self._blocks = list(message.content or ())
        if not (message.meta is message.extras is message.outer is UNSET):
            self._beside = apply_patch(self._beside or self.kind(self.message_id), message, _BESIDE)

    @property
    def value(self) -> AnyMessage:
        """The message as it is now."""
        content: list[Content] = self._open_text()
        if self._blocks is not None:
            content = self._blocks + content
        return self.kind(self.message_id, content) if self._beside is None else replace(self._beside, content=content)

    def _open_text(self) -> list[Content]:
        """Return the text behind the blocks as one block; later text goes on with it."""
        text = self._text if self._more is None else self._text + "".join(self._more)
        return [Text(text)] if text else []


_BESIDE: Final = ("meta", "extras", "outer")


class TerminalState:
    """A display terminal as it grows. With `keep` only the last so many bytes of its output are held."""

    __slots__ = ("_has_output", "_keep", "_output", "_update", "is_cut", "received")

    def __init__(self, terminal_id: str, keep: int | None = None) -> None:
        self._update = events.TerminalUpdate(terminal_id)  # of its output only what stands beside the data
        self._output = bytearray()
        self._has_output = False
        self._keep = keep
        self.is_cut = False  # the start of the output is not held any more
        self.received = 0  # bytes of output that came, whether they are still held or not

    def __repr__(self) -> str:
        return f"<TerminalState {self._update.terminal_id!r} bytes={len(self._output)} ended={self.has_ended}>"

    def apply(self, event: events.TerminalUpdate | events.TerminalOutputChunk) -> None:
        """Fold one event of this terminal into the state."""
        if isinstance(event, events.TerminalOutputChunk):
            self._append(event.data)
            return
        if event.output is not UNSET:
            self._output.clear()
            self._has_output = self.is_cut = False
        if isinstance(event.output, TerminalOutput):
            self._append(event.output.data)
            event = replace(event, output=replace(event.output, data=""))
        self._update = apply_patch(self._update, event)

    @property
    def command(self) -> str:
        """The command line; empty if it is not known."""
        return self._update.command or ""

    @property
    def output(self) -> bytes:
        """The output that is held."""
        return bytes(self._output)

    @property
    def size(self) -> int:
        """How many bytes of output are held."""
        return len(self._output)

    @property
    def exit_status(self) -> ExitStatus | None:
        """How the command ended; None while it has not."""
        return self._update.exit_status or None

    @property
    def has_ended(self) -> bool:
        """Whether the command has ended."""
        return self.exit_status is not None

    @property
    def value(self) -> events.TerminalUpdate:
        """The terminal as one update; a field that no event has named, or that was cleared, is UNSET."""
        if not self._has_output:
            return self._update  # unknown is not the same as empty
        output = self._update.output or TerminalOutput("")
        return replace(self._update, output=replace(output, data=base64.b64encode(self._output).decode("ascii")))

    def _append(self, data: str) -> None:
        self._has_output = True
        found = output_bytes(data)
        self.received += len(found)
        self._output += found
        if self._keep is not None and len(self._output) > self._keep:
            del self._output[: -self._keep]
            self.is_cut = True


class CompactionState:
    """The state of one compaction; a summary chunk of an unknown one creates it in progress."""

    __slots__ = ("_summary", "_update")

    def __init__(self, compaction_id: str) -> None:
        self._update = events.CompactionUpdate(compaction_id, _IN_PROGRESS)
        self._summary: list[Content] = []

    def __repr__(self) -> str:
        blocks = len(self._summary)
        return f"<CompactionState {self._update.compaction_id!r} {self._update.status} blocks={blocks}>"

    def apply(self, event: events.CompactionUpdate | events.CompactionSummaryChunk) -> None:
        """Fold one event of this compaction into the state."""
        if isinstance(event, events.CompactionSummaryChunk):
            self._summary.append(event.content)
            return
        if event.summary is not UNSET:
            self._summary = list(event.summary or ())
        self._update = apply_patch(self._update, replace(event, summary=UNSET))

    @property
    def value(self) -> events.CompactionUpdate:
        """The compaction as one update; what no event has named, or what was cleared, is UNSET."""
        return replace(self._update, summary=list(self._summary)) if self._summary else self._update


_GROWING: Final = (MessageState, ToolCallState, TerminalState, CompactionState)


def output_bytes(data: str) -> bytes:
    """Return the bytes of a piece of terminal output; none if it is not base64."""
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return b""


def is_compacting(update: events.CompactionUpdate) -> bool:
    """Return whether a compaction has not ended yet."""
    return update.status == _IN_PROGRESS


def plan_id(plan: Plan) -> str:
    """Return the id that a plan is replaced by; a well-formed plan of an unknown kind has one too."""
    if not isinstance(plan, UnknownPlan):
        return plan.plan_id
    found = plan.fields.get("planId")
    return found if isinstance(found, str) else plan.kind
