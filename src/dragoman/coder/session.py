"""Our agent in one session, as far as opening it goes: options, commands, model, servers.

Most sessions are only opened. What works on prompts is imported and made with the first one.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn, TypeGuard

from dragoman.agent.session import Prompt, Session, caller, session_core
from dragoman.coder import slash_commands
from dragoman.coder.identity_limits import check_folders, check_mode, check_not_private, nearest_mode
from dragoman.coder.models.contract import Closing, Model, Preparing
from dragoman.coder.modes import MODES
from dragoman.coder.setup import Setup
from dragoman.coder.wide_workspace import wide_workspace_notice
from dragoman.errors import AUTH_REQUIRED, INVALID_PARAMS, RequestFailed
from dragoman.vocabulary.events import AnyEvent, Notice
from dragoman.vocabulary.identity import Identity
from dragoman.vocabulary.options import MODE_CATEGORY, Choice, Option, Select
from dragoman.vocabulary.requests import McpStdio

# A prompt waits so long for servers, from the moment the session was opened; then it goes without those not there yet.
SERVERS_SECONDS: Final = 10.0
# Providers are asked for their models so long after a session was opened: what opens it must not wait for an import.
LISTING_SECONDS: Final = 0.3
_ABOUT_MODELS: Final = "The model to use. A provider's models are here when its key is: dragoman login PROVIDER"
# Models that were named by hand and are still offered; and models in a sentence.
_MOST_NAMED: Final = 20
_MOST_SAID: Final = 8

if TYPE_CHECKING:
    from dragoman.coder.decision_log import DecisionLog
    from dragoman.coder.mcp import McpServers
    from dragoman.coder.permissions import Decision
    from dragoman.coder.runtime import SessionRuntime
    from dragoman.coder.tools.contract import Tool
    from dragoman.vocabulary.requests import McpServer


class CodingSession:
    """Stands behind one session from its opening to its end."""

    def __init__(self, session: Session, setup: Setup) -> None:
        self.session: Final = session
        self.setup: Final = setup
        self.own_commands: dict[str, slash_commands.UserCommand] = {}
        self._models: dict[str, Model] = {}
        # Models that were named by hand, the last one at the end; and the level of thought that was chosen by hand,
        # which counts for every model that has it.
        self._named: list[str] = []
        self._thought_level = str(session_core(session).stored_options.get("thought_level", ""))
        self._servers: McpServers | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._listing: asyncio.Task[None] | None = None
        self._work: SessionRuntime | None = None
        self._remarked = False
        self._log: DecisionLog | None = None

    async def open(self) -> None:
        """What a client is told when the session opens: the options and commands there are."""
        identity = caller()
        await asyncio.to_thread(check_folders, self.session.roots, identity)
        await asyncio.to_thread(check_not_private, self.session.roots, self.setup.private)
        identity.check_programs(self.session.mcp_servers)
        # A model that wants a login says so now, and not when the user has typed a prompt.
        current = self._left_model() or self.setup.models.current()
        model = self.made(current)
        session_core(self.session).options = [
            _mode_option(nearest_mode(self.setup.mode, identity)),
            *self._model_options(current),
        ]
        if self.setup.home:
            folder = os.path.join(self.setup.home, "commands")
            self.own_commands = await asyncio.to_thread(slash_commands.read_own, folder)
        session_core(self.session).commands = slash_commands.announced(self.own_commands)
        self._prepare(model)
        brought = self.session.mcp_servers
        programs = {id(server) for server in brought if isinstance(server, McpStdio)}
        strange = set() if identity.brings_programs else {id(server) for server in brought}
        configs = [*brought, *self.setup.servers(self.session.cwd)]
        if configs:
            from dragoman.coder.mcp import McpServers

            self._servers = McpServers(
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
        if self.setup.models.lists_due():
            self._listing = asyncio.get_running_loop().create_task(_quietly(self._list_models()))

    async def _is_still_configured(self, server: "McpServer") -> bool:
        """Whether a server may be started now: the editor's, or one that the settings still have as it is.

        A project's server is gone from there when a file that it starts has changed.
        """
        if server in self.session.mcp_servers:
            return True
        try:
            return server in await asyncio.to_thread(self.setup.servers, self.session.cwd)
        except RequestFailed:
            return False

    async def close(self) -> None:
        """The session is over."""
        for background in (self._preparing, self._listing):
            if background is not None:
                background.cancel()
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

    async def _list_models(self) -> None:
        """Ask the providers for their models, and tell the client of them, well after the answer to its request."""
        await asyncio.sleep(LISTING_SECONDS)
        await self.setup.models.refresh(self._models_listed)

    async def _models_listed(self) -> None:
        await session_core(self.session).show_options(
            lambda: self.options_with_model(str(self.session.option("model")))
        )

    async def _warn(self, text: str) -> None:
        await session_core(self.session).record(Notice("warning", text))

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
        """Record a mode, load a model, keep a level of thought for the models that have it."""
        if config_id == "mode":
            from dragoman.coder.permissions import Decision

            await self._log_mode(str(self.session.option("mode")), caller(), Decision("allow", "", "user"))
        if config_id == "model":
            self._prepare(self.model)
        if config_id == "thought_level":
            self._thought_level = str(self.session.option("thought_level"))

    async def _log_mode(self, mode: str, identity: Identity, decision: "Decision") -> None:
        await self.log.record(decision, identity, mode=mode, tool="mode", kind=mode, title=mode)

    def turn(self, prompt: Prompt) -> AsyncGenerator[AnyEvent, None]:
        """One prompt, to its end."""
        if self._work is None:
            from dragoman.coder.runtime import SessionRuntime

            self._work = SessionRuntime(self)
        return self._work.turn(prompt)

    def options_with_model(self, value: object) -> list[Option]:
        """Return the options of the session once this is its model, however its name is written.

        A model that was not listed is one of the choices from then on, and the levels of thought are those of the
        model. Raises `RequestFailed` (-32602) for a name that means no model, or one that cannot be had.
        """
        if not isinstance(value, str):
            raise RequestFailed(INVALID_PARAMS, f"A model is named by text. {self._what_there_is()}")
        try:
            name = self.setup.models.spelled(value, str(self.session.option("model")))
        except RequestFailed as error:
            more = f" {self._what_there_is()}" if error.code == INVALID_PARAMS else ""
            raise RequestFailed(error.code, f"{error.message}{more}", error.data) from None
        try:
            self.made(name)
        except RequestFailed as error:
            # Not the code for a missing login: clients take that for the session, which goes on as it is.
            code = INVALID_PARAMS if error.code == AUTH_REQUIRED else error.code
            raise RequestFailed(code, error.message) from None
        kept = [option for option in self.session.options if not is_option(option, "model")]
        return [*(option for option in kept if not is_option(option, "thought_level")), *self._model_options(name)]

    def _model_options(self, current: str) -> list[Option]:
        """Return the option for the model, and the one for its level of thought where it has levels."""
        choices = {choice.value: choice for choice in self.setup.models.choices()}
        if current not in choices:
            self._named = [*(name for name in self._named if name != current), current][-_MOST_NAMED:]
        for name in self._named:
            choices.setdefault(name, Choice(name, name))
        # A turn that runs keeps the model that it began with.
        self._models = {name: model for name, model in self._models.items() if name in choices}
        options: list[Option] = [Select("model", "Model", current, [*choices.values()], _ABOUT_MODELS, "model")]
        levels = getattr(self.made(current), "thought_levels", ())
        if levels:
            wished = [level for level in (self._thought_level, self.setup.thought_level) if level in levels]
            options.append(_thought_option(levels, [*wished, levels[0]][0]))
        return options

    def _what_there_is(self) -> str:
        names = [choice.value for choice in self.setup.models.choices()]
        some = ", ".join(names[:_MOST_SAID]) + (", …" if len(names) > _MOST_SAID else "")
        return f"Models to choose from: {some}; any other name of a provider with a key is taken too."

    def _left_model(self) -> str:
        """Return the model that this session had when it was last open; empty if it cannot be used any more."""
        name = session_core(self.session).stored_options.get("model")
        with suppress(RequestFailed):
            if isinstance(name, str):
                name = self.setup.models.spelled(name)  # as a client might name it: no script, no file
                self.made(name)
                return name
        return ""

    def foreign_tools(self) -> "list[Tool]":
        """The tools of the servers that are connected now."""
        return [] if self._servers is None else self._servers.tools()

    def remarks(self) -> list[AnyEvent]:
        """What to tell of a wide workspace and servers that are not used: once, with the first prompt."""
        if self._remarked:
            return []
        self._remarked = True
        remarks = list(self.setup.remarks(self.session.cwd))
        home = os.path.realpath(self.setup.environment.get("HOME") or os.path.expanduser("~"))
        wide = wide_workspace_notice([os.path.realpath(root) for root in self.session.roots], home)
        return [Notice("warning", remark) for remark in ([wide] if wide else []) + remarks]

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


def _mode_option(mode: str) -> Select:
    modes = [Choice(value, known.name, known.description) for value, known in MODES.items()]
    return Select("mode", "Mode", mode, [*modes], "What the agent may do without asking", MODE_CATEGORY)


def _thought_option(levels: Sequence[str], level: str) -> Select:
    choices = [Choice(value, value.capitalize()) for value in levels]
    return Select("thought_level", "Thinking", level, [*choices], "How hard the model thinks", "thought_level")


def is_option(option: Option, name: str) -> TypeGuard[Select]:
    """Whether an option is the one of this name."""
    return isinstance(option, Select) and option.config_id == name
