"""One prompt as a client sees it: sent, heard event by event, ended once.

The conversation keeps the `TurnEvents`, which receives; the caller holds the `Turn`, which reads. So a `Turn` that was
garbage collected is noticed, and events that still come for it are not queued.
"""

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, Self

from msgspec import UNSET

from dragoman import limits
from dragoman.errors import INTERNAL_ERROR, RequestCancelled, UsageError, request_failed
from dragoman.vocabulary.events import AgentMessageChunk, AnyEvent, Failure, Idle, Usage
from dragoman.vocabulary.requests import PromptRequest

if TYPE_CHECKING:
    from dragoman.client.conversation import Conversation

_CANCELLED: Final = Idle(stop_reason="cancelled")


class Answer(NamedTuple):
    """A whole turn, read to its end."""

    text: str
    stop_reason: str
    usage: Usage | None


class TurnEvents:
    """What is heard of one turn and waits to be read."""

    def __init__(self, conversation: "Conversation", before: "TurnEvents | None") -> None:
        self.conversation = conversation
        self.queue: deque[AnyEvent] = deque()
        self.end: Idle | None = None
        self.error: Exception | None = None
        self.cancelled = False
        self.before = before  # cancelled, and not over yet: it goes first
        self.begun = False
        self.left = False  # the prompt is on its way: only the agent can end the turn now
        self.weight = 0  # bytes of the long events in the queue, beside a kibibyte for each
        self.fresh = True  # something was heard since the clock last looked
        self.number = 0  # of the prompt, where it was sent
        self.wake: asyncio.Future[None] | None = None
        self.loop = conversation.client.loop
        self.over: asyncio.Future[None] = self.loop.create_future()
        self.task: asyncio.Task[None] | None = None

    def start(self, prompt: PromptRequest) -> None:
        """Start a task that sends the prompt as soon as the link accepts it; do not wait. Safe from any thread."""
        if asyncio._get_running_loop() is self.loop:
            self._begin(prompt)
        else:
            self.loop.call_soon_threadsafe(self._begin, prompt)  # `connect_sync` prompts from its own thread

    def _begin(self, prompt: PromptRequest) -> None:
        self.task = self.loop.create_task(self._send(prompt))

    async def _send(self, prompt: PromptRequest) -> None:
        self.begun = True
        self.conversation.client.clock.watch(self)
        try:
            if self.before is not None:
                await asyncio.wait([self.before.over])
                self.before = None
            if self.cancelled:
                raise asyncio.CancelledError
            self.conversation.listener = self
            await self.conversation.client.link.ask(prompt, self)
        except (asyncio.CancelledError, RequestCancelled):
            if not self.over.done():
                self.hear(_CANCELLED)
        except Exception as error:
            self.fail(error)

    def on_sent(self, number: int) -> None:
        """The prompt has its place in the outbox."""
        self.left = True
        self.number = number

    def on_reply(self) -> None:
        """The prompt was accepted, or refused: `_send` is told which."""

    def hear(self, event: AnyEvent) -> None:
        """What belongs to this turn, in order."""
        self.fresh = True
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
        """It was refused, or the connection is gone: what was heard is still read, then this is raised."""
        if not self.over.done():
            self.error = error
            self._finish()
            wake, self.wake = self.wake, None
            if wake is not None and not wake.done():
                wake.set_result(None)

    def cancel(self) -> bool:
        """Whether the agent has to be told: it is not if it never heard of the turn."""
        if self.over.done() or self.cancelled:
            return False
        self.cancelled = True
        if self.begun and not self.left and self.task is not None:
            self.task.cancel()
        return self.left

    def abandon(self) -> None:
        """Drop unread events; pass later ones to the client's `on_event` callback, as events outside of turns."""
        self.queue.clear()
        self.weight = 0
        self.hear = self._hear_in_passing  # type: ignore[method-assign]  # the usual way stays free of the question
        self.conversation.client.taken(self)

    def _hear_in_passing(self, event: AnyEvent) -> None:
        self.fresh = True
        self.conversation.client.outside_turn(self.conversation, event)
        if isinstance(event, Idle) and isinstance(event.stop_reason, str):
            self.end = event
            self._finish()

    @property
    def backlog(self) -> int:
        """About how many bytes wait to be read."""
        return len(self.queue) * limits.KIB + self.weight

    def _finish(self) -> None:
        if not self.over.done():
            self.over.set_result(None)
            self.conversation.ended(self)


class Turn:
    """One prompt and what comes of it: an async iterator of events that ends when the turn does.

    It runs whether it is read or not. Leaving the loop early leaves it running: go on reading later, or `cancel()` it.
    A turn that ended in an error raises at the end of the loop, after everything that was said before.
    """

    def __init__(self, run: TurnEvents) -> None:
        self._run = run
        self._queue = run.queue

    @property
    def end(self) -> Idle | None:
        """The last event; None while the turn runs."""
        return self._run.end

    @property
    def stop_reason(self) -> str:
        """Why the turn ended; empty while it runs."""
        end = self._run.end
        return end.stop_reason if end is not None and isinstance(end.stop_reason, str) else ""

    @property
    def usage(self) -> Usage | None:
        """The tokens of the turn, if the agent told them."""
        end = self._run.end
        return end.usage if end is not None and isinstance(end.usage, Usage) else None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AnyEvent:
        queue = self._queue
        if queue:
            return queue.popleft()
        run = self._run
        while not queue:
            run.weight = 0
            run.conversation.client.taken(run)
            if run.over.done():
                self._raise_if_failed()
                raise StopAsyncIteration
            if run.wake is not None and not run.wake.done():
                raise UsageError("a turn has one reader: read it in one task, and share what it gives")
            run.wake = run.loop.create_future()
            await run.wake
        return queue.popleft()

    def ready(self) -> list[AnyEvent]:
        """The events that have come already, without waiting."""
        found = list(self._queue)
        self._queue.clear()
        return found

    async def cancel(self) -> None:
        """Ask the agent to stop. The turn still ends by itself, as cancelled: go on reading."""
        self._run.conversation.cancel_run(self._run)

    async def read(self) -> Answer:
        """Read the turn to its end; what the agent said, as text."""
        pieces = [event.text async for event in self if type(event) is AgentMessageChunk]
        return Answer("".join(pieces), self.stop_reason, self.usage)

    def _raise_if_failed(self) -> None:
        run = self._run
        if run.error is not None:
            raise run.error
        if run.end is not None and run.end.stop_reason == "error":
            # An agent on an older draft of v2 cannot say why.
            error = run.end.error or Failure(INTERNAL_ERROR, "The agent ended the turn in an error")
            raise request_failed(error.code, error.message, None if error.data is UNSET else error.data)

    if not TYPE_CHECKING:  # a type checker knows that these cannot be used

        def __await__(self) -> NoReturn:
            raise UsageError("a turn is read with `async for event in turn`, or whole with `await turn.read()`")

        def __iter__(self) -> NoReturn:
            raise UsageError("a turn is read with `async for`; without async, use dragoman.connect_sync")

    def __del__(self) -> None:
        run = getattr(self, "_run", None)
        if run is not None and (run.queue or not run.over.done()):
            with suppress(RuntimeError):  # the loop is closed, and everything with it
                run.loop.call_soon_threadsafe(run.abandon)
