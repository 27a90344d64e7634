"""Which stream of a connection a message goes to.

Over a WebSocket, and for clients of the elephant dialect, everything goes to one stream. Over HTTP a message of a
session goes to the stream of that session, anything else to the connection's own (`main`). Nothing is ever refused for
want of room: a stream keeps its last messages and reports what it had to evict.

Some HTTP clients know a single stream: they send requests about a session whose stream they never open. Such a session
is on `main` (`_on_main`) from its first request for as long as the client waits for an answer, or opens the other
stream. So its messages are in one of the two, in order, and never in both.

    request of a session, its stream never opened  ──►  on main; what waited in the stream moves there
    its stream gets a reader, no answer is owed     ──►  off main, from the next message on
"""

from collections.abc import Callable
from typing import Final, Literal

from dragoman import limits
from dragoman.dialects.contract import Id
from dragoman.gateway.budget import ByteBudget
from dragoman.gateway.envelope import Envelope, NotAMessage, peek
from dragoman.gateway.replay_buffer import BUFFER_BYTES, GONE, ReplayBuffer, StreamPosition

Kind = Literal["http", "websocket", "elephant"]

# Sessions with a stream of their own in one connection.
STREAMS: Final = 256
# What all streams of one connection keep together; with many of them each keeps less.
HELD_BYTES: Final = 16 * limits.MIB
# Sessions that had a stream, whose numbers go on if they have one again; past this the oldest are evicted.
_POSITIONS: Final = 4096
# Requests of ours whose answers are still accepted; past this the oldest are evicted.
_SENT_REQUESTS: Final = 4096


class Full(Exception):
    """There is no room for one more now: a connection, a stream, a message, a subscriber."""


