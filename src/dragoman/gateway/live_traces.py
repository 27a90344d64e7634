"""What passes in a session that is open, for an operator who follows it: lines of a trace, while they come.

Messages are encoded anew, as version 2 has them: a session may have clients of both versions, and the agent one of its
own. Secrets of known forms are taken out, as in every trace. A session that is not followed costs one look into a dict.

Promises
- Only a token with `admin`, and without limits of its own, may follow: it sees sessions of every principal.
- A follower that does not read holds up no session: what it misses is counted, and said.
"""

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec

from dragoman import limits
from dragoman.dialects import dialect_for
from dragoman.dialects.contract import ErrorMessage, NotificationMessage, Out, ResultMessage
from dragoman.errors import PeerError, UsageError, wire_error
from dragoman.trace.records import (
    TO_AGENT,
    TO_CLIENT,
    Direction,
    TraceFrame,
    TraceHeader,
    TraceNote,
    encode_frame,
    encode_header,
    encode_note,
)
from dragoman.trace.redaction import redact_frame
from dragoman.vocabulary.asking import Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentCapabilities, AgentHello, ClientCapabilities, ClientHello


def _switches(kind: type[msgspec.Struct]) -> list[str]:
    """Return the fields of a struct that are true or false."""
    return [field.name for field in msgspec.structs.fields(kind) if field.type is bool]


# Of one server; each session that is followed is encoded once more.
FOLLOWERS: Final = 16
# What waits for one follower; beyond that lines are dropped until it has read some.
WAITING_BYTES: Final = 4 * limits.MIB
# Both can do everything: what passes was permitted where it passed.
_CLIENT: Final = ClientHello(
    msgspec.structs.replace(ClientCapabilities(), **dict.fromkeys(_switches(ClientCapabilities), True))
)
_AGENT: Final = AgentHello(
    None, msgspec.structs.replace(AgentCapabilities(), **dict.fromkeys(_switches(AgentCapabilities), True))
)


