"""A session as a client sees it: prompt, and read events until the turn ends."""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from dragoman.client.callbacks import check_text, folder_of
from dragoman.client.tool_calls import ToolCalls
from dragoman.client.turn import Answer, Turn, TurnEvents
from dragoman.errors import UsageError
from dragoman.vocabulary.asking import Reply
from dragoman.vocabulary.content import Content, Text
from dragoman.vocabulary.events import (
    AgentMessageChunk,
    AnyEvent,
    CommandsChanged,
    OptionsChanged,
    SessionInfoChanged,
    ToolCallContentChunk,
    ToolCallUpdate,
)
from dragoman.vocabulary.options import MODE_CATEGORY, AnyCommand, Option, Select
from dragoman.vocabulary.requests import (
    CancelToolCall,
    CloseSession,
    ForkSession,
    OptionsSet,
    PromptRequest,
    SessionOpened,
    SetOption,
    SetTitle,
)

if TYPE_CHECKING:
    from dragoman.client.client import Client

__all__ = ["Answer", "Conversation", "Turn"]


class Conversation:
    """One session with an agent. Made by `client.new_session()` and its siblings."""

    def __init__(self, client: "Client", id: str, cwd: str, opened: SessionOpened) -> None:
        self.client: Final = client
        self.id: Final = id
        self.cwd: Final = cwd
        self.title = ""
        self.options: list[Option] = opened.config_options or []
        self.commands: list[AnyCommand] = opened.available_commands or []
        self.calls: Final = ToolCalls()
        # The last prompt, until its turn is over; and the turn that events belong to.
        self.running: TurnEvents | None = None
        self.listener: TurnEvents | None = None

    def prompt(self, content: "str | Content | Iterable[Content]") -> Turn:
        """Say something; iterate over what comes of it. After a `cancel` it waits for the cancelled turn to end."""
        before = self.running
        if before is not None and not before.cancelled:
            raise UsageError("a turn is still running: read it to its end, or `await session.cancel()` first")
        self.client.link  # noqa: B018  # says so if there is none
        blocks = _blocks(content)
        run = self.running = TurnEvents(self, before)
        self.client.started(run)
        run.start(PromptRequest(self.id, blocks))
        return Turn(run)

    async def ask(self, content: "str | Content | Iterable[Content]") -> Answer:
        """Say something and wait for the whole answer. Cancelling the wait cancels the turn."""
        turn = self.prompt(content)
        try:
            return await turn.read()
        except asyncio.CancelledError:
            await turn.cancel()
            raise

    async def cancel(self) -> None:
        """Stop the running turn, if there is one."""
        if self.running is not None:
            self.cancel_run(self.running)

    async def set_option(self, config_id: str, value: str | bool) -> None:
        """Change a session option."""
        check_text(config_id, "the id of an option", "session.set_option('mode', 'ask')")
        if not isinstance(value, (str, bool)):
            raise UsageError(f"an option is set to text or to True or False, not {value!r}")
        await self.client.ask(SetOption(self.id, config_id, value), self._set)

    def _set(self, reply: OptionsSet) -> None:
        self.options = reply.config_options

    async def set_mode(self, mode: str) -> None:
        """Change the session mode."""
        check_text(mode, "a mode", "session.set_mode('ask')")
        await self.client.ask(SetOption(self.id, self._named(MODE_CATEGORY), mode), self._set)

    async def set_model(self, model: str) -> None:
        """Change the model."""
        await self.set_option(self._named("model"), model)

    def _named(self, category: str) -> str:
        """The id of the option of this category."""
        for option in self.options:
            if isinstance(option, Select) and option.category == category:
                return option.config_id
        raise UsageError(f"the agent offers no {category} to set in this session")

    async def set_title(self, title: str) -> None:
        """Name the session."""
        check_text(title, "a title", "session.set_title('Fix the tests')")
        await self.client.ask(SetTitle(self.id, title))
        self.title = title

    async def cancel_tool_call(self, tool_call_id: str) -> None:
        """Stop one tool call; the turn goes on."""
        check_text(tool_call_id, "the id of a tool call", "session.cancel_tool_call(event.tool_call_id)")
        await self.client.ask(CancelToolCall(self.id, tool_call_id))

    async def fork(self, cwd: str | None = None) -> "Conversation":
        """Copy the session into a new one."""
        folder = self.cwd if cwd is None else folder_of(cwd)
        return await self.client.open(ForkSession(self.id, folder), folder)

    async def close(self) -> None:
        """End the session's work and free it; its history stays."""
        await self.client.ask(CloseSession(self.id))
        self.client.forget(self.id)

    # -- the client calls these --------------------------------------------------------------------------------------

    def hear(self, event: AnyEvent) -> None:
        """An event of this session, in order."""
        listener = self.listener
        if event.__class__ is not AgentMessageChunk:
            self._note(event)
        if listener is not None:
            listener.hear(event)
        else:
            self.client.outside_turn(self, event)

    def reopened(self, reply: Reply) -> None:
        """The agent has opened the session again."""
        if isinstance(reply, SessionOpened):
            self.options = reply.config_options or self.options
            self.commands = reply.available_commands or self.commands

    def cancel_run(self, run: TurnEvents) -> None:
        """Cancel one turn; if its prompt was sent, send a cancel to the agent and dismiss the session's questions."""
        if run.cancel():
            self.client.cancel(self.id)

    def ended(self, run: TurnEvents) -> None:
        """A turn is over: the session is free for the next one."""
        self.calls.clear()
        if self.listener is run:
            self.listener = None
        if self.running is run:
            self.running = None

    def lose(self, error: Exception) -> None:
        """The session is closed, or the connection: turns that still run end with this."""
        run = self.running
        while run is not None:
            before = run.before
            run.fail(error)
            run = before

    def _note(self, event: AnyEvent) -> None:
        match event:
            case ToolCallUpdate() | ToolCallContentChunk():
                self.calls.note(event)
            case OptionsChanged():
                self.options = event.config_options
            case CommandsChanged():
                self.commands = event.available_commands
            case SessionInfoChanged() if isinstance(event.title, str):
                self.title = event.title
            case _:
                pass


def _blocks(content: "str | Content | Iterable[Content]") -> list[Content]:
    if isinstance(content, str):
        return [Text(str.__str__(content))]  # text of a subclass has no JSON
    given: list[object] = list(content) if isinstance(content, Iterable) else [content]
    found = [block for block in given if isinstance(block, Content)]
    if not found or len(found) < len(given):
        raise UsageError("a prompt is text, a content block, or several: session.prompt('...')")
    return found
