"""What a link calls: `Handler`, the layer above it, and `Watch`, the observer of one request."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from dragoman.dialects.contract import Id
from dragoman.errors import LinkClosed
from dragoman.link.state import Role
from dragoman.vocabulary.asking import Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientHello

if TYPE_CHECKING:
    from dragoman.dialects.codec.relayed_text import RelayedText
    from dragoman.dialects.codec.relayed_updates import RelayedUpdate

__all__ = ["CountingHandler", "Handler", "RelayingHandler", "Role", "Watch"]


class Handler(Protocol):
    """The layer above a link. It is called from the loop, in the order of the messages, and must not block."""

    def on_initialize(self, hello: ClientHello) -> AgentHello | Awaitable[AgentHello]:
        """Return our answer to `initialize`. While it is awaited, everything that arrives is kept, in order."""

    def on_request(self, request: Request, id: Id) -> Reply | Awaitable[Reply]:
        """Return the reply, or something to await for it. Awaiting runs in a task, which the peer may cancel."""

    def on_notification(self, note: Note) -> None: ...

    def on_event(self, session_id: str, event: AnyEvent) -> None:
        """Receive an event of a session."""

    def on_noise(self, reason: str) -> None:
        """Receive the reason why input was skipped. It has none of the peer's text in it."""

    def on_bug(self, error: Exception) -> None:
        """Receive an exception that is our mistake: the peer gets an internal error at most, without its text."""

    def on_closed(self, error: LinkClosed) -> Awaitable[object] | None:
        """Learn that no more input comes. What is returned is awaited, within a bound, before the last reply leaves."""


@runtime_checkable
class CountingHandler(Handler, Protocol):
    """A handler that bounds the memory of its unread events, so that the link stops reading while there are too many.

    Short pieces of text, which come by the hundred thousand, still go to `on_event`: the link counts their bytes.
    """

    def on_sized_event(self, session_id: str, event: AnyEvent, size: int) -> None:
        """Receive an event whose params had `size` bytes; in place of `on_event`."""

    def unread_bytes(self) -> int:
        """Return how many bytes of all events received wait to be read by the application."""


@runtime_checkable
class RelayingHandler(Handler, Protocol):
    """A handler that passes on: it takes the text of a message as it came, undecoded, from its third piece on, and
    updates that only their reader needs."""

    def on_text(self, piece: "RelayedText") -> None:
        """Receive a piece of a message; in place of `on_event`."""

    def on_update(self, update: "RelayedUpdate") -> None:
        """Receive an update that may pass as it came; in place of `on_event`."""

    def on_read_end(self) -> None:
        """Learn that everything was handed up that the last read has brought."""


class Watch(Protocol):
    """An observer of one request: when it leaves, and where its reply stands among everything else that arrives."""

    def on_sent(self, number: int) -> None:
        """It has its place in the outbox, under this number."""

    def on_reply(self) -> None:
        """It is answered, early or by the peer or by the end of the link; nothing that came later was handled yet."""
