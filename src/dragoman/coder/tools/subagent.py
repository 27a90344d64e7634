"""`agent(prompt, description, name?)`: a sub-agent with a context of its own. Its calls go through the same gate.

Several may run at the same time: each has a label of its own in front of the titles of its calls.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from itertools import chain, count
from typing import Any, Final, NamedTuple

from dragoman.agent.session import new_id
from dragoman.agent.tool import ToolCall
from dragoman.coder import loop
from dragoman.coder.compaction import ContextBudget
from dragoman.coder.context import Context, ContextUserMessage
from dragoman.coder.fallbacks import TurnFallbacks
from dragoman.coder.helper_kinds import PLAIN, HelperKind
from dragoman.coder.model_calls import ModelCalls
from dragoman.coder.models.contract import HasHelperKinds, Model
from dragoman.coder.permissions import Approved, JudgedCall
from dragoman.coder.tools.arguments import only_known, schema, text_input
from dragoman.coder.tools.contract import BadInput, Preview, ToolContext, ToolOutcome
from dragoman.coder.tools.result_text import cut, title_text
from dragoman.errors import RequestFailed
from dragoman.permissions.facts import Action, ActionKind
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessageChunk, AnyEvent, Idle, Notice

# A helper that needs more than this has lost its way.
MODEL_CALLS: Final = 50
# What it says is shown in pieces of about this, not letter by letter.
_PIECE: Final = 1024
# Of a name, in front of the title of every call the helper makes.
_NAME_CHARACTERS: Final = 60


def agent_schema(kinds: Sequence[str], own: Sequence[HelperKind] = ()) -> dict[str, Any]:
    """Return the schema of the input, where helpers are of these kinds of the model, and of these of the user's own."""
    names = [*(kinds if len(kinds) > 1 else ()), *(kind.name for kind in own)]
    about = "; ".join(f"{kind.name}: {kind.about}" for kind in own if kind.about)
    text = f"the kind of helper; {about}" if about else "the kind of helper"
    return schema(
        ["prompt", "description"],
        prompt={"type": "string", "description": "the whole task; the helper sees nothing else"},
        description={"type": "string", "description": "the task in a few words"},
        **({"name": {"type": "string", "enum": names, "description": text}} if names else {}),
    )


class HelperSetup(NamedTuple):
    """What a helper works with: its tools, its system prompt, what it is told of the session, the models that may
    answer in the place of its own, and what may have it go on (`loop.turn`)."""

    tool_runner: loop.ToolRunner
    system: str
    briefing: Callable[[bool], Awaitable[Sequence[ContextUserMessage]]]
    fallbacks: TurnFallbacks | None = None
    turn_end: loop.TurnEnd | None = None


