"""Lines that were typed while a turn runs: added to that turn where the agent takes them, else sent after it.

A line that waits is sent only behind a turn that has ended well. After a stop, a failure or the end of the connection
it comes back into the line of the user, who decides anew.
"""

import asyncio
import bisect
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from dragoman.cli.terminal.sanitize import sanitize_line
from dragoman.cli.terminal.type_ahead import TypedLine

# Lines that wait at once; what is typed beyond that stays in the line.
WAITING: Final = 20
# Of those, how many are drawn below the turn.
_DRAWN: Final = 3
# What begins a line that is for the chat itself, or for the user's shell: it waits for the end of the turn.
_OWN: Final = ("/", "!")
# What answers a question of ours, and is hardly ever a prompt.
_ANSWER: Final = re.compile(r"(?i:y|yes|n|no|v|a|\d{1,2})")


class WaitingLines:
    """The lines that wait, oldest first. `steer` adds a line to the running turn and returns whether it is there;
    `say` shows a sentence."""

    def __init__(self, steer: Callable[[str], Awaitable[bool]], say: Callable[[str], None]) -> None:
        self._steer = steer
        self._say = say
        # Each with its place among all that were typed: one that the agent did not take comes late.
        self._waiting: list[tuple[int, str]] = []
        self._typed = 0
        self._steering: dict[asyncio.Task[None], str] = {}

    def __repr__(self) -> str:
        return f"<WaitingLines waiting={len(self._waiting)} steering={len(self._steering)}>"

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, line: TypedLine) -> None:
        """Add a line that was typed now."""
        self._typed += 1
        if len(self._waiting) + len(self._steering) >= WAITING:
            self._say(f"(not taken: {WAITING} lines wait already: {sanitize_line(line.text)[:60]})")
        elif line.is_for_later or line.text.lstrip().startswith(_OWN) or _ANSWER.fullmatch(line.text.strip()):
            self._waiting.append((self._typed, line.text))
        else:
            task = asyncio.get_running_loop().create_task(self._steer_or_wait(self._typed, line.text))
            self._steering[task] = line.text
            task.add_done_callback(self._steering.pop)

    async def _steer_or_wait(self, place: int, text: str) -> None:
        if await self._steer(text):
            self._say(f"↳ {sanitize_line(text)}")
        else:
            bisect.insort(self._waiting, (place, text))

    async def wait_until_placed(self) -> None:
        """Wait until each line is either part of the turn or waits for its end. The turn has ended: that is soon."""
        while self._steering:
            await asyncio.wait(list(self._steering))

    def drop_answers(self) -> None:
        """Drop the lines that could be meant for the question that is shown now: what was typed before a question is no
        answer to it, and no prompt either."""
        answers = [line for line in self._waiting if _ANSWER.fullmatch(line[1].strip())]
        for line in answers:
            self._waiting.remove(line)
            text = line[1]
            self._say(f"(dropped, because it was typed before the question: {sanitize_line(text)})")

    def next(self) -> str | None:
        """Return the line to send now, which waits no longer; None if none waits."""
        return self._waiting.pop(0)[1] if self._waiting else None

    def take_newest(self) -> str:
        """Return the line that was added last, which waits no longer; empty if none waits."""
        return self._waiting.pop()[1] if self._waiting else ""

    def take_all(self) -> str:
        """Return all lines that wait as one text, and forget them."""
        text = "\n".join(text for _, text in self._waiting)
        self._waiting.clear()
        return text

    def drawn(self) -> Iterator[str]:
        """Yield what to draw below the turn: the lines that the agent has not taken yet, and those that wait."""
        lines = [f"adding: {text}" for text in self._steering.values()]
        lines += [f"next: {text}" for _, text in self._waiting]
        yield from map(sanitize_line, lines[:_DRAWN])
        if len(lines) > _DRAWN:
            yield f"and {len(lines) - _DRAWN} more"
