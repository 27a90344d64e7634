"""Own what the agent's side of version 1 remembers of a session: what it has sent of it so far.

This wire sends the content of a tool call whole each time and has no terminals, so both are folded here, with the
vocabulary's rules, while a turn runs. All of it is bounded when a turn or a replay ends.
"""

from collections import deque
from typing import Final

from dragoman.dialects.codec.terminal_display import TerminalDisplay
from dragoman.dialects.v1 import notices
from dragoman.vocabulary.events import Notice, ToolCallUpdate
from dragoman.vocabulary.tool_call_state import ToolCallState

# Announced calls and sent messages remembered per session: an update of an older call announces it again.
REMEMBERED: Final = 4096
# Calls and terminals that may go on beside the conversation; of these the content is kept when a turn ends.
GOING_ON: Final = 64
# What is kept of a call beside its content: the rest of an update is sent on as it comes, and never again.
_FIELDS: Final = ("status",)


class V1SessionMemory:
    """What was sent of one session, as far as this wire needs it again."""

    __slots__ = ("calls", "mode", "model", "notices", "plan", "running", "shown_notices", "spoken", "terminals")

    def __init__(self) -> None:
        self.calls: dict[str, ToolCallState] = {}  # the ones that were announced
        self.terminals: dict[str, TerminalDisplay] = {}
        self.spoken: dict[str, None] = {}  # ids of messages, in order
        self.mode: tuple[str, str] = ("mode", "")  # the option that is the mode, and its value
        self.model: tuple[str, str] = ("", "")  # the same for the model
        self.plan = ""  # the plan the client shows
        self.running = False  # a turn runs, of this client or of another one
        self.notices: deque[Notice] = deque(maxlen=notices.WAITING)  # they wait for the next turn
        self.shown_notices = 0

    def __repr__(self) -> str:
        counts = f"calls={len(self.calls)} terminals={len(self.terminals)} messages={len(self.spoken)}"
        return f"<V1SessionMemory running={self.running} {counts}>"

    @property
    def last_message(self) -> str:
        """The id of the message that was begun last; empty before the first."""
        return next(reversed(self.spoken), "")

    def call(self, call_id: str) -> ToolCallState:
        """Return the state of a tool call, made when it is first named."""
        found = self.calls.get(call_id)
        if found is None:
            found = self.calls[call_id] = ToolCallState(call_id, _FIELDS)
        return found

    def terminal(self, terminal_id: str) -> TerminalDisplay:
        """Return a display terminal, made when it is first named."""
        found = self.terminals.get(terminal_id)
        if found is None:
            found = self.terminals[terminal_id] = TerminalDisplay(terminal_id)
        return found

    def shrink(self) -> None:
        """Keep what later updates may refer to after a turn or a replay, and drop most of its weight.

        Ids stay, because a call that is announced twice is shown twice. Content stays only for calls that may go on in
        the background: a later chunk of another one is sent as if it were the first.
        """
        self.calls = dict(list(self.calls.items())[-REMEMBERED:])
        self.spoken = dict.fromkeys(list(self.spoken)[-REMEMBERED:])
        going_on = [call_id for call_id, call in self.calls.items() if not call.is_final]
        for call_id in self.calls.keys() - set(going_on[-GOING_ON:]):
            if self.calls[call_id].content:
                self.calls[call_id].apply(ToolCallUpdate(call_id, content=None))
        unfinished = [(name, terminal) for name, terminal in self.terminals.items() if not terminal.state.has_ended]
        self.terminals = dict(unfinished[-GOING_ON:])
