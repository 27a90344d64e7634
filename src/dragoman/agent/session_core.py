"""What one session of an agent is: its state, what it emits (`SessionCore`), and its options (`set_option`).

A new value of an option counts for the running turn at once, before handlers and disk have seen it. If one of them
fails the former options come back, unless something else has set options meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from dragoman import limits
from dragoman.agent import checks
from dragoman.agent.client_services import EventSink, TextSink, check_turn, current_turn, too_late
from dragoman.agent.history import OPTIONS_NOTE, SERVERS_NOTE, fingerprint
from dragoman.agent.journal import client_errors
from dragoman.agent.permission import RememberedAnswers
from dragoman.agent.session import Prompt, Session, new_id
from dragoman.agent.turn import PromptQueue, QueuedPrompt, retrieve_exception
from dragoman.errors import INVALID_PARAMS, RequestFailed, UsageError, echo, echo_in_words
from dragoman.vocabulary import requests as ask
from dragoman.vocabulary.asking import Reply
from dragoman.vocabulary.content import Content, Text
from dragoman.vocabulary.events import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AnyEvent,
    Event,
    OptionsChanged,
    SessionInfoChanged,
    TerminalOutputChunk,
    ToolCallUpdate,
    Usage,
    UserMessage,
)
from dragoman.vocabulary.options import AnyCommand, Choice, Command, Option, Select, Toggle

if TYPE_CHECKING:
    from dragoman.agent.author_handlers import AgentCore
    from dragoman.agent.journal import Journal
    from dragoman.agent.turn import RunningTurn

# What a list can show of a first prompt.
TITLE_CHARACTERS: Final = 80
# Values named in an error about an unknown one: a sentence, not a page.
_NAMED: Final = 20
_NAMED_CHARACTERS: Final = 80
_value_of: Final = attrgetter("value")


class SessionCore:
    """The internals of one session, for `agent/` and our own coding agent. An author sees `session` instead.

    It knows no wire and no version: it emits vocabulary into its sink. The sink is the journal where the agent has a
    store (what is emitted is persisted first), and the client's sink where it has none.
    """

    def __init__(
        self,
        id: str,
        request: ask.NewSession,
        client_sink: EventSink,
        *,
        journal: "Journal | None" = None,
        options: Iterable[Option] = (),
    ) -> None:
        self.id: Final = id
        self.request = request  # how the client opened it: folders and MCP servers
        # Whether it works in another folder than the client named: then the client's view of files is not its own.
        self.is_elsewhere = False
        self.journal: Final = journal
        self.client_sink: Final = client_sink
        self.sink: Final[EventSink] = client_sink if journal is None else journal
        self.options: list[Option] = list(options)
        # Values that the options had when the session was last open, by their ids; empty for a new session.
        self.stored_options: Mapping[str, object] = {}
        # Whether it was read from a log, and is not new.
        self.is_stored_again = False
        self.commands: list[AnyCommand] = []
        self.title = ""
        self.usage: Usage | None = None
        # Whether an answer to a question says whose it is, and that is believed: the peer is a gateway of ours.
        self.trusts_identities = False
        self.turn: RunningTurn | None = None
        self.queue: Final = PromptQueue()
        # What the user has said "always" to.
        self.answers: Final = RememberedAnswers(id)
        # What the client may stop without stopping the turn, by the id of the tool call or terminal.
        self.stoppable: Final[dict[str, Callable[[], object]]] = {}
        # The history being sent behind the answer that opened the session, or a rewind. A turn waits for its end: on a
        # wire without message ids the client could not tell the two apart.
        self.replay_task: asyncio.Task[Any] | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._text: TextSink | None = None  # the message that the next piece of text continues
        self._text_kind = ""
        self._message_id = ""
        self.session: Final = Session(self)

    def __repr__(self) -> str:
        state = "idle" if self.turn is None else repr(self.turn)
        return f"<SessionCore {self.id} {state} queued={len(self.queue)} stored={self.journal is not None}>"

    @property
    def cwd(self) -> str:
        """The folder the session was opened in."""
        return self.request.cwd

    def set_directories(self, more: list[str] | UnsetType) -> None:
        """Replace the additional directories: a client that opens the session again names all of them anew."""
        self.request = replace(self.request, additional_directories=more)

    async def close(self) -> None:
        """Cancel the running turn, if there is one, and wait for its end. Queued prompts are rejected."""
        self.queue.reject_all()
        if self.replay_task is not None:
            self.replay_task.cancel()
        turn = self.turn
        if turn is not None:
            turn.cancel()
            await asyncio.wait([turn.over])

    # -- events ------------------------------------------------------------------------------------------------------

    async def emit_text(self, kind: str, content: str | Content) -> None:
        """Emit a piece of a message; pieces of one kind without another event between them are one message."""
        # By the hundred thousand: plain text takes the sink's fast way and makes no event.
        if content.__class__ is str and len(content) < limits.WRITE_BYTES:
            text = self._text_sink(kind)
            if text.put(content):
                await text.wait_for_room()
            return
        named = checks.check_block(content) if not isinstance(content, str) else Text(content)
        block = checks.plain(named, "what is said")
        self._text_sink(kind)
        chunk = AgentMessageChunk if kind == "agent_message_chunk" else AgentThoughtChunk
        await self.sink.send_event(self.id, chunk(block, message_id=self._message_id))

    def _text_sink(self, kind: str) -> TextSink:
        """Return where the next piece of text goes: the message of this kind that is open, or a new one."""
        turn = current_turn()
        if turn is not None and turn.ended:
            raise too_late()
        text = self._text
        if text is None or self._text_kind != kind:
            self._message_id = new_id("msg")
            self._text_kind = kind
            text = self._text = self.sink.text_stream(self.id, kind, self._message_id)
        return text

    async def emit(self, event: AnyEvent) -> None:
        """Emit an event of the author's. `CancelledError` if it belongs to a turn that has ended."""
        if isinstance(event, (AgentMessageChunk, AgentThoughtChunk)) and not event.message_id:
            # The event has no message id: it continues the current message, or begins one with a new id.
            kind = "agent_message_chunk" if event.__class__ is AgentMessageChunk else "agent_thought_chunk"
            content = event.content
            if content.__class__ is Text and _is_bare(content) and len(content.text) < limits.WRITE_BYTES:
                text = self._text_sink(kind)
                if text.put(content.text):
                    await text.wait_for_room()
            else:
                await self.emit_text(kind, content)
            return
        check_turn()
        if not isinstance(event, Event):
            raise UsageError(f"a session emits events, not {type(event).__name__}: use `session.say(...)` for text")
        # Output of a terminal is ours already: base64 text under an id, by the thousand.
        await self.record(event if event.__class__ is TerminalOutputChunk else checks.plain(event, _name_of(event)))

    async def record(self, event: AnyEvent) -> None:
        """Emit an event in the name of the session itself, whichever turn the caller belongs to."""
        self._text = None  # the next piece of text begins a new message
        await self.sink.send_event(self.id, event)

    async def record_note(self, kind: str, value: object) -> None:
        """Write a note to the session's log; does nothing without a store."""
        if self.journal is not None:
            await self.journal.record_note(kind, value)

    async def commit(self) -> None:
        """Wait until everything that the session has emitted is in its log, by the right of this process to write it.
        Raise `StoreFailed` where that is over. Does nothing without a store."""
        if self.journal is not None:
            await self.journal.log.flush()

    async def show_options(self, options: Callable[[], Iterable[Option]]) -> None:
        """Announce options whose choices have changed, and no value: nothing of it is written to the log.

        `options` is called when everything before it was sent, so that no value is sent that was set meanwhile.
        """
        if self.journal is not None:
            await self.journal.drain()
        self.options = list(options())
        # Not through `record`: a message that is being streamed goes on.
        await self.client_sink.send_event(self.id, OptionsChanged(self.options))

    # -- prompts -----------------------------------------------------------------------------------------------------

    async def accept_prompt(self, prompt: Prompt, accepted: Callable[[], None]) -> None:
        """Persist a prompt, call `accepted`, and show it, in that order: a prompt that was accepted is on disk."""
        message = UserMessage(prompt.message_id, prompt.content)
        if self.journal is not None:
            await self.journal.persist(message)
        accepted()
        await asyncio.sleep(0)  # lets the task that `accepted` woke send the reply before the message is shown
        if self.journal is None:
            await self.record(message)
        else:
            self._text = None
            await self.journal.send_persisted(message)

    async def accept_queued_prompts(self) -> list[Prompt]:
        """Accept every prompt that arrived since the turn began, in order, and return them."""
        accepted: list[Prompt] = []
        while (queued := self.queue.pop()) is not None:
            # In a task of its own: the prompt has left the queue, so if a cancel stopped us here, nothing else would
            # answer its request; and its entry may be on disk already, so it cannot be rejected any more either.
            work = self._accepting = asyncio.ensure_future(self._accept_queued(queued))
            work.add_done_callback(retrieve_exception)
            await asyncio.shield(work)
            accepted.append(queued.prompt)
        return accepted

    async def _accept_queued(self, queued: QueuedPrompt) -> None:
        try:
            await self.accept_prompt(queued.prompt, queued.accept)
        except BaseException as error:
            queued.fail(error)
            raise

    async def wait_until_accepted(self) -> None:
        """Wait for a queued prompt that is being accepted: its message must not be sent behind the turn's end."""
        work, self._accepting = self._accepting, None
        if work is not None:
            await asyncio.wait([work])

    async def set_default_title(self, prompt: str) -> None:
        """Name a stored session that has no title after this prompt, unless that only shows or sets something."""
        if self.journal is not None and not self.title and not _is_order(prompt, self.commands, self.options):
            self.title = title_from(prompt)
            await self.journal.log.change(title=self.title)
            await self.record(SessionInfoChanged(title=self.title))


