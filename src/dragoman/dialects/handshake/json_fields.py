"""Small readings of loose JSON, for `initialize`: what is malformed counts as absent, as the schema's marks ask.

Only here are messages read by hand: they decide which version follows, and the tables of no version are loaded yet.
"""

from typing import Any, TypeVar, cast

import msgspec

from dragoman.errors import INVALID_PARAMS, PeerMistake
from dragoman.vocabulary.word import Extras, Word

# A JSON object that is read or made by hand.
JsonDict = dict[str, Any]
T = TypeVar("T")


def decode_json(params: msgspec.Raw) -> object:
    """The value of a JSON text; nothing where there is no text."""
    try:
        return msgspec.json.decode(params) if bytes(params) else {}
    except (ValueError, RecursionError, OverflowError):
        raise PeerMistake(INVALID_PARAMS, "Invalid params") from None


def as_object(value: object) -> JsonDict:
    """An object, or the peer is wrong."""
    if not isinstance(value, dict):
        raise PeerMistake(INVALID_PARAMS, "initialize needs an object")
    return cast(JsonDict, value)


def object_field(body: JsonDict, key: str) -> JsonDict:
    """An object inside, or an empty one."""
    value = body.get(key)
    return cast(JsonDict, value) if isinstance(value, dict) else {}


def has_marker(body: JsonDict, key: str) -> bool:
    """Whether a marker is there: an object."""
    return isinstance(body.get(key), dict)


def items(value: object) -> list[object]:
    """A list, or an empty one."""
    return value if isinstance(value, list) else []


def without_none(found: list[T | None]) -> list[T]:
    """Those that could be read."""
    return [one for one in found if one is not None]


def has_texts(body: JsonDict, *keys: str) -> bool:
    """Whether these are all there and texts."""
    return all(isinstance(body.get(key), str) for key in keys)


def text_or_unset(value: object) -> str | msgspec.UnsetType:
    """A text, or nothing."""
    return value if isinstance(value, str) else msgspec.UNSET


def meta_of(body: JsonDict) -> dict[str, object] | msgspec.UnsetType:
    """Its `_meta`."""
    value = body.get("_meta")
    return cast(JsonDict, value) if isinstance(value, dict) else msgspec.UNSET


def extras_of(body: JsonDict, known: frozenset[str]) -> Extras | msgspec.UnsetType:
    """What in it is not known."""
    unknown = {key: value for key, value in body.items() if key not in known}
    return Extras(unknown) if unknown else msgspec.UNSET


def with_unknown_fields(body: JsonDict, word: Word, known: frozenset[str] = frozenset()) -> JsonDict:
    """The object with its `_meta` and what was unknown in it. What has a meaning here was not unknown: it is ours."""
    unknown = word.extras.fields if isinstance(word.extras, Extras) else {}
    unknown = {key: it for key, it in unknown.items() if key not in known}
    return {**unknown, **body, **optional_field("_meta", word.meta)}


def optional_field(key: str, value: object) -> JsonDict:
    """A field that has a value."""
    return {} if value is msgspec.UNSET else {key: value}