class SessionStreams:
    """The streams of one connection. `on_reader_change` and `on_sent` are those of `ReplayBuffer`."""

    def __init__(
        self,
        kind: Kind,
        on_reader_change: Callable[[], None],
        on_sent: Callable[[float], None] | None = None,
        budget: ByteBudget | None = None,
    ) -> None:
        self.main: Final = ReplayBuffer(on_reader_change, on_sent=on_sent, budget=budget)
        self.is_open: Callable[[str], bool] = _is_open  # whether a session of the client is open
        self._kind = kind
        self._on_reader_change = on_reader_change
        self._on_sent = on_sent
        self._budget = budget
        self._by_session: dict[str, ReplayBuffer] = {}
        self._on_main: set[str] = set()
        self._positions: dict[str, StreamPosition] = {}  # of sessions whose stream was removed
        self._request_sessions: dict[Id, str] = {}  # unanswered requests of the client that belong to a session
        self._sent_requests: dict[Id, None] = {}  # requests of ours, the oldest first

    def __repr__(self) -> str:
        return f"<SessionStreams sessions={len(self._by_session)} on_main={len(self._on_main)} readers={self.readers}>"

    @property
    def readers(self) -> int:
        """Return how many streams have a reader."""
        return sum(buffer.reader is not None for buffer in self.all())

    def all(self) -> list[ReplayBuffer]:
        """Return the buffers of all streams, `main` first."""
        return [self.main, *self._by_session.values()]

    def newest(self) -> dict[str, int]:
        """Return the number of the newest message of each stream, by session; "" is `main`."""
        return {"": self.main.last, **{session_id: buffer.last for session_id, buffer in self._by_session.items()}}

    def buffer_of(self, session_id: str) -> ReplayBuffer:
        """Return the buffer that a session's messages go to now."""
        if self._kind != "http" or session_id in self._on_main:
            return self.main
        return self._by_session.get(session_id, self.main)

    def of_session(self, session_id: str) -> ReplayBuffer:
        """Return the stream of a session, a new one if it has none. Raise `Full` if no other one can be evicted."""
        buffer = self._by_session.get(session_id)
        if buffer is None:
            if len(self._by_session) >= STREAMS:
                self._evict_one()
            position = self._positions.pop(session_id, None)
            buffer = ReplayBuffer(self._on_reader_change, on_sent=self._on_sent, budget=self._budget, position=position)
            self._by_session[session_id] = buffer
            # Each stream may hold less with every further one, and gets no more back: a client with many sessions had
            # them all open.
            share = min(BUFFER_BYTES, HELD_BYTES // (len(self._by_session) + 1))
            for each in self.all():
                each.limit = share
        return buffer

    def on_stream_opened(self, session_id: str) -> None:
        """Note that the stream of this session has a reader: its messages go there from now on, unless a request of
        the session is still to be answered on `main`."""
        if session_id not in self._request_sessions.values():
            self._on_main.discard(session_id)

    def remove(self, session_id: str) -> None:
        """Remove the stream of a session that is over. Its client may come back to the session, and name the number of
        its last message; so the numbers go on where they were."""
        buffer = self._by_session.pop(session_id, None)
        if buffer is not None:
            buffer.close(GONE)
            buffer.release()
            if buffer.last:
                self._positions[session_id] = buffer.position
            limits.evict_oldest(self._positions, _POSITIONS)
        self._on_main.discard(session_id)

    def close(self) -> None:
        """End every reader, and release what the streams hold."""
        for buffer in self.all():
            buffer.close(GONE)
            buffer.release()

    # -- routing -----------------------------------------------------------------------------------------------------

    def was_sent(self, id: Id) -> bool:
        """Return whether we have sent the client a request under this id."""
        return id in self._sent_requests

    def owes_answer(self, message: Envelope) -> bool:
        """Return whether a message is a request whose id is that of a request of its session without an answer."""
        return message.is_request and self._request_sessions.get(message.id, "") == message.session_id

    def expect_answer(self, message: Envelope) -> None:
        """Prepare for a message of the client, before it is received: the answer to a request goes where the messages
        of its session go. A notification of the protocol itself (`$/`) has none."""
        session_id = message.session_id
        if self._kind != "http" or session_id is None or message.method.startswith("$/"):
            return
        buffer = self.of_session(session_id)
        if not buffer.was_opened and message.is_request:
            self._on_main.add(session_id)
            # What came before the client asked anything, options for instance, is not lost with the stream that it
            # never opens.
            for frame in buffer.drain():
                self.main.append(frame)
        if message.is_request:
            self._request_sessions[message.id] = session_id

    def route(self, frame: bytes) -> ReplayBuffer:
        """Return the buffer for a message to the client."""
        if self._kind == "websocket":
            return self.main
        try:
            message = peek(frame)
        except NotAMessage:
            return self.main
        if message.method:
            session_id = message.session_id
            if message.is_request:
                self._sent_requests[message.id] = None
                limits.evict_oldest(self._sent_requests, _SENT_REQUESTS)
        else:
            session_id = self._request_sessions.pop(message.id, None)
        return self.main if session_id is None else self.of_update(session_id)

    def of_update(self, session_id: str) -> ReplayBuffer:
        """Return the buffer for a message to the client that belongs to this session."""
        if self._kind != "http":
            return self.main
        try:
            buffer = self.of_session(session_id)
        except Full:
            return self.main
        if session_id not in self._on_main:
            return buffer
        if buffer.was_opened and session_id not in self._request_sessions.values():
            self._on_main.discard(session_id)  # from the next message on: this one answers on the stream of its request
        return self.main

    def _evict_one(self) -> None:
        """Remove one stream: the oldest without a reader that is empty or whose session is closed; else the oldest
        whose session is closed, though it has a reader; else raise `Full`. A session with a request that is not
        answered yet does not count as closed."""
        awaited = set(self._request_sessions.values())
        closed = [name for name in self._by_session if not self.is_open(name) and name not in awaited]
        unread = [name for name, buffer in self._by_session.items() if buffer.reader is None]
        for name in (*(name for name in unread if name in closed or not self._by_session[name].size), *closed):
            self.remove(name)
            return
        raise Full


def _is_open(session_id: str) -> bool:
    """Default `is_open` callback: every session counts as open."""
    return True
