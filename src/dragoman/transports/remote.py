"""What the remote transports share: whole messages in order, a bounded send queue, and reconnecting after a drop.

They move messages where others move bytes: what is written is split at newlines, and each received message gets one at
its end. `transport_for` returns the right one for an address.
"""

import asyncio
import itertools
import logging
import os
import random
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from dragoman import limits
from dragoman.errors import LinkClosed, UsageError
from dragoman.host.tls import trust_only
from dragoman.transports.token import TokenFile

if TYPE_CHECKING:
    from dragoman.transports.contract import Receiver, Transport

# Messages that wait to be sent; above it `write` accepts nothing.
QUEUE_BYTES: Final = 1 * limits.MIB
# How long we try to reconnect.
RETURN_SECONDS: Final = limits.RECONNECT_SECONDS
# How long we try to connect at first: short, because the user waits and may have mistyped the address; but a server
# that is just being started needs a moment.
FIRST_SECONDS: Final = 3.0
# One attempt: what is far away and busy may need so long for its handshake.
OPEN_SECONDS: Final = 10.0
# What a gateway of ours is told: we count messages, and want a gap stated where it would else refuse a position.
OURS: Final = {"Dragoman-Resume": "gaps"}
_FIRST_DELAY: Final = 0.05
_LONGEST_DELAY: Final = 5.0
_GOODBYE_SECONDS: Final = 2.0
# How far the causes of an exception are followed; a chain can be a circle.
_CAUSES: Final = 8
_log: Final = logging.getLogger(__name__)


def transport_for(
    url: str,
    token: str | TokenFile | None = None,
    on_trouble: Callable[[str], None] | None = None,
    *,
    ca_file: str = "",
) -> "Transport":
    """Return a transport to an agent behind `http(s)://` or `ws(s)://`. The path is `/acp` unless it is given.

    `on_trouble` is called with a sentence when the server cannot be reached for now, and when it can be again. The
    server's certificate is checked against the authorities in `ca_file`, or against those of this machine without it.
    Raise `UsageError` if `url` is no address, or the file cannot be used.
    """
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise UsageError("an address has no user or password in it; the token comes from a file or DRAGOMAN_TOKEN")
    if parts.scheme not in ("http", "https", "ws", "wss") or not parts.hostname:
        raise UsageError(f"{url!r} is no address of an agent; it begins with https://, http://, wss:// or ws://")
    if ca_file:
        if parts.scheme not in ("https", "wss"):
            raise UsageError(f"a file of authorities goes with https:// or wss://, not with {parts.scheme}://")
        trust_only(ca_file)  # what is wrong with it is said before anything is sent
    if parts.path in ("", "/"):
        url = parts._replace(path="/acp").geturl()
    if parts.scheme in ("ws", "wss"):
        from dragoman.transports.websocket import WebSocketTransport

        transport: RemoteTransport = WebSocketTransport(url, token, ca_file)
    else:
        from dragoman.transports.http import HttpTransport

        transport = HttpTransport(url, token, ca_file)
    if on_trouble is not None:
        transport.on_trouble = on_trouble
    return transport


def remote_opener(
    url: str, token: str | TokenFile | None, on_trouble: Callable[[str], None] | None = None, *, ca_file: str = ""
) -> "Callable[[], Transport]":
    """Return a function that makes a transport to `url`, as `transport_for` does. Raise `UsageError` at once if `url`
    is no address, and not only when the first transport is made."""
    transport_for(url, token, ca_file=ca_file)
    return lambda: transport_for(url, token, on_trouble, ca_file=ca_file)


class ServerRefused(Exception):
    """The server refused the connection for a reason that another attempt would meet again."""


