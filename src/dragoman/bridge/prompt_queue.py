"""Hold prompts back while a turn runs, and steer agents that cannot be steered.

Where a prompt is answered at the end of its turn, on either side of a bridge, only one may be open: the end of a turn
could not be told to belong to one of two. A second prompt waits here until the turn has ended.

Words for the running turn (`SteerTurn`), which the agent has no method for, wait too. When the turn ends well they are
sent as a prompt at once, and that end is not passed on: for the editor it is one turn, with the usage of both.

    IDLE ── prompt ──► RUNNING ── end ──► RUNNING, with the first that waits
                                     └──► IDLE, where none waits
"""

import asyncio
from collections import deque
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.bridge.services import AskOther, BridgeServices, SessionEvents, StepAside
from dragoman.errors import CANCELLED, INTERNAL_ERROR, INVALID_REQUEST, RequestFailed
from dragoman.vocabulary.asking import Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent, Idle, RequiresAction, Running, Usage, UserMessage, UserMessageChunk
from dragoman.vocabulary.hello import AgentHello
from dragoman.vocabulary.requests import (
    PROMPT_REQUIRED,
    CancelTurn,
    CloseSession,
    DeleteSession,
    PromptAccepted,
    PromptRequest,
    Steered,
    SteerTurn,
)

if TYPE_CHECKING:
    from dragoman.bridge.sides import BridgeSide

# Of one session; more is no queue that a person has typed.
QUEUED_PROMPTS: Final = 16
_GONE: Final = "The agent is gone, and this prompt was not sent"
_TOKENS: Final = (
    *("total_tokens", "input_tokens", "output_tokens"),
    *("thought_tokens", "cached_read_tokens", "cached_write_tokens"),
)


@dataclass(eq=False, slots=True)
class _WaitingPrompt:
    """A prompt that waits; `turn` is done when its own turn may begin."""

    steers: bool
    turn: "asyncio.Future[None]"


class _SessionTurns:
    """The turns of one session. It exists only while one runs."""

    def __init__(self) -> None:
        self.waiting: deque[_WaitingPrompt] = deque()
        self.usage: Usage | None = None  # of the turns whose end was not passed on
        self.hides_words = False  # the next user message is one that the editor shows already


