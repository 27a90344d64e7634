"""The frame that our own questions stand in, and what can be answered to a permission request inside it.

No agent can draw it: its glyphs are taken out of everything an agent says, and it bears a word that no agent was told.
What an agent wrote stands behind our own labels (`request_lines`), and an option is named by what it does and not by
what it is called.

What does not fit on the screen is shown when the person asks for it (`v`, in `questions`), and can be allowed only
after that. What has hidden characters cannot be allowed for ever, and what is not known here whole can only be refused.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from dragoman.cli.terminal.request_lines import (
    LINES,
    MUCH,
    SOME,
    WHOLE,
    ChangedLine,
    CutLine,
    is_incomplete,
    judged_texts,
    request_lines,
)
from dragoman.cli.terminal.sanitize import spell_out_line
from dragoman.cli.text_width import in_diff_colour, pad, width, wrap_line
from dragoman.host.text import hidden_character
from dragoman.vocabulary.services import PermissionOption, RequestPermission, UnknownSubject

# A wider frame is harder to read and not more informative.
WIDEST: Final = 100
# How much of a request is looked at to see whether it fits on the screen.
QUESTION_CHARACTERS: Final = 500_000
MOST_ROWS: Final = 3_000
# Rows that are shown of what does not fit, also where the choices leave no room for them.
LEAST_HEAD: Final = 3
# Columns and rows that one row of the frame and the line below it need.
SMALLEST: Final = (20, 6)
# Options that fit on a screen. An agent that offers more is mistaken.
OPTIONS: Final = 20
# Characters of what an agent calls an option: our own says there what an "always" covers.
NAME_CHARACTERS: Final = 400
# Words that the names of several options have to begin with before they are shown once.
SHARED_CHARACTERS: Final = 10
_QUOTES: Final = frozenset("“”")
_MEANINGS: Final = {
    "allow_once": "yes, this once",
    "allow_always": "yes, always",
    "reject_once": "no; write what to do instead behind it",
    "reject_always": "no, never",
}
# A no by its kind, after which our own agent asks about each change by itself.
_FILE_BY_FILE: Final = "file_by_file"
# An answer, and more behind it.
_WITH_WORDS: Final = re.compile(r"(\w+)[\s,;:.]+(\S.*)")
_YES: Final = ("y", "yes")
_NO: Final = ("n", "no")
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


# As long as a heading can be: our word is chosen elsewhere.
_HEADING: Final = f"dragoman asks · {'x' * 17}"


def frame_lines(heading: str, lines: Iterable[str], columns: int, *, coloured: bool = False) -> list[str]:
    """Yield the lines inside the frame; long ones are wrapped."""
    return list(frame_rows(heading, lines, columns, coloured=coloured))


def frame_rows(
    heading: str, lines: Iterable[str], columns: int, *, coloured: bool = False, plain: bool = False
) -> Iterator[str]:
    """Yield the rows of the frame, each as it is needed. `plain`: its left side alone, which no agent can draw."""
    inner = _inner(columns)
    if plain:
        for line in (heading, *lines):
            yield from (f"║ {part}" for part in wrap_line(line, inner))
        return
    top = f"═ {heading} "
    yield f"╔{top}{'═' * max(inner + 2 - width(top), 0)}╗"
    for line in lines:
        for part in wrap_line(line, inner):
            row = pad(part, inner)
            yield f"║ {_painted(row, line) if coloured else row} ║"
    yield f"╚{'═' * (inner + 2)}╝"


def _inner(columns: int) -> int:
    """Return how wide the inside of the frame is."""
    return max(min(columns - 1, WIDEST) - 4, 16)


def _painted(part: str, line: str) -> str:
    return in_diff_colour(part, line.lstrip(" ")[:1]) if isinstance(line, ChangedLine) else part


class PermissionBox(NamedTuple):
    """What an agent wants to do, in lines, and what can be answered.

    An option has the number of its place among all that the agent offers, whether or not the others can be chosen.
    `closed` has the places of those that cannot, and why. `hides`: not all of it is in the lines.
    """

    lines: list[str]
    options: list[PermissionOption]
    closed: dict[int, str]
    hides: bool

    @property
    def open(self) -> list[PermissionOption]:
        """The options that can be chosen."""
        return [option for place, option in enumerate(self.options) if place not in self.closed]

    @property
    def keys(self) -> str:
        """What can be typed now, in words: `1-3, v, y or n`."""
        places = [place for place in range(min(len(self.options), OPTIONS)) if place not in self.closed]
        is_row = len(places) > 1 and len(places) == places[-1] - places[0] + 1
        parts = [f"{places[0] + 1}-{places[-1] + 1}"] if is_row else [str(place + 1) for place in places]
        parts += ["v"] if self.hides else []
        parts += [words for words in ("y", "n") if self.chosen(words) or self.refuses(words)]
        return " or ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)

    def chosen(self, words: str) -> PermissionOption | None:
        """Return the option that an answer means: its number, `y` or `n`. None where it means none that is open."""
        option = chosen(words, self.options)
        if option is None or option in self.open:
            return option
        return None

    def instead(self, words: str) -> str:
        """Return what to say of an answer that chooses nothing."""
        option = chosen(words, self.options)
        if option is not None and (reason := self.closed.get(self.options.index(option))):
            return f"That cannot be chosen: {reason}."
        return f"That is no answer; type {self.keys}."

    def split_feedback(self, words: str) -> tuple[str, str]:
        """Return an answer, and the words behind it where it is a no: `n use pnpm`, `3: not in src`.

        Words behind anything else are no answer at all: a yes with words could be meant otherwise.
        """
        found = _WITH_WORDS.fullmatch(words.strip())
        if found is None:
            return words, ""
        answer, feedback = found.groups()
        option = self.chosen(answer)
        is_no = self.refuses(answer) or (option is not None and option.kind in ("reject_once", "reject_always"))
        return (answer, feedback) if is_no else (words, "")

    def refuses(self, words: str) -> bool:
        """Return whether an answer is a no to a request that offers no option for it: then none is chosen."""
        return words.strip().lower() in _NO and not any(option.kind == "reject_once" for option in self.options)


_LATER: Final = "not all of it is shown yet, and v shows it"


def question(request: RequestPermission, columns: int = 80, rows: int = 24, *, viewed: bool = False) -> PermissionBox:
    """Put a permission request into lines for the frame, on a screen of this size.

    `viewed`: the person has been shown all of it, so nothing is kept back because it does not fit.
    """
    lines = list(_up_to(QUESTION_CHARACTERS, MOST_ROWS, request_lines(request, MUCH)))
    is_cut = any(isinstance(line, CutLine) for line in lines) or _height(lines, columns) > MOST_ROWS
    if is_cut:
        lines = list(_up_to(30 * WIDEST, 3 * LINES, request_lines(request, SOME)))
    options = list(request.options)
    closed: dict[int, str] = {}
    notes: list[str] = []
    allowing = [place for place, one in enumerate(options) if not one.rejects]
    always = [place for place in allowing if options[place].kind == "allow_always"]
    if reason := _only_refused(request, columns, rows):
        closed = dict.fromkeys(allowing, reason)
        notes.append(f"(!) {_sentence(reason)}, so it can only be refused.")
    elif (reason := _once_only(request)) and always:
        closed = dict.fromkeys(always, reason)
        notes.append(f"(!) {_sentence(reason)}, so it cannot be allowed for ever.")
    hides = is_cut or is_taller([*lines, *notes, "", *_choices(options, closed)], columns, rows)
    if hides and not viewed:
        closed = dict.fromkeys(allowing, _LATER) | closed
    choices = list(_choices(options, closed))
    if hides:
        lines = _head(lines, [*notes, "", *choices], columns, rows, _Hidden(is_cut, viewed))
    return PermissionBox([*lines, *notes, "", *choices], options, closed, hides)


def whole_question(request: RequestPermission) -> Iterator[str]:
    """Yield all lines of a permission request, however many there are, without the choices."""
    return request_lines(request, WHOLE)


class _Hidden(NamedTuple):
    """What is known of the rows that are not shown."""

    is_cut: bool  # how many there are is not known
    viewed: bool

    def note(self, count: int) -> str:
        """Return the line that says so."""
        if self.viewed:
            return "(All of it was shown; v shows it again.)"
        many = "Most of it is" if self.is_cut else f"{count:,} more rows are"
        return f"(!) {many} not shown here; v shows all of it."


def _head(lines: Sequence[str], below: Sequence[str], columns: int, rows: int, hidden: _Hidden) -> list[str]:
    """Return the first rows of what does not fit on the screen above `below`, and a line that says so."""
    inner = _inner(columns)
    rows_below = sum(
        screen_rows(row, columns) for row in frame_lines(_HEADING, [hidden.note(MOST_ROWS), *below], columns)
    )
    each = screen_rows("x" * (inner + 4), columns)
    room = max((rows - 2 - rows_below) // each, LEAST_HEAD)
    parts: list[str] = []
    count = 0
    for line in lines:
        for part in wrap_line(line, inner):
            count += 1
            if count <= room:
                parts.append(ChangedLine(part) if isinstance(line, ChangedLine) else part)
    return [*parts, hidden.note(count - len(parts))]


def _up_to(characters: int, most: int, lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines, until there are more of them, or more characters, than that."""
    for number, line in enumerate(lines, 1):
        yield line
        characters -= len(line)
        if characters < 0 or number > most:
            yield CutLine("(!) More of it is not shown here")
            return


