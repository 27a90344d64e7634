"""Where a session's events go. The agent's side of `persist, say, send`, behind one small interface."""

from typing import Protocol

from dragoman.vocabulary.asking import Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import ClientCapabilities


class TextSink(Protocol):
    """One message being spoken in pieces."""

    def put(self, text: str) -> bool:
        """Say a piece. True: much is waiting, `breathe` before the next one."""

    async def breathe(self) -> None:
        """Let the wire catch up and the loop turn."""


class EventSink(Protocol):
    """How a session reaches its client."""

    @property
    def client(self) -> ClientCapabilities:
        """What the client can do for us."""

    async def tell(self, session_id: str, event: AnyEvent) -> None: ...

    def text_stream(self, session_id: str, kind: str, message_id: str) -> TextSink: ...

    async def ask(self, request: Request) -> Reply: ...

    async def note(self, note: Note) -> None: ...
