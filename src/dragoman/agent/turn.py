"""One turn: a prompt accepted, a handler run, and exactly one end, whatever the handler does."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final, cast

from msgspec import UNSET

from dragoman import limits
from dragoman.agent.session import CURRENT_TURN, Prompt, Session
from dragoman.errors import LinkClosed, RequestFailed, UsageError, wire_error
from dragoman.vocabulary.content import Content
from dragoman.vocabulary.events import AnyEvent, Event, Failure, Idle, Running, UserMessage

Piece = str | Content | AnyEvent
# A handler is a coroutine that may return a stop reason, or an async generator of text, content and events.
Work = Awaitable[str | None] | AsyncGenerator[Piece, None]
OnBug = Callable[[Exception], None]

STOP_REASONS: Final = frozenset({"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"})


class Turn:
    """The life of one prompt."""

    def __init__(self, session: Session, prompt: Prompt) -> None:
        self.prompt: Final = prompt
        self.ended = False
        self._session = session
        self._work: asyncio.Task[str | None] | None = None
        self._cancelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def cancel(self) -> None:
        """Stop the handler at its next await. The turn ends as cancelled."""
        if not self._cancelled.done():
            self._cancelled.set_result(None)
            if self._work is not None:
                self._work.cancel()

    async def run(self, handle: Callable[[], Work], on_bug: OnBug) -> None:
        """Tell the turn from its first event to its last. Raises nothing of the handler's."""
        session = self._session
        try:
            await session.record(UserMessage(self.prompt.message_id, self.prompt.content))
            await session.record(Running())
            end = await self._end(handle, on_bug)
            self.ended = True
            session.turn = None
            await session.record(end)
        except LinkClosed:
            pass  # nobody is left to tell
        finally:
            self.ended = True
            session.turn = None
            if self._work is not None:
                self._work.cancel()

    async def _end(self, handle: Callable[[], Work], on_bug: OnBug) -> Idle:
        try:
            reason = await self._result(handle)
        except asyncio.CancelledError:
            reason = "cancelled"
        except LinkClosed:
            raise
        except Exception as error:
            if not self._cancelled.done():
                return self._failed(error, on_bug)
            reason = "cancelled"
        if self._cancelled.done():
            reason = "cancelled"
        return Idle(stop_reason=reason, usage=self._session.usage or UNSET)

    def _failed(self, error: Exception, on_bug: OnBug) -> Idle:
        if not isinstance(error, RequestFailed):
            on_bug(error)
        code, message, data = wire_error(error)
        failure = Failure(code, message, UNSET if data is None else data)
        return Idle(stop_reason="error", error=failure, usage=self._session.usage or UNSET)

    async def _result(self, handle: Callable[[], Work]) -> str:
        """The handler's stop reason. Once cancelled it has a grace to clean up in; then the turn goes on without it."""
        if self._cancelled.done():
            return "cancelled"
        token = CURRENT_TURN.set(self)
        try:
            self._work = asyncio.get_running_loop().create_task(self._follow(handle()))
        finally:
            CURRENT_TURN.reset(token)
        either: list[asyncio.Future[Any]] = [self._work, self._cancelled]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not self._work.done():
            await asyncio.wait([self._work], timeout=limits.CANCEL_GRACE_SECONDS)
        if not self._work.done():
            return "cancelled"
        reason = self._work.result() or "end_turn"
        if reason not in STOP_REASONS:
            raise UsageError(f"a prompt handler returned {reason!r}; return None or one of {sorted(STOP_REASONS)}")
        return reason

    async def _follow(self, work: Work) -> str | None:
        if not isinstance(work, AsyncGenerator):
            return await work
        async with aclosing(work) as pieces:
            async for piece in pieces:
                if isinstance(piece, Idle) and isinstance(piece.stop_reason, str):
                    # A generator says how it ends with its last event.
                    self._session.usage = piece.usage or self._session.usage
                    return piece.stop_reason
                if isinstance(piece, Event):
                    await self._session.emit(cast(AnyEvent, piece))
                else:
                    await self._session.say(cast("str | Content", piece))
        return None
