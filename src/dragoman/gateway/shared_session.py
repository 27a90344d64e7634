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

A session is idle, or a turn runs, or a replay runs: never a turn and a replay at once. It ends by `end`, and is then
removed by its `AgentSide`; a client may find the object in its hands after that, so every wait is followed by a look
into `SharedSessions`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from dragoman import limits
from dragoman.dialects.codec.relayed_text import RelayedText
from dragoman.dialects.codec.relayed_updates import RelayedUpdate
from dragoman.errors import INTERNAL_ERROR, INVALID_REQUEST, RequestFailed
from dragoman.gateway.logbook import principal_name
from dragoman.gateway.open_questions import OpenQuestion, PermissionRecorder, answer_for_absent_clients
from dragoman.gateway.principal_usage import PrincipalUsage
from dragoman.gateway.prompt_ledger import PromptLedger, PromptOperation
from dragoman.gateway.question_list import QuestionList
from dragoman.gateway.replay_buffer import ReplayBuffer
from dragoman.gateway.setting_changes import SettingChanges
from dragoman.gateway.shared_state import SharedOperations, SharedQuestions
from dragoman.gateway.turn_buffer import TurnBuffer
from dragoman.store.recording import SessionRecorder
from dragoman.trace.records import TO_CLIENT
from dragoman.vocabulary.asking import ExtensionNote, R, Reply, Request
from dragoman.vocabulary.events import (
    COST,
    AgentMessageChunk,
    AnyEvent,
    CommandsChanged,
    Cost,
    Failure,
    Idle,
    Notice,
    OptionsChanged,
    RequiresAction,
    Running,
    SessionInfoChanged,
    UsageChanged,
)
from dragoman.vocabulary.identity import Identity, without_ours
from dragoman.vocabulary.requests import CancelTurn, OptionsSet, ResumeSession, SessionOpened
from dragoman.vocabulary.services import Elicit, RequestPermission

if TYPE_CHECKING:
    from dragoman.gateway.agent_side import AgentSide
    from dragoman.gateway.client_side import ClientSide
    from dragoman.gateway.monitor import Monitor
    from dragoman.gateway.session_access import SessionAccess

# What a short piece of text takes in memory, about; it is not measured, because pieces come by the hundred thousand.
SHORT_BYTES: Final = 256
# Subscribers of one session; each is sent every event. A person has some screens; a larger audience needs a relay.
SUBSCRIBERS: Final = 64
# Of those, clients that have come by a share link: however many do, the owner finds room.
SHARE_SUBSCRIBERS: Final = 32


