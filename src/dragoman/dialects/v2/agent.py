"""Version 2, as the agent: decode a client's requests, encode events. The vocabulary has this version's meaning."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from dragoman.dialects.codec.dialect_base import (
    TEXT_FRAME_TAIL,
    DialectBase,
    message_id_field,
    text_frame_head,
    with_login,
)
from dragoman.dialects.codec.rewinding import rewind_routes
from dragoman.dialects.codec.steering import steering_routes
from dragoman.dialects.codec.transcriber import encode_outer, plain
from dragoman.dialects.contract import Id, NotificationMessage, Out
from dragoman.dialects.v2.codec import CODEC, encode_event
from dragoman.dialects.v2.routes import AGENT_NOTES, AGENT_REQUESTS, CLIENT_NOTES, CLIENT_REQUESTS, LOGIN_REQUESTS
from dragoman.vocabulary.asking import Note, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.wire import types as wire
from dragoman.wire import v2 as w

if TYPE_CHECKING:
    from dragoman.dialects.codec.relayed_updates import Speech


class AgentV2(DialectBase):
    """The agent's side of version 2. Stateless: every event of the vocabulary has its update on this wire."""

    null_ids = False  # the schema: an id "MUST NOT be `null`"

    def __init__(self, client: ClientHello, agent: AgentHello) -> None:
        super().__init__(
            CODEC,
            # An agent may offer no sessions at all in this version; then only logins are left.
            incoming=with_login(CLIENT_REQUESTS if agent.capabilities.sessions else LOGIN_REQUESTS, agent)
            + steering_routes(agent, w.PromptRequest)
            + rewind_routes(agent),
            outgoing=AGENT_REQUESTS,
            incoming_notes=CLIENT_NOTES,
            outgoing_notes=AGENT_NOTES,
            offered=agent.capabilities,
            granted=client.capabilities,
        )

    def decode_unrouted(self, id: Id, method: str, params: msgspec.Raw) -> Request | Note:
        """Decode as `super()` does, but read `session/load` of an older draft as a resume with a replay from the start.

        The clients of that draft are found out at `initialize`, unless they send today's form of it.
        """
        if method == "session/load":
            return self.decode_request(id, "session/resume", _from_start(params))
        return super().decode_unrouted(id, method, params)

    def encode_event(self, session_id: str, event: AnyEvent) -> Sequence[Out]:
        """Encode an event as one update, or none where it would be taken for another."""
        update = encode_event(event)
        if update is None:
            return []  # an unknown event of version 1 whose name means something else here
        carrier = w.UpdateSessionNotification(session_id=session_id, update=update, **encode_outer(event))
        return [NotificationMessage("session/update", wire.encode(carrier))]

    @cached_property
    def speech(self) -> "Speech | None":
        """Return that of version 2; see `ClientV2.speech`."""
        from dragoman.dialects.codec.relayed_updates import speech  # no agent of its own needs it

        return speech("v2")

    def text_frame(self, session_id: str, kind: str, message_id: str) -> tuple[bytes, ...]:
        """Return the frame around the text, in two parts; see `Dialect.text_frame`."""
        return text_frame_head(session_id, kind, message_id_field(message_id)), TEXT_FRAME_TAIL


def _from_start(params: msgspec.Raw) -> msgspec.Raw:
    body = plain(params) if params else {}
    if not isinstance(body, dict):
        return params
    return msgspec.Raw(msgspec.json.encode({**body, "replayFrom": {"type": "start"}}))
