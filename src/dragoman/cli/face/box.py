"""The frame that our own questions stand in, and the words of a permission request inside it.

No agent can draw it: its glyphs are taken out of everything an agent says, and it bears a word that no agent was told.
What an agent wrote stands behind our own labels, with every hidden character spelled out, and an option is named by
what it does and not by what it is called.

What cannot be shown whole can only be refused. What is shown whole but is taller than the screen is read page by page
(`asking`), and like what has hidden characters it cannot be allowed for ever.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import UNSET, UnsetType, json

from dragoman.cli.face.inert import exact, exact_line
from dragoman.cli.plain import pad, width
from dragoman.host.text import hidden_character
from dragoman.vocabulary.content import Content, Image, Resource, TextResource, UnknownContent, text_of
from dragoman.vocabulary.events import ToolCallUpdate
from dragoman.vocabulary.services import (
    CommandSubject,
    PermissionOption,
    RequestPermission,
    ToolCallSubject,
    UnknownSubject,
)
from dragoman.vocabulary.tool_call_state import INCOMPLETE
from dragoman.vocabulary.tools import (
    ClientTerminalItem,
    ContentItem,
    Diff,
    FileChange,
    Patch,
    TerminalItem,
    UnknownChange,
    UnknownItem,
)
from dragoman.vocabulary.word import Extras

# A wider frame is harder to read and not more informative.
WIDEST: Final = 100
# Lines of a message that asks for nothing to be done; more of them are counted.
LINES: Final = 30
# What one question can show of a title, of a text and of the places it is about, and how tall it can be. More than
# that is read by no one, and can only be refused.
TITLE_CHARACTERS: Final = 4_000
TEXT_CHARACTERS: Final = 200_000
PLACES: Final = 500
QUESTION_CHARACTERS: Final = 500_000
MOST_ROWS: Final = 3_000
# Columns and rows that one row of the frame and the line below it need.
SMALLEST: Final = (20, 6)
# Options that fit on a screen. An agent that offers more is mistaken.
OPTIONS: Final = 20
_MEANINGS: Final = {
    "allow_once": "yes, this once",
    "allow_always": "yes, and do not ask again",
    "reject_once": "no",
    "reject_always": "no, and do not ask again",
}
_WORDS: Final = (
    "amber anchor apple badge basil beach birch brook candle cedar cherry cliff clover cobalt copper coral "
    "cotton daisy delta ember fable falcon fern flint forest garnet ginger harbor hazel heron indigo island ivory "
    "jasper kettle lagoon lantern lemon lilac linen lotus maple marble meadow mint nectar nutmeg oak olive onyx "
    "opal orchid otter panda pearl pebble pepper pine plum poppy quartz raven reef river robin rose saffron "
    "sage satin shell silver sparrow spruce stone sugar summit swan thistle tiger topaz tulip velvet violet walnut "
    "willow winter wren"
)


def secret_word() -> str:
    """Two words that an agent cannot guess within a conversation."""
    import secrets

    words = _WORDS.split()
    return f"{secrets.choice(words)}-{secrets.choice(words)}"


_GOES_ON: Final = "  … "


class _Changed(str):
    """A line of a diff."""


_COLOURS: Final = {"+": "32", "-": "31", "@": "36"}


# As long as a heading can be: our word is chosen elsewhere.
_HEADING: Final = f"dragoman asks · {'x' * 17}"


def framed(heading: str, lines: Sequence[str], columns: int, *, coloured: bool = False) -> list[str]:
    """The lines inside the frame; long ones are wrapped."""
    inner = _inner(columns)
    top = f"═ {heading} "
    return [
        f"╔{top}{'═' * max(inner + 2 - width(top), 0)}╗",
        *(
            f"║ {_painted(pad(part, inner), line) if coloured else pad(part, inner)} ║"
            for line in lines
            for part in wrapped(line, inner)
        ),
        f"╚{'═' * (inner + 2)}╝",
    ]


def _inner(columns: int) -> int:
    """How wide the inside of the frame is."""
    return max(min(columns - 1, WIDEST) - 4, 16)


def _painted(part: str, line: str) -> str:
    colour = _COLOURS.get(line.lstrip(" ")[:1]) if isinstance(line, _Changed) else None
    return part if colour is None else f"\x1b[{colour}m{part}\x1b[0m"


def wrapped(line: str, columns: int) -> Iterator[str]:
    """Cut a line in parts that fit.

    What goes on stands behind a mark: only our own words are at the margin, and no long text of an agent can look like
    a line of ours.
    """
    line = line.expandtabs(4)
    if width(line) <= columns:
        yield line
        return
    part: list[str] = []
    used = 0
    for character in line:
        wide = width(character)
        if used + wide > columns:
            yield "".join(part)
            part, used = [_GOES_ON], width(_GOES_ON)
        part.append(character)
        used += wide
    yield "".join(part)


class Question(NamedTuple):
    """What an agent wants to do, in lines, and what can be answered."""

    lines: list[str]
    options: list[PermissionOption]


class _Cut(str):
    """A line that says that something is not shown."""


def question(request: RequestPermission, columns: int = 80, rows: int = 24) -> Question:
    """A permission request, to be put into the frame on a screen of this size."""
    lines = list(_up_to(QUESTION_CHARACTERS, MOST_ROWS, _subject(request, _text)))
    options = list(request.options)
    if any(isinstance(line, _Cut) for line in lines) or _height(lines, columns) > MOST_ROWS:
        lines = list(_up_to(30 * WIDEST, 3 * LINES, _subject(request, _some)))
        options = [option for option in options if option.kind in ("reject_once", "reject_always")]
        lines.append("(!) Not all of it can be shown here, so it can only be refused.")
    elif columns < SMALLEST[0] or rows < SMALLEST[1]:
        options = [option for option in options if option.kind in ("reject_once", "reject_always")]
        lines.append(f"(!) It can only be refused on a screen below {SMALLEST[0]} columns and {SMALLEST[1]} rows.")
    elif (reason := _once_only(request, lines, columns, rows)) and any(one.kind == "allow_always" for one in options):
        options = [option for option in options if option.kind != "allow_always"]
        lines.append(f"(!) {reason}, so it cannot be allowed for ever.")
    return Question([*lines, "", *_choices(options)], options)


def _up_to(characters: int, most: int, lines: Iterator[str]) -> Iterator[str]:
    """The lines, until there are more of them, or more characters, than that."""
    for number, line in enumerate(lines, 1):
        yield line
        characters -= len(line)
        if characters < 0 or number > most:
            yield _Cut("(!) More of it is not shown here")
            return


def _once_only(request: RequestPermission, lines: Sequence[str], columns: int, rows: int) -> str:
    """Return the reason why only this one call may be allowed, or the empty text."""
    if is_taller([*lines, "", *_choices(request.options)], columns, rows):
        return "It is taller than the screen"
    if isinstance(request.subject, UnknownSubject):
        return "It is about something this release does not know"
    if any(map(hidden_character, _judged_texts(request))):
        return "It has characters that do not show, which are spelled out here"
    return ""


def screen_rows(row: str, columns: int) -> int:
    """Return how many rows of a screen a row of ours takes: it is wider than a narrow screen."""
    return max(1, -(-width(row) // max(columns, 1)))


def is_taller(lines: Sequence[str], columns: int, rows: int) -> bool:
    """Whether the lines in their frame leave no room for the line of the answer, and the one the cursor moves to."""
    return sum(screen_rows(row, columns) for row in framed(_HEADING, lines, columns)) > rows - 2


def _height(lines: Sequence[str], columns: int) -> int:
    """How many rows the lines take inside the frame."""
    return sum(1 for line in lines for _ in wrapped(line, _inner(columns)))


def _judged_texts(request: RequestPermission) -> Iterator[str]:
    """What a rule would be about: the title, the command, the paths and whatever else the tool is given."""
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


# A text in lines, whole or the parts of it that tell what it is.
_Show = Callable[[str], Iterator[str]]


def _subject(request: RequestPermission, show: _Show) -> Iterator[str]:
    yield "The agent asks for permission:"
    most = TITLE_CHARACTERS if show is _text else 3 * WIDEST
    yield f"  {exact_line(request.title[:most])}"
    if len(request.title) > most:
        yield _Cut("  (!) the title is longer than this")
    if isinstance(request.description, str):
        yield from show(request.description)
    match request.subject:
        case CommandSubject(command=command, cwd=cwd):
            yield "Command:"
            yield from show(command)
            yield f"In: {exact_line(cwd)}"
        case ToolCallSubject(tool_call=call):
            yield from _call(call, show)
            yield from _unknown(request.extras, show)
        case UnknownSubject(kind=kind, fields=fields):
            yield f"About something this release does not know: {exact_line(kind)}"
            yield from show(_as_json(fields))
        case _:
            pass


def _call(call: ToolCallUpdate, show: _Show) -> Iterator[str]:
    if isinstance(call.kind, str):
        yield f"Kind: {exact_line(call.kind)}"
    places = list(call.locations or ())
    most = PLACES if show is _text else 10
    for place in places[:most]:
        yield f"File: {exact_line(place.path)}"
    if len(places) > most:
        yield _Cut(f"(!) {len(places) - most:,} more files are not shown here")
    for item in call.content or ():
        match item:
            case Diff():
                yield from _diff(item, show)
            case ContentItem(content=UnknownContent(kind=kind, fields=fields)):
                yield f"Content this release does not know: {exact_line(kind)}"
                yield from show(_as_json(fields))
            case ContentItem(content=content):
                yield from _place_of(content)
                yield from show(text_of((content,)))
            case TerminalItem(terminal_id=terminal) | ClientTerminalItem(terminal_id=terminal):
                yield f"Terminal: {exact_line(terminal)}"
            case UnknownItem(kind=kind) if kind == INCOMPLETE:
                yield _Cut("(!) The agent told more of this than is kept")
            case UnknownItem(kind=kind, fields=fields):
                yield f"Content this release does not know: {exact_line(kind)}"
                yield from show(_as_json(fields))
    yield from _input(_untold_input(call), show)
    yield from _unknown(call.extras, show)


def _unknown(extras: "Extras | UnsetType", show: _Show) -> Iterator[str]:
    if isinstance(extras, Extras):
        yield "Fields that this release does not know:"
        yield from show(_as_json(extras.fields))


def _place_of(content: Content) -> Iterator[str]:
    """The address of a text or picture: a file that is judged, and that the text does not tell."""
    match content:
        case Resource(resource=TextResource(uri=uri)) | Image(uri=str() as uri):
            yield f"From: {exact_line(uri)}"
        case _:
            pass


def _diff(diff: Diff, show: _Show) -> Iterator[str]:
    """The files that are changed, and how. A patch beside them is for reading, and may name others."""
    from dragoman.agent.updates import patch_text  # the second version's words, which many turns never need

    for change in diff.changes:
        if isinstance(change, FileChange) and (isinstance(diff.patch, Patch) or isinstance(change.old_path, str)):
            source = f"{change.old_path} -> " if isinstance(change.old_path, str) else ""
            yield f"Change: {exact_line(f'{change.operation} {source}{change.path}')}"
        if isinstance(change, FileChange) and isinstance(change.file_type, str):
            yield f"It is: {exact_line(change.file_type)}"
        if isinstance(change, UnknownChange) and isinstance(diff.patch, Patch):
            yield f"Change: {exact_line(change.kind)}"
    for line in show(patch_text(diff)):
        yield line if isinstance(line, _Cut) else _Changed(line)


def _untold_input(call: ToolCallUpdate) -> object:
    """What the tool is given and no diff tells: texts and paths of it that stand in a diff need not be read twice."""
    diffs = [item for item in call.content or () if isinstance(item, Diff)]
    if not diffs or not isinstance(call.raw_input, dict):
        return call.raw_input
    from dragoman.client.tool_input import is_told_by_diff

    changes = [change for diff in diffs for change in diff.changes if isinstance(change, FileChange)]
    paths = [change.path for change in changes]
    texts = [text for one in changes for text in (one.old_text, one.new_text) if isinstance(text, str)]
    if sum(map(len, texts)) > TEXT_CHARACTERS or len(call.raw_input) > PLACES:
        return call.raw_input
    given = call.raw_input.items()
    return {name: value for name, value in given if not is_told_by_diff(str(name), value, paths, texts)}


def _input(given: object, show: _Show) -> Iterator[str]:
    """What the tool is given: a command as it would be typed, the rest as it is."""
    rest = given
    if isinstance(given, dict) and isinstance(given.get("command"), str):
        yield "Command:"
        yield from show(given["command"])
        rest = {name: value for name, value in given.items() if name != "command"}
    if rest is not UNSET and rest not in (None, {}):
        yield "Input:"
        yield from show(_as_json(rest))


def _as_json(value: object) -> str:
    try:
        return json.format(json.encode(value), indent=2).decode()
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def _text(text: str) -> Iterator[str]:
    """A text, each line behind our margin."""
    for line in exact(text[:TEXT_CHARACTERS]).rstrip("\n").split("\n"):
        yield f"  {line}"
    if len(text) > TEXT_CHARACTERS:
        yield _Cut(f"  (!) {len(text) - TEXT_CHARACTERS:,} more characters are not shown here")


def _some(text: str) -> Iterator[str]:
    """The start and the end of a text that is too long to be judged: what it is can still be told."""
    lines = text.rstrip("\n").split("\n")
    for line in lines if len(lines) <= LINES else lines[: LINES - 5]:
        yield from _start_of(line)
    if len(lines) > LINES:
        yield _Cut(f"  (!) {len(lines) - LINES:,} more lines are not shown here")
        for line in lines[-5:]:
            yield from _start_of(line)


def _start_of(line: str) -> Iterator[str]:
    yield f"  {exact(line[: 3 * WIDEST])}"
    if len(line) > 3 * WIDEST:
        yield _Cut(f"  (!) {len(line) - 3 * WIDEST:,} more characters are not shown here")


def _choices(options: Sequence[PermissionOption]) -> Iterator[str]:
    for number, option in enumerate(options[:OPTIONS], 1):
        yield f"{number}  {_meaning(option)}"


def _meaning(option: PermissionOption) -> str:
    called = exact_line(option.name[:80])[:80]
    known = _MEANINGS.get(option.kind)
    if known is None:
        return f"(something else) “{called}”"
    return f"{known}  “{called}”" if called else known


def chosen(words: str, options: Sequence[PermissionOption]) -> PermissionOption | None:
    """The option that somebody's answer means: its number, `y` or `n`. None where it means none of them."""
    answer = words.strip().lower()
    if answer.isdecimal() and len(answer) < 4:
        number = int(answer)
        return options[number - 1] if 0 < number <= min(len(options), OPTIONS) else None
    kind = {"y": "allow_once", "yes": "allow_once", "n": "reject_once", "no": "reject_once"}.get(answer)
    found = [option for option in options if option.kind == kind]
    return found[0] if len(found) == 1 else None
