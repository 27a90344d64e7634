"""The work of our agent in one session: context, tools, gate and loop. Imported and made with the first prompt."""

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final, Literal, cast

from msgspec.structs import replace

from dragoman.agent.session import Prompt, Session, session_core
from dragoman.coder import loop, slash_actions, slash_commands, spending
from dragoman.coder.changes import Changes, Undone
from dragoman.coder.compaction import Compaction, ContextBudget
from dragoman.coder.context import Context, ContextUserMessage, load
from dragoman.coder.execution import DirectExecution
from dragoman.coder.identity_limits import (
    allowed_modes,
    check_folders,
    check_mode,
    check_not_private,
    narrower_notice,
    nearest_mode,
)
from dragoman.coder.instructions import system_prompt
from dragoman.coder.models.contract import Model
from dragoman.coder.permissions import PermissionGate, RememberedRule
from dragoman.coder.prompt_content import seen, unseen_notice
from dragoman.coder.sandbox import Sandbox, Sandboxed
from dragoman.coder.sandbox_report import SANDBOX, SETTLED, lost_report, report_item
from dragoman.coder.session import CodingSession, is_option
from dragoman.coder.spending import Spending
from dragoman.coder.toolbox import Toolbox
from dragoman.coder.tools.bash import Bash, command_environment
from dragoman.coder.tools.contract import Tool, ToolContext
from dragoman.coder.tools.files import is_withheld, writing
from dragoman.coder.tools.plan_and_ask import AskUser, UpdatePlan
from dragoman.coder.tools.read import ReadFile
from dragoman.coder.tools.search import Glob, Grep, ListFiles
from dragoman.coder.tools.subagent import Delegate
from dragoman.coder.tools.web_fetch import WebFetch
from dragoman.coder.tools.write import EditFile, WriteFile
from dragoman.errors import INVALID_PARAMS, RequestFailed
from dragoman.host.environment import child_environment
from dragoman.host.paths import Roots
from dragoman.vocabulary.content import Content, Text
from dragoman.vocabulary.events import AnyEvent, Cost, Idle, Notice
from dragoman.vocabulary.identity import LOCAL, Identity

_RULE: Final = "rule"
_REVOKED: Final = "revoked"


