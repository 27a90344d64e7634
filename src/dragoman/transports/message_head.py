"""The parts of a JSON-RPC message that decide where it goes, read without its content: by whom it is only passed on."""

import msgspec


class MessageHead(msgspec.Struct):
    """A message as far as its way depends on it; everything is empty for one that the receiver will have to reject."""

    id: object = None
    method: str = ""
    params: msgspec.Raw = msgspec.Raw(b"")
    result: msgspec.Raw = msgspec.Raw(b"")
    error: msgspec.Raw = msgspec.Raw(b"")

    @property
    def is_request(self) -> bool:
        """Return whether an answer is expected."""
        return bool(self.method) and self.id is not None

    @property
    def key(self) -> tuple[str, str]:
        """Return what the id of the message is known by: 1 and "1" are two ids, and an id may be of any type."""
        return type(self.id).__name__, str(self.id)


class _WithSession(msgspec.Struct):
    sessionId: object = None


def read_head(message: bytes) -> MessageHead:
    """Return the head of a message, whatever was received."""
    try:
        return msgspec.json.decode(message, type=MessageHead)
    except (ValueError, RecursionError):
        return MessageHead()


def session_in(params: msgspec.Raw) -> str | None:
    """Return the session that the params, or the result, of a message name; None where they name none."""
    try:
        found = msgspec.json.decode(params, type=_WithSession).sessionId if params else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, str) else None
