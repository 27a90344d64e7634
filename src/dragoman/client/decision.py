"""A decision about what an agent asked for: what was decided, by whom and by which words. A value."""

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from dragoman.client.call_facts import GuardedRequest
from dragoman.client.command_lines import terminal_line
from dragoman.permissions.rule import PermissionRule
from dragoman.vocabulary.services import CreateTerminal, ReadTextFile, RequestPermission, WriteTextFile

By = Literal["user", "rule", "policy"]
_METHODS: Final = {
    RequestPermission: "session/request_permission",
    ReadTextFile: "fs/read_text_file",
    WriteTextFile: "fs/write_text_file",
    CreateTerminal: "terminal/create",
}


class PermissionDecision(NamedTuple):
    """What became of one request. `title` and `reason` may hold content: paths and commands."""

    session_id: str
    # How it was asked for, and what sort of act it is: `read`, `edit`, `execute`, `fetch`, `other`.
    method: str
    kind: str
    title: str
    is_allowed: bool
    by: By
    # The kind of the option that was chosen; empty: none was, or it was chosen when another request was asked about.
    option: str = ""
    # What decided, where the user did not: in a few words without content, the rule if it was one, and why.
    basis: str = ""
    rule: PermissionRule | None = None
    reason: str = ""


OnDecision = Callable[[PermissionDecision], None]


def method_of(request: GuardedRequest) -> str:
    """Return the method by which an agent asks for something."""
    return _METHODS[type(request)]


def title_of(request: GuardedRequest, shell: str) -> str:
    """Return what a request is about, in a line; a command as it is judged, shown and run in `shell`."""
    match request:
        case RequestPermission(title=title):
            return title
        case ReadTextFile(path=path) | WriteTextFile(path=path):
            return path
        case CreateTerminal():
            return terminal_line(request, shell)