class SessionRuntime:
    """What a session does with its prompts."""

    def __init__(self, coder: CodingSession) -> None:
        self.session: Final[Session] = coder.session
        self.changes: Final = Changes()
        self.log: Final = coder.log
        self._coder = coder
        self._setup = coder.setup
        self._context: Context | None = None
        self._toolbox: Toolbox | None = None
        self._gate: PermissionGate | None = None
        self._budget: ContextBudget | None = None
        self._spending = Spending()
        workspace_tools: list[Tool] = [*(ReadFile(), ListFiles(), Glob(), Grep(), WriteFile(), EditFile(), Bash())]
        self._everyones_tools: Final[list[Tool]] = [*workspace_tools, WebFetch()]
        # Without a data folder there is no place for a view.
        home = coder.setup.home
        self._sandbox = self._made_sandbox(home) if home else None
        self._sandboxed_tools: Final[list[Tool]] = (
            [] if self._sandbox is None else [Sandboxed(tool, self._sandbox) for tool in workspace_tools]
        )
        # A helper does not talk to the user, and has no helpers.
        self._own_tools: Final[list[Tool]] = [
            *(
                Delegate(lambda: self.model, self._hands, self._helper_system, lambda: self._spending),
                UpdatePlan(),
                AskUser(),
            )
        ]
        # A mode for this turn alone, and whose turn it is: all who have prompted in it.
        self._turn_mode = ""
        self._identity = LOCAL
        self._narrowed: set[Identity] = set()
        self._pinned: Roots | None = None

    def _made_sandbox(self, home: str) -> Sandbox:
        environment, limits = self._command_environment(), self._setup.sandbox_limits
        return Sandbox(self.session, self._roots, home, environment, limits, self.log, self.identity, self._private)

    @property
    def model(self) -> Model:
        """The model that is chosen now."""
        return self._coder.model

    @property
    def own_commands(self) -> dict[str, slash_commands.UserCommand]:
        """The user's own commands."""
        return self._coder.own_commands

    def mode(self) -> str:
        """The mode as it is now, within the limits of those who prompted."""
        return nearest_mode(self._wanted_mode(), self._identity)

    def _wanted_mode(self) -> str:
        return self._turn_mode or str(self.session.option("mode"))

    def identity(self) -> Identity:
        """Whose turn it is, within the limits of all who have prompted in it."""
        return self._identity

    # -- a turn ------------------------------------------------------------------------------------------------------

    def turn(self, prompt: Prompt) -> AsyncGenerator[AnyEvent, None]:
        """One prompt, to its end."""
        self._identity = prompt.identity
        # What was a folder when it was opened can be a link now.
        check_folders(self._roots().real, self._identity)
        check_not_private(self._roots().real, self._setup.private)
        self.changes.begin_turn()
        self._turn_mode = ""
        name, arguments = prompt.command
        content, attached = prompt.content, prompt.content[1:]
        if name == "plan" and (arguments or attached):
            self._turn_mode, content = "plan", [*([Text(arguments)] if arguments else []), *attached]
        elif name in self.own_commands:
            content = [Text(self.own_commands[name].prompt(arguments)), *attached]
        elif name in slash_commands.BUILT_IN:
            return slash_actions.run(name, arguments, self)
        return self._work(prompt.message_id, content)

    async def _work(self, message_id: str, content: Sequence[Content]) -> AsyncGenerator[AnyEvent, None]:
        for remark in self._coder.remarks():
            yield remark
        if self.mode() != self._wanted_mode() and self._identity not in self._narrowed:
            self._narrowed.add(self._identity)
            yield Notice("warning", narrower_notice(self._wanted_mode(), self.mode(), self._identity))
        context, toolbox, budget = await self._ready()
        await self._coder.servers_started()
        model = self.model
        toolbox.begin_turn(self._desk())
        model.begin_turn()
        system = await self._system_prompt()
        if unseen := unseen_notice(content, model.name, model.sees):
            yield Notice("warning", unseen)
        said = ContextUserMessage(message_id, await seen(content, self._roots(), model.sees, self._is_withheld))
        turn = loop.turn(
            model,
            context,
            toolbox,
            said,
            system=system,
            thought_level=self._thought_level(),
            model_calls=self._setup.model_calls,
            budget=budget,
            spending=self._spending,
            interjected=self._interjected,
        )
        try:
            async with aclosing(turn) as events:
                async for event in events:
                    if isinstance(event, Idle) and self._sandbox is not None:
                        await self._sandbox.settle()
                        await self._report_sandbox(context)
                    yield event
        finally:
            if self._sandbox is not None:
                self._sandbox.leave()
                await self._report_sandbox(context)

    async def _system_prompt(self) -> str:
        """Return the system prompt for the mode that counts now; reads the project's notes."""
        return await asyncio.to_thread(system_prompt, self._roots(), self.mode(), self._is_withheld)

    async def _report_sandbox(self, context: Context) -> None:
        """Tell the model what became of the sandbox that has ended, if there was one."""
        report = "" if self._sandbox is None else self._sandbox.take_report()
        if report:
            await context.add(report_item(report))
            await session_core(self.session).record_note(SANDBOX, SETTLED)

    async def _report_lost_sandbox(self, context: Context) -> None:
        """Tell the model of a sandbox that has ended with the process that this session was open in."""
        states = await self.session.recall(SANDBOX)
        report = lost_report(states[-1]) if states else ""
        if report:
            await context.add(report_item(report))
            await session_core(self.session).record_note(SANDBOX, SETTLED)

    async def close(self) -> None:
        """The session is over: what a cancelled turn has left goes."""
        if self._sandbox is not None:
            await self._sandbox.left()

    def _thought_level(self) -> str:
        return next((o.current_value for o in self.session.options if is_option(o, "thought_level")), "")

    async def _interjected(self) -> list[ContextUserMessage]:
        roots, sees = self._roots(), self.model.sees
        heard = await self.session.queued_prompts()
        for prompt in heard:
            self._identity = self._identity.joined(prompt.identity)
        if heard:
            await asyncio.to_thread(check_folders, self._roots().real, self._identity)
        return [
            ContextUserMessage(prompt.message_id, await seen(prompt.content, roots, sees, self._is_withheld))
            for prompt in heard
        ]

    def _is_withheld(self, path: str) -> bool:
        return is_withheld(path, self._desk())

    async def _ready(self) -> tuple[Context, Toolbox, ContextBudget]:
        if self._context is None or self._toolbox is None or self._budget is None:
            self._context = await load(self.session)
            rules = await self._recalled_rules()
            self._gate = PermissionGate(
                self.mode, rules, self._remember, fetches=self._setup.fetches, identity=self.identity
            )
            self._toolbox = Toolbox(self._all_tools, self._gate, self._desk(), log=self.log)
            self._spending = await spending.load(self.session)
            self._budget = ContextBudget(self._context, self.session.emit)
            await self._report_lost_sandbox(self._context)
        return self._context, self._toolbox, self._budget

    def _desk(self) -> ToolContext:
        environment = self._command_environment()
        home = os.path.realpath(self._setup.home) if self._setup.home else ""
        roots = self._roots()
        protected, private = tuple(self._setup.protected_paths()), self._private()
        limits, guardian = self._setup.sandbox_limits, self._setup.guardian()
        rig = DirectExecution(self.session, roots, self.mode, environment, home, limits, protected, private)
        return ToolContext(self.session, roots, environment, guardian, self.changes, rig, home, protected, private)

    def _private(self) -> tuple[str, ...]:
        """What of a server is out of reach, by its real paths."""
        return tuple(os.path.realpath(path) for path in self._setup.private)

    def _roots(self) -> Roots:
        """The roots as they were with the first prompt: what a command puts in the place of one is none."""
        if self._pinned is None or self._pinned.given != tuple(self.session.roots):
            self._pinned = Roots(self.session.roots)
        return self._pinned

    def _command_environment(self) -> dict[str, str]:
        return command_environment(child_environment(self._setup.environment))

    def _tools(self) -> list[Tool]:
        """What a helper has as well. Names of servers' tools cannot be ours, but ours would win."""
        return [*self._coder.foreign_tools(), *self._sandboxed_tools, *self._everyones_tools]

    def _all_tools(self) -> list[Tool]:
        return [*self._tools(), *self._own_tools]

    async def _helper_system(self) -> str:
        return await asyncio.to_thread(system_prompt, self._roots(), self.mode(), self._is_withheld, for_helper=True)

    def _hands(self, label: str) -> Toolbox:
        assert self._gate is not None
        return Toolbox(self._tools, self._gate, self._desk(), label, self.log)

    # -- for the commands --------------------------------------------------------------------------------------------

    async def compact(self) -> Compaction:
        """Replace the context by a summary."""
        context, toolbox, budget = await self._ready()
        await context.settle()
        # As in a turn: providers refuse a history with calls whose tools the request does not define.
        budget.set_setting(await self._system_prompt(), toolbox.cards(), self.model.window)
        compaction = await budget.compact(self.model)
        for used in compaction.used:
            await self._spending.add(used)
        return compaction

    async def forget(self) -> None:
        """An empty context."""
        context, _, budget = await self._ready()
        await context.forget()
        budget.reset()

    async def fullness(self) -> tuple[int, int | None, int]:
        """Tokens, window, items."""
        context, _, budget = await self._ready()
        return budget.tokens(), self.model.window, len(context.items)

    def cost(self) -> Cost | None:
        """What the session has cost so far; None where no model has told it. Known after `fullness`."""
        cost = self._spending.cost()
        return cost if isinstance(cost, Cost) else None

    async def rules(self) -> list[RememberedRule]:
        """What was always allowed or forbidden."""
        await self._ready()
        assert self._gate is not None
        return list(self._gate.rules)

    async def revoke(self, index: int) -> RememberedRule:
        """Take a rule back."""
        await self._ready()
        assert self._gate is not None
        rule = self._gate.rules.pop(index)
        await session_core(self.session).record_note(_REVOKED, list(rule))
        return rule

    def choices(self, name: str) -> list[str]:
        """Return the modes or models that the identity of the prompt may choose from."""
        known = [
            choice.value for option in self.session.options if is_option(option, name) for choice in option.choices()
        ]
        return [mode for mode in known if mode in allowed_modes(self._identity)] if name == "mode" else known

    async def set_option(self, name: str, value: str) -> None:
        """Choose a mode or a model."""
        known = self.choices(name)
        if name == "mode":
            check_mode(value, self._identity)
        if name == "model":
            session_core(self.session).options = self._coder.options_with_model(value)
            return
        if value not in known:
            raise RequestFailed(INVALID_PARAMS, f"There is no such {name}; there are {', '.join(known)}")
        session_core(self.session).options = [
            replace(option, current_value=value) if is_option(option, name) else option
            for option in self.session.options
        ]

    async def undo(self) -> Undone:
        """Put back what the last turn that wrote anything has written; to a confined identity nothing protected."""
        desk = self._desk()
        confined = self._identity.confined
        return await asyncio.to_thread(self.changes.undo, lambda place: confined and writing(place, desk).guarded)

    async def servers_text(self) -> str:
        """The MCP servers, in words."""
        return await self._coder.servers_text()

    # -- rules -------------------------------------------------------------------------------------------------------

    async def _recalled_rules(self) -> list[RememberedRule]:
        """The rules of this session, as its log has them."""
        revoked = _rules(await self.session.recall(_REVOKED))
        rules: list[RememberedRule] = []
        for rule in _rules(await self.session.recall(_RULE)):
            if rule in revoked:
                revoked.remove(rule)
            else:
                rules.append(rule)
        return rules

    async def _remember(self, rule: RememberedRule) -> None:
        await session_core(self.session).record_note(_RULE, list(rule))


def _rules(notes: Sequence[object]) -> list[RememberedRule]:
    """Rules as they were kept; those of earlier releases have three parts."""
    kept = [note for note in notes if isinstance(note, list) and len(note) in (3, 4)]
    return [RememberedRule(*cast(tuple[Literal["allow", "deny"], str, str], tuple(note))) for note in kept]
