"""Render a session's log for a person: who said what, which tools ran and how they ended, diffs and plans.

Rendered turn by turn, so no more than one turn is held; the events of a turn are folded by `History`. Everything that
was stored is made harmless on its way out.
"""

import re
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from dragoman.agent.history import History
from dragoman.cli.text_width import harmless, harmless_line, harmless_output, in_diff_colour
from dragoman.dialects.event_json import patch_text
from dragoman.host.failure_text import error_text
from dragoman.store.contract import Record
from dragoman.store.entries import EventEntry
from dragoman.vocabulary import events
from dragoman.vocabulary.content import text_of
from dragoman.vocabulary.options import PlanFile, PlanItems, PlanMarkdown
from dragoman.vocabulary.state import output_bytes
from dragoman.vocabulary.tools import (
    ClientTerminalItem,
    ContentItem,
    Diff,
    ExitStatus,
    Location,
    TerminalItem,
    TerminalOutput,
    ToolContent,
    UnknownItem,
)

# Lines shown of a tool's output or of a diff: enough to see what happened. `full` shows all.
SHOWN_LINES: Final = 40
_MARKS: Final = {"completed": "[x]", "in_progress": "[>]", "cancelled": "[-]"}

Form = Literal["prose", "output", "diff"]


class TranscriptText(NamedTuple):
    """Some text, and what kind of text it is."""

    form: Form
    text: str


class Part(NamedTuple):
    """A message, a tool call or another event of a transcript, with its heading."""

    heading: str
    pieces: Sequence[TranscriptText]


_Terminals = Mapping[str, events.TerminalUpdate]


async def parts(log: AsyncIterable[Sequence[Record]]) -> AsyncIterator[Part]:
    """Yield the parts of a transcript, in order."""
    history = History()
    async for records in log:
        for record in records:
            entry = record.entry
            history.apply((entry,))
            event = entry.event if isinstance(entry, EventEntry) else None
            if isinstance(event, events.Idle) and isinstance(event.stop_reason, str):
                for part in _parts_of(history):
                    yield part
                if (end := _end(event)) is not None:
                    yield end
                history = History()
    for part in _parts_of(history):
        yield part
    if history.running:
        yield Part("(this turn has no end yet: it goes on, or was cut off)", ())


def _parts_of(history: History) -> Iterator[Part]:
    replayed = list(history.replay_events())
    terminals = {event.terminal_id: event for event in replayed if isinstance(event, events.TerminalUpdate)}
    calls = [event for event in replayed if isinstance(event, events.ToolCallUpdate)]
    in_calls = {
        item.terminal_id for call in calls for item in call.content or [] if isinstance(item, TerminalItem)
    } & terminals.keys()
    for event in replayed:
        if isinstance(event, events.TerminalUpdate) and event.terminal_id in in_calls:
            continue  # shown inside the call
        part = _part(event, terminals)
        if part is not None:
            yield part


def _part(event: events.AnyEvent, terminals: _Terminals) -> Part | None:
    match event:
        case events.UserMessage():
            return _message("You", event)
        case events.AgentMessage():
            return _message("Agent", event)
        case events.AgentThought():
            return _message("Thoughts", event)
        case events.ToolCallUpdate():
            state = ", ".join(word for word in (event.kind, event.status) if isinstance(word, str))
            title = event.title or event.name or event.tool_call_id
            return Part(_headed("Tool", title, state), list(_tool_pieces(event, terminals)))
        case events.TerminalUpdate():
            output = _output(event)
            return Part(_headed("Terminal", event.command or "", ""), [output] if output.text else [])
        case events.PlanUpdate():
            return Part("Plan", [TranscriptText("prose", _plan(event))])
        case events.CompactionUpdate():
            text = text_of(event.summary or []) or (event.error or "")
            return Part(_headed("Summary", "", event.status), [TranscriptText("prose", harmless(text))] if text else [])
        case events.UnknownEvent():
            return Part(_headed("Event", event.name, ""), ())
        case _:
            return None  # options, commands, usage: a state, not something that happened


def _message(who: str, message: events.Message) -> Part | None:
    text = text_of(message.content or [])
    return Part(who, [TranscriptText("prose", harmless(text))]) if text else None


def _tool_pieces(call: events.ToolCallUpdate, terminals: _Terminals) -> Iterator[TranscriptText]:
    items = call.content or []
    if not any(isinstance(item, Diff) for item in items):
        for place in call.locations or []:
            yield TranscriptText("prose", f"at {harmless_line(_place(place))}")
    for item in items:
        piece = _item(item, terminals)
        if piece is not None and piece.text:
            yield piece


