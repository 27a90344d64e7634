"""Show what commands print while they run, in whole lines: the first of them as they come, the last at the end.

A screen is a display terminal of the agent, or a text in a tool call that grows. Its bytes may be cut anywhere. Output
is not folded here: a line that was shown is not taken back, so only how far each screen was shown is kept.

A command that goes on behind its call, or behind its turn, is quiet: what a server logs would cut the answer into
pieces. Its last lines are shown when it ends.
"""

import codecs
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from dragoman import limits
from dragoman.cli.terminal.sanitize import LINE_LENGTH, sanitize_output
from dragoman.vocabulary.events import TerminalOutputChunk, TerminalUpdate
from dragoman.vocabulary.state import output_bytes
from dragoman.vocabulary.tools import ExitStatus, TerminalOutput

# Lines of one command shown as they come; after that only the last ones, when it ends.
LIVE_LINES: Final = 40
LAST_LINES: Final = 5
# Screens of one turn that are followed.
SCREENS: Final = 1000


class Outputs:
    """The screens of one turn, by id."""

    def __init__(self) -> None:
        self._screens: dict[str, CommandOutput] = {}

    def update(self, event: TerminalUpdate) -> list[str]:
        """Return the lines to show now that a display terminal was made or patched."""
        screen = self._screen(event.terminal_id)
        lines: list[str] = []
        if isinstance(event.output, TerminalOutput):
            lines += screen.become_bytes(output_bytes(event.output.data))
        if isinstance(event.exit_status, ExitStatus):
            lines += screen.exit(_ending(event.exit_status))
        return lines

    def chunk(self, event: TerminalOutputChunk) -> list[str]:
        """Return the lines to show now that a display terminal has printed more."""
        return self._screen(event.terminal_id).feed_bytes(output_bytes(event.data))

    def text(self, id: str, text: str) -> list[str]:
        """Return the new lines of a text that is sent whole each time, and is mostly longer than before."""
        return self._screen(id).become(text)

    def follow(self, id: str) -> None:
        """Make a screen of this id, if there is none; output that came before was shown already."""
        self._screen(id)

    def finish(self, ids: Iterable[str]) -> list[str]:
        """Return the last lines of these screens, which have nothing more to show."""
        return [line for id in ids if id in self._screens for line in self._screens[id].end("")]

    def finish_all(self) -> list[str]:
        """Return the last lines of every screen but those that are quiet."""
        return self.finish([id for id, screen in self._screens.items() if not screen.is_quiet])

    def hush(self, ids: Iterable[str]) -> None:
        """Show of these screens, if their commands go on, no more lines until they end."""
        for id in ids:
            self._screen(id).hush()

    def is_quiet(self, id: str) -> bool:
        """Return whether a screen is one whose lines are not shown as they come."""
        return id in self._screens and self._screens[id].is_quiet

    def keep_quiet_ones(self) -> None:
        """Forget all screens but those that are quiet."""
        self._screens = {id: screen for id, screen in self._screens.items() if screen.is_quiet}

    def _screen(self, id: str) -> "CommandOutput":
        screen = self._screens.get(id)
        if screen is None:
            limits.evict_oldest(self._screens, SCREENS - 1)
            screen = self._screens[id] = CommandOutput()
        return screen


class CommandOutput:
    """The output of one command."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._shown = 0
        self._later: deque[str] = deque(maxlen=LAST_LINES)
        self._skipped = 0
        self._length = 0
        self._start = ""
        self._ended = False
        self._exited = False
        self.is_quiet = False

    def feed_bytes(self, data: bytes) -> list[str]:
        """Append output, and return the lines to show."""
        self._length += len(data)
        return self._feed(self._decoder.decode(data))

    def become_bytes(self, data: bytes) -> list[str]:
        """Replace the output, of which the start was shown, and return the new lines to show."""
        return self.feed_bytes(data[self._length :])

    def become(self, text: str) -> list[str]:
        """Replace the output by `text` and return the new lines to show; all of them if it does not begin as before."""
        new = text[self._length :] if text.startswith(self._start) else text
        self._start, self._length = text[:LINE_LENGTH], len(text)
        return self._feed(new)

    def exit(self, words: str) -> list[str]:
        """Return what is left to show of a command that has ended, once; `words` say how it ended."""
        self._exited = True
        lines = self.end(words)
        self.is_quiet = False
        return lines

    def hush(self) -> None:
        """Show what comes from now on only at the end, and only the last lines; do nothing where that was."""
        if not (self._exited or self.is_quiet):
            self.is_quiet, self._ended = True, False
            self._shown = LIVE_LINES
            self._skipped = 0
            self._later.clear()

    def end(self, words: str) -> list[str]:
        """Return what is left to show, once; `words` say how it ended."""
        if self._ended:
            return []
        self._ended = True
        lines = self._take(sanitize_output(self._rest).split("\n")) if self._rest else []
        self._rest = ""
        left_out = self._skipped - len(self._later)
        if left_out > 0:
            lines.append(f"({left_out:,} more lines)")
        lines += self._later
        self._later.clear()
        return [*lines, words] if words else lines

    def _feed(self, text: str) -> list[str]:
        text = self._rest + text
        whole, newline, rest = text.rpartition("\n")
        if len(rest) > LINE_LENGTH:
            whole, newline, rest = text, "\n", ""
        self._rest = rest
        return self._take(_lines(whole)) if newline else []

    def _take(self, lines: Iterable[str]) -> list[str]:
        shown: list[str] = []
        for line in lines:
            if self._shown < LIVE_LINES:
                self._shown += 1
                shown.append(line)
            else:
                self._skipped += 1
                self._later.append(line)
        return shown


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a text, none longer than `LINE_LENGTH`."""
    for line in sanitize_output(text).split("\n"):
        for start in range(0, max(len(line), 1), LINE_LENGTH):
            yield line[start : start + LINE_LENGTH]


def _ending(status: ExitStatus) -> str:
    if status.signal:
        return f"(signal {sanitize_output(str(status.signal))[:40]})"
    return f"(exit code {status.exit_code})" if status.exit_code else ""