def _only_refused(request: RequestPermission, columns: int, rows: int) -> str:
    """Return the reason why a request cannot be allowed at all, or the empty text."""
    if is_incomplete(request):
        return "not all of it is known here"
    if columns < SMALLEST[0] or rows < SMALLEST[1]:
        return f"the screen is smaller than {SMALLEST[0]} columns and {SMALLEST[1]} rows"
    return ""


def _once_only(request: RequestPermission) -> str:
    """Return the reason why only this one call may be allowed, or the empty text."""
    if isinstance(request.subject, UnknownSubject):
        return "it is about something this release does not know"
    if any(map(hidden_character, judged_texts(request))):
        return "it has characters that do not show, which are spelled out here"
    return ""


def _sentence(reason: str) -> str:
    return reason[:1].upper() + reason[1:]


def screen_rows(row: str, columns: int) -> int:
    """Return how many rows of a screen a row of ours takes: it is wider than a narrow screen."""
    return max(1, -(-width(row) // max(columns, 1)))


def is_taller(lines: Sequence[str], columns: int, rows: int) -> bool:
    """Return whether the framed lines leave no room for the line of the answer and the one the cursor moves to."""
    return sum(screen_rows(row, columns) for row in frame_lines(_HEADING, lines, columns)) > rows - 2


def _height(lines: Sequence[str], columns: int) -> int:
    """Return how many rows the lines take inside the frame."""
    return sum(1 for line in lines for _ in wrap_line(line, _inner(columns)))


def _choices(options: Sequence[PermissionOption], closed: Mapping[int, str]) -> Iterator[str]:
    """Yield the lines of the options. Those that mean the same for this long or that long share what is the same."""
    shown = options[:OPTIONS]
    place = 0
    while place < len(shown):
        shared = _shared(shown, place, closed)
        if shared is None:
            yield _choice(place, shown[place], closed.get(place))
            place += 1
        else:
            yield from shared.lines
            place += shared.options


def _choice(place: int, option: PermissionOption, reason: str | None) -> str:
    if reason is not None and reason != _LATER:  # its number means nothing else meanwhile
        return f"{place + 1}  (not for this)"
    return f"{place + 1}  {_meaning(option)}{_after(reason)}"


def _after(reason: str | None) -> str:
    return "" if reason is None else " (after v)"


class _SharedChoices(NamedTuple):
    """Options in a row whose names begin with the same words."""

    lines: list[str]
    options: int


def _shared(options: Sequence[PermissionOption], place: int, closed: Mapping[int, str]) -> _SharedChoices | None:
    """Return the lines of several options that begin here; None where the option stands alone."""
    kind, reason = options[place].kind, closed.get(place)
    if kind not in _MEANINGS or reason not in (None, _LATER):
        return None
    end = place
    names: list[str] = []
    while end < len(options) and options[end].kind == kind and closed.get(end) == reason:
        names.append(spell_out_line(options[end].name[: NAME_CHARACTERS + 1]))
        end += 1
    letters = takewhile(lambda each: len(set(each)) == 1, zip(*names, strict=False))
    same = "".join(each[0] for each in letters).rpartition(" ")[0] + " "
    rests = [name[len(same) :] for name in names]
    # A quote in a name could draw a choice that is none, and a name without an end is cut by itself.
    drawn = any(not rest or _QUOTES & set(rest) for rest in rests) or any(len(name) > NAME_CHARACTERS for name in names)
    if len(names) < 2 or len(same) < SHARED_CHARACTERS or drawn or any(map(_is_file_by_file, options[place:end])):
        return None
    each = "   ".join(f"{place + at + 1}  “… {rest}”" for at, rest in enumerate(rests))
    return _SharedChoices([f"{_MEANINGS[kind]}  “{same}…”{_after(reason)}", f"  {each}"], len(names))


def _meaning(option: PermissionOption) -> str:
    called = spell_out_line(option.name[: NAME_CHARACTERS + 1])
    if len(called) > NAME_CHARACTERS:
        called = f"{called[: NAME_CHARACTERS - 1]}…"
    known = _MEANINGS.get(option.kind)
    if _is_file_by_file(option):
        return "not yet: ask about each of them"
    if known is None:
        return f"(something else) “{called}”"
    return f"{known}  “{called}”" if called else known


def _is_file_by_file(option: PermissionOption) -> bool:
    return option.option_id == _FILE_BY_FILE and option.kind == "reject_once"


def chosen(words: str, options: Sequence[PermissionOption]) -> PermissionOption | None:
    """Return the option that the user's answer means: its number, `y` or `n`. None if it means none or several."""
    answer = words.strip().lower()
    if answer.isdecimal() and len(answer) < 4:
        number = int(answer)
        return options[number - 1] if 0 < number <= min(len(options), OPTIONS) else None
    kind = "allow_once" if answer in _YES else "reject_once" if answer in _NO else None
    found = [option for option in options if option.kind == kind and not _is_file_by_file(option)]
    return found[0] if len(found) == 1 else None
