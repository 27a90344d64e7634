"""Where a session's events go, and which turn the running code belongs to: nothing of an ended turn leaves."""

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Protocol

from dragoman.vocabulary.asking import Note, R, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import ClientCapabilities

if TYPE_CHECKING:
    from dragoman.agent.turn import RunningTurn


class TextSink(Protocol):
    """One message being spoken in pieces."""

    def put(self, text: str) -> bool:
        """Say a piece. True: much is waiting, `breathe` before the next one."""

    async def breathe(self) -> None:
        """Let the wire catch up and the loop turn."""


class EventSink(Protocol):
    """How a session reaches its client."""

    @property
    def client(self) -> ClientCapabilities:
        """What the client can do for us."""

    async def tell(self, session_id: str, event: AnyEvent) -> None: ...

    def text_stream(self, session_id: str, kind: str, message_id: str) -> TextSink: ...

    async def ask(self, request: Request[R]) -> R: ...

    async def note(self, note: Note) -> None: ...


# Tasks that a turn starts inherit this.
CURRENT_TURN: ContextVar["RunningTurn | None"] = ContextVar("dragoman_turn", default=None)
# Bound once: it is called for every piece of text.
current_turn: Final = CURRENT_TURN.get


def check_turn() -> None:
    """Stop the code that calls this, if its turn has ended."""
    turn = current_turn()
    if turn is not None and turn.ended:
        raise too_late()


def too_late() -> BaseException:
    """What code is told that speaks after the end of its turn."""
    # Imported here: an author who names `Session` in an annotation must not wait for asyncio before `initialize`.
    from asyncio import CancelledError

    return CancelledError("the turn has ended")
