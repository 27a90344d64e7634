"""Where a session's events go, and which turn the running code belongs to: nothing of an ended turn leaves.

A sink is the client's (`connection.ClientSink`) or a journal in front of it (`journal.Journal`).
"""

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Protocol

from dragoman.vocabulary.asking import Note, R, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import ClientCapabilities

if TYPE_CHECKING:
    from dragoman.agent.turn import RunningTurn


class TextSink(Protocol):
    """One message being sent in pieces."""

    def put(self, text: str) -> bool:
        """Send a piece. True: the queue is full, `wait_for_room` before the next one."""

    async def wait_for_room(self) -> None:
        """Wait until the queue has room; the event loop runs other tasks meanwhile."""


class EventSink(Protocol):
    """How a session reaches its client. Everything sent through one sink arrives in the order of the calls."""

    @property
    def client(self) -> ClientCapabilities:
        """What the client can do for the agent."""

    async def send_event(self, session_id: str, event: AnyEvent) -> None:
        """Send an event; wait while the queue is full. `LinkClosed` when the client is gone."""

    def text_stream(self, session_id: str, kind: str, message_id: str) -> TextSink:
        """Return a sink for the text of one message. `kind` is the event's name: `agent_message_chunk` and so on."""

    async def ask(self, request: Request[R]) -> R:
        """Send a request and wait for its reply. `PeerError` if the client refuses or its reply cannot be read."""

    async def send_notification(self, note: Note) -> None:
        """Send a notification; wait while the queue is full."""


# Set in the task of a prompt handler. Tasks that the handler starts inherit it, which is how code that outlives its
# turn is recognised. None: code of no turn, such as a handler of `session_opened`.
CURRENT_TURN: ContextVar["RunningTurn | None"] = ContextVar("dragoman_turn", default=None)
# Bound once: it is called for every piece of text.
current_turn: Final = CURRENT_TURN.get


def check_turn() -> None:
    """Raise `CancelledError` if the running code belongs to a turn that has ended."""
    turn = current_turn()
    if turn is not None and turn.ended:
        raise too_late()


def too_late() -> BaseException:
    """Return the exception for code that emits after the end of its turn."""
    # Imported here: an author who names `Session` in an annotation must not wait for asyncio before `initialize`.
    from asyncio import CancelledError

    return CancelledError("the turn has ended")
