"""Encode events as version 1's updates, and an opened session; remember what the next update depends on.

This wire announces a tool call once and then replaces its content, has only chunks of messages, no display terminals,
and one plan for most clients. So the content of a tool call is sent whole each time, and terminals are drawn as text:
both are folded here, with the vocabulary's rules, while a turn runs. All of it is bounded when a turn or a replay ends.
Prompts and request ids are not known here.
"""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.dialects.codec.terminal_display import TerminalDisplay, without_terminals
from dragoman.dialects.codec.transcriber import encode_extras
from dragoman.dialects.v1 import codec as v1
from dragoman.dialects.v1 import notices
from dragoman.dialects.v1.lean_calls import LeanCalls
from dragoman.dialects.v1.live_terminals import LiveTerminals
from dragoman.vocabulary import events, options, requests
from dragoman.vocabulary.hello import ClientCapabilities
from dragoman.vocabulary.tool_call_state import ToolCallState
from dragoman.vocabulary.tools import TerminalItem, ToolContent
from dragoman.wire import types as wire
from dragoman.wire import v1 as w

_CHUNKS: Final[dict[type, Any]] = {
    events.UserMessage: w.SessionUpdateUserMessageChunk,
    events.AgentMessage: w.SessionUpdateAgentMessageChunk,
    events.AgentThought: w.SessionUpdateAgentThoughtChunk,
}
# Announced calls and sent messages remembered per session: an update of an older call announces it again.
REMEMBERED: Final = 4096
# Calls and terminals that may go on beside the conversation; of these the content is kept when a turn ends.
GOING_ON: Final = 64
# What is kept of a call beside its content: the rest of an update is sent on as it comes, and never again.
FIELDS: Final = ("status",)


class V1SessionMemory:
    """What was sent of one session, as far as this wire needs it again."""

    __slots__ = (
        *("calls", "fields", "lean", "live", "message_ids", "mode", "model", "notices", "plan", "roots", "running"),
        *("shown_notices", "terminals"),
    )

    def __init__(self, output_key: str = "", lean: LeanCalls | None = None, fields: tuple[str, ...] = FIELDS) -> None:
        """`fields` is what is kept of a call beside its content."""
        self.fields = fields
        self.lean = lean  # None: calls are sent as they are
        self.roots: tuple[str, ...] = ()  # the folders of the session
        self.live = LiveTerminals(output_key) if output_key else None  # None: the client draws no terminals of ours
        self.calls: dict[str, ToolCallState] = {}  # the ones that were announced
        self.terminals: dict[str, TerminalDisplay] = {}
        self.message_ids: dict[str, None] = {}  # ids of messages, in order
        self.mode: tuple[str, str] = ("mode", "")  # the option that is the mode, and its value
        self.model: tuple[str, str] = ("", "")  # the same for the model
        self.plan = ""  # the plan the client shows
        self.running = False  # a turn runs, of this client or of another one
        self.notices: list[events.Notice] = []  # they wait for the next turn
        self.shown_notices = 0

    def __repr__(self) -> str:
        counts = f"calls={len(self.calls)} terminals={len(self.terminals)} messages={len(self.message_ids)}"
        return f"<V1SessionMemory running={self.running} {counts}>"

    def add_notices(self, found: Sequence[events.Notice]) -> None:
        """Have notices wait for the next turn; the oldest ones go where there are too many."""
        self.notices = [*self.notices, *found][-notices.WAITING :]

    @property
    def last_message(self) -> str:
        """The id of the message that was begun last; empty before the first."""
        return next(reversed(self.message_ids), "")

    def call(self, call_id: str) -> ToolCallState:
        """Return the state of a tool call, made when it is first named."""
        found = self.calls.get(call_id)
        if found is None:
            found = self.calls[call_id] = ToolCallState(call_id, self.fields)
        return found

    def terminal(self, terminal_id: str) -> TerminalDisplay:
        """Return a display terminal, made when it is first named."""
        found = self.terminals.get(terminal_id)
        if found is None:
            found = self.terminals[terminal_id] = TerminalDisplay(terminal_id)
        return found

    def shrink(self) -> None:
        """Keep what later updates may refer to after a turn or a replay, and drop most of its weight.

        Ids stay, because a call that is announced twice is shown twice. Content stays only for calls that may go on in
        the background: a later chunk of another one is sent as if it were the first.
        """
        self.calls = dict(list(self.calls.items())[-REMEMBERED:])
        self.message_ids = dict.fromkeys(list(self.message_ids)[-REMEMBERED:])
        going_on = [call_id for call_id, call in self.calls.items() if not call.is_final]
        for call_id in self.calls.keys() - set(going_on[-GOING_ON:]):
            if self.calls[call_id].content:
                self.calls[call_id].apply(events.ToolCallUpdate(call_id, content=None))
        unfinished = [(name, terminal) for name, terminal in self.terminals.items() if not terminal.state.has_ended]
        self.terminals = dict(unfinished[-GOING_ON:])
        if self.live is not None:
            self.live.shrink(self.terminals)

    def drawn(self, items: Sequence[ToolContent]) -> list[ToolContent]:
        """Return content as this wire has it: display terminals as text, or as the client's own where they are live."""
        if self.live is not None:
            return self.live.draw(items, self.terminals)
        return without_terminals(items, self.terminals)


