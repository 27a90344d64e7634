"""Rewind an open session for a client: by `_session/rewind`, or by the command `/rewind`.

Files are put back with the rights of the identity that asks: one that may write nothing may not rewind files, and for
a confined one protected files stay as they are.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, get_args

from msgspec import UNSET

from dragoman.agent.session import caller, session_core
from dragoman.coder.checkpoints.rewinding import Rewinder, RewindOutcome, RewindPlan, failures_answered
from dragoman.coder.identity_limits import check_folders, may_write
from dragoman.coder.session_controls import SessionControls
from dragoman.coder.tools.files import is_withheld, writing
from dragoman.errors import INVALID_PARAMS, INVALID_REQUEST, RequestFailed
from dragoman.host.paths import Place, is_inside
from dragoman.permissions.decision import Decision
from dragoman.store.log_places import Scope
from dragoman.surrogates import replace_lone_surrogates
from dragoman.vocabulary.events import Notice, UsageChanged
from dragoman.vocabulary.identity import Identity
from dragoman.vocabulary.requests import RewindSession, RewoundFile, SessionRewound

if TYPE_CHECKING:
    from dragoman.coder.runtime import SessionRuntime

# Bytes of all diffs of one answer: what is longer has its name only.
DIFF_BYTES: Final = 1024 * 1024


async def answer_rewind(runtime: "SessionRuntime", request: RewindSession) -> SessionRewound:
    """Do what a client asks, or say what it would do. Raises `RequestFailed`."""
    scope = scope_in(request)
    identity = caller()
    rewinder = rewinder_for(runtime, identity, scope)
    with failures_answered():
        if request.undo:
            plan = await rewinder.plan_undo(None if request.scope is UNSET else scope)
        else:
            plan = await rewinder.plan(scope, message_id=request.message_id or "")
        if request.preview:
            return _answer(plan, None)
        outcome = await carry_out(runtime, rewinder, plan, identity)
        await _report_usage(runtime)
    await session_core(runtime.session).record(Notice("info", _notice(plan)))
    return _answer(plan, outcome)


async def _report_usage(runtime: "SessionRuntime") -> None:
    """Tell the client how full the window is now. What was spent stays spent."""
    controls = SessionControls(runtime)
    used, window, _ = await controls.fullness()
    if window is not None:
        await session_core(runtime.session).record(UsageChanged(used, window, await controls.cost() or UNSET))


def scope_in(request: RewindSession) -> Scope:
    """Return what a request is about; `RequestFailed` for an unknown scope."""
    for scope in get_args(Scope):
        if scope == (request.scope or "both"):
            return scope  # type: ignore[no-any-return]
    raise RequestFailed(INVALID_PARAMS, "scope is both, files or conversation")


def rewinder_for(runtime: "SessionRuntime", identity: Identity, scope: Scope) -> Rewinder:
    """Return what rewinds with the rights of an identity. Raises `RequestFailed` for what it may not do."""
    if scope != "conversation":
        check_folders(runtime.session.roots, identity)
        if not may_write(identity):
            raise RequestFailed(INVALID_REQUEST, f"{identity.subject} may not change files", {"reason": "scope"})
    context = runtime.tool_context()

    def is_refused(path: str) -> bool:
        root = next((root for root in context.roots.real if is_inside(path, root)), None)
        if root is None or any(is_inside(path, private) for private in (*context.private, *context.own_folders)):
            return True
        # By its own name, which may be that of a link: what is put back takes the link's place.
        place = Place(root, tuple(os.path.relpath(path, root).split("/")))
        return identity.confined and (writing(place, context).guarded or is_withheld(path, context))

    return runtime.checkpoints.rewinder(is_refused, runtime.background.running_lines)


async def carry_out(
    runtime: "SessionRuntime", rewinder: Rewinder, plan: RewindPlan, identity: Identity
) -> RewindOutcome:
    """Do what a plan says, and have it in the session's log of decisions."""
    title = f"Undo a rewind of {plan.scope}" if plan.undoes else f"Rewind {plan.scope}"
    await runtime.decision_log.record(
        Decision("allow", "", "user"), identity, mode=runtime.mode(), tool="rewind", kind=plan.scope, title=title
    )
    outcome = await rewinder.apply(plan)
    if plan.scope != "files":
        runtime.unload()
    return outcome


def _notice(plan: RewindPlan) -> str:
    what = {"both": "Files and conversation", "files": "Files", "conversation": "The conversation"}[plan.scope]
    where = "as they were before the last rewind" if plan.prompt is None else f"as before prompt {plan.prompt.number}"
    reload = "" if plan.scope == "files" else " What stands above may not count any more: open the session anew."
    return f"{what}: {where}.{reload}"


def _answer(plan: RewindPlan, outcome: RewindOutcome | None) -> SessionRewound:
    left_alone = plan.troubled if outcome is None else outcome.left_alone
    lost = {target.path for target in left_alone}
    files = [
        RewoundFile(replace_lone_surrogates(shown.target.path), shown.target.deed, diff=replace_lone_surrogates(diff))
        for shown, diff in zip(plan.files, _diffs(plan), strict=True)
        if shown.target.path not in lost
    ]
    files += [RewoundFile(replace_lone_surrogates(target.path), target.deed, target.trouble) for target in left_alone]
    return SessionRewound(
        outcome is not None,
        plan.scope,
        files,
        len(plan.dropped),
        UNSET if plan.prompt is None else plan.prompt.message_id,
        UNSET if plan.prompt is None else plan.prompt.number,
        list(plan.left_out) or UNSET,
    )


def _diffs(plan: RewindPlan) -> Sequence[str]:
    """Return the diff of each file, as far as there is room."""
    room = DIFF_BYTES
    found: list[str] = []
    for shown in plan.files:
        diff = shown.diff() if shown.is_text else ""
        room -= len(diff)
        found.append(diff if room > 0 else "")
    return found
