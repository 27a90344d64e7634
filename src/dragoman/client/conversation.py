"""A session as a client sees it: `Conversation` for the caller, `ConversationState` for what is received."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from dragoman.client.checks import check_text, folder_of
from dragoman.client.tool_calls import ToolCalls
from dragoman.client.turn import Answer, Turn, TurnEvents, TurnState
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
    PROMPT_REQUIRED,
    CancelToolCall,
    CloseSession,
    ForkSession,
    OptionsSet,
    PromptRequest,
    SessionOpened,
    SetOption,
    SetTitle,
    SteerTurn,
)

if TYPE_CHECKING:
    from dragoman.client.connection import AgentConnection

__all__ = ["Answer", "Conversation", "Turn"]


class ConversationState:
    """What a client knows of one open session, and its turns. Receives the session's events, in order."""

    def __init__(self, connection: "AgentConnection", id: str, cwd: str, opened: SessionOpened) -> None:
        self.connection: Final = connection
        self.id: Final = id
        self.cwd: Final = cwd
        self.title = ""
        self.options: list[Option] = opened.config_options or []
        self.commands: list[AnyCommand] = opened.available_commands or []
        self.calls: Final = ToolCalls()
        # The turn of the newest prompt, until it has ended. It differs from `receiver` while that one is being
        # cancelled and the newest waits for its end; then `newest.predecessor` leads there.
        self.newest: TurnEvents | None = None
        # The turn that received events belong to; None between turns.
        self.receiver: TurnEvents | None = None
        self.conversation: Final = Conversation(self)

    def __repr__(self) -> str:
        return f"<ConversationState {self.id} newest={self.newest} receiver={self.receiver} calls={self.calls}>"

    def receive(self, event: AnyEvent) -> None:
        """Apply an event of this session, and give it to the running turn, or to `on_event` where none runs."""
        receiver = self.receiver
        if event.__class__ is not AgentMessageChunk:
            self._apply(event)
        if receiver is not None:
            receiver.receive(event)
        else:
            self.connection.deliver_outside_turn(self.conversation, event)

    def on_reopened(self, reply: Reply) -> None:
        """Apply the reply to `session/load` or `session/resume`."""
        if isinstance(reply, SessionOpened):
            self.options = reply.config_options or self.options
            self.commands = reply.available_commands or self.commands

    def on_options_set(self, reply: OptionsSet) -> None:
        """Apply the reply to a request that sets an option."""
        self.options = reply.config_options

    def set_option(self, config_id: str, value: str | bool) -> Coroutine[Any, Any, OptionsSet]:
        """Send a request that sets an option, and wait for its reply."""
        return self.connection.ask(SetOption(self.id, config_id, value), self.on_options_set)

    def start_turn(self, blocks: list[Content]) -> Turn:
        """Start a turn with a prompt. Raise `UsageError` if one runs that was not cancelled, or before `async with`."""
        before = self.newest
        if before is not None and before.state is not TurnState.CANCELLING:
            raise UsageError("a turn is still running: read it to its end, or `await session.cancel()` first")
        _ = self.connection.link  # raises if the client is not connected
        events = self.newest = TurnEvents(self, before)
        self.connection.count_unread(events)
        events.start(PromptRequest(self.id, blocks))
        return Turn(events)

    def cancel_turn(self, turn: TurnEvents) -> None:
        """Cancel one turn; if its prompt was sent, send a cancel to the agent and dismiss the session's questions."""
        if turn.cancel():
            self.connection.send_cancel(self.id)

    def on_turn_ended(self, turn: TurnEvents) -> None:
        """Free the session for the next prompt."""
        self.calls.clear()
        if self.receiver is turn:
            self.receiver = None
        if self.newest is turn:
            # Not None where a prompt was cancelled while it waited: the next one has to wait for the same turn.
            before = turn.predecessor
            self.newest = None if before is None or before.has_ended else before

    def fail(self, error: Exception) -> None:
        """End the turns that still run with an error: the session was closed, or the connection."""
        turn = self.newest
        while turn is not None:
            before = turn.predecessor
            turn.fail(error)
            turn = before

    def option_id(self, category: str) -> str:
        """Return the id of the option of this category. Raise `UsageError` if the session has none."""
        for option in self.options:
            if isinstance(option, Select) and option.category == category:
                return option.config_id
        raise UsageError(f"the agent offers no {category} to set in this session")

    def _apply(self, event: AnyEvent) -> None:
        match event:
            case ToolCallUpdate() | ToolCallContentChunk():
                self.calls.apply(event)
            case OptionsChanged():
                self.options = event.config_options
            case CommandsChanged():
                self.commands = event.available_commands
            case SessionInfoChanged() if event.title is not UNSET:
                self.title = event.title or ""  # null clears it
            case _:
                pass


