"""One client's connection as the agent's side sees it: a transport that outlives the sockets it is reached by.

Owns the numbers of the messages that came in, the reply to `initialize`, and when the connection was last read. Which
stream a message goes to is decided by `SessionStreams`, what is kept of a stream by `ReplayBuffer`.

What a client that reconnects may see: every message that it was not sent yet, or did not confirm by its number, again
from the buffer; a gap, reported, where the buffer was too small; and each of its own messages received once, however
often it sent it.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable
from typing import Final

import msgspec

from dragoman import limits
from dragoman.dialects.contract import Id
from dragoman.errors import LinkClosed
from dragoman.gateway.budget import ByteBudget
from dragoman.gateway.envelope import Envelope
from dragoman.gateway.logbook import connection_name
from dragoman.gateway.prompt_ledger import RETENTION_SECONDS
from dragoman.gateway.replay_buffer import ReplayBuffer, StreamReader
from dragoman.gateway.resuming import with_resumable
from dragoman.gateway.session_streams import Full, Kind, SessionStreams
from dragoman.gateway.shared_state import ConnectionPosition
from dragoman.gateway.token_types import TokenIdentity
from dragoman.transports.contract import Receiver
from dragoman.vocabulary.requests import OPERATION_ID
from dragoman.wire.framing import one_line

__all__ = ["Full", "GatewayConnection", "Kind"]

_log = logging.getLogger(__name__)

# A client that does not stop asking is not read for so long at most; then its message is refused.
_READ_SECONDS: Final = 30.0


class GatewayConnection:
    """A `Transport` for a link in the role of the agent.

    `token_identity` is what it was opened by (with the newest cookie, where there were several), `version` the protocol
    version that its client asked for (0: not known yet), `received` how many messages came in, as the client counts
    them, and `alone_since` the loop time at which its last reader went.
    """

    def __init__(
        self,
        kind: Kind,
        token_identity: TokenIdentity,
        on_sent: Callable[[float], None] | None = None,
        budget: ByteBudget | None = None,
    ) -> None:
        self.id: Final = secrets.token_hex(16)
        self.kind: Final = kind
        self.token_identity = token_identity
        self.streams: Final = SessionStreams(kind, self._update_readers, on_sent, budget)
        self.names_sessions = False  # it has used Acp-Session-Id
        self.version = 0
        self.received = 0
        self.is_closed = False
        self._loop = asyncio.get_running_loop()
        self.opened_at: Final = self._loop.time()
        # A client that never opens a stream is closed like one that has left.
        self.alone_since = self.opened_at
        self.initialize_reply: asyncio.Future[bytes] = self._loop.create_future()  # of a client over HTTP
        self._is_initialized = False
        self._on_reader_change: Callable[[], None] | None = None
        self._receiver: Receiver | None = None
        self._partial_line = b""
        self._may_read: asyncio.Event | None = None  # set when it is read on; None: it is read
        self._feeding = asyncio.Lock()

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else "initialized" if self._is_initialized else "new"
        return (
            f"<GatewayConnection {connection_name(self.id)} {self.kind} {state} received={self.received} "
            f"{self.streams!r}>"
        )

    def attach(self, *, on_reader_change: Callable[[], None], is_open: Callable[[str], bool]) -> None:
        """Connect the client side: `on_reader_change` is called when a stream gets or loses its reader, or its reader
        has caught up; `is_open` tells whether a session of the client is open."""
        self._on_reader_change = on_reader_change
        self.streams.is_open = is_open

    @property
    def main(self) -> ReplayBuffer:
        """Return the connection's own stream."""
        return self.streams.main

    @property
    def readers(self) -> int:
        """Return how many of its streams have a reader."""
        return self.streams.readers

    def position(self) -> ConnectionPosition:
        """Return how far it is, for a server that its client comes back to."""
        return ConnectionPosition(self.id, self.token_identity.principal, self.received, self.streams.newest())

    @property
    def dialect(self) -> str:
        """Return the name of the dialect that its client speaks; empty where the version decides."""
        return "elephant" if self.kind == "elephant" else ""

    # -- messages of the client --------------------------------------------------------------------------------------

    def was_sent(self, id: Id) -> bool:
        """Return whether we have sent this client a request under this id."""
        return self.streams.was_sent(id)

    async def feed(
        self,
        frame: bytes,
        message: Envelope | None = None,
        *,
        number: int | None = None,
        reader: StreamReader | None = None,
    ) -> None:
        """Receive a message of the client. Waits while the agent's side does not read; raise `Full` if it does not
        begin to within `_READ_SECONDS`, and `LinkClosed` if the connection is over.

        `number` is the client's own, where it counts; over a WebSocket that is read by `reader` it is the next one.
        A message with a number that was received already, or from a reader that was ended meanwhile, is ignored: its
        client sends it elsewhere. It counts as received when it is handed on, and not before.
        """
        # One at a time: two POSTs at once would otherwise overtake each other behind the wait.
        async with self._feeding:
            if self._may_read is not None:
                await self._wait_until_read(self._may_read)
            if self._receiver is None or self.is_closed:
                raise LinkClosed("the connection has ended")
            # A WebSocket that was replaced: its client sends the message again on the new one, as far as we have not
            # got it.
            if reader is not None:
                if reader.code:
                    return
                number = self.received + 1
            # Sent twice: the client did not get our 202, and cannot know that its message has arrived.
            if number is not None and number <= self.received:
                return
            # Posted again as it was, under the id that is not answered yet: the answer to the first is that to both.
            if message is not None and OPERATION_ID.encode() in frame and self.streams.owes_answer(message):
                return
            if message is not None:
                # Before the link has it: a reply may come in the same step.
                self.streams.expect_answer(message)
            if number is not None:
                self.received = number
            # A link reads lines. JSON has line breaks only between its values, where a space means the same.
            self._receiver.data_received(one_line(frame) + b"\n")

    def reject(self, reader: StreamReader, code: int, reason: str) -> None:
        """Reject a message of the client that was not decoded, with an error without an id; it counts as received."""
        if not reader.code:
            # Counted like one that was handed on: its client goes on with the next number.
            self.received += 1
            error = {"code": code, "message": reason}
            self.main.append(msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error}))

    # -- the link calls these ----------------------------------------------------------------------------------------

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def write(self, data: bytes | memoryview) -> int:
        """Take everything: a stream that is full evicts its oldest messages, and holds its agent before that."""
        if not self.is_closed:
            # The link writes what its outbox has, which may end within a line.
            *lines, self._partial_line = (self._partial_line + bytes(data)).split(b"\n")
            for line in lines:
                if line:
                    self._send(line)
        return len(data)

    def send_update(self, session_id: str, frame: bytes) -> ReplayBuffer | None:
        """Send an update of a session whose frame has no line break. What the link has written stands before it.
        Return the stream, whose reader is told by `flush`; None: the connection is closed."""
        if self.is_closed:
            return None
        buffer = self.streams.of_update(session_id)
        buffer.append(frame, wake=False)
        return buffer

    def pause_reading(self) -> None:
        if self._may_read is None:
            self._may_read = asyncio.Event()

    def resume_reading(self) -> None:
        self._read_on()

    def close_writing(self) -> None:
        """Do nothing: a connection here has no half that could be closed."""

    async def close(self) -> None:
        if self.is_closed:
            return
        # In this order: a message that waits in `feed` goes on, and finds the connection closed.
        self.is_closed = True
        self._read_on()
        self.streams.close()
        if not self.initialize_reply.done():
            # The POST that opened the connection may still wait for it.
            self.initialize_reply.cancel()
        if self._receiver is not None:
            self._receiver.connection_lost(None)

    # -- small steps -------------------------------------------------------------------------------------------------

    async def _wait_until_read(self, may_read: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(_READ_SECONDS):
                await may_read.wait()
        except TimeoutError:
            _log.warning("a client sends faster than its agent reads; a message was refused")
            raise Full from None

    def _read_on(self) -> None:
        may_read, self._may_read = self._may_read, None
        if may_read is not None:
            may_read.set()

    def _send(self, line: bytes) -> None:
        if not self._is_initialized and self.kind != "elephant":
            line = self._on_first_reply(line)
            if self.kind == "http":
                return  # it is the body of the POST, and in no stream
        self.streams.route(line).append(line)

    def _on_first_reply(self, line: bytes) -> bytes:
        """Put the connection's id, and how long it can be resumed, into the reply to `initialize`, which is the first
        thing that is sent: granian drops the header of a WebSocket that has the id too. An error leaves a WebSocket to
        try again, and ends a POST."""
        reply = msgspec.json.decode(line)
        if isinstance(reply.get("result"), dict):
            self._is_initialized = True
            reply["result"]["connectionId"] = self.id
            with_resumable(reply["result"], limits.RECONNECT_SECONDS)
            meta = reply["result"].get("_meta")
            retention = {OPERATION_ID: {"retentionSeconds": int(RETENTION_SECONDS)}}
            reply["result"]["_meta"] = {**(meta if isinstance(meta, dict) else {}), **retention}
            line = msgspec.json.encode(reply)
        if self.kind == "http" and not self.initialize_reply.done():
            self._is_initialized = True
            self.initialize_reply.set_result(line)
        return line

    def _update_readers(self) -> None:
        if not self.readers:
            self.alone_since = self._loop.time()
        if self._on_reader_change is not None:
            self._on_reader_change()
