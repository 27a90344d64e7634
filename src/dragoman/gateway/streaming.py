"""Messages to event streams and WebSockets: what is queued leaves in one write, and a reader that stops is let go.

An event is `id: NUMBER` and one line of `data`, the message; a message has no line break in it. A comment every
`KEEP_ALIVE_SECONDS` keeps proxies from giving up. What was missed is said in a message of ours, `_dragoman/gap`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from contextlib import suppress
from functools import partial
from types import coroutine
from typing import Any, Final

import msgspec

from dragoman.gateway.replay_buffer import TOO_SLOW, StreamBatch, StreamMessage, StreamReader
from dragoman.gateway.resuming import PLAIN, Delivery, with_cursor

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]

# What goes on when a request is answered for the rest, and under which key of its scope a handler leaves that.
Stream = Callable[[Receive, Send], Awaitable[None]]
STREAM: Final = "dragoman.stream"

# Well below the minute after which nginx gives up on a silent server, if it is not told otherwise.
KEEP_ALIVE_SECONDS: Final = 15.0
# For a last write to a client that does not read.
_LAST_SECONDS: Final = 1.0
# RFC 6455 7.4: 1000 is a goodbye, everything else that ends a connection is a drop.
GOODBYE: Final = 1000


async def stream_events(reader: StreamReader, delivery: Delivery, receive: Receive, send: Send) -> None:
    """Answer a request with an event stream, until the reader leaves or is ended."""
    try:
        await send(head())
        await send(part(b": open\n\n" + _event_text(delivery.before(reader.after + 1))))
        if await pump(reader, wait_until_gone(receive), lambda batch: send(part(events(batch, delivery=delivery)))):
            await last_write(send(part(b": ended %d\n\n" % reader.code, more=False)))
    finally:
        reader.leave()


async def send_messages(reader: StreamReader, receiving: Awaitable[None], send: Send, delivery: Delivery) -> None:
    """Send every message on a WebSocket, until `receiving` is done or the reader is ended; then close it."""

    async def send_batch(batch: StreamBatch | None) -> None:
        # A keep-alive is for event streams only: a WebSocket has its own pings.
        for number, frame in () if batch is None else _with_gap(batch, delivery):
            leaving = with_cursor(b"%d" % number, frame) if number and delivery.cursors else frame
            await send({"type": "websocket.send", "text": leaving.decode("utf-8", "replace")})
            # With each message, not each batch: `Connections.drain` gives up on readers whose steps stand still.
            reader.steps += 1

    try:
        for message in delivery.before(reader.after + 1):
            await send({"type": "websocket.send", "text": message.frame.decode()})
        if await pump(reader, receiving, send_batch):
            await last_write(send({"type": "websocket.close", "code": reader.code, "reason": ""}))
    finally:
        reader.leave()


def events(
    batch: StreamBatch | None, *, before_number: bytes = b"", ping: bytes = b"", delivery: Delivery = PLAIN
) -> bytes:
    """Return a batch as it stands in an event stream; None is a comment, which keeps proxies from giving up.

    `before_number` begins the id of every event, and `ping` is the comment.
    """
    if batch is None:
        return b":%b\n\n" % ping
    return _event_text(_with_gap(batch, delivery), before_number, cursors=delivery.cursors)


def _event_text(messages: list[StreamMessage], before_number: bytes = b"", *, cursors: bool = False) -> bytes:
    parts: list[bytes] = []
    for number, frame in messages:
        if number:
            digits = b"%d" % number
            parts += (b"id: ", before_number, digits, b"\ndata: ", with_cursor(digits, frame) if cursors else frame)
        else:
            parts += (b"data: ", frame)
        parts.append(b"\n\n")
    return b"".join(parts)


def _with_gap(batch: StreamBatch, delivery: Delivery) -> list[StreamMessage]:
    """Return the messages of a batch as they leave; before them, if some are lost, the message that says so."""
    messages = batch.messages
    if not batch.missed:
        return delivery.messages(messages)
    # The number before the first message that is there: a reader that comes back with it goes on without another gap.
    number = messages[0].number - 1 if messages else 0
    return delivery.messages([StreamMessage(number, gap(batch.missed)), *messages])


def gap(missed: int) -> bytes:
    """Return the message that so many are gone for good: the client should load the session again."""
    return msgspec.json.encode({"jsonrpc": "2.0", "method": "_dragoman/gap", "params": {"missed": missed}})


async def pump(
    reader: StreamReader,
    gone: Awaitable[None],
    send_batch: Callable[[StreamBatch | None], Awaitable[None]],
    every: float = KEEP_ALIVE_SECONDS,
) -> bool:
    """Send batches until the reader is ended or `gone` is done, and None after `every` seconds without one. Return
    whether the reader was ended by us."""

    rest: Awaitable[None] | None = None  # of a write that was begun by `send_now` and has to wait

    async def send_all() -> None:
        nonlocal rest
        while not reader.code:
            batch = await reader.batch()
            begun, rest = rest, None
            if begun is not None:
                await begun
                if batch is None:  # the nudge was for this write alone
                    continue
            if not reader.code:
                await send_batch(batch)

    def send_now(batch: StreamBatch) -> None:
        nonlocal rest
        rest = begin(send_batch(batch))
        if rest is not None:
            reader.nudge()

    # The first that is done ends the stream: everything is sent and the reader ended, the client is gone, or the reader
    # was ended while a write hangs. Two tasks, a future and a timer: thousands of streams are open and silent.
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()

    def end(_: object = None) -> None:
        if not over.done():
            over.set_result(None)

    timer: asyncio.TimerHandle | None = None

    def keep_alive() -> None:
        nonlocal timer
        if timer is not None:
            reader.nudge()
        timer = loop.call_later(every, keep_alive)

    keep_alive()
    tasks = [asyncio.ensure_future(work) for work in (send_all(), gone)]
    for task in tasks:
        task.add_done_callback(end)
    reader.on_end = end
    reader.send_now = send_now
    # It may have been ended before there was an `on_end` to call.
    if reader.code:
        end()
    try:
        await over
        if reader.code not in (0, TOO_SLOW):
            await asyncio.wait(tasks[:1], timeout=_LAST_SECONDS)  # what is on its way is not cut
        return reader.code != 0
    finally:
        # First: what comes while the tasks end must not begin a write on a socket that is given up.
        reader.send_now = None
        if timer is not None:
            timer.cancel()
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            # Those two are how granian says that the socket is gone.
            if isinstance(ended, Exception) and not isinstance(ended, OSError | RuntimeError):
                raise ended


def begin(work: Awaitable[None]) -> Awaitable[None] | None:
    """Do `work` up to where it has to wait. Return None if it is done, else what has to be awaited for the rest; an
    exception is raised there as well."""
    # Nearly every write is done at once. A task would do it in a later turn of the loop, behind those of all others.
    steps = work.__await__()
    try:
        waited = next(steps)
    except StopIteration:
        return None
    except Exception as error:
        return _failed(error)
    return _rest(steps, waited)


async def _failed(error: Exception) -> None:
    raise error


@coroutine
def _rest(steps: Generator[Any, Any, None], waited: object) -> Generator[Any, Any, None]:
    """Go on with work that waits for `waited`."""
    while True:
        try:
            value = yield waited
        except BaseException as error:
            step: Callable[[], object] = partial(steps.throw, error)
        else:
            step = partial(steps.send, value)
        try:
            waited = step()
        except StopIteration:
            return


async def wait_until_gone(receive: Receive) -> None:
    """Wait until the client of an event stream has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def last_write(write: Awaitable[None]) -> None:
    """Wait for a last write, for at most `_LAST_SECONDS`; ignore a client that is gone or does not read."""
    with suppress(TimeoutError, OSError, RuntimeError):
        async with asyncio.timeout(_LAST_SECONDS):
            await write


def head() -> Event:
    """Return the head of an event stream."""
    headers = [
        (b"content-type", b"text/event-stream"),
        (b"cache-control", b"no-store"),
        # nginx would collect events, and send them when its buffer is full.
        (b"x-accel-buffering", b"no"),
        (b"x-content-type-options", b"nosniff"),
    ]
    return {"type": "http.response.start", "status": 200, "headers": headers}


def part(data: bytes, *, more: bool = True) -> Event:
    """Return a part of a response's body."""
    return {"type": "http.response.body", "body": data, "more_body": more}
