"""A file or a command that an agent wants from its client, asked about as a permission: the user sees one kind of
question. Pure."""

from typing import Final

from dragoman.client.command_lines import terminal_line
from dragoman.vocabulary.content import Text
from dragoman.vocabulary.events import ToolCallUpdate
from dragoman.vocabulary.services import (
    CommandSubject,
    CreateTerminal,
    PermissionOption,
    ReadTextFile,
    RequestPermission,
    ToolCallSubject,
    WriteTextFile,
)
from dragoman.vocabulary.tools import ContentItem, Diff, Location

_OPTIONS: Final = [
    PermissionOption("allow", "Allow", "allow_once"),
    PermissionOption("reject", "Reject", "reject_once"),
]


def question_about(
    request: ReadTextFile | WriteTextFile | CreateTerminal, before: bytes | None, *, shell: str, cwd: str
) -> RequestPermission:
    """Return the question. `before` is what a file holds now, None if there is none; `shell` runs a line of text."""
    title = title_for_user(request, shell=shell)
    match request:
        case CreateTerminal():
            line = terminal_line(request, shell)
            folder = request.cwd if isinstance(request.cwd, str) and request.cwd else cwd
            return RequestPermission(request.session_id, title, _OPTIONS, subject=CommandSubject(line, folder))
        case WriteTextFile(path=path):
            text = None if before is None else before.decode(errors="replace")
            call = ToolCallUpdate(
                "fs/write_text_file",
                kind="edit",
                locations=[Location(path)],
                content=[Diff.of(path, text, request.content)],
            )
            return RequestPermission(request.session_id, title, _OPTIONS, subject=ToolCallSubject(call))
        case ReadTextFile(path=path):
            call = ToolCallUpdate(
                "fs/read_text_file", kind="read", locations=[Location(path)], content=[ContentItem(Text(path))]
            )
            return RequestPermission(request.session_id, title, _OPTIONS, subject=ToolCallSubject(call))


def title_for_user(request: ReadTextFile | WriteTextFile | CreateTerminal, *, shell: str) -> str:
    """Return what a request wants in a few words: the title of its question, and the name of its denial."""
    match request:
        case CreateTerminal():
            return f"Run {terminal_line(request, shell)}"
        case WriteTextFile(path=path):
            return f"Write {path}"
        case ReadTextFile(path=path):
            return f"Read {path}"
