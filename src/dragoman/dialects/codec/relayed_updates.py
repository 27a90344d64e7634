"""Updates that are passed on as they came, between two links that speak the same dialect: tool calls, plans, terminals.

A relay has to know of such an update for which session it is and of which kind; the rest is for its reader. So it is
looked through once (`read_update`): each key is there once, at every depth, there is nothing but a session, an update
and its `_meta`, and all of it is as the schema has it, because what a peer writes against the schema is mended on the
long way. Its bytes then pass, in params for the reader's own id of the session. Kinds that change what a relay knows
(states, options, commands, costs) are not among them.

That no key is there twice is proven by its bytes: decoded into plain values and encoded again, compact or with the
spaces that Python's `json` writes, it has to be what came. A repeated key would be gone. What is written in another way
takes the long way.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec
from msgspec import Raw

from dragoman.errors import PeerError
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import ClientCapabilities
from dragoman.wire.framing import one_line

_NEEDED: Final = frozenset({"sessionId", "update"})
_MEMBERS: Final = _NEEDED | {"_meta"}
# What an update takes in memory beside its bytes, about.
_OVERHEAD: Final = 512

DecodeParams = Callable[[Raw], AnyEvent | None]


class Speech(msgspec.Struct, frozen=True, eq=False, gc=False):
    """What an update means between two links: objects of equal content are one object, compared by identity."""

    dialect: str
    client: bytes


_speeches: Final[dict[tuple[str, bytes], Speech]] = {}
# Of one process; clients differ in little. Past this a further one is spoken to the long way.
_SPEECHES: Final = 1024


def speech(dialect: str, client: ClientCapabilities | None = None) -> Speech | None:
    """Return how a dialect is spoken, where it depends on it to a client with these capabilities."""
    key = dialect, b"" if client is None else repr(client).encode()
    found = _speeches.get(key)
    if found is None and len(_speeches) < _SPEECHES:
        found = _speeches[key] = Speech(*key)
    return found


class _Call(msgspec.Struct, rename="camel", gc=False):
    tool_call_id: str = ""
    status: str | None = None


class _Params(msgspec.Struct, gc=False):
    update: _Call


# Checked against the schema before, so both are what they have to be.
_decode_call: Final = msgspec.json.Decoder(_Params).decode


class RelayedUpdate:
    """An update as it came. `kind` is its name on the wire, `session_id` the sender's id of the session."""

    __slots__ = ("_decode", "_event", "_params", "_rest", "kind", "session_id", "size", "speech")

    def __init__(
        self, speech: Speech, session_id: str, kind: str, params: Raw, rest: bytes, decode: DecodeParams
    ) -> None:
        self.speech: Final = speech
        self.session_id: Final = session_id
        self.kind: Final = kind
        self.size: Final = len(params) + _OVERHEAD
        self._params = params
        self._rest = rest
        self._decode = decode
        self._event: AnyEvent | None = None

    def __repr__(self) -> str:
        return f"<RelayedUpdate {self.kind} size={self.size}>"

    def frame(self, session_id: str) -> bytes:
        """Return the whole frame, without its delimiter, for a reader that calls the session `session_id`."""
        named = msgspec.json.encode(session_id)
        return b"".join((_HEAD, named, self._rest, b"}}"))

    def tool_call(self) -> tuple[str, str]:
        """Return the id and the status of the tool call that it is about, without decoding the rest; empty: it has
        none."""
        call = _decode_call(self._params).update
        return call.tool_call_id, call.status or ""

    def event(self) -> AnyEvent | None:
        """Return the event that the long way would have made of it; None if it has none. Decoded once."""
        if self._event is None:
            try:
                self._event = self._decode(self._params)
            except PeerError:
                return None
        return self._event


_HEAD: Final = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":'


class Relays(Protocol):
    """Tells of an update whether it may pass as it came now, and notes that it has."""

    def __call__(self, session_id: str, kind: str) -> bool: ...


def read_update(
    params: Raw, spoken: Speech | None, relays: Relays, check: Callable[[Raw], Any], decode: DecodeParams
) -> RelayedUpdate | None:
    """Return an update that may pass as it came; None for any other.

    `check` raises `ValueError` for params that are against the schema, `decode` makes the event of them.
    """
    if spoken is None:
        return None
    try:
        body = _decode_body(params)
        came, plain = bytes(params), _encode(body)
        if plain != came and msgspec.json.format(plain, indent=0) != came:
            return None
        check(params)
    except (ValueError, RecursionError, OverflowError):
        return None
    if not _NEEDED <= body.keys() <= _MEMBERS or not relays(body["sessionId"], body["update"]["sessionUpdate"]):
        return None
    parts = _decode_parts(params)
    rest = b',"update":' + bytes(parts.update)
    if "_meta" in body:
        rest += b',"_meta":' + bytes(parts.meta)
    return RelayedUpdate(spoken, parts.session_id, body["update"]["sessionUpdate"], params, one_line(rest), decode)


class _Parts(msgspec.Struct, gc=False):
    session_id: str = msgspec.field(name="sessionId")
    update: Raw
    meta: Raw = msgspec.field(name="_meta", default=Raw(b"null"))


_decode_parts: Final = msgspec.json.Decoder(_Parts).decode


_decode_body: Final = msgspec.json.Decoder(dict[str, Any]).decode
_encode: Final = msgspec.json.Encoder().encode
