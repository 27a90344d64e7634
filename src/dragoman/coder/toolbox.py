"""The calls of one response: shown, judged, run, and each with a result for the model, whatever happens."""

import asyncio
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.agent.author_handlers import warn
from dragoman.agent.permission import YES_OR_NO
from dragoman.agent.session import Session, session_core
from dragoman.agent.tool import ToolCall
from dragoman.coder.context import ContextToolCall, ContextToolResult
from dragoman.coder.decision_log import DecisionLog, answered_by
from dragoman.coder.identity_limits import may_answer
from dragoman.coder.kept_results import RESULT_CHARACTERS
from dragoman.coder.kept_rules import RuleScope
from dragoman.coder.loop import Finished
from dragoman.coder.models.contract import ToolSpec
from dragoman.coder.permissions import (
    DENIED,
    Approved,
    Ask,
    JudgedCall,
    Look,
    PermissionGate,
    UserAnswer,
    digest_of,
    offers,
    refusal_text,
    rules_for,
)
from dragoman.coder.tools.contract import BadInput, OutOfReach, Preview, Tool, ToolContext, ToolOutcome
from dragoman.coder.tools.result_text import cut, shown_text, title_text
from dragoman.errors import LinkClosed
from dragoman.host.text import visible
from dragoman.permissions.decision import Decision
from dragoman.permissions.facts import Action
from dragoman.store.contract import StoreFailed
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import HELPER_OF
from dragoman.vocabulary.identity import Identity, Needs
from dragoman.vocabulary.services import PermissionOption
from dragoman.vocabulary.tools import ContentItem

if TYPE_CHECKING:
    from dragoman.coder.hook_calls import CallHooks

STOPPED: Final = "The user has stopped this call."
# The same call with the same input, so many times in a row, is a model that turns in circles.
CIRCLE: Final = 3
# A model that waits for a command calls these again and again.
_MAY_REPEAT: Final = frozenset({"bash_output"})
# Calls that run at the same time: those that only read, and helpers, which cost a model each.
READERS: Final = 32
HELPERS: Final = 4
_HELPER: Final = "agent"
# With a longer rule, no "always" option is offered: a user would not read what it covers.
RULE_CHARACTERS: Final = 300


_log = logging.getLogger(__name__)


class _MustAsk(Exception):
    """A call needs the user's answer."""


