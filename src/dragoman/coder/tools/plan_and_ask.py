"""`update_plan` and `ask_user`: no more than words between the model and the user."""

from typing import Final

from dragoman.agent.client_services import ask_free_text, can_ask_free_text
from dragoman.agent.session import Session
from dragoman.agent.tool import ToolCall
from dragoman.coder.permissions import Approved, JudgedCall
from dragoman.coder.shortening import UPDATE_PLAN
from dragoman.coder.tools.arguments import only_known, schema, text_input
from dragoman.coder.tools.contract import BadInput, Preview, ToolContext, ToolOutcome
from dragoman.coder.tools.result_text import title_text
from dragoman.errors import PeerError
from dragoman.host.text import harmless
from dragoman.permissions.facts import Action, ActionKind
from dragoman.vocabulary.options import PlanEntry
from dragoman.vocabulary.services import USER_UNAVAILABLE

# A user does not read a longer plan.
STEPS: Final = 200
_PRIORITIES: Final = ("high", "medium", "low")
_STATUSES: Final = ("pending", "in_progress", "completed")
_UNANSWERED: Final = "The user did not answer."


class UpdatePlan:
    """`update_plan(entries)`."""

    name = UPDATE_PLAN
    kind = "think"
    does: ActionKind = "free"
    description = (
        "Show the user the plan of your work: all steps with their status, in place of the plan before. "
        "Use it for work of three steps or more, when you begin it and whenever a step begins or ends: "
        "one step is in_progress at a time, and a step is completed when it is verified. Steps are short "
        "and say what, such as `Add the failing test`. Not for one small change, and not to think aloud. "
        'Example: {"entries": [{"content": "Find the parser", "status": "completed"}, '
        '{"content": "Fix the off-by-one", "status": "in_progress"}]}'
    )
    schema = schema(
        ["entries"],
        entries={
            "type": "array",
            "items": schema(
                ["content"],
                content={"type": "string"},
                status={"type": "string", "enum": list(_STATUSES)},
                priority={"type": "string", "enum": list(_PRIORITIES)},
            ),
        },
    )

    def check(self, call: JudgedCall) -> None:
        only_known(call, "entries")
        _steps(call)

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        return Preview("Update the plan", [Action("free")])

    async def run(self, approved: Approved, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        steps = _steps(approved.call)
        await context.session.plan(steps)
        return ToolOutcome(f"The plan has {len(steps)} steps now.")


class AskUser:
    """`ask_user(question, options?)`."""

    name = "ask_user"
    kind = "other"
    does: ActionKind = "free"
    description = (
        "Ask the user one question and wait for the answer. Only when the answer is theirs to give and you cannot find "
        "it out: a choice between real alternatives, a missing name, something that cannot be undone. Not for "
        "permission: tools ask for that by themselves. Give options where there are some. "
        'Example: {"question": "Which database should the tests use?", "options": ["SQLite", "PostgreSQL"]}'
    )
    schema = schema(
        ["question"],
        question={"type": "string"},
        options={"type": "array", "items": {"type": "string"}, "description": "answers to choose from"},
    )

    def check(self, call: JudgedCall) -> None:
        only_known(call, "question", "options")
        text_input(call, "question")
        _choices(call)

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        return Preview(title_text(text_input(call, "question")), [Action("free")])

    async def run(self, approved: Approved, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        question, choices = text_input(approved.call, "question"), _choices(approved.call)
        session = context.session
        if session.client.elicitation_form:
            answer = await _by_form(session, question, choices)
        elif can_ask_free_text(session.client):
            answer = await _by_extension(session, question, choices)
        else:
            await session.say("\n".join([question, *(f"{n}. {choice}" for n, choice in enumerate(choices, 1))]) + "\n")
            return ToolOutcome("The question was shown. The user answers with the next prompt: end your turn now.")
        if answer is None or answer == USER_UNAVAILABLE:
            return ToolOutcome(answer or _UNANSWERED, failed=True)
        return ToolOutcome(answer, raw={"answer": answer})


def _steps(call: JudgedCall) -> list[PlanEntry]:
    entries = call.input.get("entries")
    if not isinstance(entries, list) or len(entries) > STEPS:
        raise BadInput(f"update_plan needs 'entries' as a list of at most {STEPS} steps.")
    return [_step(entry) for entry in entries]


def _step(entry: object) -> PlanEntry:
    if isinstance(entry, str):
        return PlanEntry(harmless(entry))
    if not isinstance(entry, dict) or not isinstance(entry.get("content"), str) or not entry["content"].strip():
        raise BadInput("A step of a plan is an object with 'content' as text that is not empty.")
    status, priority = entry.get("status", "pending"), entry.get("priority", "medium")
    if status not in _STATUSES or priority not in _PRIORITIES:
        raise BadInput(f"A step's status is one of {', '.join(_STATUSES)}, its priority {', '.join(_PRIORITIES)}.")
    return PlanEntry(harmless(entry["content"]), priority, status)


def _choices(call: JudgedCall) -> list[str]:
    options = call.input.get("options")
    if options is None:
        return []
    if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
        raise BadInput("ask_user needs 'options' as a list of texts.")
    return options


async def _by_form(session: Session, question: str, choices: list[str]) -> str | None:
    answer: dict[str, object] = {"type": "string", "title": "Answer"}
    if choices:
        answer["enum"] = choices
    try:
        form = await session.ask_user(
            question, {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}
        )
    except PeerError:
        return None
    given = None if form is None else form.get("answer")
    return given if isinstance(given, str) else None


async def _by_extension(session: Session, question: str, choices: list[str]) -> str | None:
    try:
        return await ask_free_text(session, question, choices)
    except PeerError:
        return None
