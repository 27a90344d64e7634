"""Gather the facts of an agent's request, by what it carries: paths, commands, addresses. Pure.

Titles and names are for display and are not looked at. The kind is the agent's own word: it can make a request look
more serious than what it carries, never less. What cannot be understood is said to be `unclear`, and only a person or
a rule for everything says yes to that.
"""

from typing import Final

from msgspec import UnsetType

from dragoman.client.command_lines import BASH, judged_line, terminal_argv
from dragoman.client.tool_input import ToolInput
from dragoman.permissions.facts import Action, ActionKind, CallFacts
from dragoman.vocabulary.content import (
    BlobResource,
    Content,
    Resource,
    ResourceLink,
    Text,
    TextResource,
    UnknownContent,
)
from dragoman.vocabulary.events import ToolCallUpdate
from dragoman.vocabulary.services import (
    CommandSubject,
    CreateTerminal,
    ReadTextFile,
    RequestPermission,
    ToolCallSubject,
    WriteTextFile,
)
from dragoman.vocabulary.tool_call_state import INCOMPLETE, has_unread_parts
from dragoman.vocabulary.tools import (
    ClientTerminalItem,
    ContentItem,
    Diff,
    FileChange,
    Location,
    Patch,
    TerminalItem,
    UnknownItem,
)
from dragoman.vocabulary.word import Extras

GuardedRequest = RequestPermission | ReadTextFile | WriteTextFile | CreateTerminal

_READING: Final = frozenset({"read", "search"})
_EDITING: Final = frozenset({"edit", "delete", "move"})
# A link leads elsewhere, and a folder may hold anything.
_PLAIN_FILES: Final = ("text", "binary")


def call_facts(request: GuardedRequest, shell: str = BASH) -> CallFacts:
    """Return what a request can be judged by. `shell` runs a terminal's line of text."""
    match request:
        case ReadTextFile(path=path):
            return CallFacts((Action("read", path),))
        case WriteTextFile(path=path):
            return CallFacts((Action("edit", path),))
        case CreateTerminal():
            return _of_terminal(request, shell)
        case RequestPermission(subject=CommandSubject(command=command, cwd=cwd) as subject):
            unclear = "it has fields that this release does not know" if subject.extras else ""
            return CallFacts((Action("execute", command, portable=True), *_folder(cwd)), unclear)
        case RequestPermission(subject=ToolCallSubject(tool_call=call)):
            return _of_call(call, request.extras)
        case RequestPermission():
            return CallFacts((Action("other", is_known=False),), "it does not say what it is about")


def _of_terminal(request: CreateTerminal, shell: str) -> CallFacts:
    line = judged_line(request, shell)
    by_another_shell = terminal_argv(request, shell)[0] == shell != BASH and line.portable
    unclear = f"there is no bash here, and {shell} may read the line in another way" if by_another_shell else ""
    return CallFacts((line, *_folder(request.cwd)), unclear)


def _folder(cwd: object) -> tuple[Action, ...]:
    return (Action("mention", cwd),) if isinstance(cwd, str) and cwd else ()


def _of_call(call: ToolCallUpdate, beside: "Extras | UnsetType") -> CallFacts:
    """Return the facts of a tool call. `beside` are fields of the question that this release does not know."""
    found = ToolInput()
    has_diff = False
    if isinstance(call.raw_input, (dict, list, str)):
        found.read(call.raw_input)
    for unknown in (call.extras, beside):
        if isinstance(unknown, Extras):
            found.read(unknown.fields)
    for location in call.locations or ():
        if isinstance(location, Location):
            found.path(location.path)
    for item in call.content or ():
        match item:
            case Diff():
                has_diff = True
                _read_diff(found, item)
            case ContentItem(content=content):
                _read_content(found, content)
            case TerminalItem() | ClientTerminalItem():
                found.unclear = "it shows a terminal, and the command in it is not known"
            case UnknownItem(kind=kind) if kind == INCOMPLETE:
                found.unclear = "more was sent about it than is kept"
            case UnknownItem():
                found.unclear = "it carries content of an unknown kind"
    if has_unread_parts(call):
        found.unclear = "parts of it cannot be read"
    return _combine(found, call.kind if isinstance(call.kind, str) else "", has_diff=has_diff)


def _read_diff(found: ToolInput, diff: Diff) -> None:
    named = False
    for change in diff.changes:
        if not isinstance(change, FileChange):
            found.unclear = "it changes files in an unknown way"
            continue
        named = True
        found.path(change.path)
        if isinstance(change.old_path, str):
            found.path(change.old_path)
        if isinstance(change.file_type, str) and change.file_type not in _PLAIN_FILES:
            found.unclear = "it changes something that is not a plain file"
    if isinstance(diff.patch, Patch):
        named = found.patch(diff.patch.text) or named
    if not named:
        found.unclear = "it has a diff that names no file"
    if has_unread_parts(diff):
        found.unclear = "parts of its diff cannot be read"


def _read_content(found: ToolInput, content: Content) -> None:
    match content:
        case Text(text=text):
            found.patch(text)
        case Resource(resource=TextResource(text=text, uri=uri)):
            found.patch(text)
            _read_uri(found, uri)
        case Resource(resource=BlobResource(uri=uri)) | ResourceLink(uri=uri):
            _read_uri(found, uri)
        case UnknownContent():
            found.unclear = "it carries content of an unknown kind"
        case _:
            pass


def _read_uri(found: ToolInput, uri: str) -> None:
    """Read the address of a file that the content refers to. Others are for the reader: the call does not use them."""
    if uri.lower().startswith("file:"):
        found.address(uri)


def _combine(found: ToolInput, label: str, *, has_diff: bool) -> CallFacts:
    """Return the facts in what was found. `label` is the kind that the agent has given the call."""
    actions = list(dict.fromkeys(found.commands)) or _claimed("execute", label)
    actions += [Action("fetch", address) for address in dict.fromkeys(found.addresses)] or _claimed("fetch", label)
    writes = found.writes or (found.changes and not actions)
    use: ActionKind = "mention" if actions else "other"
    if has_diff or label in _EDITING or (writes and (actions or label in _READING)):
        use = "edit"
    elif label in _READING:
        use = "read"
    paths = found.all_paths()
    actions += [Action(use, path) for path in paths] or [Action(use, is_known=False)]
    unclear = found.unclear
    if found.commands and (found.writes or has_diff):
        unclear = unclear or "it runs a command and writes something beside it"
    if not (unclear or paths or found.commands or found.addresses):
        unclear = "it names no file, no command and no address"
    return CallFacts(tuple(actions), unclear, found.is_cut)


def _claimed(kind: ActionKind, label: str) -> list[Action]:
    """Return what a call says that it does, and not to what."""
    return [Action(kind, is_known=False)] if label == kind else []
