"""One turn: a prompt accepted, a handler run, and exactly one end, whatever the handler does."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final

import msgspec
from msgspec import UNSET

from dragoman import limits
from dragoman.agent.event_sink import CURRENT_TURN
from dragoman.agent.session import Prompt, Session
from dragoman.errors import INTERNAL_ERROR, LinkClosed, RequestFailed, UsageError, wire_error
from dragoman.store.contract import StoreFailed
from dragoman.vocabulary.content import Content
from dragoman.vocabulary.events import STOP_REASONS, AgentMessageChunk, AnyEvent, Event, Failure, Idle, Running, Usage
from dragoman.wire.jsonrpc import encode_error

Piece = str | Content | AnyEvent
# A handler is a coroutine that may return a stop reason, or an async generator of text, content and events.
Work = Awaitable[str | None] | AsyncGenerator[Piece, None]
OnBug = Callable[[Exception], None]


# Encoded as JSON. Half a frame: the message that carries it has room for the rest.
_END_BYTES: Final = limits.FRAME_BYTES // 2
# Characters that are kept of the message of an error that could not be sent as it was.
_MESSAGE: Final = 10_000

# Handlers that ignored their cancellation. The event loop has weak references only: without this set a task could be
# garbage-collected while it runs.
_left_behind: Final[set["asyncio.Task[str | None]"]] = set()


class RunningTurn:
    """The life of one prompt."""

    def __init__(self, session: Session, prompt: Prompt, accepted: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        self.prompt: Final = prompt
        self._accepted = accepted
        self.ended = False
        self.over: Final[asyncio.Future[None]] = loop.create_future()
        self._session = session
        self._work: asyncio.Task[str | None] | None = None
        self._cancelled: asyncio.Future[float] = loop.create_future()

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled.done()

    def cancel(self, grace: float | None = None) -> None:
        """Stop the handler at its next await. The turn ends as cancelled, after so many seconds without it."""
        if not self._cancelled.done():
            self._cancelled.set_result(limits.CANCEL_GRACE_SECONDS if grace is None else grace)
            if self._work is not None:
                # Not before the task has begun: a coroutine that never ran complains about it.
                asyncio.get_running_loop().call_soon(self._work.cancel)

    async def run(self, handle: Callable[[], Work], on_bug: OnBug) -> None:
        """Tell the turn from its first event to its last. Raises nothing of the handler's."""
        session = self._session
        session.usage = None  # that was the turn before
        try:
            if session.retelling is not None:
                await asyncio.wait([session.retelling])
                session.retelling = None
            if session.journal is not None:
                await session.journal.mend()
            await session.take_in(self.prompt, self._accepted)
            await session.name_after(self.prompt.words)
            await session.record(Running())
            end = _sayable(await self._end(handle, on_bug), on_bug)
            self.ended = True
            if session.journal is not None:
                await session.journal.log.touch()  # the list shows it as it will be found
            await session.record(end)
            if session.journal is not None:
                await session.journal.said()
        except LinkClosed:
            pass  # the client is gone
        except StoreFailed as error:
            await self._unkept(error)
        finally:
            self.ended = True
            # In the step in which the end has found its place in the outbox, or, behind a journal, in the one after it:
            # a client that has read it may prompt, and nothing new is read before.
            session.turn = None
            if not self.over.done():
                self.over.set_result(None)
            self._let_go()

    async def _unkept(self, error: StoreFailed) -> None:
        """Nothing more can be kept, so nothing more is said but that. The log is mended when it can be written."""
        self.ended = True
        self._accepted()  # the prompt was heard, and this is how it ends
        await asyncio.sleep(0)
        if self._work is not None:
            self._work.cancel()
        failure = Failure(INTERNAL_ERROR, f"The session cannot be saved: {error}", {"reason": "store"})
        try:
            assert self._session.journal is not None
            await self._session.journal.say_unkept(Idle(stop_reason="error", error=failure))
        except LinkClosed:
            pass  # the client is gone

    async def _end(self, handle: Callable[[], Work], on_bug: OnBug) -> Idle:
        try:
            reason = await self._result(handle)
        except asyncio.CancelledError:
            reason = "cancelled"
        except StoreFailed:
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
            self._work = asyncio.get_running_loop().create_task(self._follow(_checked(handle())))
        finally:
            CURRENT_TURN.reset(token)
        either: list[asyncio.Future[Any]] = [self._work, self._cancelled]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not self._work.done():
            await asyncio.wait([self._work], timeout=self._cancelled.result())
        if not self._work.done():
            return "cancelled"
        reason: object = self._work.result() or "end_turn"
        if not isinstance(reason, str) or reason not in STOP_REASONS:
            raise UsageError(f"a prompt handler returned {reason!r}; return None or one of {sorted(STOP_REASONS)}")
        return reason

    async def _follow(self, work: Work) -> str | None:
        if not isinstance(work, AsyncGenerator):
            return await work
        emit = self._session.emit
        async with aclosing(work) as pieces:
            async for piece in pieces:
                if piece.__class__ is AgentMessageChunk:  # by the hundred thousand
                    await emit(piece)
                    continue
                if isinstance(piece, Idle) and isinstance(piece.stop_reason, str):
                    # A generator says how it ends with its last event.
                    self._session.usage = piece.usage or self._session.usage
                    if piece.error:
                        raise RequestFailed(piece.error.code, piece.error.message, piece.error.data or None)
                    return piece.stop_reason
                if isinstance(piece, Event):
                    await self._session.emit(piece)
                else:
                    await self._session.say(piece)
        return None

    def _let_go(self) -> None:
        work = self._work
        if work is not None:
            if not work.done():
                _left_behind.add(work)
                work.cancel()
            work.add_done_callback(_forget)


def _checked(work: Work) -> Work:
    if not isinstance(work, (Awaitable, AsyncGenerator)):
        raise UsageError(f"a prompt handler is an async function; this one returned {work!r}: write `async def`")
    return work


def _sayable(end: Idle, on_bug: OnBug) -> Idle:
    """The end as it can be said on every wire: what an author put into it must not keep it from being said."""
    try:
        if end.usage and not isinstance(end.usage, Usage):
            raise UsageError(f"session.usage is a Usage, not {type(end.usage).__name__}")
        if len(msgspec.json.encode(end)) > _END_BYTES:
            raise UsageError(f"the end of a turn has at most {_END_BYTES} bytes: shorten the data of its error")
        return end
    except (TypeError, ValueError, RecursionError, UsageError) as error:
        on_bug(error)
        return Idle(stop_reason=end.stop_reason, error=_plain(end.error) if end.error else UNSET)


def _plain(failure: Failure) -> Failure:
    """Return the failure without its data, and with a message that every wire carries."""
    said = msgspec.json.decode(encode_error(failure.code, failure.message[:_MESSAGE]))
    return Failure(said["code"], said["message"])


def _forget(work: "asyncio.Task[str | None]") -> None:
    _left_behind.discard(work)
    if not work.cancelled():
        work.exception()  # seen: its turn has ended without it
