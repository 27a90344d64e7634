"""The one stream of a client of the elephant dialect, as its system writes it: `data:` lines, and a ping in silence.

Each event has an id as well, which its own clients skip; one that comes back with `Last-Event-ID` gets exactly what is
behind it, one without gets what it was not sent yet.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from dragoman.gateway.client_side import ClientSide
from dragoman.gateway.headers import number_in
from dragoman.gateway.replay_buffer import REPLACED, TOO_SLOW, StreamBatch, StreamReader
from dragoman.gateway.streaming import Receive, Send, events, head, last_write, part, pump, wait_until_gone

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
    """Answer with the messages of a connection, and then with those of the one that replaces it, while there is one."""
    gone = asyncio.ensure_future(wait_until_gone(receive))
    try:
        reader = client_side.connection.main.read(_number(after, client_side))
        try:
            await send(head())
            await send(part(b": connected\n\n"))
            while await _send_all(client_side, reader, gone, send):
                # Only where the connection itself has ended: a reader that another one has replaced must not follow it.
                following = None if reader.code in _NOT_THE_LAST else next_client_side(client_side)
                if following is None:
                    await last_write(_end(client_side, reader, send))
                    return
                client_side, reader = following, following.connection.main.read(None)
        finally:
            reader.leave()
    finally:
        gone.cancel()


async def _send_all(client_side: ClientSide, reader: StreamReader, gone: "asyncio.Future[None]", send: Send) -> bool:
    """Send what the connection has, until its reader is ended or the client is gone; return whether it was ended."""
    client_side.on_reader_change()
    ended = asyncio.shield(gone)
    return await pump(reader, ended, lambda batch: send(part(_events(client_side, batch))), PING_SECONDS)


async def _end(client_side: ClientSide, reader: StreamReader, send: Send) -> None:
    buffer = client_side.connection.main
    # The reader is ended already, so `pump` is over; what was appended before that is still owed.
    while reader.code not in _NOT_THE_LAST and buffer.has_after(reader.after):
        await send(part(_events(client_side, buffer.next_batch(reader))))
    await send(part(b": ended %d\n\n" % reader.code, more=False))


def _events(client_side: ClientSide, batch: StreamBatch | None) -> bytes:
    """Return a batch as it stands in the stream."""
    # Numbers are those of one connection, and a client that was initialized again has another: so an id has its mark.
    return events(batch, before_number=f"{_mark(client_side)}.".encode(), ping=b" ping")


def _mark(client_side: ClientSide) -> str:
    return client_side.connection.id[:8]


def _number(event_id: str | None, client_side: ClientSide) -> int | None:
    """Return the number of the last event a client has; None: it does not say, or that was in another connection."""
    mark, _, number = (event_id or "").partition(".")
    return number_in(number) if mark == _mark(client_side) else None
