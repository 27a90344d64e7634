"""Version 2, as the client: asks an agent, hears events."""

from collections.abc import Sequence

import msgspec

from dragoman.dialects.codec.dialect_base import DialectBase, null_as_object, with_login
from dragoman.dialects.codec.text_chunks import text_chunk
from dragoman.dialects.codec.transcriber import decode_outer, plain
from dragoman.dialects.contract import DecodedNotification, DecodedReply, Id, SessionEvent
from dragoman.dialects.v2.codec import CODEC, decode_event
from dragoman.dialects.v2.routes import AGENT_ASKS, AGENT_NOTES, CLIENT_ASKS, CLIENT_NOTES, LOGIN_ASKS
from dragoman.dialects.v2_june.old_names import modern
from dragoman.vocabulary.asking import Note, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.vocabulary.requests import ForkSession, NewSession, PromptRequest, ResumeSession, SetOption
from dragoman.wire import types as wire
from dragoman.wire import v2 as w

_WITH_OPTIONS = (NewSession, ResumeSession, ForkSession, SetOption)
_PERMISSION = ("session/request_permission", "request_permission")


class ClientV2(DialectBase):
    """Stateless: this wire says what the vocabulary says."""

    null_ids = False

    def __init__(self, client: ClientHello, agent: AgentHello) -> None:
        super().__init__(
            CODEC,
            incoming=AGENT_ASKS,
            outgoing=with_login(CLIENT_ASKS if agent.capabilities.sessions else LOGIN_ASKS, agent),
            incoming_notes=AGENT_NOTES,
            outgoing_notes=CLIENT_NOTES,
            offered=client.capabilities,
            granted=agent.capabilities,
        )

    def decode_notification(self, method: str, params: msgspec.Raw) -> Sequence[DecodedNotification]:
        """Updates are events; the rest is notes."""
        if method != "session/update":
            return super().decode_notification(method, params)
        heard = wire.decode(modern(params), w.UpdateSessionNotification)
        return [SessionEvent(heard.session_id, decode_outer(heard, decode_event(heard.update)))]

    def decode_reply(self, request: Request, result: msgspec.Raw) -> DecodedReply:
        """Decode as `super()` does; an accepted prompt may lack the message id, and options may have older names."""
        if isinstance(request, PromptRequest):
            body = plain(msgspec.Raw(null_as_object(result)))
            if isinstance(body, dict) and "messageId" not in body:
                result = msgspec.Raw(msgspec.json.encode({**body, "messageId": ""}))
        return super().decode_reply(request, modern(result) if isinstance(request, _WITH_OPTIONS) else result)

    def decode_request(self, id: Id, method: str, params: msgspec.Raw) -> Request | Note:
        """Decode as `super()` does; convert an older draft's permission (`toolCall` without `subject`) first."""
        return super().decode_request(id, method, modern(params) if method in _PERMISSION else params)

    def decode_text_update(self, frame: bytes) -> tuple[str, AnyEvent] | None:
        """A text chunk in one decode."""
        params = text_chunk(frame)
        if params is None or not params.update.message_id:
            return None
        return params.session_id, params.update
