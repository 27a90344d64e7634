"""Version 2, as the client: asks an agent, hears events."""

from collections.abc import Sequence

import msgspec

from dragoman.dialects.chunks import text_chunk
from dragoman.dialects.contract import Heard, Told
from dragoman.dialects.speaker import Speaker
from dragoman.dialects.v2 import AGENT_ASKS, AGENT_NOTES, CLIENT_ASKS, CLIENT_NOTES, WORDS, hear_event
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.wire import types as wire
from dragoman.wire import v2 as w


class ClientV2(Speaker):
    """Stateless: this wire says what the vocabulary says."""

    null_ids = False

    def __init__(self, client: ClientHello, agent: AgentHello) -> None:
        super().__init__(
            WORDS,
            hears=AGENT_ASKS,
            says=CLIENT_ASKS,
            hears_notes=AGENT_NOTES,
            says_notes=CLIENT_NOTES,
            offered=client.capabilities,
        )

    def hear_note(self, method: str, params: msgspec.Raw) -> Sequence[Heard]:
        """Updates are events; the rest is notes."""
        if method != "session/update":
            return super().hear_note(method, params)
        heard = wire.decode(params, w.UpdateSessionNotification)
        return [Told(heard.session_id, hear_event(heard.update))]

    def hear_update(self, frame: bytes) -> tuple[str, AnyEvent] | None:
        """A text chunk in one decode."""
        params = text_chunk(frame)
        if params is None or not params.update.message_id:
            return None
        return params.session_id, params.update
