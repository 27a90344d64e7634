"""Version 2, as the client: encode requests, decode events and answers. The vocabulary has this version's meaning."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec

from dragoman.dialects.codec.dialect_base import DialectBase, null_as_object, with_login
from dragoman.dialects.codec.relayed_updates import RelayedUpdate, Speech, read_update, speech
from dragoman.dialects.codec.rewinding import REWIND
from dragoman.dialects.codec.steering import steering_route
from dragoman.dialects.codec.text_chunks import text_chunk
from dragoman.dialects.codec.transcriber import decode_outer, plain
from dragoman.dialects.contract import DecodedNotification, Id, SessionEvent
from dragoman.dialects.v2.codec import CODEC, decode_event
from dragoman.dialects.v2.routes import AGENT_NOTES, AGENT_REQUESTS, CLIENT_NOTES, CLIENT_REQUESTS, LOGIN_REQUESTS
from dragoman.dialects.v2_june.old_names import modern, with_modern_options
from dragoman.vocabulary.asking import Note, Request
from dragoman.vocabulary.events import AnyEvent, Chunk
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.vocabulary.requests import ForkSession, NewSession, PromptRequest, ResumeSession, SetOption
from dragoman.wire import types as wire
from dragoman.wire import v2 as w

_PERMISSION = ("session/request_permission", "request_permission")


def _with_message_id(result: msgspec.Raw) -> msgspec.Raw:
    """Return the answer to a prompt with a message id: drafts before alpha 5 of the schema answer an empty object."""
    body = plain(msgspec.Raw(null_as_object(result)))
    if isinstance(body, dict) and "messageId" not in body:
        return msgspec.Raw(msgspec.json.encode({**body, "messageId": ""}))
    return result


# Updates that only their reader needs. The rest changes what a relay knows of the session: its state, options,
# commands, title and costs.
_RELAYED: Final = frozenset(
    {
        *("agent_message", "agent_message_chunk", "agent_thought", "agent_thought_chunk"),
        *("tool_call_update", "tool_call_content_chunk", "terminal_update", "terminal_output_chunk"),
        *("plan_update", "plan_removed"),
    }
)


def _is_relayed(session_id: str, kind: str) -> bool:
    return kind in _RELAYED


def _check_update(params: msgspec.Raw) -> object:
    return wire.decoder(w.UpdateSessionNotification).decode(params)


def _decode_params(params: msgspec.Raw) -> AnyEvent:
    carrier = wire.decode(params, w.UpdateSessionNotification)
    return decode_outer(carrier, decode_event(carrier.update))


class ClientV2(DialectBase):
    """The client's side of version 2. Stateless: every update of this wire is an event of the vocabulary."""

    null_ids = False  # the schema: an id "MUST NOT be `null`"
    # Options have other names in the June draft.
    corrections: Mapping[type[Request], Callable[[msgspec.Raw], msgspec.Raw]] = {  # never changed
        PromptRequest: _with_message_id,
        **dict.fromkeys((NewSession, ResumeSession, ForkSession, SetOption), with_modern_options),
    }

    def __init__(self, client: ClientHello, agent: AgentHello) -> None:
        super().__init__(
            CODEC,
            incoming=AGENT_REQUESTS,
            outgoing=[
                *with_login(CLIENT_REQUESTS if agent.capabilities.sessions else LOGIN_REQUESTS, agent),
                steering_route(w.PromptRequest),
                REWIND,
            ],
            incoming_notes=AGENT_NOTES,
            outgoing_notes=CLIENT_NOTES,
            offered=client.capabilities,
            granted=agent.capabilities,
        )

    def prepare(self) -> None:
        """Make the decoder of updates: it has fifty types, and the first update should not wait for it."""
        wire.decoder(w.UpdateSessionNotification)

    def decode_notification(self, method: str, params: msgspec.Raw) -> Sequence[DecodedNotification]:
        """Decode `session/update` into its event; another notification as `super()` does."""
        if method != "session/update":
            return super().decode_notification(method, params)
        # Older names first: today's reader would drop options with them from their lists, without an error.
        carrier = wire.decode(modern(params), w.UpdateSessionNotification)
        return [SessionEvent(carrier.session_id, decode_outer(carrier, decode_event(carrier.update)))]

    @cached_property
    def speech(self) -> Speech | None:
        """Return that of version 2: an update means the same to every client, whatever that can do."""
        return speech("v2")

    def relayed_update(self, params: msgspec.Raw) -> RelayedUpdate | None:
        """Return an update that depends on none before it and changes nothing that a relay knows."""
        # Older names are today's on the long way.
        if modern(params) is not params:
            return None
        return read_update(params, self.speech, _is_relayed, _check_update, _decode_params)

    def decode_request(self, id: Id, method: str, params: msgspec.Raw) -> Request | Note:
        """Decode as `super()` does; convert an older draft's permission (`toolCall` without `subject`) first."""
        return super().decode_request(id, method, modern(params) if method in _PERMISSION else params)

    def decode_text_update(self, frame: bytes) -> tuple[str, AnyEvent] | None:
        """Decode a frame that is a plain text chunk in one step; None for anything else."""
        params = text_chunk(frame)
        if params is None or not params.update.message_id:
            return None  # an id is required here: `decode_notification` has the error
        return params.session_id, params.update

    def continues(self, session_id: str, kind: type[Chunk], message_id: str) -> bool:
        """Return True: every chunk names its message."""
        return True
