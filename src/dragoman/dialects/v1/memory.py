"""What the agent's side of version 1 remembers: what it has told of a session, and the prompt it holds. Bounded."""

from collections import deque
from typing import Final

from dragoman.dialects.codec.terminal_display import TerminalDisplay
from dragoman.dialects.contract import Id
from dragoman.dialects.v1 import notices
from dragoman.vocabulary.events import Idle, Notice
from dragoman.vocabulary.tools import ToolContent

# Announced calls and told messages remembered per session: an update of an older call announces it again.
REMEMBERED: Final = 4096
# Calls and terminals that may go on beside the conversation; of these the content is kept when a turn ends.
GOING_ON: Final = 64


class ToolCallShown:
    """A tool call as the client has it."""

    __slots__ = ("content", "ended")

    def __init__(self) -> None:
        self.content: list[ToolContent] = []
        self.ended = False


class V1SessionMemory:
    """What was told of one session, as far as this wire needs it."""

    __slots__ = ("calls", "mode", "model", "notices", "plan", "running", "screens", "shown_notices", "spoken")

    def __init__(self) -> None:
        self.calls: dict[str, ToolCallShown] = {}
        self.screens: dict[str, TerminalDisplay] = {}
        self.spoken: dict[str, None] = {}  # ids of messages, in order
        self.mode: tuple[str, str] = ("mode", "")  # the option that is the mode, and its value
        self.model: tuple[str, str] = ("", "")  # the same for the model
        self.plan = ""  # the plan the client shows
        self.running = False  # a turn runs, of this client or of another one
        self.notices: deque[Notice] = deque(maxlen=notices.WAITING)  # they wait for the next turn
        self.shown_notices = 0

    @property
    def last_message(self) -> str:
        """The id of the message that was begun last; empty before the first."""
        return next(reversed(self.spoken), "")

    def call(self, call_id: str) -> ToolCallShown:
        """A tool call, made when it is first told."""
        found = self.calls.get(call_id)
        if found is None:
            found = self.calls[call_id] = ToolCallShown()
        return found

    def screen(self, terminal_id: str) -> TerminalDisplay:
        """A display terminal, made when it is first told."""
        found = self.screens.get(terminal_id)
        if found is None:
            found = self.screens[terminal_id] = TerminalDisplay()
        return found

    def rest(self) -> None:
        """A turn or a replay has ended: keep what later updates may refer to, and little of its weight."""
        self.calls = dict(list(self.calls.items())[-REMEMBERED:])
        self.spoken = dict.fromkeys(list(self.spoken)[-REMEMBERED:])
        going_on = [call for call in self.calls.values() if not call.ended]
        kept = {id(call) for call in going_on[-GOING_ON:]}
        for call in self.calls.values():
            if id(call) not in kept:
                call.content.clear()
        unfinished = [(name, screen) for name, screen in self.screens.items() if not screen.done]
        self.screens = dict(unfinished[-GOING_ON:])


class PendingPrompt:
    """A prompt that waits for its turn to end."""

    __slots__ = ("_echoes", "_ends", "id", "message_id", "running")

    def __init__(self, id: Id) -> None:
        self.id = id
        self.message_id: str | None = None  # None: not accepted yet
        self.running = False  # the turn has begun
        # Agents exist that accept a prompt only when its turn is over: the user messages told before that, and the
        # end that came after each of them.
        self._echoes: set[str] = set()
        self._ends: dict[str, Idle] = {}

    def is_echo(self, message_id: str) -> bool:
        """Whether a user message is this very prompt."""
        if self.message_id is None:
            self._echoes.add(message_id)
            return True
        return self.message_id in ("", message_id)

    def accept(self, message_id: str) -> Idle | None:
        """The prompt stands in the conversation; its end, if that was told before."""
        self.message_id = message_id
        if message_id:
            return self._ends.get(message_id)
        return next(iter(self._ends.values()), None)

    def ends_with(self, idle: Idle) -> bool:
        """Whether this is the end of the prompt's turn: it gives a reason, or work had begun."""
        if self.message_id is None:
            if isinstance(idle.stop_reason, str):
                self._ends = dict.fromkeys(self._echoes, idle)
            return False
        return isinstance(idle.stop_reason, str) or self.running
