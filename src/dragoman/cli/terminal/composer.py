"""Where the user writes: history, several lines, completion of /commands and @paths."""

import asyncio
import os
import stat
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, get_common_complete_suffix
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth

from dragoman.cli.decode_input import decode_input
from dragoman.cli.terminal.fuzzy import FolderFiles, best
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
        *,
        plain: bool = False,
    ) -> None:
        """`mentions` are what else than files may stand behind an `@`. `on_first_press` is called at a Ctrl-C on an
        empty line after which another one leaves. `plain`: nothing stands below the line, and completions are shown at
        Tab alone."""
        import sys

        coloured = colours_wanted(sys.stdout)
        self._status = status
        self._writing: Awaitable[None] | None = None
        self._on_first_press = on_first_press
        self._plain = plain
        self._presses = SecondPress()
        self._session: PromptSession[str] = PromptSession(
            history=_history(history),
            completer=_Words(folder, commands, values, mentions),
            complete_while_typing=Condition(self._completes_while_typing),
            multiline=True,
            key_bindings=_keys(),
            bottom_toolbar=None if plain else self._toolbar,
            color_depth=None if coloured else ColorDepth.DEPTH_1_BIT,
            prompt_continuation="  ",
            mouse_support=False,
            enable_open_in_editor=False,  # its key sends what was written; ours does not
            tempfile_suffix=".md",
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

    def _completes_while_typing(self) -> bool:
        """Return whether the word at the cursor is one that has completions: a command or an `@`."""
        before = self._session.default_buffer.document.text_before_cursor
        return not self._plain and (before.startswith("/") or word_before(before).startswith("@"))

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

    @keys.add("tab")
    def _(event: KeyPressEvent) -> None:
        _complete(event.current_buffer)

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-g")
    @keys.add("c-x", "c-e")
    def _(event: KeyPressEvent) -> None:
        editing = event.current_buffer.open_in_editor()
        # Where there is no editor the line stays as it is.
        editing.add_done_callback(lambda done: done.cancelled() or done.exception())

    return keys


def _complete(buffer: Buffer) -> None:
    """Complete the word at the cursor: as far as it is certain, else show what there is, else choose the next of it.

    The key of the library waits for the list that is shown while typing, and does nothing if that is not there yet.
    """
    if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
        buffer.complete_next()
        return
    word = word_before(buffer.document.text_before_cursor)
    found = list(buffer.completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))
    found = [one for one in found if one.text.startswith(word)] or found
    certain = get_common_complete_suffix(buffer.document, found)
    if len(found) == 1 and found[0].text != word:
        buffer.apply_completion(found[0])
    elif certain:
        buffer.insert_text(certain)
    elif buffer.complete_state is not None and buffer.complete_state.completions:
        buffer.complete_next()  # the list that is shown while typing: no other is started beside it
    elif found:
        buffer.start_completion(select_first=True)


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
        self._files = FolderFiles(folder)
        self._commands = commands
        self._values = values

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield what fits the word at the cursor. Blocks while a folder is listed."""
        word = word_before(document.text_before_cursor)
        if word.startswith("@"):
            yield from self._behind_at(word, self._files.paths())
        else:
            yield from self._of_commands(document.text_before_cursor, word)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Yield what fits the word at the cursor; a folder is listed in a thread."""
        word = word_before(document.text_before_cursor)
        if word.startswith("@"):
            files = await asyncio.to_thread(self._files.paths)
            found = self._behind_at(word, files)
        else:
            found = self._of_commands(document.text_before_cursor, word)
        for completion in found:
            yield completion

    def _behind_at(self, word: str, files: list[str]) -> Iterator[Completion]:
        """Yield paths that begin so, then mentions, then files of the workspace that have these letters in order."""
        begun = paths(word[1:], self._folder)
        close = best(word[1:], files, str, OFFERED) if len(word) > 1 else []
        for path in dict.fromkeys([*begun, *close]):
            written = f'@"{path}"' if " " in path else f"@{path}"
            yield Completion(written, -len(word), display=sanitize_line(path))
        yield from _offered(word, self._mentions())

    def _of_commands(self, text: str, word: str) -> Iterator[Completion]:
        if text.startswith("/"):
            name, space, _ = text.partition(" ")
            if space:
                yield from _completions(word, best(word, self._values(name), _word, OFFERED))
            else:
                yield from _offered(word, self._commands())


def word_before(text: str) -> str:
    """Return the word that ends at the cursor, where `text` stands before it; empty behind a space."""
    return text.rsplit(None, 1)[-1] if text and not text[-1].isspace() else ""


def _word(offered: CompletionWord) -> str:
    return offered.word


def _offered(word: str, words: Iterable[CompletionWord]) -> Iterator[Completion]:
    """Yield the words that begin so, then those with these letters in order. Of one with a gap in braces, which the
    user fills, what stands before it."""
    known = list(words)
    begun = [one for one in known if one.word.partition("{")[0].startswith(word)]
    close = best(word[1:], known, lambda one: one.word[1:].partition("{")[0], OFFERED) if len(word) > 1 else []
    return _completions(word, dict.fromkeys([*begun, *close]))


def _completions(word: str, words: Iterable[CompletionWord]) -> Iterator[Completion]:
    for offered in words:
        yield Completion(
            offered.word.partition("{")[0],
            -len(word),
            display=sanitize_line(offered.word),
            display_meta=sanitize_line(offered.about)[:80],
        )


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
