"""Mode `sandbox`: everything happens in a view of the workspace, and at the end of the turn there is one question.

The model has `sandbox_*` tools and none of the plain ones. The view is opened with the first of them. What the user
agrees to is brought to the workspace: all of it, nothing, or file by file where the user chooses that
(`file_by_file`). The view is thrown away when all of it was applied; what was refused stays in it, so that the next
turn goes on from there, and is asked about again once something in the view has changed. Nothing is agreed to that was
not shown (`change_review`): changes that do not fit in one question are asked in several, and all of them need a yes; a
link that leads out of the workspace, or what cannot be shown, is refused without a question.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final, NamedTuple

from dragoman.agent.permission import YES_OR_NO
from dragoman.agent.session import Session, session_core
from dragoman.agent.tool import ToolCall
from dragoman.coder.change_review import NotShowable, pages_of
from dragoman.coder.change_units import ChangeUnit, units_of, with_folders
from dragoman.coder.changes import Changes
from dragoman.coder.decision_log import DecisionLog, answered_by
from dragoman.coder.execution import SandboxExecution, ViewRoots
from dragoman.coder.file_by_file import FILE_BY_FILE, can_be_chosen, choose_units
from dragoman.coder.identity_limits import may_answer
from dragoman.coder.permissions import Approved, JudgedCall, leaves_confinement
from dragoman.coder.sandbox_report import (
    APPLYING,
    DISCARDED,
    NOTHING_CHANGED,
    OPENED,
    SANDBOX,
    SETTLED,
    STOPPED,
    applied_report,
    conflict_report,
    failed_report,
    partly_applied_report,
    refused_report,
    unasked_report,
)
from dragoman.coder.tools.contract import BadInput, Preview, Tool, ToolContext, ToolOutcome
from dragoman.coder.tools.result_text import title_text
from dragoman.errors import WorldError
from dragoman.host.open_view import open_view
from dragoman.host.paths import Roots
from dragoman.host.resources import ResourceLimits
from dragoman.host.sandbox import probe
from dragoman.host.scratch_dir import ScratchDir
from dragoman.host.snapshot import SnapshotEntry
from dragoman.host.text import visible
from dragoman.host.view import View, ViewChange, ViewRefused
from dragoman.permissions.decision import Decision
from dragoman.permissions.facts import Action, ActionKind
from dragoman.vocabulary.identity import LOCAL, Identity, Needs

PREFIX: Final = "sandbox_"
# Beside the tool calls of the model there is one of ours at the end, which carries the question.
APPLY: Final = "apply_changes"
# There is no "always" to changes that are not known yet.
_ONCE: Final = tuple(option for option in YES_OR_NO if not option.kind.endswith("_always"))
_MOST_REASONS: Final = 20


class Sandbox:
    """The view of a session: opened by a turn, and there until all of it was applied or it is thrown away."""

    def __init__(
        self,
        session: Session,
        roots: Callable[[], Roots],
        home: str,
        environment: Mapping[str, str],
        limits: ResourceLimits | None = None,
        log: DecisionLog | None = None,
        identity: Callable[[], Identity] = lambda: LOCAL,
        private: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """`identity` is whose turn it is, `log` where the answers are kept, `private` what no command may see."""
        self._private = private
        self._limits = limits
        self._log = log or DecisionLog(session)
        self._identity = identity
        self._session = session
        self._roots = roots
        self._home = home
        self._environment = environment
        # What the model has to be told of the last view; empty: nothing, or it was told.
        self._report = ""
        self._opening: asyncio.Future[_Opened] | None = None
        # Whether it was used in this turn, and since its changes were asked about last.
        self._is_touched = self._is_unasked = False
        # What is in the view and not in the workspace, and what of it the user was asked about.
        self._refused: frozenset[_ChangeKey] = frozenset()
        self._asked_about: frozenset[_ChangeKey] = frozenset()
        self._leaving: set[asyncio.Future[None]] = set()

    async def view(self) -> View:
        """Return the view, opened now if it is not open; `WorldError` if there can be none here."""
        self._is_touched = self._is_unasked = True
        if self._opening is None:
            self._opening = asyncio.ensure_future(asyncio.to_thread(self._open))
            await session_core(self._session).record_note(SANDBOX, OPENED)
        return (await asyncio.shield(self._opening)).view

    async def view_context(self, context: ToolContext) -> ToolContext:
        """Return the context of tools that work in the view."""
        view = await self.view()
        roots = ViewRoots(view, self._roots())
        execution = SandboxExecution(view, roots, self._environment, self._home, self._limits, self._private())
        return context._replace(roots=roots, changes=Changes(), execution=execution)

    @property
    def state(self) -> str:
        """The state as the session's log has it."""
        return SETTLED if self._opening is None else OPENED

    async def settle(self, *, again: bool = False) -> None:
        """End the turn: ask about what has changed, apply it to the workspace or not; discard the view if all of it
        was applied, or nothing changed. What was refused before is not asked about alone, but `again`."""
        if self._opening is None or not (self._is_unasked or again):
            return
        try:
            view = await self.view()
            changes = await asyncio.to_thread(view.changes)
            if not changes:
                self._report, self._refused = NOTHING_CHANGED, frozenset()
            elif again or not self._asked_about.issuperset(map(_key, changes)):
                self._report = await self._ask(view, changes)
                self._asked_about = frozenset(map(_key, changes))
            is_done = not self._refused
        except WorldError as error:
            is_done = True
            self._report = failed_report(str(error))
            await self._session.notice(f"The changes of the sandbox are lost: {error}", severity="error")
        self._is_unasked = False
        if is_done:
            self.leave()
            await self.wait_until_discarded()

    async def pending(self) -> list[ViewChange]:
        """Return what is in the sandbox and not in the workspace; `WorldError` if it cannot be listed."""
        if self._opening is None:
            return []
        return await asyncio.to_thread((await asyncio.shield(self._opening)).view.changes)

    async def discard(self) -> bool:
        """Throw the sandbox away on the user's word; False: there was none."""
        if self._opening is None:
            return False
        self._report = DISCARDED
        self.leave()
        await self.wait_until_discarded()
        return True

    def stop(self) -> None:
        """Note for the model that a turn has ended before its changes were asked about. The view stays, if there is
        one."""
        opening = self._opening
        if opening is not None and opening.done() and (opening.cancelled() or opening.exception() is not None):
            self.leave()
        elif self._is_touched and self._is_unasked:
            self._report = self._report or STOPPED
        elif not self._is_unasked and not self._refused:
            self.leave()
        self._is_touched = False

    def take_report(self) -> str:
        """Return the report about the last view for the model, once; empty: there is none left."""
        report, self._report = self._report, ""
        return report

    def leave(self) -> None:
        """Throw the view away, and wait for nothing: it may be large, or still on its way."""
        opening, self._opening = self._opening, None
        self._refused = self._asked_about = frozenset()
        self._is_touched = self._is_unasked = False
        if opening is not None:
            leaving = asyncio.ensure_future(_discard(opening))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    async def wait_until_discarded(self) -> None:
        """Wait until every view is discarded."""
        if self._leaving:
            await asyncio.wait(self._leaving)

    def _open(self) -> "_Opened":
        if probe().bubblewrap is None:
            raise ViewRefused(f"Mode sandbox is not possible on this machine. {' '.join(probe().lacks)}")
        roots = self._roots()
        _ = roots.folder  # refused where a link stands in the place of a root
        folder = ScratchDir(os.path.join(self._home, "views"))
        try:
            return _Opened(open_view(roots.real, folder=folder.path), folder)
        except BaseException:
            folder.remove()
            raise

    async def _ask(self, view: View, changes: Sequence[ViewChange]) -> str:
        """Show all changes, ask about all of them, and apply what the user agrees to. Return the report for the model;
        `_refused` has what stays in the view."""
        self._refused = frozenset(map(_key, changes))
        refused = await asyncio.to_thread(view.links_out, changes)
        try:
            pages = await asyncio.to_thread(pages_of, changes) if not refused else []
        except NotShowable as error:
            return await self._refuse([str(error)], changes)
        if refused:
            return await self._refuse([f"{conflict.path}: {conflict.reason}." for conflict in refused], changes)
        needs = Needs("sandbox", leave=any(change.is_protected for change in changes))
        if needs.leave and self._identity().confined:
            reason = leaves_confinement(self._identity())
            names = [change.path for change in changes if change.is_protected]
            return await self._refuse([f"{path} is protected: {reason}." for path in names], changes)
        units = units_of(changes) if len(pages) == 1 else []
        options = [*_ONCE, FILE_BY_FILE] if can_be_chosen(units) else _ONCE
        async with AsyncExitStack() as stack:
            asked: list[ToolCall] = []
            for page in pages:
                shown = self._session.tool(
                    page.title,
                    kind="edit",
                    name=APPLY,
                    status="pending",
                    content=page.content,
                    locations=page.locations,
                )
                asked.append(await stack.enter_async_context(shown))
                title = shown.title
                async with self._log.asking(self._identity(), mode="sandbox", tool=APPLY, kind="edit", title=title):
                    answer = await self._session.ask_permission(title, tool=shown, options=options, needs=needs)
                is_yes = bool(answer) and may_answer(answer.identity, needs)
                chosen = answer.option.kind if answer.option else None
                feedback = visible(answer.feedback)
                decision = Decision("allow" if is_yes else "deny", "", "user", option=chosen, feedback=feedback)
                await self._record(decision, answered_by(answer, self._identity()), shown.title)
                if answer.option is not None and answer.option.option_id == FILE_BY_FILE.option_id:
                    return await self._ask_each(view, changes, units, asked)
                if not is_yes:
                    await _end(asked, ["Not applied; the workspace is as it was."], applied=0)
                    return refused_report(changes, feedback)
            return await self._apply(view, changes, asked)

    async def _ask_each(
        self, view: View, changes: Sequence[ViewChange], units: Sequence[ChangeUnit], asked: Sequence[ToolCall]
    ) -> str:
        """Ask about each of the choices, and apply those that the user agrees to."""
        chosen = await choose_units(self._session, units, self._log, self._identity)
        accepted = with_folders(chosen, changes)
        if not accepted:
            await _end(asked, ["Not applied; the workspace is as it was."], applied=0)
            return refused_report(changes)
        return await self._apply(view, accepted, asked, refused=[one for one in changes if one not in accepted])

    async def _apply(
        self,
        view: View,
        changes: Sequence[ViewChange],
        asked: Sequence[ToolCall],
        refused: Sequence[ViewChange] = (),
    ) -> str:
        """Apply to the end, even if the turn is cancelled meanwhile: a thread cannot be stopped half way."""
        for shown in asked:
            await shown.start()
        await session_core(self._session).record_note(SANDBOX, APPLYING)
        journal = session_core(self._session).journal
        if journal is not None:
            await journal.log.flush()  # on disk before anything of the workspace changes
        applying = asyncio.ensure_future(asyncio.to_thread(view.apply, changes))
        cancelled = False
        while not applying.done():
            try:
                await asyncio.shield(applying)
            except asyncio.CancelledError:
                cancelled = True
        conflicts = applying.result()
        # A file that was changed in the workspace meanwhile could never be applied: after a conflict the view goes.
        self._refused = frozenset() if conflicts else frozenset(map(_key, refused))
        if conflicts:
            self._report = conflict_report([*changes, *refused], conflicts)
        else:
            self._report = partly_applied_report(changes, refused) if refused else applied_report(changes)
        self._is_unasked = False
        words = [title_text(f"{conflict.path}: {conflict.reason}") for conflict in conflicts]
        if refused and not conflicts:
            words = [f"Applied {len(changes)} of {len(changes) + len(refused)}; the others stay in the sandbox."]
        await _end(asked, words, applied=0 if conflicts else len(changes))
        if cancelled:
            raise asyncio.CancelledError
        return self._report

    async def _record(self, decision: Decision, identity: Identity, title: str) -> None:
        await self._log.record(decision, identity, mode="sandbox", tool=APPLY, kind="edit", title=title)

    async def _refuse(self, reasons: Sequence[str], changes: Sequence[ViewChange]) -> str:
        """Say why there is no question. Each reason is a sentence about one thing. Return the report for the model."""
        await self._record(Decision("deny", reasons[0], "policy"), self._identity(), reasons[0])
        named = [title_text(reason) for reason in reasons[:_MOST_REASONS]]
        more = [f"… and {len(reasons) - len(named)} more."] if len(reasons) > len(named) else []
        words = ["The changes of the sandbox were not applied; the workspace is as it was.", *named, *more]
        async with self._session.tool("Apply changes to the workspace", kind="edit", name=APPLY) as shown:
            await _end([shown], ["\n".join(words)], applied=0)
        return unasked_report(changes, reasons)


