"""Own the reading of a log: what the session looks like now, the events that replay it, and how it must be repaired.

The events of a log are folded by `vocabulary.state`, so chunks of a message become the message, patches of a tool call
its last state, and output a snapshot. What is decided here is what a replay sends of that, and in which order.

A log also has notes among the events: the options as they were left, the MCP servers the session was begun with, and
the answers to permission requests that count for the rest of it (`read_settings`). Of the servers only a fingerprint is
stored: their settings hold secrets.

Promise: the state after a reload is the state that the session had, but for a turn that was cut off: `repairs` ends it.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from dragoman.agent.author_handlers import warn
from dragoman.agent.permission import NOTE as PERMISSION_NOTE
from dragoman.errors import LinkClosed
from dragoman.store.contract import Log
from dragoman.store.entries import Entry, EventEntry, NoteEntry, TextEntry
from dragoman.store.log_places import REWIND, counting
from dragoman.vocabulary import events
from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.options import Option, Select, Toggle
from dragoman.vocabulary.state import AnyMessage, SessionState, is_compacting
from dragoman.vocabulary.tools import FINAL_STATUSES, ContentItem, ExitStatus, TerminalItem

if TYPE_CHECKING:
    from dragoman.agent.client_services import EventSink
    from dragoman.agent.session_core import SessionCore

INTERRUPTED: Final = "interrupted"
# The kinds of notes that hold settings.
OPTIONS_NOTE: Final = "options"
SERVERS_NOTE: Final = "mcp servers"
_MESSAGES: Final[dict[str, type[AnyMessage]]] = {
    "user_message_chunk": events.UserMessage,
    "agent_message_chunk": events.AgentMessage,
    "agent_thought_chunk": events.AgentThought,
}
_TURN_BEGINS: Final = frozenset({events.UserMessage, events.Running, events.RequiresAction})


class History:
    """A log as the state of its session: `apply` its entries in order."""

    def __init__(self) -> None:
        # Whether the log ends inside a turn. A prompt begins one before the agent says that it runs, and only an end
        # with a reason ends it: an `Idle` without one says that the agent is ready, not that the prompt was answered.
        self.running = False
        # Terminals that show no exit yet: a command may go on when its turn has ended, and ends with the process.
        self._open_terminals: set[str] = set()
        # Calls that have not ended. Most end in their turn; one whose handler was left behind at the end of the process
        # has no further event.
        self._open_calls: set[str] = set()
        self._state = SessionState()

    def __repr__(self) -> str:
        return f"<History running={self.running} {self._state!r}>"

    @property
    def options(self) -> list[Option] | None:
        """The session options as the log has them; None if it has none."""
        return self._state.options

    def apply(self, entries: Iterable[Entry]) -> None:
        """Fold the next entries into the history. Notes are not part of it."""
        for entry in entries:
            # Text comes by the hundred thousand pieces, so it is appended without an event being made of it.
            if type(entry) is TextEntry:
                self._state.message(_MESSAGES[entry.kind], entry.message_id).append_text(entry.text)
            elif type(entry) is EventEntry:
                event = entry.event
                self._state.apply(event)
                if type(event) is events.TerminalUpdate:
                    self._note_terminal(event)
                elif type(event) is events.ToolCallUpdate:
                    self._note_call(event)
                elif type(event) in _TURN_BEGINS:
                    self.running = True
                elif type(event) is events.Idle and isinstance(event.stop_reason, str):
                    self.running = False

    def _note_terminal(self, event: events.TerminalUpdate) -> None:
        if event.exit_status:
            self._open_terminals.discard(event.terminal_id)
        else:
            self._open_terminals.add(event.terminal_id)

    def _note_call(self, event: events.ToolCallUpdate) -> None:
        if event.status in FINAL_STATUSES:
            self._open_calls.discard(event.tool_call_id)
        else:
            call = self._state.tool_call(event.tool_call_id)
            # Without a status it was never said to run.
            if call is not None and isinstance(call.status, str) and call.status not in FINAL_STATUSES:
                self._open_calls.add(event.tool_call_id)

    def replay_events(self) -> Iterator[events.AnyEvent]:
        """Yield the events that replay this history, in order of first appearance.

        A terminal comes before the first call that shows it: version 1 has no terminals, so the output must be known
        when the call is sent. Notices are left out, because they were about a moment; so is the title, because it can
        be changed without an entry in the log.
        """
        replayed: set[str] = set()  # ids of terminals
        for event in self._state.snapshot():
            match event:
                case events.Message():  # first, because most events of a long session are messages
                    yield event
                case events.ToolCallUpdate():
                    yield from self._terminals_of(event, replayed)
                    yield event
                case events.TerminalUpdate():
                    if event.terminal_id not in replayed:
                        replayed.add(event.terminal_id)
                        yield event
                case events.SessionInfoChanged():
                    if event.meta or event.extras:
                        yield replace(event, title=UNSET, updated_at=UNSET)
                case events.Notice():
                    pass
                case _:
                    yield event

    def _terminals_of(self, call: events.ToolCallUpdate, replayed: set[str]) -> Iterator[events.TerminalUpdate]:
        for item in call.content or ():
            if not isinstance(item, TerminalItem) or item.terminal_id in replayed:
                continue
            terminal = self._state.terminal(item.terminal_id)
            if terminal is not None:
                replayed.add(item.terminal_id)
                yield terminal

    def repairs(self) -> list[Entry]:
        """Return the entries that a session which was cut off still lacks.

        The open calls of its turn have failed, the terminals and compactions have ended, and it ends as cancelled. A
        log that ends between two turns lacks at most the ends of terminals, and of calls whose handler did not end with
        its turn.
        """
        missing: list[events.AnyEvent] = []
        if not self.running:
            for call_id in sorted(self._open_calls):
                missing += _failure_of(call_id)
            missing += [_end_of(id) for id in sorted(self._open_terminals) if self._is_open(id)]
            return [EventEntry(event) for event in missing]
        for event in self._state.snapshot():
            match event:
                case events.ToolCallUpdate(tool_call_id=call_id, status=status) if status not in FINAL_STATUSES:
                    missing += _failure_of(call_id)
                case events.TerminalUpdate(terminal_id=terminal_id) if not event.exit_status:
                    missing.append(_end_of(terminal_id))
                case events.CompactionUpdate(compaction_id=compaction_id) if is_compacting(event):
                    missing.append(events.CompactionUpdate(compaction_id, "cancelled"))
                case _:
                    pass
        missing.append(events.Idle(stop_reason="cancelled"))
        return [EventEntry(event) for event in missing]

    def _is_open(self, terminal_id: str) -> bool:
        terminal = self._state.terminal(terminal_id)
        return terminal is not None and not terminal.exit_status


def _failure_of(call_id: str) -> list[events.AnyEvent]:
    """Return the end of a tool call of which it is not known how it ended."""
    return [
        events.ToolCallContentChunk(call_id, ContentItem(Text(INTERRUPTED))),
        events.ToolCallUpdate(call_id, status="failed", capabilities=None),
    ]


def _end_of(terminal_id: str) -> events.TerminalUpdate:
    """Return the end of a terminal of which it is not known how it ended."""
    return events.TerminalUpdate(terminal_id, exit_status=ExitStatus(), capabilities=None)


# -- what a log has beside its events --------------------------------------------------------------------------------


class StoredSettings(NamedTuple):
    """A log that was read: its history, and what its notes say about the session."""

    history: History
    options: dict[str, object]  # values by the id of their option
    servers: object  # the fingerprint, or None if the log has none
    permissions: list[object]  # notes of answers that count for the rest of the session

    def restore_options(self, options: Iterable[Option]) -> list[Option]:
        """Return the options with their stored values; an option without one, or without that choice, as it is."""
        return [_restored(option, self.options) for option in options]


async def read_settings(log: Log) -> StoredSettings:
    """Read a log once, from its beginning to its end. `StoreFailed`; `SessionDamaged` if nothing of it can be read."""
    # The order of notes counts: of two values of one option the later one is in force.
    history = History()
    options: dict[str, object] = {}
    servers: object = None
    permissions: list[object] = []
    has_rewinds = False
    async for records in log.read():
        entries = [record.entry for record in records]
        has_rewinds = has_rewinds or any(isinstance(entry, NoteEntry) and entry.kind == REWIND for entry in entries)
        history.apply(entries)
        for entry in entries:
            if isinstance(entry, NoteEntry) and entry.kind == OPTIONS_NOTE and isinstance(entry.value, dict):
                options.update(entry.value)
            elif isinstance(entry, NoteEntry) and entry.kind == SERVERS_NOTE:
                servers = entry.value
            elif isinstance(entry, NoteEntry) and entry.kind == PERMISSION_NOTE:
                permissions.append(entry.value)
    if has_rewinds:
        # A second reading, and only here: what no longer counts cannot be taken out of a state again.
        history = History()
        async for records in counting(log.read):
            history.apply(record.entry for record in records)
    return StoredSettings(history, options, servers, permissions)


def fingerprint(request: ask.NewSession | ask.ResumeSession) -> str:
    """Return a hash of the MCP servers, which tells nothing of their secrets; their order counts."""
    # OpenSSL takes a while to load, and one dialect needs it.
    import hashlib

    return hashlib.sha256(msgspec.json.encode(request.mcp_servers or [])).hexdigest()


def _restored(option: Option, values: dict[str, object]) -> Option:
    """Return an option with its stored value, if it still has that choice."""
    if not isinstance(option, (Select, Toggle)) or option.config_id not in values:
        return option
    value = values[option.config_id]
    if isinstance(option, Toggle):
        return replace(option, current_value=value) if isinstance(value, bool) else option
    # A choice that is gone, such as a model that a provider has withdrawn, must not keep the session from opening.
    return replace(option, current_value=value) if any(c.value == value for c in option.choices()) else option


# -- replay ---------------------------------------------------------------------------------------------------------
#
# All of it goes to the client alone and never through the journal: the log has it already.


async def replay_history(session: "SessionCore", sink: "EventSink", history: History) -> None:
    """Send the history of `session`, then its title. Waits while the client is behind."""
    for event in history.replay_events():
        # The log has the options as they were after some turn; since then they may have been set, or have other values.
        current = events.OptionsChanged(session.options) if isinstance(event, events.OptionsChanged) else event
        await sink.send_event(session.id, current)
    if session.title:
        await sink.send_event(session.id, events.SessionInfoChanged(title=session.title))


async def replay_after_reply(session: "SessionCore", sink: "EventSink", history: History) -> None:
    """Send everything behind the reply that has opened the session; a prompt waits for the end of this.

    For a client that learns the id of the session from that reply: events before it would belong to no session.
    """
    try:
        await replay_history(session, sink, history)
        await report_damage(session, sink)
        if session.turn is None:  # a turn that waits for us sends the state itself
            await sink.send_event(session.id, events.Idle())
    except LinkClosed:
        pass  # the client is gone


async def report_damage(session: "SessionCore", sink: "EventSink") -> None:
    """Warn the user, once, of what was lost of a log before it was opened."""
    log = None if session.journal is None else session.journal.log
    if log is not None and log.salvaged is not None:
        lost, log.salvaged = log.salvaged, None
        warn(f"dragoman: session {session.id}: {lost}\n")  # not every client can show a notice
        await sink.send_event(session.id, events.Notice("warning", lost[:1].upper() + lost[1:]))