class SharedSession:
    """One open session. Clients call it `id`, its agent `agent_id`; it counts for `principal`.

    `process_number` is the agent's process that has it open, `resume_request` is what opens it in the next one (None:
    only read-only clients have opened it), and `open_reply` the reply to its opening, kept up to date.
    """

    def __init__(
        self,
        session_id: str,
        agent_side: "AgentSide",
        agent_id: str,
        principal: str,
        *,
        access: "SessionAccess",
        monitor: "Monitor",
        recorder: PermissionRecorder,
        questions: SharedQuestions,
        usage: PrincipalUsage,
        recording: SessionRecorder | None = None,
    ) -> None:
        self.id: Final = session_id
        self.principal: Final = principal
        self.agent_id: Final = agent_id
        self.agent_side: Final = agent_side
        self.subscribers: Final[list[ClientSide]] = []
        self.idle: Final = asyncio.Event()  # no turn runs
        self.idle.set()
        self.replay: asyncio.Future[None] | None = None  # done when the replay that runs is over
        self.process_number = 0
        self.resume_request: ResumeSession | None = None
        self.open_reply = SessionOpened()
        self.prompted_by = ""  # the principal that has prompted last
        self._access = access
        self._monitor = monitor
        self._recorder = recorder
        self._shared_questions = questions
        self._usage = usage
        self._recording = recording
        self._changes = SettingChanges()
        self._replay_client: ClientSide | None = None
        self._questions: set[OpenQuestion] = set()
        self._turn_buffer: Final = TurnBuffer()
        self._turns = 0  # that began since it was opened here
        self._ends = 0  # of turns, that were received since it was opened here
        self._is_accepted = False  # a prompt was, and its turn has not begun
        self._turn_began_at = 0.0
        self._has_earlier_turns = False  # from before it was opened here
        self.operations: list[PromptOperation] = []  # prompts that were accepted and whose turn is not over
        self._last_idle = Idle()  # how the last turn ended, if one has
        self._loop = asyncio.get_running_loop()

    def __repr__(self) -> str:
        state = "turn" if self.is_running else "replay" if self.replay is not None else "idle"
        return (
            f"<SharedSession {self.id[limits.SHORT_ID]} {state} subscribers={len(self.subscribers)} "
            f"questions={len(self._questions)} turns={self._turns} {self._turn_buffer!r}>"
        )

    @property
    def is_running(self) -> bool:
        """Return whether a turn runs."""
        return not self.idle.is_set()

    @property
    def state(self) -> Running | RequiresAction | Idle:
        """Return the state that its subscribers would be told now."""
        return RequiresAction() if self._questions else Running() if self.is_running else self._last_idle

    @property
    def turn_seconds(self) -> float:
        """Return how long the turn that runs has taken; 0 where none runs."""
        return self._loop.time() - self._turn_began_at if self.is_running else 0.0

    @property
    def _owner(self) -> str | None:
        return self._access.directory.owner(self.id)

    @property
    def has_questions(self) -> bool:
        """Return whether a request of the agent to its clients is open."""
        return bool(self._questions)

    @property
    def is_busy(self) -> bool:
        """Return whether a turn or a replay runs, or a question is open: its agent is needed."""
        return self.is_running or self._is_accepted or self.has_questions or self.replay is not None

    def on_opened(self, resume_request: ResumeSession | None, reply: SessionOpened, *, is_new: bool) -> None:
        """Note that the agent has it open. `is_new`: it has no history; no `resume_request`: as it was before.

        Unsubscribe the clients that may not reach it with the folders it has now.
        """
        self.resume_request = resume_request or self.resume_request
        # A client that resumes a session may add folders to it: others that may not open those must not see what
        # happens there.
        for subscriber in list(self.subscribers):
            if not self._access.may_reach(self.id, subscriber.connection.token_identity):
                self.unsubscribe(subscriber)
        self.open_reply = reply
        self._changes.clear()
        self.process_number = self.agent_side.process_number
        self._has_earlier_turns = self._has_earlier_turns or not is_new
        # A copy, or a stored session, may have cost something before: then the first report adds nothing (`day_spend`).
        if is_new:
            self._usage.spend.begin_session(self.id)

    def on_reopened(self, opener: "ClientSide", resume_request: ResumeSession | None, reply: SessionOpened) -> None:
        """Note that the agent has opened it again for `opener`; send the other clients options that have changed."""
        before = self.open_reply.config_options
        self.on_opened(resume_request, reply, is_new=False)
        if reply.config_options and before and reply.config_options != before:
            self._send_to_others(opener, OptionsChanged(reply.config_options))

    # -- subscribers -------------------------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Return whether there are as many subscribers as there may be (`SUBSCRIBERS`)."""
        return len(self.subscribers) >= SUBSCRIBERS

    def is_full_for(self, client_side: "ClientSide") -> bool:
        """Return whether there are as many subscribers as there may be, or as many with share links if this is one."""
        shares = sum(one.is_share for one in self.subscribers) if client_side.is_share else 0
        return self.is_full or shares >= SHARE_SUBSCRIBERS

    def refuse_if_full(self, client_side: "ClientSide") -> None:
        """Raise `RequestFailed` if this client is not subscribed and there are too many subscribers."""
        if client_side not in self.subscribers and self.is_full_for(client_side):
            raise RequestFailed(INVALID_REQUEST, "Too many watch this session already", {"retry": True})

    def subscribe(self, client_side: "ClientSide") -> None:
        """Send a client every event from now on, and the questions that are open. Nothing happens if it is subscribed
        already, or if there are too many."""
        # Silently, where it is full: callers that have a client to refuse call `refuse_if_full` before.
        if client_side not in self.subscribers and not self.is_full_for(client_side):
            self.subscribers.append(client_side)
            client_side.sessions[self.id] = self
            for question in list(self._questions):
                question.send_to(client_side)

    def unsubscribe(self, client_side: "ClientSide") -> None:
        """Send a client no more. Its open questions wait for another client; its agent may be closed."""
        client_side.sessions.pop(self.id, None)
        if client_side in self.subscribers:
            self.subscribers.remove(client_side)
            self.recheck_questions()
        self.agent_side.update_reading()
        self._look_for_watchers()
        self.agent_side.close_if_unused()

    def _look_for_watchers(self) -> None:
        # A turn that runs is watched to its end, so that a prompt which is sent again finds out how it ended.
        if not self.subscribers and not self.is_busy:
            self.agent_side.on_unwatched(self)

    @property
    def is_behind(self) -> bool:
        """Return whether the agent should wait: a subscriber is behind, and no other one that reads keeps up."""
        is_behind = False
        for subscriber in self.subscribers:
            # A share link is for reading: a slow reader of one gets a gap, and holds no agent.
            if subscriber.is_share:
                continue
            buffer = subscriber.connection.streams.buffer_of(self.id)
            if buffer.is_behind:
                is_behind = True
            # One reader that keeps up is enough: the others get what they can take, and a gap.
            elif buffer.reader is not None:
                return False
        return is_behind

    def recheck_questions(self) -> None:
        """Re-check the open questions after a subscriber left, or after a stream of one got or lost its reader."""
        for question in list(self._questions):
            question.recheck()

    # -- events of the agent -----------------------------------------------------------------------------------------

    def receive(self, event: AnyEvent, size: int = SHORT_BYTES) -> None:
        """Apply an event of the agent, of about `size` bytes, and send it to the subscribers.

        During a replay it is a piece of history: it goes to the client that has asked for it, and is not held.
        """
        if self._recording is not None:
            self._recording.record(event, is_replay=self._replay_client is not None)
        if self._replay_client is not None:
            self._apply(event)
            self._replay_client.send_event(self.id, event)
            return
        self._turn_buffer.append(event, size)
        if self._monitor.live.sessions:
            self._monitor.live.on_event(self.id, event)
        subscribers = self.subscribers
        # Text is by far the most frequent event, and changes nothing here.
        if event.__class__ is not AgentMessageChunk:
            self._apply(event)
            if self._monitor.traces is not None:
                self._monitor.traces.on_event(self.id, event)
            # Those two may be known to the subscribers already, from the reply to the client that set them.
            if isinstance(event, (OptionsChanged, SessionInfoChanged)):
                subscribers = self._changes.on_update(event, subscribers)
        for subscriber in subscribers:
            subscriber.send_event(self.id, event)
        # Last: the agent may be closed by this, and its end must come behind the event.
        if event.__class__ is Idle:
            self.agent_side.on_turn_end(self.id)
            self._look_for_watchers()

    def receive_text(self, piece: RelayedText, streams: dict[ReplayBuffer, None]) -> None:
        """Send a piece of a message to the subscribers as it came, which changes nothing here. The caller flushes
        those that are added to `streams`, when it has no more pieces."""
        if self._recording is not None or self._replay_client is not None or self._monitor.live.sessions:
            self.receive(piece.event(), piece.size)
            return
        self._turn_buffer.append(piece, piece.size)
        for subscriber in self.subscribers:
            stream = subscriber.send_text(self.id, piece)
            if stream is not None:
                streams[stream] = None

    def receive_update(self, update: RelayedUpdate, streams: dict[ReplayBuffer, None]) -> None:
        """Send an update to the subscribers as it came where they speak as the agent does, else as an event. It changes
        nothing here. The caller flushes `streams` as for `receive_text`."""
        monitor = self._monitor
        if self._replay_client is not None or monitor.traces is not None or monitor.live.sessions:
            event = update.event()
            if event is not None:
                self.receive(event, update.size)
            return
        if self._recording is not None and (event := update.event()) is not None:
            self._recording.record(event, is_replay=False)
        self._turn_buffer.append(update, update.size)
        for subscriber in self.subscribers:
            stream = subscriber.send_update(self.id, update)
            if stream is not None:
                streams[stream] = None

    def join(self, client_side: "ClientSide", *, replay: bool) -> SessionOpened:
        """Subscribe a client to a session whose turn runs, and return how the session was opened.

        With `replay` the turn is sent first, as far as it is held, also to a client that has subscribed before, as with
        every load. Then the state follows: running, or waiting for an answer. All in one step of the loop, so that no
        event is missed or sent twice between the replay and the subscription.
        """
        if replay:
            if self._turn_buffer.missing or self._has_earlier_turns or self._turns > 1:
                # Of this turn alone: how much earlier ones had is not known here, so the number may be 0.
                missed = {"sessionId": self.id, "missed": self._turn_buffer.missing}
                client_side.send_notification(ExtensionNote("_gateway/missed", missed))
                self._monitor.counts["gaps_told"] += 1
            for event in self._turn_buffer.snapshot():
                client_side.send_event(self.id, event)
        client_side.send_event(self.id, self.state)
        self.subscribe(client_side)
        return self.open_reply

    def on_options_reply(self, reply: Reply) -> None:
        """Remember the options that the agent has replied with."""
        if isinstance(reply, OptionsSet):
            self.open_reply = replace(self.open_reply, config_options=reply.config_options)

    def on_setting_reply(self, setter: "ClientSide", reply: Reply) -> None:
        """Send the other clients an option or a title that `setter` has changed; `reply` is the agent's answer."""
        # What the agent has sent before its reply is in `open_reply` already, and the others have it.
        is_known = isinstance(reply, OptionsSet) and reply.config_options == self.open_reply.config_options
        self.on_options_reply(reply)
        event = None if is_known else self._changes.on_reply(setter, reply)
        if event is not None:
            self._send_to_others(setter, event)

    def _send_to_others(self, setter: "ClientSide", event: AnyEvent) -> None:
        for subscriber in self.subscribers:
            if subscriber is not setter:
                subscriber.send_event(self.id, event)

    def _apply(self, event: AnyEvent) -> None:
        """Apply what an event changes of the session itself."""
        match event:
            case Running() | RequiresAction():
                if not self.is_running:
                    self._begin_turn()
            case Idle():
                self._end_turn(event)
            case OptionsChanged():
                self.open_reply = replace(self.open_reply, config_options=event.config_options)
            case CommandsChanged():
                self.open_reply = replace(self.open_reply, available_commands=event.available_commands)
            case UsageChanged(cost=Cost() as cost):
                self._add_cost(cost)
            case _:
                pass

    def _add_cost(self, cost: Cost) -> None:
        """Count what the session has cost. A turn that takes its principal to what it may spend is cancelled."""
        if self._usage.add_cost(self.prompted_by or self.principal, self.id, cost) and self.is_running:
            self._monitor.log.info("spend_limit", session=self.id[limits.SHORT_ID])
            # With every further report of this turn again: an agent may have missed the first cancel.
            self.cancel()
            # Behind the event that says so, which is being received now.
            notice = Notice("warning", "The turn was cancelled: what may be spent today is spent")
            self._loop.call_soon(self.receive, notice)

    def reserve_turn(self, principal: str) -> "PromptTicket":
        """Count the turn of a prompt that is going to be sent. Raise `RequestFailed` if its principal may have no more,
        or may spend no more."""
        return PromptTicket(self._ends, self._usage.reserve_turn(principal, self.id))

    def on_prompt_accepted(self, ticket: "PromptTicket") -> None:
        """Note that the agent has accepted a prompt: its turn begins, unless it is over already."""
        # The turn may have ended before this is called: then `_ends` has gone on, and what begins next is another one.
        if ticket.ends == self._ends and not self.is_running:
            self._is_accepted = True

    def on_prompt_failed(self, ticket: "PromptTicket") -> None:
        """Note that a prompt begins no turn."""
        if ticket.is_first and not self.is_running and not self._is_accepted:
            self._usage.end_turn(self.id)

    def _begin_turn(self) -> None:
        self.idle.clear()
        self._is_accepted = False
        # An agent may begin a turn by itself: it counts for the principal that prompted last, or has the session.
        self._usage.begin_turn(self.prompted_by or self.principal, self.id)
        self._turn_buffer.begin()
        self._turns += 1
        self._turn_began_at = self._loop.time()
        if self._monitor.traces is not None:
            self._monitor.traces.begin_turn(self.id)
        principal = principal_name(self.prompted_by) or None
        self._monitor.log.info("turn_begun", session=self.id[limits.SHORT_ID], principal=principal)

    def _end_turn(self, event: Idle) -> None:
        self._turn_buffer.clear()
        # Also of a turn that ends without having begun, as when the agent dies between the reply and its first event.
        if self.is_running or isinstance(event.stop_reason, str):
            self._ends += 1
            self._is_accepted = False
            self._usage.end_turn(self.id)
            self._finish_operations(event)
            if event.usage and event.usage.meta and (cost := _cost_in(event.usage.meta)) is not None:
                self._usage.add_cost(self.prompted_by or self.principal, self.id, cost)
        # An agent may call an idle session idle again, with a load for instance: that ends no turn.
        if self.is_running:
            self.idle.set()
            self._last_idle = event
            seconds = self._loop.time() - self._turn_began_at
            self._monitor.metrics.on_turn_end(event.stop_reason, seconds)
            if self._monitor.traces is not None:
                self._monitor.traces.end_turn(self.id, event.stop_reason)
            if event.stop_reason != "error":
                self.agent_side.reset_failures()
            end = event.stop_reason if isinstance(event.stop_reason, str) else None
            self._monitor.log.info("turn_ended", session=self.id[limits.SHORT_ID], end=end, seconds=round(seconds, 3))
            # The node that works on the session tells it, and no other.
            if self._monitor.listener is not None and not self.agent_side.is_of_other_node:
                self._monitor.listener.on_turn_end(self.id, self._owner, end or "other", seconds)

    # -- the end of a turn, or of all --------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Ask the agent to end its turn. Does not wait; an agent without a process has no turn."""
        link = self.agent_side.link
        if link.can_send:
            link.send_notification_now(CancelTurn(self.agent_id))

    def interrupt(self, why: str) -> None:
        """End the running turn with the error `why`, and cancel the open questions: the agent's process is gone."""
        if self.is_running or self._is_accepted:
            self._monitor.counts["turns_interrupted"] += 1
            self.receive(Idle("error", Failure(INTERNAL_ERROR, why)))
        for question in list(self._questions):
            question.cancel()

    def end(self, why: str) -> None:
        """End the running turn and the open questions with `why`, and unsubscribe every client."""
        # The turn first, while its subscribers are still here: they are sent how it has ended.
        self.interrupt(why)
        self._monitor.live.on_end(self.id)
        # Those whose turn had not begun: no `Idle` ends it.
        self._finish_operations(Idle("error", Failure(INTERNAL_ERROR, why)))
        for subscriber in list(self.subscribers):
            self.unsubscribe(subscriber)

    def _finish_operations(self, event: Idle) -> None:
        operations, self.operations = self.operations, []
        for operation in operations:
            operation.finish(event)

    def end_recording(self) -> None:
        """Record no more of it: it is closed. Does not wait for the disk."""
        if self._recording is not None:
            self._recording.end()

    # -- replays -----------------------------------------------------------------------------------------------------

    async def replay_to(self, client_side: "ClientSide", work: Callable[[], Awaitable[R]]) -> R:
        """Wait for `work`, which makes the agent replay its history, and return its reply.

        Meanwhile only this client is sent events, and no prompt is sent. During a turn `work` runs without that.
        """
        assert self.replay is None  # a caller waits until a running replay is over
        if self.is_running:
            return await work()
        self._replay_client = client_side
        self.replay = self._loop.create_future()
        try:
            return await work()
        finally:
            self._replay_client = None
            # None before the future is done: a prompt that waited for it looks at `replay` next.
            replay, self.replay = self.replay, None
            replay.set_result(None)

    def end_replay(self) -> None:
        """Send events to every subscriber again: the agent has replied, so its replay is complete.

        Called when the reply is received, which is earlier than `replay_to` goes on: an event in the same read, behind
        the reply, is for all.
        """
        self._replay_client = None

    # -- requests of the agent ---------------------------------------------------------------------------------------

    async def ask(self, request: Request) -> Reply:
        """Send a request of the agent to the subscribers, wait for an answer, record it and return it.

        Raise `RequestFailed` or the client's error where there is no answer; see `open_questions`.
        """
        question = OpenQuestion(self, request)
        self._questions.add(question)
        shared = self._shared_questions
        if question.for_others is not None:
            shared.open(question.for_others)
            if self._monitor.listener is not None:
                self._monitor.listener.on_question(question.for_others, self._owner, _title_of(request))
        try:
            with self._monitor.live.exchange(self.id, TO_CLIENT, request) as replies:
                reply = await question.wait_until_answered()
                replies.append(reply)
        except BaseException:
            if question.for_others is not None:
                shared.cancel(question.for_others)
            raise
        finally:
            # Before anything waits: a subscriber that comes now must not be asked what is answered.
            self._questions.discard(question)
            question.cancel()
            if question.for_others is not None and self._monitor.listener is not None:
                self._monitor.listener.on_question_end(question.for_others)
        answerer = question.answerer
        # Before the answer is written down or passed on: of two servers that have one, only one may let anything run.
        if question.for_others is not None and not await shared.answer(question.for_others):
            # Another server has the session now, and asks its own clients: nothing may begin here any more.
            answerer, reply = None, answer_for_absent_clients(request)
        prompter = Identity(principal_name(self.prompted_by) or None)
        identity = prompter if answerer is None else answerer.identity_for(reply)
        # Before the agent gets it, so that no command runs whose permission is not on disk.
        await self._recorder.record(request, reply, identity, is_answered=answerer is not None)
        believes = self._access.ceilings.trusted or self.agent_side.is_of_other_node
        return reply if believes else without_ours(reply)


