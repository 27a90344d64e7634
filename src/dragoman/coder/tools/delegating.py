"""`agent(prompt, description, name?)`: a sub-agent with a context of its own. Its calls go through the same gate."""

from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Final

from dragoman.agent.tool import ToolCall
from dragoman.coder import loop
from dragoman.coder.context import Context, UserSaid
from dragoman.coder.models.contract import Model
from dragoman.coder.modes import Act, ActKind
from dragoman.coder.permissions import Approved, Call
from dragoman.coder.tools.contract import (
    BadInput,
    Desk,
    Outcome,
    Preview,
    cut,
    only_known,
    schema,
    text_input,
    title_text,
)
from dragoman.host.text import visible_line
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import AgentMessageChunk, Idle, Notice

# A helper that needs more than this has lost its way.
MODEL_CALLS: Final = 50
# What it says is shown in pieces of about this, not letter by letter.
_PIECE: Final = 1024
_NAME: Final = "agent"
# Of a name, in front of the title of every call the helper makes.
_NAME_CHARACTERS: Final = 60
_SYSTEM: Final = (
    "You are a helper of a coding agent. You were given one task, in a conversation of its own. Do it with the tools "
    "and end with a report that says everything your employer needs to know: nothing else of your work is seen.\n"
)


class Delegate:
    """The tool. `hands` makes the tools of a helper, whose calls are shown under a label."""

    name = "agent"
    kind = "execute"
    # A helper does nothing but think; whatever it calls is judged by itself.
    does: ActKind = "free"
    description = "Give a task to a helper with a context of its own, and get its report. For searches and side tasks."
    schema = schema(
        ["prompt", "description"],
        prompt={"type": "string", "description": "the whole task; the helper sees nothing else"},
        description={"type": "string", "description": "the task in a few words"},
        name={"type": "string", "description": "a kind of helper, where there are several"},
    )

    def __init__(self, model: Callable[[], Model], hands: Callable[[str], loop.Hands], roots: Sequence[str]) -> None:
        self._model = model
        self._hands = hands
        self._system = f"{_SYSTEM}The working folder is {visible_line(roots[0])}.\n"

    def check(self, call: Call) -> None:
        only_known(call, "prompt", "description", "name")
        text_input(call, "description")
        if not text_input(call, "prompt").strip():
            raise BadInput("agent needs a task in 'prompt'.")
        if "name" in call.input:
            text_input(call, "name")

    async def preview(self, call: Call, desk: Desk) -> Preview:
        return Preview(title_text(text_input(call, "description")), [Act("free")])

    async def run(self, approved: Approved, shown: ToolCall, desk: Desk) -> Outcome:
        call = approved.call
        name = str(call.input.get("name") or _NAME)
        model = self._model().assistant(name)
        model.begin_turn()
        task = UserSaid("", [Text(text_input(call, "prompt"))])
        report = _Report(shown)
        end = Idle(stop_reason="end_turn")
        hands = self._hands(f"{title_text(name[:_NAME_CHARACTERS])}: ")
        turn = loop.turn(
            model, Context([], _unnoted), hands, task, system=_SYSTEM + self._system, model_calls=MODEL_CALLS
        )
        async with aclosing(turn) as events:
            async for event in events:
                if isinstance(event, AgentMessageChunk):
                    await report.say(event.text)
                elif isinstance(event, Notice):
                    await desk.session.emit(event)
                elif isinstance(event, Idle):
                    end = event
        await report.show()
        if end.error:
            return Outcome(f"The helper failed: {end.error.message}", failed=True)
        text = cut(report.text()) or "The helper said nothing."
        return Outcome(text, failed=end.stop_reason != "end_turn", raw={"stopReason": end.stop_reason})


class _Report:
    """What a helper says, shown as it comes."""

    def __init__(self, shown: ToolCall) -> None:
        self._shown = shown
        self._said: list[str] = []
        self._unshown: list[str] = []
        self._length = 0

    async def say(self, text: str) -> None:
        self._said.append(text)
        self._unshown.append(text)
        self._length += len(text)
        if self._length >= _PIECE:
            await self.show()

    async def show(self) -> None:
        if self._unshown:
            piece, self._unshown, self._length = "".join(self._unshown), [], 0
            await self._shown.add(piece)

    def text(self) -> str:
        return "".join(self._said)


async def _unnoted(note: object) -> None:
    """A helper's context ends with it."""
