"""Take what MCP servers ask (elicitation) to the user of a session, one question at a time.

A client that shows no forms, or opens no pages, is not asked: the server is told no, and the user why.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from dragoman.agent.permission import elicit
from dragoman.agent.session import Session, session_core
from dragoman.errors import PeerError
from dragoman.vocabulary.services import ElicitationAnswer, ElicitationComplete, Form, Url


class ServerQuestions:
    """The questions of the servers of one session."""

    def __init__(self, session: Session, warn: Callable[[str], Awaitable[None]]) -> None:
        self._session: Final = session
        self._warn: Final = warn
        self._one_at_a_time: Final = asyncio.Lock()
        # Servers whose questions the client cannot show, and which the user was told of.
        self._told: Final[set[tuple[str, type]]] = set()

    async def ask(self, server: str, message: str, mode: Form | Url) -> ElicitationAnswer:
        """Ask the user, and wait for the answer."""
        client = self._session.client
        if not (client.elicitation_url if isinstance(mode, Url) else client.elicitation_form):
            await self._say_declined(server, mode)
            return ElicitationAnswer("decline")
        async with self._one_at_a_time:
            try:
                return await elicit(session_core(self._session), f"The MCP server {server} asks: {message}", mode)
            except PeerError:
                return ElicitationAnswer("cancel")

    async def done(self, elicitation_id: str) -> None:
        """Tell a client that opens pages that what the user did there is done."""
        if self._session.client.elicitation_url:
            await session_core(self._session).sink.send_notification(ElicitationComplete(elicitation_id))

    async def _say_declined(self, server: str, mode: Form | Url) -> None:
        if (server, type(mode)) in self._told:
            return
        self._told.add((server, type(mode)))
        what = "a page to be opened" if isinstance(mode, Url) else "a form to be filled in"
        await self._warn(f"The MCP server {server} has asked for {what}, which this client cannot show: it was told no")
