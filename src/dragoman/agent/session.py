"""A session as the author of an agent sees it: say, think, show tool calls, ask.

`Session` is the author's surface and checks what it is handed; the state behind it is a `SessionCore`
(`session_core.py`).
Everything emitted inside a turn belongs to that turn: once the turn has ended, code of it that still runs gets
`CancelledError` and nothing of it leaves.

What each method may raise, unless it says more: `UsageError` for an argument that cannot be sent, at the call that
hands it over; `LinkClosed` when the client is gone; `CancelledError` in code of a turn that has ended; with a store,
`StoreFailed` when the disk fails. Methods that emit return when the event has its place in the queue, and wait only
while the client or the disk is too slow.

Imported before `initialize` is answered where an author names `Session` in an annotation: asyncio must not be.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from os import PathLike
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, UnsetType

from dragoman.agent import checks
from dragoman.agent.author_handlers import extension_name
from dragoman.agent.checks import exact_text, plain, plain_text
from dragoman.agent.client_services import ClientServices, ClientTerminal, check_turn
from dragoman.agent.permission import (
    NOTE,
    Permission,
    RememberedPermission,
    ask_form,
    ask_permission,
    check_question,
    question,
    subject_of,
)
from dragoman.agent.tool import DisplayTerminal, ToolCall
from dragoman.errors import RequestFailed, UsageError
from dragoman.vocabulary.asking import Extension, ExtensionNote
from dragoman.vocabulary.content import Content, Text, text_of
from dragoman.vocabulary.events import (
    AnyEvent,
    CommandsChanged,
    Cost,
    Notice,
    OptionsChanged,
    PlanUpdate,
    SessionInfoChanged,
    TerminalUpdate,
    ToolCallUpdate,
    Usage,
    UsageChanged,
)
from dragoman.vocabulary.hello import ClientCapabilities
from dragoman.vocabulary.identity import LOCAL, Identity, Needs
from dragoman.vocabulary.options import MAIN_PLAN, AnyCommand, Option, PlanEntry, PlanItems, Select, Toggle
from dragoman.vocabulary.services import PermissionOption
from dragoman.vocabulary.tools import Location, ToolContent, ToolKind, ToolStatus

if TYPE_CHECKING:
    from dragoman.agent.session_core import SessionCore
    from dragoman.vocabulary.requests import McpServer

# Authors have all three from here.
__all__ = ["Permission", "Prompt", "Session"]

# Who made the request that is being worked on, for handlers that are given no request. Outside of a request, and on a
# link that is not trusted, it is the user at this machine.
CALLER: ContextVar[Identity] = ContextVar("dragoman_caller", default=LOCAL)
caller: Final = CALLER.get


class Prompt:
    """What the user sent, as a prompt handler receives it.

    `content` are its blocks, `message_id` its id in the conversation. `identity` is the user who sent it, as a trusted
    gateway tells; without one, the user at this machine.
    """

    def __init__(self, content: Sequence[Content], message_id: str, identity: Identity = LOCAL) -> None:
        self.content: Final = list(content)
        self.message_id: Final = message_id
        self.identity: Final = identity

    def __repr__(self) -> str:
        return f"<Prompt {self.message_id} {len(self.content)} blocks>"

    @property
    def text(self) -> str:
        """The whole prompt as plain text; links and embedded files as their text."""
        return text_of(self.content)

    @property
    def command(self) -> tuple[str, str]:
        """The name and the arguments of a slash command; both are empty if the prompt is none.

        Only what the user typed counts: the first block, if it is text. A file or a link that goes along is data
        whatever it says, and a blank text before it makes no command of it.
        """
        first = self.content[0] if self.content else None
        # Not `self.text`: that would make a command of a file whose first line begins with a slash.
        words = first.text.split(maxsplit=1) if isinstance(first, Text) else []
        if not words or not words[0].startswith("/"):
            return "", ""
        return words[0][1:], words[1].strip() if len(words) > 1 else ""

    @property
    def words(self) -> str:
        """The text blocks joined, without files and links; if there are no text blocks, the same as `text`."""
        return " ".join(block.text for block in self.content if isinstance(block, Text)) or self.text


class Session:
    """One conversation with one client. Made by the agent; a handler receives it.

    `memory` is a dict for whatever the author wants to have with the session while it is open.

    Its methods wait only where they say so, and where the client does not read or the store is behind: `say` and other
    methods that send return when the event is queued. They raise `UsageError` for arguments that make no message.
    """

    def __init__(self, core: "SessionCore") -> None:
        self.id: Final = core.id
        self.cwd: Final = core.cwd
        # Not stored: it ends with the process. What has to survive goes through `remember`.
        self.memory: Final[dict[str, object]] = {}
        self._core: Final = core

    def __repr__(self) -> str:
        turn = self._core.turn
        return f"<Session {self.id} {'idle' if turn is None else repr(turn)}>"

    @property
    def roots(self) -> list[str]:
        """The folders this session may touch: cwd first, then the additional directories."""
        more = self._core.request.additional_directories
        return [self.cwd, *([] if isinstance(more, UnsetType) else more)]

    @property
    def mcp_servers(self) -> "list[McpServer]":
        """The MCP servers that the client wants the session to use."""
        return list(self._core.request.mcp_servers or ())

    @property
    def client(self) -> ClientCapabilities:
        """What the client can do for the agent: files, terminals, forms."""
        return self._core.sink.client

    @property
    def options(self) -> list[Option]:
        """The session options with their current values. `set_options` replaces them."""
        return self._core.options

    @property
    def commands(self) -> list[AnyCommand]:
        """The slash commands that were announced. `set_commands` replaces them."""
        return self._core.commands

    @property
    def title(self) -> str:
        """The title: the first line of the first prompt, until `set_title` or the client changes it; else empty."""
        return self._core.title

    @property
    def usage(self) -> Usage | None:
        """The tokens of the running turn, sent with its end. Set it in the prompt handler; each turn begins at None."""
        return self._core.usage

    @usage.setter
    def usage(self, usage: Usage | None) -> None:
        self._core.usage = usage

    # -- messages ----------------------------------------------------------------------------------------------------

    async def say(self, content: str | Content) -> None:
        """Send a piece of the answer; pieces without another event between them are one message."""
        await self._core.emit_text("agent_message_chunk", content)

    async def think(self, content: str | Content) -> None:
        """Send a piece of a thought; pieces without another event between them are one thought."""
        await self._core.emit_text("agent_thought_chunk", content)

    async def emit(self, event: AnyEvent) -> None:
        """Send any event of `dragoman.events`. A chunk without a message id continues the current message."""
        await self._core.emit(event)

    # -- tool calls, terminals, plans, notices -----------------------------------------------------------------------

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
        """Return a tool call to be shown: `async with session.tool("Read config", kind="read") as call: ...`.

        `kind` is one of `ToolKind`, or your own with an underscore, such as `"_deploy"`. `name` is the tool's own name.
        `status` is where it begins, `content` what it shows at first. `locations` are absolute paths. `raw_input` is
        what the tool was called with: anything that has JSON. `id` is made up if none is given. A title that is empty
        becomes the `name`; without either the user would see nothing, which is a `UsageError`. Nothing is sent before
        the block is entered.
        """
        checks.check_text(title, "the title of a tool call", 'session.tool("Read config")')
        checks.check_optional_text(name, "the name of a tool", 'session.tool("Read config", name="read_file")')
        if not title.strip() and isinstance(name, str):
            # Some models call a tool without a title; its name says at least what runs.
            title = name
        checks.check_shown(title, "the title of a tool call", 'session.tool("Read config")')
        checks.check_known(kind, "the kind of a tool call", checks.KINDS)
        checks.check_known(status, "the status of a tool call", checks.STATUSES)
        if id is not None:
            checks.check_text(id, "the id of a tool call", 'session.tool("Read config", id="call-1")')
        # Everything is checked here, before the block is entered: an error in `__aenter__` would name another line.
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
        # `emit`, not `record`: a call belongs to the turn that shows it, and ends with that.
        return ToolCall(self._core.emit, plain(opening, "the tool call"), self._core.stoppable)

    def terminal(self, command: str, cwd: str | PathLike[str] | None = None) -> DisplayTerminal:
        """Return a terminal that shows a command the agent runs itself: `async with session.terminal("make") as t:`.

        `cwd` is absolute; without it, the session's. Nothing is sent before the block is entered.
        """
        checks.check_shown(command, "a command", 'session.terminal("make test")')
        place = self.cwd if cwd is None else checks.absolute(cwd, "cwd")
        # The id is new for every terminal: clients keep the output of ended ones under it.
        opening = TerminalUpdate(new_id("term"), command=command, cwd=place)
        return DisplayTerminal(self._core.emit, opening, self._core.stoppable)

    async def plan(self, entries: Iterable[str | PlanEntry], plan_id: str = MAIN_PLAN) -> None:
        """Show the plan, whole; it replaces the one before. A `PlanEntry` has a status, such as `"completed"`."""
        # Whole plans only: a client that joins later, and a reload, need no history to show the last one.
        steps = checks.plan_steps(entries)
        checks.check_shown(plan_id, "the id of a plan", 'session.plan([...], "main")')
        await self._core.emit(PlanUpdate(PlanItems(plan_id, steps)))

    async def notice(self, title: str, *, severity: str = "info", description: str | UnsetType = UNSET) -> None:
        """Show the user a message that is not part of the conversation: `title`, and a longer `description`.

        `severity`: info, warning or error.
        """
        checks.check_shown(title, "a notice", 'session.notice("The disk is nearly full", severity="warning")')
        checks.check_known(severity, "the severity of a notice", checks.SEVERITIES)
        checks.check_optional_text(description, "the description of a notice", 'session.notice("…", description="…")')
        await self._core.emit(Notice(severity, title, description))

    async def show_usage(self, used: int, size: int, cost: Cost | UnsetType = UNSET) -> None:
        """Show how full the context window is: `used` of `size` tokens, and what the session has cost so far."""
        checks.check_count(used, "used", "session.show_usage(1200, 200_000)")
        checks.check_count(size, "size", "session.show_usage(1200, 200_000)")
        if cost is not UNSET:
            checks.check_cost(cost)
        await self._core.emit(UsageChanged(used, size, cost))

    # -- title, commands, options ------------------------------------------------------------------------------------

    async def set_title(self, title: str) -> None:
        """Name the session, in the client's list as well."""
        checks.check_text(title, "a title", 'session.set_title("Fix the tests")')
        # Set before it is emitted: a client that reads the event and asks for the list finds the new one.
        self._core.title = plain_text(title)
        await self._core.emit(SessionInfoChanged(title=self.title))

    async def set_commands(self, commands: Iterable[AnyCommand]) -> None:
        """Announce the slash commands, all of them; those announced before are replaced."""
        self._core.commands = plain(checks.check_commands(commands), "commands")
        await self._core.emit(CommandsChanged(self.commands))

    async def set_options(self, options: Iterable[Option]) -> None:
        """Announce the session options, all of them; those announced before are replaced."""
        self._core.options = checks.check_options(options, "options")
        await self._core.emit(OptionsChanged(self.options))

    def option(self, config_id: str) -> str | bool:
        """Return the current value of an option. `UsageError` if the session has no such option."""
        for option in self.options:
            if isinstance(option, (Select, Toggle)) and option.config_id == config_id:
                return option.current_value
        raise UsageError(f"the session has no option {config_id!r}; give it to Agent(options=[...]) first")

    async def queued_prompts(self) -> list[Prompt]:
        """Accept the prompts that the user has sent since the turn began, and return them, oldest first.

        Only for an `Agent(steering=True)`; another agent's client is told that the session is busy. With a store this
        waits until they are on disk.
        """
        return await self._core.accept_queued_prompts()

    async def interjected(self) -> list[Prompt]:
        """Former name of `queued_prompts`; emits a `DeprecationWarning`."""
        import warnings

        warnings.warn("session.interjected() is called session.queued_prompts() now", DeprecationWarning, stacklevel=2)
        return await self.queued_prompts()

    # -- questions to the user and the client ------------------------------------------------------------------------

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
        """Ask the user and wait for the answer. Anything but a known yes is a no: `if await session.ask_permission(…)`.

        `title` is the question, `description` more about it; `tool` or `command`: what it is about. An "always" counts
        for the rest of the session, for a question that shows exactly the same; or for every question with the same
        `remember`, a few words that the user reads on the button. It is offered for a tool, a command or a `remember`.
        With `options` of your own only `remember` keeps an answer. `needs`: what the identity that says yes has to be
        allowed; a gateway puts the question to no other.

        There is no timeout: the user may be away. A cancelled turn ends the question with `CancelledError`, and a
        client that disconnects ends it with `LinkClosed`: neither is a yes.
        """
        checks.check_shown(title, "a question", 'session.ask_permission("Run make?", command="make")')
        # All arguments are checked before the session is put into `requires_action`.
        check_question(title, tool, command, description, remember)
        # The whole question is made here, so that what is remembered is what was shown.
        asked = question(
            self.id,
            plain_text(title),
            subject_of(tool, None if command is None else exact_text(command), self.cwd),
            tool=tool,
            description=plain(description, "the description of a question"),
            options=options,
            remember=None if remember is None else exact_text(remember),
            shared=self._core.trusts_identities,
        )
        return await ask_permission(self._core, asked, needs)

    def permissions(self) -> list[RememberedPermission]:
        """List the answers that count for the rest of this session, oldest first."""
        return self._core.answers.list()

    async def forget_permissions(self, covers: str | None = None) -> None:
        """Ask again about what `permissions()` lists as `covers`; without it, about everything."""
        await self._core.record_note(NOTE, self._core.answers.forget(covers))

    async def ask_user(self, message: str, schema: dict[str, object]) -> dict[str, object] | None:
        """Ask the user to fill a form, a flat JSON Schema object, and wait. None: the user declined or dismissed it.

        `UsageError` where the client cannot show forms: look at `session.client.elicitation_form` first.
        """
        return await ask_form(self._core, message, schema)

    async def read_text_file(self, path: str, *, line: int | None = None, limit: int | None = None) -> str:
        """Read a file through the editor, unsaved changes included, and wait for it.

        `path` is absolute; `line` is the first line, counted from 1, `limit` the number of lines. `UsageError` where
        the client lends no files (`session.client.read_text_file`), `RequestFailed` where it cannot read this one.
        """
        return await self._services.read_text_file(path, line, limit)

    async def write_text_file(self, path: str, content: str) -> None:
        """Write a file through the editor, and wait for it. `path` is absolute.

        `UsageError` where the client takes no files (`session.client.write_text_file`), `RequestFailed` where it fails.
        """
        await self._services.write_text_file(path, content)

    async def client_terminal(
        self, command: str, args: Iterable[str] = (), *, cwd: str | None = None, output_byte_limit: int | None = None
    ) -> ClientTerminal:
        """Run a command in the client's terminal: `async with await session.client_terminal("make") as t: ...`.

        Waits until `command` has been started with `args`. `cwd` is absolute; without it, the session's.
        `output_byte_limit`: how much output the client has to keep. `UsageError` where the client lends no terminals
        (`session.client.terminal`), `RequestFailed` where it cannot start the command.
        """
        return await self._services.terminal(command, args, cwd, output_byte_limit)

    @property
    def _services(self) -> ClientServices:
        # Made for each call: it has no state.
        return ClientServices(self.id, self.cwd, self._core.sink)

    async def request(self, method: str, params: object = UNSET) -> object:
        """Call an extension method (`_name`) of the client and wait for its result. `RequestFailed` if it refuses."""
        extension = Extension(exact_text(extension_name(method)), plain(params, "params"))
        # A request of a turn that has ended would be answered into nothing.
        check_turn()
        return (await self._core.sink.ask(extension)).result

    async def notify(self, method: str, params: object = UNSET) -> None:
        """Send an extension notification (`_name`) to the client."""
        check_turn()
        note = ExtensionNote(exact_text(extension_name(method)), plain(params, "params"))
        await self._core.sink.send_notification(note)

    async def mcp_call(
        self,
        server_id: str,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        on_notification: Callable[[str, Mapping[str, object]], None] | None = None,
    ) -> object:
        """Call `method` of an MCP server that the client lends, and wait for its result.

        `server_id` is that of an `McpAcp` in `mcp_servers`. `params` are those of MCP, with its `_meta`.
        `on_notification` gets the notifications of this call; it must not block. `RequestFailed` has the error of the
        server, or -33001 where the client does not have it any more.
        """
        check_turn()
        lent = self._core.sink.lent_servers()
        heard = on_notification or (lambda method, params: None)
        outcome = await lent.call(exact_text(server_id), exact_text(method), dict(params or {}), heard)
        if outcome.fault is not None:
            raise RequestFailed(*outcome.fault)
        return outcome.result

    # -- the session's log -------------------------------------------------------------------------------------------

    async def remember(self, kind: str, value: object) -> None:
        """Write a value of your own to the session's log, in its place among the events. Needs a store.

        `kind` is the name to `recall` it by; `value` is anything that has JSON.
        """
        checks.check_text(kind, "what is remembered has a name: it", 'session.remember("review", {...})')
        if self._core.journal is None:
            raise UsageError("session.remember needs a store: write `Agent(..., store=SqliteStore(folder))`")
        await self._core.record_note(plain_text(kind), plain(value, "what is remembered"))

    async def recall(self, kind: str) -> list[object]:
        """Return what was remembered under this name, in order, also before a restart. Nothing without a store.

        Reads the whole log: keep what you need often in `memory`.
        """
        # Not an error without a store: an author's code may run with and without one.
        return [] if self._core.journal is None else await self._core.journal.read_notes(kind)


def session_core(session: Session) -> "SessionCore":
    """Return the internals of a session, for packages of Dragoman. Authors have no use for it: it may change."""
    return session._core


def new_id(prefix: str) -> str:
    """Return a new id: 96 random bits under a readable prefix, unique without a central counter."""
    return f"{prefix}_{os.urandom(12).hex()}"


def new_session_id() -> str:
    """Return a new session id with 128 random bits: the id is all that a client needs to address the session."""
    return f"sess_{os.urandom(16).hex()}"
