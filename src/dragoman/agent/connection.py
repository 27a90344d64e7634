"""One client being served: requests come in as vocabulary, sessions answer in events.

Nothing is sent about a session before the answer that names it (`AnnouncedEvents`): what a session emits while it is
being opened is held, and leaves right behind that answer.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from dragoman import limits
from dragoman.agent.event_sink import TextSink
from dragoman.agent.journal import keep_option
from dragoman.agent.options import options_with
from dragoman.agent.prompt_queue import QueuedPrompt
from dragoman.agent.session import CALLER, Prompt, Session, caller, new_id
from dragoman.agent.sessions import OpenSessions
from dragoman.agent.turn import RunningTurn
from dragoman.dialects.contract import Id
from dragoman.dialects.handshake.first_bytes import Greeting
from dragoman.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    LinkClosed,
    RequestFailed,
    UsageError,
    echo,
)
from dragoman.link import Link, Trace
from dragoman.link.deadline import TASKS, TURNS, Deadline
from dragoman.transports.contract import Transport
from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.asking import Done, Extension, ExtensionNote, ExtensionResult, Note, R, Reply, Request
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessageChunk, AgentThoughtChunk, AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientCapabilities, ClientHello
from dragoman.vocabulary.identity import Identity, identity_in
from dragoman.vocabulary.options import Option
from dragoman.vocabulary.services import Elicit, SessionScope

if TYPE_CHECKING:
    from dragoman.agent.agent import Agent


class AnnouncedEvents:
    """Speaks through a link, for the sessions that the client knows; holds back what others say."""

    def __init__(self, link: Link) -> None:
        self.note: Final = link.send_notification
        self._link = link
        self._known: set[str] = set()
        self._held: dict[str, list[AnyEvent]] = {}

    def announce(self, session_id: str) -> None:
        """The client knows this session: it named it, or the answer that does is on its way."""
        if session_id not in self._known:
            self._known.add(session_id)
            for event in self._held.pop(session_id, ()):
                if not self._link.closed:
                    self._link.enqueue_event(session_id, event)

    def announce_next(self, session_id: str) -> None:
        """The answer that names it leaves at the end of this very step: the link puts an answer when it gets it."""
        asyncio.get_running_loop().call_soon(self.announce, session_id)

    def forget(self, session_id: str) -> None:
        """The session is closed, or was never opened."""
        self._known.discard(session_id)
        self._held.pop(session_id, None)

    async def tell(self, session_id: str, event: AnyEvent) -> None:
        """Say an event; waits while the client does not read."""
        if session_id in self._known:
            await self._link.send_event(session_id, event)
        else:
            self.hold(session_id, event)

    def text_stream(self, session_id: str, kind: str, message_id: str) -> TextSink:
        """A message to be said in pieces of text."""
        if session_id in self._known:
            return self._link.text_stream(session_id, kind, message_id)
        return _HeldText(self, session_id, kind, message_id)

    async def ask(self, request: Request[R]) -> R:
        """Ask the client; not about a session it has never heard of."""
        scope = request.scope if isinstance(request, Elicit) else request
        session_id = getattr(scope, "session_id", None) if not isinstance(scope, SessionScope) else scope.session_id
        if session_id is not None and session_id not in self._known:
            raise UsageError("the client does not know this session yet: ask in the prompt handler")
        return await self._link.ask(request)

    def hold(self, session_id: str, event: AnyEvent) -> bool:
        """Keep an event until its session is announced. False: it is announced already."""
        if session_id in self._known:
            return False
        held = self._held.setdefault(session_id, [])
        if len(held) >= limits.EARLY_UPDATES:
            raise UsageError("too much is said before the session is open: say it in the prompt handler")
        held.append(event)
        return True


class _HeldText:
    """A message that was begun before its session was announced; it may go on after that."""

    def __init__(self, speech: AnnouncedEvents, session_id: str, kind: str, message_id: str) -> None:
        self._speech = speech
        self._message = (session_id, kind, message_id)
        self._stream: TextSink | None = None

    def put(self, text: str) -> bool:
        session_id, kind, message_id = self._message
        if self._stream is None:
            chunk = AgentMessageChunk if kind == "agent_message_chunk" else AgentThoughtChunk
            if self._speech.hold(session_id, chunk(Text(text), message_id=message_id)):
                return False
            self._stream = self._speech.text_stream(session_id, kind, message_id)
        return self._stream.put(text)

    async def breathe(self) -> None:
        if self._stream is not None:
            await self._stream.breathe()


# What is complained about on stderr, for each client.
_NOISES: Final = 100
# Extension notifications being worked on: they have no answer, so this is their only limit.
_NOTES: Final = limits.IN_FLIGHT


class ClientConnection:
    """Serves one client of an `Agent`. It is the link's handler and the sessions' speech."""

    def __init__(
        self,
        agent: "Agent",
        transport: Transport,
        *,
        trace: Trace | None = None,
        greeted: Greeting | None = None,
        trusted: bool = False,
    ) -> None:
        # Whether the peer is a gateway of ours, which says who asks.
        self.trusted: Final = trusted
        self.hello = ClientHello() if greeted is None else greeted.client
        self._agent = agent
        self._tasks: set[asyncio.Task[None]] = set()
        self._turns: set[RunningTurn] = set()
        self._noises = 0
        self.link: Final = Link(
            transport, self, "agent", spoken=agent.spoken, trace=trace, greeted=greeted, dialect=agent.dialect
        )
        self._speech = AnnouncedEvents(self.link)
        self.tell: Final = self._speech.tell
        self.ask: Final = self._speech.ask
        self.note: Final = self._speech.note
        self.text_stream: Final = self._speech.text_stream
        self.sessions: Final = OpenSessions(agent, self, self._speech, trusted=trusted)
        self._answers: Final = self._what_we_answer()

    async def run(self) -> None:
        """Serve until the client is gone; then stop what it started."""
        self.link.start()
        try:
            await self.link.wait_until_closed()
        finally:
            await self.stop()
            deadline = self.link.deadline or Deadline()
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(list(self._tasks), timeout=deadline.left(TASKS))
            await self.sessions.leave(deadline)

    async def stop(self) -> None:
        """Cancel the turns, answer what was asked, close. Bounded and idempotent."""
        await self.link.finish()

    @property
    def exit_code(self) -> int:
        """What a process exits with that served this client and no other: 1 if the client's bytes ended the link."""
        return 0 if self.link.fault is None else 1

    @property
    def client(self) -> ClientCapabilities:
        """What the client can do for us."""
        return self.hello.capabilities

    # -- the link calls these ----------------------------------------------------------------------------------------

    def on_initialize(self, hello: ClientHello) -> AgentHello:
        self.hello = hello
        return self._agent.hello()

    def on_request(self, request: Request, id: Id) -> Reply | Awaitable[Reply]:
        answer = self._answers.get(type(request))
        if answer is None:
            raise RequestFailed(METHOD_NOT_FOUND, "Method not found")
        if not self.trusted:
            return answer(request)
        # What is begun here, and the tasks that it starts, know who asked.
        identity = identity_in(request)
        before = CALLER.set(identity)
        try:
            reply = answer(request)
        finally:
            CALLER.reset(before)
        return reply if isinstance(reply, Reply) else _asked_by(identity, reply)

    def _what_we_answer(self) -> dict[type[Request], Callable[[Any], Reply | Awaitable[Reply]]]:
        sessions, agent = self.sessions, self._agent
        return {
            ask.PromptRequest: self._prompt,
            ask.SetOption: self._set_option,
            ask.RecordNote: self._record_note,
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
                session = self.sessions.open.get(note.session_id)
                if session is not None and session.turn is not None:
                    session.interjections.refuse()
                    session.turn.cancel()
            case ExtensionNote():
                handler = self._agent.notifications.get(note.method)
                if handler is None:
                    return
                if len(self._tasks) - len(self._turns) < _NOTES:
                    self._start(self._hear(handler(note.params)))
                else:
                    self.on_noise("too many notifications at once")
            case _:
                pass

    def on_event(self, session_id: str, event: AnyEvent) -> None:
        self.on_noise("a client sent a session event")

    def on_noise(self, reason: str) -> None:
        """What was skipped goes to stderr, where a person who looks for it finds it; but not without end, because
        a client that does not read our stderr must not stop us."""
        self._noises += 1
        if self._noises <= _NOISES:
            complain(f"dragoman: skipped: {reason}\n")

    def on_bug(self, error: Exception) -> None:
        self._agent.report(error)

    def on_closed(self, error: LinkClosed) -> Awaitable[object] | None:
        """The client hears no more than the ends of its turns, and those within a bound."""
        turns = [turn for turn in self._turns if not turn.over.done()]
        deadline = self.link.deadline or Deadline()
        grace = min(limits.EOF_ANSWER_SECONDS / 2, deadline.left(TURNS))
        for turn in turns:
            turn.cancel(grace)
        # A future, not a coroutine: where the client has stopped reading, the link does not await it, and a coroutine
        # would then warn that it was never awaited.
        return asyncio.gather(*(turn.over for turn in turns)) if turns else None

    # -- turns and options -------------------------------------------------------------------------------------------

    def _prompt(self, request: ask.PromptRequest) -> Reply | Awaitable[Reply]:
        session = self.sessions.find(request.session_id)
        if not request.prompt:
            raise RequestFailed(INVALID_PARAMS, "The prompt is empty")
        prompt = Prompt(request.prompt, new_id("msg"), caller())
        for check in self._agent.prompt_checks:
            check(session, prompt)
        if session.turn is None:
            # The turn begins after this answer was put: on every wire, acceptance comes before what was accepted.
            # Behind a journal the prompt is on disk before that; not in the middle of a story that is told again, whose
            # messages a wire without ids could take for this one's.
            if session.journal is not None and (session.retelling is None or session.retelling.done()):
                interjection = QueuedPrompt.of(prompt)
                return self._accepted(self._begin(session, prompt, interjection.accept), interjection)
            self._begin(session, prompt, _nothing)
            return ask.PromptAccepted(prompt.message_id)
        if not self._agent.hears_interjections:
            raise RequestFailed(INVALID_REQUEST, "The session is busy", {"reason": "busy"})
        return session.interjections.wait(prompt)

    async def _accepted(self, turn: RunningTurn, prompt: QueuedPrompt) -> Reply:
        try:
            return await prompt.answer
        except asyncio.CancelledError:
            turn.cancel()  # the request was cancelled before it was answered
            raise

    def _begin(self, session: Session, prompt: Prompt, accepted: Callable[[], None]) -> RunningTurn:
        turn = session.turn = RunningTurn(session, prompt, accepted)
        self._turns.add(turn)
        turn.over.add_done_callback(lambda _: self._ended(session, turn))
        self._start(turn.run(lambda: self._agent.work(session, prompt), self.on_bug))
        return turn

    def _ended(self, session: Session, turn: RunningTurn) -> None:
        """What was said too late for this turn is the next one."""
        self._turns.discard(turn)
        if turn.cancelled or self.link.closed or self.sessions.open.get(session.id) is not session:
            session.interjections.refuse()
        elif session.turn is None and (waiting := session.interjections.take()) is not None:
            self._begin(session, waiting.prompt, waiting.accept)

    def _stop(self, session_id: str, id: str) -> Reply:
        """Stop one call or one terminal. The answer means that it was heard; the end is told when it comes."""
        stop = self.sessions.find(session_id).stoppable.get(id)
        if stop is None:
            raise RequestFailed(INVALID_PARAMS, "This cannot be cancelled", {"id": echo(id)})
        stop()
        return Done()

    def _set_option(self, request: ask.SetOption) -> Reply | Awaitable[Reply]:
        session = self.sessions.find(request.session_id)
        before = session.options
        setter = self._agent.option_setters.get(request.config_id)
        if setter is not None:
            after = setter(session, request.value)
        else:
            after = options_with(before, request, open_models=self._agent.rules.accepts_unlisted_models)
        for check in self._agent.option_checks:
            refusal = check(session, request.config_id, request.value)
            if refusal is not None:
                return refusal
        session.options = after
        if self._agent.option_handlers or session.journal is not None:
            return self._option_changed(session, request, before)
        return ask.OptionsSet(session.options)

    async def _record_note(self, request: ask.RecordNote) -> Reply:
        session = self.sessions.find(request.session_id)
        await session.record_note(request.name, request.value)
        return Done()

    async def _option_changed(self, session: Session, request: ask.SetOption, before: list[Option]) -> Reply:
        # A setter may have spelled the value in another way.
        after, value = session.options, session.option(request.config_id)
        try:
            for handler in self._agent.option_handlers:
                await handler(session, request.config_id, value)
            await keep_option(session, request.config_id, value)
        except BaseException:
            if session.options is after:
                session.options = before  # the client is told that it failed, so it did
            raise
        return ask.OptionsSet(session.options)

    # -- extensions --------------------------------------------------------------------------------------------------

    async def _extension(self, request: Extension) -> Reply:
        handler = self._agent.extensions.get(request.method)
        if handler is None:
            raise RequestFailed(METHOD_NOT_FOUND, "Method not found")
        return ExtensionResult(await handler(request.params))

    async def _hear(self, work: Awaitable[None]) -> None:
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


def complain(text: str) -> None:
    """Tell the people who run this agent; stdout belongs to the protocol, and stderr may be closed."""
    try:
        sys.stderr.write(text)
    except (OSError, ValueError, AttributeError):
        pass


def _nothing() -> None:
    """It was accepted already."""
