"""A permission request in lines, for a person to judge: what an agent wrote, behind labels of ours.

Every hidden character is spelled out, and nothing is left out without a line that says so. How much is shown is an
`Extent`: all of it, what a person may be expected to read, or enough to tell what it is about.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple, get_args

from msgspec import UNSET, UnsetType, json

from dragoman.cli.terminal.sanitize import spell_out, spell_out_line
from dragoman.vocabulary.content import Content, Image, Resource, TextResource, UnknownContent, text_of
from dragoman.vocabulary.events import ToolCallUpdate
from dragoman.vocabulary.services import CommandSubject, RequestPermission, ToolCallSubject, UnknownSubject
from dragoman.vocabulary.tool_call_state import INCOMPLETE
from dragoman.vocabulary.tools import (
    ClientTerminalItem,
    ContentItem,
    Diff,
    FileChange,
    Patch,
    TerminalItem,
    ToolKind,
    UnknownChange,
    UnknownItem,
)
from dragoman.vocabulary.word import Extras

# Of a text that is shown in part: its lines, and the characters of a line.
LINES: Final = 30
LINE_CHARACTERS: Final = 300
# What one question shows of a title, of a text and of the places it is about. More is shown where a person asks for
# all of it.
TITLE_CHARACTERS: Final = 4_000
TEXT_CHARACTERS: Final = 200_000
PLACES: Final = 500
# The field of a tool whose patch is shown as a diff.
_PATCH: Final = "patch"
# An input that is no longer stands on the line of its label.
INPUT_CHARACTERS: Final = 60


class ChangedLine(str):
    """A line of a diff."""


class CutLine(str):
    """A line that says that something is not shown."""


class Extent(NamedTuple):
    """How much of a request is shown: of its title, how many places, and how a text is put into lines."""

    title: int
    places: int
    text: Callable[[str], Iterator[str]]


def is_incomplete(request: RequestPermission) -> bool:
    """Return whether the agent has sent more about a call than is stored here."""
    if not isinstance(request.subject, ToolCallSubject):
        return False
    items = request.subject.tool_call.content or ()
    return any(isinstance(item, UnknownItem) and item.kind == INCOMPLETE for item in items)


def judged_texts(request: RequestPermission) -> Iterator[str]:
    """Yield what a rule would be about: the title, the command, the paths and the rest of the tool's input."""
    yield request.title
    match request.subject:
        case CommandSubject(command=command, cwd=cwd):
            yield from (command, cwd)
        case ToolCallSubject(tool_call=call):
            yield from (place.path for place in call.locations or ())
            if (given := _untold_input(call)) is not UNSET:
                yield _as_json(given)
        case _:
            pass


def request_lines(request: RequestPermission, extent: Extent) -> Iterator[str]:
    """Yield the lines of a request, each as it is needed."""
    show = extent.text
    yield from _heading(request, extent)
    if isinstance(request.description, str):
        yield from show(request.description)
    match request.subject:
        case CommandSubject(command=command, cwd=cwd):
            yield "Command:"
            yield from show(command)
            yield f"In: {spell_out_line(cwd)}"
        case ToolCallSubject(tool_call=call):
            yield from _call(call, extent)
            yield from _unknown(request.extras, show)
        case UnknownSubject(kind=kind, fields=fields):
            yield f"About something this release does not know: {spell_out_line(kind)}"
            yield from show(_as_json(fields))
        case _:
            pass


def _heading(request: RequestPermission, extent: Extent) -> Iterator[str]:
    """Yield what is asked for; a title that is the command itself is not said twice."""
    call = request.subject.tool_call if isinstance(request.subject, ToolCallSubject) else None
    kind = call.kind if call is not None and call.kind in get_args(ToolKind) else None
    asks = "The agent asks for permission" if kind is None else f"The agent asks for permission ({kind})"
    if request.title == _command(request) and request.title == request.title.strip():
        yield f"{asks}:"
        return
    yield f"{asks}: {spell_out_line(request.title[: extent.title])}"
    if len(request.title) > extent.title:
        yield CutLine("  (!) the title is longer than this")


