"""Checks what an author hands to an agent, a session or a tool call, at the call that hands it over.

A mistake is a `UsageError` that quotes the line to write. Only authors are judged here: what a peer sends is decoded by
the dialects, and kinds that this release does not know pass through. The same holds for values of your own: where the
protocol leaves room for them, they begin with an underscore, such as `kind="_deploy"`.

Values of the vocabulary are checked here, where they are handed over, and not where they are made: the dialects make
what a peer has sent with the same constructors, and `plain` takes other types for the same thing.

A log and a wire take JSON and nothing else, and both are written later, where no line of the author's code is to blame
any more. So what is handed over is looked at first (`plain`). What is merely another type for the same thing becomes
that thing: a subclass of `str` or `int`, an enum, a path, a tuple, half of a surrogate pair. The rest is a
`UsageError`.

Nothing here is called for pieces of text: those come by the hundred thousand.
"""

import enum
import os
import re
from collections.abc import Iterable, Mapping, Set
from typing import Final, TypeVar, get_args

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import fields, replace

from dragoman.errors import UsageError
from dragoman.vocabulary.content import Content, Text
from dragoman.vocabulary.events import Cost
from dragoman.vocabulary.options import (
    Choice,
    ChoiceGroup,
    Command,
    Option,
    PlanEntry,
    PlanPriority,
    PlanStatus,
    Select,
    Toggle,
    UnknownCommand,
)
from dragoman.vocabulary.tools import ContentItem, Location, ToolContent, ToolKind, ToolStatus
from dragoman.vocabulary.word import Extras, Word

T = TypeVar("T")

# Deeper than any tool's input; a value that holds itself has no end.
_DEPTH: Final = 100


class _NotPlainError(Exception):
    """The encoder met a value that is not one of JSON's."""


# Called by the encoder for what it cannot encode. Raising here is the cheapest way to find out that a value is not
# plain: plain ones, nearly all, never get here.
def _meet(value: object) -> object:
    if isinstance(value, Extras):
        return None  # decoded from JSON, so it is JSON
    raise _NotPlainError


_encoder: Final = msgspec.json.Encoder(enc_hook=_meet)


