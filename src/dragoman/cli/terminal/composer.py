"""Where the user writes: history, several lines, completion of /commands and @paths."""

import os
import stat
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.application.current import set_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth

from dragoman.cli.decode_input import decode_input
from dragoman.cli.terminal.interrupts import SecondPress
from dragoman.cli.terminal.sanitize import sanitize_line
from dragoman.cli.terminal.turn_screen import colours_wanted
from dragoman.cli.text_width import fit

# Older prompts are forgotten once the file has more than this.
HISTORY_BYTES: Final = 1024 * 1024
# Names offered at once, and looked at in one folder.
OFFERED: Final = 100
LOOKED_AT: Final = 5000


class CompletionWord(NamedTuple):
    """A word to complete to, and what it is for."""

    word: str
    about: str = ""


class Composer:
    """The line at the bottom."""

    def __init__(
        self,
        history: Path,
        folder: str,
        commands: Callable[[], Iterable[CompletionWord]],
        values: Callable[[str], Iterable[CompletionWord]],
        status: Callable[[], str],
        on_first_press: Callable[[], None],
        mentions: Callable[[], Iterable[CompletionWord]] = tuple,
    ) -> None:
        """`mentions` are what else than files may stand behind an `@`. `on_first_press` is called at a Ctrl-C on an
        empty line after which another one leaves."""
        import sys

        coloured = colours_wanted(sys.stdout)
        self._status = status
        self._writing: Awaitable[None] | None = None
        self._on_first_press = on_first_press
        self._presses = SecondPress()
        self._session: PromptSession[str] = PromptSession(
            history=_history(history),
            completer=_Words(folder, commands, values, mentions),
            complete_while_typing=False,
            multiline=True,
            key_bindings=_keys(),
            bottom_toolbar=self._toolbar,
            color_depth=None if coloured else ColorDepth.DEPTH_1_BIT,
            prompt_continuation="  ",
            mouse_support=False,
            enable_open_in_editor=False,
            enable_suspend=True,
        )
        self._session.default_buffer.on_text_changed += lambda buffer: self._presses.reset()

    def refresh(self) -> None:
        """Draw the line below the input again."""
        self._session.app.invalidate()

    def above(self, write: Callable[[], None]) -> bool:
        """Call `write` above the input line; return False, without a call, if no line is being read."""
        app = self._session.app
        if not app.is_running:
            return False
        with set_app(app):
            self._writing = run_in_terminal(write)  # kept: the loop alone would let it go
        return True

    def press(self) -> None:
        """Count a Ctrl-C that came before the line was read; `EOFError` if it was the second in a row."""
        if self._presses.press():
            raise EOFError
        self._on_first_press()

    async def read(self, begun: str = "") -> str:
        """Return what the user says; `begun` stands there already. `EOFError`: the user leaves.

        Ctrl-C gives up a line that has text, which is in the history then, and goes on with an empty one. On an empty
        line two in a row leave.
        """
        # On a dumb terminal the library shows the prompt first and takes the keys afterwards: what is typed in between
        # would be echoed, and a Ctrl-D lost. A Ctrl-C between two prompts would be a signal, and end the program.
        with self._session.input.raw_mode():
            while True:
                try:
                    text = await self._session.prompt_async("> ", default=begun)
                except KeyboardInterrupt:
                    begun = ""
                    self._give_up()
                    continue
                self._presses.reset()
                return decode_input(text)

    def _give_up(self) -> None:
        buffer = self._session.default_buffer
        if buffer.text:
            buffer.append_to_history()
            self._presses.reset()
        else:
            self.press()

    def _toolbar(self) -> StyleAndTextTuples:
        columns = self._session.app.output.get_size().columns
        return [("", fit(self._status(), max(columns - 1, 10)))]


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.apply_completion(buffer.complete_state.current_completion)
        elif buffer.document.current_line_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


class _Words(Completer):
    """/commands at the start, their values after them, @paths and other @words anywhere."""

    def __init__(
        self,
        folder: str,
        commands: Callable[[], Iterable[CompletionWord]],
        values: Callable[[str], Iterable[CompletionWord]],
        mentions: Callable[[], Iterable[CompletionWord]],
    ) -> None:
        self._mentions = mentions
        self._folder = folder
        self._commands = commands
        self._values = values

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        text = document.text_before_cursor
        word = text.rsplit(None, 1)[-1] if text and not text[-1].isspace() else ""
        if word.startswith("@"):
            for path in paths(word[1:], self._folder):
                written = f'@"{path}"' if " " in path else f"@{path}"
                yield Completion(written, -len(word), display=sanitize_line(path))
            yield from _offered(word, self._mentions())
        elif text.startswith("/"):
            name, space, _ = text.partition(" ")
            if space:
                yield from _completions(word, _with_part(self._values(name), word))
            else:
                yield from _offered(word, self._commands())


def _offered(word: str, words: Iterable[CompletionWord]) -> Iterator[Completion]:
    """Yield the words that begin so; of one with a gap in braces, which the user fills, what stands before it."""
    return _completions(word, (one for one in words if one.word.partition("{")[0].startswith(word)))


def _completions(word: str, words: Iterable[CompletionWord]) -> Iterator[Completion]:
    for offered in words:
        yield Completion(
            offered.word.partition("{")[0],
            -len(word),
            display=sanitize_line(offered.word),
            display_meta=sanitize_line(offered.about)[:80],
        )


def _with_part(words: Iterable[CompletionWord], part: str) -> list[CompletionWord]:
    """Return the words that have this part, those that begin with it first; no more than are offered."""
    wanted = part.casefold()
    found = [offered for offered in words if wanted in offered.word.casefold()]
    found.sort(key=lambda offered: not offered.word.casefold().startswith(wanted))
    return found[:OFFERED]


def paths(begun: str, folder: str) -> list[str]:
    """Return the paths that begin so, relative as they are written. Hidden ones where the dot is written."""
    head, name = os.path.split(begun)
    found: list[str] = []
    try:
        with os.scandir(os.path.join(folder, os.path.expanduser(head))) as entries:
            for count, entry in enumerate(entries):
                if count >= LOOKED_AT or len(found) >= OFFERED:
                    break
                if (
                    entry.name.startswith(name)
                    and (name or not entry.name.startswith("."))
                    and entry.name.isprintable()
                ):
                    found.append(os.path.join(head, entry.name) + ("/" if entry.is_dir() else ""))
    except (OSError, ValueError):
        return []
    return sorted(found)


def _history(file: Path) -> History:
    """Kept in a file that only its owner reads; in memory where that cannot be."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return InMemoryHistory()
            os.fchmod(descriptor, 0o600)
            _trim(descriptor)
        finally:
            os.close(descriptor)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))


def _trim(descriptor: int) -> None:
    """Half of it stays, from the start of an entry on."""
    size = os.fstat(descriptor).st_size
    if size <= HISTORY_BYTES:
        return
    tail = os.pread(descriptor, HISTORY_BYTES // 2, size - HISTORY_BYTES // 2)
    _, _, tail = tail.partition(b"\n\n# ")
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, b"\n# " + tail if tail else b"", 0)