class BridgedPrompts(BridgeServices):
    """One prompt at a time to the agent of a bridge."""

    queues_prompts = True

    def __init__(self) -> None:
        self._turns: dict[str, _SessionTurns] = {}
        self._steers = False
        self._client: BridgeSide
        self._agent: BridgeSide

    def __repr__(self) -> str:
        waiting = sum(len(turns.waiting) for turns in self._turns.values())
        return f"<BridgedPrompts running={len(self._turns)} waiting={waiting}>"

    def attach(self, client: "BridgeSide", agent: "BridgeSide") -> None:
        self._client, self._agent = client, agent

    def hello(self, agent: AgentHello) -> AgentHello:
        if agent.capabilities.steering:
            return agent
        self._steers = True
        return replace(agent, capabilities=replace(agent.capabilities, steering=True))

    # -- the client --------------------------------------------------------------------------------------------------

    def serve_client(self, request: Request, ask: AskOther, aside: StepAside) -> Awaitable[Reply]:
        match request:
            case PromptRequest() if self._takes_one:
                return self._prompt(request, ask, aside)
            case SteerTurn() if self._steers:
                return self._steer(request, ask, aside)
            case CloseSession() | DeleteSession():
                self._fail_waiting(request.session_id, CANCELLED, "The session was closed before this prompt was sent")
        return ask(request)

    @property
    def _takes_one(self) -> bool:
        return self._client.link.replies_to_prompt_at_turn_end or self._agent.link.replies_to_prompt_at_turn_end

    async def _prompt(self, request: PromptRequest, ask: AskOther, aside: StepAside) -> Reply:
        await self._wait_for_turn(request.session_id, aside, steers=False)
        return await self._begin(request, ask)

    async def _steer(self, request: SteerTurn, ask: AskOther, aside: StepAside) -> Reply:
        was_running = request.session_id in self._turns
        if not was_running and request.needs_turn:
            return Steered(PROMPT_REQUIRED, reason="noRunningTurn")
        try:
            await self._wait_for_turn(request.session_id, aside, steers=True)
        except RequestFailed as failed:
            if failed.code != CANCELLED:
                raise
            return Steered("failed")
        self._turns[request.session_id].hides_words = self._client.link.replies_to_prompt_at_turn_end
        prompt = PromptRequest(request.session_id, request.prompt, meta=request.meta, extras=request.extras)
        reply = await self._begin(prompt, ask)
        assert isinstance(reply, PromptAccepted)
        return Steered("injected" if was_running else "startedNewTurn", message_id=reply.message_id or UNSET)

    async def _wait_for_turn(self, session_id: str, aside: StepAside, *, steers: bool) -> None:
        """Return when a turn of this session may begin, which then counts as running. Raise `RequestFailed`."""
        turns = self._turns.get(session_id)
        if turns is None:
            self._turns[session_id] = _SessionTurns()
            return
        if len(turns.waiting) >= QUEUED_PROMPTS:
            raise RequestFailed(INVALID_REQUEST, "Too many prompts wait for this turn", {"retry": True})
        waiting = _WaitingPrompt(steers, asyncio.get_running_loop().create_future())
        # Words for the turn that runs come before prompts for turns of their own.
        place = sum(one.steers for one in turns.waiting) if steers else len(turns.waiting)
        turns.waiting.insert(place, waiting)
        aside()
        try:
            await waiting.turn
        except asyncio.CancelledError:
            if waiting in turns.waiting:
                turns.waiting.remove(waiting)
            elif waiting.turn.done() and not waiting.turn.cancelled():
                self._next(session_id)  # its turn had come
            raise

    async def _begin(self, request: PromptRequest, ask: AskOther) -> Reply:
        try:
            return await ask(request)
        except BaseException:
            self._next(request.session_id)
            raise

    def from_client(self, note: Note) -> Note:
        if isinstance(note, CancelTurn):
            self._fail_waiting(note.session_id, CANCELLED, "The turn was cancelled before this prompt was sent")
        return note

    # -- the agent ---------------------------------------------------------------------------------------------------

    def from_agent(self, session_id: str, event: AnyEvent) -> SessionEvents:
        turns = self._turns.get(session_id)
        match event:
            case Running() | RequiresAction() if turns is None:
                self._turns[session_id] = _SessionTurns()  # a turn that the agent has begun by itself
            case UserMessage() | UserMessageChunk() if turns is not None and turns.hides_words:
                turns.hides_words = False
                return ()
            case Idle() if turns is not None and isinstance(event.stop_reason, str):
                return self._on_end(session_id, turns, event)
        return ((session_id, event),)

    def _on_end(self, session_id: str, turns: _SessionTurns, end: Idle) -> SessionEvents:
        goes_on = end.stop_reason == "end_turn" and bool(turns.waiting) and turns.waiting[0].steers
        usage = _sum(turns.usage, end.usage or None)
        turns.usage = usage if goes_on else None
        if end.stop_reason != "end_turn":
            self._fail_steering(turns)
        self._next(session_id)
        if goes_on:
            return ()
        return ((session_id, end if usage is None else replace(end, usage=usage)),)

    def on_lost(self) -> None:
        for session_id in list(self._turns):
            self._fail_waiting(session_id, INTERNAL_ERROR, _GONE)

    # -- what waits --------------------------------------------------------------------------------------------------

    def _next(self, session_id: str) -> None:
        """Let the first that waits begin its turn; the session is idle where none does."""
        turns = self._turns.get(session_id)
        if turns is None:
            return
        while turns.waiting:
            waiting = turns.waiting.popleft()
            if not waiting.turn.done():
                waiting.turn.set_result(None)
                return
        del self._turns[session_id]

    def _fail_waiting(self, session_id: str, code: int, message: str) -> None:
        turns = self._turns.get(session_id)
        while turns is not None and turns.waiting:
            _fail(turns.waiting.popleft(), code, message)

    def _fail_steering(self, turns: _SessionTurns) -> None:
        for waiting in [one for one in turns.waiting if one.steers]:
            turns.waiting.remove(waiting)
            _fail(waiting, CANCELLED, "The turn has ended before these words were sent")


def _fail(waiting: _WaitingPrompt, code: int, message: str) -> None:
    if not waiting.turn.done():
        waiting.turn.set_exception(RequestFailed(code, message))


def _sum(first: Usage | None, second: Usage | None) -> Usage | None:
    if first is None or second is None:
        return first or second
    more = {name: _plus(getattr(first, name), getattr(second, name)) for name in _TOKENS}
    return replace(second, **more)


def _plus(first: object, second: object) -> object:
    if isinstance(first, int) and isinstance(second, int):
        return first + second
    return second if isinstance(second, int) else first