def _name_of(event: Event) -> str:
    """Return how an event is called in an error."""
    return "the tool call" if isinstance(event, ToolCallUpdate) else type(event).__name__


def _is_bare(text: Text) -> bool:
    """Whether a block has nothing but its text."""
    return text.annotations is UNSET and text.meta is UNSET and text.extras is UNSET


def title_from(prompt: str) -> str:
    """Return a title: the first line of a prompt, shortened to `TITLE_CHARACTERS`."""
    line = next((line.strip() for line in prompt.splitlines() if line.strip()), "")
    return line if len(line) <= TITLE_CHARACTERS else line[: TITLE_CHARACTERS - 1].rstrip() + "…"


def _is_order(prompt: str, commands: Iterable[AnyCommand], options: Iterable[Option]) -> bool:
    """Whether a prompt is a slash command that only shows or sets something: no title can be made of it."""
    name, *arguments = prompt.split(maxsplit=1) or [""]
    if not name.startswith("/") or not any(isinstance(one, Command) and one.name == name[1:] for one in commands):
        return False
    return not arguments or any(isinstance(one, Select | Toggle) and one.config_id == name[1:] for one in options)


# -- options ---------------------------------------------------------------------------------------------------------


def set_option(agent: "AgentCore", core: SessionCore, request: ask.SetOption) -> Reply | Awaitable[Reply]:
    """Set an option of a session and return the reply, or what waits for it. `RequestFailed` for an unfit value."""
    before = core.options
    # An option that takes more values than it lists, such as a model by name: only its owner can check the value.
    setter = agent.option_setters.get(request.config_id)
    if setter is not None:
        after = setter(core.session, request.value)
    else:
        after = options_with(before, request, open_models=agent.rules.accepts_unlisted_models)
    # Before the value counts: a turn of another client may run and would be judged by it.
    for check in agent.option_checks:
        refusal = check(core.session, request.config_id, request.value)
        if refusal is not None:
            return refusal
    # In the same step as the check: nothing can come between.
    core.options = after
    if agent.option_handlers or core.journal is not None:
        return _confirm(agent, core, request, before)
    return ask.OptionsSet(core.options)