def _command(request: RequestPermission) -> str | None:
    """Return the command that has lines of its own below the heading."""
    match request.subject:
        case CommandSubject(command=command):
            return command
        case ToolCallSubject(tool_call=call) if isinstance(given := _untold_input(call), dict):
            typed = given.get("command")
            return typed if isinstance(typed, str) else None
        case _:
            return None


def _call(call: ToolCallUpdate, extent: Extent) -> Iterator[str]:
    show, most = extent.text, extent.places
    if isinstance(call.kind, str) and call.kind not in get_args(ToolKind):
        yield f"Kind: {spell_out_line(call.kind)}"
    changed = {path for item in call.content or () if isinstance(item, Diff) for path in _named_changes(item)}
    places = [place for place in call.locations or () if place.path not in changed]
    for place in places[:most]:
        yield f"File: {spell_out_line(place.path)}"
    if len(places) > most:
        yield CutLine(f"(!) {len(places) - most:,} more files are not shown here")
    for item in call.content or ():
        match item:
            case Diff():
                yield from _diff(item, show)
            case ContentItem(content=UnknownContent(kind=kind, fields=fields)):
                yield f"Content this release does not know: {spell_out_line(kind)}"
                yield from show(_as_json(fields))
            case ContentItem(content=content):
                yield from _place_of(content)
                yield from show(text_of((content,)))
            case TerminalItem(terminal_id=terminal) | ClientTerminalItem(terminal_id=terminal):
                yield f"Terminal: {spell_out_line(terminal)}"
            case UnknownItem(kind=kind) if kind == INCOMPLETE:
                yield CutLine("(!) The agent sent more about this call than is stored")
            case UnknownItem(kind=kind, fields=fields):
                yield f"Content this release does not know: {spell_out_line(kind)}"
                yield from show(_as_json(fields))
    yield from _input(_untold_input(call), show)
    yield from _unknown(call.extras, show)


def _unknown(extras: "Extras | UnsetType", show: Callable[[str], Iterator[str]]) -> Iterator[str]:
    if isinstance(extras, Extras):
        yield "Fields that this release does not know:"
        yield from show(_as_json(extras.fields))


def _place_of(content: Content) -> Iterator[str]:
    """Yield the address of a text or picture: a file that is judged, and that the text does not name."""
    match content:
        case Resource(resource=TextResource(uri=uri)) | Image(uri=str() as uri):
            yield f"From: {spell_out_line(uri)}"
        case _:
            pass


def _named_changes(diff: Diff) -> set[str]:
    """Return the files of a diff that have a line of their own: a patch beside them may name others."""
    changes = [change for change in diff.changes if isinstance(change, FileChange)]
    if plain_header(diff):
        return {change.path for change in changes}
    return {change.path for change in changes if isinstance(diff.patch, Patch) or isinstance(change.old_path, str)}


def plain_header(diff: Diff) -> int:
    """Return how many lines at the head of a patch say no more than the line `Change: …`; 0 for any other patch."""
    from dragoman.dialects.event_json import patch_text  # the second version's words, which many turns never need

    if len(diff.changes) != 1 or not isinstance(change := diff.changes[0], FileChange):
        return 0
    path = change.path
    header = {
        "modify": [f"--- {path}", f"+++ {path}"],
        "add": ["new file mode 100644", "--- /dev/null", f"+++ {path}"],
        "delete": ["deleted file mode 100644", f"--- {path}", "+++ /dev/null"],
    }.get(change.operation, [])
    header.insert(0, f"diff --git {path} {path}")
    length = sum(map(len, header)) + len(header)
    is_plain = patch_text(diff)[: length + 2] == "\n".join([*header, "@@"])
    return len(header) if is_plain else 0


def _diff(diff: Diff, show: Callable[[str], Iterator[str]]) -> Iterator[str]:
    """Yield the files that are changed, and how."""
    from dragoman.dialects.event_json import patch_text  # the second version's words, which many turns never need

    named = _named_changes(diff)
    for change in diff.changes:
        if isinstance(change, FileChange) and change.path in named:
            source = f"{change.old_path} -> " if isinstance(change.old_path, str) else ""
            yield f"Change: {spell_out_line(f'{change.operation} {source}{change.path}')}"
        if isinstance(change, FileChange) and isinstance(change.file_type, str):
            yield f"It is: {spell_out_line(change.file_type)}"
        if isinstance(change, UnknownChange) and isinstance(diff.patch, Patch):
            yield f"Change: {spell_out_line(change.kind)}"
    for line in islice(show(patch_text(diff)), plain_header(diff), None):
        yield line if isinstance(line, CutLine) else ChangedLine(line)


