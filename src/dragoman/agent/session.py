"""A session as the author of an agent sees it: say, think, show tool calls, ask.

A session knows no wire and no version; it speaks vocabulary into its `EventSink`. Everything said inside a turn belongs
to that turn: once the turn has ended, whatever still runs of it is told so and nothing of it leaves.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from os import PathLike
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from dragoman import limits
from dragoman.agent import checks
from dragoman.agent.checks import exact_text, plain, plain_text
from dragoman.agent.event_sink import EventSink, TextSink, check_turn, current_turn, too_late
from dragoman.agent.handlers import extension_name
from dragoman.agent.permission import (
    NOTE,
    Permission,
    RememberedAnswers,
    RememberedPermission,
    UserQuestions,
    check_question,
    question,
    subject_of,
)
from dragoman.agent.prompt_queue import PromptQueue
from dragoman.agent.terminal import ClientServices, ClientTerminal, DisplayTerminal
from dragoman.agent.titles import is_order, title_from
from dragoman.agent.tool import ToolCall
from dragoman.errors import UsageError
from dragoman.vocabulary.asking import Extension, ExtensionNote
from dragoman.vocabulary.content import Content, Text, text_of
from dragoman.vocabulary.events import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AnyEvent,
    CommandsChanged,
    Cost,
    Event,
    Notice,
    OptionsChanged,
    PlanUpdate,
    SessionInfoChanged,
    TerminalOutputChunk,
    TerminalUpdate,
    ToolCallUpdate,
    Usage,
    UsageChanged,
    UserMessage,
)
from dragoman.vocabulary.hello import ClientCapabilities
from dragoman.vocabulary.identity import LOCAL, Identity, Needs
from dragoman.vocabulary.options import MAIN_PLAN, AnyCommand, Option, PlanEntry, PlanItems, Select, Toggle
from dragoman.vocabulary.requests import NewSession
from dragoman.vocabulary.services import (
    PermissionOption,
)
from dragoman.vocabulary.tools import Location, ToolContent, ToolKind, ToolStatus

if TYPE_CHECKING:
    import asyncio

    from dragoman.agent.journal import Journal
    from dragoman.agent.turn import RunningTurn


def new_id(prefix: str) -> str:
    """A fresh id: 96 bits of chance under a readable prefix."""
    return f"{prefix}_{os.urandom(12).hex()}"


def new_session_id() -> str:
    """Return a new session id with 128 random bits: the id is all that a client needs to address the session."""
    return f"sess_{os.urandom(16).hex()}"


CALLER: ContextVar[Identity] = ContextVar("dragoman_caller", default=LOCAL)
caller: Final = CALLER.get


class Prompt:
    """What the user said. `identity` is who that was, as a trusted gateway tells; else the user at this machine."""

    def __init__(self, content: Sequence[Content], message_id: str, identity: Identity = LOCAL) -> None:
        self.content: Final = list(content)
        self.message_id: Final = message_id
        self.identity: Final = identity

    @property
    def text(self) -> str:
        """The prompt as plain text."""
        return text_of(self.content)

    @property
    def command(self) -> tuple[str, str]:
        """The name and the arguments of a slash command; both are empty if the prompt is none.

        Only what the user typed counts: the first block, if it is text. What goes along, a file or a link, is data
        whatever it says, and a blank text before it makes no command of it.
        """
        first = self.content[0] if self.content else None
        words = first.text.split(maxsplit=1) if isinstance(first, Text) else []
        if not words or not words[0].startswith("/"):
            return "", ""
        return words[0][1:], words[1].strip() if len(words) > 1 else ""

    @property
    def words(self) -> str:
        """What the user has typed, without what goes along; what goes along, where that is all."""
        return " ".join(block.text for block in self.content if isinstance(block, Text)) or self.text


# Authors have all three from here.
__all__ = ["Permission", "Prompt", "Session"]


class Session:
    """One conversation with one client."""

    def __init__(self, id: str, opening: NewSession, speech: EventSink, options: Iterable[Option] = ()) -> None:
        self.id: Final = id
        self.cwd: Final = opening.cwd
        self.opening = opening
        # Where it is kept; without a store nothing is.
        self.journal: Journal | None = None
        self.options: list[Option] = list(options)
        # Whether an answer to a question of ours says whose it is, and that is believed.
        self.trusts_identities = False
        # What options were set to when it was last open, by their ids; of those that it has again, it has the values.
        self.left_with: Mapping[str, object] = {}
        self.commands: list[AnyCommand] = []
        self.title = ""
        self.usage: Usage | None = None
        # Room for whatever the author wants to keep with the session.
        self.memory: dict[str, object] = {}
        self.turn: RunningTurn | None = None
        # What the user has said "always" to.
        self.answers: Final = RememberedAnswers(id)
        # What the user says while a turn runs, and what can be stopped without stopping the turn, by its id.
        self.interjections: Final = PromptQueue()
        self.stoppable: Final[dict[str, Callable[[], object]]] = {}
        # The story being told again behind an answer; what is said next waits for it.
        self.retelling: asyncio.Task[None] | None = None
        self._speech = speech
        self._lender = ClientServices(id, self.cwd, speech)
        self._questions = UserQuestions(self, speech)
        self._stream: TextSink | None = None
        self._stream_kind = ""
        self._message_id = ""

    @property
    def roots(self) -> list[str]:
        """The folders this session may touch: cwd first."""
        more = self.opening.additional_directories
        return [self.cwd, *([] if isinstance(more, UnsetType) else more)]

    @property
    def client(self) -> ClientCapabilities:
        """What the client can do for us."""
        return self._speech.client

    def reroot(self, more: list[str] | UnsetType) -> None:
        """The client names the further folders anew: the old ones are not kept silently."""
        self.opening = replace(self.opening, additional_directories=more)

    async def finish(self) -> None:
        """Cancel the running turn, if there is one, and wait for its end."""
        self.interjections.refuse()
        if self.retelling is not None:
            self.retelling.cancel()
        turn = self.turn
        if turn is not None:
            from asyncio import wait

            turn.cancel()
            await wait([turn.over])

    # -- saying ------------------------------------------------------------------------------------------------------

    async def say(self, content: str | Content) -> None:
        """Say a piece of the answer; pieces without anything between them are one message."""
        await self._speak("agent_message_chunk", content)

    async def think(self, content: str | Content) -> None:
        """Say a piece of a thought."""
        await self._speak("agent_thought_chunk", content)

    async def _speak(self, kind: str, content: str | Content) -> None:
        if content.__class__ is str and len(content) < limits.WRITE_BYTES:
            stream = self._stream_of(kind)
            if stream.put(content):
                await stream.breathe()
            return
        block = plain(Text(content) if isinstance(content, str) else checks.check_block(content), "what is said")
        self._stream_of(kind)
        chunk = AgentMessageChunk if kind == "agent_message_chunk" else AgentThoughtChunk
        await self._speech.tell(self.id, chunk(block, message_id=self._message_id))

    def _stream_of(self, kind: str) -> TextSink:
        """The message that goes on, or begins, here."""
        turn = current_turn()
        if turn is not None and turn.ended:
            raise too_late()
        stream = self._stream
        if stream is None or self._stream_kind != kind:
            self._message_id = new_id("msg")
            self._stream_kind = kind
            stream = self._stream = self._speech.text_stream(self.id, kind, self._message_id)
        return stream

    async def emit(self, event: AnyEvent) -> None:
        """Say any event of the vocabulary."""
        if isinstance(event, (AgentMessageChunk, AgentThoughtChunk)) and not event.message_id:
            # The event has no message id: it continues the current message, or begins one with a new id.
            kind = "agent_message_chunk" if event.__class__ is AgentMessageChunk else "agent_thought_chunk"
            content = event.content
            if content.__class__ is Text and _is_plain(content) and len(content.text) < limits.WRITE_BYTES:
                stream = self._stream_of(kind)
                if stream.put(content.text):
                    await stream.breathe()
            else:
                await self._speak(kind, content)
            return
        check_turn()
        if not isinstance(event, Event):
            raise UsageError(f"a session emits events, not {type(event).__name__}: use `session.say(...)` for text")
        await self.record(event if event.__class__ is TerminalOutputChunk else plain(event, _name_of(event)))

    async def record(self, event: AnyEvent) -> None:
        """Say an event in the name of the session itself, whatever turn the caller belongs to."""
        self._stream = None  # whatever is said next is a new message
        await self._speech.tell(self.id, event)

    # -- showing -----------------------------------------------------------------------------------------------------

    def tool(
        self,
        title: str,
        *,
        kind: ToolKind | str = "other",
        name: str | UnsetType = UNSET,
        status: ToolStatus | str = "in_progress",
        content: Iterable[ToolContent] | UnsetType = UNSET,
        locations: Iterable[str | PathLike[str] | Location] = (),
        raw_input: object = UNSET,
        id: str | None = None,
    ) -> ToolCall:
        """A tool call to be shown: `async with session.tool("Read config", kind="read") as call: ...`.

        `kind` is one of `ToolKind`, or your own with an underscore, such as `"_deploy"`. `locations` are absolute.
        A title that is empty becomes the `name`; without either the user would see nothing, which is a `UsageError`.
        """
        checks.check_text(title, "the title of a tool call", 'session.tool("Read config")')
        checks.check_optional_text(name, "the name of a tool", 'session.tool("Read config", name="read_file")')
        if not title.strip() and isinstance(name, str):
            title = name
        checks.check_shown(title, "the title of a tool call", 'session.tool("Read config")')
        checks.check_known(kind, "the kind of a tool call", checks.KINDS)
        checks.check_known(status, "the status of a tool call", checks.STATUSES)
        if id is not None:
            checks.check_text(id, "the id of a tool call", 'session.tool("Read config", id="call-1")')
        touched = checks.places(locations)
        opening = ToolCallUpdate(
            id or new_id("call"),
            name=name,
            title=title,
            kind=kind,
            status=status,
            content=UNSET if isinstance(content, UnsetType) else checks.contents(content),
            locations=touched or UNSET,
            raw_input=raw_input,
        )
        return ToolCall(self.emit, plain(opening, "the tool call"), self.stoppable)

    def terminal(self, command: str, cwd: str | PathLike[str] | None = None) -> DisplayTerminal:
        """A terminal that shows a command the agent runs itself: `async with session.terminal("make") as t: ...`."""
        checks.check_shown(command, "a command", 'session.terminal("make test")')
        place = self.cwd if cwd is None else checks.absolute(cwd, "cwd")
        opening = TerminalUpdate(new_id("term"), command=command, cwd=place)
        return DisplayTerminal(self.emit, opening, self.stoppable)

    async def plan(self, entries: Iterable[str | PlanEntry], plan_id: str = MAIN_PLAN) -> None:
        """Show the plan, whole; it replaces the one before. A `PlanEntry` has a status, such as `"completed"`."""
        steps = checks.plan_steps(entries)
        checks.check_shown(plan_id, "the id of a plan", 'session.plan([...], "main")')
        await self.emit(PlanUpdate(PlanItems(plan_id, steps)))

    async def notice(self, title: str, *, severity: str = "info", description: str | UnsetType = UNSET) -> None:
        """Tell the user something that is not part of the conversation. `severity`: info, warning or error."""
        checks.check_shown(title, "a notice", 'session.notice("The disk is nearly full", severity="warning")')
        checks.check_known(severity, "the severity of a notice", checks.SEVERITIES)
        checks.check_optional_text(description, "the description of a notice", 'session.notice("…", description="…")')
        await self.emit(Notice(severity, title, description))

    async def show_usage(self, used: int, size: int, cost: Cost | UnsetType = UNSET) -> None:
        """Tell how full the context window is, in tokens."""
        checks.check_count(used, "used", "session.show_usage(1200, 200_000)")
        checks.check_count(size, "size", "session.show_usage(1200, 200_000)")
        if cost is not UNSET:
            checks.check_cost(cost)
        await self.emit(UsageChanged(used, size, cost))

    async def set_title(self, title: str) -> None:
        """Name the session."""
        checks.check_text(title, "a title", 'session.set_title("Fix the tests")')
        self.title = plain_text(title)
        await self.emit(SessionInfoChanged(title=self.title))

    async def name_after(self, prompt: str) -> None:
        """A session that has no title yet is named after its first prompt, where names are kept."""
        if self.journal is not None and not self.title and not is_order(prompt, self.commands, self.options):
            self.title = title_from(prompt)
            await self.journal.log.change(title=self.title)
            await self.record(SessionInfoChanged(title=self.title))

    async def set_commands(self, commands: Iterable[AnyCommand]) -> None:
        """Announce the slash commands, all of them."""
        self.commands = plain(checks.check_commands(commands), "commands")
        await self.emit(CommandsChanged(self.commands))

    async def set_options(self, options: Iterable[Option]) -> None:
        """Announce the session options, all of them."""
        self.options = checks.check_options(options, "options")
        await self.emit(OptionsChanged(self.options))

    async def show_options(self, options: "Callable[[], Iterable[Option]]") -> None:
        """Announce options whose choices have changed, and no value: nothing of it is kept in the log.

        `options` is called when everything before it was said, so that no value is told that was set meanwhile.
        """
        if self.journal is not None:
            await self.journal.said()
        self.options = list(options())
        # Not through `record`: a message that is being said goes on.
        speech = self._speech if self.journal is None else self.journal.speech
        await speech.tell(self.id, OptionsChanged(self.options))

    def option(self, config_id: str) -> str | bool:
        """The current value of an option."""
        for option in self.options:
            if isinstance(option, (Select, Toggle)) and option.config_id == config_id:
                return option.current_value
        raise UsageError(f"the session has no option {config_id!r}; give it to Agent(options=[...]) first")

    async def interjected(self) -> list[Prompt]:
        """What the user has said since the turn began, taken into it. Only for agents that were made to listen."""
        heard: list[Prompt] = []
        while (interjection := self.interjections.take()) is not None:
            await self.take_in(interjection.prompt, interjection.accept)
            heard.append(interjection.prompt)
        return heard

    async def take_in(self, prompt: Prompt, accepted: Callable[[], None]) -> None:
        """Keep a prompt, accept it, and show it, in that order: what was accepted is on disk."""
        from asyncio import sleep

        message = UserMessage(prompt.message_id, prompt.content)
        if self.journal is not None:
            await self.journal.keep(message)
        accepted()
        await sleep(0)  # lets the task that `accepted` woke send the reply before the message is shown
        if self.journal is None:
            await self.record(message)
        else:
            self._stream = None
            await self.journal.say_kept(message)

    # -- asking ------------------------------------------------------------------------------------------------------

    async def ask_permission(
        self,
        title: str,
        *,
        tool: ToolCall | None = None,
        command: str | None = None,
        description: str | UnsetType = UNSET,
        options: Sequence[PermissionOption] | None = None,
        remember: str | None = None,
        needs: Needs | None = None,
    ) -> Permission:
        """Ask the user. Anything but a known yes is a no: `if await session.ask_permission(...)`.

        `tool` or `command`: what it is about. An "always" counts for the rest of the session, for a question that shows
        exactly the same; or for every question with the same `remember`, a few words that the user reads on the button.
        It is offered for a tool, a command or a `remember`. With `options` of your own only `remember` keeps an answer.
        `needs`: what the identity that says yes has to be allowed; a gateway puts the question to no other.
        """
        checks.check_shown(title, "a question", 'session.ask_permission("Run make?", command="make")')
        check_question(title, tool, command, description, remember)
        asked = question(
            self.id,
            plain_text(title),
            subject_of(tool, None if command is None else exact_text(command), self.cwd),
            tool=tool,
            description=plain(description, "the description of a question"),
            options=options,
            remember=None if remember is None else exact_text(remember),
            shared=self.trusts_identities,
        )
        return await self._questions.permission(asked, needs)

    def permissions(self) -> list[RememberedPermission]:
        """List the answers that count for the rest of this session, oldest first."""
        return self.answers.list()

    async def forget_permissions(self, covers: str | None = None) -> None:
        """Ask again about what `permissions()` lists as `covers`; without it, about everything."""
        await self.record_note(NOTE, self.answers.forget(covers))

    async def ask_user(self, message: str, schema: dict[str, object]) -> dict[str, object] | None:
        """Ask the user to fill a form (a flat JSON Schema object). None: they declined, or went away."""
        return await self._questions.form(message, schema)

    async def read_text_file(self, path: str, *, line: int | None = None, limit: int | None = None) -> str:
        """Read a file through the editor, unsaved changes included."""
        return await self._lender.read_text_file(path, line, limit)

    async def write_text_file(self, path: str, content: str) -> None:
        """Write a file through the editor."""
        await self._lender.write_text_file(path, content)

    async def client_terminal(
        self, command: str, args: Iterable[str] = (), *, cwd: str | None = None, output_byte_limit: int | None = None
    ) -> ClientTerminal:
        """Run a command in the client's terminal: `async with await session.client_terminal("make") as t: ...`."""
        return await self._lender.terminal(command, args, cwd, output_byte_limit)

    async def remember(self, kind: str, value: object) -> None:
        """Keep something of your own in the session's log, in its place among the events. Needs a store."""
        checks.check_text(kind, "what is remembered has a name: it", 'session.remember("review", {...})')
        if self.journal is None:
            raise UsageError("session.remember needs a store: write `Agent(..., store=SqliteStore(folder))`")
        await self.record_note(plain_text(kind), plain(value, "what is remembered"))

    async def record_note(self, kind: str, value: object) -> None:
        """Write a note to the session's log, where there is one."""
        if self.journal is not None:
            await self.journal.remember(kind, value)

    async def recall(self, kind: str) -> list[object]:
        """Return what was remembered under this name, in order, also before a restart. Nothing without a store."""
        return [] if self.journal is None else await self.journal.recall(kind)

    async def request(self, method: str, params: object = UNSET) -> object:
        """Call an extension method (`_name`) of the client."""
        extension = Extension(exact_text(extension_name(method)), plain(params, "params"))
        check_turn()
        return (await self._speech.ask(extension)).result

    async def notify(self, method: str, params: object = UNSET) -> None:
        """Send an extension notification (`_name`) to the client."""
        check_turn()
        await self._speech.note(ExtensionNote(exact_text(extension_name(method)), plain(params, "params")))


def _name_of(event: Event) -> str:
    """Return how an event is called in an error."""
    return "the tool call" if isinstance(event, ToolCallUpdate) else type(event).__name__


def _is_plain(text: Text) -> bool:
    """Whether there is nothing to it but its text."""
    return text.annotations is UNSET and text.meta is UNSET and text.extras is UNSET