class Conversation:
    """One session with an agent, made by `client.new_session()`, `resume_session()` or `load_session()`.

    Every method that waits for the agent raises `RequestFailed` if the agent answers with an error, `TimedOut` if it
    does not answer in time, and `LinkClosed` if the connection ends.
    """

    def __init__(self, state: ConversationState) -> None:
        self._state: Final = state

    def __repr__(self) -> str:
        return f"<Conversation {self.id} {'running' if self.is_running else 'idle'} options={len(self.options)}>"

    @property
    def id(self) -> str:
        """Return the session's id."""
        return self._state.id

    @property
    def cwd(self) -> str:
        """Return the absolute path of the session's folder."""
        return self._state.cwd

    @property
    def title(self) -> str:
        """Return the session's title; empty if it has none."""
        return self._state.title

    @property
    def options(self) -> list[Option]:
        """Return the session's options as they are now."""
        return self._state.options

    @property
    def commands(self) -> list[AnyCommand]:
        """Return the session's slash commands as they are now."""
        return self._state.commands

    @property
    def is_running(self) -> bool:
        """Return whether a turn runs, a cancelled one that has not ended included."""
        return self._state.newest is not None

    def prompt(self, content: "str | Content | Iterable[Content]") -> Turn:
        """Send text or content blocks as a prompt; do not wait. Iterate over the `Turn` for what comes of it.

        After a `cancel` the prompt is sent when the cancelled turn has ended. Raise `UsageError` if a turn runs that
        was not cancelled, or if `content` is something else.
        """
        return self._state.start_turn(_blocks(content))

    async def ask(self, content: "str | Content | Iterable[Content]") -> Answer:
        """Send a prompt and wait for the whole answer. Cancelling the wait cancels the turn.

        Raise `UsageError` if a turn runs that was not cancelled, or if `content` is no text and no content blocks.
        """
        turn = self.prompt(content)
        try:
            return await turn.read()
        except asyncio.CancelledError:
            await turn.cancel()
            raise

    async def steer(self, content: "str | Content | Iterable[Content]") -> bool:
        """Add words to the running turn, wait until the agent has a place for them, and return True.

        False: the agent takes none (`client.agent.capabilities.steering`), no turn runs, or the turn ended before it
        could take them; they are no part of the conversation then. Raise `UsageError` if `content` is no prompt.
        """
        blocks = _blocks(content)
        if not self.is_running or not self._state.connection.agent.capabilities.steering:
            return False
        meta = {"steering": {"idleBehavior": PROMPT_REQUIRED}}
        steered = await self._state.connection.ask(SteerTurn(self.id, blocks, meta=meta))
        # An agent may begin a turn of its own with them, though it was asked not to: it has them, and once is enough.
        return steered.outcome in ("injected", "startedNewTurn")

    async def cancel(self) -> None:
        """Ask the agent to stop the running turn, if there is one; do not wait for its end."""
        if self._state.newest is not None:
            self._state.cancel_turn(self._state.newest)

    async def set_option(self, config_id: str, value: str | bool) -> None:
        """Set the option `config_id` of `options` to a value, and wait for the agent's answer.

        Raise `UsageError` for a value that is neither text nor a truth value.
        """
        check_text(config_id, "the id of an option", "session.set_option('mode', 'ask')")
        if not isinstance(value, (str, bool)):
            raise UsageError(f"an option is set to text or to True or False, not {value!r}")
        await self._state.set_option(config_id, value)

    async def set_mode(self, mode: str) -> None:
        """Set the session's mode, and wait for the agent's answer. Raise `UsageError` if the session has no modes."""
        check_text(mode, "a mode", "session.set_mode('ask')")
        await self._state.set_option(self._state.option_id(MODE_CATEGORY), mode)

    async def set_model(self, model: str) -> None:
        """Set the model, and wait for the agent's answer. Raise `UsageError` if the agent offers no models."""
        await self.set_option(self._state.option_id("model"), model)

    async def set_title(self, title: str) -> None:
        """Set the session's title, and wait for the agent's answer. Raise `UsageError` for another type."""
        check_text(title, "a title", "session.set_title('Fix the tests')")
        await self._state.connection.ask(SetTitle(self.id, title))
        self._state.title = title

    async def cancel_tool_call(self, tool_call_id: str) -> None:
        """Stop one tool call while the turn goes on; wait for the agent's answer. Raise `UsageError` if no text."""
        check_text(tool_call_id, "the id of a tool call", "session.cancel_tool_call(event.tool_call_id)")
        await self._state.connection.ask(CancelToolCall(self.id, tool_call_id))

    async def fork(self, cwd: str | None = None, *, message_id: str | None = None) -> "Conversation":
        """Copy the session into a new one, in the same folder or in `cwd`; wait for the agent's answer.

        `message_id`: copy up to this message, that message included. No schema has it yet: an agent may copy all.
        Raise `UsageError` if `cwd` is no path, or the id no text.
        """
        folder = self.cwd if cwd is None else folder_of(cwd)
        if message_id is None:
            return await self._state.connection.open_session(ForkSession(self.id, folder), folder)
        check_text(message_id, "the id of a message", "session.fork(message_id=event.message_id)")
        return await self._state.connection.open_session(ForkSession.at(self.id, folder, message_id), folder)

    async def close(self) -> None:
        """End the session's work and free it, and wait for that; its history stays with the agent."""
        await self._state.connection.ask(CloseSession(self.id))
        self._state.connection.remove(self.id)


def _blocks(content: "str | Content | Iterable[Content]") -> list[Content]:
    if isinstance(content, str):
        return [Text(str.__str__(content))]  # text of a subclass has no JSON
    given: list[object] = list(content) if isinstance(content, Iterable) else [content]
    found = [block for block in given if isinstance(block, Content)]
    if not found or len(found) < len(given):
        raise UsageError("a prompt is text, a content block, or several: session.prompt('...')")
    return found
