"""What the remote transports share: whole messages in order, a bounded queue out, and coming back after a drop.

They move messages where others move bytes: what is written is split at newlines, and what is received has one behind
it. `transport_for` finds the right one for an address.
"""

import asyncio
import itertools
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

if TYPE_CHECKING:
    from dragoman.transports.contract import Receiver, Transport

# Messages that wait to be sent; then writing takes nothing.
QUEUE_BYTES: Final = 1 * limits.MIB
# How long we try to reconnect: as long as a gateway keeps a connection without a reader.
RETURN_SECONDS: Final = 600.0
# How long we try to connect at first: short, because the user waits and may have mistyped the address; but a server
# that is just being started needs a moment.
FIRST_SECONDS: Final = 3.0
# One attempt: what is far away and busy may need so long for its handshake.
OPEN_SECONDS: Final = 10.0
_FIRST_DELAY: Final = 0.05
_LONGEST_DELAY: Final = 5.0
_GOODBYE_SECONDS: Final = 2.0
# Exceptions that one was made from; a chain can be a circle.
_CAUSES: Final = 8


def transport_for(url: str, token: str | None = None, tell: Callable[[str], None] | None = None) -> "Transport":
    """A transport to an agent behind `http(s)://` or `ws(s)://`. A path is `/acp` unless it is given.

    `tell` hears a sentence when the server cannot be reached for now, and when it can be again.
    """
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise UsageError("an address has no user or password in it; the token comes from a file or DRAGOMAN_TOKEN")
    if parts.scheme not in ("http", "https", "ws", "wss") or not parts.hostname:
        raise UsageError(f"{url!r} is no address of an agent; it begins with https://, http://, wss:// or ws://")
    if parts.path in ("", "/"):
        url = parts._replace(path="/acp").geturl()
    if parts.scheme in ("ws", "wss"):
        from dragoman.transports.websocket import WebSocketTransport

        transport: RemoteTransport = WebSocketTransport(url, token)
    else:
        from dragoman.transports.http import HttpTransport

        transport = HttpTransport(url, token)
    if tell is not None:
        transport.tell = tell
    return transport


def remote_opener(url: str, token: str | None, tell: Callable[[str], None] | None = None) -> "Callable[[], Transport]":
    """Return a function that makes a transport to `url`, as `transport_for` does. Raise `UsageError` at once if `url`
    is no address, and not only when the first transport is made."""
    transport_for(url, token)
    return lambda: transport_for(url, token, tell)


class ServerRefused(Exception):
    """The server has said no, and would say it again."""


