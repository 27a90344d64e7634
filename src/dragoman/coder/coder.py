"""Our agent in one session, as far as opening it goes: options, commands, model, servers.

Most sessions are only opened. What works on prompts is imported and made with the first one.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn, TypeGuard

from msgspec.structs import replace

from dragoman.agent.caller import caller
from dragoman.agent.session import Prompt, Session
from dragoman.coder import commands
from dragoman.coder.ceilings import check_folders, check_mode, check_not_private, nearest_mode
from dragoman.coder.models.contract import Closing, Model, Preparing
from dragoman.coder.modes import MODES
from dragoman.coder.setup import Setup
from dragoman.coder.wide_workspace import wide_workspace_notice
from dragoman.errors import RequestFailed
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessageChunk, AnyEvent, Notice
from dragoman.vocabulary.identity import Identity
from dragoman.vocabulary.options import MODE_CATEGORY, Choice, Option, Select
from dragoman.vocabulary.requests import McpStdio

# A prompt waits so long for servers, from the moment the session was opened; then it goes without those not there yet.
SERVERS_SECONDS: Final = 10.0
_ABOUT_MODELS: Final = "Who thinks. A provider's models are here when its key is: dragoman login PROVIDER"

if TYPE_CHECKING:
    from dragoman.coder.decision_log import DecisionLog
    from dragoman.coder.mcp import Servers
    from dragoman.coder.permissions import Decision
    from dragoman.coder.tools.contract import Tool
    from dragoman.coder.work import Work
    from dragoman.vocabulary.requests import McpServer


class Coder:
    """Stands behind one session from its opening to its end."""

    def __init__(self, session: Session, setup: Setup) -> None:
        self.session: Final = session
        self.setup: Final = setup
        self.own_commands: dict[str, commands.Own] = {}
        self._models: dict[str, Model] = {}
        self._servers: Servers | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._work: Work | None = None
        self._remarked = False
        self._log: DecisionLog | None = None

    async def open(self) -> None:
        """What a client is told when the session opens: the options and commands there are."""
        identity = caller()
        await asyncio.to_thread(check_folders, self.session.roots, identity)
        await asyncio.to_thread(check_not_private, self.session.roots, self.setup.private)
        identity.check_programs(self.session.opening.mcp_servers or ())
        # A model that wants a login says so now, and not when the user has typed a prompt.
        current = self.setup.models.current()
        mode = nearest_mode(self.setup.mode, identity)
        self.session.options = options(self.setup, self.made(current), current, mode)
        self._offer_again(self.session.left_with.get("model"))
        if self.setup.home:
            folder = os.path.join(self.setup.home, "commands")
            self.own_commands = await asyncio.to_thread(commands.read_own, folder)
        self.session.commands = commands.announced(self.own_commands)
        self._prepare(self.made(current))
        brought = list(self.session.opening.mcp_servers or ())
        programs = {id(server) for server in brought if isinstance(server, McpStdio)}
        strange = set() if identity.brings_programs else {id(server) for server in brought}
        configs = [*brought, *self.setup.servers(self.session.cwd)]
        if configs:
            from dragoman.coder.mcp import Servers

            self._servers = Servers(
                configs,
                environment=self.setup.environment,
                cwd=self.session.cwd,
                guardian=self.setup.guardian(),
                notice=self._warn,
                changed=lambda: None,
                roots=self.session.roots,
                allow=self._is_still_configured,
                guarded=lambda config: id(config) in programs,
                is_strange=lambda config: id(config) in strange,
            )
            self._servers.start()

    async def _is_still_configured(self, server: "McpServer") -> bool:
        """Whether a server may be started now: the editor's, or one that the settings still have as it is.

        A project's server is gone from there when a file that it starts has changed.
        """
        if server in (self.session.opening.mcp_servers or ()):
            return True
        try:
            return server in await asyncio.to_thread(self.setup.servers, self.session.cwd)
        except RequestFailed:
            return False

    async def close(self) -> None:
        """The session is over."""
        if self._preparing is not None:
            self._preparing.cancel()
        if self._servers is not None:
            await self._servers.close()
        if self._work is not None:
            await self._work.close()
        for model in self._models.values():
            if isinstance(model, Closing):
                await model.close()

    def _prepare(self, model: Model) -> None:
        """A model that takes a while to load begins now, before the first prompt; the session does not wait for it."""
        if isinstance(model, Preparing):
            self._preparing = asyncio.get_running_loop().create_task(_quietly(model.prepare()))

    async def _warn(self, text: str) -> None:
        await self.session.record(Notice("warning", text))

    @property
    def model(self) -> Model:
        """The model that is chosen now."""
        return self.made(str(self.session.option("model")))

    def made(self, name: str) -> Model:
        """A model of this session, by its name."""
        if name not in self._models:
            self._models[name] = self.setup.models.make(name)
        return self._models[name]

    @property
    def log(self) -> "DecisionLog":
        """Where decisions are kept."""
        if self._log is None:
            from dragoman.coder.decision_log import DecisionLog

            self._log = DecisionLog(self.session, content=self.setup.audit_content)
        return self._log

    def option_refused(self, config_id: str, value: str) -> Awaitable[NoReturn] | None:
        """What refuses a mode that is not open to the caller; None: it may be set.

        Judged before the mode is set: the turn of another client may be running, and would have it meanwhile.
        """
        identity = caller()
        try:
            if config_id == "mode":
                check_mode(value, identity)
            return None
        except RequestFailed as failed:
            return self._refuse_mode(value, identity, failed)

    async def _refuse_mode(self, mode: str, identity: Identity, refusal: RequestFailed) -> NoReturn:
        from dragoman.coder.permissions import Decision

        await self._log_mode(mode, identity, Decision("deny", "", "policy"))
        raise refusal

    async def option_changed(self, config_id: str) -> None:
        """Refuses a model that cannot be had."""
        if config_id == "mode":
            from dragoman.coder.permissions import Decision

            await self._log_mode(str(self.session.option("mode")), caller(), Decision("allow", "", "user"))
        if config_id == "model":
            self._prepare(self.made(str(self.session.option("model"))))

    async def _log_mode(self, mode: str, identity: Identity, decision: "Decision") -> None:
        await self.log.record(decision, identity, mode=mode, tool="mode", kind=mode, title=mode)

    def turn(self, prompt: Prompt) -> AsyncGenerator[AnyEvent, None]:
        """One prompt, to its end."""
        if self._work is None:
            from dragoman.coder.work import Work

            self._work = Work(self)
        return self._work.turn(prompt)

    def offer_model(self, name: str) -> None:
        """A model the user has named by hand is one of the choices from then on."""
        self.session.options = [
            replace(option, options=[*option.options, Choice(name, name)]) if is_option(option, "model") else option
            for option in self.session.options
        ]

    def _offer_again(self, name: object) -> None:
        """The model that this session had when it was last open, if it was named by hand and can still be had."""
        (choices,) = [option.choices() for option in self.session.options if is_option(option, "model")]
        if isinstance(name, str) and all(choice.value != name for choice in choices):
            with suppress(RequestFailed):
                self.made(self.setup.models.spelled(name))  # as a client might name it: no script, no file
                self.offer_model(name)

    def foreign_tools(self) -> "list[Tool]":
        """The tools of the servers that are connected now."""
        return [] if self._servers is None else self._servers.tools()

    def remarks(self) -> list[AnyEvent]:
        """What the user should know about a wide workspace and servers that are not used: once, with the first prompt.

        A client that takes no notices is told of the workspace in a message: this one must be seen.
        """
        if self._remarked:
            return []
        self._remarked = True
        remarks: list[AnyEvent] = [Notice("warning", remark) for remark in self.setup.remarks(self.session.cwd)]
        home = os.path.realpath(self.setup.environment.get("HOME") or os.path.expanduser("~"))
        wide = wide_workspace_notice([os.path.realpath(root) for root in self.session.roots], home)
        if wide and self.session.client.notices:
            remarks.insert(0, Notice("warning", wide))
        elif wide:
            remarks.insert(0, AgentMessageChunk(Text(f"{wide}\n\n")))
        return remarks

    async def servers_started(self) -> None:
        """Waits, but not long, for servers that are being started: what was asked may need them."""
        if self._servers is not None:
            await self._servers.started(SERVERS_SECONDS)

    async def servers_text(self) -> str:
        """The MCP servers, in words."""
        await self.servers_started()
        remarks = [f"- {remark}" for remark in self.setup.remarks(self.session.cwd)]
        if self._servers is None:
            return "\n".join(["This session has no MCP servers.", *remarks])
        lines = remarks
        for server in self._servers.status():
            trouble = f": {server.error}" if server.error else ""
            lines.append(f"- {server.name}: {server.state}, {len(server.tools)} tools{trouble}")
        return "\n".join(lines)


async def _quietly(work: Awaitable[None]) -> None:
    with suppress(Exception):  # the first prompt will say what is wrong
        await work


def options(setup: Setup, model: Model, current: str, mode: str) -> list[Option]:
    """What the client may choose: what the agent may do, who thinks, and how hard where that can be said."""
    modes = [Choice(value, known.name, known.description) for value, known in MODES.items()]
    models = list(setup.models.choices())
    if all(choice.value != current for choice in models):
        models.insert(0, Choice(current, current))
    return [
        Select("mode", "Mode", mode, list(modes), "What the agent may do without asking", MODE_CATEGORY),
        Select("model", "Model", current, list(models), _ABOUT_MODELS, "model"),
        *_thinking(setup, model),
    ]


def _thinking(setup: Setup, model: Model) -> list[Option]:
    levels = getattr(model, "thought_levels", ())
    if not levels:
        return []
    level = setup.thought_level if setup.thought_level in levels else levels[0]
    choices = [Choice(value, value.capitalize()) for value in levels]
    return [Select("thought_level", "Thinking", level, list(choices), "How hard the model thinks", "thought_level")]


def is_option(option: Option, name: str) -> TypeGuard[Select]:
    """Whether an option is the one of this name."""
    return isinstance(option, Select) and option.config_id == name
