"""The terminal of a conversation, shared by three who write there: the agent's turn, our questions, the user.

- While a question stands there nothing is written under it; what came before it is shown first.
- While the user writes, lines that come stand above theirs; in a turn they are shown at once.
- While the agent works, what is typed stands in a line of its own below the turn, and something moves.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.cli.agent_connection import chosen_option
from dragoman.cli.terminal.composer import Composer
from dragoman.cli.terminal.event_text import EventText, cost_in, cost_text, notice_text, title
from dragoman.cli.terminal.notifier import Notifier
from dragoman.cli.terminal.renderer import Renderer
from dragoman.cli.terminal.sanitize import sanitize_line
from dragoman.cli.terminal.theme import Theme
from dragoman.cli.terminal.type_ahead import TypeAhead
from dragoman.cli.terminal.waiting_lines import WaitingLines
from dragoman.client.conversation import Conversation, Turn
from dragoman.host.git_head import find_branch
from dragoman.store.recording import SessionRecorder
from dragoman.vocabulary.events import AnyEvent, Cost, Idle, Notice, UsageChanged

# Lines kept while the user is typing; older ones are evicted.
_WAITING_LINES: Final = 200
_STEP_SECONDS: Final = 0.12
_BRANCH_SECONDS: Final = 2.0


class ChatScreen:
    """Decides what is written to the terminal now and what has to wait.

    `composer` reads the user's line, `notifier` calls the user back and `recorder` records what is shown, once set.
    """

    def __init__(self, steer: Callable[[str], Awaitable[bool]], *, theme: Theme, plain: bool) -> None:
        """`steer` adds a line to the running turn, if the agent takes one; `plain`: nothing is drawn over."""
        self.renderer: Final = Renderer(theme, plain=plain)
        self.queue: Final = WaitingLines(steer, self.renderer.say)
        self.type_ahead: Final = TypeAhead(
            self.queue.add, self._draw, self.queue.take_newest, is_drawn=self.renderer.moves
        )
        self.event_text = EventText()
        self.composer: Composer | None = None
        self.notifier: Notifier | None = None
        self.recorder: SessionRecorder | None = None
        self.unreachable_reason = ""  # why the agent cannot be reached now
        self._turn: Turn | None = None
        self._usage: UsageChanged | None = None
        self._cost: Cost | None = None
        self._branch = ""
        self._branch_read_at = -_BRANCH_SECONDS
        self._waiting: deque[str] = deque(maxlen=_WAITING_LINES)
        self._free = asyncio.Event()  # no question stands there
        self._free.set()

    def leave(self) -> None:
        """Give the terminal back as it was."""
        try:
            self.renderer.still()
        finally:
            self.type_ahead.stop()

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
        self.type_ahead.start()
        try:
            yield
        finally:
            self._turn = None
            moving.cancel()
            self.end_turn()
            self.type_ahead.stop()
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
            self._draw()
            await asyncio.sleep(_STEP_SECONDS)

    def _draw(self) -> None:
        self.renderer.tick(self.event_text.running, list(self.queue.drawn()), self.type_ahead.text)

    def _show(self, events: Sequence[AnyEvent]) -> None:
        for event in events:
            if self.recorder is not None:
                self.recorder.record(event)
            if isinstance(event, UsageChanged):
                self.set_usage(event)
            elif isinstance(event, Idle):
                self._cost = cost_in(event.usage) or self._cost
            self.renderer.show(self.event_text.render(event))

    def take_typed(self, begun: str) -> str:
        """Return the text that the line of the user begins with: `begun`, lines that were not sent, and what has no
        Enter yet."""
        return "\n".join(part for part in (begun, self.queue.take_all(), self.type_ahead.take()) if part)

    # -- a question --------------------------------------------------------------------------------------------------

    def hold(self, asking: bool) -> None:
        """Hold back output while a question is shown, or write it out."""
        if asking:
            if self._turn is not None:
                self._show(self._turn.ready())
            self._free.clear()
            self.type_ahead.stop()
            self.queue.drop_answers()
            if self.notifier is not None:
                self.notifier.question_shown()
        else:
            if self.notifier is not None:
                self.notifier.user_acted()
            self._free.set()
            if self._turn is not None:
                self.type_ahead.start()
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
        elif isinstance(event, Notice):
            mark = "" if event.severity == "info" else "! "
            self.say_or_keep(f"{mark}{notice_text(event)}")

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
        if self._branch_of(conversation.cwd):
            parts.append(sanitize_line(self._branch)[:40])
        if conversation.title:
            parts.append(title(conversation.title))
        return " · ".join(parts)

    def _branch_of(self, folder: str) -> str:
        """Return the branch of the folder; looked for at most once in `_BRANCH_SECONDS`, as each key asks for it."""
        now = time.monotonic()
        if now - self._branch_read_at >= _BRANCH_SECONDS:
            self._branch, self._branch_read_at = find_branch(folder), now
        return self._branch