class RemoteTransport:
    """The half of a remote transport that its link sees. A subclass sends and receives in `_run`."""

    def __init__(self, url: str, token: str | None) -> None:
        self.url: Final = url
        # Told, in a sentence for people, that the server cannot be reached for now; the next time, that it can be.
        self.tell: Callable[[str], None] = _ignore
        self._trouble = False
        self._heard_us = False  # something of ours may have arrived
        self._known_token: Final = token is not None
        self._headers: Final = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._receiver: Receiver | None = None
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._rest: list[bytes] = []
        self._short = False
        self._deaf = False  # what is written is swallowed
        self._lost = False
        self._closing: asyncio.Future[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

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
        if self._deaf:
            return len(data)
        if self._queued >= QUEUE_BYTES:
            self._short = True
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
        """The other side cannot be told that we only listen from now on, so it is not."""
        self._deaf = True

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

    # -- a subclass says -----------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        """Connect, and come back after every drop, until `ServerRefused` or for too long."""
        raise NotImplementedError

    async def _say_goodbye(self) -> None:
        """Tell the server that this connection is over."""

    # -- a subclass calls these --------------------------------------------------------------------------------------

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Work that ends with the transport; if it fails, so does the connection."""

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            work.close()  # it may have been cancelled before it began

        task = self._loop.create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(ended)

    async def next_message(self) -> bytes:
        """The next message to send. It stays in the queue until `sent`."""
        while not self._queue:
            self._more.clear()
            await self._more.wait()
        return self._queue[0]

    def sent(self) -> None:
        """The first message of the queue has arrived."""
        self._queued -= len(self._queue.popleft())
        if not self._queue:
            self._empty.set()
        if self._short and self._queued < QUEUE_BYTES:
            self._short = False
            if self._receiver is not None and not self._deaf:
                self._receiver.writable()

    async def deliver(self, message: bytes) -> None:
        """Wait while reading is paused, then pass a message to the receiver; drop it once the connection is lost."""
        await self._reading.wait()
        if self._receiver is not None and not self._lost:
            self._receiver.data_received(message + b"\n")

    def missed(self, problem: str) -> None:
        """An attempt to reach the server has failed, and another follows: that is said once."""
        if not self._trouble and not self._lost:
            self._trouble = True
            self.tell(f"{place_of(self.url)} cannot be reached ({problem}); trying again")

    def speaking(self) -> None:
        """Something of ours is on its way to a server: it is waited for when we leave, and followed by a goodbye."""
        self._heard_us = True

    def reached(self) -> None:
        """The server has answered."""
        self.speaking()
        if self._trouble:
            self._trouble = False
            self.tell(f"{place_of(self.url)} can be reached now")

    def unreachable(self, problem: str, *, ever: bool) -> LinkClosed:
        """We have tried for long enough; `ever`: we were connected before."""
        hint = "" if ever else "; is `dragoman serve` running there?"
        return LinkClosed(f"{place_of(self.url)} cannot be reached: {problem}{hint}")

    def why(self, status: int) -> str:
        """What a refusal means, in a sentence that says what to do."""
        return why(status, self.url, shown=self._known_token)

    def lose(self, reason: str) -> None:
        """The connection is gone for good."""
        if self._lost or self._receiver is None:
            return
        self._lost = self._deaf = True
        self._drop_queue()
        self._receiver.connection_lost(LinkClosed(reason))

    # -- small steps -------------------------------------------------------------------------------------------------

    def _put(self, message: bytes) -> None:
        self._queue.append(message)
        self._queued += len(message)
        self._more.set()
        self._empty.clear()

    def _drop_queue(self) -> None:
        self._queue.clear()
        self._queued = 0
        self._rest = []
        self._empty.set()

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except ServerRefused as refused:
            self.lose(str(refused))
        except LinkClosed as closed:
            self.lose(str(closed))
        except UsageError as error:  # an extra that is not installed
            self.lose(str(error))

    async def _leave(self) -> None:
        assert self._receiver is not None
        if self._heard_us and not self._lost:
            with suppress(TimeoutError):
                async with asyncio.timeout(limits.CLOSE_FLUSH_SECONDS):
                    await self._empty.wait()
            with suppress(Exception):
                async with asyncio.timeout(_GOODBYE_SECONDS):
                    await self._say_goodbye()
        self._deaf = True
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
        """Give back what is held."""


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
    """Default `tell` callback: ignore the sentence."""


def place_of(url: str) -> str:
    """The server of an address, without what else stands in it."""
    where = urlsplit(url)
    return f"{where.scheme}://{where.netloc}"


def plainly(error: BaseException) -> str:
    """Why a server could not be reached: what the system said, and not the words a library has for it."""
    cause: BaseException | None = error
    for _ in range(_CAUSES):
        if cause is None:
            break
        if isinstance(cause, socket.gaierror):
            return "no machine of that name is known"
        told = getattr(cause, "verify_message", None)
        if told:
            return f"its certificate is not trusted: {told}"
        if isinstance(cause, TimeoutError):
            return "no answer in time"
        if isinstance(cause, OSError) and cause.errno and getattr(cause, "library", None) is None:
            return os.strerror(cause.errno).lower()
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__


def why(status: int, url: str, *, shown: bool = True) -> str:
    """What a refusal means, in a sentence that says what to do. `shown`: a token was."""
    place = place_of(url)
    match status:
        case 401 if not shown:
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