class RemoteTransport:
    """The part of a remote transport that the link uses. A subclass sends and receives in `_run`.

    States: open, then closed for writing (`_drops_writes`), then lost (`connection_lost` was called). `close` passes
    through all of them; a lost connection is closed for writing too.
    """

    def __init__(self, url: str, token: str | TokenFile | None, ca_file: str = "") -> None:
        self.url: Final = url
        self.ca_file: Final = ca_file  # whom to believe; empty: the authorities of this machine
        # Called with a sentence for people when the server cannot be reached for now, and when it can be again.
        self.on_trouble: Callable[[str], None] = _ignore
        self._is_unreachable = False
        self._has_sent = False  # something of ours may have arrived, so the server may hold a connection for us
        self._token: Final = token
        self._receiver: Receiver | None = None
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._rest: list[bytes] = []
        self._has_refused_write = False  # the receiver waits for `writable`
        self._drops_writes = False
        self._lost = False
        self._closing: asyncio.Future[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        state = "lost" if self._lost else "closed for writing" if self._drops_writes else "open"
        reach = "unreachable" if self._is_unreachable else "reachable"
        return f"<{type(self).__name__} {place_of(self.url)} {state} {reach} queued={self._queued_bytes}>"

    # -- the link calls these ----------------------------------------------------------------------------------------

    def start(self, receiver: "Receiver") -> None:
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        self._reading = asyncio.Event()
        self._reading.set()
        self._more = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self.spawn(self._run())

    def write(self, data: bytes | memoryview) -> int:
        if self._drops_writes:
            return len(data)
        if self._queued_bytes >= QUEUE_BYTES:
            self._has_refused_write = True
            return 0
        first, *more = bytes(data).split(b"\n")
        self._rest.append(first)
        for piece in more:
            message = b"".join(self._rest)
            self._rest = [piece]
            if message.strip():
                self._put(message)
        return len(data)

    def pause_reading(self) -> None:
        self._reading.clear()

    def resume_reading(self) -> None:
        self._reading.set()

    def close_writing(self) -> None:
        """Drop later writes. Neither HTTP nor a WebSocket has a half close, so the server does not learn of it."""
        self._drops_writes = True

    async def close(self) -> None:
        if self._closing is not None:
            await asyncio.shield(self._closing)
            return
        self._closing = asyncio.get_running_loop().create_future()
        try:
            if self._receiver is not None:
                await self._leave()
        finally:
            self._closing.set_result(None)

    # -- a subclass implements these -----------------------------------------------------------------------------------

    async def _run(self) -> None:
        """Connect, and reconnect after every drop, until `ServerRefused`, or `LinkClosed` after `RETURN_SECONDS`."""
        raise NotImplementedError

    async def _send_goodbye(self) -> None:
        """Let the server know that this connection has ended."""

    # -- a subclass calls these --------------------------------------------------------------------------------------

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task that ends with the transport. If it fails, the connection is lost."""

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            work.close()  # it may have been cancelled before it began

        task = self._loop.create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(ended)

    async def next_message(self) -> bytes:
        """Return the next message to send, and wait until there is one. It stays in the queue until `on_sent`."""
        while not self._queue:
            self._more.clear()
            await self._more.wait()
        return self._queue[0]

    def on_sent(self) -> None:
        """Remove the first message from the queue: it was sent."""
        self._queued_bytes -= len(self._queue.popleft())
        if not self._queue:
            self._empty.set()
        if self._has_refused_write and self._queued_bytes < QUEUE_BYTES:
            self._has_refused_write = False
            if self._receiver is not None and not self._drops_writes:
                self._receiver.writable()

    async def deliver(self, message: bytes) -> None:
        """Wait while reading is paused, then pass a message to the receiver; drop it once the connection is lost."""
        await self._reading.wait()
        if self._receiver is not None and not self._lost:
            self._receiver.data_received(message + b"\n")

    def on_attempt_failed(self, problem: str) -> None:
        """Report, once for each outage, that an attempt to reach the server has failed and another follows."""
        if not self._is_unreachable and not self._lost:
            self._is_unreachable = True
            _log.warning("%s cannot be reached; trying again", place_of(self.url))
            self.on_trouble(f"{place_of(self.url)} cannot be reached ({problem}); trying again")

    def on_sending(self) -> None:
        """Note that something of ours is on its way: `close` then waits for the queue, and sends a goodbye."""
        self._has_sent = True

    def on_reached(self) -> None:
        """Note that the server has answered, and report the end of an outage."""
        self.on_sending()
        if self._is_unreachable:
            self._is_unreachable = False
            _log.warning("%s can be reached again", place_of(self.url))
            self.on_trouble(f"{place_of(self.url)} can be reached now")

    def unreachable(self, problem: str, *, ever: bool) -> LinkClosed:
        """Return the error for a server that was tried for long enough; `ever`: we were connected before."""
        hint = "" if ever else "; is `dragoman serve` running there?"
        return LinkClosed(f"{place_of(self.url)} cannot be reached: {problem}{hint}")

    def token_headers(self) -> dict[str, str]:
        """Return the header with the token, as it is now; none where there is no token."""
        token = self._token.current() if isinstance(self._token, TokenFile) else self._token
        return {} if token is None else {"Authorization": f"Bearer {token}"}

    def is_final(self, status: int, *, connected: bool) -> bool:
        """Return whether another attempt would meet the same refusal; `connected`: the server has let us in before."""
        # The token has ended, and the one that follows it is not in its file yet.
        if status == 401 and connected and isinstance(self._token, TokenFile):
            return False
        return status < 500 and status not in (408, 429)

    def refusal(self, status: int) -> str:
        """Return what a refusal means, in a sentence that says what to do."""
        return refusal(status, self.url, has_token=self._token is not None)

    def lose(self, reason: str) -> None:
        """Report the loss of the connection to the receiver, once."""
        if self._lost or self._receiver is None:
            return
        self._lost = self._drops_writes = True
        self._drop_queue()
        self._receiver.connection_lost(LinkClosed(reason))

    # -- small steps -------------------------------------------------------------------------------------------------

    def _put(self, message: bytes) -> None:
        self._queue.append(message)
        self._queued_bytes += len(message)
        self._more.set()
        self._empty.clear()

    def _drop_queue(self) -> None:
        self._queue.clear()
        self._queued_bytes = 0
        self._rest = []
        self._empty.set()

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (ServerRefused, LinkClosed, UsageError) as error:  # the last: an extra that is not installed
            self.lose(str(error))
        except Exception as error:
            # A mistake of ours, or of a library. Who waits for an answer would wait for ever.
            _log.exception("the connection to %s failed", place_of(self.url))
            self.lose(f"the connection to {place_of(self.url)} failed: {plain_reason(error)}")

    async def _leave(self) -> None:
        assert self._receiver is not None
        if self._has_sent and not self._lost:
            with suppress(TimeoutError):
                async with asyncio.timeout(limits.CLOSE_FLUSH_SECONDS):
                    await self._empty.wait()
            with suppress(Exception):
                async with asyncio.timeout(_GOODBYE_SECONDS):
                    await self._send_goodbye()
        self._drops_writes = True
        self._drop_queue()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._free()
        if not self._lost:
            self._lost = True
            self._receiver.connection_lost(None)

    async def _free(self) -> None:
        """Release what a subclass holds, such as sockets."""


async def attempts(seconds: float) -> AsyncIterator[int]:
    """Yield attempt numbers from 0 on for `seconds`, sleeping between them: exponential back-off with jitter.

    The last attempt is made when `seconds` are over.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    delay = _FIRST_DELAY
    for number in itertools.count():
        yield number
        left = deadline - loop.time()
        if left <= 0:
            return
        await asyncio.sleep(min(delay * random.uniform(0.5, 1.0), left))
        delay = min(delay * 2, _LONGEST_DELAY)


def _ignore(sentence: str) -> None:
    """Default `on_trouble` callback: ignore the sentence."""


def place_of(url: str) -> str:
    """Return the scheme and server of an address, without path and query."""
    where = urlsplit(url)
    return f"{where.scheme}://{where.netloc}"


def plain_reason(error: BaseException) -> str:
    """Return why a server could not be reached, in the words of the system and not in those of a library."""
    import ssl  # here: a client over plain pipes or http never needs it

    cause: BaseException | None = error
    for _ in range(_CAUSES):
        if cause is None:
            break
        if isinstance(cause, socket.gaierror):
            return "no machine of that name is known"
        if isinstance(cause, ssl.SSLCertVerificationError) and cause.verify_message:
            return f"its certificate is not trusted: {cause.verify_message}"
        if isinstance(cause, TimeoutError):
            return "no answer in time"
        # The number of an SSL error is one of OpenSSL's, and not of the system's.
        if isinstance(cause, OSError) and cause.errno and not isinstance(cause, ssl.SSLError):
            return os.strerror(cause.errno).lower()
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__


def refusal(status: int, url: str, *, has_token: bool = True) -> str:
    """Return what a refusal with an HTTP status means, in a sentence that says what to do."""
    place = place_of(url)
    match status:
        case 401 if not has_token:
            return f"{place} wants a token, and none was given; give one by --token-file or DRAGOMAN_TOKEN"
        case 401:
            return f"{place} does not know this token; give a valid one by --token-file or DRAGOMAN_TOKEN"
        case 403:
            return f"{place} refuses this token, or where the request comes from"
        case 404:
            return f"{place} does not know the connection any more"
        case 421:
            return f"{place} does not answer to that name; start it with --allowed-host"
        case _:
            return f"{place} answered {status}"