class Toolbox:
    """The tools of one session, behind its gate."""

    def __init__(
        self,
        tools: Callable[[], Sequence[Tool]],
        gate: PermissionGate,
        tool_context: ToolContext,
        label: str = "",
        log: DecisionLog | None = None,
        touched: Callable[[str], None] = lambda path: None,
        questions: asyncio.Lock | None = None,
        hooks: "CallHooks | None" = None,
        before_change: Callable[[Sequence[Action]], Awaitable[None]] | None = None,
        helper_of: str = "",
    ) -> None:
        # The call that has started the helper whose calls these are; empty: they are the agent's own.
        self._helper_of = helper_of
        # What runs around each call; None: there are no hooks.
        self._hooks = hooks
        # Called with what an approved call would do, before it runs: what it may change is kept first.
        self._before_change = before_change
        # Held while a question is open: the user is asked one thing at a time, also by helpers that run together.
        self._questions = questions or asyncio.Lock()
        # Where every decision is kept.
        self._log = log or DecisionLog(tool_context.session)
        # Called with the real path of every file that a call reads or writes.
        self._touched = touched
        # Whose calls these are, where they are not the agent's own.
        self._label = label
        # What there is now: servers come and go.
        self._look_up = tools
        self._gate = gate
        self._tool_context = tool_context
        self._last: tuple[str, dict[str, object]] | None = None
        self._times = 0

    @property
    def session(self) -> Session:
        return self._tool_context.session

    def __repr__(self) -> str:
        return f"<Toolbox {self._label or 'agent'}: {len(self._look_up())} tools, mode {self._gate.mode}>"

    @property
    def _tools(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self._look_up()}

    def begin_turn(self, tool_context: ToolContext, hooks: "CallHooks | None" = None) -> None:
        """Begin the turn of a new prompt: refusals of the last turn are forgotten, and the folders may be others."""
        self._tool_context = tool_context
        self._hooks = hooks
        self._gate.begin_turn()
        self._last, self._times = None, 0

    def specs(self) -> list[ToolSpec]:
        """Return the tools that the present mode offers."""
        return [ToolSpec(tool.name, tool.description, tool.schema) for tool in self._tools.values() if self._has(tool)]

    async def run(self, calls: Sequence[ContextToolCall], finished: Finished) -> None:
        """Run them: neighbours that only read together, helpers as well, the others one after the other.

        `finished` is given each result.
        """
        tools = self._tools

        async def run_one(call: ContextToolCall) -> None:
            await finished(await self._run_call(call))

        for at_once, group in groupby(calls, lambda call: self._at_once(tools.get(call.tool))):
            if at_once > 1:
                await _run_together(run_one, list(group), at_once)
                continue
            for call in group:
                await run_one(call)

    def _at_once(self, tool: Tool | None) -> int:
        """Return how many calls of this kind may run at the same time."""
        if tool is not None and tool.does == "read":
            return READERS
        # In a view commands would wait for each other, and the changes of several helpers are one question.
        return HELPERS if tool is not None and tool.name == _HELPER and self._gate.mode != "sandbox" else 1

    async def _run_call(self, asked: ContextToolCall) -> ContextToolResult:
        tool = self._tools.get(asked.tool)
        call = JudgedCall(asked.id, asked.tool, asked.input)
        outcome: ToolOutcome | None = None
        if tool is None:
            outcome = ToolOutcome(f"There is no tool {asked.tool}.", failed=True)
        elif not self._has(tool):
            decision = Decision("deny", f"mode {self._gate.mode} does not allow it")
            outcome = ToolOutcome(refusal_text(decision), failed=True, raw={"reason": decision.reason})
            await self._record(decision, self._gate.identity, tool, self._label + title_text(asked.tool))
        elif self._repeats(asked):
            text = f"{asked.tool} was called with the same input {CIRCLE} times in a row, and was stopped"
            await self.session.notice(text, severity="warning")
            outcome = ToolOutcome(f"{text}. Do something else.", failed=True)
        else:
            try:
                tool.check(call)
                preview = await tool.preview(call, self._tool_context)
            except BadInput as error:
                outcome = failure_of(error)
                if isinstance(error, OutOfReach):
                    refusal = Decision("deny", str(error), "policy")
                    await self._record(refusal, self._gate.identity, tool, self._label + title_text(asked.tool))
        if outcome is not None or tool is None:
            assert outcome is not None
            await self._show_failed(asked, tool, outcome)
        else:
            outcome = await self._show_and_run(tool, call, preview)
        return ContextToolResult(asked.id, asked.tool, outcome.text, outcome.failed, list(outcome.content))

    async def _show_failed(self, asked: ContextToolCall, tool: Tool | None, outcome: ToolOutcome) -> None:
        kind = "other" if tool is None else tool.kind
        title = self._label + (title_text(asked.tool).strip() or "(a tool without a name)")
        shown = self.session.tool(title, kind=kind, name=asked.tool, raw_input=asked.input, id=asked.id)
        async with self._with_helper(shown):
            await self._end(shown, outcome)

    def _with_helper(self, shown: ToolCall) -> ToolCall:
        """Have a call name the call that has started its helper, if it is a helper's."""
        if self._helper_of:
            shown.opening = replace(shown.opening, meta={HELPER_OF: self._helper_of})
        return shown

    async def _show_and_run(self, tool: Tool, call: JudgedCall, preview: Preview) -> ToolOutcome:
        shown = self.session.tool(
            self._label + preview.title,
            kind=tool.kind,
            name=tool.name,
            status="pending",
            content=list(preview.content) or UNSET,
            locations=preview.locations,
            raw_input=call.input,
            id=call.id,
        )
        async with self._with_helper(shown):
            try:
                outcome = await self._judge_and_run(tool, call._replace(acts=preview.acts, stamp=preview.stamp), shown)
            except (StoreFailed, LinkClosed):
                raise
            except BadInput as error:
                outcome = failure_of(error)
            except Exception as error:
                # A bug of ours: the traceback goes to stderr, the model only gets that the tool failed.
                warn("".join(traceback.format_exception(error)))
                outcome = ToolOutcome("The tool failed.", failed=True)
            outcome = await self._shortened(tool, outcome)
            await self._end(shown, outcome)
        return outcome

    async def _shortened(self, tool: Tool, outcome: ToolOutcome) -> ToolOutcome:
        """Return an outcome of which the model is shown no more than about 10,000 tokens; the whole is kept in a file.

        A file needs no copy: `read_file` itself says how to read on.
        """
        results = self._tool_context.results
        if len(outcome.text) <= RESULT_CHARACTERS or tool.name.endswith("read_file"):
            return outcome
        if results is None:
            return outcome._replace(text=cut(outcome.text, RESULT_CHARACTERS))
        return outcome._replace(text=await asyncio.to_thread(results.shorten, outcome.text))

    async def _record(self, decision: Decision, identity: Identity, tool: Tool, title: str) -> None:
        mode = self._gate.mode
        _log.debug("call of %s in mode %s: %s by %s", tool.name, mode, decision.verdict, decision.by)
        await self._log.record(decision, identity, mode=mode, tool=tool.name, kind=tool.kind, title=title)

    async def _judge_and_run(self, tool: Tool, call: JudgedCall, shown: ToolCall) -> ToolOutcome:
        if self._hooks is not None:
            call = await self._hooks.before(tool, call, shown, self._tool_context)

        async def look() -> JudgedCall:
            now = await tool.preview(call, self._tool_context)
            call_now = call._replace(acts=now.acts, stamp=now.stamp)
            if digest_of(call_now) != digest_of(call):
                await shown.update(
                    title=self._label + now.title, content=list(now.content), locations=list(now.locations)
                )
            return call_now

        decider = self._gate.identity

        async def ask(asked: JudgedCall) -> UserAnswer:
            nonlocal decider
            needs = Needs(self._gate.mode, leave=any(act.guarded for act in asked.acts))
            mode, title = self._gate.mode, shown.title
            options = choices(asked, self.session.cwd, keeps=self._gate.keeps_rules)
            if not self._gate.remembers(asked):
                options = [option for option in options if option.kind != "allow_always"]
            if self._hooks is not None:
                await self._hooks.notify(title)
            why = asked.hooked.reason if asked.hooked.word == "ask" else UNSET
            async with self._log.asking(decider, mode=mode, tool=tool.name, kind=tool.kind, title=title):
                answer = await self.session.ask_permission(
                    title, tool=shown, description=why, options=options, needs=needs
                )
            decider = answered_by(answer, decider)
            # A yes counts from those who could do it themselves; a gateway has asked no others.
            if answer and not may_answer(answer.identity, needs):
                return UserAnswer(None)
            kind = answer.option.kind if answer.option else None
            # Who is confined says yes to a confined call, and not to what others may do with it later.
            is_others = answer.identity.confined and not self._gate.identity.confined
            kind = "allow_once" if kind == "allow_always" and is_others else kind
            scope = scope_of(answer.option.option_id) if answer.option else "session"
            return UserAnswer(kind, visible(answer.feedback), scope)

        verdict = await self._approve(call, look, ask)
        # Before it runs: what was allowed is on its way to the disk whatever comes of it.
        await self._record(verdict.decision if isinstance(verdict, Approved) else verdict, decider, tool, shown.title)
        if not isinstance(verdict, Approved):
            # The reason is told: without it the model would try the same in other words.
            text = refusal_text(verdict)
            if shown.showed:
                await shown.add(text)
            return ToolOutcome(text, failed=True, raw={"reason": verdict.reason})
        for act in verdict.call.acts:
            if act.kind in ("read", "edit"):
                self._touched(act.subject)
        if self._before_change is not None:
            await self._before_change(verdict.call.acts)
        work = self._run(tool, verdict, shown)
        return await (work if self._hooks is None else self._hooks.run(verdict.call, shown, work))

    async def _approve(self, call: JudgedCall, look: Look, ask: Ask) -> Approved | Decision:
        """Have the gate judge a call. One that must be asked about is judged anew when no other question is open."""

        async def postpone(asked: JudgedCall) -> UserAnswer:
            raise _MustAsk

        try:
            return await self._gate.approve(call, look, postpone)
        except _MustAsk:
            was_open = self._questions.locked()
            async with self._questions:
                return await self._gate.approve(await look() if was_open else call, look, ask)

    async def _run(self, tool: Tool, approved: Approved, shown: ToolCall) -> ToolOutcome:
        """Run it in a task of its own, which the user can stop without stopping the turn."""
        stopped = asyncio.Event()
        await shown.start(stopped.set)
        if tool.does != "read":
            # Nothing acts for a session that another process has taken over: its log refuses the call then.
            await session_core(self.session).commit()
        began = time.monotonic()
        running = asyncio.ensure_future(tool.run(approved, shown, self._tool_context))
        running.add_done_callback(lambda _: _log.debug("%s ran for %.2f s", tool.name, time.monotonic() - began))
        stopping = asyncio.ensure_future(stopped.wait())
        try:
            await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                return running.result()
        finally:
            stopping.cancel()
            if not running.done():
                running.cancel()
                await asyncio.wait([running])
            if not running.cancelled():
                running.exception()  # retrieved: where the turn is cancelled as well, that is how it ends
        await shown.end("cancelled")
        return ToolOutcome(STOPPED, failed=True)

    async def _end(self, shown: ToolCall, outcome: ToolOutcome) -> None:
        """Close the call. What it showed itself, a diff or a screen, stays; else its words are shown."""
        if not shown.showed:
            words = [ContentItem(Text(outcome.text))] if outcome.text else []
            await shown.update(content=[*words, *(ContentItem(block) for block in outcome.content)])
        await shown.end(
            "failed" if outcome.failed else "completed", raw_output=UNSET if outcome.raw is None else outcome.raw
        )

    def _has(self, tool: Tool) -> bool:
        return offers(self._gate.mode, tool.does)

    def _repeats(self, asked: ContextToolCall) -> bool:
        same = (asked.tool, asked.input)
        self._times = self._times + 1 if same == self._last else 1
        self._last = same
        return self._times >= CIRCLE and asked.tool not in _MAY_REPEAT