def plain(value: T, name: str) -> T:
    """Return the value, or one like it that has JSON; `name` says in an error what it is. UNSET is no value."""
    if value is msgspec.UNSET:
        return value
    try:
        _encoder.encode(value)
    except (_NotPlainError, UnicodeEncodeError, TypeError, ValueError, OverflowError, RecursionError):
        # Slow, and only for values that need it.
        made: T = _made_plain(value, name, _DEPTH)  # type: ignore[assignment]
        try:
            _encoder.encode(made)
        except (_NotPlainError, UnicodeEncodeError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise UsageError(f"{name} has no JSON: {error}; write text, numbers, lists and dicts") from None
        return made
    return value


def exact_text(text: str) -> str:
    """Return the same text as a `str`, to the last character: for what is run or written, and never changed by us."""
    return str.__str__(text)


def plain_text(text: str) -> str:
    """Return the same text as a `str`, without halves of surrogate pairs."""
    whole = exact_text(text)
    if whole.isascii():
        return whole
    # Here and not at the top: an author who names `Session` in an annotation must not pay for `wire` at the start.
    from dragoman.surrogates import replace_lone_surrogates

    return replace_lone_surrogates(whole)


def _made_plain(value: object, name: str, depth: int) -> object:
    if depth == 0:
        raise UsageError(f"{name} is too deep, or holds itself: write lists and dicts that end")
    if isinstance(value, msgspec.Struct):
        given = {one.name: getattr(value, one.name) for one in fields(value)}
        return replace(value, **{key: _made_plain(one, name, depth - 1) for key, one in given.items()})
    # `bool` before `int`, of which it is a subclass; enums before `str` and `int`, which they may be.
    if value is None or value is msgspec.UNSET or isinstance(value, (bool, Extras)):
        return value
    if isinstance(value, enum.Enum):
        return _made_plain(value.value, name, depth - 1)
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    # A path may hold bytes that are no text: `fsdecode` makes lone surrogates of them, which `plain_text` replaces.
    if isinstance(value, os.PathLike):
        return plain_text(os.fsdecode(value))
    if isinstance(value, Mapping):
        return {_key(key, name): _made_plain(one, name, depth - 1) for key, one in value.items()}
    if isinstance(value, (list, tuple, Set)):
        return [_made_plain(one, name, depth - 1) for one in value]
    return _as_builtins(value, name, depth)


def _key(key: object, name: str) -> str:
    """Return the name of a field: JSON has text there, and a number is written as one."""
    # 2: a key may be an enum whose value is text, and nothing deeper.
    made = _made_plain(key, name, 2)
    if isinstance(made, (bool, list, dict)) or not isinstance(made, (str, int, float)):
        raise UsageError(f"{name} has no JSON: {key!r} is no name of a field; write text")
    return made if isinstance(made, str) else str(made)


def _as_builtins(value: object, name: str, depth: int) -> object:
    """Convert dates, dataclasses and other things that msgspec knows."""

    def convert(inner: object) -> object:
        # msgspec asks for what it does not know. If that is the value itself, nothing can be made of it.
        if inner is value:
            raise UsageError(f"{name} has no JSON: {_kind(value)} is in it; write text, numbers, lists and dicts")
        return _made_plain(inner, name, depth - 1)

    return _made_plain(msgspec.to_builtins(value, enc_hook=convert), name, depth - 1)


def _kind(value: object) -> str:
    return f"a value of type {type(value).__name__}"


KINDS: Final = get_args(ToolKind)
STATUSES: Final = get_args(ToolStatus)
SEVERITIES: Final = ("info", "warning", "error")
_PRIORITIES: Final = get_args(PlanPriority)
_STEP_STATUSES: Final = get_args(PlanStatus)
_PLAN: Final = 'session.plan(["first step", "second step"])'
# A path of a client on Windows is absolute wherever the agent runs.
_WINDOWS_PATH: Final = re.compile(r"[A-Za-z]:[\\/]|\\\\")

W = TypeVar("W", bound=Word)


def check_text(value: object, name: str, example: str) -> None:
    """Raise `UsageError` unless `value` is text; `name` and `example` are for the message."""
    if not isinstance(value, str):
        raise UsageError(f"{name} is text, not {_shorten(value)}: write `{example}`")


def check_shown(value: object, name: str, example: str) -> None:
    """Raise `UsageError` unless `value` is text that a person can see: not empty, and not only blanks."""
    check_text(value, name, example)
    if isinstance(value, str) and not value.strip():
        raise UsageError(f"{name} is empty, so the user would see nothing: write `{example}`")


def check_known(value: object, name: str, known: Iterable[str]) -> None:
    """Raise `UsageError` unless `value` is one of the known words, or the author's own with an underscore."""
    words = tuple(known)
    # A lone underscore is a slip, not a name.
    if value not in words and not (isinstance(value, str) and value.startswith("_") and len(value) > 1):
        raise UsageError(f"{name} is one of {', '.join(words)}, or your own with an underscore; not {value!r}")


def check_list(values: Iterable[T], name: str, example: str) -> list[T]:
    """Return `values` as a list. Text and mappings are iterable too, but never meant: they raise `UsageError`."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise UsageError(f"{name} is a list, not {_shorten(values)}: write `{example}`")
    return list(values)


def absolute(path: "str | os.PathLike[str]", name: str) -> str:
    """Return a path as text; `UsageError` for a relative one, because the protocol has absolute paths only."""
    if not isinstance(path, (str, os.PathLike)):
        raise UsageError(f"{name} is a path, not {_shorten(path)}: write `os.path.join(session.cwd, 'file')`")
    text = str.__str__(os.fspath(path))
    if not os.path.isabs(text) and _WINDOWS_PATH.match(text) is None:
        raise UsageError(f"{name} is an absolute path: write `os.path.join(session.cwd, {text!r})`")
    return text


# -- plans -----------------------------------------------------------------------------------------------------------


def plan_steps(entries: "Iterable[str | PlanEntry]") -> list[PlanEntry]:
    """Return the steps of a plan."""
    return [_step(entry) for entry in check_list(entries, "a plan", _PLAN)]


def _step(entry: object) -> PlanEntry:
    if isinstance(entry, str):
        check_shown(entry, "a step of a plan", _PLAN)
        return PlanEntry(plain_text(entry))
    if not isinstance(entry, PlanEntry):
        raise UsageError(f"a step of a plan is text or a PlanEntry, not {_shorten(entry)}: write `PlanEntry('step')`")
    step = check_fields(entry, "PlanEntry('step', status='completed')")
    check_shown(step.content, "a step of a plan", _PLAN)
    check_known(step.priority, "the priority of a PlanEntry", _PRIORITIES)
    check_known(step.status, "the status of a PlanEntry", _STEP_STATUSES)
    return step


# -- tool calls ------------------------------------------------------------------------------------------------------


def places(locations: "Iterable[str | os.PathLike[str] | Location]") -> list[Location]:
    """Return the files that a tool call touches."""
    return [_place(one) for one in check_list(locations, "locations", 'session.tool(..., locations=["/path/of/file"])')]


def _place(place: "str | os.PathLike[str] | Location") -> Location:
    if not isinstance(place, Location):
        return Location(absolute(place, "a location"))
    found = check_fields(place, "Location('/path/of/file', 12)")
    absolute(found.path, "the path of a Location")
    return found


def contents(content: "Iterable[ToolContent]") -> list[ToolContent]:
    """Return the content of a tool call as it was given, whole."""
    return [
        tool_content(one)
        for one in check_list(content, "content", "session.tool(..., content=[ContentItem(Text('…'))])")
    ]


def tool_content(content: object) -> ToolContent:
    """Return an item of a tool call's content; text and content blocks become one."""
    if isinstance(content, str):
        return ContentItem(Text(content))
    if isinstance(content, ToolContent):
        return content
    if isinstance(content, Content):
        return ContentItem(check_block(content))
    # Both import this module.
    from dragoman.agent.client_services import ClientTerminal
    from dragoman.agent.tool import DisplayTerminal

    is_terminal = isinstance(content, DisplayTerminal | ClientTerminal)
    hint = "write `await call.add(terminal.item)`" if is_terminal else "write `await call.add('text')`"
    raise UsageError(f"a tool call shows text, content blocks, diffs and terminals, not {_shorten(content)}: {hint}")


def check_block(content: object) -> Content:
    """Return a content block of the author's, checked. Its data may be megabytes, so only cheap checks are made."""
    if not isinstance(content, Content):
        hint = "`session.emit(event)`" if isinstance(content, Word) else "str(...)"
        raise UsageError(f"a session says text or content blocks, not {type(content).__name__}: use {hint}")
    if isinstance(content, Text):
        check_text(content.text, "the text of a Text block", "Text('…')")
    return content


# -- options and commands --------------------------------------------------------------------------------------------


def check_options(options: Iterable[Option], name: str) -> list[Option]:
    """Return the options of a session: each can be chosen from, and each has an id of its own."""
    example = 'options=[Select("mode", "Mode", "ask", [Choice("ask", "Ask"), Choice("act", "Act")])]'
    listed: list[Option] = []
    ids: set[str] = set()
    for option in check_list(options, name, example):
        if not isinstance(option, Option):
            raise UsageError(f"{name} holds Select and Toggle values, not {_shorten(option)}: write `{example}`")
        # Kinds that this release does not know come from a peer, and pass.
        if not isinstance(option, (Select, Toggle)):
            listed.append(option)
            continue
        listed.append(_checked_option(option))
        if option.config_id in ids:
            raise UsageError(f"two options have the id {option.config_id!r}: give each its own")
        ids.add(option.config_id)
    return listed


def _checked_option(option: Select | Toggle) -> Select | Toggle:
    if isinstance(option, Toggle):
        example = f'Toggle({option.config_id!r}, "Name", True)'
        option = check_fields(option, example)
        _check_names(option, example)
        return option
    # The shape of its choices first: a list of words is the commonest mistake.
    entries = check_list(option.options, "the options of a Select", '[Choice("ask", "Ask")]')
    for entry in entries:
        if not isinstance(entry, (Choice, ChoiceGroup)):
            raise UsageError(f"a Select offers Choice values, not {_shorten(entry)}: write `Choice({entry!r}, 'Name')`")
    example = 'Select("mode", "Mode", "ask", [Choice("ask", "Ask")])'
    option = check_fields(replace(option, options=entries), example)
    _check_names(option, example)
    for choice in option.choices():
        check_shown(choice.name, "the name of a choice", 'Choice("ask", "Ask")')
    # `choices` flattens groups: values are unique over all of them.
    values = [choice.value for choice in option.choices()]
    if len(set(values)) < len(values):
        raise UsageError(f"two choices of the Select {option.config_id!r} have the same value: give each its own")
    if option.current_value not in values:
        offered = ", ".join(map(repr, values)) or "none"
        raise UsageError(
            f"the current value {option.current_value!r} of the Select {option.config_id!r} is none of its choices:"
            f" write one of {offered}"
        )
    return option


def _check_names(option: Select | Toggle, example: str) -> None:
    check_shown(option.config_id, "the id of an option", example)
    check_shown(option.name, "the name of an option", example)


def check_commands(commands: "Iterable[Command | UnknownCommand]") -> "list[Command | UnknownCommand]":
    """Return the slash commands of a session."""
    example = 'session.set_commands([Command("plan", "Make a plan first")])'
    listed = check_list(commands, "commands", example)
    for command in listed:
        if not isinstance(command, (Command, UnknownCommand)):
            raise UsageError(f"commands are Command values, not {_shorten(command)}: write `{example}`")
        check_fields(command, 'Command("plan", "Make a plan first")')
    return listed


def check_schema(schema: object) -> dict[str, object]:
    """Return the schema of a form; raise unless a form can be made of it."""
    if not isinstance(schema, Mapping) or not isinstance(schema.get("properties"), Mapping):
        raise UsageError('a form is a JSON Schema: write `{"type": "object", "properties": {"name": {...}}}`')
    return plain(dict(schema), "the schema of a form")


def check_cost(cost: object) -> None:
    """Raise `UsageError` unless `cost` is a well-formed `Cost`."""
    if not isinstance(cost, Cost):
        raise UsageError(f"a cost is a Cost, not {_shorten(cost)}: write `Cost(0.25, 'USD')`")
    check_fields(cost, "Cost(0.25, 'USD')")


# -- values ----------------------------------------------------------------------------------------------------------


def check_fields(value: W, example: str) -> W:
    """Return `value`; `UsageError` if a field has another type than declared. Encodes it, so not for large values."""
    # First made plain: a `str` subclass is fine for an author, and the decoder below would not know it.
    value = plain(value, f"a {type(value).__name__}")
    try:
        msgspec.json.decode(msgspec.json.encode(value, enc_hook=_no_extras), type=type(value))
    except _HasExtras:
        pass  # decoded, and so checked, when it came from the peer
    except (msgspec.ValidationError, TypeError) as error:
        raise UsageError(f"{type(value).__name__}: {error}; write `{example}`") from None
    return value


class _HasExtras(Exception):
    """The value has fields that this release does not know, so it came from a peer."""


def _no_extras(value: object) -> object:
    if isinstance(value, Extras):
        raise _HasExtras
    raise TypeError(f"a field has no JSON: {_shorten(value)}")


def check_count(value: object, name: str, example: str) -> None:
    """Raise `UsageError` unless `value` is a whole number, 0 or more."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UsageError(f"{name} is a whole number, 0 or more, not {value!r}: write `{example}`")


def check_optional_text(value: "str | UnsetType | None", name: str, example: str) -> None:
    """Raise `UsageError` unless `value` is text, None or UNSET."""
    if value is not None and value is not UNSET:
        check_text(value, name, example)


def _shorten(value: object) -> str:
    """Return a value for an error message: its repr, or its type where that is long."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"a value of type {type(value).__name__}"
