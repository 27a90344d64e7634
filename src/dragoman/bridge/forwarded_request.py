"""One request that crosses a bridge: asked on the other side when its turn comes, answered where its answer was heard.

However the asking ends there, it ends here exactly once: with the answer, or with an error that says what happened.
"""

import asyncio
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final

from dragoman.bridge.failures import TOO_LARGE, UNREADABLE
from dragoman.dialects.contract import Id
from dragoman.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    TOO_MANY_IN_FLIGHT,
    LinkClosed,
    PeerError,
    RequestFailed,
    UsageError,
    WireError,
    wire_error,
)
from dragoman.vocabulary.asking import Reply, Request
from dragoman.vocabulary.requests import CloseSession, ListSessions

if TYPE_CHECKING:
    from dragoman.bridge.side import BridgeSide

_SENSELESS: Final = WireError(INTERNAL_ERROR, UNREADABLE)


class ForwardedRequest:
    """A request heard `here`, to be asked `there`.

    It is what the link that heard it waits for, and what watches the asking on the other link.
    """

    def __init__(self, here: "BridgeSide", there: "BridgeSide", request: Request, id: Id) -> None:
        loop = asyncio.get_running_loop()
        self.request: Final = request
        self.id: Final = id
        self.number = 0
        self.is_answered = False
        self._here = here
        self._there = there
        self._may_ask: asyncio.Future[None] = loop.create_future()
        self._has_left: asyncio.Future[None] = loop.create_future()
        self._may_answer: asyncio.Future[None] = loop.create_future()
        self._task: asyncio.Task[Any] | None = None

    def __await__(self) -> Generator[Any, None, Reply]:
        return self._cross().__await__()

    async def go(self) -> None:
        """A step of the way there: nothing passes the request before it has left."""
        _settle(self._may_ask)
        await self._has_left

    async def come(self) -> None:
        """A step of the way back: nothing passes the answer before it was said."""
        _settle(self._may_answer)
        if self._task is not None:
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                self._task.exception()  # seen: the link to which it was said may be gone

    # -- the link that asks it calls these ---------------------------------------------------------------------------

    def on_sent(self, number: int) -> None:
        self._here.on_end(self)  # if it was asked under another name before, that is over
        self.number = number
        self._here.on_sent(self)
        _settle(self._has_left)

    def on_reply(self) -> None:
        self.is_answered = True
        self._here.on_answer(self)
        self._there.way.put(self.come)

    # -- small steps -------------------------------------------------------------------------------------------------

    async def _cross(self) -> Reply:
        self._task = asyncio.current_task()
        self._here.answers(self._task)
        try:
            await self._may_ask
            reply = await self._outcome()
            if self.is_answered:
                await self._may_answer
        finally:
            _settle(self._has_left)
            self._here.on_end(self)
        if isinstance(reply, RequestFailed):
            raise reply
        return reply

    async def _outcome(self) -> Reply | RequestFailed:
        """The answer, whatever happens; errors of the other side with their code, message and data."""
        outcome: Reply | RequestFailed
        try:
            if self._there.link.busy and not isinstance(self.request, (CloseSession, ListSessions)):
                raise RequestFailed(TOO_MANY_IN_FLIGHT, "Too many requests in flight", {"retry": True})
            outcome = await self._here.carry(self)
        except RequestFailed as failed:
            outcome = failed
        except LinkClosed:
            outcome = self._here.abandoned(self.request)
        except UsageError:
            # In the other version it has grown past what a peer takes.
            outcome = RequestFailed(INVALID_REQUEST, TOO_LARGE)
        except PeerError as mistake:
            # Before the answer it is a request that the other version cannot ask, after it an answer without sense.
            outcome = RequestFailed(*(_SENSELESS if self.is_answered else wire_error(mistake)))
        except Exception as error:
            self._here.on_bug(error)
            outcome = RequestFailed(*wire_error(error))
        finally:
            _settle(self._has_left)
        self._here.on_outcome(self, outcome)
        return outcome


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
