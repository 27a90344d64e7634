"""A turn in words, as it happens: events in, pieces out. What an agent sent is inert in every piece.

Knows no terminal: `run` and `chat` show the same pieces, each in its way. What it keeps of a turn is bounded.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.cli.terminal.command_output import Outputs
from dragoman.cli.terminal.sanitize import SanitizingStream, sanitize, sanitize_line
from dragoman.vocabulary import events
from dragoman.vocabulary.content import Content, text_of
from dragoman.vocabulary.options import PlanFile, PlanItems, PlanMarkdown
from dragoman.vocabulary.services import RequestPermission, ToolCallSubject
from dragoman.vocabulary.state import CompactionState
from dragoman.vocabulary.tools import FINAL_STATUSES, ContentItem, Diff, TerminalItem, ToolContent

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
# Steps shown of one plan.
PLAN_STEPS: Final = 50
# Calls and messages of a turn that are remembered; an agent with more of them at once is told anew.
REMEMBERED: Final = 1000
# Characters kept of a message, to tell what of it is new when it is sent whole.
_MESSAGE_LENGTH: Final = 1024 * 1024
# The kinds of calls whose text is for the model and not for the user.
_FOR_THE_MODEL: Final = ("read", "search", "think")
# Where a reason is looked for in the text of a failed call.
_REASON_BLOCKS: Final = 10
_REASON_CHARACTERS: Final = 16 * 1024
# A line that opens or closes a block of code, with the name of its language.
_FENCE: Final = re.compile(r"\s*(?:`{3,}|~{3,})[^`]*$")
_MARKS: Final = {"completed": "[x]", "in_progress": "[>]", "cancelled": "[-]"}


class StyledText(NamedTuple):
    """Some text, and what kind of text it is."""

    form: Form
    text: str


class _Call:
    """A tool call, as far as it was told."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.title = id
        self.kind = ""
        self.pending = False
        self.ended = False
        self.headed = ""
        self.items: list[ToolContent] = []
        self.diffs: set[int] = set()


class _Said:
    """What was said of a message: how long it is, and the start of it."""

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
    """One conversation, told."""

    def __init__(self) -> None:
        self._calls: dict[str, _Call] = {}
        # Changes that stood in questions of this turn.
        self._asked: set[int] = set()
        self._outputs = Outputs()
        self._said: dict[str, _Said] = {}
        self._compactions: dict[str, CompactionState] = {}
        self._plan = ""
        self._streams = {"answer": SanitizingStream(), "thought": SanitizingStream()}
        self._last = ""

    @property
    def running(self) -> list[str]:
        """The titles of the calls that run now."""
        return [call.title for call in self._calls.values() if not call.ended]

    def tell(self, event: events.AnyEvent) -> list[StyledText]:
        """What there is to show of an event, in order."""
        return [piece for piece in self._pieces(event) if piece.text]

    def client_terminal(self, terminal_id: str, text: str, *, ended: bool) -> list[StyledText]:
        """What a terminal shows that we run for the agent: all of it each time."""
        lines = self._outputs.text(terminal_id, text)
        if ended:
            lines += self._outputs.finish([terminal_id])
        return list(self._lines(terminal_id, lines))

    def asked(self, request: RequestPermission) -> None:
        """A question is shown to the user, with the changes it is about: they need not be shown again."""
        if isinstance(request.subject, ToolCallSubject) and len(self._asked) < REMEMBERED:
            items = request.subject.tool_call.content or ()
            self._asked.update(hash(diff_text(item)) for item in items if isinstance(item, Diff))

    def finish(self) -> list[StyledText]:
        """The turn is over, however it ended: what was held back."""
        for call in self._calls.values():
            call.pending = False
        held = [piece for call in self._calls.values() for piece in self._diffs(call)]
        pieces = [StyledText(form, self._streams[form].finish()) for form in ("answer", "thought")]
        pieces += [StyledText("output", line) for line in self._outputs.finish_all()]
        pieces += held
        self._forget_turn()
        return [piece for piece in pieces if piece.text]

    def _forget_turn(self) -> None:
        self._calls.clear()
        self._asked.clear()
        self._said.clear()
        self._outputs = Outputs()
        self._last = ""

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
                yield from self._headed(call)
                call.items.append(event.content)
                yield from self._content(call)
            case events.TerminalUpdate():
                yield from self._lines(event.terminal_id, self._outputs.update(event))
            case events.TerminalOutputChunk():
                yield from self._lines(event.terminal_id, self._outputs.chunk(event))
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
                return  # the user's own words, and how things stand

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
        """A whole message: what of it was not said in pieces already."""
        if not isinstance(event.content, list):
            return
        text, so_far = text_of(event.content), self._message_so_far(event.message_id)
        new = text[so_far.length :] if text.startswith(so_far.start()) else f"\n\n{text}"
        self._said[event.message_id] = _Said(text)
        yield from self._stream(form, event.message_id, new)

    def _stream(self, form: Literal["answer", "thought"], message_id: str, text: str) -> Iterator[StyledText]:
        shown = self._streams[form].feed(text)
        if shown:
            if self._last and self._last != message_id:
                yield StyledText(form, "\n\n")
            self._last = message_id
            yield StyledText(form, shown)

    def _broken_off(self, event: events.Notice) -> Iterator[StyledText]:
        """Mark the end of an answer that begins anew: what was said of it is not part of what follows."""
        if self._last and isinstance(event.meta, Mapping) and event.meta.get(events.BROKEN_OFF) is True:
            self._last = ""
            yield StyledText("break", BROKEN_OFF)

    def _message_so_far(self, message_id: str) -> "_Said":
        said = self._said.get(message_id)
        if said is None:
            if len(self._said) >= REMEMBERED:
                del self._said[next(iter(self._said))]
            said = self._said[message_id] = _Said()
        return said

    # -- tool calls --------------------------------------------------------------------------------------------------

    def _call(self, id: str) -> _Call:
        call = self._calls.get(id)
        if call is None:
            if len(self._calls) >= REMEMBERED:
                del self._calls[next(iter(self._calls))]
            call = self._calls[id] = _Call(id)
            call.title = title(id)
        return call

    def _update(self, event: events.ToolCallUpdate) -> Iterator[StyledText]:
        call = self._call(event.tool_call_id)
        named = event.title or event.name
        if named:
            call.title = title(named)
        if isinstance(event.kind, str):
            call.kind = event.kind
        yield from self._headed(call)
        status = event.status if isinstance(event.status, str) else ""
        if status:
            call.pending = status == "pending"
        ends = status in FINAL_STATUSES and not call.ended
        failed = ends and status != "completed"
        pieces: list[StyledText] = []
        if event.content is None or isinstance(event.content, list):
            call.items = list(event.content or ())
            pieces += self._content(call)
        elif status:
            pieces += self._diffs(call)
        if ends:
            call.ended = True
            pieces += [StyledText("output", line) for line in self._outputs.finish(self._screens(call))]
        if failed:
            reason = failure_reason(call.items)
            output = [piece for piece in pieces if piece.form == "output"]
            said = [piece for piece in output if not _FENCE.match(piece.text)]
            if len(said) == 1 and f" ({title(said[0].text)})" == reason:
                pieces = [piece for piece in pieces if piece.form != "output"]  # one line is the reason, and said once
            pieces.append(StyledText("failed", f"{call.title}: {status}{reason}"))
        yield from pieces

    def _headed(self, call: _Call) -> Iterator[StyledText]:
        """The heading, once; and again when the call turns out to be called otherwise."""
        if not call.headed or call.title not in (call.headed, title(call.id)):
            call.headed = call.title
            self._last = ""
            yield StyledText("tool", call.title)

    def _content(self, call: _Call) -> Iterator[StyledText]:
        """What a call shows, as far as it is new."""
        yield from self._diffs(call)
        for place, item in enumerate(call.items):
            match item:
                case ContentItem() if call.kind not in _FOR_THE_MODEL:
                    screen = f"{call.id}/{place}"
                    yield from self._lines(screen, self._outputs.text(screen, text_of((item.content,))))
                case TerminalItem():
                    yield from self._lines(item.terminal_id, self._outputs.pending(item.terminal_id))
                case _:
                    pass

    def _diffs(self, call: _Call) -> Iterator[StyledText]:
        """Changes that were not shown yet. While a call waits, a question may come that shows them."""
        for item in [] if call.pending else call.items:
            if not isinstance(item, Diff):
                continue
            text = diff_text(item)
            if hash(text) not in call.diffs | self._asked:
                call.diffs.add(hash(text))
                for line in shortened(text.rstrip("\n").split("\n"), DIFF_LINES):
                    yield StyledText("diff", line)

    def _screens(self, call: _Call) -> list[str]:
        return [
            item.terminal_id if isinstance(item, TerminalItem) else f"{call.id}/{place}"
            for place, item in enumerate(call.items)
        ]

    def _lines(self, screen: str, lines: Iterable[str]) -> Iterator[StyledText]:
        for line in lines:
            self._last = ""
            yield StyledText("output", line)

    # -- plans -------------------------------------------------------------------------------------------------------

    def _planned(self, event: events.PlanUpdate) -> Iterator[StyledText]:
        lines = list(plan_lines(event))
        told = "\n".join(lines)
        if told != self._plan:
            self._plan = told
            self._last = ""
            for line in lines:
                yield StyledText("plan", line)


