"""The contract of a dialect: it decodes messages of one wire into vocabulary, and encodes vocabulary as messages.

A dialect object belongs to one link and one role, and is a pure state machine: no I/O, no clock. It remembers what
its wire cannot carry (which request id a prompt waits under, which tool calls were announced), and nothing else.
A message that it cannot decode raises `PeerMistake`; what it cannot encode is sent as docs/losses.md states.

The link calls it in the order of the wire: every method returns at once, and what it returns is sent or handed up
before the next message is decoded. So a dialect may rely on the order in which it is called.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

import msgspec
from msgspec import Struct

from dragoman.errors import WireError
from dragoman.vocabulary.asking import Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent, Chunk
from dragoman.wire import envelope

if TYPE_CHECKING:
    from dragoman.dialects.codec.relayed_updates import RelayedUpdate, Speech

Id: TypeAlias = envelope.Id

# Methods that have types in the schema and none in the vocabulary: a client may send them and a bridge passes them on,
# as extensions. Served is `mcp/message` alone (`vocabulary/mcp_messages`), whose insides are another protocol's.
FORWARDED_PREFIXES: Final = ("providers/", "mcp/", "proxy/")


class NotificationMessage(Struct, frozen=True, gc=False):
    """Out: a notification; empty params are left out."""

    method: str
    params: bytes


class ResultMessage(Struct, frozen=True, gc=False):
    """Out: the result of a request of the peer."""

    id: Id
    result: bytes


class ErrorMessage(Struct, frozen=True, gc=False):
    """Out: an error as the answer to a request of the peer."""

    id: Id
    error: WireError


Out = NotificationMessage | ResultMessage | ErrorMessage


class SessionEvent(NamedTuple):
    """In: an event of a session."""

    session_id: str
    event: AnyEvent


DecodedNotification = SessionEvent | Note


class RequestMessage(Struct, frozen=True, gc=False):
    """Out: a request of ours.

    `immediate_reply` is the vocabulary's reply, where the wire answers later than that: a v1 prompt is answered at the
    end of its turn, and counts as accepted when it is sent. `events` are those that sending it implies.
    """

    method: str
    params: bytes
    immediate_reply: Reply | None = None
    events: Sequence[SessionEvent] = ()


class DecodedReply(Struct, frozen=True, gc=False):
    """In: the answer to a request of ours, and the events that it implies.

    `reply` is None where it was given when the request was sent (`RequestMessage.immediate_reply`).
    """

    reply: Reply | None
    events: Sequence[SessionEvent] = ()


class Dialect(Protocol):
    """The decoder and encoder of one link, in one role."""

    # Requests that pass the in-flight limit, because they end work instead of starting it.
    unlimited: frozenset[str]
    # Whether `"id": null` is a request on this wire.
    null_ids: bool
    # Whether a prompt is answered when its turn ends. Otherwise it is answered when it is accepted, and the turn goes
    # on without a request that could name it.
    replies_to_prompt_at_turn_end: bool
    # Whether the layer above tells a prompt that is sent twice under one operation id from two. Else the second one is
    # refused where a prompt is answered at the end of its turn.
    takes_repeats: bool
    # Whether the layer above holds a second prompt back until the turn of the first has ended. Else it is refused where
    # a prompt is answered at the end of its turn.
    queues_prompts: bool
    # Part of every id that the dialect makes up, so that two processes do not make the same ones. Set by `dialect_for`.
    salt: str

    # -- from the peer -----------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Make what the first message would have to wait for. Takes a millisecond; a link calls it while it is idle."""

    def decode_request(self, id: Id, method: str, params: msgspec.Raw) -> Request | Note:
        """Decode the peer's request. A note: the peer sent a notification as a request; it is answered with `{}`."""

    def events_at_request(self, request: Request) -> Sequence[SessionEvent]:
        """Return the events that the peer's request implies.

        Version 1 does not send that a turn waits for the user, so a permission request implies `RequiresAction`.
        """

    def events_at_reply(self, request: Request) -> Sequence[SessionEvent]:
        """Return the events that our reply to this request implies."""

    def decode_notification(self, method: str, params: msgspec.Raw) -> Sequence[DecodedNotification]:
        """Decode a notification into events or notes; none for one that has no meaning here."""

    @property
    def speech(self) -> "Speech | None":
        """Return how updates are spoken here: one that was sent by an agent of the same speech may pass as it came.
        None: none may."""

    def relayed_update(self, params: msgspec.Raw) -> "RelayedUpdate | None":
        """Return the params of a `session/update` of the agent as something that may pass as it came; None for an
        update that has to be decoded. What it changes here is noted."""

    def note_relayed(self, session_id: str, update: "RelayedUpdate") -> None:
        """Note that an update was sent to the client as it came, in place of `encode_event`."""

    def decode_text_update(self, frame: bytes) -> tuple[str, AnyEvent] | None:
        """Decode a whole frame that is a plain text chunk in one step; None for anything else."""

    def continues(self, session_id: str, kind: type[Chunk], message_id: str) -> bool:
        """Return whether a chunk of this message, sent now as the last one was, would be decoded to this very message.

        Then its frame need not be decoded (`codec.relayed_text`), and changes nothing here.
        """

    def decode_cancel(self, id: Id) -> Note | None:
        """Decode the peer's `$/cancel_request` of its request `id`; None: cancel the handler of that request."""

    def decode_reply(self, request: Request, result: msgspec.Raw) -> DecodedReply:
        """Decode the result of a request of ours."""

    def decode_failure(self, request: Request, error: WireError) -> DecodedReply | None:
        """Decode an error as the answer to a request of ours.

        None: the request has failed. A `DecodedReply`: on this wire that error is a reply, such as the end of a turn.
        """

    # -- to the peer -------------------------------------------------------------------------------------------------

    def encode_request(self, request: Request) -> RequestMessage:
        """Encode a request of ours; `RequestFailed` if the peer has not offered to serve it."""

    def encode_reply(self, id: Id, request: Request, reply: Reply) -> Sequence[Out]:
        """Encode our reply to the peer's request `id`; nothing where it is answered later (a v1 prompt)."""

    def encode_failure(self, id: Id, request: Request, error: WireError) -> Sequence[Out]:
        """Encode an error as our answer to the peer's request `id`; nothing if it was answered already."""

    def encode_event(self, session_id: str, event: AnyEvent) -> Sequence[Out]:
        """Encode an event of a session: as updates, or as the answer to a prompt that it ends."""

    def text_frame(self, session_id: str, kind: str, message_id: str) -> tuple[bytes, ...]:
        """Return the frame of a text chunk, split around the JSON string of its text.

        Two parts; three where the text is in the frame twice; an empty tuple if this wire has no text of this kind.
        With these a chunk of text, which comes by the hundred thousand, costs one string encoding.
        """

    def encode_notification(self, note: Note) -> Sequence[Out]:
        """Encode a notification of ours; nothing where this wire has none for it."""
