"""The frame that our own questions stand in, and the words of a permission request inside it.

No agent can draw it: its glyphs are taken out of everything an agent says, and it bears a word that no agent was told.
What an agent wrote stands behind our own labels, and an option is named by what it does and not by what it is called.
Nobody can say yes for ever to what was not shown whole.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import UNSET, json

from dragoman.cli.face.inert import inert, inert_line
from dragoman.cli.face.telling import DIFF_LINES, TITLE_LENGTH, diff_text, title
from dragoman.cli.plain import pad, width
from dragoman.vocabulary.events import ToolCallUpdate
from dragoman.vocabulary.services import (
    CommandSubject,
    PermissionOption,
    RequestPermission,
    ToolCallSubject,
    UnknownSubject,
)
from dragoman.vocabulary.tools import Diff

# A wider frame is harder to read and not more informative.
WIDEST: Final = 100
# Lines and places of one question that are shown; more of them are counted.
LINES: Final = 30
PLACES: Final = 10
# Options that fit on a screen. An agent that offers more is mistaken.
OPTIONS: Final = 20
_INPUT_LENGTH: Final = 2000
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


class _Changed(str):
    """A line of a diff."""


_COLOURS: Final = {"+": "32", "-": "31", "@": "36"}


def framed(heading: str, lines: Sequence[str], columns: int, *, coloured: bool = False) -> list[str]:
    """The lines inside the frame; long ones are wrapped."""
    inner = max(min(columns - 1, WIDEST) - 4, 16)
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


def _painted(part: str, line: str) -> str:
    colour = _COLOURS.get(line.lstrip(" ")[:1]) if isinstance(line, _Changed) else None
    return part if colour is None else f"\x1b[{colour}m{part}\x1b[0m"


def wrapped(line: str, columns: int) -> Iterator[str]:
    """A line in parts that fit."""
    line = line.expandtabs(4)
    if width(line) <= columns:
        yield line
        return
    part, used = "", 0
    for character in line:
        wide = width(character)
        if used + wide > columns:
            yield part
            part, used = "", 0
        part += character
        used += wide
    yield part


class Question(NamedTuple):
    """What an agent wants to do, in lines, and what can be answered."""

    lines: list[str]
    options: list[PermissionOption]


class _Cut(str):
    """A line that says that something is not shown."""


def question(request: RequestPermission) -> Question:
    """A permission request, to be put into the frame."""
    lines = list(_subject(request))
    options = list(request.options)
    if any(isinstance(line, _Cut) for line in lines):
        options = [option for option in options if option.kind != "allow_always"]
        if len(options) < len(request.options):
            lines.append("(!) Not all of it is shown, so it cannot be allowed for ever.")
    return Question([*lines, "", *_choices(options)], options)


def _subject(request: RequestPermission) -> Iterator[str]:
    yield "The agent asks for permission:"
    yield f"  {title(request.title)}"
    if len(request.title) > TITLE_LENGTH:
        yield _Cut("  (!) the title is longer than this")
    if isinstance(request.description, str):
        yield from _some(inert(request.description))
    match request.subject:
        case CommandSubject(command=command, cwd=cwd):
            yield "Command:"
            yield from _some(inert(command))
            yield f"In: {inert_line(cwd)}"
        case ToolCallSubject(tool_call=call):
            yield from _call(call)
        case UnknownSubject(kind=kind):
            yield _Cut(f"About something this release does not know: {inert_line(kind)}")
        case _:
            pass


def _call(call: ToolCallUpdate) -> Iterator[str]:
    if isinstance(call.kind, str):
        yield f"Kind: {title(call.kind)}"
    places = list(call.locations or ())
    for place in places[:PLACES]:
        yield f"File: {inert_line(place.path)}"
    if len(places) > PLACES:
        yield _Cut(f"(!) {len(places) - PLACES:,} more files are not shown here")
    diffs = [item for item in call.content or () if isinstance(item, Diff)]
    for diff in diffs:
        for line in _some(diff_text(diff), DIFF_LINES):
            yield line if isinstance(line, _Cut) else _Changed(line)
    yield from _input(call.raw_input, told=bool(diffs))


def _input(given: object, *, told: bool) -> Iterator[str]:
    """What the tool is given: a command as it would be typed, the rest as it is unless a diff tells it."""
    rest = given
    if isinstance(given, dict) and isinstance(given.get("command"), str):
        yield "Command:"
        yield from _some(inert(given["command"]))
        rest = {name: value for name, value in given.items() if name != "command"}
    if not told and rest is not UNSET and rest not in (None, {}):
        yield "Input:"
        text = _as_json(rest)
        yield from _some(inert(text[:_INPUT_LENGTH]))
        if len(text) > _INPUT_LENGTH:
            yield _Cut(f"  (!) {len(text) - _INPUT_LENGTH:,} more characters are not shown here")


def _as_json(value: object) -> str:
    try:
        return json.format(json.encode(value), indent=2).decode()
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def _some(text: str, most: int = LINES) -> Iterator[str]:
    """The text, its middle left out if it is long: what stands at its end counts as much as its start."""
    lines = text.rstrip("\n").split("\n")
    if len(lines) <= most:
        yield from _lines(lines)
        return
    yield from _lines(lines[: most - 5])
    yield _Cut(f"  (!) {len(lines) - most:,} more lines are not shown here")
    yield from _lines(lines[-5:])


def _lines(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield f"  {line[: LINES * WIDEST]}"
        if len(line) > LINES * WIDEST:
            yield _Cut(f"  (!) {len(line) - LINES * WIDEST:,} more characters are not shown here")


def _choices(options: Sequence[PermissionOption]) -> Iterator[str]:
    for number, option in enumerate(options[:OPTIONS], 1):
        yield f"{number}  {_meaning(option)}"


def _meaning(option: PermissionOption) -> str:
    called = title(option.name)[:80]
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
