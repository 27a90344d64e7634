"""Run the turns of one session: context, tools, permission gate and loop. Imported and made with the first prompt.

`session` owns what is there before: options, models, servers. `session_controls` is what slash commands do.
"""

import asyncio
import logging
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from dragoman import limits
from dragoman.agent.session import Prompt, Session, new_id, session_core
from dragoman.coder import loop, slash_actions, slash_commands
from dragoman.coder.briefing import SessionBriefing
from dragoman.coder.changes import Changes
from dragoman.coder.checkpoints.session_checkpoints import SessionCheckpoints
from dragoman.coder.compaction import ContextBudget
from dragoman.coder.context import Context, ContextToolCall, ContextToolResult, ContextUserMessage, load
from dragoman.coder.execution import DirectExecution
from dragoman.coder.fallbacks import Answering, Fallbacks, TurnFallbacks, level_for
from dragoman.coder.helper_kinds import PLAIN, HelperKind, read_helper_kinds
from dragoman.coder.identity_limits import (
    check_folders,
    check_not_private,
    narrower_notice,
    nearest_mode,
)
from dragoman.coder.kept_results import KeptResults
from dragoman.coder.kept_rules import KeptRules, project_of
from dragoman.coder.language_servers.session import ServerFolders, language_servers_of, late_reports
from dragoman.coder.managed_rules import rule_book
from dragoman.coder.managed_settings import ManagedSettings
from dragoman.coder.model_calls import ModelCalls
from dragoman.coder.models.contract import Model, SearchesWeb
from dragoman.coder.permissions import PermissionGate
from dragoman.coder.project_trust import ProjectTrust
from dragoman.coder.prompt_content import content_for_model, unseen_notice
from dragoman.coder.prompt_files import PromptFile, lent_paths
from dragoman.coder.retries import RetryPolicy
from dragoman.coder.rule_log import RuleLog
from dragoman.coder.sandbox import PREFIX, Sandbox, Sandboxed
from dragoman.coder.sandbox_report import SANDBOX, SETTLED, lost_report, report_item
from dragoman.coder.session import CodingSession
from dragoman.coder.session_controls import SessionControls
from dragoman.coder.session_options import is_option
from dragoman.coder.spend_caps import caps_of
from dragoman.coder.spending import load as load_spending
from dragoman.coder.system_prompt import family_of, system_prompt
from dragoman.coder.toolbox import Toolbox
from dragoman.coder.tools.background import BackgroundCommands
from dragoman.coder.tools.background_tools import BashOutput, BashStop
from dragoman.coder.tools.bash import Bash, command_environment
from dragoman.coder.tools.contract import Tool, ToolContext
from dragoman.coder.tools.diagnostics import Diagnosed, Diagnostics
from dragoman.coder.tools.files import is_withheld
from dragoman.coder.tools.patch import ApplyPatch, is_offered_to
from dragoman.coder.tools.plan_and_ask import AskUser, UpdatePlan
from dragoman.coder.tools.read import ReadFile
from dragoman.coder.tools.search import Glob, Grep, ListFiles
from dragoman.coder.tools.subagent import Delegate, HelperSetup
from dragoman.coder.tools.web_fetch import WebFetch
from dragoman.coder.tools.web_search import WebSearch
from dragoman.coder.tools.write import EditFile, WriteFile
from dragoman.coder.turn_hooks import HookAccess
from dragoman.coder.typed_of_servers import FetchedPrompt, ServerCommand, fetch_prompt, read_resources
from dragoman.coder.typed_prompts import OpenedCommand, TypedCommand, open_command, prompt_of
from dragoman.errors import RequestFailed
from dragoman.host.environment import child_environment
from dragoman.host.paths import Roots
from dragoman.permissions.facts import Action
from dragoman.vocabulary.content import Content, Text
from dragoman.vocabulary.events import AgentMessageChunk, AnyEvent, Idle, Notice
from dragoman.vocabulary.identity import LOCAL, Identity

if TYPE_CHECKING:
    from dragoman.coder.hooks import TurnHooks
    from dragoman.coder.language_servers.servers import LanguageServers

# What the names of MCP servers' tools and prompts begin with.
MCP_PREFIX: Final = "mcp__"

