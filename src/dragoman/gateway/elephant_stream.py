"""The one stream of a client of the elephant dialect, as its system writes it: `data:` lines, and a ping in silence.

Each event has an id as well, which its own clients skip; one that comes back with `Last-Event-ID` gets exactly what is
behind it, one without gets what it was not sent yet.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from dragoman.gateway.client_side import ClientSide
from dragoman.gateway.http_replies import number_in
from dragoman.gateway.replay_buffer import REPLACED, TOO_SLOW, StreamBatch, StreamReader
from dragoman.gateway.streaming import Receive, Send, beginning, gap, last_word, part, pump, until_gone

# As the system itself has it.
PING_SECONDS: Final = 5.0
# Ended so, a reader is not the one that the rest is for.
_NOT_THE_LAST: Final = (REPLACED, TOO_SLOW)


async def stream(
    client_side: ClientSide,
    next_client_side: Callable[[ClientSide], ClientSide | None],
    after: str | None,
    receive: Receive,
    send: Send,
) -> None:
    """Answer with what a connection says, and then with what the next one says, while there is one."""
    gone = asyncio.ensure_future(until_gone(receive))
    try:
        reader = client_side.connection.main.read(_number(after, client_side))
        try:
            await send(beginning())
            await send(part(b": connected\n\n"))
            while await _say_all(client_side, reader, gone, send):
                following = None if reader.code in _NOT_THE_LAST else next_client_side(client_side)
                if following is None:
                    await last_word(_end(client_side, reader, send))
                    return
                client_side, reader = following, following.connection.main.read(None)
        finally:
            reader.leave()
    finally:
        gone.cancel()


async def _say_all(client_side: ClientSide, reader: StreamReader, gone: "asyncio.Future[None]", send: Send) -> bool:
    """Whether it was us who ended it."""
    client_side.on_reader_change()
    ended = asyncio.shield(gone)
    return await pump(reader, ended, lambda batch: send(part(_events(client_side, batch))), PING_SECONDS)


async def _end(client_side: ClientSide, reader: StreamReader, send: Send) -> None:
    buffer = client_side.connection.main
    while reader.code not in _NOT_THE_LAST and buffer.has_after(reader.after):
        await send(part(_events(client_side, buffer.next_batch(reader))))
    await send(part(b": ended %d\n\n" % reader.code, more=False))


def _events(client_side: ClientSide, batch: StreamBatch | None) -> bytes:
    """A batch as it stands in the stream. Its numbers are those of one connection, so they carry its mark."""
    if batch is None:
        return b": ping\n\n"
    mark = _mark(client_side).encode()
    said = [b"id: %b.%d\ndata: %b\n\n" % (mark, *message) for message in batch.messages]
    if batch.missed:
        first = batch.messages[0].number if batch.messages else 1
        said.insert(0, b"id: %b.%d\ndata: %b\n\n" % (mark, first - 1, gap(batch.missed)))
    return b"".join(said)


def _mark(client_side: ClientSide) -> str:
    return client_side.connection.id[:8]


def _number(event_id: str | None, client_side: ClientSide) -> int | None:
    """The number of the last event a client has; None: it does not say, or that was in another connection."""
    mark, _, number = (event_id or "").partition(".")
    return number_in(number) if mark == _mark(client_side) else None
