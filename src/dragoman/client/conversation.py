"""A session as a client sees it: prompt, and read events until the turn ends."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from msgspec import UNSET

from dragoman.errors import INTERNAL_ERROR, LinkClosed, UsageError, request_failed
from dragoman.vocabulary.asking import Reply, Request
from dragoman.vocabulary.content import Content, Text
from dragoman.vocabulary.events import (
    AgentMessageChunk,
    AnyEvent,
    CommandsChanged,
    Failure,
    Idle,
    OptionsChanged,
    SessionInfoChanged,
    Usage,
)
from dragoman.vocabulary.options import MODE_CATEGORY, AnyCommand, Option, Select
from dragoman.vocabulary.requests import (
    CancelToolCall,
    CancelTurn,
    CloseSession,
    ForkSession,
    OptionsSet,
    Prompt,
    SessionOpened,
    SetOption,
    SetTitle,
)

if TYPE_CHECKING:
    from dragoman.client.connect import Client

Ask = Callable[[Request], Awaitable[Reply]]


class Answer(NamedTuple):
    """A whole turn, read to its end."""

    text: str
    stop_reason: str
    usage: Usage | None


class Turn:
    """One prompt and what comes of it: an async iterator of events that ends when the turn does.

    Leaving the loop early leaves the turn running; `cancel()` stops it. A turn that ended in an error raises at the
    end of the loop, after everything that was said before.
    """

    def __init__(self, conversation: "Conversation", prompt: Prompt) -> None:
        self.end: Idle | None = None
        self._conversation = conversation
        self._prompt = prompt
        self._queue: deque[AnyEvent] = deque()
        self._waiting: asyncio.Future[None] | None = None
        self._started = False
        self._lost: LinkClosed | None = None

    @property
    def stop_reason(self) -> str:
        """Why the turn ended; empty while it runs."""
        return self.end.stop_reason if self.end is not None and isinstance(self.end.stop_reason, str) else ""

    @property
    def usage(self) -> Usage | None:
        """The tokens of the turn, if the agent told them."""
        return self.end.usage if self.end is not None and isinstance(self.end.usage, Usage) else None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AnyEvent:
        queue = self._queue
        if queue:
            return queue.popleft()
        if not self._started:
            await self._start()
        while not queue:
            if self.end is not None:
                self._raise_if_failed()
                raise StopAsyncIteration
            if self._lost is not None:
                raise self._lost
            self._conversation.taken()
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        return queue.popleft()

    def ready(self) -> list[AnyEvent]:
        """The events that have come already, without waiting."""
        found = list(self._queue)
        self._queue.clear()
        return found

    async def cancel(self) -> None:
        """Ask the agent to stop. The turn still ends by itself, as cancelled: go on reading."""
        self._conversation.client.note_now(CancelTurn(self._conversation.id))

    async def read(self) -> Answer:
        """Read the turn to its end; what the agent said, as text."""
        pieces = []
        async for event in self:
            if type(event) is AgentMessageChunk:
                pieces.append(event.text)
        return Answer("".join(pieces), self.stop_reason, self.usage)

    async def _start(self) -> None:
        self._started = True
        try:
            await self._conversation.client.ask(self._prompt)
        except BaseException:
            self._conversation.turn = None
            raise

    def hear(self, event: AnyEvent) -> None:
        """The conversation hands over what belongs to this turn."""
        self._queue.append(event)
        if event.__class__ is Idle and isinstance(event.stop_reason, str):
            self.end = event
            self._conversation.turn = None
        waiting = self._waiting
        if waiting is not None:
            self._waiting = None
            if not waiting.done():
                waiting.set_result(None)

    def lose(self, error: LinkClosed) -> None:
        """The connection is gone: what was heard is still read, then this is raised."""
        self._lost = error
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _raise_if_failed(self) -> None:
        if self.end is not None and self.end.stop_reason == "error":
            # An agent on an older draft of v2 cannot say why.
            error = self.end.error or Failure(INTERNAL_ERROR, "The agent ended the turn in an error")
            raise request_failed(error.code, error.message, None if error.data is UNSET else error.data)


class Conversation:
    """One session with an agent. Made by `client.new_session()` and its siblings."""

    def __init__(self, client: "Client", id: str, cwd: str, opened: SessionOpened) -> None:
        self.client: Final = client
        self.id: Final = id
        self.cwd: Final = cwd
        self.title = ""
        self.options: list[Option] = opened.config_options or []
        self.commands: list[AnyCommand] = opened.available_commands or []
        self.turn: Turn | None = None

    def prompt(self, content: "str | Content | Sequence[Content]") -> Turn:
        """Say something; iterate over what comes of it."""
        if self.turn is not None:
            raise UsageError("a turn is still running: read it to its end, or cancel it first")
        blocks: list[Content] = [Text(content)] if isinstance(content, str) else _blocks(content)
        self.turn = Turn(self, Prompt(self.id, blocks))
        return self.turn

    async def ask(self, content: "str | Content | Sequence[Content]") -> Answer:
        """Say something and wait for the whole answer."""
        return await self.prompt(content).read()

    async def cancel(self) -> None:
        """Stop the running turn, if there is one."""
        if self.turn is not None:
            await self.turn.cancel()

    async def set_option(self, config_id: str, value: str | bool) -> None:
        """Change a session option."""
        reply = await self.client.ask(SetOption(self.id, config_id, value))
        if isinstance(reply, OptionsSet):
            self.options = reply.config_options

    async def set_mode(self, mode: str) -> None:
        """Change the session mode."""
        await self._set_category(MODE_CATEGORY, mode)

    async def set_model(self, model: str) -> None:
        """Change the model."""
        await self._set_category("model", model)

    async def _set_category(self, category: str, value: str) -> None:
        for option in self.options:
            if isinstance(option, Select) and option.category == category:
                await self.set_option(option.config_id, value)
                return
        raise UsageError(f"the agent offers no {category} to set in this session")

    async def set_title(self, title: str) -> None:
        """Name the session."""
        await self.client.ask(SetTitle(self.id, title))
        self.title = title

    async def cancel_tool_call(self, tool_call_id: str) -> None:
        """Stop one tool call; the turn goes on."""
        await self.client.ask(CancelToolCall(self.id, tool_call_id))

    async def fork(self, cwd: str | None = None) -> "Conversation":
        """Copy the session into a new one."""
        folder = cwd or self.cwd
        reply = await self.client.ask(ForkSession(self.id, folder))
        assert isinstance(reply, SessionOpened)
        return self.client.adopt(reply.session_id, folder, reply)

    async def close(self) -> None:
        """End the session's work and free it; its history stays."""
        await self.client.ask(CloseSession(self.id))
        self.client.forget(self.id)

    # -- the client calls these --------------------------------------------------------------------------------------

    def hear(self, event: AnyEvent) -> None:
        """An event of this session, in order."""
        turn = self.turn
        if event.__class__ is not AgentMessageChunk:
            self._note(event)
        if turn is not None:
            turn.hear(event)
        else:
            self.client.outside_turn(self, event)

    def taken(self) -> None:
        """Everything heard has been read."""
        self.client.taken()

    def _note(self, event: AnyEvent) -> None:
        match event:
            case OptionsChanged():
                self.options = event.config_options
            case CommandsChanged():
                self.commands = event.available_commands
            case SessionInfoChanged() if isinstance(event.title, str):
                self.title = event.title
            case _:
                pass


def _blocks(content: "Content | Sequence[Content]") -> list[Content]:
    return list(content) if isinstance(content, Sequence) else [content]
