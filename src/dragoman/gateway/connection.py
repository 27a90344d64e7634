"""One client's connection as the agent's side sees it: a transport that outlives the sockets it is reached by.

Over HTTP what is said goes to the stream of its session, or to the connection's own; over a WebSocket, and for
clients of the elephant dialect, everything goes to one. Nothing is ever refused for want of room: a stream keeps its
last messages and says what it had to let go.

Where a client asks something of a session whose stream it never opened, it is one that has a single stream: that
session's messages come on the connection's stream for as long as the client waits for an answer, or opens the other.
"""

import asyncio
import secrets
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from dragoman import limits
from dragoman.dialects.contract import Id
from dragoman.errors import LinkClosed
from dragoman.gateway.budget import ByteBudget
from dragoman.gateway.envelope import Envelope, NotAMessage, peek
from dragoman.gateway.guard import TokenIdentity
from dragoman.gateway.replay_buffer import BUFFER_BYTES, GONE, ReplayBuffer, StreamPosition, StreamReader
from dragoman.transports.contract import Receiver
from dragoman.wire.framing import one_line

Kind = Literal["http", "websocket", "elephant"]

# Sessions with a stream of their own in one connection.
STREAMS: Final = 256
# What all streams of one connection keep together; with many of them each keeps less.
HELD_BYTES: Final = 16 * limits.MIB
# Sessions that had a stream, whose numbers go on if they have one again; past this the oldest are forgotten.
_PLACES: Final = 4096
# Questions of ours whose answers are still taken; past this the oldest are forgotten.
_ASKED: Final = 4096
# A client that does not stop asking is not read for so long at most; then its message is refused.
_READ_SECONDS: Final = 30.0


class Full(Exception):
    """The connection takes no more now."""


