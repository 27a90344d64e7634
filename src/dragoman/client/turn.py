"""One prompt as a client sees it: sent, received event by event, ended once.

Two objects: the connection holds the `TurnEvents`, which sends the prompt and queues what comes of it; the caller holds
the `Turn`, which reads that queue. They are two because only the caller's object says whether anything will be read:
when the caller drops its `Turn`, nothing can ever read the queue, so it is emptied and later events go to the
`on_event` callback (see `_on_reader_dropped`). Without that, a dropped turn would stop the whole connection at its
bound of unread bytes.

How a turn moves
    NEW         `Conversation.prompt` was called; the task that sends the prompt has not run yet.
    WAITING     The task runs, and waits for the end of a cancelled turn before it, or for room in the link.
    SENT        The prompt is in the outbox. From here on only the agent ends the turn, or the end of the connection.
    CANCELLING  `cancel` was called. A prompt that was not sent never is, and the turn ends at once; else the agent was
                sent `session/cancel` and the turn ends when the agent says so.
    ENDED       The last event is queued, or the turn has failed. Queued events can still be read.
"""

import asyncio
import logging
import weakref
from collections import deque
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, Self

from msgspec import UNSET

from dragoman import limits
from dragoman.errors import INTERNAL_ERROR, RequestCancelled, UsageError, request_failed
from dragoman.vocabulary.events import AgentMessage, AgentMessageChunk, AnyEvent, Failure, Idle, Usage
from dragoman.vocabulary.requests import PromptRequest
from dragoman.vocabulary.state import SessionState

if TYPE_CHECKING:
    from dragoman.client.conversation import ConversationState

_CANCELLED: Final = Idle(stop_reason="cancelled")
_log: Final = logging.getLogger(__name__)


class TurnState(Enum):
    """Where a turn is; the module's docstring says what each state means."""

    NEW = "new"
    WAITING = "waiting"
    SENT = "sent"
    CANCELLING = "cancelling"
    ENDED = "ended"


# The states that may follow each. A step that is not here does not happen: `cancel` after the end, `on_sent` after
# `cancel`.
_NEXT: Final = {
    TurnState.NEW: {TurnState.WAITING, TurnState.CANCELLING, TurnState.ENDED},
    TurnState.WAITING: {TurnState.SENT, TurnState.CANCELLING, TurnState.ENDED},
    TurnState.SENT: {TurnState.CANCELLING, TurnState.ENDED},
    TurnState.CANCELLING: {TurnState.ENDED},
    TurnState.ENDED: set[TurnState](),
}


class Answer(NamedTuple):
    """A whole turn, read to its end: the agent's text, why it ended, and the tokens if the agent reported them."""

    text: str
    stop_reason: str
    usage: Usage | None


class TurnEvents:
    """Sends one prompt and queues the events of its turn. Watches the prompt's request (`link.contract.Watch`)."""

    def __init__(self, conversation: "ConversationState", predecessor: "TurnEvents | None") -> None:
        """Make a turn whose prompt is sent behind the end of `predecessor`, a cancelled turn of the session."""
        self.conversation = conversation
        self.predecessor = predecessor
        self.state = TurnState.NEW
        self.queue: deque[AnyEvent] = deque()
        self.queued_bytes = 0  # of the large events in the queue, beside a kibibyte for each event
        self.end: Idle | None = None
        # What the reader gets behind the last event. The clock sets it before the end, when it cancels a silent turn.
        self.error: Exception | None = None
        self.has_news = True  # an event came since the clock last looked
        self.request_number: int | None = None  # of the prompt, once it was sent
        self.wake: asyncio.Future[None] | None = None
        self.loop = conversation.connection.loop
        self.ended: asyncio.Future[None] = self.loop.create_future()
        self._is_detached = False
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<TurnEvents {self.state.value} queued={len(self.queue)} bytes={self.backlog}>"

    @property
    def has_ended(self) -> bool:
        """Return whether no event of this turn will come any more."""
        return self.state is TurnState.ENDED

    @property
    def backlog(self) -> int:
        """Return about how many bytes wait to be read."""
        return len(self.queue) * limits.KIB + self.queued_bytes

    def start(self, prompt: PromptRequest) -> None:
        """Start a task that sends the prompt as soon as the link accepts it; do not wait. Safe from any thread."""
        if asyncio._get_running_loop() is self.loop:
            self._start(prompt)
        else:
            self.loop.call_soon_threadsafe(self._start, prompt)  # `connect_sync` prompts from its own thread

    def _start(self, prompt: PromptRequest) -> None:
        self._task = self.loop.create_task(self._send(prompt))

    async def _send(self, prompt: PromptRequest) -> None:
        self.conversation.connection.clock.watch(self)
        try:
            if not self._enter(TurnState.WAITING):  # it was cancelled, or its session closed, before this task ran
                raise asyncio.CancelledError
            while self.predecessor is not None:
                await asyncio.wait([self.predecessor.ended])
                # One that was cancelled before it was sent has ended although its own predecessor may still run.
                self.predecessor = self.predecessor.predecessor
            if self.state is not TurnState.WAITING:
                return  # the session was closed meanwhile
            self.conversation.receiver = self
            await self.conversation.connection.link.ask(prompt, self)
        except (asyncio.CancelledError, RequestCancelled):
            if not self.has_ended:
                self.receive(_CANCELLED)
        except Exception as error:
            self.fail(error)

    def on_sent(self, number: int) -> None:
        self._enter(TurnState.SENT)
        self.request_number = number

    def on_reply(self) -> None:
        """Do nothing: `_send` gets the reply, or the refusal, from `link.ask`."""

    def receive(self, event: AnyEvent) -> None:
        """Queue an event of this turn, and end the turn with its last one."""
        self.has_news = True
        if self._is_detached:
            self.conversation.connection.deliver_outside_turn(self.conversation.conversation, event)
        else:
            self.queue.append(event)
        if event.__class__ is Idle and isinstance(event.stop_reason, str):
            self.end = event
            self._finish()
        wake = self.wake
        if wake is not None:
            self.wake = None
            if not wake.done():
                wake.set_result(None)

    def fail(self, error: Exception) -> None:
        """End the turn with an error, which the reader gets behind the queued events. No effect after the end."""
        if not self.has_ended:
            self.error = error
            self._finish()
            wake, self.wake = self.wake, None
            if wake is not None and not wake.done():
                wake.set_result(None)

    def cancel(self) -> bool:
        """Begin to cancel. Return whether the agent has to be sent a cancel: not if it has no prompt of this turn."""
        before = self.state
        if not self._enter(TurnState.CANCELLING):
            return False
        if before is TurnState.WAITING and self._task is not None:
            # In NEW the task is left alone: cancelled before its first step it would never reach its `except`.
            self._task.cancel()
        return before is TurnState.SENT

    def detach(self) -> None:
        """Drop unread events, and deliver later ones to the `on_event` callback, as events outside of turns."""
        _log.debug("a turn was dropped by its reader with %d events unread", len(self.queue))
        self.queue.clear()
        self.queued_bytes = 0
        self._is_detached = True
        self.conversation.connection.on_consumed(self)

    def _finish(self) -> None:
        if self._enter(TurnState.ENDED):
            self.ended.set_result(None)
            self.conversation.on_turn_ended(self)

    def _enter(self, state: TurnState) -> bool:
        """Move to a state if that is a step of `_NEXT`. Return whether it was."""
        if state not in _NEXT[self.state]:
            return False
        self.state = state
        return True