async def _confirm(agent: "AgentCore", core: SessionCore, request: ask.SetOption, before: list[Option]) -> Reply:
    # A setter may have spelled the value in another way.
    after, value = core.options, core.session.option(request.config_id)
    try:
        for handler in agent.option_handlers:
            await handler(core.session, request.config_id, value)
        await store_option(core, request.config_id, value)
    except BaseException:
        if core.options is after:
            core.options = before  # the client is told that it failed, so it did
        raise
    return ask.OptionsSet(core.options)


def options_with(options: list[Option], request: ask.SetOption, *, open_models: bool) -> list[Option]:
    """Return the options with one new value; `RequestFailed` for an option or a value that does not exist."""
    for place, known in enumerate(options):
        if isinstance(known, (Select, Toggle)) and known.config_id == request.config_id:
            option = _with_model(known, request.value) if open_models else known
            if not _fits(option, request.value):
                unfit = _no_such_value(option, request.value)
                raise RequestFailed(INVALID_PARAMS, unfit, {"configId": echo(request.config_id)})
            # A new list: `_confirm` compares identities to see whether options were set again meanwhile.
            after = options.copy()
            after[place] = replace(option, current_value=request.value)
            return after
    known_ids = [option.config_id for option in options if isinstance(option, (Select, Toggle))]
    unknown = f"No such option {_quote(request.config_id)}; {_list_text(known_ids)}"
    raise RequestFailed(INVALID_PARAMS, unknown, {"configId": echo(request.config_id)})