def failure_of(error: BadInput) -> ToolOutcome:
    """Return the outcome for a call that cannot be run, or that no mode allows."""
    # As it is: it may begin with a path.
    return ToolOutcome(f"{DENIED} {error}" if isinstance(error, OutOfReach) else str(error), failed=True)


async def _run_together(
    run: Callable[[ContextToolCall], Awaitable[None]], calls: Sequence[ContextToolCall], at_once: int
) -> None:
    """Run the calls at the same time, so many of them; where one crashes or all are cancelled, none runs on."""
    room = asyncio.Semaphore(at_once)
    has_crashed = False

    async def run_in_room(call: ContextToolCall) -> None:
        nonlocal has_crashed
        async with room:
            if has_crashed:  # this one has its room from the crash, and is cancelled a step later
                return
            try:
                await run(call)
            except BaseException:
                has_crashed = True
                raise

    tasks = [asyncio.ensure_future(run_in_room(call)) for call in calls]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


# How far an "always" or a "never" reaches, by the end of its option's id. The session is the first of its kind, as some
# clients choose the first.
_SCOPES: Final[dict[RuleScope, tuple[str, str]]] = {
    "session": ("", "for this session"),
    "project": ("_project", "in this project"),
    "everywhere": ("_everywhere", "everywhere"),
}