class Turn:
    """One prompt and what comes of it: an async iterator of events that ends when the turn does.

    It runs whether it is read or not. Leaving the loop early leaves it running: read on later, or `cancel()` it. While
    a turn is held and not read, at most about 16 MiB are queued; then the connection is not read any further. A turn
    that is not held any more is not queued: its events go to the `on_event` callback of `connect`.

    A turn that ended in an error raises at the end of the loop, behind everything that was received: `RequestFailed`
    if the agent refused the prompt or failed, `TimedOut` if it was silent for too long, `LinkClosed` if the connection
    or the session ended.
    """

    def __init__(self, events: TurnEvents) -> None:
        self._events = events
        self._queue = events.queue
        # Not `__del__`: a finalizer does not keep a half-made object alive, and runs once.
        weakref.finalize(self, _on_reader_dropped, events).atexit = False

    def __repr__(self) -> str:
        return f"<Turn {self._events.state.value} queued={len(self._queue)} stop_reason={self.stop_reason!r}>"

    @property
    def end(self) -> Idle | None:
        """Return the last event of the turn; None while it runs, and where the turn failed without one."""
        return self._events.end

    @property
    def stop_reason(self) -> str:
        """Return why the turn ended, such as `end_turn` or `cancelled`; empty while it runs."""
        end = self._events.end
        return end.stop_reason if end is not None and isinstance(end.stop_reason, str) else ""

    @property
    def usage(self) -> Usage | None:
        """Return the tokens of the turn, if the agent reported them."""
        end = self._events.end
        return end.usage if end is not None and isinstance(end.usage, Usage) else None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AnyEvent:
        queue = self._queue
        if queue:
            return queue.popleft()
        events = self._events
        while not queue:
            events.queued_bytes = 0
            events.conversation.connection.on_consumed(events)
            if events.has_ended:
                self._raise_if_failed()
                raise StopAsyncIteration
            if events.wake is not None and not events.wake.done():
                raise UsageError("a turn has one reader: read it in one task, and share what it gives")
            events.wake = events.loop.create_future()
            await events.wake
        return queue.popleft()

    def ready(self) -> list[AnyEvent]:
        """Return the events that were received and not read yet, without waiting."""
        found = list(self._queue)
        self._queue.clear()
        return found

    async def cancel(self) -> None:
        """Ask the agent to stop; do not wait. The turn still ends by itself, as `cancelled`: read it to its end."""
        self._events.conversation.cancel_turn(self._events)

    async def read(self) -> Answer:
        """Read the turn to its end, wait for that, and return the agent's text. Raise what the loop would raise.

        The text is that of the agent's messages as they are at the end, one after the other.
        """
        messages = SessionState()
        async for event in self:
            if type(event) is AgentMessageChunk or type(event) is AgentMessage:
                messages.apply(event)
        return Answer(messages.text(AgentMessage), self.stop_reason, self.usage)

    def _raise_if_failed(self) -> None:
        events = self._events
        if events.error is not None:
            raise events.error
        if events.end is not None and events.end.stop_reason == "error":
            # An agent on an older draft of v2 cannot say why.
            error = events.end.error or Failure(INTERNAL_ERROR, "The agent ended the turn in an error")
            raise request_failed(error.code, error.message, None if error.data is UNSET else error.data)

    if not TYPE_CHECKING:  # a type checker knows that these cannot be used

        def __await__(self) -> NoReturn:
            raise UsageError("a turn is read with `async for event in turn`, or whole with `await turn.read()`")

        def __iter__(self) -> NoReturn:
            raise UsageError("a turn is read with `async for`; without async, use dragoman.connect_sync")


def _on_reader_dropped(events: TurnEvents) -> None:
    """Detach a turn whose `Turn` was collected. Called in whichever thread the collector runs."""
    if events.queue or not events.has_ended:
        with suppress(RuntimeError):  # the loop is closed, and everything with it
            events.loop.call_soon_threadsafe(events.detach)
