"""The way of text from a link to another, without decoding it: `text_relay` on the one, `OutgoingText` on the other."""

from collections.abc import Callable
from typing import Final

from dragoman import limits
from dragoman.dialects.codec.relayed_text import RelayedText, TextFrames, TextMessage
from dragoman.dialects.contract import Dialect
from dragoman.link.contract import RelayingHandler
from dragoman.vocabulary.events import CHUNK_TYPES


def text_relay(dialect: Dialect, handler: RelayingHandler) -> Callable[[bytes], bool]:
    """Return a function that hands a frame of text up to `handler` and returns True, or returns False for any other.

    The first frames of a message are decoded, and prove the message; those after them are handed up as they are.
    """
    frames = TextFrames()
    find, decode, continues = frames.find, dialect.decode_text_update, dialect.continues
    on_text, on_event = handler.on_text, handler.on_event

    def relay(frame: bytes) -> bool:
        found = find(frame)
        if found is not None:
            message = found.message
            # What came meanwhile may have ended the message: then a new one begins, with an id of its own.
            if continues(message.session_id, message.kind, message.id):
                on_text(found)
                return True
        update = decode(frame)
        if update is None:
            return False
        session_id, chunk = update
        if isinstance(chunk, _CHUNKS):
            frames.learn(frame, session_id, chunk)
        on_event(session_id, chunk)
        return True

    return relay


_CHUNKS: Final = tuple(CHUNK_TYPES.values())
# Sessions of one link whose messages come in pieces; a further one costs the making of its frame.
_MESSAGES: Final = 256


class OutgoingText:
    """The frames of relayed text on a link in the role of the agent, as its dialect has them."""

    def __init__(self) -> None:
        # By session: the message that comes in pieces now, and the bytes around a piece of it.
        self._around: dict[str, tuple[TextMessage, tuple[bytes, ...]]] = {}

    def frame(self, dialect: Dialect, session_id: str, piece: RelayedText) -> bytes:
        """Return the frame of a piece, in a session that the peer calls `session_id`; empty where the dialect has no
        text of this kind."""
        message = piece.message
        known = self._around.get(session_id)
        if known is None or known[0] is not message:
            known = message, dialect.text_frame(session_id, message.name, message.id)
            self._around[session_id] = known
            limits.evict_oldest(self._around, _MESSAGES)
        return piece.text.join(known[1])
