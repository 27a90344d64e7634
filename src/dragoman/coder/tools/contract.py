"""The contract of a tool. It is given an approved call and a desk to work at, and nothing else."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from dragoman.agent.session import Session
from dragoman.agent.tool import ToolCall
from dragoman.coder.changes import Changes
from dragoman.coder.execution import Execution
from dragoman.coder.modes import Action, ActKind
from dragoman.coder.permissions import Approved, JudgedCall
from dragoman.host.guardian import Guardian
from dragoman.host.paths import Roots
from dragoman.host.text import visible
from dragoman.vocabulary.content import Content
from dragoman.vocabulary.tools import Location, ToolContent

# What the model is given of one result. Head and tail are kept, and the cut is stated.
RESULT_CHARACTERS: Final = 100_000
# A longer title is not read, and makes a menu unusable.
TITLE_CHARACTERS: Final = 2_000
# So many blanks push what follows out of sight.
_BLANKS: Final = re.compile(r"[ \t\n]{40,}")


class BadInput(Exception):
    """The model called a tool wrongly; the text tells it how to do better."""


class OutOfReach(BadInput):
    """What a call is about is not for tools at all, whatever the mode: a refusal, and logged as one."""


class Preview(NamedTuple):
    """A call before it runs: how it is shown, and what it would do.

    `stamp` is what the world it touches looks like. If that has changed when the user says yes, the user is asked anew.
    """

    title: str
    acts: Sequence[Action]
    content: Sequence[ToolContent] = ()
    locations: Sequence[Location] = ()
    stamp: str = ""


class ToolOutcome(NamedTuple):
    """What came of a call: the words for the model, and whether it worked. `raw` is the same for programs."""

    text: str
    failed: bool = False
    raw: object = None
    content: Sequence[Content] = ()


class ToolContext(NamedTuple):
    """What a tool works with."""

    session: Session
    roots: Roots
    environment: Mapping[str, str]
    guardian: Guardian
    changes: Changes
    rig: Execution
    # Our own data folder: a write of a tool there is guarded; empty: there is none.
    home: str = ""
    # Real paths that are protected in this session beside those with a protected name; what is below them, too.
    protected_paths: tuple[str, ...] = ()
    # Real paths of a server's own data: out of reach of every tool, also where the workspace contains them.
    private: tuple[str, ...] = ()


class Tool(Protocol):
    """One thing the model can do."""

    name: str
    # One of the kinds of the vocabulary; for display only, never an input to a decision.
    kind: str
    # For the model.
    description: str
    # The most it can do; a mode that forbids this does not offer the tool. Readers of one response run together.
    does: ActKind

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its input, for the model."""

    def check(self, call: JudgedCall) -> None:
        """Raise `BadInput` for a call that cannot be run."""

    async def preview(self, call: JudgedCall, desk: ToolContext) -> Preview:
        """Look, and touch nothing. Raises `BadInput` for what can be seen now to be impossible."""

    async def run(self, approved: Approved, shown: ToolCall, desk: ToolContext) -> ToolOutcome:
        """Do it. Whatever it shows goes to `shown`."""


def schema(required: Sequence[str], **properties: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an input."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def text_input(call: JudgedCall, name: str) -> str:
    """A text argument that must be there."""
    value = call.input.get(name)
    if not isinstance(value, str):
        raise BadInput(f"{call.tool} needs {name!r} as text.")
    return value


def count_input(call: JudgedCall, name: str, least: int) -> int | None:
    """A whole number that may be left out."""
    value = call.input.get(name)
    if value is None:
        return None
    if type(value) is not int or value < least:
        raise BadInput(f"{call.tool} needs {name!r} as a whole number, {least} or more.")
    return value


def flag_input(call: JudgedCall, name: str) -> bool:
    """A yes or no that may be left out; then it is no."""
    value = call.input.get(name)
    if value is not None and not isinstance(value, bool):
        raise BadInput(f"{call.tool} needs {name!r} as true or false.")
    return bool(value)


def only_known(call: JudgedCall, *names: str) -> None:
    """Raise `BadInput` for an argument that is not in `names`: the model meant something by it."""
    for name in call.input:
        if name not in names:
            raise BadInput(f"{call.tool} has no argument {name!r}; it takes {', '.join(names)}.")


def shown_text(text: str, limit: int = TITLE_CHARACTERS) -> str:
    """A text as a user may be asked about it: what would not show, or would show as something else, is spelled out."""
    whole = _BLANKS.sub(lambda blanks: f"[{len(blanks[0])} blanks]", text)
    plain = visible(whole[:limit])
    return plain if len(whole) <= limit else f"{plain}… ({len(text)} characters in all)"


def title_text(text: str, limit: int = TITLE_CHARACTERS) -> str:
    """Return `shown_text` on one line: newlines and tabs are escaped, as a file name may hold both."""
    return shown_text(text, limit).replace("\n", "\\n").replace("\t", "\\t")


def cut(text: str, limit: int = RESULT_CHARACTERS) -> str:
    """A long text without its middle."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters cut …]\n{text[-half:]}"