class GatewayConnection:
    """A `Transport` for a link in the role of the agent. `principal` and `scopes` are those of the token."""

    def __init__(
        self,
        kind: Kind,
        token_identity: TokenIdentity,
        on_sent: Callable[[float], None] | None = None,
        held: ByteBudget | None = None,
    ) -> None:
        self.id: Final = secrets.token_hex(16)
        self.kind: Final = kind
        self.token_identity = token_identity  # what it was opened by; the newest cookie, where there were several
        self._on_sent = on_sent
        self._held = held
        self.main: Final = ReplayBuffer(self._on_reader_change, on_sent=on_sent, held=held)
        self.session_buffers: Final[dict[str, ReplayBuffer]] = {}
        self.names_sessions = False  # it has used Acp-Session-Id
        self.version = 0
        self.received = 0  # messages that came in, as the client counts them
        self.on_reader_change = _nothing
        self.is_open: Callable[[str], bool] = _is_open  # whether a session of its client is
        self.closed = False
        self._loop = asyncio.get_running_loop()
        self.opened_at: Final = self._loop.time()
        self.alone_since = self.opened_at
        self.hello: asyncio.Future[bytes] = self._loop.create_future()
        self._greeted = False
        self._receiver: Receiver | None = None
        self._rest = b""
        self._on_main: set[str] = set()
        self._places: dict[str, StreamPosition] = {}  # of session_buffers whose stream was let go
        self._waiting: dict[Id, str] = {}  # requests of theirs that belong to a session
        self._asked: dict[Id, None] = {}  # requests of ours
        self._reading = asyncio.Event()
        self._reading.set()
        self._feeding = asyncio.Lock()

    # -- who reads ---------------------------------------------------------------------------------------------------

    @property
    def readers(self) -> int:
        """Return how many of its streams have a reader."""
        return (self.main.reader is not None) + sum(w.reader is not None for w in self.session_buffers.values())

    @property
    def dialect(self) -> str:
        """The dialect its client speaks by name; empty where the version decides."""
        return "elephant" if self.kind == "elephant" else ""

    def buffer_of(self, session_id: str) -> ReplayBuffer:
        """Where a session's messages go now."""
        if self.kind != "http" or session_id in self._on_main:
            return self.main
        return self.session_buffers.get(session_id, self.main)

    def stream(self, session_id: str) -> ReplayBuffer:
        """The stream of a session."""
        buffer = self.session_buffers.get(session_id)
        if buffer is None:
            if len(self.session_buffers) >= STREAMS:
                self._evict_stream()
            place = self._places.pop(session_id, None)
            buffer = ReplayBuffer(self._on_reader_change, on_sent=self._on_sent, held=self._held, place=place)
            self.session_buffers[session_id] = buffer
            share = min(BUFFER_BYTES, HELD_BYTES // (len(self.session_buffers) + 1))
            for each in (self.main, *self.session_buffers.values()):
                each.limit = share
        return buffer

    def opened(self, session_id: str) -> None:
        """Note that the stream of this session has a reader: its messages go there from now on, unless a request of
        the session is still to be answered on the main stream."""
        if session_id not in self._waiting.values():
            self._on_main.discard(session_id)

    def forget(self, session_id: str) -> None:
        """The session is over. Its client may come back to it, with a number; so numbers go on."""
        buffer = self.session_buffers.pop(session_id, None)
        if buffer is not None:
            buffer.close(GONE)
            buffer.release()
            if buffer.last:
                self._places[session_id] = buffer.place
            if len(self._places) > _PLACES:
                del self._places[next(iter(self._places))]
        self._on_main.discard(session_id)

    # -- what the client says ----------------------------------------------------------------------------------------

    def was_asked(self, id: Id) -> bool:
        """Whether we have asked this client something under this id."""
        return id in self._asked

    def expect(self, message: Envelope) -> None:
        """A message is about to be heard: its answer, if it wants one, goes where its session's messages go."""
        session_id = message.session_id
        if self.kind != "http" or session_id is None or message.method.startswith("$/"):
            return
        buffer = self.stream(session_id)
        if not buffer.opened and message.is_request:
            self._on_main.add(session_id)
            for frame in buffer.drain():
                self.main.put(frame)
        if message.is_request:
            self._waiting[message.id] = session_id

    async def feed(
        self,
        frame: bytes,
        message: Envelope | None = None,
        *,
        number: int | None = None,
        reader: StreamReader | None = None,
    ) -> None:
        """A message of the client. Waits while the agent's side does not read; `Full` if it does not begin to.

        `number` is the client's own, where it counts; over a WebSocket that is read by `reader` it is the next one.
        What came before, or from a reader that was ended meanwhile, is not heard: its client will say it elsewhere.
        It has arrived when it is handed on, and not before.
        """
        async with self._feeding:
            try:
                async with asyncio.timeout(_READ_SECONDS):
                    await self._reading.wait()
            except TimeoutError:
                raise Full from None
            if self._receiver is None or self.closed:
                raise LinkClosed("the connection has ended")
            if reader is not None:
                if reader.code:
                    return
                number = self.received + 1
            if number is not None and number <= self.received:
                return
            if message is not None:
                self.expect(message)
            if number is not None:
                self.received = number
            self._receiver.data_received(one_line(frame) + b"\n")

    def refuse(self, reader: StreamReader, code: int, reason: str) -> None:
        """A message of the client is not even looked at; it counts as one all the same."""
        if not reader.code:
            self.received += 1
            error = {"code": code, "message": reason}
            self.main.put(msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error}))

    # -- the link calls these ----------------------------------------------------------------------------------------

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def write(self, data: bytes | memoryview) -> int:
        if not self.closed:
            *lines, self._rest = (self._rest + bytes(data)).split(b"\n")
            for line in lines:
                if line:
                    self._say(line)
        return len(data)

    def pause_reading(self) -> None:
        self._reading.clear()

    def resume_reading(self) -> None:
        self._reading.set()

    def close_writing(self) -> None:
        """There is no half of a connection here."""

    async def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._reading.set()
        for buffer in (self.main, *self.session_buffers.values()):
            buffer.close(GONE)
            buffer.release()
        if not self.hello.done():
            self.hello.cancel()
        if self._receiver is not None:
            self._receiver.connection_lost(None)

    # -- small steps -------------------------------------------------------------------------------------------------

    def _say(self, line: bytes) -> None:
        if not self._greeted and self.kind != "elephant":
            line = self._greet(line)
            if self.kind == "http":
                return
        if self.kind == "websocket":
            self.main.put(line)
        else:
            self._buffer_for(line).put(line)

    def _greet(self, line: bytes) -> bytes:
        """The first thing we say answers `initialize`; it names the connection, where it was made."""
        answer = msgspec.json.decode(line)
        if isinstance(answer.get("result"), dict):
            self._greeted = True
            answer["result"]["connectionId"] = self.id
            line = msgspec.json.encode(answer)
        if self.kind == "http" and not self.hello.done():
            self._greeted = True
            self.hello.set_result(line)
        return line

    def _buffer_for(self, line: bytes) -> ReplayBuffer:
        try:
            message = peek(line)
        except NotAMessage:
            return self.main
        if message.method:
            session_id = message.session_id
            if message.is_request:
                self._asked[message.id] = None
                if len(self._asked) > _ASKED:
                    del self._asked[next(iter(self._asked))]
        else:
            session_id = self._waiting.pop(message.id, None)
        if session_id is None or self.kind == "elephant":
            return self.main
        try:
            buffer = self.stream(session_id)
        except Full:
            return self.main
        if session_id not in self._on_main:
            return buffer
        if buffer.opened and session_id not in self._waiting.values():
            self._on_main.discard(session_id)  # from the next message on
        return self.main

    def _evict_stream(self) -> None:
        """Forget one stream: the oldest without a reader that is empty or whose session is closed; else the oldest
        whose session is closed, though it has a reader; else raise `Full`. A session with a request that is not
        answered yet does not count as closed."""
        waited_for = set(self._waiting.values())
        over = [name for name in self.session_buffers if not self.is_open(name) and name not in waited_for]
        unread = [name for name, buffer in self.session_buffers.items() if buffer.reader is None]
        for name in (*(name for name in unread if name in over or not self.session_buffers[name].size), *over):
            self.forget(name)
            return
        raise Full

    def _on_reader_change(self) -> None:
        if not self.readers:
            self.alone_since = self._loop.time()
        self.on_reader_change()


def _is_open(session_id: str) -> bool:
    """Default `is_open` callback: every session counts as open."""
    return True


def _nothing() -> None:
    """Default `on_room` callback: do nothing."""
