"""Asking the person at the terminal, a line at a time, while the agent waits.

The terminal stays as it is (no raw mode), so it needs no rescue if we are killed here. What was typed before the
question was shown is no answer to it. Nobody there, an end of input, a hang-up: no answer, and that is a no.
"""

import asyncio
import os
import termios
from collections.abc import Callable
from typing import Final, TextIO, TypeVar

from dragoman.cli.face.box import MOST_ROWS, OPTIONS, chosen, framed, question, screen_rows
from dragoman.vocabulary.services import PermissionOption, RequestPermission

T = TypeVar("T")

# What a terminal hands over at once, in its own line mode.
LINE_BYTES: Final = 4096
# Somebody who types this many things that are no answer has left the keyboard to something else.
ATTEMPTS: Final = 20
# What can be typed below a page of a long question.
_PAGE_KEYS: Final = ("", "a", "n", "no")


class Gone(Exception):
    """There is nobody to answer."""


class Keyboard:
    """The keys of a terminal, apart from stdin, which may be a pipe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def find(cls, shown: TextIO | None) -> "Keyboard | None":
        """Those of the terminal that our questions are shown on, if somebody is there who can answer them."""
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
        """What was typed until now is not read."""
        termios.tcflush(self._descriptor, termios.TCIFLUSH)

    async def line(self) -> str:
        """The next line typed; `Gone` at the end of input."""
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
                raise Gone from None
            finally:
                loop.remove_reader(self._descriptor)
            if not got or len(typed) > LINE_BYTES:
                raise Gone
            typed += got
        return typed.decode("utf-8", "replace").strip()

    def close(self) -> None:
        """Not needed any more."""
        os.close(self._descriptor)


def _goes_on(at: int, rows: int) -> str:
    return f"{at} of {rows} rows. Enter: go on, a: all the rest, n: no"


def _set(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)


class Asker:
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
    ) -> None:
        """`size` is the columns and rows of the terminal now; `hold` is told when a question stands there, and when it
        does not any more."""
        self._keyboard = keyboard
        self._write = write
        self._size = size
        self._word = word
        self._hold = hold
        self._coloured = coloured
        self._turn = asyncio.Lock()

    async def permission(self, request: RequestPermission) -> PermissionOption | None:
        """The option chosen; None if nobody chose."""
        lines, options = question(request, *self._size())
        how = f"1-{min(len(options), OPTIONS)}, y or n" if options else "n"
        no = chosen("n", options)
        # What can only be refused need not be read to its end.
        paged = any(not option.kind.startswith("reject_") for option in options)
        attempts = ATTEMPTS if options else 1
        return await self.ask(lines, how, lambda words: chosen(words, options), no=no, paged=paged, attempts=attempts)

    async def ask(
        self,
        lines: list[str],
        how: str,
        understood: "Callable[[str], T | None]",
        *,
        no: "T | None" = None,
        paged: bool = True,
        attempts: int = ATTEMPTS,
    ) -> "T | None":
        """The answer, as soon as it can be understood.

        `no` is the answer of a person who does not read a question to its end that is `paged` because it is taller than
        the screen. After so many `attempts` to understand what was typed there is no answer.
        """
        async with self._turn:
            self._hold(True)
            try:
                if not await self._shown(lines, paged):
                    return no
                return await self._answer(how, understood, attempts)
            except Gone:
                self._write("\n")
                return None
            except asyncio.CancelledError:
                self._write("\n║ The question has gone away.\n")
                raise
            finally:
                self._hold(False)

    async def _shown(self, lines: list[str], paged: bool) -> bool:
        """Show the question, a screen at a time where it is taller. False: the person has said no before its end."""
        frame = framed(f"dragoman asks · {self._word}", lines, self._size()[0], coloured=self._coloured)
        plain = framed(f"dragoman asks · {self._word}", lines, self._size()[0])
        at = 0
        others = 0
        while paged and (page := self._page(plain[at:])) < len(frame) - at:
            self._write("\n".join(frame[at : at + page]) + "\n")
            at += page
            words = await self._typed(_goes_on(at, len(frame)))
            while words.lower() not in _PAGE_KEYS:
                others += 1
                if others > ATTEMPTS:
                    raise Gone
                words = await self._typed("read to the end before you answer. Enter: go on, a: all the rest, n: no")
            if words.lower() in ("n", "no"):
                return False
            if words.lower() == "a":
                break
        self._write("\n".join(frame[at:]) + "\n")
        return True

    def _page(self, frame: list[str]) -> int:
        """Return how many rows of the frame fit on the screen as it is now, at least one."""
        columns, rows = self._size()
        # Below each page is the line that asks to go on, and the one that the cursor moves to.
        room = rows - 1 - screen_rows(f"║ {_goes_on(MOST_ROWS, MOST_ROWS)}: ", columns)
        for number, row in enumerate(frame):
            room -= screen_rows(row, columns)
            if room < 0:
                return max(number, 1)
        return len(frame)

    async def _typed(self, how: str) -> str:
        """The next line that is typed below what stands there."""
        # Behind the question and before this line: who sees it can answer at once, and no sooner.
        self._keyboard.forget()
        self._write(f"║ {how}: ")
        return await self._keyboard.line()

    async def _answer(self, how: str, understood: "Callable[[str], T | None]", attempts: int) -> "T | None":
        for _ in range(attempts):
            answer = understood(await self._typed(how))
            if answer is not None:
                return answer
        return None
