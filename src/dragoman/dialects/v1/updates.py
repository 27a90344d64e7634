"""Events as version 1's updates, given what was told of the session before.

This wire announces a tool call once and then replaces its content, has only pieces of messages, no display terminals,
and one plan for most clients. What was sent is read and kept in `V1SessionMemory`; prompts, options and request ids
are not known here.
"""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.dialects.codec.terminal_display import without_screens
from dragoman.dialects.codec.transcriber import encode_extras
from dragoman.dialects.v1 import codec as v1
from dragoman.dialects.v1.memory import V1SessionMemory
from dragoman.vocabulary import events, options
from dragoman.vocabulary.hello import ClientCapabilities
from dragoman.vocabulary.tools import FINAL_STATUSES, TerminalItem, ToolContent
from dragoman.wire import v1 as w

_CHUNKS: Final[dict[type, Any]] = {
    events.UserMessage: w.SessionUpdateUserMessageChunk,
    events.AgentMessage: w.SessionUpdateAgentMessageChunk,
    events.AgentThought: w.SessionUpdateAgentThoughtChunk,
}


# -- messages --------------------------------------------------------------------------------------------------------


def chunk(session: V1SessionMemory, event: events.Chunk) -> Any:
    """A piece of a message; without an id where it has none."""
    session.spoken[event.message_id] = None
    said = v1.CODEC.encode(event)
    return said if event.message_id else replace(said, message_id=UNSET)


def whole_message(session: V1SessionMemory, event: events.Message) -> Sequence[Any]:
    """This wire has only chunks: a message is told once, and can be neither replaced nor cleared."""
    if event.message_id in session.spoken or not isinstance(event.content, list):
        return []
    session.spoken[event.message_id] = None
    kind = _CHUNKS[type(event)]
    common = {"message_id": event.message_id, "meta": event.meta, "extras": encode_extras(event, kind)}
    return [kind(content=v1.CODEC.encode(block), **common) for block in event.content]


# -- tool calls and their terminals ----------------------------------------------------------------------------------


def tool_call(session: V1SessionMemory, event: events.ToolCallUpdate) -> Any:
    """A call that is announced, or changed if it was: its content as a whole, with terminals as text."""
    announced = event.tool_call_id in session.calls
    call = session.call(event.tool_call_id)
    if event.content is not UNSET:
        call.content = list(event.content or [])
    if isinstance(event.status, str):
        call.ended = event.status in FINAL_STATUSES
    if event.content is not UNSET or (call.ended and _shows_screen(call.content)):
        event = replace(event, content=without_screens(call.content, session.screens))
    if announced:
        return v1.encode_call(event, w.SessionUpdateToolCallUpdate)
    if not isinstance(event.title, str):
        title = event.name if isinstance(event.name, str) else event.tool_call_id
        event = replace(event, title=title)
    return v1.encode_call(event, w.ToolCall)


def appended(session: V1SessionMemory, event: events.ToolCallContentChunk) -> Any:
    """More content of a call: all of it again."""
    known = session.calls.get(event.tool_call_id)
    whole = [*(known.content if known is not None else ()), event.content]
    return tool_call(
        session, events.ToolCallUpdate(event.tool_call_id, content=whole, meta=event.meta, extras=event.extras)
    )


def redrawn(session: V1SessionMemory, terminal_id: str) -> Sequence[Any]:
    """Every call that shows a terminal, with what is on it now."""
    updates = []
    for call_id, call in session.calls.items():
        if any(isinstance(item, TerminalItem) and item.terminal_id == terminal_id for item in call.content):
            drawn = events.ToolCallUpdate(call_id, content=without_screens(call.content, session.screens))
            updates.append(v1.encode_call(drawn, w.SessionUpdateToolCallUpdate))
    return updates


def _shows_screen(content: list[ToolContent]) -> bool:
    return any(isinstance(item, TerminalItem) for item in content)


# -- what a client may not take --------------------------------------------------------------------------------------


def only_plan(session: V1SessionMemory, event: "events.PlanUpdate | events.PlanRemoved") -> Sequence[Any]:
    """A client without plans of its own has one: the steps that were told last."""
    if isinstance(event, events.PlanRemoved):
        return [w.Plan(entries=(), meta=event.meta)] if event.plan_id == session.plan else []
    if not isinstance(event.plan, options.PlanItems):
        return []
    session.plan = event.plan.plan_id
    return [v1.encode_plan(event, event.plan)]


def plainly(event: events.AnyEvent, client: ClientCapabilities) -> Sequence[Any]:
    """What is the same on this wire, if the client takes it at all."""
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
