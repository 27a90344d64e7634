"""What a link calls: `Handler`, the layer above it, and `Watch`, the observer of one request."""

from collections.abc import Awaitable
from typing import Literal, Protocol

from dragoman.dialects.contract import Id
from dragoman.errors import LinkClosed
from dragoman.vocabulary.asking import Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientHello

Role = Literal["agent", "client"]


class Handler(Protocol):
    """The layer above a link. Everything here is called in order, from the loop, and must not block."""

    def on_initialize(self, hello: ClientHello) -> AgentHello | Awaitable[AgentHello]:
        """What we answer to `initialize`. While it is awaited, everything heard waits, in order."""

    def on_request(self, request: Request, id: Id) -> Reply | Awaitable[Reply]: ...

    def on_notification(self, note: Note) -> None: ...

    def on_event(self, session_id: str, event: AnyEvent) -> None:
        """Something happened in a session. A handler that counts bytes may also have `on_sized_event`, with their
        number behind the event: it is called instead for everything that is not a short piece of text; and
        `unread_bytes`, which says how many bytes of all it was told still wait to be read."""

    def on_noise(self, reason: str) -> None: ...

    def on_bug(self, error: Exception) -> None:
        """A handler of ours raised what the peer was told nothing about."""

    def on_closed(self, error: LinkClosed) -> Awaitable[object] | None:
        """Nothing more will be heard. What is given back is waited for, within a bound, before the last word leaves."""


class Watch(Protocol):
    """Who must know when a request of ours leaves and where its answer stands among everything else that is heard."""

    def on_sent(self, number: int) -> None:
        """It has its place in the outbox, under this number; once more if it is asked again under another name."""

    def on_reply(self) -> None:
        """It is answered, early or by the peer or by the end of the link; nothing said later was handed up yet."""
