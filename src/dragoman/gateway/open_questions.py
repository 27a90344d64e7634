"""The open requests of an agent to its clients.

A permission or an elicitation goes to every subscriber that may answer it. The first answer counts, and the request is
cancelled at the others. Any other request goes to one subscriber at a time. While no client that may answer is
connected, a request waits for at most `ALONE_SECONDS` and is then rejected (`answer_for_absent_clients`).
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from dragoman.errors import INTERNAL_ERROR, DragomanError, PeerError, RequestFailed
from dragoman.vocabulary.asking import Reply, Request
from dragoman.vocabulary.identity import Identity
from dragoman.vocabulary.services import (
    Elicit,
    PermissionAnswer,
    RequestPermission,
    default_answer,
)

if TYPE_CHECKING:
    from dragoman.gateway.client_side import ClientSide
    from dragoman.gateway.shared_session import SharedSession

# Time to notice that a train has left its tunnel, and to come back.
ALONE_SECONDS: Final = 600.0


class AnsweredPermission(NamedTuple):
    """A permission that an agent has asked for, and the answer it is about to get.

    `identity` is of the client that answered. Where `is_answered` is false no client did, and the answer is a no of the
    gateway's own; `identity` is then of the principal whose turn it is.
    """

    request: RequestPermission
    answer: PermissionAnswer
    identity: Identity
    is_answered: bool


OnPermission = Callable[[AnsweredPermission], None]


class OpenQuestion:
    """One request of the agent to the subscribers of a session, until it is answered, rejected or cancelled."""

    def __init__(self, shared: "SharedSession", request: Request) -> None:
        self._shared = shared
        self._request = request
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[Reply] = self._loop.create_future()
        self._asked: dict[ClientSide, asyncio.Task[Reply]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.answerer: ClientSide | None = None  # the client whose answer counts
        # A person may answer anywhere; a file is read, and a terminal runs, in one place.
        self._for_all: Final = isinstance(request, (RequestPermission, Elicit))

    async def answer(self) -> Reply:
        """The first answer there is."""
        self.look()
        return await self._answer

    def ask(self, subscriber: "ClientSide") -> None:
        """Ask one of them."""
        if self._answer.done() or subscriber in self._asked or not subscriber.may_answer(self._request):
            return
        if not self._for_all and any(not task.done() for task in self._asked.values()):
            return
        task = self._asked[subscriber] = self._loop.create_task(subscriber.answer(self._request))
        task.add_done_callback(lambda task: self._answered(subscriber, task))

    def look(self) -> None:
        """Send the request to subscribers that may answer it and were not asked yet, as `ask` allows.

        Start the `ALONE_SECONDS` timer if no client that may answer is connected; stop it if one is.
        """
        alone = not any(
            subscriber.connected and subscriber.may_answer(self._request) for subscriber in self._shared.subscribers
        )
        if not alone and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        elif alone and self._timer is None and not self._answer.done():
            self._timer = self._loop.call_later(ALONE_SECONDS, self._nobody)
        for subscriber in _in_turn(self._shared):
            self.ask(subscriber)

    def give_up(self) -> None:
        """Cancel the wait for an answer, the timer, and the request at every client that has not answered it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._answer.done():
            self._answer.cancel()
        for task in self._asked.values():
            task.cancel()

    def _answered(self, subscriber: "ClientSide", task: "asyncio.Task[Reply]") -> None:
        if task.cancelled():
            return
        error = task.exception()
        if self._answer.done():
            return
        if error is None:
            self.answerer = subscriber
            self._answer.set_result(task.result())
        elif isinstance(error, PeerError):  # it said no, or what cannot be read
            if not self._for_all:
                self._answer.set_exception(error)
            elif all(other.done() for other in self._asked.values()):
                self._nobody()  # every client that was asked has failed to answer
        elif not isinstance(error, DragomanError):
            self._answer.set_exception(error)
        else:
            self.look()  # its connection is gone; others may come

    def _nobody(self) -> None:
        if self._answer.done():
            return
        try:
            self._answer.set_result(answer_for_absent_clients(self._request))
        except RequestFailed as failed:
            self._answer.set_exception(failed)


def answer_for_absent_clients(request: Request) -> Reply:
    """Return the reply where no client can answer: a rejection or a cancelled form; else raise `RequestFailed`."""
    answer = default_answer(request, rejects=True)
    if answer is None:
        raise RequestFailed(INTERNAL_ERROR, "No connected client can answer this request")
    return answer


def _in_turn(shared: "SharedSession") -> "Iterable[ClientSide]":
    """Return the subscribers in the order in which they are asked.

    Connected ones come first; among equals the client that started the agent, since the agent got its capabilities.
    """
    return sorted(
        shared.subscribers,
        key=lambda subscriber: (not subscriber.connected, subscriber is not shared.agent_side.origin),
    )
