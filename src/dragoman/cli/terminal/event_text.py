"""Render the events of a turn as text, as they come: events in, pieces out. What an agent sent is inert in every piece.

Knows no terminal: `run` and `chat` show the same pieces, each in its way. What an event changes is folded by the
vocabulary (`ToolCallState`, `CompactionState`); kept here is only what was shown already. All of it is bounded.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from dragoman import limits
from dragoman.cli.terminal.command_output import Outputs
from dragoman.cli.terminal.request_lines import plain_header
from dragoman.cli.terminal.sanitize import SanitizingStream, sanitize, sanitize_line
from dragoman.vocabulary import events
from dragoman.vocabulary.content import Content, text_of
from dragoman.vocabulary.options import PlanFile, PlanItems, PlanMarkdown
from dragoman.vocabulary.services import RequestPermission, ToolCallSubject
from dragoman.vocabulary.state import CompactionState
from dragoman.vocabulary.tool_call_state import ToolCallState
from dragoman.vocabulary.tools import ContentItem, Diff, FileChange, TerminalItem, ToolContent

# `answer` and `thought` are text as it comes, to be put together; the others are whole lines.
Form = Literal["answer", "thought", "tool", "failed", "output", "diff", "plan", "notice", "break"]

# Between the start of an answer that the model broke off, and the same answer from its start.
BROKEN_OFF: Final = "— broken off, trying again —"
# The two ends of a compaction.
_COMPACTED: Final = "The conversation so far was summarised"
_NOT_COMPACTED: Final = "The conversation so far could not be summarised"
# Lines shown of one diff.
DIFF_LINES: Final = 40
# A title is a line; an agent may put a whole command in it.
TITLE_LENGTH: Final = 400
# Of a title that is said again.
_AGAIN_LENGTH: Final = 60
# Of the name of a currency.
_CURRENCY: Final = 12
# Steps shown of one plan.
PLAN_STEPS: Final = 50
# Calls and messages of a turn that are remembered; an older one is shown anew.
REMEMBERED: Final = 1000
# Characters kept of a message, to tell what of it is new when it is sent whole.
_MESSAGE_LENGTH: Final = 1024 * 1024
# What is shown of a call, beside its content.
_CALL_FIELDS: Final = ("name", "title", "kind", "status")
# The kinds of calls whose text is for the model and not for the user.
_FOR_THE_MODEL: Final = ("read", "search", "think")
# Where a reason is looked for in the text of a failed call.
_REASON_BLOCKS: Final = 10
_REASON_CHARACTERS: Final = 16 * 1024
# A line that opens or closes a block of code, with the name of its language.
_FENCE: Final = re.compile(r"\s*(?:`{3,}|~{3,})[^`]*$")
_MARKS: Final = {"completed": "[x]", "in_progress": "[>]", "cancelled": "[-]"}


class StyledText(NamedTuple):
    """Some text, and its form."""

    form: Form
    text: str


# Lines of a call's output among which the reason of its failure is looked for.
_REASON_LINES: Final = 20


class _ShownCall:
    """A tool call, and what of it was shown."""

    def __init__(self, id: str) -> None:
        self.state = ToolCallState(id, _CALL_FIELDS, bounded=True)
        self.title = title(id)
        self.heading = ""  # the title as it was shown last
        self.ended = False  # its end was shown
        self.outputs: deque[str] = deque(maxlen=_REASON_LINES)  # the last lines of its text, as a reason is written
        self.diffs: set[int] = set()

    @property
    def id(self) -> str:
        return self.state.tool_call_id

    @property
    def is_pending(self) -> bool:
        return self.state.header.status == "pending"

    def apply(self, event: "events.ToolCallUpdate | events.ToolCallContentChunk") -> None:
        self.state.apply(event)
        call = self.state.header
        self.title = title(call.title or call.name or call.tool_call_id)


class _ShownMessage:
    """How much of a message was shown, and the start of it: what is on the screen is not taken back."""

    def __init__(self, text: str = "") -> None:
        self.length = 0
        self._pieces: list[str] = []
        self.add(text)

    def add(self, text: str) -> None:
        if self.length < _MESSAGE_LENGTH:
            self._pieces.append(text)
        self.length += len(text)

    def start(self) -> str:
        return "".join(self._pieces)


class EventText:
    """The text of one conversation."""

    def __init__(self) -> None:
        self._calls: dict[str, _ShownCall] = {}
        # Hashes of the changes that stood in questions of this turn.
        self._asked: set[int] = set()
        self._outputs = Outputs()
        self._messages: dict[str, _ShownMessage] = {}
        self._compactions: dict[str, CompactionState] = {}
        self._plan = ""
        # The call whose heading or output stands last, by its title, and the titles of the calls of display terminals:
        # one in the background ends in a later turn.
        self._printing = ""
        self._terminal_titles: dict[str, str] = {}
        self._streams = {"answer": SanitizingStream(), "thought": SanitizingStream()}
        self._last = ""

    @property
    def running(self) -> list[str]:
        """Return the titles of the calls that run now."""
        return [call.title for call in self._calls.values() if not call.ended]

    def render(self, event: events.AnyEvent) -> list[StyledText]:
        """Return what there is to show of an event, in order."""
        pieces = [piece for piece in self._pieces(event) if piece.text]
        if any(piece.form not in ("tool", "output", "diff") for piece in pieces):
            self._printing = ""
        return pieces

    def client_terminal(self, terminal_id: str, text: str, *, ended: bool) -> list[StyledText]:
        """Return the new lines of a terminal that we run for the agent; `text` is all of its output each time."""
        lines = self._outputs.text(terminal_id, text)
        if ended:
            lines += self._outputs.finish([terminal_id])
        return list(self._lines(lines))

    def on_question(self, request: RequestPermission) -> None:
        """Note that a question is shown to the user, with the changes it is about: they are not shown again."""
        if isinstance(request.subject, ToolCallSubject) and len(self._asked) < REMEMBERED:
            items = request.subject.tool_call.content or ()
            self._asked.update(hash(diff_text(item)) for item in items if isinstance(item, Diff))

    def finish(self) -> list[StyledText]:
        """Return what was held back, when the turn is over, however it ended."""
        held = [piece for call in self._calls.values() for piece in self._diffs(call)]
        pieces = [StyledText(form, self._streams[form].finish()) for form in ("answer", "thought")]
        pieces += [StyledText("output", line) for line in self._outputs.finish_all()]
        pieces += held
        self._forget_turn()
        return [piece for piece in pieces if piece.text]

    def _forget_turn(self) -> None:
        self._calls.clear()
        self._asked.clear()
        self._messages.clear()
        # What still prints belongs to a command that outlives the turn.
        self._outputs.hush(self._terminal_titles)
        self._outputs.keep_quiet_ones()
        self._last = self._printing = ""

    def _pieces(self, event: events.AnyEvent) -> Iterator[StyledText]:
        match event:
            case events.AgentMessageChunk():
                yield from self._chunk("answer", event)
            case events.AgentThoughtChunk():
                yield from self._chunk("thought", event)
            case events.AgentMessage():
                yield from self._message("answer", event)
            case events.AgentThought():
                yield from self._message("thought", event)
            case events.ToolCallUpdate():
                yield from self._update(event)
            case events.ToolCallContentChunk():
                call = self._call(event.tool_call_id)
                call.apply(event)
                yield from self._headed(call)
                yield from self._content(call)
            case events.TerminalUpdate():
                happens = "ended" if self._outputs.is_quiet(event.terminal_id) else "goes on"
                titled = self._terminal_titles.get(event.terminal_id, "")
                yield from self._lines(self._outputs.update(event), titled, happens)
            case events.TerminalOutputChunk():
                yield from self._lines(self._outputs.chunk(event), self._terminal_titles.get(event.terminal_id, ""))
            case events.PlanUpdate():
                yield from self._planned(event)
            case events.Notice():
                yield from self._broken_off(event)
                yield StyledText("notice", notice_text(event))
            case events.CompactionUpdate():
                yield from self._compacted(event)
            case events.UnknownEvent():
                yield StyledText("notice", f"(an update this release does not know: {sanitize_line(event.name)[:80]})")
            case _:
                return  # the user's own text, and the state of the session

    def _compacted(self, event: events.CompactionUpdate) -> Iterator[StyledText]:
        """Yield the line for the end of a compaction; the reason of a failure may have been shown before."""
        if event.compaction_id not in self._compactions and len(self._compactions) >= REMEMBERED:
            self._compactions.clear()
        state = self._compactions.setdefault(event.compaction_id, CompactionState(event.compaction_id))
        state.apply(replace(event, summary=UNSET))  # the summary is not shown, so it is not kept
        if event.status in ("completed", "failed"):
            error = self._compactions.pop(event.compaction_id).value.error
            why = f": {sanitize_line(error)}" if error else ""
            words = _COMPACTED if event.status == "completed" else _NOT_COMPACTED
            yield StyledText("notice", f"{words}{why}")

    # -- messages ----------------------------------------------------------------------------------------------------

    def _chunk(self, form: Literal["answer", "thought"], event: events.Chunk) -> Iterator[StyledText]:
        text = text_of((event.content,))
        self._message_so_far(event.message_id).add(text)
        yield from self._stream(form, event.message_id, text)

    def _message(self, form: Literal["answer", "thought"], event: events.Message) -> Iterator[StyledText]:
        """Yield what of a whole message was not shown in chunks already."""
        if not isinstance(event.content, list):
            return
        text, so_far = text_of(event.content), self._message_so_far(event.message_id)
        new = text[so_far.length :] if text.startswith(so_far.start()) else f"\n\n{text}"
        self._messages[event.message_id] = _ShownMessage(text)
        yield from self._stream(form, event.message_id, new)

    def _stream(self, form: Literal["answer", "thought"], message_id: str, text: str) -> Iterator[StyledText]:
        shown = self._streams[form].feed(text)
        if shown:
            if self._last and self._last != message_id:
                yield StyledText(form, "\n\n")
            self._last = message_id
            yield StyledText(form, shown)

    def _broken_off(self, event: events.Notice) -> Iterator[StyledText]:
        """Mark the end of an answer that begins anew: what was shown of it is not part of what follows."""
        if self._last and isinstance(event.meta, Mapping) and event.meta.get(events.BROKEN_OFF) is True:
            self._last = ""
            yield StyledText("break", BROKEN_OFF)

    def _message_so_far(self, message_id: str) -> _ShownMessage:
        shown = self._messages.get(message_id)
        if shown is None:
            limits.evict_oldest(self._messages, REMEMBERED - 1)
            shown = self._messages[message_id] = _ShownMessage()
        return shown

    # -- tool calls --------------------------------------------------------------------------------------------------

    def _call(self, id: str) -> _ShownCall:
        call = self._calls.get(id)
        if call is None:
            limits.evict_oldest(self._calls, REMEMBERED - 1)
            call = self._calls[id] = _ShownCall(id)
        return call

    def _update(self, event: events.ToolCallUpdate) -> Iterator[StyledText]:
        call = self._call(event.tool_call_id)
        call.apply(event)
        yield from self._headed(call)
        pieces: list[StyledText] = []
        if event.content is not UNSET:
            pieces += self._content(call)
        elif event.status and not call.is_pending:
            pieces += self._diffs(call)
        if call.state.is_final and not call.ended:
            call.ended = True
            pieces += self._lines(self._outputs.finish(self._screens(call)), call.title)
            self._outputs.hush(item.terminal_id for item in call.state.content if isinstance(item, TerminalItem))
            if call.state.header.status != "completed":
                pieces = self._failed(call, pieces)
        yield from pieces

    def _failed(self, call: _ShownCall, pieces: list[StyledText]) -> list[StyledText]:
        """Return what is shown of a call that failed, with its reason, which stands there once."""
        reason = failure_reason(call.state.content)
        output = [piece for piece in pieces if piece.form == "output" and _says_something(piece.text)]
        if [f" ({title(piece.text)})" for piece in output] == [reason]:
            pieces = [piece for piece in pieces if piece.form != "output"]
        elif any(f" ({line})" == reason for line in call.outputs):
            reason = ""
        return [*pieces, StyledText("failed", f"{call.title}: {call.state.header.status}{reason}")]

    def _headed(self, call: _ShownCall) -> Iterator[StyledText]:
        """Yield the heading, once; and again when the call gets another title."""
        if not call.heading or call.title not in (call.heading, title(call.id)):
            call.heading = call.title
            self._printing = call.title
            self._last = ""
            yield StyledText("tool", call.title)

    def _content(self, call: _ShownCall) -> Iterator[StyledText]:
        """Yield what a call shows, as far as it is new."""
        if not call.is_pending:  # while a call waits, a question may come that shows its changes
            yield from self._diffs(call)
        for place, item in enumerate(call.state.content):
            match item:
                case ContentItem() if call.state.header.kind not in _FOR_THE_MODEL:
                    lines = self._outputs.text(f"{call.id}/{place}", text_of((item.content,)))
                    call.outputs.extend(map(title, lines))
                    yield from self._lines(lines, call.title)
                case TerminalItem():
                    self._outputs.follow(item.terminal_id)
                    limits.evict_oldest(self._terminal_titles, REMEMBERED - 1)
                    self._terminal_titles[item.terminal_id] = call.title
                case _:
                    pass

    def _diffs(self, call: _ShownCall) -> Iterator[StyledText]:
        """Yield the changes that were not shown yet."""
        for item in call.state.content:
            if not isinstance(item, Diff):
                continue
            text = diff_text(item)
            if hash(text) not in call.diffs | self._asked:
                call.diffs.add(hash(text))
                lines = text.rstrip("\n").split("\n")
                if length := plain_header(item):  # the lines of git say no more than these two words
                    yield StyledText("output", sanitize_line(" ".join(named_change(item))))
                for line in first_lines(lines[length:], DIFF_LINES):
                    yield StyledText("diff", line)

    def _screens(self, call: _ShownCall) -> list[str]:
        return [
            item.terminal_id if isinstance(item, TerminalItem) else f"{call.id}/{place}"
            for place, item in enumerate(call.state.content)
        ]

    def _lines(self, lines: Iterable[str], printing: str = "", happens: str = "goes on") -> Iterator[StyledText]:
        """Yield lines of output; `printing` is the title of their call, said again where something else came since."""
        for line in lines:
            if printing and printing != self._printing:
                self._printing = printing
                yield StyledText("tool", f"{_cut(printing, _AGAIN_LENGTH)} ({happens})")
            self._last = ""
            yield StyledText("output", line)

    # -- plans -------------------------------------------------------------------------------------------------------

    def _planned(self, event: events.PlanUpdate) -> Iterator[StyledText]:
        lines = list(plan_lines(event))
        text = "\n".join(lines)
        if text != self._plan:
            self._plan = text
            self._last = ""
            for line in lines:
                yield StyledText("plan", line)


def notice_text(event: events.Notice) -> str:
    """Return a notice on one line."""
    more = f": {sanitize_line(event.description)}" if event.description else ""
    return f"{sanitize_line(event.title)}{more}"


def cost_in(usage: "events.Usage | None | UnsetType") -> events.Cost | None:
    """Return what the session has cost, as an agent without a window tells it; None where it tells nothing."""
    told = usage.meta.get(events.COST) if usage and isinstance(usage.meta, Mapping) else None
    match told:
        case {"amount": int() | float() as amount, "currency": str() as currency}:
            return events.Cost(float(amount), currency)
    return None


def cost_text(cost: events.Cost) -> str:
    """Return an amount of money as it is shown: cents, and more digits where these would say little."""
    digits = 2 if abs(cost.amount) >= 0.1 or not cost.amount else 4
    amount = f"{cost.amount:,.{digits}f}"
    return f"${amount}" if cost.currency == "USD" else f"{amount} {sanitize_line(cost.currency)[:_CURRENCY]}"


def title(text: str) -> str:
    """Return a title on one line."""
    return _cut(sanitize_line(text[: 4 * TITLE_LENGTH]), TITLE_LENGTH)


def named_change(diff: Diff) -> Iterator[str]:
    """Yield what is done to the file of a diff that has one, and its path."""
    for change in diff.changes:
        if isinstance(change, FileChange):
            yield from (change.operation, change.path)


def diff_text(diff: Diff) -> str:
    """Return file changes as a patch to read, inert."""
    from dragoman.dialects.event_json import patch_text  # imports the codec of version 2, which many turns never need

    return sanitize(patch_text(diff))


def plan_lines(event: events.PlanUpdate) -> Iterator[str]:
    """Yield a plan, a step a line."""
    match event.plan:
        case PlanItems():
            for step in event.plan.entries[:PLAN_STEPS]:
                yield f"{_MARKS.get(step.status, '[ ]')} {title(step.content)}"
            if len(event.plan.entries) > PLAN_STEPS:
                yield f"({len(event.plan.entries) - PLAN_STEPS} more steps)"
        case PlanFile():
            yield sanitize_line(event.plan.uri)
        case PlanMarkdown():
            yield from first_lines(sanitize(event.plan.content).rstrip("\n").split("\n"), PLAN_STEPS)
        case unknown:
            yield f"[{sanitize_line(unknown.kind)}]"


def first_lines(lines: Sequence[str], most: int) -> list[str]:
    """Return the first lines, and a line with how many were left out."""
    if len(lines) <= most:
        return list(lines)
    return [*lines[:most], f"({len(lines) - most:,} more lines)"]


def failure_reason(items: Sequence[ToolContent]) -> str:
    """Return why a call failed: the first line of its text that says something; empty if there is none."""
    blocks: list[Content] = [item.content for item in items if isinstance(item, ContentItem)]
    for block in blocks[:_REASON_BLOCKS]:
        for line in text_of((block,))[:_REASON_CHARACTERS].splitlines():
            if _says_something(line):
                return f" ({title(line.strip().strip('`').strip())})"
    return ""


def _says_something(line: str) -> bool:
    return any(map(str.isalnum, line)) and not _FENCE.match(line)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