def _untold_input(call: ToolCallUpdate) -> object:
    """Return the part of a tool's input that no diff shows, so that nothing has to be read twice."""
    diffs = [item for item in call.content or () if isinstance(item, Diff)]
    if not diffs or not isinstance(call.raw_input, dict):
        return call.raw_input
    from dragoman.client.hunks import hunk_texts, untold_lines
    from dragoman.client.tool_input import is_shown_by_diff

    changes = [change for diff in diffs for change in diff.changes if isinstance(change, FileChange)]
    paths = [change.path for change in changes]
    texts = [text for one in changes for text in (one.old_text, one.new_text) if isinstance(text, str)]
    patches = [diff.patch.text for diff in diffs if isinstance(diff.patch, Patch)]
    if sum(map(len, (*texts, *patches))) > TEXT_CHARACTERS or len(call.raw_input) > PLACES:
        return call.raw_input
    texts += [text for patch in patches for text in hunk_texts(patch)]
    given = {
        name: untold_lines(value, texts) if name == _PATCH and isinstance(value, str) else value
        for name, value in call.raw_input.items()
    }
    return {name: value for name, value in given.items() if not is_shown_by_diff(str(name), value, paths, texts)}


def _input(given: object, show: Callable[[str], Iterator[str]]) -> Iterator[str]:
    """Yield the input of a tool: a command as it would be typed, the rest as JSON."""
    rest = given
    if isinstance(given, dict) and isinstance(given.get("command"), str):
        yield "Command:"
        yield from show(given["command"])
        rest = {name: value for name, value in given.items() if name != "command"}
    if rest is not UNSET and rest not in (None, {}):
        text = _as_json(rest, indent=0)
        if len(text) <= INPUT_CHARACTERS:
            yield f"Input: {spell_out_line(text)}"
        else:
            yield "Input:"
            yield from show(_as_json(rest))


def _as_json(value: object, *, indent: int = 2) -> str:
    try:
        return json.format(json.encode(value), indent=indent).decode()
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def _text(text: str) -> Iterator[str]:
    """Yield a text up to `TEXT_CHARACTERS`, each line behind our margin."""
    for line in spell_out(text[:TEXT_CHARACTERS]).rstrip("\n").split("\n"):
        yield f"  {line}"
    if len(text) > TEXT_CHARACTERS:
        yield CutLine(f"  (!) {len(text) - TEXT_CHARACTERS:,} more characters are not shown here")


def _whole(text: str) -> Iterator[str]:
    """Yield all of a text, a line at a time, so that a reader who stops pays for no more."""
    for line in text.rstrip("\n").split("\n"):
        yield f"  {spell_out(line)}"


def _some(text: str) -> Iterator[str]:
    """Yield the start and the end of a text that is too long to be judged, so that a user can tell what it is."""
    lines = text.rstrip("\n").split("\n")
    for line in lines if len(lines) <= LINES else lines[: LINES - 5]:
        yield from _start_of(line)
    if len(lines) > LINES:
        yield CutLine(f"  (!) {len(lines) - LINES:,} more lines are not shown here")
        for line in lines[-5:]:
            yield from _start_of(line)


def _start_of(line: str) -> Iterator[str]:
    yield f"  {spell_out(line[:LINE_CHARACTERS])}"
    if len(line) > LINE_CHARACTERS:
        yield CutLine(f"  (!) {len(line) - LINE_CHARACTERS:,} more characters are not shown here")


# All of it; what a question shows at most; enough to tell what it is about.
WHOLE: Final = Extent(2**63, 2**63, _whole)
MUCH: Final = Extent(TITLE_CHARACTERS, PLACES, _text)
SOME: Final = Extent(LINE_CHARACTERS, 10, _some)