def _title_of(request: Request) -> str:
    """Return what a question is about, in the agent's words."""
    match request:
        case RequestPermission():
            return request.title
        case Elicit():
            return request.message
        case _:
            return ""


class PromptTicket(NamedTuple):
    """A prompt on its way to the agent: how many turns had ended before it, and whether it is the one that counts."""

    ends: int
    is_first: bool


def _cost_in(meta: Mapping[str, object]) -> Cost | None:
    """Return what the session has cost so far, as an agent that knows no window says it."""
    match meta.get(COST):
        case {"amount": int() | float() as amount, "currency": str() as currency}:
            return Cost(float(amount), currency)
        case _:
            return None


class SharedSessions(dict[str, SharedSession]):
    """The open sessions of a server, by the ids that clients know; `add` and `remove` change it. `usage` counts them.

    `accepts_turns` is False once the server stops.
    """

    def __init__(
        self,
        operations: SharedOperations | None = None,
        questions: SharedQuestions | None = None,
        usage: PrincipalUsage | None = None,
    ) -> None:
        super().__init__()
        self.usage: Final = usage or PrincipalUsage()
        self.accepts_turns = True
        # Longer than any of the sessions here: a session that is closed and opened again has the prompts it had.
        self.prompts: Final[SharedOperations] = operations or PromptLedger(asyncio.get_running_loop().time)
        self.questions: Final[SharedQuestions] = questions or QuestionList()
        self._closing: dict[str, asyncio.Task[None]] = {}

    def __repr__(self) -> str:
        return f"<SharedSessions open={len(self)} running={len(self.running())}>"

    def add(self, shared: SharedSession) -> None:
        """Register a session; it must not be registered already."""
        self[shared.id] = shared
        self.usage.add_session(shared.principal)

    def remove(self, shared: SharedSession) -> None:
        """Remove a session, if its id does not stand for a newer one already."""
        if self.get(shared.id) is shared:
            del self[shared.id]
            self.usage.remove_session(shared.principal, shared.id)

    def add_closing(self, session_ids: Iterable[str], closing: "asyncio.Task[None]") -> None:
        """Register the task that closes the agent of these sessions.

        The agent holds them until the task is done, though they are removed here before that: opened meanwhile, they
        would be refused as open elsewhere.
        """
        for session_id in session_ids:
            self._closing[session_id] = closing
        closing.add_done_callback(self._remove_closing)

    def _remove_closing(self, closing: "asyncio.Task[None]") -> None:
        # By task and not by id: the sessions may be closing again already, with another agent.
        self._closing = {id: task for id, task in self._closing.items() if task is not closing}

    async def wait_until_closed(self, session_id: str) -> bool:
        """Wait until the agent that has had this session is closed; return False if no agent of it closes now."""
        closing = self._closing.get(session_id)
        if closing is None:
            return False
        await asyncio.wait({closing})
        return True

    def running(self) -> list[SharedSession]:
        """Return the sessions with a turn that runs."""
        return [shared for shared in self.values() if shared.is_running]

    async def wait_until_idle(self, seconds: float) -> None:
        """Wait until no turn runs in the sessions that are open now, for at most so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                # One after the other is enough for a server that stops: behind us no prompt begins a turn any more
                # (`accepts_turns`).
                for shared in list(self.values()):
                    await shared.idle.wait()