class TraceFollowing:
    """One follower of one session. `read` returns what has come; None: the session has ended."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque([_header()])
        self._size = 0
        self._dropped = 0
        self._has_ended = False
        self._news = asyncio.Event()
        self._news.set()

    def __repr__(self) -> str:
        return f"<TraceFollowing waiting={self._size} dropped={self._dropped}>"

    def put(self, line: bytes) -> None:
        """Append a line, or count it as dropped."""
        # The newest line is dropped and not one that waits: so what is missing has one place, and that is where the
        # note comes.
        if self._size + len(line) > WAITING_BYTES:
            self._dropped += 1
            return
        self._append(line)

    def end(self) -> None:
        """Note that the session has ended."""
        # Past the bound, by two short lines: behind the end no line comes that could have the count.
        self._append(_note(event="the session has ended here"))
        self._has_ended = True

    def _append(self, line: bytes) -> None:
        if self._dropped:
            # In the place of what is missing: the reader of a trace takes lines for what passed in this order.
            line = _note(event=f"{self._dropped} messages were dropped: this follower did not read") + line
            self._dropped = 0
        self._size += len(line)
        self._lines.append(line)
        self._news.set()

    async def read(self) -> bytes | None:
        """Wait for lines, and return all that there are."""
        while not self._lines:
            if self._has_ended:
                return None
            self._news.clear()
            await self._news.wait()
        lines = b"".join(self._lines)
        self._lines.clear()
        self._size = 0
        return lines


class _FollowedSession:
    """A session with at least one follower."""

    def __init__(self, session_id: str) -> None:
        self.followers: list[TraceFollowing] = []
        self._id = session_id
        # Dialects of its own: they remember what they have encoded, so one of a live link would send other messages
        # then.
        self._agent = dialect_for(2, "agent", _CLIENT, _AGENT)
        self._client = dialect_for(2, "client", _CLIENT, _AGENT)
        self._numbers = itertools.count(1)
        self._began_at = time.monotonic()

    def on_event(self, event: AnyEvent) -> None:
        self._put(TO_CLIENT, None, self._agent.encode_event(self._id, event))

    def on_note(self, direction: Direction, note: Note) -> None:
        side = self._client if direction == TO_AGENT else self._agent
        self._put(direction, None, side.encode_notification(note))

    def on_request(self, direction: Direction, request: Request) -> int:
        side = self._client if direction == TO_AGENT else self._agent
        # A number of the trace: clients may use one id twice, and the agent knows the request by another.
        number = next(self._numbers)
        message = side.encode_request(request)
        self._write(direction, {"id": number, "method": message.method, "params": msgspec.Raw(message.params)})
        return number

    def on_reply(self, direction: Direction, number: int, request: Request, reply: Reply) -> None:
        side = self._client if direction == TO_AGENT else self._agent
        self._put(direction, number, side.encode_reply(number, request, reply))

    def on_failure(self, direction: Direction, number: int, error: Exception) -> None:
        self._put(direction, number, [ErrorMessage(number, wire_error(error))])

    def _put(self, direction: Direction, number: int | None, outs: Sequence[Out]) -> None:
        for out in outs:
            match out:
                case NotificationMessage():
                    self._write(direction, {"method": out.method, "params": msgspec.Raw(out.params)})
                case ResultMessage():
                    self._write(direction, {"id": number, "result": msgspec.Raw(out.result)})
                case ErrorMessage():
                    error = {"code": out.error.code, "message": out.error.message}
                    self._write(direction, {"id": number, "error": error})

    def _write(self, direction: Direction, message: dict[str, object]) -> None:
        found = redact_frame(msgspec.json.encode({"jsonrpc": "2.0", **message}))
        elapsed = time.monotonic() - self._began_at
        frame = TraceFrame(0, _now(), "1", direction, found.text.encode(), elapsed, is_redacted=found.is_changed)
        line = encode_frame(frame)
        for follower in self.followers:
            follower.put(line)


class LiveTraces:
    """The sessions of a server that are followed, by the ids that clients know."""

    def __init__(self) -> None:
        self.sessions: Final[dict[str, _FollowedSession]] = {}

    def __repr__(self) -> str:
        return f"<LiveTraces sessions={len(self.sessions)} followers={self.followers}>"

    @property
    def followers(self) -> int:
        """Return how many there are."""
        return sum(len(one.followers) for one in self.sessions.values())

    @contextmanager
    def follow(self, session_id: str) -> Iterator[TraceFollowing]:
        """Follow a session for as long as the block runs."""
        followed = self.sessions.setdefault(session_id, _FollowedSession(session_id))
        follower = TraceFollowing()
        followed.followers.append(follower)
        try:
            yield follower
        finally:
            followed.followers.remove(follower)
            # By identity: the session may have ended, and another of this id have followers already.
            if not followed.followers and self.sessions.get(session_id) is followed:
                del self.sessions[session_id]

    def on_event(self, session_id: str, event: AnyEvent) -> None:
        """Write an event of the agent, if its session is followed."""
        if (followed := self.sessions.get(session_id)) is not None:
            followed.on_event(event)

    def on_note(self, session_id: str, direction: Direction, note: Note) -> None:
        """Write a notification."""
        if (followed := self.sessions.get(session_id)) is not None:
            followed.on_note(direction, note)

    @contextmanager
    def exchange(self, session_id: str | None, direction: Direction, request: Request) -> "Iterator[list[Reply]]":
        """Write a request, and in the other direction the reply that the block puts into the list, or the error that it
        raises."""
        # Looked up once: where a session is followed only later, the reply would answer nothing in the trace.
        followed = self.sessions.get(session_id or "")
        if followed is None:
            yield []
            return
        try:
            number = followed.on_request(direction, request)
        except (PeerError, UsageError):  # version 2 has no word for it
            yield []
            return
        replies: list[Reply] = []
        back: Direction = TO_CLIENT if direction == TO_AGENT else TO_AGENT
        try:
            yield replies
        except Exception as error:  # a cancelled wait has no answer
            followed.on_failure(back, number, error)
            raise
        for reply in replies:
            followed.on_reply(back, number, request, reply)

    def on_end(self, session_id: str) -> None:
        """Note that a session has ended here."""
        if (followed := self.sessions.pop(session_id, None)) is not None:
            for follower in list(followed.followers):
                follower.end()


def _header() -> bytes:
    return encode_header(TraceHeader(_now(), connections=1, is_redacted=True, program="dragoman serve"))


def _note(**fields: object) -> bytes:
    return encode_note(TraceNote(0, _now(), "1", "process", fields))


def _now() -> int:
    return time.time_ns() // 1_000_000
