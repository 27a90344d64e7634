"""How messages get from one side of a bridge to the other: a queue each way, and a request with its reply in both.

    client side                              agent side
    request 7  ── queue ──►  ForwardedRequest ──►  request 1
    reply to 7 ◄──────────── queue ◄────────────── reply to 1

A `ForwardingQueue` runs its steps one after the other, each when the one before has left. A `ForwardedRequest` puts a
step into the queue of the side that sent it ("ask it now") and, when its reply arrives, one into the other queue
("reply now"): so a reply overtakes no event that was received before it, and no event overtakes the reply.

However the request ends at the other side, it ends here exactly once: with the reply, or with an error that says what
happened. `OpenWork` remembers what the client has begun and the agent has not finished.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, Final

from dragoman import limits
from dragoman.dialects.contract import Id
from dragoman.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    TOO_MANY_IN_FLIGHT,
    LinkClosed,
    PeerError,
    RequestFailed,
    UsageError,
    WireError,
    wire_error,
)
from dragoman.link import Link
from dragoman.vocabulary.asking import Reply, Request
from dragoman.vocabulary.requests import CloseSession, ListSessions, PromptRequest

if TYPE_CHECKING:
    from dragoman.bridge.sides import BridgeSide

# What a bridge says in its own words, where one side cannot be sent what the other has sent.
GONE: Final = "The other side of the bridge is gone"
UNREADABLE: Final = "The other side of the bridge gave an answer that cannot be read"
TOO_LARGE: Final = "In the version of the other side this message is too large"
_UNREADABLE_REPLY: Final = WireError(INTERNAL_ERROR, UNREADABLE)

Step = Callable[[], Awaitable[None]]


class ForwardingQueue:
    """The messages of one side on their way to the other. Calls `on_idle` whenever it is empty and its last step is
    done."""

    def __init__(
        self, on_idle: Callable[[], None], on_noise: Callable[[str], None], on_bug: Callable[[Exception], None]
    ) -> None:
        self.is_idle = True
        self._on_idle = on_idle
        self._on_noise = on_noise
        self._on_bug = on_bug
        self._steps: deque[Step] = deque()
        self._steps_done = 0
        self._is_open = asyncio.Event()
        self._has_steps = asyncio.Event()
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def __repr__(self) -> str:
        state = "ended" if self._ended.done() else "open" if self._is_open.is_set() else "waiting for initialize"
        return f"<ForwardingQueue {state} waiting={len(self._steps)} done={self._steps_done}>"

    def put(self, step: Step) -> None:
        """Append a step."""
        self._steps.append(step)
        self.is_idle = False
        self._has_steps.set()

    def open(self) -> None:
        """Let `run` begin, from the next turn of the loop on: `initialize` is answered, or nothing more will come."""
        self._is_open.set()

    def end(self) -> None:
        """Mark the end: no message will be received after those that are queued."""

        async def set_ended() -> None:
            if not self._ended.done():
                self._ended.set_result(None)

        self.put(set_ended)
        self.open()

    async def run(self) -> None:
        """Run the steps in order, until cancelled.

        A step that raises `LinkClosed` is over: the closed link reports itself by `on_closed`. `UsageError` goes to
        `on_noise`, any other exception to `on_bug`.
        """
        # Nothing may reach a side before the reply to its `initialize`, and that needs the other side's reply first.
        await self._is_open.wait()
        while True:
            while self._steps:
                step = self._steps.popleft()
                self._steps_done += 1
                try:
                    await step()
                except LinkClosed:
                    pass
                except UsageError:
                    self._on_noise(TOO_LARGE)
                except Exception as error:
                    self._on_bug(error)
            self.is_idle = True
            self._on_idle()
            self._has_steps.clear()
            await self._has_steps.wait()

    async def drain(self, reader: Link) -> None:
        """Wait until all steps ran and `reader` has written them, or made no progress in `CLOSE_FLUSH_SECONDS`."""
        before = None
        while before != (before := (self._steps_done, reader.outbox.written)):
            if self._ended.done():
                await reader.outbox.wait_until_drained(limits.CLOSE_FLUSH_SECONDS)
            else:
                await asyncio.wait([self._ended], timeout=limits.CLOSE_FLUSH_SECONDS)


class ForwardedRequest:
    """A request received by the side `here`, asked by the side `there`.

    The link that received it awaits this object for the reply; for the link that asks it, it is the `Watch`. Its states
    follow each other: queued, asked (`_may_ask`), sent (`number` is set), answered (`is_answered`), replied
    (`_may_reply`). It may fail in each of them; the two queues go on all the same.
    """

    def __init__(self, here: "BridgeSide", there: "BridgeSide", request: Request, id: Id) -> None:
        loop = asyncio.get_running_loop()
        self.request: Final = request
        self.id: Final = id
        self.number = 0
        self.is_answered = False
        self._here = here
        self._there = there
        self._may_ask: asyncio.Future[None] = loop.create_future()
        self._was_sent: asyncio.Future[None] = loop.create_future()
        self._may_reply: asyncio.Future[None] = loop.create_future()
        self._task: asyncio.Task[Any] | None = None

    def __repr__(self) -> str:
        state = "answered" if self.is_answered else f"sent as {self.number}" if self.number else "queued"
        return f"<ForwardedRequest {type(self.request).__name__} id={self.id!r} {state}>"

    def __await__(self) -> Generator[Any, None, Reply]:
        return self._forward().__await__()

    async def send(self) -> None:
        """Ask the request at the other side; returns when it was sent or cannot be. A step of the queue there."""
        _settle(self._may_ask)
        await self._was_sent

    async def reply(self) -> None:
        """Reply, and wait until the reply was sent or cannot be. A step of the queue back."""
        _settle(self._may_reply)
        if self._task is not None:
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                self._task.exception()  # retrieved, or asyncio warns: the link that it was for may be gone

    def step_aside(self) -> None:
        """Let what was received behind it go on: it is asked later, or not at all."""
        _settle(self._was_sent)

    # -- the link that asks it calls these ---------------------------------------------------------------------------

    def on_sent(self, number: int) -> None:
        # A dialect may ask twice, under another method name: the number of the first try is over.
        self._here.on_end(self)
        self.number = number
        self._here.on_sent(self)
        _settle(self._was_sent)

    def on_reply(self) -> None:
        self.is_answered = True
        self._here.on_answer(self)
        self._there.queue.put(self.reply)

    # -- small steps -------------------------------------------------------------------------------------------------

    async def _forward(self) -> Reply:
        self._task = asyncio.current_task()
        self._here.track_reply(self._task)
        try:
            await self._may_ask
            reply = await self._outcome()
            # Without a reply there is no step to wait for: what failed here is answered at once.
            if self.is_answered:
                await self._may_reply
        finally:
            _settle(self._was_sent)
            self._here.on_end(self)
        if isinstance(reply, RequestFailed):
            raise reply
        return reply

    async def _outcome(self) -> Reply | RequestFailed:
        """Ask, and return the reply whatever happens; errors of the other side with their code, message and data."""
        outcome: Reply | RequestFailed
        try:
            # Closing and listing pass the limit in every dialect: they are how a client gets out of a jam.
            if self._there.link.busy and not isinstance(self.request, (CloseSession, ListSessions)):
                raise RequestFailed(TOO_MANY_IN_FLIGHT, "Too many requests in flight", {"retry": True})
            outcome = await self._here.ask_other_side(self)
        except RequestFailed as failed:
            outcome = failed
        except LinkClosed:
            outcome = self._here.default_reply(self.request)
        except UsageError:
            # In the other version it has grown past what a peer takes.
            outcome = RequestFailed(INVALID_REQUEST, TOO_LARGE)
        except PeerError as mistake:
            # Before the answer it is a request that the other version cannot ask, after it an answer without sense.
            outcome = RequestFailed(*(_UNREADABLE_REPLY if self.is_answered else wire_error(mistake)))
        except Exception as error:
            self._here.on_bug(error)
            outcome = RequestFailed(*wire_error(error))
        finally:
            _settle(self._was_sent)
        self._here.on_outcome(self, outcome)
        return outcome


class OpenWork:
    """What the client has begun and the agent has not finished: requests by their number at the agent, and turns.

    Both sides write it: the client's side knows what was asked, the agent's side what became of it. A request is known
    until its reply was sent, and a prompt that was accepted until its turn has ended: so long may the agent ask about
    it. A session with a turn owes the client an end, also when the agent dies.
    """

    def __init__(self) -> None:
        self._requests: dict[int, ForwardedRequest] = {}
        self._prompts: dict[str, set[ForwardedRequest]] = {}  # answered, and their turn has not ended
        self._running: set[str] = set()

    def __repr__(self) -> str:
        return f"<OpenWork requests={len(self._requests)} sessions={len(self.sessions())}>"

    # -- requests ----------------------------------------------------------------------------------------------------

    def add(self, forwarded: ForwardedRequest) -> None:
        """Remember a request that was sent, by its number."""
        self._requests[forwarded.number] = forwarded

    def find(self, number: int) -> ForwardedRequest | None:
        """Return the request of this number; None if it is over."""
        return self._requests.get(number)

    def remove(self, forwarded: ForwardedRequest) -> None:
        """Remove a request that was answered or cancelled. A prompt stays until its turn has ended."""
        request = forwarded.request
        if not isinstance(request, PromptRequest) or forwarded not in self._prompts.get(request.session_id, ()):
            self._requests.pop(forwarded.number, None)

    # -- turns -------------------------------------------------------------------------------------------------------

    def expect_turn(self, session_id: str, prompt: ForwardedRequest) -> None:
        """Remember that this prompt is answered, and has a turn unless `no_turn` follows."""
        self._prompts.setdefault(session_id, set()).add(prompt)

    def no_turn(self, session_id: str, prompt: ForwardedRequest) -> None:
        """Remove a prompt whose answer was an error, or an end: it began no turn."""
        accepted = self._prompts.get(session_id, set())
        accepted.discard(prompt)
        if not accepted:
            self._prompts.pop(session_id, None)

    def begin_turn(self, session_id: str) -> None:
        """Remember that the agent has called this session running."""
        self._running.add(session_id)

    def is_running(self, session_id: str) -> bool:
        """Return whether the agent has called this session running."""
        return session_id in self._running

    def end_turns(self, session_id: str) -> None:
        """Remove the turns of this session, and the prompts that began them."""
        self._running.discard(session_id)
        for prompt in self._prompts.pop(session_id, ()):
            self._requests.pop(prompt.number, None)

    def sessions(self) -> set[str]:
        """Return the sessions whose turn has not ended."""
        return self._running | self._prompts.keys()


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
