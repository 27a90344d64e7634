"""What a webhook is, and how its messages are signed. Pure, but for the randomness of a new secret."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Collection, Sequence
from typing import Final, Literal, get_args

import msgspec

from dragoman.host.address import check_target

EventKind = Literal["question.opened", "turn.ended"]
EVENT_KINDS: Final[tuple[EventKind, ...]] = get_args(EventKind)
# Of one principal.
# Each event is sent to all of them that want it.
WEBHOOKS: Final = 5
_SECRET: Final = "whsec_"


class Webhook(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An address that is told of events. `content`: with the title of a question. `secret` signs the messages."""

    id: str
    url: str
    secret: str
    events: tuple[EventKind, ...] = EVENT_KINDS
    content: bool = False


def new_webhook(url: str, events: Sequence[EventKind], *, content: bool, origins: Collection[str]) -> Webhook:
    """Return a webhook with a new secret. Raise `UrlRefused` for an address that may not be called."""
    check_target(url, origins)
    # Standard Webhooks ask for 24 to 64 random bytes.
    secret = _SECRET + base64.b64encode(secrets.token_bytes(32)).decode()
    # In our order and each once, however they were written.
    chosen = tuple(kind for kind in EVENT_KINDS if kind in events)
    return Webhook(secrets.token_hex(8), url, secret, chosen, content)


def signature_of(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a message, as Standard Webhooks have it."""
    key = base64.b64decode(secret.removeprefix(_SECRET))
    # With id and time: what was seen on the way cannot be sent once more as something new.
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
