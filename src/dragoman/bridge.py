"""Two links joined: what one side is heard to say is said to the other, in its dialect.

    editor -- front (we are its agent) == Bridge == back (we are its client) -- agent

It knows the vocabulary and two links, and nothing of the versions between them beyond what a link says it speaks.

Promises
- Each way is one file of steps: events, notes, requests and answers leave in the order they were heard.
- Every request ends exactly once on both sides, and so does every turn, whichever side fails or goes away.
- A permission never turns into an allow: dialects pass on only an option that was offered and chosen, and whatever
  goes wrong between them is nobody's choice or an error.
- A side that does not read is not written for: the other side is no longer read until it has caught up.
- Ids belong to one hop. A question that names a request is asked under that request's name on the other hop.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from dragoman import limits
from dragoman.dialects.contract import Id
from dragoman.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    TOO_MANY_IN_FLIGHT,
    UNSUPPORTED_VERSION,
    LinkClosed,
    PeerError,
    RequestFailed,
    UsageError,
    VersionMismatch,
    WireError,
    wire_error,
)
from dragoman.link import Link, Role, Trace
from dragoman.transports.contract import Receiver, Transport
from dragoman.vocabulary.asking import Done, Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent, Failure, Idle, RequiresAction, Running
from dragoman.vocabulary.hello import AgentHello, ClientHello
from dragoman.vocabulary.requests import CancelTurn, CloseSession, DeleteSession, ListSessions, Prompt, PromptAccepted
from dragoman.vocabulary.services import (
    Dismissed,
    Elicit,
    ElicitationAnswer,
    PermissionAnswer,
    RequestPermission,
    RequestScope,
    SessionScope,
    UnknownMode,
)

Noise = Callable[[str], None]
Step = Callable[[], Awaitable[None]]

GONE: Final = "The other side of the bridge is gone"
UNREADABLE: Final = "The other side of the bridge gave an answer that cannot be read"
SENSELESS: Final = WireError(INTERNAL_ERROR, UNREADABLE)
TOO_LARGE: Final = "In the version of the other side this message is too large"
# What one side has said and the other has not been told yet; together with its outbox this is what a bridge holds.
UNSAID_BYTES: Final = limits.OUTBOX_BYTES


class Bridge:
    """An editor on `front`, an agent on `back`. Made inside a running loop; `run` does the work.

    `trace` sees the frames of the front, `trace_back` those of the back. `on_noise` hears what was skipped, and why.
    """

    def __init__(
        self,
        front: Transport,
        back: Transport,
        *,
        trace: Trace | None = None,
        trace_back: Trace | None = None,
        on_noise: Noise | None = None,
        start_timeout: float = limits.START_SECONDS,
    ) -> None:
        self._front = _Front(front, "agent", trace, on_noise)
        self._back = _Back(back, "client", trace_back, on_noise)
        self._front.back, self._front.start_timeout = self._back, start_timeout
        self._back.front = self._front

    async def run(self) -> None:
        """Join them until one is gone; then pass on its last words, end what it left open, and end the other."""
        front, back = self._front, self._back
        ways = [asyncio.ensure_future(side.way.run(side)) for side in (front, back)]
        try:
            back.link.start()
            front.link.start()
            await asyncio.wait([front.lost, back.lost], return_when=asyncio.FIRST_COMPLETED)
            for side, other in ((front, back), (back, front)):
                if side.lost.done():
                    await side.way.emptied(other.link)
                    await other.answered()
        finally:
            for side in (front, back):
                await side.link.close()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)


class _Way:
    """One way across: steps that are taken one after the other, each when the one before it has left."""

    def __init__(self, gate: "_Gate") -> None:
        self.idle = True
        self._gate = gate
        self._steps: deque[Step] = deque()
        self._taken = 0
        self._open = asyncio.Event()
        self._more = asyncio.Event()
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def put(self, step: Step) -> None:
        """The next step."""
        self._steps.append(step)
        self.idle = False
        self._more.set()

    def open(self) -> None:
        """From the next turn of the loop on there is somebody to speak to."""
        self._open.set()

    def end(self) -> None:
        """Nothing more will be heard."""

        async def over() -> None:
            if not self._ended.done():
                self._ended.set_result(None)

        self.put(over)
        self.open()

    async def run(self, side: "_Side") -> None:
        """Take the steps. One that finds nobody is over at once: that the other side is gone is told elsewhere."""
        await self._open.wait()
        while True:
            while self._steps:
                step = self._steps.popleft()
                self._taken += 1
                try:
                    await step()
                except LinkClosed:
                    pass
                except UsageError:
                    side.on_noise(TOO_LARGE)
                except Exception as error:
                    side.report(error)
            self.idle = True
            self._gate.passed_on()
            self._more.clear()
            await self._more.wait()

    async def emptied(self, reader: Link) -> None:
        """Wait until all of it has left, for as long as whoever reads makes any progress."""
        before = None
        while before != (before := (self._taken, reader.outbox.written)):
            if self._ended.done():
                await reader.outbox.drained(limits.CLOSE_FLUSH_SECONDS)
            else:
                await asyncio.wait([self._ended], timeout=limits.CLOSE_FLUSH_SECONDS)


class _Gate:
    """A transport that is not read while too much of what it brought has not been passed on.

    A link does the same for a client that does not take its events, but reads on while a request of its own waits
    for the answer. Here the answer would only wait behind the rest.
    """

    link: Link
    way: _Way

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._receiver: Receiver
        self._unsaid = 0
        self._shut = False
        self._link_pauses = False

    def passed_on(self) -> None:
        """Everything heard was said to the other side."""
        self._unsaid = 0
        self.link.taken()
        if self._shut:
            self._shut = False
            if not self._link_pauses:
                self._transport.resume_reading()

    # -- the transport calls these -----------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self.way.idle:
            self.link.taken()  # a frame that is not complete has nothing to be passed on
        self._receiver.data_received(data)
        if self.way.idle:
            return
        self._unsaid += len(data)
        if self._unsaid > UNSAID_BYTES and not self._shut:
            self._shut = True
            self._transport.pause_reading()

    def writable(self) -> None:
        self._receiver.writable()

    def connection_lost(self, error: Exception | None) -> None:
        self._receiver.connection_lost(error)

    # -- the link calls these ----------------------------------------------------------------------------------------

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._transport.start(self)

    def write(self, data: bytes | memoryview) -> int:
        return self._transport.write(data)

    def pause_reading(self) -> None:
        self._link_pauses = True
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._link_pauses = False
        if not self._shut:
            self._transport.resume_reading()

    def close_writing(self) -> None:
        self._transport.close_writing()

    async def close(self) -> None:
        await self._transport.close()


class _Crossing:
    """One request: it is asked on the other side when its turn comes, and answered where its answer was heard.

    It is what the link that heard it waits for, and what watches the asking on the other link.
    """

    def __init__(self, here: "_Side", there: "_Side", request: Request, id: Id) -> None:
        loop = asyncio.get_running_loop()
        self.request: Final = request
        self.id: Final = id
        self.number = 0
        self.is_answered = False
        self._here = here
        self._there = there
        self._may_ask: asyncio.Future[None] = loop.create_future()
        self._has_left: asyncio.Future[None] = loop.create_future()
        self._may_answer: asyncio.Future[None] = loop.create_future()
        self._task: asyncio.Task[Any] | None = None

    def __await__(self) -> Generator[Any, None, Reply]:
        return self._cross().__await__()

    async def go(self) -> None:
        """A step of the way there: nothing passes the request before it has left."""
        _settle(self._may_ask)
        await self._has_left

    async def come(self) -> None:
        """A step of the way back: nothing passes the answer before it was said."""
        _settle(self._may_answer)
        if self._task is not None:
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                self._task.exception()  # seen: the link to which it was said may be gone

    def sent(self, number: int) -> None:
        self.number = number
        self._here.asked[number] = self
        _settle(self._has_left)

    def heard(self) -> None:
        self.is_answered = True
        self._here.on_answer(self)
        self._there.way.put(self.come)

    async def _cross(self) -> Reply:
        self._task = asyncio.current_task()
        self._here.answers(self._task)
        try:
            await self._may_ask
            reply = await self._outcome()
            if self.is_answered:
                await self._may_answer
        finally:
            _settle(self._has_left)
            self._here.on_end(self)
        if isinstance(reply, RequestFailed):
            raise reply
        return reply

    async def _outcome(self) -> Reply | RequestFailed:
        """The answer, whatever happens; errors of the other side with their code, message and data."""
        outcome: Reply | RequestFailed
        try:
            if self._there.link.busy and not isinstance(self.request, (CloseSession, ListSessions)):
                raise RequestFailed(TOO_MANY_IN_FLIGHT, "Too many requests in flight", {"retry": True})
            outcome = await self._here.carry(self)
        except RequestFailed as failed:
            outcome = failed
        except LinkClosed:
            outcome = self._here.abandoned(self.request)
        except UsageError:
            # In the other version it has grown past what a peer takes.
            outcome = RequestFailed(INVALID_REQUEST, TOO_LARGE)
        except PeerError as mistake:
            # Before the answer it is a request that the other version cannot ask, after it an answer without sense.
            outcome = RequestFailed(*(SENSELESS if self.is_answered else wire_error(mistake)))
        except Exception as error:
            self._here.report(error)
            outcome = RequestFailed(*wire_error(error))
        finally:
            _settle(self._has_left)
        self._here.on_outcome(self, outcome)
        return outcome


class _Side:
    """One side: it hears its own link, and what it hears takes the way to the other."""

    def __init__(self, transport: Transport, role: Role, trace: Trace | None, on_noise: Noise | None) -> None:
        gate = _Gate(transport)
        self.way: Final = _Way(gate)
        self.link: Final = Link(gate, self, role, trace=trace)
        gate.way, gate.link = self.way, self.link
        self.lost: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        # Requests heard here, by their number on the other side, for as long as somebody may refer to them.
        self.asked: Final[dict[int, _Crossing]] = {}
        self._answers: set[asyncio.Task[Any]] = set()
        self._on_noise = on_noise

    @property
    def other(self) -> "_Side":
        """The side across."""
        raise NotImplementedError

    def answers(self, task: "asyncio.Task[Any] | None") -> None:
        """This task of our link is going to answer something."""
        if task is not None:
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)

    async def answered(self) -> None:
        """Wait until every request heard here has its answer. Bounded."""
        if self._answers:
            await asyncio.wait(list(self._answers), timeout=limits.EOF_ANSWER_SECONDS)

    def give_up(self) -> None:
        """Stop working on every request heard here; on the other side they are cancelled."""
        for task in list(self._answers):
            task.cancel()

    def report(self, error: Exception) -> None:
        """A mistake of ours."""
        asyncio.get_running_loop().call_exception_handler({"message": "a dragoman bridge failed", "exception": error})

    # -- a crossing calls these --------------------------------------------------------------------------------------

    async def carry(self, crossing: _Crossing) -> Reply:
        """Ask it on the other side."""
        return await self.other.link.ask(crossing.request, crossing)

    def on_answer(self, crossing: _Crossing) -> None:
        """Its answer stands here among what the other side says."""

    def on_outcome(self, crossing: _Crossing, outcome: Reply | RequestFailed) -> None:
        """It is known how it ended."""

    def on_end(self, crossing: _Crossing) -> None:
        """It is over, answered or cancelled."""
        self.asked.pop(crossing.number, None)

    def abandoned(self, request: Request) -> Reply | RequestFailed:
        """What we answer when the other side will not."""
        return RequestFailed(INTERNAL_ERROR, GONE)

    # -- the link calls these ----------------------------------------------------------------------------------------

    def on_hello(self, hello: ClientHello) -> AgentHello | Awaitable[AgentHello]:
        raise UsageError("a client is not greeted")

    def on_request(self, request: Request, id: Id) -> Reply | Awaitable[Reply]:
        if self.other.lost.done():
            reply = self.abandoned(request)
            if isinstance(reply, RequestFailed):
                raise reply
            return reply
        crossing = _Crossing(self, self.other, request, id)
        self.way.put(crossing.go)
        return crossing

    def on_note(self, note: Note) -> None:
        self.way.put(partial(self.other.link.note, note))

    def on_event(self, session_id: str, event: AnyEvent) -> None:
        self.way.put(partial(self.other.link.tell, session_id, event))

    def on_noise(self, reason: str) -> None:
        if self._on_noise is not None:
            self._on_noise(reason)

    def on_bug(self, error: Exception) -> None:
        self.report(error)

    def on_closed(self, error: LinkClosed) -> None:
        if not self.lost.done():
            self.lost.set_result(None)
            self.way.end()


class _Front(_Side):
    """The side of the editor."""

    back: "_Back"
    start_timeout: float

    @property
    def other(self) -> "_Back":
        return self.back

    def on_hello(self, hello: ClientHello) -> Awaitable[AgentHello]:
        return self._meet(hello)

    async def _meet(self, hello: ClientHello) -> AgentHello:
        """The editor's words are said to the agent, and its answer is ours."""
        self.answers(asyncio.current_task())
        try:
            async with asyncio.timeout(self.start_timeout):
                agent = await self.back.link.hello(hello)
        except RequestFailed:
            raise
        except VersionMismatch as mismatch:
            raise RequestFailed(UNSUPPORTED_VERSION, "The agent speaks another protocol version") from mismatch
        except PeerError as mistake:
            raise RequestFailed(INTERNAL_ERROR, UNREADABLE) from mistake
        except LinkClosed as closed:
            raise RequestFailed(INTERNAL_ERROR, GONE) from closed
        except TimeoutError as late:
            raise RequestFailed(INTERNAL_ERROR, "The agent did not answer initialize in time") from late
        self.back.agent = agent
        self.way.open()
        self.back.way.open()
        return agent

    async def carry(self, crossing: _Crossing) -> Reply:
        """Ask the agent. To close a session that its version cannot close is to stop its work."""
        request = crossing.request
        if isinstance(request, CloseSession) and not self.back.agent.capabilities.close:
            await self.back.link.note(CancelTurn(request.session_id))
            return Done()
        return await super().carry(crossing)

    def on_answer(self, crossing: _Crossing) -> None:
        request = crossing.request
        if isinstance(request, Prompt):
            self.back.prompts.setdefault(request.session_id, set()).add(crossing)

    def on_outcome(self, crossing: _Crossing, outcome: Reply | RequestFailed) -> None:
        request = crossing.request
        if isinstance(request, Prompt) and not isinstance(outcome, PromptAccepted):
            self.back.no_turn(request.session_id, crossing)
        elif isinstance(request, (CloseSession, DeleteSession)) and isinstance(outcome, Reply):
            self.back.forget(request.session_id)

    def on_end(self, crossing: _Crossing) -> None:
        request = crossing.request
        if not isinstance(request, Prompt) or crossing not in self.back.prompts.get(request.session_id, ()):
            super().on_end(crossing)