# -- messages --------------------------------------------------------------------------------------------------------


def chunk(session: V1SessionMemory, event: events.Chunk) -> Any:
    """Encode a chunk of a message; without an id where it has none."""
    session.message_ids[event.message_id] = None
    update = v1.CODEC.encode(event)
    return update if event.message_id else replace(update, message_id=UNSET)


def whole_message(session: V1SessionMemory, event: events.Message) -> Sequence[wire.WireValue]:
    """Encode a message as chunks, the only form this wire has: it is sent once, and neither replaced nor cleared."""
    # Chunks append: sent again, a message would be shown twice. A change of a message that was sent is lost here.
    if event.message_id in session.message_ids or not isinstance(event.content, list):
        return []
    session.message_ids[event.message_id] = None
    kind = _CHUNKS[type(event)]
    common = {"message_id": event.message_id, "meta": event.meta, "extras": encode_extras(event, kind)}
    return [kind(content=v1.CODEC.encode(block), **common) for block in event.content]


# -- tool calls and their terminals ----------------------------------------------------------------------------------


def tool_call(
    session: V1SessionMemory, event: events.ToolCallUpdate | events.ToolCallContentChunk
) -> Sequence[wire.WireValue]:
    """Return the update for a call that is announced, or changed if it was, and those of a terminal that goes live.

    Content is sent whole, also where an item was appended, with display terminals as `V1SessionMemory.drawn` has them.
    """
    announced = event.tool_call_id in session.calls
    call = session.call(event.tool_call_id)
    if session.lean is not None:
        event = session.lean.lean(event, call.content)
    call.apply(event)
    live: Sequence[wire.WireValue] = ()
    if session.live is not None:
        if not announced and isinstance(event, events.ToolCallUpdate):
            event = session.live.announce(event, next(iter(session.roots), ""))
        live = _live_updates(event.tool_call_id, session.live.adopt(call, session.terminals))
    if isinstance(event, events.ToolCallContentChunk):
        whole = session.drawn(call.content)
        event = events.ToolCallUpdate(event.tool_call_id, content=whole, meta=event.meta, extras=event.extras)
    # A call that ends is sent with its terminals even if its content did not change: their output may have grown by
    # less than a step since they were drawn.
    elif event.content is not UNSET or (call.is_final and _shows_terminal(call.content)):
        event = replace(event, content=session.drawn(call.content))
    # The first update of a call is `tool_call`, which requires a title; a second one would be shown as another call.
    if announced:
        return [v1.encode_call(event, w.SessionUpdateToolCallUpdate), *live]
    if not isinstance(event.title, str):
        title = event.name if isinstance(event.name, str) else event.tool_call_id
        event = replace(event, title=title)
    return [v1.encode_call(event, w.ToolCall), *live]


