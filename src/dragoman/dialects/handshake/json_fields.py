"""Read and make JSON objects by hand, for `initialize`: what is malformed counts as absent, as the schema's marks ask.

`initialize` decides which version follows, so the types of no version are loaded yet. Vendor dialects use these as
well, for fields that no schema has.
"""

from typing import Any, TypeVar, cast

import msgspec

from dragoman.errors import INVALID_PARAMS, PeerMistake
from dragoman.vocabulary.word import Extras, Word

# A JSON object that is read or made by hand.
JsonDict = dict[str, Any]
T = TypeVar("T")


def decode_json(params: msgspec.Raw) -> object:
    """Decode a JSON text; an empty object where there is no text. `PeerMistake` if it is no JSON."""
    try:
        return msgspec.json.decode(params) if bytes(params) else {}
    except (ValueError, RecursionError, OverflowError):
        raise PeerMistake(INVALID_PARAMS, "Invalid params") from None


def as_object(value: object) -> JsonDict:
    """Return the value as an object; `PeerMistake` if it is none."""
    if not isinstance(value, dict):
        raise PeerMistake(INVALID_PARAMS, "initialize needs an object")
    return cast(JsonDict, value)


def object_field(body: JsonDict, key: str) -> JsonDict:
    """Return the object under a key; an empty one if there is none."""
    value = body.get(key)
    return cast(JsonDict, value) if isinstance(value, dict) else {}


def has_marker(body: JsonDict, key: str) -> bool:
    """Return whether a capability is there: as an object, even an empty one."""
    # A flag in its place is malformed: `true` of a careless peer must not switch on what it may not serve.
    return isinstance(body.get(key), dict)


def items(value: object) -> list[object]:
    """Return the value as a list; an empty one if it is none."""
    return value if isinstance(value, list) else []


def without_none(found: list[T | None]) -> list[T]:
    """Return the values that could be read."""
    return [one for one in found if one is not None]


def has_texts(body: JsonDict, *keys: str) -> bool:
    """Return whether all these keys are there, each with a text."""
    return all(isinstance(body.get(key), str) for key in keys)


def text_or_unset(value: object) -> str | msgspec.UnsetType:
    """Return the value if it is a text, else UNSET."""
    return value if isinstance(value, str) else msgspec.UNSET


def meta_of(body: JsonDict) -> dict[str, object] | msgspec.UnsetType:
    """Return `_meta` of an object."""
    value = body.get("_meta")
    return cast(JsonDict, value) if isinstance(value, dict) else msgspec.UNSET


def extras_of(body: JsonDict, known: frozenset[str]) -> Extras | msgspec.UnsetType:
    """Return the fields of an object that are not `known`."""
    unknown = {key: value for key, value in body.items() if key not in known}
    return Extras(unknown) if unknown else msgspec.UNSET


def with_unknown_fields(body: JsonDict, word: Word, known: frozenset[str] = frozenset()) -> JsonDict:
    """Return the object with `_meta` and the unknown fields of `word`."""
    # Fields with a meaning here are ours to set: one that was unknown where it came from is left out.
    unknown = word.extras.fields if isinstance(word.extras, Extras) else {}
    unknown = {key: it for key, it in unknown.items() if key not in known}
    return {**unknown, **body, **optional_field("_meta", word.meta)}


def optional_field(key: str, value: object) -> JsonDict:
    """Return an object with this field; an empty one if the value is UNSET."""
    return {} if value is msgspec.UNSET else {key: value}
