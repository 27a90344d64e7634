"""Display terminals for a wire that has none: their output as text inside the tool calls that show them."""

import base64
import binascii
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
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\)"  # OSC, DCS and friends, to their end
    r"|\x1b[@-Z\\-_]"
    r"|[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]",
    re.DOTALL,
)


class Screen:
    """One display terminal."""

    __slots__ = ("_cut", "_output", "_told", "command", "done", "status")

    def __init__(self) -> None:
        self.command = ""
        self.status = ""
        self.done = False
        self._output = bytearray()
        self._cut = False
        self._told = 0

    def patch(self, update: TerminalUpdate) -> None:
        """Take an update."""
        if isinstance(update.command, str):
            self.command = update.command
        if update.output is None:
            self._output.clear()
        elif isinstance(update.output, TerminalOutput):
            self._output.clear()
            self._append(update.output.data)
        if isinstance(update.exit_status, ExitStatus):
            self.done = True
            self.status = _ending(update.exit_status)

    def feed(self, chunk: TerminalOutputChunk) -> bool:
        """Take output. True: it has grown enough to be told again."""
        self._append(chunk.data)
        return len(self._output) - self._told >= max(STEP_BYTES, self._told // 4) or self._cut

    def text(self) -> str:
        """What it shows, as plain text: no escape sequence survives."""
        self._told = len(self._output)
        shown = _ESCAPES.sub("", self._output.decode("utf-8", "replace").replace("\r\n", "\n"))
        head = f"$ {self.command}\n" if self.command else ""
        return head + ("[earlier output cut]\n" if self._cut else "") + shown + self.status

    def _append(self, data: str) -> None:
        try:
            self._output += base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            return
        if len(self._output) > KEPT_BYTES:
            del self._output[:-KEPT_BYTES]
            self._cut = True


def _ending(status: ExitStatus) -> str:
    if isinstance(status.signal, str):
        return f"\n[ended by {status.signal}]"
    return f"\n[exit code {status.exit_code}]" if status.exit_code not in (0, None, UNSET) else ""


def without_screens(items: list[ToolContent], screens: dict[str, Screen]) -> list[ToolContent]:
    """The items with every display terminal replaced by its text."""
    return [
        ContentItem(Text(screens[item.terminal_id].text() if item.terminal_id in screens else ""))
        if isinstance(item, TerminalItem)
        else item
        for item in items
    ]