class _Back(_Side):
    """The side of the agent."""

    front: _Front

    def __init__(self, transport: Transport, role: Role, trace: Trace | None, on_noise: Noise | None) -> None:
        super().__init__(transport, role, trace, on_noise)
        self.agent = AgentHello(None)
        # Prompts that were accepted and whose turn has not ended, by session.
        self.prompts: Final[dict[str, set[_Crossing]]] = {}
        self._running: set[str] = set()

    @property
    def other(self) -> _Front:
        return self.front

    def live(self) -> set[str]:
        """The sessions that owe the editor an end."""
        return self._running | self.prompts.keys()

    def forget(self, session_id: str) -> None:
        """This session does nothing any more."""
        self._running.discard(session_id)
        for prompt in self.prompts.pop(session_id, ()):
            self.front.asked.pop(prompt.number, None)

    def no_turn(self, session_id: str, prompt: _Crossing) -> None:
        """This prompt was answered, and began no turn."""
        accepted = self.prompts.get(session_id, set())
        accepted.discard(prompt)
        if not accepted:
            self.prompts.pop(session_id, None)

    # -- the link calls these ----------------------------------------------------------------------------------------

    def on_event(self, session_id: str, event: AnyEvent) -> None:
        match event:
            case Running() | RequiresAction():
                self._running.add(session_id)
            case Idle():
                if isinstance(event.stop_reason, str) or session_id in self._running:
                    self.forget(session_id)
            case _:
                pass
        super().on_event(session_id, event)

    def on_closed(self, error: LinkClosed) -> None:
        if not self.lost.done():
            # After the answers to what was asked, so that a prompt which was refused now has no turn to end.
            self.way.put(self._end_turns)
        super().on_closed(error)
        self.give_up()  # nobody waits for what the agent has asked, so the editor need not think about it

    async def _end_turns(self) -> None:
        for session_id in sorted(self.live()):
            await self.front.link.tell(session_id, Idle("error", Failure(INTERNAL_ERROR, GONE)))

    # -- a crossing calls these --------------------------------------------------------------------------------------

    async def carry(self, crossing: _Crossing) -> Reply:
        """Ask the editor; a question about a request of its own, under the name it gave that."""
        request = crossing.request
        if not isinstance(request, Elicit) or not isinstance(request.scope, RequestScope):
            return await super().carry(crossing)
        scope = self._scope_there(request.scope)
        if scope is None:
            return ElicitationAnswer("cancel")
        return await self.front.link.ask(_rescoped(request, scope), crossing)

    def abandoned(self, request: Request) -> Reply | RequestFailed:
        match request:
            case RequestPermission():
                return PermissionAnswer(Dismissed())
            case Elicit():
                return ElicitationAnswer("cancel")
            case _:
                return super().abandoned(request)

    def _scope_there(self, scope: RequestScope) -> RequestScope | SessionScope | None:
        """The request as the editor knows it; its session, where the editor has its answer; None where it is over."""
        number = scope.request_id
        crossing = self.front.asked.get(number) if isinstance(number, int) else None
        if crossing is None:
            return None
        if isinstance(crossing.request, Prompt) and crossing.is_answered and self.front.link.version != 1:
            return SessionScope(crossing.request.session_id)
        return RequestScope(crossing.id)


def _rescoped(question: Elicit, scope: RequestScope | SessionScope) -> Elicit:
    """The question about a request under another name. A mode nobody knows carries the name in its own fields."""
    if not isinstance(question.mode, UnknownMode):
        return replace(question, scope=scope)
    fields = {name: value for name, value in question.mode.fields.items() if name != "requestId"}
    if isinstance(scope, SessionScope):
        fields["sessionId"] = scope.session_id
    else:
        fields["requestId"] = scope.request_id
    return replace(question, scope=scope, mode=UnknownMode(question.mode.kind, fields))


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
