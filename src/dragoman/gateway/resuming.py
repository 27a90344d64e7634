"""A stream that goes on, in the words of the durable-resumable draft of ACP.

    the draft                                         here
    cursor: `id:` of an event, `_meta["acp/cursor"]`  the number of a message in its `ReplayBuffer`
    `Last-Event-ID`, `stream/resume`                  the position that a reader begins behind
    409, `stream/resume_failed`                       the position is not held any more, or never was
    `state_update` after the replay                   the state of each session as it was when the reader came

Clients of ours send `Dragoman-Resume: gaps`. They count messages themselves, so cursors would be bytes for nothing, and
are told what is lost (`_dragoman/gap`) where others are refused.

This module owns how a message leaves on a stream (`Delivery`) and what `stream/resume` asks for. It reads no socket and
finds no connection.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman import limits
from dragoman.dialects.contract import Id
from dragoman.gateway.envelope import NotAMessage, peek
from dragoman.gateway.headers import number_in
from dragoman.gateway.replay_buffer import BUFFER_BYTES, ReplayBuffer, StreamMessage

CURSOR: Final = "acp/cursor"
RESUME: Final = "stream/resume"
RESUME_FAILED: Final = "stream/resume_failed"
# What a client of ours sends, and its only value.
OURS: Final = b"dragoman-resume"
GAPS: Final = "gaps"
# Where the stream of the connection stands among the cursors of a client; a session stands under its id.
_CONNECTION_KEYS: Final = ("", "connection")
# What a stream holds of messages of four kibibytes; of shorter ones it holds more.
_RETENTION_MESSAGES: Final = BUFFER_BYTES // (4 * limits.KIB)
# Sessions of one connection, as far as their cursors are read.
_CURSORS: Final = 4096

# An object whose values stay as they came.
_members: Final = msgspec.json.Decoder(dict[str, Raw])
# What the encoder of a link writes for nearly every message: the params come last, and are not empty.
_UPDATE: Final = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":'
_UPDATE_SIZE: Final = len(_UPDATE)
_CURSOR_HEAD: Final = b',"_meta":{"acp/cursor":"'
_CURSOR_TAIL: Final = b'"}}}'


class ResumeRefused(Exception):
    """A stream cannot go on where its client wants it to. `reason` is a word for programs."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _ResumeParams(Struct, gc=False):
    connectionId: str | None = None
    cursor: object = None
    cursors: object = None


class _ResumeMessage(Struct, gc=False):
    method: str
    id: int | str | None | UnsetType = UNSET
    params: _ResumeParams = msgspec.field(default_factory=_ResumeParams)


_resume_message: Final = msgspec.json.Decoder(_ResumeMessage)


class ResumeRequest(Struct, frozen=True):
    """A `stream/resume`: the connection it names (empty: none), and the positions in its streams, by session; "" is the
    stream of the connection. `id` is UNSET where it wants no answer."""

    id: Id | UnsetType
    connection_id: str
    positions: dict[str, int]

    def start(self, buffer: ReplayBuffer) -> int:
        """Return the position that the replay begins behind. Raise `ResumeRefused` where `buffer` does not hold it."""
        positions = self.positions.values()
        # A number beyond the newest is one of another stream, or of none: what is behind it cannot be known.
        if not positions or max(positions) > buffer.last:
            raise ResumeRefused("unknown_cursor")
        if not buffer.holds(min(positions)):
            raise ResumeRefused("expired")
        return min(positions)

    def answer(self, received: int, state: str) -> bytes | None:
        """Return the answer to a request that succeeded; None where it wants none. `received` messages of the client
        have arrived."""
        if self.id is UNSET:
            return None
        meta = {"acp/turnState": {"state": state}, "dragoman/received": received}
        return msgspec.json.encode({"jsonrpc": "2.0", "id": self.id, "result": {"_meta": meta}})

    def failures(self, reason: str) -> list[bytes]:
        """Return what tells the client that its streams do not go on."""
        params = {"reason": reason, **({"connectionId": self.connection_id} if self.connection_id else {})}
        frames = [notification(RESUME_FAILED, msgspec.json.encode(params))]
        if self.id is not UNSET:
            error = {"code": -32600, "message": "The stream cannot be resumed", "data": {"reason": reason}}
            frames.append(msgspec.json.encode({"jsonrpc": "2.0", "id": self.id, "error": error}))
        return frames


def resume_request_in(frame: bytes) -> ResumeRequest | None:
    """Return the `stream/resume` that a frame is; None: it is another message. A cursor that cannot be one of ours
    makes a request without positions, which is refused."""
    # A slash may be escaped in JSON, and some libraries do that.
    if b"stream/resume" not in frame and b"stream\\/resume" not in frame:
        return None
    try:
        message = _resume_message.decode(frame)
    except (ValueError, RecursionError, OverflowError):
        return None
    if message.method != RESUME:
        return None
    named = _named_cursors(message.params)
    # A cursor that is none of ours makes the whole request one without positions, which is refused: to resume the other
    # streams alone would lose what this one has missed.
    positions = {"" if key in _CONNECTION_KEYS else key: number for key, number in named if number is not None}
    is_whole = all(number is not None for _, number in named) and len(named) <= _CURSORS
    return ResumeRequest(message.id, message.params.connectionId or "", positions if is_whole else {})