async def _end(asked: Sequence[ToolCall], words: Sequence[str], *, applied: int) -> None:
    """End the calls that carried the questions: the last of them says what came of it."""
    for word in words:
        await asked[-1].add(word)
    for shown in asked:
        await shown.end("completed" if applied else "failed", raw_output={"applied": applied})


class _ChangeKey(NamedTuple):
    """A change as it was asked about: the same path with other content is another one."""

    path: str
    kind: str
    after: SnapshotEntry | None


def _key(change: ViewChange) -> _ChangeKey:
    return _ChangeKey(change.path, change.kind, change.after)


class _Opened(NamedTuple):
    """A view, and where it lies."""

    view: View
    folder: ScratchDir


async def _discard(opening: "asyncio.Future[_Opened]") -> None:
    try:
        opened = await opening
    except WorldError:
        return

    def discard() -> None:
        opened.view.close()
        opened.folder.remove()

    await asyncio.to_thread(discard)


class Sandboxed:
    """A tool that works in the view."""

    does: ActionKind = "sandboxed"

    def __init__(self, tool: Tool, sandbox: Sandbox) -> None:
        self.name = PREFIX + tool.name
        self.kind = tool.kind
        self.description = f"{tool.description} In the sandbox: it changes nothing until the user agrees at the end."
        self.schema: dict[str, Any] = tool.schema
        self._tool = tool
        self._sandbox = sandbox

    def check(self, call: JudgedCall) -> None:
        self._tool.check(call)

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        preview = await self._tool.preview(call, await self._view_context(context))
        blocked_reason = next((act.blocked_reason for act in preview.acts if act.blocked_reason), "")
        # What is read goes to the model at once, and is asked about as it is elsewhere; what is written, at the end.
        acts = [
            Action(
                "sandboxed",
                act.subject,
                guarded=act.guarded and act.kind == "read",
                blocked_reason=blocked_reason,
                paths_in_workspace=act.paths_in_workspace,
                kind_in_view=act.kind,
            )
            for act in preview.acts
        ]
        return preview._replace(acts=acts)

    async def run(self, approved: Approved, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        return await self._tool.run(approved, shown, await self._view_context(context))

    async def _view_context(self, context: ToolContext) -> ToolContext:
        try:
            return await self._sandbox.view_context(context)
        except WorldError as error:
            raise BadInput(str(error)) from None