class Delegate:
    """The tool. `prepare` sets a helper up for its context and its model; its calls are shown under a label, and name
    the call that has started it."""

    name = "agent"
    kind = "execute"
    # A helper does nothing but think; whatever it calls is judged by itself.
    does: ActionKind = "free"
    description = (
        "Give a task to a helper that has the same tools and a context of its own, and get its report. Use it for a "
        "wide search or a side task whose details you do not need; not for what two calls of yours would find. The "
        "helper sees nothing of this conversation: the prompt has to say the goal, the places you know, what it may "
        "change and what the report must hold. Several calls in one response run at the same time: give each a part "
        "of its own, and no two the same files. The user does not see the report. "
        'Example: {"description": "Find retry code", "prompt": "Find where HTTP requests are retried in src/ …"}'
    )

    def __init__(
        self,
        model: Callable[[], Model],
        prepare: Callable[[str, str, Context, Model, HelperKind | None], Awaitable[HelperSetup]],
        calls: Callable[[], ModelCalls] = ModelCalls,
        kinds: Callable[[], Mapping[str, HelperKind]] = dict,
        model_named: Callable[[str], Model] | None = None,
    ) -> None:
        """`kinds`: the user's own, by name; `model_named` finds the model that one of them names."""
        self._kinds = kinds
        self._model_named = model_named
        self._model = model
        self._prepare = prepare
        # The session's: what a helper costs, the session has cost.
        self._calls = calls
        # Those of the helpers that run now.
        self._labels: set[str] = set()

    @property
    def schema(self) -> dict[str, Any]:
        """`name` is in it only where there are kinds of helpers to choose from."""
        model = self._model()
        kinds = model.helper_kinds if isinstance(model, HasHelperKinds) else ()
        return agent_schema(kinds, [*self._kinds().values()])

    def check(self, call: JudgedCall) -> None:
        only_known(call, "prompt", "description", "name")
        text_input(call, "description")
        if not text_input(call, "prompt").strip():
            raise BadInput("agent needs a task in 'prompt'.")
        if "name" in call.input:
            text_input(call, "name")

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        return Preview(title_text(text_input(call, "description")), [Action("free")])

    async def run(self, approved: Approved, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        name = str(approved.call.input.get("name") or PLAIN)
        label = self._free_label(title_text(name[:_NAME_CHARACTERS]))
        self._labels.add(label)
        try:
            return await self._work(name, label, approved.call, shown, context)
        finally:
            self._labels.discard(label)

    def _free_label(self, name: str) -> str:
        """Return a label that no helper has which runs now: `agent`, `agent 2` and so on."""
        labels = chain([name], (f"{name} {number}" for number in count(2)))
        return next(label for label in labels if label not in self._labels)

    async def _work(
        self, name: str, label: str, call: JudgedCall, shown: ToolCall, context: ToolContext
    ) -> ToolOutcome:
        kind = self._kinds().get(name)
        try:
            model = self._model_of(kind).assistant(name)
        except RequestFailed as error:
            return ToolOutcome(f"The model of this kind of helper cannot be used: {error.message}", failed=True)
        model.begin_turn()
        task = ContextUserMessage(new_id("task"), [Text(text_input(call, "prompt"))])
        helper_context = Context([], _record_nothing)
        report = _Report(shown)
        end = Idle(stop_reason="end_turn")
        setup = await self._prepare(f"{label}: ", shown.id, helper_context, model, kind)
        turn = loop.turn(
            model,
            helper_context,
            setup.tool_runner,
            task,
            system=setup.system,
            briefing=setup.briefing,
            model_calls=MODEL_CALLS,
            budget=ContextBudget(helper_context, _show_nothing, calls=self._calls()),
            calls=self._calls(),
            fallbacks=setup.fallbacks,
            turn_end=setup.turn_end,
        )
        async with aclosing(turn) as events:
            async for event in events:
                if isinstance(event, AgentMessageChunk):
                    await report.say(event.text)
                elif isinstance(event, Notice) and event.severity != "error":
                    # An error ends the turn that it works in as well, and is told there.
                    await context.session.emit(event)
                elif isinstance(event, Idle):
                    end = event
        await report.show()
        if end.stop_reason == "max_turn_requests" and not report.text():
            return ToolOutcome("The helper was stopped before it had a report.", failed=True)
        if end.error:
            return ToolOutcome(f"The helper failed: {end.error.message}", failed=True)
        text = cut(report.text()) or "The helper sent no report."
        return ToolOutcome(text, failed=end.stop_reason != "end_turn", raw={"stopReason": end.stop_reason})

    def _model_of(self, kind: HelperKind | None) -> Model:
        """Return the model for a helper. Raises `RequestFailed` where its kind names one that cannot be had."""
        if kind is None or not kind.model or self._model_named is None:
            return self._model()
        return self._model_named(kind.model)


class _Report:
    """What a helper says, shown as it comes."""

    def __init__(self, shown: ToolCall) -> None:
        self._shown = shown
        self._texts: list[str] = []
        self._show_nothing: list[str] = []
        self._length = 0

    async def say(self, text: str) -> None:
        self._texts.append(text)
        self._show_nothing.append(text)
        self._length += len(text)
        if self._length >= _PIECE:
            await self.show()

    async def show(self) -> None:
        if self._show_nothing:
            piece, self._show_nothing, self._length = "".join(self._show_nothing), [], 0
            await self._shown.add(piece)

    def text(self) -> str:
        return "".join(self._texts)


async def _record_nothing(note: object) -> None:
    """Record nothing: a helper's context ends with it."""


async def _show_nothing(event: AnyEvent) -> None:
    """Drop an event: the compaction of a helper is not one of the session."""
