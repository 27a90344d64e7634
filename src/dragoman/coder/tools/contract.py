"""The contract of a tool: it is given an approved call and a `ToolContext`, and nothing else.

`arguments` reads the input of a call, `result_text` bounds and spells out what is shown of it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from dragoman.agent.session import Session
from dragoman.agent.tool import ToolCall
from dragoman.coder.changes import Changes
from dragoman.coder.execution import Execution
from dragoman.coder.kept_results import KeptResults
from dragoman.coder.permissions import Approved, JudgedCall
from dragoman.host.guardian import Guardian
from dragoman.host.paths import Roots
from dragoman.permissions.facts import Action, ActionKind
from dragoman.vocabulary.content import Content
from dragoman.vocabulary.tools import Location, ToolContent


class BadInput(Exception):
    """The model called a tool wrongly; the text says how to do better."""


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
    execution: Execution
    # The real paths of our own folders: a tool reads nothing there, and a write is guarded.
    own_folders: tuple[str, ...] = ()
    # Real paths that are protected in this session beside those with a protected name; what is below them, too.
    protected_paths: tuple[str, ...] = ()
    # Real paths of a server's own data: out of reach of every tool, also where the workspace contains them.
    private: tuple[str, ...] = ()
    # Where long results of this session are kept whole, for `read_file` alone; None: nowhere.
    results: KeptResults | None = None
    # What the model can look at besides text, as `Model.sees` says.
    sees: frozenset[str] = frozenset()
    # Real paths beyond the roots that `read_file` may read, and what is below them: skills.
    lent: tuple[str, ...] = ()
    # Whether the administrator denies reading a file, by its real path.
    denies_reading: Callable[[str], bool] = lambda path: False


class CommandPlace(Protocol):
    """Where a command would run, as far as that decides what it is: part of a `ToolContext`."""

    @property
    def roots(self) -> Roots: ...
    @property
    def environment(self) -> Mapping[str, str]: ...
    @property
    def execution(self) -> Execution: ...


class Tool(Protocol):
    """A tool that the model can call."""

    name: str
    # One of the kinds of the vocabulary; for display only, never an input to a decision.
    kind: str
    # For the model.
    description: str
    # The most it can do; a mode that forbids this does not offer the tool. Readers of one response run together.
    does: ActionKind

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its input, for the model."""

    def check(self, call: JudgedCall) -> None:
        """Raise `BadInput` for a call that cannot be run."""

    async def preview(self, call: JudgedCall, context: ToolContext) -> Preview:
        """Look, and touch nothing. Raises `BadInput` for what can be seen now to be impossible."""

    async def run(self, approved: Approved, shown: ToolCall, context: ToolContext) -> ToolOutcome:
        """Do it. Whatever it shows goes to `shown`."""
