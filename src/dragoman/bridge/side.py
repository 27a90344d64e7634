"""What both sides of a bridge do alike: a side hears its own link, and what it hears takes the way to the other."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from dragoman import limits
from dragoman.bridge.failures import GONE
from dragoman.bridge.forwarded_request import ForwardedRequest
from dragoman.bridge.forwarding_queue import ForwardingQueue
from dragoman.bridge.read_gate import ReadGate
from dragoman.dialects.contract import Id
from dragoman.errors import INTERNAL_ERROR, LinkClosed, RequestFailed, UsageError
from dragoman.link import Link, Role, Trace
from dragoman.transports.contract import Transport
from dragoman.vocabulary.asking import Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientHello

Noise = Callable[[str], None]


class BridgeSide:
    """One side; `other` is the side across. `BridgeClientSide` and `BridgeAgentSide` have what only one does."""

    other: "BridgeSide"

    def __init__(self, transport: Transport, role: Role, trace: Trace | None, on_noise: Noise | None) -> None:
        gate = ReadGate(transport)
        self.way: Final = ForwardingQueue(gate.passed_on, self.on_noise, self.on_bug)
        self.link: Final = Link(gate, self, role, trace=trace)
        gate.way, gate.link = self.way, self.link
        self.lost: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        self._answers: set[asyncio.Task[Any]] = set()
        self._on_noise = on_noise

    def answers(self, task: "asyncio.Task[Any] | None") -> None:
        """This task of our link is going to answer something."""
        if task is not None:
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)

    async def answered(self) -> None:
        """Wait until every request heard here has its answer. Bounded."""
        if self._answers:
            await asyncio.wait(list(self._answers), timeout=limits.EOF_ANSWER_SECONDS)

    def give_up(self) -> None:
        """Stop working on every request heard here; on the other side they are cancelled."""
        for task in list(self._answers):
            task.cancel()

    # -- a crossing that began here calls these ----------------------------------------------------------------------

    async def carry(self, crossing: ForwardedRequest) -> Reply:
        """Ask it on the other side."""
        return await self.other.link.ask(crossing.request, crossing)

    def abandoned(self, request: Request) -> Reply | RequestFailed:
        """What we answer when the other side will not."""
        return RequestFailed(INTERNAL_ERROR, GONE)

    def on_sent(self, crossing: ForwardedRequest) -> None:
        """It has its number on the other side."""

    def on_answer(self, crossing: ForwardedRequest) -> None:
        """Its answer stands here among what the other side says."""

    def on_outcome(self, crossing: ForwardedRequest, outcome: Reply | RequestFailed) -> None:
        """It is known how it ended."""

    def on_end(self, crossing: ForwardedRequest) -> None:
        """It is over, answered or cancelled."""

    # -- the link calls these ----------------------------------------------------------------------------------------

    def on_initialize(self, hello: ClientHello) -> AgentHello | Awaitable[AgentHello]:
        raise UsageError("a client is not greeted")

    def on_request(self, request: Request, id: Id) -> Reply | Awaitable[Reply]:
        if self.other.lost.done():
            reply = self.abandoned(request)
            if isinstance(reply, RequestFailed):
                raise reply
            return reply
        crossing = ForwardedRequest(self, self.other, request, id)
        self.way.put(crossing.go)
        return crossing

    def on_notification(self, note: Note) -> None:
        self.way.put(partial(self.other.link.send_notification, note))

    def on_event(self, session_id: str, event: AnyEvent) -> None:
        self.way.put(partial(self.other.link.send_event, session_id, event))

    def on_noise(self, reason: str) -> None:
        if self._on_noise is not None:
            self._on_noise(reason)

    def on_bug(self, error: Exception) -> None:
        """A mistake of ours."""
        asyncio.get_running_loop().call_exception_handler({"message": "a dragoman bridge failed", "exception": error})

    def on_closed(self, error: LinkClosed) -> None:
        if not self.lost.done():
            self.lost.set_result(None)
            self.way.end()
