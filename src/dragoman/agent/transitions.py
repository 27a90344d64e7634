"""The sessions of one connection that are being opened, closed or deleted right now.

Opening one takes a while: its log is read and replayed. A second request for the same session meanwhile is rejected if
it would open the session, and waits if it would end it.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from dragoman.agent.store_failures import open_here

Change = Literal["opened", "closed", "deleted"]


class Transitions:
    """The changes that are under way, by session id."""

    def __init__(self) -> None:
        self._changes: dict[str, tuple[Change, asyncio.Future[None]]] = {}

    def __repr__(self) -> str:
        return f"<Transitions {[f'{id} {change}' for id, (change, _) in self._changes.items()]}>"

    @contextmanager
    def begin(self, session_id: str, change: Change) -> Iterator[None]:
        """Mark a session as changing inside the `with` block; `RequestFailed` if another change is under way."""
        if session_id in self._changes:
            now = self._changes[session_id][0]
            raise open_here(f"The session is just being {now} on this connection: wait for that answer, then ask again")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._changes[session_id] = (change, done)
        try:
            yield
        finally:
            del self._changes[session_id]
            done.set_result(None)

    async def wait(self, session_id: str) -> None:
        """Wait until nothing changes about this session."""
        while session_id in self._changes:
            await asyncio.wait([self._changes[session_id][1]])
