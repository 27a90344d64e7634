"""Display terminals for a wire that has none: their output as text inside the tool calls that show them."""

import base64
import re
from typing import Final

from msgspec import UNSET

from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import TerminalOutputChunk, TerminalUpdate
from dragoman.vocabulary.tools import ContentItem, ExitStatus, TerminalItem, TerminalOutput, ToolContent

# What is kept of one terminal: enough to read, and each update of it is sent whole.
KEPT_BYTES: Final = 64 * 1024
# A terminal is told again when it has grown by a quarter, and by this much at least: the whole stays linear.
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
    """One display terminal."""

    __slots__ = ("_cut", "_output", "_untold", "command", "done", "status")

    def __init__(self) -> None:
        self.command = ""
        self.status = ""
        self.done = False
        self._output = bytearray()
        self._cut = False
        self._untold = 0  # bytes taken since it was told last

    def patch(self, update: TerminalUpdate) -> None:
        """Take an update."""
        if update.command is not UNSET:
            self.command = update.command or ""
        if update.output is not UNSET:
            self._output.clear()
            self._cut = False
            if isinstance(update.output, TerminalOutput):
                self._append(update.output.data)
        if update.exit_status is not UNSET:
            self.done = update.exit_status is not None
            self.status = "" if update.exit_status is None else _ending(update.exit_status)

    def feed(self, chunk: TerminalOutputChunk) -> bool:
        """Take output. True: it has grown enough to be told again."""
        self._append(chunk.data)
        return self._untold >= max(STEP_BYTES, (len(self._output) - self._untold) // 4)

    def text(self) -> str:
        """What it shows, as plain text: no escape sequence survives."""
        self._untold = 0
        head = f"$ {self.command}\n" if self.command else ""
        cut = "[earlier output cut]\n" if self._cut else ""
        return _inert(head) + cut + _inert(self._output.decode("utf-8", "replace")) + self.status

    def _append(self, data: str) -> None:
        try:
            found = base64.b64decode(data, validate=True)
        except ValueError:
            return
        self._untold += len(found)
        self._output += found[-KEPT_BYTES:]
        if len(self._output) > KEPT_BYTES or len(found) > KEPT_BYTES:
            del self._output[:-KEPT_BYTES]
            self._cut = True


def _inert(text: str) -> str:
    # A carriage return goes back to the start of the line: what stood there is written over.
    shown = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _ESCAPES.sub("", shown)


def _ending(status: ExitStatus) -> str:
    if isinstance(status.signal, str):
        return f"\n[ended by {_inert(status.signal)}]"
    return f"\n[exit code {status.exit_code}]" if status.exit_code not in (0, None, UNSET) else ""


def without_screens(items: list[ToolContent], screens: dict[str, TerminalDisplay]) -> list[ToolContent]:
    """The items with every display terminal replaced by its text."""
    return [
        ContentItem(Text(screens[item.terminal_id].text() if item.terminal_id in screens else ""))
        if isinstance(item, TerminalItem)
        else item
        for item in items
    ]
