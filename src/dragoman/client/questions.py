"""The open questions to the user. A question ends with its answer, or with the turn that it belongs to.

The protocol wants every permission request of a cancelled turn answered as cancelled; a callback that does not stop
when it is cancelled must not delay that.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any

from dragoman.vocabulary.asking import Reply


class Questions:
    """The open questions of one client, by session."""

    def __init__(self) -> None:
        self._open: dict[str, set[asyncio.Future[None]]] = {}
        self._cancelled: set[asyncio.Future[Reply]] = set()

    @property
    def open(self) -> bool:
        """Return whether any question waits for an answer."""
        return bool(self._open)

    def ask(self, session_id: str, work: Awaitable[Reply], dismissed: Reply) -> Awaitable[Reply]:
        """Return the reply of `work`, or `dismissed` if `dismiss` is called first, even before `work` has started.

        The question is open from this call on; it waits for its answer when it is awaited.
        """
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        here = self._open.setdefault(session_id, set())
        here.add(gone)
        return self._ask(session_id, here, gone, work, dismissed)

    async def _ask(
        self,
        session_id: str,
        here: "set[asyncio.Future[None]]",
        gone: "asyncio.Future[None]",
        work: Awaitable[Reply],
        dismissed: Reply,
    ) -> Reply:
        answering = asyncio.ensure_future(work)
        try:
            either: list[asyncio.Future[Any]] = [answering, gone]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            return dismissed if gone.done() else answering.result()
        finally:
            here.discard(gone)
            if not here and self._open.get(session_id) is here:
                del self._open[session_id]
            self._cancel(answering)

    def dismiss(self, session_id: str) -> None:
        """End the open questions of a session: each returns its `dismissed` reply."""
        for gone in self._open.pop(session_id, ()):
            if not gone.done():
                gone.set_result(None)

    def dismiss_all(self) -> None:
        """Call `dismiss` for every session with an open question."""
        for session_id in list(self._open):
            self.dismiss(session_id)

    def _cancel(self, answering: "asyncio.Future[Reply]") -> None:
        self._cancelled.add(answering)
        answering.add_done_callback(self._on_done)
        answering.cancel()

    def _on_done(self, answering: "asyncio.Future[Reply]") -> None:
        self._cancelled.discard(answering)
        if not answering.cancelled():
            answering.exception()  # retrieved, so that it is not logged: it was raised before, or comes too late