def terminal(
    session: V1SessionMemory, event: events.TerminalUpdate | events.TerminalOutputChunk
) -> Sequence[wire.WireValue]:
    """Return the updates that show what an event has changed on a terminal.

    Live: what came, for the call that shows it. Else all that is on it now, for every such call, and nothing before it
    has grown by a step.
    """
    display = session.terminal(event.terminal_id)
    is_worth_drawing = display.apply(event)
    if session.live is not None and (followed := session.live.follow(event, display)) is not None:
        return _live_updates(*followed)
    if not is_worth_drawing:
        return []
    updates = []
    for call_id, call in session.calls.items():
        content = call.content
        if any(isinstance(item, TerminalItem) and item.terminal_id == event.terminal_id for item in content):
            drawn = events.ToolCallUpdate(call_id, content=session.drawn(content))
            updates.append(v1.encode_call(drawn, w.SessionUpdateToolCallUpdate))
    return updates


def _live_updates(call_id: str, metas: Sequence[dict[str, Any]]) -> Sequence[wire.WireValue]:
    return [w.SessionUpdateToolCallUpdate(tool_call_id=call_id, meta=meta) for meta in metas]


def _shows_terminal(content: Sequence[ToolContent]) -> bool:
    return any(isinstance(item, TerminalItem) for item in content)


# -- what a client may not accept ------------------------------------------------------------------------------------


def only_plan(session: V1SessionMemory, event: "events.PlanUpdate | events.PlanRemoved") -> Sequence[wire.WireValue]:
    """Encode a plan for a client that can show only one: the steps that were sent last."""
    # Plans have ids in the vocabulary, and this client shows the last one: only its own removal empties the screen.
    if isinstance(event, events.PlanRemoved):
        return [w.Plan(entries=(), meta=event.meta)] if event.plan_id == session.plan else []
    if not isinstance(event.plan, options.PlanItems):
        return []
    session.plan = event.plan.plan_id
    return [v1.encode_plan(event, event.plan)]


def plainly(event: events.AnyEvent, client: ClientCapabilities) -> Sequence[wire.WireValue]:
    """Encode what is the same on this wire, if the client accepts it at all."""
    match event:
        case events.CompactionUpdate() | events.CompactionSummaryChunk() if not client.compaction:
            return []
        case events.CommandsChanged():
            known: list[options.AnyCommand] = [
                command for command in event.available_commands if isinstance(command, options.Command)
            ]
            return [v1.CODEC.encode(replace(event, available_commands=known))]
        case events.UnknownEvent():
            update = v1.encode_unknown_event(event, subagents=client.subagents)
            return [] if update is None else [update]
        case _:
            return [v1.CODEC.encode(event)]


# -- an opened session ---------------------------------------------------------------------------------------------


def encode_opened(reply: requests.SessionOpened, kind: Any, encoded_options: Any) -> Any:
    """Encode an opened session, with its mode in both forms that version 1 has."""
    # Load and resume have no id in the answer: the client has named the session.
    named = {"session_id": reply.session_id} if "session_id" in kind.__struct_fields__ else {}
    return kind(
        modes=encode_modes(reply.config_options or []),
        config_options=encoded_options,
        meta=reply.meta,
        extras=encode_extras(reply, kind),
        **named,
    )


def mode_option(found: list[options.Option]) -> options.Select | None:
    """Return the option that is version 1's mode, if there is one."""
    for option in found:
        if isinstance(option, options.Select) and option.category == options.MODE_CATEGORY:
            return option
    return None


def encode_modes(found: list[options.Option]) -> Any:
    """Encode the mode option as version 1's older `modes`, for clients that know nothing else."""
    mode = mode_option(found)
    if mode is None:
        return UNSET
    modes = tuple(
        w.SessionMode(
            id=choice.value,
            name=choice.name,
            description=choice.description,
            meta=choice.meta,
            extras=encode_extras(choice, w.SessionMode),
        )
        for choice in mode.choices()
    )
    return w.SessionModeState(
        current_mode_id=mode.current_value,
        available_modes=modes,
        meta=mode.meta,
        extras=encode_extras(mode, w.SessionModeState),
    )
