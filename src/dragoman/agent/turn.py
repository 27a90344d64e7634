"""One turn of a session: a prompt accepted, a handler run, and exactly one end. And the prompts that wait for it.

How a turn moves, and never back (`RunningTurnState`)
    ACCEPTING   The prompt is written to the log; its request is answered once it is on disk.
    RUNNING     The handler runs; what it emits goes to the session's sink.
    ENDED       The handler has returned, raised or used up its grace; the end is recorded. Code of the turn that still
                runs gets `CancelledError` at its next emit, so nothing of it leaves behind the end.
    OVER        The end has its place in the outbox: the session may be prompted again.

`cancel` is possible in every state, and is no state: before RUNNING it keeps the handler from being started, and after
ENDED it changes nothing. A kill at any point leaves a log whose last turn has no end; opening the session again adds
one (`History.repairs`).

A session has at most one turn at a time. Prompts that arrive while it runs wait in a `PromptQueue`. An agent accepts
them with `session.queued_prompts()` where it can process new input. A prompt that the turn did not accept begins the
next turn, unless the turn was cancelled or the session closed: then its request is answered with the error "Cancelled".
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import UNSET

from dragoman import limits
from dragoman.agent.client_services import CURRENT_TURN
from dragoman.agent.session import Prompt
from dragoman.errors import (
    CANCELLED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    LinkClosed,
    RequestFailed,
    UsageError,
    wire_error,
)
from dragoman.store.contract import StoreFailed
from dragoman.vocabulary.content import Content
from dragoman.vocabulary.events import STOP_REASONS, AgentMessageChunk, AnyEvent, Event, Failure, Idle, Running, Usage
from dragoman.vocabulary.requests import PromptAccepted
from dragoman.wire.jsonrpc import encode_error

if TYPE_CHECKING:
    from dragoman.agent.session_core import SessionCore

_log: Final = logging.getLogger(__name__)

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


class RunningTurnState(Enum):
    """Where a turn is; the module's docstring says what each state means."""

    ACCEPTING = "accepting"
    RUNNING = "running"
    ENDED = "ended"
    OVER = "over"


# The states that may follow each. ACCEPTING to ENDED: it was cancelled before its handler was started, its prompt could
# not be stored, or the client is gone.
_NEXT: Final = {
    RunningTurnState.ACCEPTING: {RunningTurnState.RUNNING, RunningTurnState.ENDED},
    RunningTurnState.RUNNING: {RunningTurnState.ENDED},
    RunningTurnState.ENDED: {RunningTurnState.OVER},
    RunningTurnState.OVER: set[RunningTurnState](),
}


