"""The speech of all sessions of one client, in order: nothing is said of a session before the answer that names it.

A session may speak while it is being opened. What it says then is held, and leaves right behind that answer.
"""

import asyncio
from typing import Final

from dragoman import limits
from dragoman.agent.event_sink import TextSink
from dragoman.errors import UsageError
from dragoman.link import Link
from dragoman.vocabulary.asking import Reply, Request
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessageChunk, AgentThoughtChunk, AnyEvent
from dragoman.vocabulary.services import Elicit, SessionScope


class AnnouncedEvents:
    """Speaks through a link, for the sessions that the client knows; holds back what others say."""

    def __init__(self, link: Link) -> None:
        self.note: Final = link.send_notification
        self._link = link
        self._known: set[str] = set()
        self._held: dict[str, list[AnyEvent]] = {}

    def announce(self, session_id: str) -> None:
        """The client knows this session: it named it, or the answer that does is on its way."""
        if session_id not in self._known:
            self._known.add(session_id)
            for event in self._held.pop(session_id, ()):
                if not self._link.closed:
                    self._link.enqueue_event(session_id, event)

    def announce_next(self, session_id: str) -> None:
        """The answer that names it leaves at the end of this very step: the link puts an answer when it gets it."""
        asyncio.get_running_loop().call_soon(self.announce, session_id)

    def forget(self, session_id: str) -> None:
        """The session is closed, or was never opened."""
        self._known.discard(session_id)
        self._held.pop(session_id, None)

    async def tell(self, session_id: str, event: AnyEvent) -> None:
        """Say an event; waits while the client does not read."""
        if session_id in self._known:
            await self._link.send_event(session_id, event)
        else:
            self.hold(session_id, event)

    def text_stream(self, session_id: str, kind: str, message_id: str) -> TextSink:
        """A message to be said in pieces of text."""
        if session_id in self._known:
            return self._link.text_stream(session_id, kind, message_id)
        return _HeldText(self, session_id, kind, message_id)

    async def ask(self, request: Request) -> Reply:
        """Ask the client; not about a session it has never heard of."""
        scope = request.scope if isinstance(request, Elicit) else request
        session_id = getattr(scope, "session_id", None) if not isinstance(scope, SessionScope) else scope.session_id
        if session_id is not None and session_id not in self._known:
            raise UsageError("the client does not know this session yet: ask in the prompt handler")
        return await self._link.ask(request)

    def hold(self, session_id: str, event: AnyEvent) -> bool:
        """Keep an event until its session is announced. False: it is announced already."""
        if session_id in self._known:
            return False
        held = self._held.setdefault(session_id, [])
        if len(held) >= limits.EARLY_UPDATES:
            raise UsageError("too much is said before the session is open: say it in the prompt handler")
        held.append(event)
        return True


class _HeldText:
    """A message that was begun before its session was announced; it may go on after that."""

    def __init__(self, speech: AnnouncedEvents, session_id: str, kind: str, message_id: str) -> None:
        self._speech = speech
        self._message = (session_id, kind, message_id)
        self._stream: TextSink | None = None

    def put(self, text: str) -> bool:
        session_id, kind, message_id = self._message
        if self._stream is None:
            chunk = AgentMessageChunk if kind == "agent_message_chunk" else AgentThoughtChunk
            if self._speech.hold(session_id, chunk(Text(text), message_id=message_id)):
                return False
            self._stream = self._speech.text_stream(session_id, kind, message_id)
        return self._stream.put(text)

    async def breathe(self) -> None:
        if self._stream is not None:
            await self._stream.breathe()
