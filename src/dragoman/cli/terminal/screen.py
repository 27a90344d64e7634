"""The terminal of a conversation, shared by three who write there: the agent's turn, our questions, the user.

- While a question stands there nothing is written under it; what came before it is shown first.
- While the user writes, lines that come stand above theirs; in a turn they are shown at once.
- While the agent works, what is typed is not echoed, and something moves.
"""

import asyncio
import atexit
import sys
import termios
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.cli.agent_connection import chosen_option
from dragoman.cli.terminal.composer import Composer
from dragoman.cli.terminal.event_text import EventText, cost_in, cost_text, notice_text, title
from dragoman.cli.terminal.notifier import Notifier
from dragoman.cli.terminal.renderer import Renderer
from dragoman.cli.terminal.sanitize import sanitize_line
from dragoman.client.conversation import Conversation, Turn
from dragoman.store.recording import SessionRecorder
from dragoman.vocabulary.events import AnyEvent, Cost, Idle, Notice, UsageChanged

# Lines kept while the user is typing; older ones are evicted.
_WAITING_LINES: Final = 200
_STEP_SECONDS: Final = 0.12


class ChatScreen:
    """Decides what is written to the terminal now and what has to wait.

    `composer` reads the user's line, `notifier` calls the user back and `recorder` records what is shown, once set.
    """

    def __init__(self) -> None:
        self.renderer: Final = Renderer()
        self.event_text = EventText()
        self.composer: Composer | None = None
        self.notifier: Notifier | None = None
        self.recorder: SessionRecorder | None = None
        self.unreachable_reason = ""  # why the agent cannot be reached now
        self._echo = _Echo()
        self._turn: Turn | None = None
        self._usage: UsageChanged | None = None
        self._cost: Cost | None = None
        self._waiting: deque[str] = deque(maxlen=_WAITING_LINES)
        self._free = asyncio.Event()  # no question stands there
        self._free.set()

    def leave(self) -> None:
        """Give the terminal back as it was."""
        try:
            self.renderer.still()
        finally:
            self._echo.on()

    @property
    def usage(self) -> UsageChanged | None:
        """What the agent has said last of window and cost, with the cost that counts."""
        return None if self._usage is None else replace(self._usage, cost=self._cost)

    def set_usage(self, usage: UsageChanged | None) -> None:
        """Note how full the window is and what the session has cost; None: another session begins."""
        self._usage = usage
        if usage is None or usage.cost is None:
            self._cost = None
        elif usage.cost is not UNSET:  # else it is what it was
            self._cost = usage.cost

    # -- a turn ------------------------------------------------------------------------------------------------------

    @contextmanager
    def playing(self, turn: Turn) -> Iterator[None]:
        """Give the terminal to the turn while the block runs."""
        self._turn = turn
        if self.notifier is not None:
            self.notifier.user_acted()
        moving = asyncio.ensure_future(self._move())
        self._echo.off()
        try:
            yield
        finally:
            self._turn = None
            moving.cancel()
            self.end_turn()
            self._echo.on()
            if self.notifier is not None:
                self.notifier.turn_ended()

    async def follow(self, turn: Turn) -> None:
        """Show a turn as it comes, until its end."""
        async for event in turn:
            await self._free.wait()
            self._show([event, *turn.ready()])

    def end_turn(self) -> None:
        """End the turn."""
        self.renderer.show(self.event_text.finish())
        self.renderer.finish()

    async def _move(self) -> None:
        while True:
            self.renderer.tick(self.event_text.running)
            await asyncio.sleep(_STEP_SECONDS)

    def _show(self, events: Sequence[AnyEvent]) -> None:
        for event in events:
            if self.recorder is not None:
                self.recorder.record(event)
            if isinstance(event, UsageChanged):
                self.set_usage(event)
            elif isinstance(event, Idle):
                self._cost = cost_in(event.usage) or self._cost
            self.renderer.show(self.event_text.render(event))

    # -- a question --------------------------------------------------------------------------------------------------

    def hold(self, asking: bool) -> None:
        """Hold back output while a question is shown, or write it out."""
        if asking:
            if self._turn is not None:
                self._show(self._turn.ready())
            self._free.clear()
            self._echo.on()
            if self.notifier is not None:
                self.notifier.question_shown()
        else:
            if self.notifier is not None:
                self.notifier.user_acted()
            self._free.set()
            if self._turn is not None:
                self._echo.off()
        self.renderer.hold(asking)

    async def free(self) -> None:
        """Wait until no question is shown."""
        await self._free.wait()

    # -- what comes at any time --------------------------------------------------------------------------------------

    @property
    def _is_the_turns(self) -> bool:
        return self._turn is not None and self._free.is_set()

    def hear_outside(self, event: AnyEvent) -> None:
        """Something the agent says while no turn of ours runs."""
        if self.recorder is not None:
            self.recorder.record(event)
        if isinstance(event, UsageChanged):
            self.set_usage(event)
        elif isinstance(event, Notice) and event.severity != "info":
            self.say_or_keep(f"! {notice_text(event)}")

    def say_or_keep(self, line: str) -> None:
        """Show a line: at once in a turn, else above the line that the user writes."""
        self._waiting.append(line)
        if self._turn is not None:
            if self._free.is_set():
                self.say_what_waited()
        elif self.composer is not None:
            self.composer.above(self.say_what_waited)

    def say_what_waited(self) -> None:
        """Show the lines that were kept."""
        while self._waiting:
            self.renderer.say(self._waiting.popleft(), "yellow")

    def terminal_output(self, terminal_id: str, text: str, ended: bool) -> None:
        """Show what a command has printed that we run for the agent."""
        if self._is_the_turns:
            self.renderer.show(self.event_text.client_terminal(terminal_id, text, ended=ended))

    def noise(self, reason: str) -> None:
        """Show that the agent wrote something to stdout that is no message."""
        if self._is_the_turns:
            self.renderer.say(f"(skipped what the agent wrote: {sanitize_line(reason)[:200]})")

    def in_trouble(self, sentence: str) -> None:
        """The address cannot be reached, or, the next time, can be. Where the user is writing, the line below says
        so."""
        self.unreachable_reason = "" if self.unreachable_reason else sanitize_line(sentence)
        if self._is_the_turns:
            self.renderer.say(f"({sanitize_line(sentence)})", "yellow")
        elif self.composer is None:
            self.renderer.say(sanitize_line(sentence), "yellow")
        else:
            self.composer.refresh()

    def status(self, agent: str, conversation: Conversation) -> str:
        """Return the line below the one the user writes."""
        if self.unreachable_reason:
            return self.unreachable_reason
        parts = [title(agent)[:40]]
        for category in ("mode", "model"):
            option = chosen_option(conversation, category)
            if option is not None:
                parts.append(sanitize_line(option.current_value)[:40])
        if self._usage is not None and self._usage.size > 0:
            parts.append(f"{min(self._usage.used / self._usage.size, 1):.0%} full")
        if self._cost is not None:
            parts.append(cost_text(self._cost))
        if conversation.title:
            parts.append(title(conversation.title))
        return " · ".join(parts)


class _Echo:
    """The terminal's echo, off while an agent works: typed characters must not stand in the middle of its output.

    Restored when the process ends, however it ends; a shell does it for a process that was killed.
    """

    def __init__(self) -> None:
        self._before: list[Any] | None = None
        atexit.register(self.on)

    def off(self) -> None:
        """Turn the echo of typed characters off; Ctrl-C still works."""
        with suppress(termios.error, ValueError, OSError):
            modes = termios.tcgetattr(sys.stdin)
            if self._before is None:
                self._before = termios.tcgetattr(sys.stdin)
            modes[3] &= ~termios.ECHO
            termios.tcsetattr(sys.stdin, termios.TCSANOW, modes)

    def on(self) -> None:
        """Restore the echo as it was before `off`."""
        if self._before is not None:
            with suppress(termios.error, ValueError, OSError):
                termios.tcsetattr(sys.stdin, termios.TCSANOW, self._before)
            self._before = None