class RunningTurn:
    """The life of one prompt, from `accepting` to `over`."""

    def __init__(self, core: "SessionCore", prompt: Prompt, accepted: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        self.prompt: Final = prompt
        self.state = RunningTurnState.ACCEPTING
        # Whether the state is ENDED or OVER. Read for every piece of text, so it is an attribute and not a property;
        # only `_enter` sets it.
        self.ended = False
        self.over: Final[asyncio.Future[None]] = loop.create_future()
        self._core = core
        self._accepted = accepted
        self._work: asyncio.Task[str | None] | None = None
        # Done when the turn was cancelled: the seconds that the handler has to clean up in.
        self._cancelled: asyncio.Future[float] = loop.create_future()

    def __repr__(self) -> str:
        return f"<RunningTurn {self.prompt.message_id} {self.state.value}{' cancelled' if self.cancelled else ''}>"

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled.done()

    def cancel(self, grace: float | None = None) -> None:
        """Stop the handler at its next await. The turn ends as cancelled, after `grace` seconds without it."""
        if not self._cancelled.done():
            self._cancelled.set_result(limits.CANCEL_GRACE_SECONDS if grace is None else grace)
            if self._work is not None:
                # Not before the task has begun: Python warns of a coroutine that never ran.
                asyncio.get_running_loop().call_soon(self._work.cancel)

    def _enter(self, state: RunningTurnState) -> None:
        """Go to `state` if it may follow the present one: a turn that has ended stays ended."""
        if state in _NEXT[self.state]:
            self.state = state
            self.ended = state in (RunningTurnState.ENDED, RunningTurnState.OVER)

    async def run(self, handle: Callable[[], Work], on_bug: OnBug) -> None:
        """Emit the turn from its first event to its last. Raises nothing of the handler's."""
        core = self._core
        core.usage = None  # that was the turn before
        _log.debug("session %s: turn %s begins", core.id[limits.SHORT_ID], self.prompt.message_id)
        try:
            if core.replay_task is not None:
                await asyncio.wait([core.replay_task])
                core.replay_task = None
            if core.journal is not None:
                await core.journal.repair()
            await core.accept_prompt(self.prompt, self._accepted)
            await core.set_default_title(self.prompt.words)
            await core.record(Running())
            end = _encodable(await self._end(handle, on_bug), on_bug)
            self._enter(RunningTurnState.ENDED)
            await core.wait_until_accepted()
            if core.journal is not None:
                # The list of sessions is brought up to date before the end is sent: a client that has read the end
                # and asks for the list finds this session at its head.
                await core.journal.log.touch()
            await core.record(end)
            if core.journal is not None:
                await core.journal.drain()
            _log.debug(
                "session %s: turn %s ended: %s", core.id[limits.SHORT_ID], self.prompt.message_id, end.stop_reason
            )
        except LinkClosed:
            pass  # the client is gone
        except StoreFailed as error:
            _log.warning("session %s: the turn ends because nothing can be stored: %s", core.id[limits.SHORT_ID], error)
            await self._end_unstored(error)
        finally:
            self._enter(RunningTurnState.ENDED)  # here already, unless the client is gone or the task was cancelled
            # In the step in which the end has found its place in the outbox, or, behind a journal, in the one after it:
            # a client that has read it may prompt, and nothing new is read before.
            core.turn = None
            self._enter(RunningTurnState.OVER)
            if not self.over.done():
                self.over.set_result(None)
            self._leave_handler()

    async def _end_unstored(self, error: StoreFailed) -> None:
        """Send an end that is not in the log, because nothing can be written. The log is repaired when it can be."""
        self._enter(RunningTurnState.ENDED)
        self._accepted()  # the prompt was received, and this is how its turn ends
        await asyncio.sleep(0)
        if self._work is not None:
            self._work.cancel()
        failure = Failure(INTERNAL_ERROR, f"The session cannot be saved: {error}", {"reason": "store"})
        try:
            assert self._core.journal is not None
            await self._core.journal.send_unstored(Idle(stop_reason="error", error=failure))
        except LinkClosed:
            pass  # the client is gone

    async def _end(self, handle: Callable[[], Work], on_bug: OnBug) -> Idle:
        """Run the handler and return the end of the turn. `StoreFailed` is the only error it raises."""
        try:
            reason = await self._result(handle)
        except asyncio.CancelledError:
            reason = "cancelled"
        except StoreFailed:
            raise
        except Exception as error:
            if not self._cancelled.done():
                return self._failed(error, on_bug)
            reason = "cancelled"  # whatever a handler raises while it cleans up
        if self._cancelled.done():
            reason = "cancelled"
        return Idle(stop_reason=reason, usage=self._core.usage or UNSET)

    def _failed(self, error: Exception, on_bug: OnBug) -> Idle:
        if not isinstance(error, RequestFailed):
            on_bug(error)
        code, message, data = wire_error(error)
        failure = Failure(code, message, UNSET if data is None else data)
        return Idle(stop_reason="error", error=failure, usage=self._core.usage or UNSET)

    async def _result(self, handle: Callable[[], Work]) -> str:
        """Return the handler's stop reason. Once cancelled it has its grace; then the turn goes on without it."""
        if self._cancelled.done():
            return "cancelled"  # before the handler was started
        self._enter(RunningTurnState.RUNNING)
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
        """Run a handler of either kind to its end; the stop reason, if it gives one."""
        if not isinstance(work, AsyncGenerator):
            return await work
        core = self._core
        emit = core.emit
        async with aclosing(work) as pieces:
            async for piece in pieces:
                if piece.__class__ is AgentMessageChunk:  # by the hundred thousand
                    await emit(piece)
                    continue
                if isinstance(piece, Idle) and isinstance(piece.stop_reason, str):
                    # A generator gives its end as its last event.
                    core.usage = piece.usage or core.usage
                    if piece.error:
                        raise RequestFailed(piece.error.code, piece.error.message, piece.error.data or None)
                    return piece.stop_reason
                if isinstance(piece, Event):
                    await emit(piece)
                else:
                    await core.emit_text("agent_message_chunk", piece)
        return None

    def _leave_handler(self) -> None:
        """Cancel a handler that still runs and keep a reference to it: it may ignore that for as long as it likes."""
        work = self._work
        if work is not None:
            if not work.done():
                _log.warning("session %s: the handler goes on after its turn has ended", self._core.id[limits.SHORT_ID])
                _left_behind.add(work)
                work.cancel()
            work.add_done_callback(_discard)


def _discard(work: "asyncio.Task[str | None]") -> None:
    _left_behind.discard(work)
    retrieve_exception(work)  # its turn has ended without it


def _checked(work: Work) -> Work:
    if not isinstance(work, (Awaitable, AsyncGenerator)):
        raise UsageError(f"a prompt handler is an async function; this one returned {work!r}: write `async def`")
    return work


def _encodable(end: Idle, on_bug: OnBug) -> Idle:
    """Return the end of a turn as every wire can carry it: an author's mistake in it must not leave a turn open."""
    try:
        if end.usage and not isinstance(end.usage, Usage):
            raise UsageError(f"session.usage is a Usage, not {type(end.usage).__name__}")
        if len(msgspec.json.encode(end)) > _END_BYTES:
            raise UsageError(f"the end of a turn has at most {_END_BYTES} bytes: shorten the data of its error")
        return end
    except (TypeError, ValueError, RecursionError, UsageError) as error:
        on_bug(error)
        return Idle(stop_reason=end.stop_reason, error=_without_data(end.error) if end.error else UNSET)


def _without_data(failure: Failure) -> Failure:
    """Return the failure without its data, and with a message that every wire carries."""
    encoded = msgspec.json.decode(encode_error(failure.code, failure.message[:_MESSAGE]))
    return Failure(encoded["code"], encoded["message"])


# -- prompts that wait -----------------------------------------------------------------------------------------------


class QueuedPrompt(NamedTuple):
    """A prompt that waits, and the future with the reply to its request."""

    prompt: Prompt
    reply: "asyncio.Future[PromptAccepted]"
    needs_turn: bool = False  # it may not begin a turn of its own

    @classmethod
    def of(cls, prompt: Prompt, *, needs_turn: bool = False) -> "QueuedPrompt":
        """Return `prompt` with a future that is not done yet. Needs a running event loop."""
        return cls(prompt, asyncio.get_running_loop().create_future(), needs_turn)

    def accept(self) -> None:
        """Reply that the prompt stands in the conversation."""
        if not self.reply.done():  # done: the request was cancelled
            self.reply.set_result(PromptAccepted(self.prompt.message_id))

    def fail(self, error: BaseException) -> None:
        """Reply with an error; without effect if the prompt was accepted before."""
        if not self.reply.done():
            cancelled = isinstance(error, asyncio.CancelledError)
            self.reply.set_exception(RequestFailed(CANCELLED, "Cancelled") if cancelled else error)


class NoTurn(RequestFailed):
    """The turn that a prompt was for has ended."""


class PromptQueue(msgspec.Struct):
    """The queued prompts of one session, in order of arrival."""

    _waiting: deque[QueuedPrompt] = msgspec.field(default_factory=deque)

    def __len__(self) -> int:
        return len(self._waiting)

    async def wait_until_accepted(self, prompt: Prompt, *, needs_turn: bool = False) -> PromptAccepted:
        """Queue a prompt and wait for its reply. `RequestFailed` if the turn is cancelled before it is accepted.

        `needs_turn`: `NoTurn` if the turn ends before.
        """
        queued = QueuedPrompt.of(prompt, needs_turn=needs_turn)
        self._waiting.append(queued)
        try:
            return await queued.reply
        finally:
            if queued in self._waiting:  # the request was cancelled
                self._waiting.remove(queued)

    def pop_for_turn(self) -> QueuedPrompt | None:
        """Remove and return the oldest one that may begin a turn; answer those before it that may not with `NoTurn`."""
        while (queued := self.pop()) is not None:
            if not queued.needs_turn:
                return queued
            queued.fail(NoTurn(INVALID_REQUEST, "No turn is running"))
        return None

    def pop(self) -> QueuedPrompt | None:
        """Remove and return the oldest one; None if there is none. The caller must accept or fail it."""
        return self._waiting.popleft() if self._waiting else None

    def reject_all(self) -> None:
        """Answer every waiting prompt with the error "Cancelled", and empty the queue."""
        while (queued := self.pop()) is not None:
            queued.fail(asyncio.CancelledError())


def retrieve_exception(work: "asyncio.Task[Any]") -> None:
    """Mark the exception of a task as retrieved: asyncio would log a traceback when the task is collected."""
    if not work.cancelled():
        work.exception()
