"""What happened in a turn, short enough to be kept and read: words, thoughts, tool calls, questions."""

from typing import Final

import msgspec
from msgspec import UNSET

from dragoman import events
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.tools import ContentItem, Diff

# Of one text, of the title of a call, of all texts but those titles, and of how many entries there are.
_TEXT: Final = 8_000
_TITLE: Final = 300
_ALL: Final = 400_000
_MOST: Final = 2_000


class Entry(msgspec.Struct, omit_defaults=True):
    """One thing that happened. `what`: agent, thought, tool, permission, question, notice."""

    what: str
    text: str
    detail: str = ""
    status: str = ""


class Transcript:
    """Built from the events of a turn, in order."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.commands: list[str] = []
        self.requests = 0  # updates of usage: our agent sends one after each model request
        self.tool_calls = 0
        self.cost: float | None = None
        self._calls: dict[str, Entry] = {}
        self._size = 0
        self._answer: list[str] = []

    def answer(self) -> str:
        """Return what the agent said behind its last tool call; all of it if that is nothing."""
        last = "".join(self._answer).strip()
        return last or "".join(entry.text for entry in self.entries if entry.what == "agent").strip()

    def apply(self, event: object) -> None:
        """Fold an event into the transcript."""
        match event:
            case events.AgentMessageChunk(content=Text(text=text)):
                self._answer.append(text)
                self._say("agent", text)
            case events.AgentThoughtChunk(content=Text(text=text)):
                self._say("thought", text)
            case events.ToolCallUpdate():
                self._answer.clear()
                self._call(event)
            case events.UsageChanged(cost=cost):
                self.requests += 1
                if isinstance(cost, events.Cost):
                    self.cost = cost.amount
            case events.Notice(title=title):
                self.note("notice", title)

    def note(self, what: str, text: str, detail: str = "") -> None:
        """Add an entry."""
        if len(self.entries) < _MOST and self._size < _ALL:
            entry = Entry(what, text[:_TEXT], detail[:_TEXT])
            self._size += len(entry.text) + len(entry.detail)
            self.entries.append(entry)

    def _say(self, what: str, text: str) -> None:
        last = self.entries[-1] if self.entries else None
        if last is None or last.what != what:
            self.note(what, text)
        elif len(last.text) < _TEXT and self._size < _ALL:
            last.text += text[:_TEXT]
            self._size += len(text[:_TEXT])

    def _call(self, call: events.ToolCallUpdate) -> None:
        entry = self._calls.get(call.tool_call_id)
        if entry is None:
            entry = self._calls[call.tool_call_id] = Entry("tool", "")
            self.tool_calls += 1
            if len(self.entries) < _MOST:
                self.entries.append(entry)
        if call.title:
            entry.text = str(call.title)[:_TITLE]
        if call.status:
            entry.status = str(call.status)
        if call.raw_input is not UNSET and call.raw_input is not None:
            self._remember_command(call.raw_input)
            self._detail(entry, msgspec.json.encode(call.raw_input).decode())
        for item in call.content or ():
            match item:
                case ContentItem(content=Text(text=text)):
                    self._detail(entry, text)
                case Diff():
                    self._detail(entry, "(a diff)")

    def _detail(self, entry: Entry, text: str) -> None:
        if self._size < _ALL and text not in entry.detail:
            added = (entry.detail + "\n" + text).strip()[:_TEXT]
            self._size += max(0, len(added) - len(entry.detail))
            entry.detail = added

    def _remember_command(self, given: object) -> None:
        command = given.get("command") if isinstance(given, dict) else None
        words = " ".join(map(str, command)) if isinstance(command, list) else command
        if isinstance(words, str) and words not in self.commands and len(self.commands) < _MOST:
            self.commands.append(words)