def _item(item: ToolContent, terminals: _Terminals) -> TranscriptText | None:
    match item:
        case ContentItem():
            return TranscriptText("output", harmless_output(text_of([item.content])))
        case Diff():
            return TranscriptText("diff", harmless(patch_text(item)))
        case ClientTerminalItem():
            return TranscriptText("prose", f"in the editor's terminal {harmless_line(item.terminal_id)}")
        case UnknownItem():
            return TranscriptText("prose", f"[{harmless_line(item.kind)}]")
        case TerminalItem():
            terminal = terminals.get(item.terminal_id)
            return None if terminal is None else _output(terminal)


def _output(terminal: events.TerminalUpdate) -> TranscriptText:
    """Return what a terminal has shown, and how its command ended if not well."""
    data = output_bytes(terminal.output.data) if isinstance(terminal.output, TerminalOutput) else b""
    text = harmless_output(data.decode("utf-8", "replace")).rstrip("\n")
    if isinstance(terminal.exit_status, ExitStatus):
        if terminal.exit_status.signal:
            text += f"\n(signal {harmless_line(terminal.exit_status.signal)})"
        elif terminal.exit_status.exit_code:
            text += f"\n(exit code {terminal.exit_status.exit_code})"
    return TranscriptText("output", text.removeprefix("\n"))


def _plan(event: events.PlanUpdate) -> str:
    match event.plan:
        case PlanItems():
            steps = [f"{_MARKS.get(step.status, '[ ]')} {harmless_line(step.content)}" for step in event.plan.entries]
            return "\n".join(steps)
        case PlanFile():
            return harmless_line(event.plan.uri)
        case PlanMarkdown():
            return harmless(event.plan.content)
        case unknown:
            return f"[{harmless_line(unknown.kind)}]"


def _end(idle: events.Idle) -> Part | None:
    """Return how a turn ended, unless it ended as turns do."""
    if idle.stop_reason == "end_turn":
        return None
    error = idle.error
    why = ""
    if isinstance(error, events.Failure):
        why = f": {harmless_line(error_text(error.code, error.message, error.data))}"
    return Part(f"({harmless_line(idle.stop_reason or '')}{why})", ())


def _headed(kind: str, title: str, state: str) -> str:
    words = f"{kind}: {harmless_line(title)}" if title else kind
    return f"{words} [{harmless_line(state)}]" if state else words


def _place(place: Location) -> str:
    return f"{place.path}:{place.line}" if isinstance(place.line, int) else place.path


# -- as text ---------------------------------------------------------------------------------------------------------


def as_text(part: Part, *, full: bool, coloured: bool) -> str:
    """Return a part for a terminal: a heading, and what belongs to it indented."""
    lines = [f"\x1b[1m{part.heading}\x1b[0m" if coloured and part.heading else part.heading]
    for piece in part.pieces:
        shown, left = _lines(piece, full=full)
        for line in shown:
            words = in_diff_colour(line, line[:1]) if coloured and piece.form == "diff" else line
            lines.append(f"  {words}" if line else "")
        if left:
            lines.append(f"  ({left:,} more lines; --full shows them)")
    return "\n".join(lines) + "\n\n"


def as_markdown(part: Part) -> str:
    """Return a part for a Markdown document."""
    chunks = [f"## {part.heading}" if part.heading[:1] != "(" else f"*{part.heading}*"]
    for piece in part.pieces:
        text = piece.text.rstrip("\n")
        if piece.form == "prose":
            chunks.append(text)
        else:
            fence = _fence(text)
            chunks.append(f"{fence}{'diff' if piece.form == 'diff' else ''}\n{text}\n{fence}")
    return "\n\n".join(chunks) + "\n\n"


def decision_text(decision: Mapping[str, object]) -> str:
    """Return a line of the decision log as one sentence; it has no content but what the log has."""
    found = {name: harmless_line(str(value)) for name, value in decision.items() if value is not None}
    who = " / ".join(found[name] for name in ("principal", "token") if name in found)
    why = ", ".join(found[name] for name in ("option", "rule") if name in found)
    by = f"by {found.get('by', '?')}" + (f" ({why})" if why else "") + (f", {who}" if who else "")
    what = f"{found.get('tool', '?')} [{found.get('title', '?')}]"
    return f"{found.get('time', '?')}  {found.get('decision', '?')}  {what} in mode {found.get('mode', '?')}, {by}"


def _lines(piece: TranscriptText, *, full: bool) -> tuple[list[str], int]:
    """Return the lines to show, and how many are left out."""
    lines = piece.text.rstrip("\n").split("\n")
    if full or piece.form == "prose" or len(lines) <= SHOWN_LINES:
        return lines, 0
    return lines[:SHOWN_LINES], len(lines) - SHOWN_LINES


def _fence(text: str) -> str:
    """Return a fence longer than any in the text, so that nothing in there ends it."""
    return "`" * max([3, *(len(run) + 1 for run in re.findall("`+", text))])
