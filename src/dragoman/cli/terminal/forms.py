"""Questions of an agent that are no permissions: a form asked a field at a time, or an address to visit."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from dragoman.cli.terminal.event_text import first_lines, title
from dragoman.cli.terminal.questions import TerminalQuestions
from dragoman.cli.terminal.request_lines import LINES
from dragoman.cli.terminal.sanitize import sanitize, spell_out_line
from dragoman.client.ask_user import UserQuestion
from dragoman.vocabulary.services import Elicit, ElicitationAnswer, Form, Url

# A form of more fields is no question to ask at a terminal.
FIELDS: Final = 20
CHOICES: Final = 50
_NOT_GIVEN: Final = object()


def form_callbacks(questions: TerminalQuestions) -> dict[str, Any]:
    """Return what `connect` is given for the questions of an agent that are no permissions."""
    return {"elicitation": partial(ask_form, questions), "ask_user": partial(ask_question, questions)}


async def ask_form(questions: TerminalQuestions, request: Elicit) -> "dict[str, object] | ElicitationAnswer | None":
    """Return the filled form; None declines."""
    if isinstance(request.mode, Url):
        lines = [*_message(request), "It wants you to visit this address; look at it before you do:"]
        lines.append(f"  {spell_out_line(request.mode.url)}")
        done = await questions.ask(lines, "y when it is done, n to decline", _yes_or_no)
        return ElicitationAnswer("accept") if done else None
    if not isinstance(request.mode, Form):
        return None
    return await _form(questions, request, request.mode.requested_schema)


async def ask_question(questions: TerminalQuestions, question: UserQuestion) -> str | None:
    """Ask a question in free text; None is no answer."""
    lines = [
        "The agent asks you:",
        *(f"  {line}" for line in first_lines(sanitize(question.question).split("\n"), LINES)),
    ]
    options = question.options[:CHOICES]
    lines += [f"{number}  {title(option)}" for number, option in enumerate(options, 1)]

    def parse(words: str) -> str | None:
        chosen = _several(words, [(option, option) for option in options])
        return chosen[0] if chosen else words or None

    return await questions.ask(lines, "a number, or your answer" if options else "your answer", parse)


async def _form(
    questions: TerminalQuestions, request: Elicit, schema: Mapping[str, object]
) -> "dict[str, object] | None":
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict) or len(properties) > FIELDS:
        return None
    answers: dict[str, object] = {}
    for name, field in properties.items():
        needed = isinstance(required, list) and name in required
        answer = await _field(questions, _message(request), name, field if isinstance(field, dict) else {}, needed)
        if answer is None:
            return None
        if answer is not _NOT_GIVEN:
            answers[name] = answer
    return answers


async def _field(
    questions: TerminalQuestions, message: list[str], name: str, field: Mapping[str, object], needed: bool
) -> object | None:
    lines = [*message, f"{title(str(field.get('title') or name))}:"]
    if isinstance(field.get("description"), str):
        lines.append(f"  {title(str(field['description']))}")
    choices = _choices(field)
    lines += [f"{number}  {title(shown)}" for number, (_, shown) in enumerate(choices, 1)]
    how, parse = _reader(field, choices)

    def read(words: str) -> object | None:
        return _NOT_GIVEN if not words and not needed else parse(words)

    return await questions.ask(lines, how if needed else f"{how}, or nothing", read)


def _reader(
    field: Mapping[str, object], choices: "list[tuple[str, str]]"
) -> "tuple[str, Callable[[str], object | None]]":
    kind = field.get("type")
    if choices and kind == "array":
        return f"numbers of 1-{len(choices)}", lambda words: _several(words, choices)
    if choices:
        return f"1-{len(choices)}", lambda words: next(iter(_several(words, choices) or ()), None)
    if kind == "boolean":
        return "y or n", _yes_or_no
    if kind in ("integer", "number"):
        return "a number", lambda words: _number(words, whole=kind == "integer")
    return "your answer", lambda words: words or None


def _message(request: Elicit) -> list[str]:
    return ["The agent asks you:", *(f"  {line}" for line in first_lines(sanitize(request.message).split("\n"), LINES))]


def _choices(field: Mapping[str, object]) -> "list[tuple[str, str]]":
    """Return the values to choose from, and how they are called."""
    items = field.get("items")
    source = items if field.get("type") == "array" and isinstance(items, dict) else field
    named = source.get("oneOf") or source.get("anyOf")
    if isinstance(named, list):
        options = [one for one in named if isinstance(one, dict) and isinstance(one.get("const"), str)]
        return [(one["const"], str(one.get("title") or one["const"])) for one in options[:CHOICES]]
    values = source.get("enum")
    return [(one, one) for one in values[:CHOICES] if isinstance(one, str)] if isinstance(values, list) else []


def _several(words: str, choices: "list[tuple[str, str]]") -> "list[str] | None":
    numbers = words.replace(",", " ").split()
    if not numbers or not all(one.isdecimal() and len(one) < 4 and 0 < int(one) <= len(choices) for one in numbers):
        return None
    return [choices[int(one) - 1][0] for one in numbers]


def _yes_or_no(words: str) -> bool | None:
    return {"y": True, "yes": True, "n": False, "no": False}.get(words.lower())


def _number(words: str, *, whole: bool) -> int | float | None:
    try:
        return int(words) if whole else float(words)
    except ValueError:
        return None
