"""Turns values that an author hands over into values that JSON has.

A log and a wire take JSON and nothing else, and both are written later, where no line of the author's code is to blame
any more. So what is handed over is looked at first. What is merely another type for the same thing becomes that thing:
a subclass of `str` or `int`, an enum, a path, a tuple, half of a surrogate pair. The rest is a `UsageError`.
"""

import enum
import os
from collections.abc import Mapping, Set
from typing import Final, TypeVar

import msgspec
from msgspec.structs import fields, replace

from dragoman.errors import UsageError
from dragoman.vocabulary.word import Extras

T = TypeVar("T")

# Deeper than any tool's input; a value that holds itself has no end.
_DEPTH: Final = 100


class _NotPlainError(Exception):
    """The encoder met a value that is not one of JSON's."""


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
    return whole if whole.isascii() else whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _made_plain(value: object, name: str, depth: int) -> object:
    if depth == 0:
        raise UsageError(f"{name} is too deep, or holds itself: write lists and dicts that end")
    if isinstance(value, msgspec.Struct):
        given = {one.name: getattr(value, one.name) for one in fields(value)}
        return replace(value, **{key: _made_plain(one, name, depth - 1) for key, one in given.items()})
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
    if isinstance(value, os.PathLike):
        return plain_text(os.fsdecode(value))
    if isinstance(value, Mapping):
        return {_key(key, name): _made_plain(one, name, depth - 1) for key, one in value.items()}
    if isinstance(value, (list, tuple, Set)):
        return [_made_plain(one, name, depth - 1) for one in value]
    return _as_builtins(value, name, depth)


def _key(key: object, name: str) -> str:
    """Return the name of a field: JSON has text there, and a number is written as one."""
    made = _made_plain(key, name, 2)
    if isinstance(made, (bool, list, dict)) or not isinstance(made, (str, int, float)):
        raise UsageError(f"{name} has no JSON: {key!r} is no name of a field; write text")
    return made if isinstance(made, str) else str(made)


def _as_builtins(value: object, name: str, depth: int) -> object:
    """Convert dates, dataclasses and other things that msgspec knows."""

    def convert(inner: object) -> object:
        if inner is value:
            raise UsageError(f"{name} has no JSON: {_kind(value)} is in it; write text, numbers, lists and dicts")
        return _made_plain(inner, name, depth - 1)

    return _made_plain(msgspec.to_builtins(value, enc_hook=convert), name, depth - 1)


def _kind(value: object) -> str:
    return f"a value of type {type(value).__name__}"
