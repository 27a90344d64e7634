"""One client being served: requests come in as vocabulary, sessions answer in events."""

import asyncio
import sys
from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from dragoman import limits
from dragoman.agent.announced import Announced
from dragoman.agent.identity import new_id
from dragoman.agent.session import Prompt, Session
from dragoman.agent.sessions import Sessions, keep_option
from dragoman.agent.turn import Turn
from dragoman.dialects.contract import Id
from dragoman.dialects.greeting import Greeted
from dragoman.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    LinkClosed,
    RequestFailed,
)
from dragoman.link import Link, Trace
from dragoman.transports.contract import Transport
from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.asking import Extension, ExtensionNote, ExtensionResult, Note, Reply, Request
from dragoman.vocabulary.events import AnyEvent
from dragoman.vocabulary.hello import AgentHello, ClientCapabilities, ClientHello
from dragoman.vocabulary.options import Option, Select, Toggle

if TYPE_CHECKING:
    from dragoman.agent.agent import Agent


# What is complained about on stderr, for each client.
_NOISES: Final = 100
# Extension notifications being worked on: they have no answer, so this is their only limit.
_NOTES: Final = limits.IN_FLIGHT
# After the last answer, what still runs may clean up for this long.
_LEAVE_SECONDS: Final = 0.25


class Connection:
    """Serves one client of an `Agent`. It is the link's handler and the sessions' speech."""

    def __init__(
        self, agent: "Agent", transport: Transport, *, trace: Trace | None = None, greeted: Greeted | None = None
    ) -> None:
        self.hello = ClientHello() if greeted is None else greeted.client
        self._agent = agent
        self._tasks: set[asyncio.Task[None]] = set()
        self._turns: set[Turn] = set()
        self._noises = 0
        self.link: Final = Link(transport, self, "agent", spoken=agent.spoken, trace=trace, greeted=greeted)
        self._speech = Announced(self.link)
        self.tell: Final = self._speech.tell
        self.ask: Final = self._speech.ask
        self.note: Final = self._speech.note
        self.text_stream: Final = self._speech.text_stream
        self.sessions: Final = Sessions(agent, self, self._speech)

    async def run(self) -> None:
        """Serve until the client is gone; then stop what it started."""
        self.link.start()
        try:
            await self.link.ended()
        finally:
            await self.stop()
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(list(self._tasks), timeout=_LEAVE_SECONDS)
            await self.sessions.leave()

    async def stop(self) -> None:
        """Cancel the turns, answer what was asked, close. Bounded and idempotent."""
        await self.link.finish()

    @property
    def client(self) -> ClientCapabilities:
        """What the client can do for us."""
        return self.hello.capabilities

    # -- the link calls these ----------------------------------------------------------------------------------------

    def on_hello(self, hello: ClientHello) -> AgentHello:
        self.hello = hello
        return self._agent.hello()

    def on_request(self, request: Request, id: Id) -> Reply | Awaitable[Reply]:
        match request:
            case ask.Prompt():
                return self._prompt(request)
            case ask.NewSession():
                return self.sessions.new(request)
            case ask.SetOption():
                return self._set_option(request)
            case ask.CloseSession():
                return self.sessions.close(request.session_id)
            case ask.ResumeSession():
                return self.sessions.resume(request)
            case ask.ForkSession():
                return self.sessions.fork(request)
            case ask.ListSessions():
                return self.sessions.list(request)
            case ask.DeleteSession():
                return self.sessions.delete(request.session_id)
            case ask.GetSessionStatus():
                return self.sessions.status(request.session_id)
            case ask.SetTitle():
                return self.sessions.set_title(request.session_id, request.title)
            case ask.ArchiveSession() | ask.UnarchiveSession():
                return self.sessions.archive(request.session_id, isinstance(request, ask.ArchiveSession))
            case ask.Login():
                return self._agent.login(request)
            case ask.Logout():
                return self._agent.logout(request)
            case Extension():
                return self._extension(request)
            case _:
                raise RequestFailed(METHOD_NOT_FOUND, "Method not found")

    def on_note(self, note: Note) -> None:
        match note:
            case ask.CancelTurn():
                session = self.sessions.open.get(note.session_id)
                if session is not None and session.turn is not None:
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
        for turn in turns:
            turn.cancel(limits.EOF_ANSWER_SECONDS / 2)
        # A future, not a coroutine: where nobody reads any more the link does not wait for it.
        return asyncio.gather(*(turn.over for turn in turns)) if turns else None

    # -- turns and options -------------------------------------------------------------------------------------------

    def _prompt(self, request: ask.Prompt) -> Reply:
        session = self.sessions.find(request.session_id)
        if not request.prompt:
            raise RequestFailed(INVALID_PARAMS, "The prompt is empty")
        if session.turn is not None:
            raise RequestFailed(INVALID_REQUEST, "The session is busy", {"reason": "busy"})
        prompt = Prompt(request.prompt, new_id("msg"))
        turn = session.turn = Turn(session, prompt)
        self._turns.add(turn)
        turn.over.add_done_callback(lambda _: self._turns.discard(turn))
        # The turn begins after this answer was put: on every wire, acceptance comes before what was accepted.
        self._start(turn.run(lambda: self._agent.work(session, prompt), self.on_bug))
        return ask.PromptAccepted(prompt.message_id)

    def _set_option(self, request: ask.SetOption) -> Reply | Awaitable[Reply]:
        session = self.sessions.find(request.session_id)
        if not any(_named(option, request.config_id) for option in session.options):
            raise RequestFailed(INVALID_PARAMS, "No such option", {"configId": request.config_id})
        before, session.options = session.options, [_changed(option, request) for option in session.options]
        if self._agent.option_handlers or session.journal is not None:
            return self._option_changed(session, request, before)
        return ask.OptionsSet(session.options)

    async def _option_changed(self, session: Session, request: ask.SetOption, before: list[Option]) -> Reply:
        after = session.options
        try:
            for handler in self._agent.option_handlers:
                await handler(session, request.config_id, request.value)
            await keep_option(session, request.config_id, request.value)
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


def complain(text: str) -> None:
    """Tell the people who run this agent; stdout belongs to the protocol, and stderr may be closed."""
    try:
        sys.stderr.write(text)
    except (OSError, ValueError, AttributeError):
        pass


def _named(option: Option, config_id: str) -> bool:
    return isinstance(option, (Select, Toggle)) and option.config_id == config_id


def _changed(option: Option, request: ask.SetOption) -> Option:
    """The option with its new value; a value it does not have is refused."""
    if not isinstance(option, (Select, Toggle)) or option.config_id != request.config_id:
        return option
    fits = (
        isinstance(request.value, bool)
        if isinstance(option, Toggle)
        else any(choice.value == request.value for choice in option.choices())
    )
    if not fits:
        raise RequestFailed(INVALID_PARAMS, "No such value", {"configId": request.config_id})
    return replace(option, current_value=request.value)
