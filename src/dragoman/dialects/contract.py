"""The contract of a dialect: it hears a wire and gives vocabulary, it is given vocabulary and says it on the wire.

A dialect object belongs to one link and one role, and is a pure state machine: no I/O, no clock. It remembers what
its wire cannot carry (which request id a prompt waits under, which tool calls were announced), and nothing else.
What it hears wrong raises `PeerMistake`; what it cannot say is said as the table in docs/losses.md states.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec
from msgspec import Struct

from dragoman.errors import WireError
from dragoman.vocabulary.asking import Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.wire import envelope

Id: TypeAlias = envelope.Id

# Methods that have types in the schema and that no part of Dragoman serves: a client may send them and a bridge passes
# them on, as extensions.
FORWARDED_PREFIXES: Final = ("providers/", "mcp/", "proxy/")


class NotificationMessage(Struct, frozen=True, gc=False):
    """Out: a notification."""

    method: str
    params: bytes


class ResultMessage(Struct, frozen=True, gc=False):
    """Out: the result of a request of theirs."""

    id: Id
    result: bytes


class ErrorMessage(Struct, frozen=True, gc=False):
    """Out: a request of theirs failed."""

    id: Id
    error: WireError


Out = NotificationMessage | ResultMessage | ErrorMessage


class SessionEvent(NamedTuple):
    """In: an event of a session."""

    session_id: str
    event: AnyEvent


DecodedNotification = SessionEvent | Note


class RequestMessage(Struct, frozen=True, gc=False):
    """Out: a request of ours. Where the wire answers late what the vocabulary answers early, `early` is that answer."""

    method: str
    params: bytes
    early: Reply | None = None
    events: Sequence[SessionEvent] = ()


class DecodedReply(Struct, frozen=True, gc=False):
    """In: the answer to a request of ours, and what it tells besides. No reply: it was given early."""

    reply: Reply | None
    events: Sequence[SessionEvent] = ()


class Dialect(Protocol):
    """One link's way of speaking, for one role."""

    # Requests that pass the in-flight limit, because they end work instead of starting it.
    unlimited: frozenset[str]
    # Whether `"id": null` is a request on this wire.
    null_ids: bool
    # Whether a prompt is answered when its turn ends. Otherwise it is answered when it is accepted, and the turn goes
    # on without a request that could name it.
    replies_to_prompt_at_turn_end: bool
    # Stands in every id that is made up here, so that two processes do not make the same ones.
    salt: str

    def decode_request(self, id: Id, method: str, params: msgspec.Raw) -> Request | Note: ...

    def events_at_request(self, request: Request) -> Sequence[SessionEvent]:
        """Return the events that the peer's request implies: some wires do not send that a turn waits for the user."""

    def events_at_reply(self, request: Request) -> Sequence[SessionEvent]:
        """Return the events that the reply to this request implies."""

    def decode_notification(self, method: str, params: msgspec.Raw) -> Sequence[DecodedNotification]: ...

    def decode_text_update(self, frame: bytes) -> tuple[str, AnyEvent] | None:
        """A whole frame that is a plain text chunk, in one decode; None for anything else."""

    def decode_cancel(self, id: Id) -> Note | None:
        """The peer gave up on its request `id`. A note: what that means here; None: cancel the request's handler."""

    def decode_reply(self, request: Request, result: msgspec.Raw) -> DecodedReply: ...

    def decode_failure(self, request: Request, error: WireError) -> DecodedReply | None:
        """Our request failed. None: it failed; a `DecodedReply`: on this wire that is an answer after all."""

    def encode_request(self, request: Request) -> RequestMessage: ...

    def encode_reply(self, id: Id, request: Request, reply: Reply) -> Sequence[Out]: ...

    def encode_failure(self, id: Id, request: Request, error: WireError) -> Sequence[Out]: ...

    def encode_event(self, session_id: str, event: AnyEvent) -> Sequence[Out]: ...

    def text_frame(self, session_id: str, kind: str, message_id: str) -> tuple[bytes, ...]:
        """What stands before and after the JSON string of a text chunk: the one event that comes by the 100,000.

        Three parts: the text stands there twice. None: this wire does not tell such text.
        """

    def encode_notification(self, note: Note) -> Sequence[Out]: ...
