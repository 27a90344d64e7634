"""The open requests of an agent to its clients: who is asked, whose answer counts, and when the gateway answers itself.

A permission or an elicitation goes to every subscriber that may answer it. The first answer counts, and the request is
cancelled at the others. Any other request goes to one subscriber at a time: a file is read, and a terminal runs, in one
place.

Each client that was asked is in one of these states; the question ends with the first that can end it:

| client | what follows |
|---|---|
| has answered | that is the answer |
| is connected and asked | the question waits for it |
| is away (no stream has a reader), asked | it may come back: the question waits for at most `ALONE_SECONDS` |
| has failed: replied with an error, or with what cannot be read | it does not count any more, though it is there |
| is gone: its link is closed | it does not count any more; another client may come, for at most `ALONE_SECONDS` |

Where only clients are left that have failed, the gateway answers at once (`answer_for_absent_clients`).
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from dragoman.errors import INTERNAL_ERROR, DragomanError, PeerError, RequestFailed
from dragoman.gateway.shared_state import QuestionKind, WaitingQuestion
from dragoman.vocabulary.asking import Reply, Request
from dragoman.vocabulary.identity import Identity
from dragoman.vocabulary.services import Elicit, PermissionAnswer, RequestPermission, default_answer

if TYPE_CHECKING:
    from dragoman.gateway.client_side import ClientSide
    from dragoman.gateway.monitor import Monitor
    from dragoman.gateway.shared_session import SharedSession

_log = logging.getLogger(__name__)

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


class PermissionRecorder:
    """Pass every answer to a permission to `on_permission`; None: the agent records them itself."""

    def __init__(self, on_permission: OnPermission | None, monitor: "Monitor") -> None:
        self._on_permission = on_permission
        self._monitor = monitor

    async def record(self, request: Request, reply: Reply, identity: Identity, *, is_answered: bool) -> None:
        """Record an answer, if it is one to a permission. Waits until that is done, so usually for the disk; a failure
        is reported, and the agent gets its answer all the same."""
        if self._on_permission is None:
            return
        if isinstance(request, RequestPermission) and isinstance(reply, PermissionAnswer):
            with self._monitor.reporting():
                answered = AnsweredPermission(request, reply, identity, is_answered)
                await asyncio.to_thread(self._on_permission, answered)


class OpenQuestion:
    """One request of the agent to the subscribers of a session, until it is answered, rejected or cancelled."""

    def __init__(self, shared: "SharedSession", request: Request) -> None:
        self.answerer: ClientSide | None = None  # the client whose answer counts
        self._shared = shared
        self._request = request
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[Reply] = self._loop.create_future()
        self._tasks: dict[ClientSide, asyncio.Task[Reply]] = {}
        self._failed: set[ClientSide] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_for_all: Final = isinstance(request, (RequestPermission, Elicit))
        # As other servers see it; None: it goes to one client, and is answered by a program.
        is_noted_here = self._is_for_all and not shared.agent_side.is_of_other_node  # that node has noted it
        self.for_others: Final = _waiting_question(shared.id, request) if is_noted_here else None

    def __repr__(self) -> str:
        state = "answered" if self._answer.done() else "alone" if self._timer is not None else "open"
        kind = type(self._request).__name__
        return f"<OpenQuestion {kind} {state} asked={len(self._tasks)} failed={len(self._failed)}>"

    async def wait_until_answered(self) -> Reply:
        """Ask the subscribers, wait for the first answer and return it."""
        self.recheck()
        return await self._answer

    def send_to(self, subscriber: "ClientSide") -> None:
        """Ask a subscriber, unless it was asked, may not answer, or another one is being asked for what goes to one."""
        if self._answer.done() or subscriber in self._tasks or not subscriber.may_answer(self._request):
            return
        # The next one is asked when the first has left, by `recheck`.
        if not self._is_for_all and self._is_pending:
            return
        task = self._tasks[subscriber] = self._loop.create_task(subscriber.ask(self._request))
        task.add_done_callback(lambda task: self._on_done(subscriber, task))

    def recheck(self) -> None:
        """Ask the subscribers that may answer and were not asked yet, as `send_to` allows; start or stop the timer of
        `ALONE_SECONDS`. Called whenever a subscriber joins, leaves, fails, or gets or loses its reader."""
        is_alone = not any(self._may_still_answer(subscriber) for subscriber in self._shared.subscribers)
        if not is_alone and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        elif is_alone and self._timer is None and not self._answer.done():
            self._timer = self._loop.call_later(ALONE_SECONDS, self._reject)
        for subscriber in self._in_order():
            self.send_to(subscriber)
        # Clients are there, and none of them can answer it: to wait for another would be no help. Where those that have
        # failed are gone as well, another may come, and the timer runs.
        if not self._is_pending and not self._failed.isdisjoint(self._shared.subscribers):
            self._reject()

    def cancel(self) -> None:
        """Cancel the wait for an answer, the timer, and the request at every client that has not answered it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._answer.done():
            self._answer.cancel()
        # The dialog at the other clients closes: their links send a cancel for each.
        for task in self._tasks.values():
            task.cancel()

    @property
    def _is_pending(self) -> bool:
        return any(not task.done() for task in self._tasks.values())

    def _may_still_answer(self, subscriber: "ClientSide") -> bool:
        return subscriber.is_connected and subscriber not in self._failed and subscriber.may_answer(self._request)

    def _in_order(self) -> "list[ClientSide]":
        """Return the subscribers in the order in which they are asked: connected ones first, and among equals the
        client that started the agent, since the agent was initialized with its capabilities."""
        origin = self._shared.agent_side.origin
        return sorted(self._shared.subscribers, key=lambda one: (not one.is_connected, one is not origin))

    def _on_done(self, subscriber: "ClientSide", task: "asyncio.Task[Reply]") -> None:
        # By `cancel`, and by nothing else: a client that leaves fails its task with `LinkClosed`.
        if task.cancelled():
            return
        error = task.exception()
        # The answer of another client was faster; the user there has answered for all.
        if self._answer.done():
            return
        match error:
            case None:
                self.answerer = subscriber
                self._answer.set_result(task.result())
            case PeerError() if self._is_for_all:
                _log.debug("a client cannot answer a question: %s", type(error).__name__)
                self._failed.add(subscriber)
                self.recheck()
            case DragomanError() if not isinstance(error, PeerError):
                self.recheck()  # its connection is gone; others may come
            case _:
                # What goes to one client fails with it; anything that is no `DragomanError` is a bug of ours.
                self._answer.set_exception(error)

    def _reject(self) -> None:
        # The timer may fire in the same step of the loop in which an answer has come.
        if self._answer.done():
            return
        try:
            self._answer.set_result(answer_for_absent_clients(self._request))
        except RequestFailed as failed:
            self._answer.set_exception(failed)


def _waiting_question(session_id: str, request: Request) -> WaitingQuestion:
    kind: QuestionKind = "permission" if isinstance(request, RequestPermission) else "form"
    return WaitingQuestion(secrets.token_hex(16), session_id, kind, time.time())


def answer_for_absent_clients(request: Request) -> Reply:
    """Return the reply where no client can answer: a rejection or a cancelled form; else raise `RequestFailed`."""
    answer = default_answer(request, rejects=True)
    if answer is None:
        raise RequestFailed(INTERNAL_ERROR, "No connected client can answer this request")
    return answer
