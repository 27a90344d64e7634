"""Own display terminals for a wire that has none: their output as text inside the tool calls that show them.

What an event changes is the vocabulary's rule (`TerminalState`); here is what of it is drawn, and how often.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import UNSET

from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import TerminalOutputChunk, TerminalUpdate
from dragoman.vocabulary.state import TerminalState
from dragoman.vocabulary.tools import ContentItem, ExitStatus, TerminalItem, ToolContent

# What is kept of one terminal: enough to read, and each update of it is sent whole.
KEPT_BYTES: Final = 64 * 1024
# A terminal is drawn again when it has grown by a quarter, and by this much at least. Each drawing sends all of it, so
# drawing at every chunk would send a number of bytes that grows with the square of the output.
STEP_BYTES: Final = 1024
_ESCAPES: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    # OSC, DCS and friends, to their end. Never past the next escape: searching for an end that is missing must not
    # begin anew at every one of a thousand beginnings.
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|\x1b[ -/]*[0-Z\\-~]"
    r"|[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]"
)


class TerminalDisplay:
    """One display terminal as text: what is known of it (`state`), and how much of that the client has seen."""

    __slots__ = ("_drawn", "state")

    def __init__(self, terminal_id: str) -> None:
        self.state = TerminalState(terminal_id, keep=KEPT_BYTES)
        self._drawn = 0  # bytes that had been received when it was drawn last

    def __repr__(self) -> str:
        return f"<TerminalDisplay {self.state!r} undrawn={self.state.received - self._drawn}>"

    def apply(self, event: TerminalUpdate | TerminalOutputChunk) -> bool:
        """Fold an event into the state. Return whether it is worth drawing again: changed, or grown enough."""
        state = self.state
        before = (state.command, state.exit_status)
        state.apply(event)
        if isinstance(event, TerminalUpdate):
            # What can be done with it, such as to stop it, is not drawn.
            return event.output is not UNSET or before != (state.command, state.exit_status)
        grown = state.received - self._drawn
        return grown >= STEP_BYTES and grown >= (state.size - grown) // 4

    def draw(self) -> str:
        """Return what it shows, as plain text: no escape sequence survives. All of it counts as drawn then."""
        state = self.state
        self._drawn = state.received
        head = f"$ {state.command}\n" if state.command else ""
        cut = "[earlier output cut]\n" if state.is_cut else ""
        end = "" if state.exit_status is None else _ending(state.exit_status)
        return _inert(head) + cut + _inert(state.output.decode("utf-8", "replace")) + end


def _inert(text: str) -> str:
    # A carriage return goes back to the start of the line: what stood there is written over.
    shown = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _ESCAPES.sub("", shown)


def _ending(status: ExitStatus) -> str:
    if isinstance(status.signal, str):
        return f"\n[ended by {_inert(status.signal)}]"
    return f"\n[exit code {status.exit_code}]" if status.exit_code not in (0, None, UNSET) else ""


def without_terminals(items: Iterable[ToolContent], terminals: Mapping[str, TerminalDisplay]) -> list[ToolContent]:
    """Return the items with every display terminal replaced by its text, which is empty for an unknown one."""
    return [
        ContentItem(Text(terminals[item.terminal_id].draw() if item.terminal_id in terminals else ""))
        if isinstance(item, TerminalItem)
        else item
        for item in items
    ]