def notice_text(event: events.Notice) -> str:
    """A notice on one line."""
    more = f": {sanitize_line(event.description)}" if event.description else ""
    return f"{sanitize_line(event.title)}{more}"


def title(text: str) -> str:
    """A title on one line."""
    return _cut(sanitize_line(text[: 4 * TITLE_LENGTH]), TITLE_LENGTH)


def diff_text(diff: Diff) -> str:
    """File changes as a patch to read, inert."""
    from dragoman.agent.event_json import patch_text  # the second version's words, which many turns never need

    return sanitize(patch_text(diff))


def plan_lines(event: events.PlanUpdate) -> Iterator[str]:
    """A plan, a step a line."""
    match event.plan:
        case PlanItems():
            for step in event.plan.entries[:PLAN_STEPS]:
                yield f"{_MARKS.get(step.status, '[ ]')} {title(step.content)}"
            if len(event.plan.entries) > PLAN_STEPS:
                yield f"({len(event.plan.entries) - PLAN_STEPS} more steps)"
        case PlanFile():
            yield sanitize_line(event.plan.uri)
        case PlanMarkdown():
            yield from shortened(sanitize(event.plan.content).rstrip("\n").split("\n"), PLAN_STEPS)
        case unknown:
            yield f"[{sanitize_line(unknown.kind)}]"


def shortened(lines: Sequence[str], most: int) -> list[str]:
    """The first lines, and how many were left out."""
    if len(lines) <= most:
        return list(lines)
    return [*lines[:most], f"({len(lines) - most:,} more lines)"]


def failure_reason(items: Sequence[ToolContent]) -> str:
    """Return why a call failed: the first line of its text that says something; empty if there is none."""
    blocks: list[Content] = [item.content for item in items if isinstance(item, ContentItem)]
    for block in blocks[:_REASON_BLOCKS]:
        for line in text_of((block,))[:_REASON_CHARACTERS].splitlines():
            if any(character.isalnum() for character in line) and not _FENCE.match(line):
                return f" ({title(line.strip().strip('`').strip())})"
    return ""


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
