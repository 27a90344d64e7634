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
    match request:
        case CreateTerminal():
            line = terminal_line(request, shell).text
            folder = request.cwd if isinstance(request.cwd, str) and request.cwd else cwd
            return RequestPermission(request.session_id, f"Run {line}", _OPTIONS, subject=CommandSubject(line, folder))
        case WriteTextFile(path=path):
            text = None if before is None else before.decode(errors="replace")
            call = ToolCallUpdate(
                "fs/write_text_file",
                kind="edit",
                locations=[Location(path)],
                content=[Diff.of(path, text, request.content)],
            )
            return RequestPermission(request.session_id, f"Write {path}", _OPTIONS, subject=ToolCallSubject(call))
        case ReadTextFile(path=path):
            call = ToolCallUpdate(
                "fs/read_text_file", kind="read", locations=[Location(path)], content=[ContentItem(Text(path))]
            )
            return RequestPermission(request.session_id, f"Read {path}", _OPTIONS, subject=ToolCallSubject(call))
