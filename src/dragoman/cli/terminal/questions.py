"""Asking the person at the terminal, a line at a time, while the agent waits.

What does not fit on the screen is shown at the key `v`, in the pager or in pages, and then the question again.

The terminal stays as it is (no raw mode), so it needs no rescue if we are killed here. What was typed before the
question was shown is no answer to it. No terminal, an end of input, a hang-up: no answer, and that is a no.
"""

import asyncio
import os
import re
import termios
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from itertools import islice
from typing import Final, Literal, TextIO, TypeVar

from dragoman.cli.terminal.permission_box import MOST_ROWS, frame_rows, question, screen_rows, whole_question
from dragoman.cli.terminal.turn_screen import colours_wanted
from dragoman.cli.terminal.viewer import Pager, find_pager, show_in
from dragoman.vocabulary.services import (
    FEEDBACK,
    PermissionAnswer,
    PermissionOption,
    RequestPermission,
    Selected,
    rejection,
)

T = TypeVar("T")

# What a terminal hands over at once, in its own line mode.
LINE_BYTES: Final = 4096
# After this many lines that are no answer, the question counts as unanswered: a program may be typing.
ATTEMPTS: Final = 20
# What can be typed below a page of a long question.
_PAGE_KEYS: Final = ("", "a", "n", "no")
_PAGE_HELP: Final = "Enter: go on, a: all the rest, n: no"
# The same for a question of which more can be viewed than these pages.
_VIEW_KEYS: Final = (*_PAGE_KEYS, "v")
_VIEW_HELP: Final = "Enter: go on, v: view all, n: no"
_COLOUR: Final = re.compile(r"\x1b\[[0-9]*m")


class NoAnswer(Exception):
    """The question stays unanswered: the input has ended, or too much was typed that is no answer."""


class Keyboard:
    """The keys of a terminal, apart from stdin, which may be a pipe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def find(cls, shown: TextIO | None) -> "Keyboard | None":
        """Open the terminal that `shown` writes to; None if it is no terminal, or we are not in its foreground."""
        try:
            if shown is None or not shown.isatty():
                return None
            flags = os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            descriptor = os.open(os.ttyname(shown.fileno()), flags)
        except (OSError, ValueError):
            return None
        try:
            if os.tcgetpgrp(descriptor) == os.getpgrp():
                return cls(descriptor)
        except OSError:
            pass
        os.close(descriptor)
        return None

    def forget(self) -> None:
        """Discard what was typed until now."""
        termios.tcflush(self._descriptor, termios.TCIFLUSH)

    async def line(self) -> str:
        """Return the next line typed; `NoAnswer` at the end of input."""
        loop = asyncio.get_running_loop()
        typed = b""
        while not typed.endswith(b"\n"):
            ready: asyncio.Future[None] = loop.create_future()
            loop.add_reader(self._descriptor, _set, ready)
            try:
                await ready
                got = os.read(self._descriptor, LINE_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                raise NoAnswer from None
            finally:
                loop.remove_reader(self._descriptor)
            if not got or len(typed) > LINE_BYTES:
                raise NoAnswer
            typed += got
        return typed.decode("utf-8", "replace").strip()

    @contextmanager
    def terminal(self) -> Iterator[int]:
        """Yield a descriptor of the terminal for another program: unlike ours, reading from it blocks."""
        descriptor = os.open(os.ttyname(self._descriptor), os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Close the terminal."""
        os.close(self._descriptor)


# What became of rows that were to be shown: all of them were, or the person wants to view the question, or says no.
Shown = Literal["all", "view", "no"]


def _goes_on(at: int, help: str) -> str:
    return f"{at:,} rows so far. {help}"


def _plain(row: str) -> str:
    """Return a row without our colours."""
    return _COLOUR.sub("", row)


def _with_feedback(request: RequestPermission, option: PermissionOption | None, feedback: str) -> PermissionAnswer:
    """Return a no with the user's words."""
    outcome = rejection(request) if option is None else Selected(option.option_id)
    return PermissionAnswer(outcome, meta={FEEDBACK: feedback})


def _set(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)