def _no_such_value(option: Select | Toggle, value: object) -> str:
    """Say which value was given to which option, and which ones it takes."""
    given = f"No such value {_quote(value)} for {option.config_id}"
    if isinstance(option, Toggle):
        return f"{given}; it is true or false"
    return f"{given}; {_list_text([choice.value for choice in option.choices()])}"


def _list_text(names: list[str]) -> str:
    """Return the first of these names as the end of a sentence: `there are a, b, …`."""
    if not names:
        return "there are none"
    more = ", …" if len(names) > _NAMED else ""
    return f"there are {', '.join(name[:_NAMED_CHARACTERS] for name in names[:_NAMED])}{more}"


def _quote(value: object) -> str:
    """Return a value that a client sent as it may stand in an error message."""
    if not isinstance(value, str):
        return str(value).lower() if isinstance(value, bool) else "of an unknown type"
    return f"'{echo_in_words(value)}'"


def _with_model(option: Select | Toggle, value: object) -> Select | Toggle:
    """Return the model option with `value` among its choices; the author's handler decides whether the model exists."""
    if not isinstance(option, Select) or not isinstance(value, str):
        return option
    if option.category != "model" or _fits(option, value):
        return option
    return replace(option, options=[*option.options, Choice(value, value)])


def _fits(option: Select | Toggle, value: object) -> bool:
    if isinstance(option, Select):
        return value in map(_value_of, option.choices())
    return isinstance(value, bool)


async def store_option(core: SessionCore, config_id: str, value: object) -> None:
    """Write the value of an option to the log; it is on disk when this returns. Does nothing without a store."""
    journal = core.journal
    if journal is not None:
        with client_errors(core.id):
            if core.turn is None:
                await journal.repair()  # a running turn ends with the failure itself
            await journal.record_note(OPTIONS_NOTE, {config_id: value})
            await journal.log.flush()


async def store_servers(core: SessionCore) -> None:
    """Write a fingerprint of the MCP servers that the session was begun with to the log."""
    with client_errors(core.id):
        await core.record_note(SERVERS_NOTE, fingerprint(core.request))
