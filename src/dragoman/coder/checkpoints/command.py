"""`/rewind`: show what going back would do, ask, and do it."""

from typing import TYPE_CHECKING, Final

from dragoman.agent.permission import YES_OR_NO
from dragoman.coder.checkpoints.requests import carry_out, rewinder_for
from dragoman.coder.checkpoints.rewinding import Rewinder, RewindPlan, ShownFile, failures_answered
from dragoman.coder.checkpoints.texts import heading, outcome_lines, plan_lines, prompt_lines
from dragoman.coder.identity_limits import may_answer
from dragoman.errors import RequestFailed
from dragoman.store.log_places import Scope
from dragoman.surrogates import replace_lone_surrogates
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.identity import Needs
from dragoman.vocabulary.tools import ContentItem, Diff, FileChange, Location

if TYPE_CHECKING:
    from dragoman.coder.runtime import SessionRuntime

HOW: Final = (
    "`/rewind [N] [files|conversation]` goes back to before prompt N; `/rewind list` numbers the prompts; "
    "`/rewind undo` takes the last one back."
)
_SCOPES: Final[dict[str, Scope]] = {"files": "files", "conversation": "conversation", "both": "both"}
_ONCE: Final = [option for option in YES_OR_NO if option.kind in ("allow_once", "reject_once")]
# Files whose diff is in the question.
_DIFFS: Final = 50


async def rewind_command(arguments: str, runtime: "SessionRuntime") -> str:
    """Do what the words behind `/rewind` say, and return what came of it."""
    number: int | None = None
    scope: Scope | None = None
    undo = False
    for word in arguments.replace("--", "").split():
        if word.isdecimal():
            number = int(word)
        elif word in _SCOPES:
            scope = _SCOPES[word]
        elif word == "undo":
            undo = True
        elif word == "list":
            return "\n".join([HOW, *await _prompts(runtime)])
        else:
            return HOW
    identity = runtime.identity()
    try:
        rewinder = rewinder_for(runtime, identity, scope or "both")
        with failures_answered():
            plan = await (rewinder.plan_undo(scope) if undo else rewinder.plan(scope or "both", number=number))
            if plan.is_empty:
                return "\n".join([f"{heading(plan)}: there is nothing to do.", *_listed(plan_lines(plan))])
            return await _ask_and_do(runtime, rewinder, plan)
    except RequestFailed as failed:
        return "\n".join([f"{failed.message}. {HOW}", *await _prompts(runtime)])


async def _ask_and_do(runtime: "SessionRuntime", rewinder: Rewinder, plan: RewindPlan) -> str:
    session, identity = runtime.session, runtime.identity()
    needs = Needs(runtime.mode())
    title, lines = heading(plan), plan_lines(plan)
    # A name that is no text cannot be in a diff; it is in the list, spelled out.
    named = [file for file in plan.files if _is_text(file.target.path)][:_DIFFS]
    shown = session.tool(
        title,
        kind="edit",
        name="rewind",
        status="pending",
        content=[ContentItem(Text("\n".join(lines))), *(_diff(file) for file in named if file.is_text)],
        locations=[Location(file.target.path) for file in named],
    )
    async with shown:
        answer = await session.ask_permission(title, tool=shown, options=_ONCE, needs=needs)
        if not answer or not may_answer(answer.identity, needs):
            await shown.end("failed")
            return "Nothing was rewound."
        await shown.start()
        outcome = await carry_out(runtime, rewinder, plan, identity)
        await shown.end("completed")
    return "\n".join([f"{title}: done.", *_listed(outcome_lines(plan, outcome)), "", "`/rewind undo` takes it back."])


async def _prompts(runtime: "SessionRuntime") -> list[str]:
    try:
        rewinder = runtime.checkpoints.rewinder(lambda path: True, tuple)
        return ["", *prompt_lines(await rewinder.prompts())]
    except RequestFailed:
        return []


def _is_text(path: str) -> bool:
    return replace_lone_surrogates(path) == path


def _diff(file: ShownFile) -> Diff:
    path = file.target.path
    if file.after is None:
        return Diff([FileChange("delete", path, old_text=file.before)])
    return Diff.of(path, file.before, file.after)


def _listed(lines: list[str]) -> list[str]:
    return [f"- {line}" for line in lines]
