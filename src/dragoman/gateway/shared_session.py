"""A session that is open: its subscribers, the agent's open questions to them, and the agent behind it.

Promises
- Every subscriber is sent every event of the agent, in order. A replay is sent only to the client that requested it,
  and no turn begins during the replay.
- A client that joins during a turn and asks for a replay is sent the state of that turn, as far as its events are still
  held (`turn_buffer`), and then the same events as the others; the agent is not asked. Earlier events are a gap,
  reported with `_gateway/missed`.
- The agent is read at the pace of the fastest reader. Without any reader the turn goes on.
- An option or a title that one client sets is sent to the others (`setting_changes`).
- A request of the agent is sent to the subscribers, and to those that join while it is open (`open_questions`).
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from dragoman.errors import INTERNAL_ERROR, INVALID_REQUEST, RequestFailed
from dragoman.gateway.logbook import principal_name, session_name
from dragoman.gateway.open_questions import OpenQuestion
from dragoman.gateway.setting_changes import SettingChanges
from dragoman.gateway.turn_buffer import TurnBuffer
from dragoman.vocabulary.asking import ExtensionNote, Reply, Request
from dragoman.vocabulary.events import (
    AgentMessageChunk,
    AnyEvent,
    CommandsChanged,
    Failure,
    Idle,
    OptionsChanged,
    RequiresAction,
    Running,
    SessionInfoChanged,
)
from dragoman.vocabulary.identity import Identity
from dragoman.vocabulary.requests import CancelTurn, OptionsSet, ResumeSession, SessionOpened

if TYPE_CHECKING:
    from dragoman.gateway.agent_side import AgentSide
    from dragoman.gateway.client_side import ClientSide

# What a short piece of text takes in memory, about; it is not measured, because pieces come by the hundred thousand.
SHORT_BYTES: Final = 256
# Subscribers of one session; each is sent every event. A person has some screens; a larger audience needs a relay.
WATCHERS: Final = 64


class SharedSession:
    """One open session. `life` is the process that has it open; `opening` is what opens it in the next one.

    Clients call it `id`, its agent `agent_id`."""

    def __init__(self, session_id: str, agent_side: "AgentSide", agent_id: str) -> None:
        self.id: Final = session_id
        self.agent_id: Final = agent_id
        self.agent_side: Final = agent_side
        self.subscribers: Final[list[ClientSide]] = []
        self.quiet: Final = asyncio.Event()  # no turn runs
        self.quiet.set()
        self.retelling: asyncio.Future[None] | None = None
        self.life = 0
        self.opening: ResumeSession | None = None
        self.opened = SessionOpened()
        self._changes = SettingChanges()
        self.prompted_by = ""  # the principal that has prompted last
        self._listener: ClientSide | None = None  # who is told a story again
        self._questions: set[OpenQuestion] = set()
        self._began = 0.0
        self._turn_buffer: Final = TurnBuffer()
        self._turns = 0
        self._told_before = False  # whether the session has a story from before we opened it
        self._loop = asyncio.get_running_loop()

    @property
    def running(self) -> bool:
        """Whether a turn runs."""
        return not self.quiet.is_set()

    @property
    def waits(self) -> bool:
        """Return whether a request of the agent to its clients is open."""
        return bool(self._questions)

    def is_open(self, opening: ResumeSession | None, opened: SessionOpened, *, fresh: bool) -> None:
        """The agent has it open, and says how. `fresh`: there was nothing before; no `opening`: as before.

        A client that may not have it with the folders it has now is here no longer.
        """
        self.opening = opening or self.opening
        for subscriber in list(self.subscribers):
            if not self.agent_side.hub.is_mine(self.id, subscriber.connection.token_identity):
                self.leave(subscriber)
        self.opened = opened
        self._changes.clear()
        self.life = self.agent_side.life
        self._told_before = self._told_before or not fresh

    def is_open_again(self, opener: "ClientSide", opening: ResumeSession | None, opened: SessionOpened) -> None:
        """Note that the agent has opened it again for `opener`; send the other clients options that have changed."""
        before = self.opened.config_options
        self.is_open(opening, opened, fresh=False)
        if opened.config_options and before and opened.config_options != before:
            self._tell_others(opener, OptionsChanged(opened.config_options))

    # -- who is here -------------------------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Return whether there are as many subscribers as there may be (`WATCHERS`)."""
        return len(self.subscribers) >= WATCHERS

    def refuse_if_full(self, subscriber: "ClientSide") -> None:
        """`RequestFailed` where there is no room for it, and it is not here already."""
        if self.is_full and subscriber not in self.subscribers:
            raise RequestFailed(INVALID_REQUEST, "Too many watch this session already", {"retry": True})

    def enter(self, subscriber: "ClientSide") -> None:
        """Hear what is said from now on, and what is asked already."""
        if subscriber not in self.subscribers and not self.is_full:
            self.subscribers.append(subscriber)
            subscriber.sessions[self.id] = self
            for question in list(self._questions):
                question.ask(subscriber)

    def leave(self, subscriber: "ClientSide") -> None:
        """Hear no more."""
        subscriber.sessions.pop(self.id, None)
        if subscriber in self.subscribers:
            self.subscribers.remove(subscriber)
            self.looked()
        self.agent_side.pace()
        self.agent_side.settle()

    @property
    def behind(self) -> bool:
        """Return whether the agent should wait: a subscriber is behind, and no other one that reads keeps up."""
        waits = False
        for subscriber in self.subscribers:
            buffer = subscriber.connection.buffer_of(self.id)
            if buffer.behind:
                waits = True
            elif buffer.reader is not None:
                return False
        return waits

    def looked(self) -> None:
        """Re-check the open questions after a subscriber left, or after a stream of one got or lost its reader."""
        for question in list(self._questions):
            question.look()

    # -- what the agent says -----------------------------------------------------------------------------------------

    def hear(self, event: AnyEvent, size: int = SHORT_BYTES) -> None:
        """Something happened; it took so many bytes to say."""
        listener = self._listener
        if listener is not None:
            self._mark(event)
            listener.tell(self.id, event)
            return
        self._turn_buffer.append(event, size)
        subscribers = self.subscribers
        if event.__class__ is not AgentMessageChunk:
            self._mark(event)
            if isinstance(event, (OptionsChanged, SessionInfoChanged)):
                subscribers = self._changes.on_update(event, subscribers)
        for subscriber in subscribers:
            subscriber.tell(self.id, event)
        if event.__class__ is Idle:
            self.agent_side.ended(self.id)

    def join(self, subscriber: "ClientSide", *, replay: bool) -> SessionOpened:
        """Subscribe `subscriber` to a session whose turn runs, and return how the session was opened.

        With `replay` the turn is sent first, as far as it is held, also to a client that has subscribed before, as with
        every load. Then the state follows: running, or waiting for an answer.
        """
        if replay:
            if self._turn_buffer.missing or self._told_before or self._turns > 1:
                missed = {"sessionId": self.id, "missed": self._turn_buffer.missing}
                subscriber.note(ExtensionNote("_gateway/missed", missed))
            for event in self._turn_buffer.snapshot():
                subscriber.tell(self.id, event)
        subscriber.tell(self.id, RequiresAction() if self._questions else Running())
        self.enter(subscriber)
        return self.opened

    def options_set(self, reply: Reply) -> None:
        """An option was changed."""
        if isinstance(reply, OptionsSet):
            self.opened = replace(self.opened, config_options=reply.config_options)

    def on_setting_reply(self, setter: "ClientSide", reply: Reply) -> None:
        """Send the other clients an option or a title that `setter` has changed; `reply` is the agent's answer."""
        is_known = isinstance(reply, OptionsSet) and reply.config_options == self.opened.config_options
        self.options_set(reply)
        event = None if is_known else self._changes.on_reply(setter, reply)
        if event is not None:
            self._tell_others(setter, event)

    def _tell_others(self, setter: "ClientSide", event: AnyEvent) -> None:
        for subscriber in self.subscribers:
            if subscriber is not setter:
                subscriber.tell(self.id, event)

    def _mark(self, event: AnyEvent) -> None:
        """What an event says about the session itself."""
        match event:
            case Running() | RequiresAction():
                if not self.running:
                    self._begin()
            case Idle():
                self._finish(event)
            case OptionsChanged():
                self.opened = replace(self.opened, config_options=event.config_options)
            case CommandsChanged():
                self.opened = replace(self.opened, available_commands=event.available_commands)
            case _:
                pass

    def _begin(self) -> None:
        self.quiet.clear()
        self._turn_buffer.begin()
        self._turns += 1
        self._began = self._loop.time()
        whose = principal_name(self.prompted_by) or None
        self.agent_side.hub.log.info("turn_begun", session=session_name(self.id), principal=whose)

    def _finish(self, event: Idle) -> None:
        self._turn_buffer.clear()
        if self.running:
            self.quiet.set()
            seconds = self._loop.time() - self._began
            self.agent_side.hub.measured.ended(event.stop_reason, seconds)
            if event.stop_reason != "error":
                self.agent_side.went_well()
            end = event.stop_reason if isinstance(event.stop_reason, str) else None
            self.agent_side.hub.log.info(
                "turn_ended", session=session_name(self.id), end=end, seconds=round(seconds, 3)
            )

    def cancel(self) -> None:
        """Ask the agent to end its turn."""
        link = self.agent_side.link
        if link.can_send:
            link.send_notification_now(CancelTurn(self.agent_id))

    def interrupt(self, why: str) -> None:
        """The agent is gone: a turn that it left open ends here, and so does what it has asked."""
        if self.running:
            self.hear(Idle("error", Failure(INTERNAL_ERROR, why)))
        for question in list(self._questions):
            question.give_up()

    def end(self, why: str) -> None:
        """End the running turn and the open questions with `why`, and unsubscribe every client."""
        self.interrupt(why)
        for subscriber in list(self.subscribers):
            self.leave(subscriber)

    async def told_to(self, subscriber: "ClientSide", work: Callable[[], Awaitable[Reply]]) -> Reply:
        """Wait for `work`, which makes the agent replay its history, and return its reply.

        Meanwhile only `subscriber` is sent events, and no prompt is sent. During a turn `work` runs without that.
        """
        assert self.retelling is None  # a caller waits until a running replay is over
        if self.running:
            return await work()
        self._listener = subscriber
        self.retelling = asyncio.get_running_loop().create_future()
        try:
            return await work()
        finally:
            self._listener = None
            told, self.retelling = self.retelling, None
            told.set_result(None)

    def story_told(self) -> None:
        """Send events to every subscriber again: the agent has replied, so its replay is complete."""
        self._listener = None

    # -- what the agent asks -----------------------------------------------------------------------------------------

    async def ask(self, request: Request) -> Reply:
        """Send a request of the agent to the subscribers, wait for an answer, record it and return it.

        Raise `RequestFailed` or the client's error where there is no answer; see `open_questions`.
        """
        question = OpenQuestion(self, request)
        self._questions.add(question)
        try:
            reply = await question.answer()
        finally:
            self._questions.discard(question)
            question.give_up()
        answerer = question.answerer
        identity = Identity(principal_name(self.prompted_by) or None) if answerer is None else answerer.identity
        await self.agent_side.hub.record_answer(request, reply, identity, is_answered=answerer is not None)
        return reply
