"""What we ask of the peer: sent in order, bounded in number, answered or failed exactly once.

A reply reaches its caller in order with everything else that the peer sends; cancelling the wait sends
`$/cancel_request`. Where the wire replies late and the vocabulary early (a prompt in version 1), the caller goes on and
the call still counts as in flight.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, cast

import msgspec

from dragoman import limits
from dragoman.dialects.contract import DecodedReply, RequestMessage
from dragoman.dialects.handshake.initialize import decode_agent, encode_client
from dragoman.dialects.vendors.named import named
from dragoman.errors import (
    CANCELLED,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    UNSUPPORTED_VERSION,
    LinkClosed,
    PeerError,
    PeerMistake,
    UsageError,
    VersionMismatch,
    WireError,
    request_failed,
    wire_error,
)
from dragoman.link.contract import Watch
from dragoman.link.pending_calls import AGAIN, InFlightLimit, PendingCall, seen
from dragoman.link.writer import check_size, one_line
from dragoman.vocabulary.asking import R, Reply, Request
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.vocabulary.requests import CloseSession, ListSessions
from dragoman.wire.jsonrpc import JsonRpcPeer

if TYPE_CHECKING:
    from dragoman.link.link import Link

# They end work instead of starting it, so every peer of ours lets them pass its limit; we do the same.
_PASSING: Final = frozenset({CloseSession, ListSessions})


class _Hello(Reply, frozen=True, gc=False):
    """The answer to `initialize`."""

    agent: AgentHello


class OutgoingRequests:
    """The calls of one link."""

    def __init__(self, link: "Link", peer: JsonRpcPeer[PendingCall], spoken: tuple[int, ...]) -> None:
        self.awaited = 0  # number of calls whose caller waits for the reply
        self._link = link
        self._peer = peer
        self._spoken = spoken
        self._outbox = link.outbox
        self._slots = InFlightLimit(limits.IN_FLIGHT)
        self._loop = asyncio.get_running_loop()
        self._greeting: tuple[ClientHello, PendingCall] | None = None
        self._by_key: dict[str, PendingCall] = {}  # asked by a notification

    async def initialize(self, hello: ClientHello) -> AgentHello:
        """The client's first words; the dialect follows from the answer."""
        future: asyncio.Future[Reply] = self._loop.create_future()
        waiter = PendingCall(None, future)
        self._greeting = (hello, waiter)
        name = self._link.dialect_name
        said = named(name).encode_client(hello) if name else encode_client(hello, self._spoken)
        check_size("initialize", said, self._peer.call_size)
        number, payload = self._peer.call("initialize", said, waiter)
        self._outbox.put(payload)
        return cast(_Hello, await self._answer(number, future)).agent

    async def ask(
        self, request: Request[R], watch: Watch | None = None, on_reply: Callable[[R], None] | None = None
    ) -> R:
        """Ask, and wait for the answer. Cancelling the wait cancels the request at the peer.

        `on_reply` is called with the answer at its place among the events: before anything the peer said after it.
        What a peer knows by another name is asked under that one too, once.
        """
        # The dialect decodes the reply that belongs to the request: its routes name the types (tests/vocabulary).
        settle = cast(Callable[[Reply], None] | None, on_reply)
        reply = await self._ask(request, watch, settle, again=True)
        return cast(R, reply if reply is not AGAIN else await self._ask(request, watch, settle, again=False))

    async def _ask(
        self, request: Request, watch: Watch | None, on_reply: Callable[[Reply], None] | None, *, again: bool
    ) -> Reply:
        counted = request.__class__ not in _PASSING
        if counted and not self._slots.take():
            await self._slots.wait()
        future: asyncio.Future[Reply] = self._loop.create_future()
        try:
            if self._link.ending:
                raise LinkClosed("the connection has ended")
            call = self._said(request)
            check_size(call.method, call.params, self._peer.call_size)
            waiter = PendingCall(request, future, watch, on_reply, call.method if again else "")
            if call.answered_as:
                return await self._by_note(call, waiter)
            number, payload = self._peer.call(call.method, call.params, waiter)
            if call.early is not None:
                # The caller goes on with `call.early`; the request counts until the peer has answered it.
                future.add_done_callback(self._release if counted else seen)
                counted = False
                waiter.tell()
            if call.events:
                self._link.hand_up(call.events)
            turn = self._put(number, one_line(payload), watch)
            if turn is not None:
                await self._stand_in_line(turn, number, waiter, early=call.early is not None)
            if call.early is not None:
                return call.early
            return await self._answer(number, future)
        except BaseException:
            if future.done():
                seen(future)
            raise
        finally:
            if counted:
                self._slots.give_back()

    def _said(self, request: Request) -> RequestMessage:
        try:
            return self._link.dialect.encode_request(request)
        except UnicodeEncodeError:
            # A path of another encoding, or half of a surrogate pair: replaced, it would name something else.
            raise UsageError("a text in it is no Unicode, so no wire can carry it") from None

    async def _by_note(self, call: RequestMessage, waiter: PendingCall) -> Reply:
        """Send a request as a notification and wait for its reply.

        Cancelling the wait sends nothing: this wire has no message for that.
        """
        self._by_key[call.answered_as] = waiter
        self.awaited += 1
        try:
            self._outbox.put(one_line(self._peer.notify(call.method, call.params)))
            self._link.read_again()
            return await waiter.future
        finally:
            self.awaited -= 1
            self._by_key.pop(call.answered_as, None)

    def cancel_request(self, number: int) -> None:
        """Ask the peer to stop working on a request of ours; it still owes the answer."""
        if not self._link.closed:
            self._outbox.put(self._peer.cancel_call(number))

    @property
    def busy(self) -> bool:
        """Whether a request of ours would have to wait, because too many have no answer yet."""
        return not self._slots.free

    # -- what the link hears -----------------------------------------------------------------------------------------

    def answered(self, waiter: PendingCall, result: msgspec.Raw) -> None:
        """A call has its result."""
        try:
            if waiter.request is None:
                self._greeted(waiter, result)
            else:
                self._settle(waiter, self._link.dialect.decode_reply(waiter.request, result))
        except PeerError as error:
            self._spoil(waiter, error)
        except Exception as error:
            self._link.on_bug(error)
            self._spoil(waiter, request_failed(*wire_error(error)))

    def answered_by_note(self, key: str, result: msgspec.Raw) -> None:
        """Settle the request that was sent as a notification under `key`; ignore an unknown key."""
        waiter = self._by_key.pop(key, None)
        if waiter is not None:
            self.answered(waiter, result)

    def refused(self, waiter: PendingCall, error: WireError) -> None:
        """A call was answered with an error."""
        if waiter.request is None and self._is_silent(error):
            self._meet_silently(waiter)
        elif waiter.request is None and error.code == UNSUPPORTED_VERSION:
            waiter.reject(VersionMismatch(f"the agent does not speak {_versions(self._spoken)}: {error.message}"))
        elif waiter.name and self._link.dialect.asks_again(waiter.name, error):
            waiter.ask_again()
        else:
            self._spoil(waiter, request_failed(*error))

    def echoed(self) -> None:
        """Fail our `initialize` with `PeerMistake`: the peer sent an `initialize` too, so it is no agent."""
        if self._greeting is not None:
            echo = PeerMistake(INVALID_REQUEST, "the program does not speak ACP: it sends our own words back")
            self._greeting[1].reject(echo)

    def give_up(self, waiters: Iterable[PendingCall], cause: LinkClosed) -> None:
        """Fail these calls, and every request that was sent as a notification, with `cause`."""
        for waiter in [*waiters, *self._by_key.values()]:
            waiter.reject(cause)

    # -- small steps -------------------------------------------------------------------------------------------------

    def _put(self, number: int, payload: bytes, watch: Watch | None) -> "asyncio.Future[None] | None":
        """Put a request into the outbox. A lone one leaves at once; several are gathered, as everything else is."""
        outbox = self._outbox
        if not outbox.has_room(len(payload)):
            return outbox.enqueue(len(payload), _watched(payload, number, watch))
        if watch is not None:
            watch.on_sent(number)
        if self.awaited:
            outbox.put(payload)
        else:
            outbox.put_alone(payload)
        return None

    async def _stand_in_line(
        self, turn: "asyncio.Future[None]", number: int, waiter: PendingCall, *, early: bool
    ) -> None:
        try:
            await turn
        except BaseException:
            if turn.cancelled() or not early:
                self._leave_line(number, waiter, sent=not turn.cancelled() and not turn.exception())
            raise

    def _leave_line(self, number: int, waiter: PendingCall, *, sent: bool) -> None:
        """Abandon a call whose caller stopped waiting for room in the outbox; if `sent`, cancel it at the peer."""
        self._peer.abandon(number)
        if sent and not self._link.closed:
            self._outbox.put(self._peer.cancel_call(number))
        if not self._settle_failure(waiter, WireError(CANCELLED, "Request cancelled")):
            waiter.future.cancel()

    async def _answer(self, number: int, future: "asyncio.Future[Reply]") -> Reply:
        self.awaited += 1
        try:
            self._link.read_again()
            return await future
        except asyncio.CancelledError:
            if not self._link.closed:
                self._outbox.put(self._peer.cancel_call(number))
            self._peer.abandon(number)
            raise
        finally:
            self.awaited -= 1

    def _greeted(self, waiter: PendingCall, result: msgspec.Raw) -> None:
        name = self._link.dialect_name
        version, agent, self._link.dialect_name = (
            named(name).decode_agent(result) if name else decode_agent(result, self._spoken)
        )
        assert self._greeting is not None
        self._link.meet(version, self._greeting[0], agent)
        waiter.resolve(_Hello(agent))

    def _is_silent(self, error: WireError) -> bool:
        """Return whether `error` comes from an agent of a dialect without `initialize` (`needs_no_hello`)."""
        return (
            error.code == METHOD_NOT_FOUND
            and bool(self._link.dialect_name)
            and named(self._link.dialect_name).needs_no_hello
        )

    def _meet_silently(self, waiter: PendingCall) -> None:
        assert self._greeting is not None
        agent = AgentHello(None)
        self._link.meet(1, self._greeting[0], agent)
        waiter.resolve(_Hello(agent))

    def _settle(self, waiter: PendingCall, replied: DecodedReply) -> None:
        # Events that came with the reply are handed up before the caller goes on.
        if replied.events:
            self._link.hand_up(replied.events)
        if replied.reply is not None:
            waiter.resolve(replied.reply)
        elif not waiter.future.done():
            waiter.future.cancel()

    def _settle_failure(self, waiter: PendingCall, error: WireError) -> bool:
        """Whether on this wire the failure of the request is an answer after all: the end of a turn."""
        replied = None if waiter.request is None else self._link.dialect.decode_failure(waiter.request, error)
        if replied is not None:
            self._settle(waiter, replied)
        return replied is not None

    def _spoil(self, waiter: PendingCall, error: PeerError) -> None:
        """A refusal ends a call, and so does an answer that makes no sense."""
        if not self._settle_failure(waiter, wire_error(error)):
            waiter.reject(error)

    def _release(self, future: "asyncio.Future[Reply]") -> None:
        self._slots.give_back()
        seen(future)


def _watched(payload: bytes, number: int, watch: Watch | None) -> Iterable[bytes]:
    """A payload that says when it is put."""
    if watch is not None:
        watch.on_sent(number)
    yield payload


def _versions(spoken: tuple[int, ...]) -> str:
    return "version " + " or ".join(str(version) for version in spoken)