_log = logging.getLogger(__name__)
T = TypeVar("T")


class LoadedSession(NamedTuple):
    """What is read from a session's log before its first turn."""

    context: Context
    toolbox: Toolbox
    budget: ContextBudget
    gate: PermissionGate
    calls: ModelCalls


class SessionRuntime:
    """Runs the prompts of one session, one turn after the other."""

    def __init__(self, coding_session: CodingSession) -> None:
        self.session: Final[Session] = coding_session.session
        self.changes: Final = Changes()
        self.decision_log: Final = coding_session.decision_log
        self.coding_session: Final = coding_session
        self.hooks: Final = HookAccess(coding_session)
        self._setup = coding_session.setup
        self.rule_log: Final = RuleLog(coding_session.session)
        self._loaded: LoadedSession | None = None
        workspace_tools: list[Tool] = [*(ReadFile(), ListFiles(), Glob(), Grep(), WriteFile(), EditFile(), Bash())]
        web: list[Tool] = [WebFetch(self.managed)] if self.managed.web.fetch else []
        # Found with the first prompt; None: there are none, and nothing is ever said of them.
        self._language_servers: LanguageServers | None = None
        self._shared_tools: Final[list[Tool]] = [*map(self._diagnosed, workspace_tools), *web]
        # Without a data folder there is no place for a view.
        home = coding_session.setup.home
        self._sandbox = self._make_sandbox(home) if home else None
        self._sandboxed_tools: Final[list[Tool]] = (
            [] if self._sandbox is None else [Sandboxed(tool, self._sandbox) for tool in workspace_tools]
        )
        patch = ApplyPatch()
        self._patch_tools: Final[list[Tool]] = [
            self._diagnosed(patch),
            *([Sandboxed(patch, self._sandbox)] if self._sandbox else []),
        ]
        # The user's own, as they were with the first prompt: the tools are the same bytes in every request.
        self._helper_kinds: Mapping[str, HelperKind] = {}
        # Helpers that run together ask one after the other.
        self._questions: Final = asyncio.Lock()
        self.background: Final = BackgroundCommands(coding_session.session)
        # A helper does not talk to the user, has no helpers, and leaves nothing running behind it.
        self._own_tools: Final[list[Tool]] = [
            *(Bash(self.background), BashOutput(self.background), BashStop(self.background)),
            *(
                Delegate(
                    lambda: self.model,
                    self._prepare_helper,
                    self._calls,
                    lambda: self._helper_kinds,
                    coding_session.options.model_named,
                ),
                UpdatePlan(),
                AskUser(),
            ),
        ]
        # A mode and a model for this turn alone, and whose turn it is: all who have prompted in it.
        self._turn_mode = ""
        self._turn_model: Model | None = None
        self._fallbacks: Final = self._make_fallbacks()
        self._identity = LOCAL
        self._prompt = Prompt([], "")
        self._narrowed_identities: set[Identity] = set()
        self._pinned_roots: Roots | None = None
        self._has_waited_for_servers = False
        self._rule_book: Final = rule_book(self.managed, self._roots)
        self._results: Final = KeptResults(home, self.session.id) if home else None
        own = (*self._own_folders(), *self._private())
        self.checkpoints: Final = SessionCheckpoints(
            self.session, home, lambda: self._roots().real, self._command_environment(), own, self._warn
        )
        self._briefing: Final = self._make_briefing(lambda: self.coding_session.prompt_files.skills)

    def __repr__(self) -> str:
        items = "not loaded" if self._loaded is None else f"{len(self._loaded.context.items)} items"
        return f"<SessionRuntime {self.session.id[limits.SHORT_ID]} mode {self.mode()}, {items}>"

    def _make_sandbox(self, home: str) -> Sandbox:
        environment, limits = self._command_environment(), self._setup.sandbox_limits
        return Sandbox(
            self.session, self._roots, home, environment, limits, self.decision_log, self.identity, self._out_of_reach
        )

    def _diagnosed(self, tool: Tool) -> Tool:
        return Diagnosed(tool, lambda: self._language_servers) if tool.does == "edit" else tool

    @property
    def model(self) -> Model:
        """The model of this turn, if a command has chosen one or another answers in its place; else the chosen one."""
        return self._turn_model or self.coding_session.options.model

    def mode(self) -> str:
        """Return the present mode, within the limits of every identity that has prompted in this turn."""
        return nearest_mode(self._wanted_mode(), self._identity, self.managed)

    @property
    def managed(self) -> ManagedSettings:
        """What the administrator of this machine allows."""
        return self._setup.managed

    def _wanted_mode(self) -> str:
        return self._turn_mode or str(self.session.option("mode"))

    def identity(self) -> Identity:
        """Whose turn it is, within the limits of all who have prompted in it."""
        return self._identity

    # -- a turn ------------------------------------------------------------------------------------------------------

    def turn(self, prompt: Prompt) -> AsyncGenerator[AnyEvent, None]:
        """Return the events of one prompt, to the end of its turn. Raises `RequestFailed` for a folder out of reach."""
        self._identity, self._prompt = prompt.identity, prompt
        # What was a folder when it was opened can be a link now.
        check_folders(self._roots().real, self._identity)
        check_not_private(self._roots().real, self._setup.private)
        self.changes.begin_turn()
        self._turn_mode, self._turn_model = "", None
        return self._with_checkpoint(self._events_of(prompt))

    async def _with_checkpoint(self, events: AsyncGenerator[AnyEvent, None]) -> AsyncGenerator[AnyEvent, None]:
        """Pass a turn on; what it has changed is kept before its end is told, however it ends."""
        try:
            async with aclosing(events):
                async for event in events:
                    if isinstance(event, Idle):
                        await self.checkpoints.end_turn()
                    yield event
        finally:
            await self.checkpoints.end_turn()

    def _events_of(self, prompt: Prompt) -> AsyncGenerator[AnyEvent, None]:
        name, arguments = prompt.command
        content, attached = prompt.content, prompt.content[1:]
        files = self.coding_session.prompt_files.commands
        words = [block.text for block in prompt.content if isinstance(block, Text)]
        if name == "plan" and (arguments or attached):
            self._turn_mode, content = "plan", [*([Text(arguments)] if arguments else []), *attached]
        elif name in files:
            return self._work(prompt.message_id, attached, TypedCommand(files[name], arguments), words=words)
        elif name in slash_commands.BUILT_IN:
            return self._command(prompt.message_id, name, arguments)
        elif name.startswith(MCP_PREFIX) and self.coding_session.servers is not None:
            return self._work(prompt.message_id, attached, of_server=ServerCommand(name, arguments), words=words)
        return self._work(prompt.message_id, content, words=words)

    async def _work(
        self,
        message_id: str,
        content: Sequence[Content],
        typed: TypedCommand | None = None,
        of_server: ServerCommand | None = None,
        words: Sequence[str] = (),
    ) -> AsyncGenerator[AnyEvent, None]:
        await self.coding_session.refresh_commands(self._identity)
        for remark in self.coding_session.remarks():
            yield remark
        opened = OpenedCommand()
        if typed is not None:
            opened = await self._open(typed)
            if opened.refusal:
                yield AgentMessageChunk(Text(f"{opened.refusal}\n"))
                yield Idle(stop_reason="end_turn")
                return
            if opened.remark:
                yield Notice("warning", opened.remark)
        if self.mode() != self._wanted_mode() and self._identity not in self._narrowed_identities:
            self._narrowed_identities.add(self._identity)
            yield Notice("warning", narrower_notice(self._wanted_mode(), self.mode(), self._identity))
        began = time.monotonic()
        context, toolbox, budget, _, calls = await self.load()
        calls.spending.begin_turn()
        await self.coding_session.wait_for_servers()
        self._has_waited_for_servers = True
        if refusal := await self.hooks.refusal(self._prompt, self._identity):
            yield AgentMessageChunk(Text(f"{refusal}\n"))
            yield Idle(stop_reason="refusal")
            return
        model = self.model
        turn_hooks = self.hooks.of_turn()
        toolbox.begin_turn(self.tool_context(), self.hooks.of_calls())
        self.checkpoints.begin_turn(message_id)
        self._briefing.begin_turn()
        if self._language_servers is not None:
            self._language_servers.begin_turn()
        model.begin_turn()
        system = await self.system_prompt()
        if of_server is not None:
            fetched = await self._fetch(of_server)
            if fetched.refusal:
                yield AgentMessageChunk(Text(f"{fetched.refusal}\n"))
                yield Idle(stop_reason="end_turn")
                return
            content = [*fetched.content, *content]
        if typed is not None:
            run = partial(self._run_line, toolbox)
            content = [*await prompt_of(typed, opened.text, self._roots(), self.session.id, run), *content]
        content = [*content, *await self._resources(words)]
        if unseen := unseen_notice(content, model.name, model.sees):
            yield Notice("warning", unseen)
        message = ContextUserMessage(
            message_id, await content_for_model(content, self._roots(), model.sees, self._is_withheld)
        )
        turn = loop.turn(
            model,
            context,
            toolbox,
            message,
            system=system,
            thought_level=self._thought_level(),
            model_calls=self._setup.model_calls,
            budget=budget,
            calls=calls,
            fallbacks=self._turn_fallbacks(self._answer_with),
            queued_prompts=self._queued_prompts,
            briefing=self._brief_with_reports(context, turn_hooks),
            turn_end=turn_hooks,
        )
        _log.debug(
            "turn of session %s begins: model %s, mode %s", self.session.id[limits.SHORT_ID], model.name, self.mode()
        )
        end = "stopped before its end"
        try:
            async with aclosing(turn) as events:
                async for event in events:
                    if isinstance(event, Idle):
                        end = str(event.stop_reason)
                        if self._sandbox is not None:
                            await self._sandbox.settle()
                            await self._report_sandbox(context)
                        await self.coding_session.refresh_commands(self._identity)
                    yield event
        finally:
            self._turn_model = None
            _log.info(
                "turn of session %s: %s after %.1f s", self.session.id[limits.SHORT_ID], end, time.monotonic() - began
            )
            if self._sandbox is not None:
                self._sandbox.stop()
                await self._report_sandbox(context)

    async def _command(self, message_id: str, name: str, arguments: str) -> AsyncGenerator[AnyEvent, None]:
        """Run a command of ours. What one changes of files is kept, as that of a turn."""
        if name in slash_commands.CHANGING:
            self.checkpoints.begin_turn(message_id)
            await self.checkpoints.before_call([Action("other")])
        async with aclosing(slash_actions.run(name, arguments, SessionControls(self))) as events:
            async for event in events:
                yield event

    async def _open(self, typed: TypedCommand) -> OpenedCommand:
        """Read the file of a slash command, and choose its model for this turn."""
        opened = await asyncio.to_thread(open_command, typed, ProjectTrust(self._setup.trust))
        if opened.model:
            try:
                self._turn_model = self.coding_session.options.model_named(opened.model)
            except RequestFailed as error:
                remark = f"/{typed.file.name} works with the model of the session: {error.message}"
                return opened._replace(remark=remark)
        return opened

    async def _fetch(self, command: ServerCommand) -> FetchedPrompt:
        """Fetch a prompt of an MCP server."""
        servers = self.coding_session.servers
        assert servers is not None
        return await fetch_prompt(*command, servers, self._typed_calls())

    async def _resources(self, words: Sequence[str]) -> list[Content]:
        """Read the resources of MCP servers that the user has named."""
        servers = self.coding_session.servers
        return [] if servers is None else await read_resources(words, servers, self._typed_calls())

    def _typed_calls(self) -> Toolbox:
        """Return what runs the calls that a prompt itself names. Only a turn has some, so the session is loaded."""
        assert self._loaded is not None
        servers = self.coding_session.servers
        tools = [] if servers is None else servers.typed_tools()
        return Toolbox(
            lambda: tools,
            self._loaded.gate,
            self.tool_context(),
            log=self.decision_log,
            questions=self._questions,
            before_change=self.checkpoints.before_call,
        )

    async def _run_line(self, toolbox: Toolbox, line: str) -> str:
        """Run a command line of a file as a call of `bash`, and return its result."""
        results: list[str] = []

        async def finished(result: ContextToolResult) -> None:
            results.append(result.text)

        tool = f"{PREFIX}bash" if self.mode() == "sandbox" else "bash"
        await toolbox.run([ContextToolCall(new_id("call"), tool, {"command": line})], finished)
        return "".join(results)

    def _make_fallbacks(self) -> Fallbacks:
        setup = self._setup
        managed = setup.managed
        names = setup.fallback_models if managed.models.fallback else ()
        find = self.coding_session.options.model_named

        def refusal(name: str) -> str:
            return "" if managed.models.allows(name) else managed.says(f"the model {name}")

        return Fallbacks(names, find, refusal, (setup.retries or RetryPolicy()).clock)

    def _turn_fallbacks(self, prepare: Callable[[Model], Awaitable[Answering]]) -> TurnFallbacks | None:
        """Return the models that a turn or a helper may fall back to; None: there are none."""
        return TurnFallbacks(self._fallbacks, prepare) if self._fallbacks.is_any else None

    async def _answer_with(self, model: Model) -> Answering:
        """Make a model ready to answer to the end of this turn: tools and prompts are for it from now on."""
        self._turn_model = model
        model.begin_turn()
        return Answering(model, await self.system_prompt(), level_for(model, self._thought_level()))

    async def system_prompt(self) -> str:
        """Return the system prompt for the model that is chosen now, or the one that the user has written."""
        if self._setup.system_prompt:
            return self._setup.system_prompt
        return await asyncio.to_thread(system_prompt, family_of(self.model.name))

    def _make_briefing(self, skills: Callable[[], Sequence[PromptFile]] = tuple) -> SessionBriefing:
        return SessionBriefing(
            self._roots, self.mode, self.identity, self._command_environment(), self._setup.notes, self._warn, skills
        )

    def _brief(
        self, briefing: SessionBriefing, context: Context
    ) -> Callable[[bool], Awaitable[Sequence[ContextUserMessage]]]:
        return lambda is_new_turn: briefing.new_items(context, self._is_withheld, is_new_turn=is_new_turn)

    def _brief_with_reports(
        self, context: Context, hooks: "TurnHooks | None"
    ) -> Callable[[bool], Awaitable[Sequence[ContextUserMessage]]]:
        """Return what `_brief` does; ends of background commands, late errors and words of hooks are told behind it."""
        brief = self._brief(self._briefing, context)

        async def new_items(is_new_turn: bool) -> Sequence[ContextUserMessage]:
            reports = [*self.background.take_reports(), *late_reports(self._language_servers, self._roots())]
            told = [] if hooks is None else hooks.take_items()
            return [*await brief(is_new_turn), *map(report_item, reports), *told]

        return new_items

    async def _warn(self, text: str) -> None:
        await session_core(self.session).record(Notice("warning", text))

    async def _report_sandbox(self, context: Context) -> None:
        """Tell the model what became of the changes in the sandbox, if there is something to tell."""
        if self._sandbox is not None and (report := self._sandbox.take_report()):
            await context.add(report_item(report))
            await session_core(self.session).record_note(SANDBOX, self._sandbox.state)

    async def with_sandbox(self, work: Callable[[Sandbox], Awaitable[T]]) -> T | None:
        """Do something with the sandbox, and tell the model what became of it; None where there can be none."""
        context = (await self.load()).context
        if self._sandbox is None:
            return None
        try:
            return await work(self._sandbox)
        finally:
            await self._report_sandbox(context)

    async def _report_lost_sandbox(self, context: Context) -> None:
        """Tell the model of a sandbox that has ended with the process that this session was open in."""
        states = await self.session.recall(SANDBOX)
        report = lost_report(states[-1]) if states else ""
        if report:
            await context.add(report_item(report))
            await session_core(self.session).record_note(SANDBOX, SETTLED)

    async def close(self) -> None:
        """Kill background commands and language servers, and wait until what a cancelled turn has left is discarded."""
        await self.background.close()
        if self._language_servers is not None:
            await self._language_servers.close()
        if self._sandbox is not None:
            self._sandbox.leave()
            await self._sandbox.wait_until_discarded()

    def _thought_level(self) -> str:
        return next((o.current_value for o in self.session.options if is_option(o, "thought_level")), "")

    async def _queued_prompts(self) -> list[ContextUserMessage]:
        roots, sees = self._roots(), self.model.sees
        prompts, refusals = await self.hooks.let_through(await self.session.queued_prompts())
        for refusal in refusals:
            await self._warn(refusal)
        for prompt in prompts:
            self._identity = self._identity.joined(prompt.identity)
        if prompts:
            await asyncio.to_thread(check_folders, self._roots().real, self._identity)
        messages: list[ContextUserMessage] = []
        for prompt in prompts:
            named = await self._resources([block.text for block in prompt.content if isinstance(block, Text)])
            content = await content_for_model([*prompt.content, *named], roots, sees, self._is_withheld)
            messages.append(ContextUserMessage(prompt.message_id, content))
        return messages

    def _is_withheld(self, path: str) -> bool:
        return is_withheld(path, self.tool_context())

    async def load(self) -> LoadedSession:
        """Return the context, the tools and what else a turn works with; read from the log at the first call."""
        if self._loaded is None:
            context = await load(self.session)
            rules = await self.rule_log.load()
            self._helper_kinds = await asyncio.to_thread(self._read_helper_kinds)
            self._language_servers = await asyncio.to_thread(language_servers_of, self._setup, self._server_folders())
            gate = PermissionGate(
                self.mode,
                rules,
                self.rule_log.remember,
                fetches=self._setup.fetches,
                identity=self.identity,
                kept=KeptRules(self._setup.home) if self._setup.home else None,
                project=self._project,
                warn=self._warn,
                managed=self._rule_book,
            )
            toolbox = Toolbox(
                self._all_tools,
                gate,
                self.tool_context(),
                log=self.decision_log,
                touched=self._briefing.touch,
                questions=self._questions,
                before_change=self.checkpoints.before_call,
            )
            calls = await self._load_calls()
            above = self._setup.compact_above
            budget = ContextBudget(context, self.session.emit, above, calls, self.hooks.summary_changed)
            # A cancel before this line leaves nothing: the next prompt reads the log again.
            self._loaded = LoadedSession(context, toolbox, budget, gate, calls)
            await self._report_lost_sandbox(context)
            for problem in self._fallbacks.problems():
                await self._warn(problem)
        return self._loaded

    def unload(self) -> None:
        """Have the log read again for the next turn: the conversation is another now."""
        self._loaded = None

    async def _load_calls(self) -> ModelCalls:
        """Return what makes the session's model calls: its costs so far, its caps, and how long a call waits."""
        setup = self._setup
        caps = caps_of(setup.spend, setup.managed)
        spending = await load_spending(self.session, caps, setup.day_spending(), self._warn)
        return ModelCalls(spending, setup.retries)

    def tool_context(self) -> ToolContext:
        """Return what tools work with in this turn."""
        environment = self._command_environment()
        home = os.path.realpath(self._setup.home) if self._setup.home else ""
        roots, own = self._roots(), self._own_folders()
        protected, private = (*self._setup.protected_paths(), *self.hooks.started_files), self._private()
        limits, guardian = self._setup.sandbox_limits, self._setup.guardian()
        # What is not there cannot be hidden, and a command must not be the one that makes it.
        fixed = (*protected, *(folder for folder in own if not os.path.lexists(folder)))
        hidden = (*own, *private, *self._denied_places())
        execution = DirectExecution(self.session, roots, self.mode, environment, home, limits, fixed, hidden)
        return ToolContext(
            self.session,
            roots,
            environment,
            guardian,
            self.changes,
            execution,
            own,
            protected,
            private,
            self._results,
            self.model.sees,
            lent_paths(self.coding_session.prompt_files.skills, (*own, os.path.realpath(self._setup.user_home or "/"))),
            self._denies_reading,
        )

    def _server_folders(self) -> ServerFolders:
        """Return where language servers of this session may work, as far as the session knows."""
        return ServerFolders(self._roots, self._command_environment(), self._out_of_reach, self.mode)

    def _own_folders(self) -> tuple[str, ...]:
        """Return our own folders, by their real paths."""
        return tuple(os.path.realpath(path) for path in self._setup.own_folders)

    def _out_of_reach(self) -> tuple[str, ...]:
        return (*self._own_folders(), *self._private(), *self._denied_places())

    def _denied_places(self) -> tuple[str, ...]:
        """Return what the administrator keeps from confined commands."""
        return () if self._rule_book is None else tuple(self._rule_book.denied_places())

    def _denies_reading(self, path: str) -> bool:
        return self._rule_book is not None and self._rule_book.denies_reading(path)

    def _private(self) -> tuple[str, ...]:
        """Return what of a server is out of reach, by its real paths."""
        return tuple(os.path.realpath(path) for path in self._setup.private)

    def _roots(self) -> Roots:
        """Return the roots as they were with the first prompt: what a command puts in the place of one is none."""
        if self._pinned_roots is None or self._pinned_roots.given != tuple(self.session.roots):
            self._pinned_roots = Roots(self.session.roots)
        return self._pinned_roots

    def _project(self) -> str:
        """Return the path that this project's rules are kept under. Blocks."""
        return project_of(self._roots().real[0], self._setup.environment.get("HOME") or os.path.expanduser("~"))

    def _command_environment(self) -> dict[str, str]:
        return command_environment(child_environment(self._setup.environment))

    def _tools(self, model: Model) -> list[Tool]:
        """Return the tools that a helper with this model has as well.

        Names of servers' tools cannot be ours, but ours would win.
        """
        patch_tools = self._patch_tools if is_offered_to(family_of(model.name)) else []
        search_tools = self._search_tools(model)
        return [
            *(*self._mcp_tools(), *patch_tools, *self._sandboxed_tools),
            *(*self._shared_tools, *search_tools),
            *([Diagnostics(servers)] if (servers := self._language_servers) and servers.is_offered else []),
        ]

    def _mcp_tools(self) -> list[Tool]:
        """Return the tools of MCP servers as they were when the mode or the model was chosen.

        Nothing is chosen before the first turn, which waits for servers.
        """
        servers = self.coding_session.servers
        if servers is None:
            return []
        if not self._has_waited_for_servers:
            return servers.tools()
        return servers.offered_tools((self.mode(), str(self.session.option("model"))))

    def _search_tools(self, model: Model) -> list[Tool]:
        """Return `web_search` for a model whose provider searches, where the administrator lets words go there."""
        host = model.search_host if isinstance(model, SearchesWeb) else ""
        return [WebSearch(model, host, self._calls)] if host and self._setup.managed.web.allows_host(host) else []

    def _all_tools(self) -> list[Tool]:
        """Return the tools of the session itself. Its `bash` stands behind that of helpers, and so in its place."""
        return [*self._tools(self.model), *self._own_tools]

    async def _prepare_helper(
        self, label: str, call_id: str, context: Context, model: Model, kind: HelperKind | None
    ) -> HelperSetup:
        """Set up the helper that a call has started. Only a turn has helpers, so the session is loaded."""
        assert self._loaded is not None
        briefing = self._make_briefing()

        def tools() -> list[Tool]:
            return [tool for tool in self._tools(model) if kind is None or kind.has(tool.name)]

        gate, log = self._loaded.gate, self.decision_log
        kind_name = PLAIN if kind is None else kind.name
        hooks, keep = self.hooks.of_calls(label, kind_name), self.checkpoints.before_call
        context_of_tools, touched = self.tool_context(), briefing.touch
        toolbox = Toolbox(tools, gate, context_of_tools, label, log, touched, self._questions, hooks, keep, call_id)
        turn_hooks = self.hooks.of_turn(kind_name)

        async def answer_with(other: Model) -> Answering:
            other.begin_turn()
            system = await asyncio.to_thread(system_prompt, family_of(other.name), for_helper=True)
            return Answering(other, system + (kind.told() if kind else ""), "")

        own = await answer_with(model)
        brief = self._brief(briefing, context)

        async def new_items(is_new_turn: bool) -> Sequence[ContextUserMessage]:
            return [*await brief(is_new_turn), *(() if turn_hooks is None else turn_hooks.take_items())]

        return HelperSetup(toolbox, own.system, new_items, self._turn_fallbacks(answer_with), turn_hooks)

    def _read_helper_kinds(self) -> Mapping[str, HelperKind]:
        """Read the kinds of helpers, those of the project too. Blocks."""
        projects = self.coding_session.projects(self._identity) if self._setup.managed.projects.commands else []
        return read_helper_kinds(self._setup.agents, projects, ProjectTrust(self._setup.trust).refusal)

    def _calls(self) -> ModelCalls:
        assert self._loaded is not None
        return self._loaded.calls