def _named_cursors(params: _ResumeParams) -> list[tuple[str, int | None]]:
    """Return the streams that are named and their numbers; None for a cursor that cannot be one of ours."""
    found: list[tuple[object, object]] = [] if params.cursor is None else [("", params.cursor)]
    match params.cursors:
        case dict() as by_session:
            found += by_session.items()
        case list() as listed:
            found += [(one.get("sessionId") or "", one.get("cursor")) for one in listed if isinstance(one, dict)]
        case _:
            pass
    return [(str(key), number_of(cursor)) for key, cursor in found]


def number_of(cursor: object) -> int | None:
    """Return the number that a cursor stands for; None for what is no cursor of ours."""
    return number_in(cursor) if isinstance(cursor, str) else None


def notification(method: str, params: bytes) -> bytes:
    """Return the frame of a notification whose params are encoded."""
    return msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": Raw(params)})


def with_resumable(result: dict[str, object], seconds: float) -> None:
    """Add to the result of `initialize` that streams can be resumed, and for how long; under the key that capabilities
    have in its version."""
    # An agent that is itself behind a gateway has told of that one's streams: ours are those the client comes back to.
    key = "agentCapabilities" if result.get("protocolVersion") == 1 else "capabilities"
    found = result.get(key)
    capabilities = dict(found) if isinstance(found, dict) else {}
    transport = capabilities.get("transport")
    resumable = {"retentionMessages": _RETENTION_MESSAGES, "retentionSeconds": int(seconds)}
    capabilities["transport"] = {**(transport if isinstance(transport, dict) else {}), "resumable": resumable}
    result[key] = capabilities


class Delivery:
    """How the messages of one stream leave for its reader: with a cursor in each or without, and for a reader that
    resumes, behind what it has missed, with the states of its sessions.

    `until` is the newest message at the time the reader came. `known` are positions by session, "" for the connection,
    that the client has in what is one stream here; a stream it does not name counts as known up to the newest of them.
    """

    def __init__(
        self,
        *,
        cursors: bool,
        until: int = 0,
        states: Sequence[bytes] = (),
        known: dict[str, int] | None = None,
    ) -> None:
        self.cursors: Final = cursors  # put in when a message is written (`with_cursor`)
        self._until = until
        self._states = list(states)
        self._known = known if known is not None and len(known) > 1 else {}
        self._known_until = max(self._known.values(), default=0)

    def before(self, number: int) -> list[StreamMessage]:
        """Return the states, once, if all messages up to `_until` are before a message of this number. They stand in no
        stream, so their number is 0."""
        if not self._states or number <= self._until:
            return []
        states, self._states = self._states, []
        return [StreamMessage(0, frame) for frame in states]

    def messages(self, messages: list[StreamMessage]) -> list[StreamMessage]:
        """Return the messages that leave for these, without their cursors."""
        # Nearly always there is neither: only a reader that has resumed pays for it, until it is live.
        if self._states or self._known_until:
            return self._resumed(messages)
        return messages

    def _resumed(self, messages: list[StreamMessage]) -> list[StreamMessage]:
        found: list[StreamMessage] = []
        for one in messages:
            found += self.before(one.number)
            if not self._is_known(one):
                found.append(one)
        if messages:
            # Also where the last message that was missed ends the batch: the next one may come much later.
            found += self.before(messages[-1].number + 1)
            if messages[-1].number >= self._known_until:
                self._known_until = 0
        return found

    def _is_known(self, message: StreamMessage) -> bool:
        if message.number > self._known_until:
            return False
        try:
            found = peek(message.frame)
        except NotAMessage:
            return False
        # An answer names no session. The client may have counted it to that of its request, and gets it once more.
        return message.number <= self._known.get(found.session_id or "", self._known_until)


# For a reader that counts by itself.
PLAIN: Final = Delivery(cursors=False)


def with_cursor(number: bytes, frame: bytes) -> bytes:
    """Return a message with its number as the cursor, in `_meta` of its params. One without params, and every answer,
    has a `_meta` of its own: a result is what the agent has said."""
    # Text comes by the hundred thousand, so this is written for speed: about a microsecond.
    if frame[:_UPDATE_SIZE] == _UPDATE and frame[-2:] == b"}}" and b'"_meta"' not in frame:
        return frame[:-2] + _CURSOR_HEAD + number + _CURSOR_TAIL
    # Only the two outer objects are decoded: the rest leaves as it came.
    message = _members.decode(frame)
    cursor = Raw(b'"%b"' % number)
    params = message.get("params")
    if params is not None and bytes(params).lstrip()[:1] == b"{":
        message["params"] = _with_meta(_members.decode(params), cursor)
        return msgspec.json.encode(message)
    return msgspec.json.encode({**message, "_meta": {CURSOR: cursor}})


def _with_meta(members: dict[str, Raw], cursor: Raw) -> Raw:
    found = members.get("_meta")
    meta = {} if found is None or bytes(found).lstrip()[:1] != b"{" else _members.decode(found)
    members["_meta"] = Raw(msgspec.json.encode({**meta, CURSOR: cursor}))
    return Raw(msgspec.json.encode(members))
