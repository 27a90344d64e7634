"""A walk: what to say and which tools to call, in order, written as plain sequential code.

It keeps nothing. Every model call walks from the beginning again, is handed the results that are in the context, and
goes on behind the last of them. So the same context gives the same next step, in this process or in another one.
"""

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from dragoman.coder.context import ContextToolResult
from dragoman.coder.models.contract import TextDelta, ThoughtDelta, ToolCallRequested
from dragoman.coder.models.offline.conversation import DoneCall
from dragoman.coder.permissions import DENIED
from dragoman.coder.toolbox import STOPPED

Action = TextDelta | ThoughtDelta | ToolCallRequested
Result = TypeVar("Result")
Walk = Generator[Action, ContextToolResult | None, Result]

_SANDBOX: Final = "sandbox_"
_LOST: Final = "What I can do has changed while I was at it, so I stopped. Please ask again.\n"
_FULL: Final = (
    "This was too much for my window: I no longer see what I have read, so I stopped. Ask for less at a time.\n"
)
_TRIMMED: Final = re.compile(r"\[trimmed: \d+ characters\]")
_FORBIDDEN: Final = {
    "write_file": "This mode does not let me write.",
    "edit_file": "This mode does not let me write.",
    "bash": "This mode does not let me run commands.",
    "web_fetch": "This mode does not let me fetch pages.",
}


class Halted(Exception):
    """The walk ends here; the text says why, and is fit for the user."""


class Denied(Halted):
    """The user, or a rule, said no."""


class Reach(NamedTuple):
    """What a walk can use."""

    offered: frozenset[str]
    attached: Mapping[str, str | None]
    folder: str = ""

    def has(self, tool: str) -> bool:
        """Whether there is such a tool now."""
        return tool in self.offered or _SANDBOX + tool in self.offered

    def need(self, *tools: str) -> None:
        """Halt at once if something that will be needed is not there."""
        for tool in tools:
            if not self.has(tool):
                raise Halted(_FORBIDDEN.get(tool, f"I would need the tool {tool}, and it is not offered here."))

    def call(self, tool: str, **given: object) -> Walk[ContextToolResult]:
        """Call a tool. A no ends the walk; a failure is for the caller to tell."""
        self.need(tool)
        name = tool if tool in self.offered else _SANDBOX + tool
        result = yield ToolCallRequested(name, {key: value for key, value in given.items() if value is not None})
        assert result is not None
        if result.text.startswith(DENIED):
            raise Denied(f"Permission denied ({_titled(tool, given)}), so I stopped here.")
        if result.text == STOPPED:
            raise Denied(f"You stopped {_titled(tool, given)}, so I stopped, too.")
        return result

    def short(self, path: str) -> str:
        """A path as the user would write it."""
        folder = self.folder.rstrip("/") + "/"
        return path.removeprefix(folder) if len(folder) > 1 else path.removeprefix("./")


def resumed(walk: Walk[None], done: Sequence[DoneCall]) -> Walk[None]:
    """A walk that goes on after all that was said and done."""
    position = 0
    result: ContextToolResult | None = None
    while True:
        try:
            action = walk.send(result)
        except StopIteration:
            return
        result = None
        if position >= len(done):
            result = yield action
        elif isinstance(action, ToolCallRequested):
            call = done[position].call
            if (call.tool, call.input) != (action.tool, action.input):
                yield TextDelta(_LOST)
                return
            result = done[position].result
            if _TRIMMED.fullmatch(result.text):
                yield TextDelta(_FULL)
                return
            position += 1


def up_to_call(walk: Walk[None]) -> Iterator[Action]:
    """What is to be said, and the next call; or everything, if there is none."""
    for action in walk:
        yield action
        if isinstance(action, ToolCallRequested):
            return


def halting(walk: Walk[None]) -> Walk[bool]:
    """A walk that tells why it halted, if it did. True: it came to its end."""
    try:
        yield from walk
    except Halted as halt:
        yield TextDelta(f"{halt}\n")
        return False
    return True


def _titled(tool: str, given: Mapping[str, object]) -> str:
    subject = next((str(given[key]) for key in ("command", "path", "url", "question") if given.get(key)), "")
    line = subject.splitlines()[0] if subject else ""
    return f"{tool} `{line[:80]}`" if line else tool
