"""Own the requests of an agent to a client, and the replies: permission, questions, files and terminals."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, overload

from msgspec import UNSET, UnsetType

from dragoman.vocabulary.asking import Done, Note, Reply, Request
from dragoman.vocabulary.events import ToolCallUpdate
from dragoman.vocabulary.requests import Account, EnvVariable
from dragoman.vocabulary.tools import ExitStatus
from dragoman.vocabulary.word import Unknown, Word

PermissionKind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]


class PermissionOption(Word, frozen=True, gc=False):
    """One answer the user can give."""

    option_id: str
    name: str
    kind: str

    @property
    def allows(self) -> bool:
        """Return whether choosing this option is a yes. A kind that is not known is none."""
        return self.kind in ("allow_once", "allow_always")

    @property
    def rejects(self) -> bool:
        """Return whether choosing this option is a no. A kind that is not known is none; it may be a yes."""
        return self.kind in ("reject_once", "reject_always")


class ToolCallSubject(Word, frozen=True, gc=False, tag_field="type", tag="tool_call"):
    """The permission is about a tool call."""

    tool_call: ToolCallUpdate


class CommandSubject(Word, frozen=True, gc=False, tag_field="type", tag="command"):
    """The permission is about a command line."""

    command: str
    cwd: str
    tool_call_id: str | None | UnsetType = UNSET
    terminal_id: str | None | UnsetType = UNSET


class UnknownSubject(Unknown, frozen=True, gc=False, tag_field="type", tag="?"):
    """The permission is about something this release does not know."""


class RequestPermission(Request["PermissionAnswer"], frozen=True, gc=False):
    """May I? Anything but a known allow is a no."""

    session_id: str
    title: str
    options: list[PermissionOption]
    description: str | None | UnsetType = UNSET
    subject: ToolCallSubject | CommandSubject | UnknownSubject | None | UnsetType = UNSET


class Selected(Word, frozen=True, gc=False, tag_field="outcome", tag="selected"):
    """The user chose this option."""

    option_id: str


class Dismissed(Word, frozen=True, gc=False, tag_field="outcome", tag="cancelled"):
    """No option was chosen: the turn was cancelled, or the question was withdrawn."""


class UnknownOutcome(Unknown, frozen=True, gc=False, tag_field="outcome", tag="?"):
    """An outcome this release does not know. It is a no."""


# The key of `_meta`, beside the outcome of a permission, of what the user wrote to a no.
FEEDBACK: Final = "dragoman/feedback"
# More is a prompt, and no reason.
FEEDBACK_CHARACTERS: Final = 2_000


class PermissionAnswer(Reply, frozen=True, gc=False):
    """What the user decided."""

    outcome: Selected | Dismissed | UnknownOutcome

    @property
    def feedback(self) -> str:
        """What the user wrote beside the answer, cut at `FEEDBACK_CHARACTERS`; empty: nothing that can be read."""
        value = self.meta.get(FEEDBACK) if isinstance(self.meta, Mapping) else None
        return value.strip()[:FEEDBACK_CHARACTERS] if isinstance(value, str) else ""


class SessionScope(Word, frozen=True, gc=False, tag_field="scope", tag="session"):
    """A question that belongs to a session."""

    session_id: str
    tool_call_id: str | None | UnsetType = UNSET


class RequestScope(Word, frozen=True, gc=False, tag_field="scope", tag="request"):
    """A question that belongs to a request still being answered, named by its id."""

    request_id: int | str | None


class Form(Word, frozen=True, gc=False, tag_field="mode", tag="form"):
    """Ask with a form; the schema is a flat JSON Schema object."""

    requested_schema: dict[str, object]


class Url(Word, frozen=True, gc=False, tag_field="mode", tag="url"):
    """Ask by sending the user to a page."""

    elicitation_id: str
    url: str


class UnknownMode(Unknown, frozen=True, gc=False, tag_field="mode", tag="?"):
    """A way to ask that this release does not know."""


class Elicit(Request["ElicitationAnswer"], frozen=True, gc=False):
    """Ask the user something that is not a permission."""

    message: str
    mode: Form | Url | UnknownMode
    scope: SessionScope | RequestScope


class ElicitationAnswer(Reply, frozen=True, gc=False):
    """accept (with content), decline, cancel, or an action this release does not know, which is no accept."""

    action: str
    content: dict[str, object] | None | UnsetType = UNSET


class ElicitationComplete(Note, frozen=True, gc=False):
    """What the user did on the page is done."""

    elicitation_id: str


class AuthStatusChanged(Note, frozen=True, gc=False):
    """The login changed."""

    state: str
    accounts: list[Account] | UnsetType = UNSET


class ReadTextFile(Request["FileText"], frozen=True, gc=False):
    """Read a file as the editor has it, unsaved changes included."""

    session_id: str
    path: str
    line: int | None | UnsetType = UNSET
    limit: int | None | UnsetType = UNSET


class FileText(Reply, frozen=True, gc=False):
    """The text of the file."""

    content: str


class WriteTextFile(Request[Done], frozen=True, gc=False):
    """Write a file through the editor."""

    session_id: str
    path: str
    content: str


class CreateTerminal(Request["TerminalCreated"], frozen=True, gc=False):
    """Run a command in a terminal of the client."""

    session_id: str
    command: str
    args: list[str] | UnsetType = UNSET
    env: list[EnvVariable] | UnsetType = UNSET
    cwd: str | None | UnsetType = UNSET
    output_byte_limit: int | None | UnsetType = UNSET


class TerminalCreated(Reply, frozen=True, gc=False):
    """The terminal runs under this id."""

    terminal_id: str


class GetTerminalOutput(Request["TerminalText"], frozen=True, gc=False):
    """Ask what the terminal has printed so far."""

    session_id: str
    terminal_id: str


class TerminalText(Reply, frozen=True, gc=False):
    """The output so far."""

    output: str
    truncated: bool
    exit_status: ExitStatus | None | UnsetType = UNSET


class WaitForTerminalExit(Request["TerminalExited"], frozen=True, gc=False):
    """Wait until the command is done."""

    session_id: str
    terminal_id: str


class TerminalExited(Reply, frozen=True, gc=False):
    """How the command ended."""

    exit_code: int | None | UnsetType = UNSET
    signal: str | None | UnsetType = UNSET


class KillTerminal(Request[Done], frozen=True, gc=False):
    """Kill the command; the terminal stays readable."""

    session_id: str
    terminal_id: str


class ReleaseTerminal(Request[Done], frozen=True, gc=False):
    """Kill the command and release the terminal."""

    session_id: str
    terminal_id: str


class UserQuestion(NamedTuple):
    """A question to the user in free text, and the answers that the agent proposes, if any.

    Not a message of the protocol: agents ask it by an extension method.
    """

    session_id: str
    question: str
    options: tuple[str, ...] = ()


# The answer to a `UserQuestion` where there is no user. An agent that got an error, or nothing, would wait for ever.
# Models know it by this very text.
USER_UNAVAILABLE: Final = "(user unavailable)"


def rejection(request: RequestPermission) -> Selected | Dismissed:
    """Return a no in the agent's own words: its reject option, once before always; else `Dismissed`.

    An id that stands for two options is not chosen: the agent may read it as the other one.
    """
    ids = [option.option_id for option in request.options]
    for kind in ("reject_once", "reject_always"):
        for option in request.options:
            if option.kind == kind and ids.count(option.option_id) == 1:
                return Selected(option.option_id)
    return Dismissed()


@overload
def default_answer(request: RequestPermission, *, rejects: bool = False) -> PermissionAnswer: ...
@overload
def default_answer(request: Elicit, *, rejects: bool = False) -> ElicitationAnswer: ...
@overload
def default_answer(request: Request, *, rejects: bool = False) -> Reply | None: ...
def default_answer(request: Request, *, rejects: bool = False) -> Reply | None:
    """Return the answer to a question that no user will answer: a permission is dismissed, a form or a page cancelled.

    `rejects`: a permission is rejected by an option of its own instead (`rejection`), where the agent is still there
    and goes on by it. None: the request is no question to a user, and fails.
    """
    match request:
        case RequestPermission():
            return PermissionAnswer(rejection(request) if rejects else Dismissed())
        case Elicit():
            return ElicitationAnswer("cancel")
        case _:
            return None
