"""Which turn the running code belongs to. What belongs to a turn that has ended is over too: nothing of it leaves."""

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dragoman.agent.turn import RunningTurn

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