def scope_of(option_id: str) -> RuleScope:
    """Return how far the answer with this option reaches."""
    for scope, (ending, _) in _SCOPES.items():
        if ending and option_id.endswith(ending):
            return scope
    return "session"


def choices(call: JudgedCall, folder: str, *, keeps: bool = False) -> list[PermissionOption]:
    """Return what the user can answer. "Always" says what it covers and for how long; what cannot be read gets none.

    `folder` is where the session works: of a file in it the path from there is shown, or the answers alone fill half a
    screen. `keeps`: an answer can be kept beyond the session.
    """
    files = {act.subject for act in call.acts if act.is_of_file}
    subjects = (rule.subject for rule in rules_for(call, "allow"))
    rules = " and ".join(f"`{_from_folder(one, folder) if one in files else one}`" for one in subjects)
    if not rules or len(rules) > RULE_CHARACTERS or shown_text(rules) != rules or "\n" in rules:
        return [option for option in YES_OR_NO if not option.kind.endswith("_always")]
    found: list[PermissionOption] = []
    for option in YES_OR_NO:
        if not option.kind.endswith("_always"):
            found.append(option)
            continue
        for scope in scopes_for(call) if keeps else _SESSION:
            ending, words = _SCOPES[scope]
            name = f"{option.name} {rules} {words}"
            found.append(replace(option, option_id=option.option_id + ending, name=name))
    return found


def _from_folder(path: str, folder: str) -> str:
    """Return a path as it is written from a folder that it lies in: `./make`, which is no name of a program."""
    top = f"{folder.rstrip('/')}/"
    return f"./{path.removeprefix(top)}" if path.startswith(top) else path


_SESSION: Final[tuple[RuleScope, ...]] = ("session",)


def scopes_for(call: JudgedCall) -> tuple[RuleScope, ...]:
    """Return how far an answer about a call can reach.

    What is about a file is for the session: a rule for one file is not worth a longer list of answers.
    """
    if any(act.is_of_file for act in call.acts):
        return _SESSION
    subjects = [rule.subject for rule in rules_for(call, "allow")]
    is_local = any(_names_program_by_path(one) for one in subjects)
    return ("session", "project") if is_local else ("session", "project", "everywhere")


def _names_program_by_path(subject: str) -> bool:
    """Return whether a command begins with a path from the working folder: another program in each project."""
    program = subject.split(maxsplit=1)[0] if subject.split() else ""
    return "/" in program and not program.startswith("/")
