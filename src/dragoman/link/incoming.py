"""What the peer asks of us: `initialize` first, then requests; each answered exactly once, unless the link is gone.

A request is handed up in the step in which it is heard. What its handler does later runs in a task, and cancelling
that task is an answer as well. Until an answer has its place in the outbox, its request counts as in flight.
"""

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING

import msgspec

from dragoman import limits
from dragoman.dialects.contract import Id, ResultMessage
from dragoman.dialects.handshake.initialize import DecodedClientHello, check_hello_id, decode_client, encode_agent
from dragoman.dialects.vendors.named import named
from dragoman.errors import (
    CANCELLED,
    INVALID_REQUEST,
    TOO_MANY_IN_FLIGHT,
    PeerError,
    PeerMistake,
    WireError,
    request_failed,
    wire_error,
)
from dragoman.link.contract import Handler
from dragoman.link.deadline import REQUESTS, Deadline
from dragoman.link.outgoing import OutgoingRequests
from dragoman.link.reader import LinkReader
from dragoman.link.writer import LinkWriter
from dragoman.vocabulary.asking import Note, Reply, Request
from dragoman.vocabulary.hello import AgentHello, ClientHello

if TYPE_CHECKING:
    from dragoman.link.link import Link


class IncomingRequests:
    """The requests that one link has heard."""

    def __init__(
        self,
        link: "Link",
        handler: Handler,
        spoken: tuple[int, ...],
        *,
        voice: LinkWriter,
        ear: LinkReader,
        asking: OutgoingRequests,
    ) -> None:
        self._link = link
        self._handler = handler
        self._spoken = spoken
        self._outbox = link.outbox
        self._voice = voice
        self._say = voice.say
        self._ear = ear
        self._asking = asking
        self._working: dict[Id, asyncio.Task[None]] = {}
        self._noted = 0
        self._loop = asyncio.get_running_loop()

    # -- what the link hears -----------------------------------------------------------------------------------------

    def take(self, id: Id, method: str, params: msgspec.Raw) -> None:
        """A request."""
        link = self._link
        try:
            early = link.hellos is None or (method == "initialize" and link.role == "agent")
            if early and (method == "initialize" or not self._assume_hello()):
                self._take_hello(id, method, params)
                return
            request = link.dialect.decode_request(id, method, params)
        except Exception as error:
            self._refuse(id, error)
            return
        if isinstance(request, Note):
            self._say([ResultMessage(id, b"{}")])
            self._handler.on_notification(request)
            return
        self._handle(id, request)

    def take_noted(self, request: Request) -> None:
        """A question that came as a notification. It has no id, and so no limit but this one."""
        self._noted += 1
        id = f"\0noted {self._noted}"  # no id that a peer may choose
        if len(self._working) < limits.IN_FLIGHT:
            self._handle(id, request)
        else:
            self._say(
                self._link.dialect.encode_failure(id, request, WireError(TOO_MANY_IN_FLIGHT, "Too many requests"))
            )

    def cancel(self, id: Id) -> None:
        """The peer does not need this answer any more; it gets one nevertheless."""
        if id in self._working:
            # Not before the task has begun: a coroutine that never ran cannot say that it was cancelled.
            self._loop.call_soon(self._working[id].cancel)

    async def stop(self, deadline: Deadline) -> None:
        """Cancel the handlers that still run and wait for them until `deadline`; the link sends no replies any more."""
        tasks = list(self._working.values())
        if tasks:
            await asyncio.sleep(0)  # each has begun: a coroutine that never ran would complain
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=deadline.left(REQUESTS))

    # -- a request ---------------------------------------------------------------------------------------------------

    def _handle(self, id: Id, request: Request) -> None:
        told = self._link.dialect.events_at_request(request)
        if told:
            self._link.hand_up(told)
        try:
            reply = self._handler.on_request(request, id)
        except Exception as error:
            self._conclude(id, request, error)
            return
        if isinstance(reply, Reply):
            self._conclude(id, request, reply)
        else:
            self._working[id] = self._loop.create_task(self._work(id, request, reply))

    async def _work(self, id: Id, request: Request, reply: Awaitable[Reply]) -> None:
        """Wait for a handler and send its reply; if it was cancelled, by the peer or by us, the error `CANCELLED`."""
        try:
            end: Reply | Exception = await reply
        except asyncio.CancelledError:
            end = request_failed(CANCELLED, "Request cancelled")
        except Exception as error:
            end = error
        self._working.pop(id, None)
        self._conclude(id, request, end)

    def _conclude(self, id: Id, request: Request, end: Reply | Exception) -> None:
        """Answer a request. It counts as in flight until the answer has its place in the outbox."""
        if self._link.closed:
            return
        dialect = self._link.dialect
        try:
            if isinstance(end, Exception):
                raise end
            self._say(dialect.encode_reply(id, request, end))
        except Exception as error:
            self._say(dialect.encode_failure(id, request, self._explain(error)))
        told = dialect.events_at_reply(request)
        if told:
            self._link.hand_up(told)
        if self._outbox.crowded and self._voice.choked:
            self._ear.stop_reading()

    # -- `initialize` ------------------------------------------------------------------------------------------------

    def _take_hello(self, id: Id, method: str, params: msgspec.Raw) -> None:
        link = self._link
        if link.role == "client" and method == "initialize":
            self._asking.echoed()
        if method != "initialize" or link.role == "client":
            code = named(link.dialect_name).not_initialized if link.dialect_name else INVALID_REQUEST
            raise PeerMistake(code, "Not initialized")
        if link.hellos is not None:
            raise PeerMistake(INVALID_REQUEST, "Already initialized")
        heard = (
            named(link.dialect_name).decode_client(params) if link.dialect_name else decode_client(params, self._spoken)
        )
        check_hello_id(id, heard)
        agent = self._handler.on_initialize(heard.hello)
        if isinstance(agent, AgentHello):
            self._greet(id, heard, agent)
        else:
            self._ear.await_greeting()
            self._working[id] = self._loop.create_task(self._greet_later(id, heard, agent))

    def _greet(self, id: Id, heard: DecodedClientHello, agent: AgentHello) -> None:
        version, client, name = heard
        self._link.dialect_name = name
        said = named(name).encode_agent(agent, client) if name else encode_agent(version, agent, client)
        self._say([ResultMessage(id, said)])
        self._outbox.flush()  # before `meet` imports the tables of the version
        self._link.meet(version, client, agent)

    async def _greet_later(self, id: Id, heard: DecodedClientHello, agent: Awaitable[AgentHello]) -> None:
        """Wait for our own words, then take what was heard meanwhile."""
        try:
            self._greet(id, heard, await agent)
        except asyncio.CancelledError:
            self._refuse(id, request_failed(CANCELLED, "Request cancelled"))
        except Exception as error:
            self._refuse(id, error)
        self._working.pop(id, None)
        self._ear.greeted()

    def _assume_hello(self) -> bool:
        """In a dialect whose clients say no hello, the first request is as good as one."""
        link = self._link
        if link.role == "client" or not link.dialect_name or not named(link.dialect_name).needs_no_hello:
            return False
        agent = self._handler.on_initialize(ClientHello())
        if isinstance(agent, AgentHello):
            link.meet(1, ClientHello(), agent)
        return link.hellos is not None

    # -- small steps -------------------------------------------------------------------------------------------------

    def _refuse(self, id: Id, error: Exception) -> None:
        """Answer at once what never became a request."""
        self._voice.refuse(id, self._explain(error))
        self._ear.mind_refusals()

    def _explain(self, error: Exception) -> WireError:
        if not isinstance(error, PeerError):
            self._handler.on_bug(error)
        return wire_error(error)