class TerminalQuestions:
    """Shows questions in our frame and reads the answers. One at a time: the others wait."""

    def __init__(
        self,
        keyboard: Keyboard,
        write: Callable[[str], None],
        size: Callable[[], tuple[int, int]],
        word: str,
        hold: Callable[[bool], None],
        *,
        coloured: bool = False,
        plain: bool = False,
        find_pager: "Callable[[], Pager | None]" = lambda: None,
    ) -> None:
        """`size` is the columns and rows of the terminal now; `hold` is told when a question stands there, and when it
        does not any more; `find_pager` says what shows a question that is longer than the screen."""
        self._keyboard = keyboard
        self._write = write
        self._size = size
        self._word = word
        self._on_hold = hold
        self._coloured = coloured
        self._plain = plain
        self._find_pager = find_pager
        self._turn = asyncio.Lock()

    @classmethod
    def find(
        cls,
        stack: AsyncExitStack,
        shown: TextIO,
        write: Callable[[str], None],
        size: Callable[[], tuple[int, int]],
        word: str,
        hold: Callable[[bool], None],
        *,
        folder: str,
        plain: bool = False,
    ) -> "TerminalQuestions | None":
        """Return the questions on the terminal that `shown` writes to, until the stack ends; None if it is none of
        ours. No pager of `folder`, which may be the agent's work, shows what is long."""
        keyboard = Keyboard.find(shown)
        if keyboard is None:
            return None
        stack.callback(keyboard.close)
        coloured = colours_wanted(shown) and not plain
        pager = partial(find_pager, os.environ, [folder])
        return cls(keyboard, write, size, word, hold, coloured=coloured, plain=plain, find_pager=pager)

    async def permission(self, request: RequestPermission) -> PermissionOption | PermissionAnswer | None:
        """Ask the user and return the chosen option, or a no with the user's words; None if no answer came."""
        return await self._ask_alone(self._ask_permission(request))

    async def ask(self, lines: list[str], how: str, parse: "Callable[[str], T | None]") -> "T | None":
        """Return the answer; None after too many that cannot be understood."""
        return await self._ask_alone(self._ask(lines, how, parse))

    async def _ask_alone(self, asking: "Coroutine[None, None, T | None]") -> "T | None":
        """Show one question and return its answer, while nothing else is written."""
        try:
            async with self._turn:
                return await self._with_output_held(asking)
        finally:
            asking.close()  # it may not have begun

    async def _with_output_held(self, asking: "Coroutine[None, None, T | None]") -> "T | None":
        self._on_hold(True)
        try:
            return await asking
        except (NoAnswer, OSError, termios.error):
            with suppress(OSError):  # the window was closed: no answer
                self._write("\n")
            return None
        except asyncio.CancelledError:
            with suppress(OSError):
                self._write("\n║ The question was withdrawn.\n")
            raise
        finally:
            self._on_hold(False)

    async def _ask_permission(self, request: RequestPermission) -> PermissionOption | PermissionAnswer | None:
        asked = question(request, *self._size())
        shown = await self._show(self._rows(asked.lines), can_view=asked.hides)
        for _ in range(ATTEMPTS if asked.options else 1):
            if shown == "no":
                return asked.chosen("n")
            words = "v" if shown == "view" else await self._read_line(asked.keys)
            if words.lower() == "v":
                if not await self._view(request):
                    return asked.chosen("n")
                asked = question(request, *self._size(), viewed=True)
                shown = await self._show(self._rows(asked.lines), can_view=asked.hides)
                continue
            answer, feedback = asked.split_feedback(words)
            option = asked.chosen(answer)
            if option is not None or asked.refuses(answer):
                return _with_feedback(request, option, feedback) if feedback else option
            self._write(f"║ {asked.instead(words)}\n")
        return None

    async def _ask(self, lines: list[str], how: str, parse: "Callable[[str], T | None]") -> "T | None":
        if await self._show(self._rows(lines)) == "no":
            return None
        for _ in range(ATTEMPTS):
            answer = parse(await self._read_line(how))
            if answer is not None:
                return answer
            self._write(f"║ That is no answer; type {how}.\n")
        return None

    # -- what is shown -----------------------------------------------------------------------------------------------

    def _rows(self, lines: Iterable[str], *, coloured: bool | None = None) -> Iterator[str]:
        wanted = self._coloured if coloured is None else coloured
        heading = f"dragoman asks · {self._word}"
        return frame_rows(heading, lines, self._size()[0], coloured=wanted, plain=self._plain)

    async def _view(self, request: RequestPermission) -> bool:
        """Show all of a request: in the pager, or else in pages. False: the person has said no before its end."""
        pager = self._find_pager()
        if pager is not None:
            with self._keyboard.terminal() as terminal:
                rows = self._rows(whole_question(request), coloured=self._coloured and pager.coloured)
                if await show_in(pager, rows, terminal):
                    return True
        return await self._show(self._rows(whole_question(request))) == "all"

    async def _show(self, rows: Iterator[str], *, can_view: bool = False) -> Shown:
        """Show rows, a screen at a time where there are more. `can_view`: they are not all of the question."""
        keys, help = (_VIEW_KEYS, _VIEW_HELP) if can_view else (_PAGE_KEYS, _PAGE_HELP)
        ahead: deque[str] = deque()
        at = others = 0
        is_all = False
        while True:
            ahead.extend(islice(rows, max(self._size()[1] - len(ahead) + 1, 0)) if not is_all else rows)
            page = len(ahead) if is_all else self._page(ahead, help)
            self._write("".join(f"{ahead.popleft()}\n" for _ in range(min(page, len(ahead)))))
            at += page
            if not ahead:
                return "all"
            words = await self._read_line(_goes_on(at, help))
            while words.lower() not in keys:
                others += 1
                if others > ATTEMPTS:
                    raise NoAnswer
                words = await self._read_line(f"read to the end before you answer. {help}")
            if words.lower() == "v":
                return "view"
            if words.lower() in ("n", "no"):
                return "no"
            is_all = words.lower() == "a"

    def _page(self, ahead: Iterable[str], help: str) -> int:
        """Return how many rows fit on the screen as it is now, at least one; all of them where these are the last."""
        columns, rows = self._size()
        # Below each page is the line that asks to go on, and the one that the cursor moves to.
        room = rows - 1 - screen_rows(f"║ {_goes_on(MOST_ROWS, help)}: ", columns)
        number = 0
        for number, row in enumerate(ahead, 1):
            room -= screen_rows(_plain(row), columns)
            if room < 0:
                return max(number - 1, 1)
        return number

    async def _read_line(self, how: str) -> str:
        """Return the next line that is typed below what stands there."""
        # Behind the question and before this line: who sees it can answer at once, and no sooner.
        self._keyboard.forget()
        self._write(f"║ {how}: ")
        return await self._keyboard.line()
