"""One client being served: requests come in as vocabulary, sessions answer in events.

Nothing is sent about a session before the answer that names it (`ClientSink`): what a session emits while it is
being opened is held, and leaves right behind that answer.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dragoman import limits
from dragoman.agent.author_handlers import AgentCore, warn
from dragoman.agent.client_services import TextSink
from dragoman.agent.journal import client_errors, session_is_busy, session_not_found
from dragoman.agent.session import CALLER, Prompt, caller, new_id
from dragoman.agent.session_core import SessionCore, set_option
from dragoman.agent.sessions import OpenSessions
from dragoman.agent.turn import NoTurn, QueuedPrompt, RunningTurn, retrieve_exception
from dragoman.dialects.contract import Id
from dragoman.dialects.handshake.first_bytes import InitializeAnswer
from dragoman.errors import (
    CANCELLED,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    LinkClosed,
    RequestFailed,
    UsageError,
    echo,
)
from dragoman.link import Link, Trace
from dragoman.link.deadline import TASKS, TURNS, Deadline, cancel_all
from dragoman.transports.contract import Transport
from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.asking import Done, Extension, ExtensionNote, ExtensionResult, Note, R, Reply, Request
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessageChunk, AgentThoughtChunk, AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientCapabilities, ClientHello
from dragoman.vocabulary.identity import Identity, identity_in
from dragoman.vocabulary.mcp_messages import MCP_MESSAGE
from dragoman.vocabulary.session_ids import session_of

if TYPE_CHECKING:
    from dragoman.agent.lent_servers import LentServers

_log: Final = logging.getLogger(__name__)

# Complaints about skipped input that go to stderr, for each client.
_NOISES: Final = 100
# Extension notifications being worked on: they have no answer, so this is their only limit.
_NOTES: Final = limits.IN_FLIGHT


class ClientSink:
    """Sends the events of all sessions of one client, in order; holds those of sessions that the client does not know.

    A session is unknown from its creation until the answer that names it is on its way, or until the client names it
    itself. Held events are bounded (`limits.EARLY_UPDATES`): more is a mistake of the author's.
    """

    def __init__(self, link: Link, client: ClientCapabilities) -> None:
        self.client = client  # what the client can do for the agent; nothing before `initialize`
        self._link = link
        self._lent: LentServers | None = None
        self._known: set[str] = set()
        self._held: dict[str, list[AnyEvent]] = {}

    def __repr__(self) -> str:
        return f"<ClientSink known={len(self._known)} held={sum(map(len, self._held.values()))}>"

    def announce(self, session_id: str) -> None:
        """Send what is held of a session: the client has named it, or the answer that does is on its way."""
        if session_id not in self._known:
            # Known first, then the held events, all in one step: what the session emits from now on goes behind them.
            self._known.add(session_id)
            for event in self._held.pop(session_id, ()):
                if not self._link.closed:
                    self._link.enqueue_event(session_id, event)

    def announce_next(self, session_id: str) -> None:
        """Announce a session right behind its answer: the link enqueues an answer in the step in which it gets it."""
        asyncio.get_running_loop().call_soon(self.announce, session_id)

    def forget(self, session_id: str) -> None:
        """Drop what is held of a session that is closed, or was never opened."""
        self._known.discard(session_id)
        self._held.pop(session_id, None)

    async def send_event(self, session_id: str, event: AnyEvent) -> None:
        """Send an event, or hold it; wait while the client does not read."""
        if session_id in self._known:
            await self._link.send_event(session_id, event)
        else:
            self.hold(session_id, event)

    def text_stream(self, session_id: str, kind: str, message_id: str) -> TextSink:
        """Return a sink for the text of one message."""
        if session_id in self._known:
            return self._link.text_stream(session_id, kind, message_id)
        return _HeldText(self, session_id, kind, message_id)

    async def ask(self, request: Request[R]) -> R:
        """Ask the client and wait. `UsageError` about a session that it does not know: it could show no question."""
        # An extension's params are the author's own: what they name is not looked at.
        session_id = None if isinstance(request, Extension) else session_of(request)
        if session_id is not None and session_id not in self._known:
            raise UsageError("the client does not know this session yet: ask in the prompt handler")
        return await self._link.ask(request)

    async def send_notification(self, note: Note) -> None:
        """Send a notification; wait while the client does not read."""
        await self._link.send_notification(note)

    def lent_servers(self) -> "LentServers":
        """Return the MCP servers that the client lends. Most lend none, so this is imported with the first call."""
        if self._lent is None:
            from dragoman.agent.lent_servers import LentServers

            self._lent = LentServers(self._link.ask)
        return self._lent

    def receive_from_server(self, note: ExtensionNote) -> bool:
        """Hand a notification of an MCP server to the call that it belongs to; False: there is no such call."""
        return self._lent is not None and note.method == MCP_MESSAGE and self._lent.receive(note.params)

    def hold(self, session_id: str, event: AnyEvent) -> bool:
        """Hold an event until its session is announced. False: it is announced already."""
        if session_id in self._known:
            return False
        held = self._held.setdefault(session_id, [])
        if len(held) >= limits.EARLY_UPDATES:
            raise UsageError("too much is said before the session is open: say it in the prompt handler")
        held.append(event)
        return True


class _HeldText:
    """A message that was begun before its session was announced; it may go on after that."""

    def __init__(self, sink: ClientSink, session_id: str, kind: str, message_id: str) -> None:
        self._sink = sink
        self._message = (session_id, kind, message_id)
        self._stream: TextSink | None = None

    def put(self, text: str) -> bool:
        session_id, kind, message_id = self._message
        if self._stream is None:
            chunk = AgentMessageChunk if kind == "agent_message_chunk" else AgentThoughtChunk
            # Until the session is announced; the message may have been begun before and go on after that.
            if self._sink.hold(session_id, chunk(Text(text), message_id=message_id)):
                return False
            self._stream = self._sink.text_stream(session_id, kind, message_id)
        return self._stream.put(text)

    async def wait_for_room(self) -> None:
        if self._stream is not None:
            await self._stream.wait_for_room()


class ClientConnection:
    """Serves one client of an agent: the handler of its link, and the owner of its sessions and turns."""

    def __init__(
        self,
        agent: AgentCore,
        transport: Transport,
        *,
        trace: Trace | None = None,
        greeted: InitializeAnswer | None = None,
        trusted: bool = False,
    ) -> None:
        # Whether the peer is a gateway of ours, which says who asks.
        self.trusted: Final = trusted
        # `greeted`: `initialize` was answered before there was a link (`transports/opening`).
        self.hello = ClientHello() if greeted is None else greeted.client
        self._agent = agent
        self._tasks: set[asyncio.Task[None]] = set()
        self._turns: set[RunningTurn] = set()
        self._noises = 0
        self.link: Final = Link(
            transport, self, "agent", spoken=agent.versions, trace=trace, greeted=greeted, dialect=agent.dialect
        )
        self.sink: Final = ClientSink(self.link, self.hello.capabilities)
        self.sessions: Final = OpenSessions(agent, self.sink, trusted=trusted)
        # A table and not a `match`: it is looked up for every request, and a request without a row is "Method not
        # found".
        self._answers: Final = self._answer_table()

    def __repr__(self) -> str:
        return f"<ClientConnection sessions={len(self.sessions.open)} turns={len(self._turns)} {self.link!r}>"

    async def run(self) -> None:
        """Serve until the client is gone; then stop what it started, within the link's deadline."""
        self.link.start()
        try:
            await self.link.wait_until_closed()
        finally:
            await self.stop()
            deadline = self.link.deadline or Deadline()
            # Turns have ended by now, or used up their grace; what is left are turns that wait for the disk and
            # handlers of notifications.
            await cancel_all(self._tasks.copy(), deadline.left(TASKS))
            await self.sessions.close_all(deadline)

    async def stop(self) -> None:
        """Cancel the turns, answer open requests, close. Bounded and idempotent."""
        await self.link.finish()

    @property
    def exit_code(self) -> int:
        """The exit code of a process that served this client and no other: 1 if the client's bytes ended the link."""
        return 0 if self.link.fault is None else 1

    # -- the link calls these ----------------------------------------------------------------------------------------

    def on_initialize(self, hello: ClientHello) -> AgentHello:
        self.hello = hello
        self.sink.client = hello.capabilities
        return self._agent.hello()

    def on_request(self, request: Request, id: Id) -> Reply | Awaitable[Reply]:
        answer = self._answers.get(type(request))
        if answer is None:
            raise RequestFailed(METHOD_NOT_FOUND, "Method not found")
        if not self.trusted:
            return answer(request)
        # Set twice: for what runs before the first await, which includes tasks that are started there, and again in
        # the task that awaits the rest.
        identity = identity_in(request)
        before = CALLER.set(identity)
        try:
            reply = answer(request)
        finally:
            CALLER.reset(before)
        return reply if isinstance(reply, Reply) else _asked_by(identity, reply)

    def _answer_table(self) -> dict[type[Request], Callable[[Any], Reply | Awaitable[Reply]]]:
        sessions, agent = self.sessions, self._agent
        return {
            ask.PromptRequest: self._prompt,
            ask.SteerTurn: self._steer,
            ask.SetOption: lambda request: set_option(agent, self._open_session(request.session_id), request),
            ask.RecordNote: self._record_note,
            ask.RewindSession: self._rewind,
            ask.NewSession: sessions.new,
            ask.ResumeSession: sessions.resume,
            ask.ForkSession: sessions.fork,
            ask.ListSessions: sessions.list,
            ask.CloseSession: lambda request: sessions.close(request.session_id),
            ask.DeleteSession: lambda request: sessions.delete(request.session_id),
            ask.GetSessionStatus: lambda request: sessions.status(request.session_id),
            ask.SetTitle: lambda request: sessions.set_title(request.session_id, request.title),
            ask.ArchiveSession: lambda request: sessions.archive(request.session_id, True),
            ask.UnarchiveSession: lambda request: sessions.archive(request.session_id, False),
            ask.CancelToolCall: lambda request: self._stop(request.session_id, request.tool_call_id),
            ask.CancelTerminal: lambda request: self._stop(request.session_id, request.terminal_id),
            ask.Login: agent.login,
            ask.Logout: agent.logout,
            ask.GetAuthStatus: agent.auth_status,
            Extension: self._extension,
        }

    def on_notification(self, note: Note) -> None:
        match note:
            case ask.CancelTurn():
                core = self.sessions.open.get(note.session_id)
                # Without a turn there is nothing to cancel: the cancel has crossed the turn's end on the wire.
                if core is not None and core.turn is not None:
                    # In this order: a turn that is cancelled accepts no more prompts, and one that waits would else
                    # begin the next turn.
                    core.queue.reject_all()
                    core.turn.cancel()
                else:
                    short_id = note.session_id[limits.SHORT_ID]
                    _log.debug("cancel of session %s ignored: no turn of it runs", short_id)
            case ExtensionNote():
                handler = self._agent.notifications.get(note.method)
                if handler is None:
                    if self.sink.receive_from_server(note):
                        return
                    # Not noise: a client may send extensions that only some agents know.
                    _log.debug("notification %s ignored: the agent has no handler for it", note.method[:80])
                    return
                # Every running turn is a task too.
                if len(self._tasks) - len(self._turns) < _NOTES:
                    self._start(self._guard(handler(note.params)))
                else:
                    self.on_noise("too many notifications at once")
            case _:
                pass

    def on_event(self, session_id: str, event: AnyEvent) -> None:
        self.on_noise("a client sent a session event")

    def on_noise(self, reason: str) -> None:
        """Write why input was skipped to stderr; bounded, because a full stderr that is not read would block us."""
        self._noises += 1
        if self._noises <= _NOISES:
            warn(f"dragoman: skipped: {reason}\n")

    def on_bug(self, error: Exception) -> None:
        self._agent.report(error)

    def on_closed(self, error: LinkClosed) -> Awaitable[object] | None:
        """Cancel the turns; return what waits for their ends, which are the last that the client gets."""
        _log.debug("client gone with %d turns running", len(self._turns))
        turns = [turn for turn in self._turns if not turn.over.done()]
        deadline = self.link.deadline or Deadline()
        grace = min(limits.EOF_ANSWER_SECONDS / 2, deadline.left(TURNS))
        for turn in turns:
            turn.cancel(grace)
        # A future, not a coroutine: where the client has stopped reading, the link does not await it, and a coroutine
        # would then warn that it was never awaited.
        return asyncio.gather(*(turn.over for turn in turns)) if turns else None

    # -- turns -------------------------------------------------------------------------------------------------------

    def _open_session(self, session_id: str) -> SessionCore:
        core = self.sessions.open.get(session_id)
        if core is None:
            raise session_not_found(session_id)
        return core

    def _prompt(self, request: ask.PromptRequest) -> Reply | Awaitable[Reply]:
        core = self._open_session(request.session_id)
        prompt = self._checked_prompt(core, request)
        if core.turn is None:
            accepted = self._begin_accepted(core, prompt)
            return ask.PromptAccepted(prompt.message_id) if accepted is None else accepted()
        if not self._agent.steering:
            raise session_is_busy()
        return core.queue.wait_until_accepted(prompt)

    def _checked_prompt(self, core: SessionCore, request: ask.PromptRequest | ask.SteerTurn) -> Prompt:
        # Not empty: every dialect rejects an empty prompt while it decodes the request.
        prompt = Prompt(request.prompt, new_id("msg"), caller())
        # Before anything is recorded: a refused prompt leaves no trace in the log.
        for check in self._agent.prompt_checks:
            check(core.session, prompt)
        return prompt

    def _begin_accepted(self, core: SessionCore, prompt: Prompt) -> Callable[[], Awaitable[Reply]] | None:
        """Begin a turn; return what waits until its prompt is accepted. None: it is accepted now."""
        # The turn begins after this reply was enqueued: on every wire, acceptance comes before what was accepted. With
        # a store the prompt is on disk before that. Not during a replay: a wire without message ids could take the
        # replayed messages for this prompt's, so the reply goes first and the turn waits for the replay.
        if core.journal is not None and (core.replay_task is None or core.replay_task.done()):
            queued = QueuedPrompt.of(prompt)
            return partial(self._accepted, self._begin(core, prompt, queued.accept), queued)
        self._begin(core, prompt, _already_accepted)
        return None

    def _steer(self, request: ask.SteerTurn) -> Reply | Awaitable[Reply]:
        core = self._open_session(request.session_id)
        if not self._agent.steering:
            raise RequestFailed(METHOD_NOT_FOUND, "Method not found")
        prompt = self._checked_prompt(core, request)
        if core.turn is not None:
            queue = partial(core.queue.wait_until_accepted, prompt, needs_turn=request.needs_turn)
            return self._steered(core, prompt, queue)
        if request.needs_turn:
            return _no_turn()
        accepted = self._begin_accepted(core, prompt)
        # Without a task where it is accepted: the reply must be enqueued before the turn's first event.
        return _started(prompt) if accepted is None else self._steered(core, prompt, accepted)

    # A function and not a coroutine: the request may be cancelled before its task has begun, and Python warns of a
    # coroutine that never ran.
    async def _steered(self, core: SessionCore, prompt: Prompt, accepted: Callable[[], Awaitable[Reply]]) -> Reply:
        """Wait for the place of a prompt: in the turn that ran when it came, or at the head of its own."""
        try:
            await accepted()
        except NoTurn:
            return _no_turn()
        except RequestFailed as failed:
            if failed.code != CANCELLED:
                raise
            return ask.Steered("failed")  # the turn was cancelled, and the prompt has no place
        # In the step behind the acceptance, in which the prompt's own turn has not done anything yet.
        begins = core.turn is not None and core.turn.prompt is prompt
        return _started(prompt) if begins else ask.Steered("injected", message_id=prompt.message_id)

    async def _accepted(self, turn: RunningTurn, prompt: QueuedPrompt) -> Reply:
        try:
            return await prompt.reply
        except asyncio.CancelledError:
            turn.cancel()  # the request was cancelled before it was answered
            raise

    def _begin(self, core: SessionCore, prompt: Prompt, accepted: Callable[[], None]) -> RunningTurn:
        turn = core.turn = RunningTurn(core, prompt, accepted)
        self._turns.add(turn)
        # The future calls back in the next step of the loop, after `RunningTurn.run` has returned: a queued prompt
        # begins its turn when nothing of this one runs any more.
        turn.over.add_done_callback(lambda _: self._ended(core, turn))
        self._start(turn.run(lambda: self._agent.handle_prompt(core.session, prompt), self.on_bug))
        return turn

    def _ended(self, core: SessionCore, turn: RunningTurn) -> None:
        """Begin the next turn with the oldest queued prompt that this turn did not accept."""
        self._turns.discard(turn)
        if turn.cancelled or self.link.closed or self.sessions.open.get(core.id) is not core:
            core.queue.reject_all()
        # `core.turn` is not None where a prompt came in the step between the end and this callback: it began its own.
        elif core.turn is None and (queued := core.queue.pop_for_turn()) is not None:
            self._begin(core, queued.prompt, queued.accept)

    def _stop(self, session_id: str, id: str) -> Reply:
        """Stop one tool call or terminal. The reply means that it was asked to stop; its end is sent when it comes."""
        stop = self._open_session(session_id).stoppable.get(id)
        if stop is None:
            raise RequestFailed(INVALID_PARAMS, "This cannot be cancelled", {"id": echo(id)})
        stop()
        return Done()

    def _rewind(self, request: ask.RewindSession) -> Awaitable[Reply]:
        core = self._open_session(request.session_id)
        handler = self._agent.rewind_handler
        if handler is None:
            raise RequestFailed(METHOD_NOT_FOUND, "Method not found")
        if core.turn is not None or (core.replay_task is not None and not core.replay_task.done()):
            raise session_is_busy()

        async def rewind() -> Reply:
            with client_errors(core.id):
                if core.journal is not None:
                    await core.journal.repair()
                return await handler(core.session, request)

        # As behind a replay: a prompt that comes meanwhile waits for its end (`RunningTurn.run`). It goes on if the
        # request is cancelled: half a rewind is no answer to that.
        work = asyncio.get_running_loop().create_task(rewind())
        work.add_done_callback(retrieve_exception)
        core.replay_task = work
        return asyncio.shield(work)

    # -- extensions --------------------------------------------------------------------------------------------------

    async def _record_note(self, request: ask.RecordNote) -> Reply:
        await self._open_session(request.session_id).record_note(request.name, request.value)
        return Done()

    async def _extension(self, request: Extension) -> Reply:
        handler = self._agent.extensions.get(request.method)
        if handler is None:
            raise RequestFailed(METHOD_NOT_FOUND, "Method not found")
        return ExtensionResult(await handler(request.params))

    async def _guard(self, work: Awaitable[None]) -> None:
        """Run a notification's handler; what it raises has no reply to go into, so it is reported."""
        try:
            await work
        except Exception as error:
            self.on_bug(error)

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _asked_by(identity: Identity, reply: Awaitable[Reply]) -> Reply:
    """Wait for an answer in a task of its own, whose code knows who asked."""
    CALLER.set(identity)
    return await reply


def _started(prompt: Prompt) -> ask.Steered:
    return ask.Steered("startedNewTurn", message_id=prompt.message_id)


def _no_turn() -> ask.Steered:
    return ask.Steered(ask.PROMPT_REQUIRED, reason="noRunningTurn")


def _already_accepted() -> None:
    """Do nothing: the prompt was accepted before its turn began."""
