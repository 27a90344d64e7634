"""What every generated type is made of, and the codec for all of them.

It owns `Wire`, the two places where the unknown is kept (`RawExtras` for fields, `UnknownVariant` for variants), and
`decode` and `encode`. It must not know any message: those are in `v1.py` and `v2.py`.

Promises: what a peer sends can only raise `PeerMistake`, whose text never repeats what was sent; decoding and encoding
again gives the same JSON, unknown fields and variants included; a message without unknowns takes msgspec's own speed.

How: msgspec refuses what it does not know, and only then `lenient.py` reads again, slowly, and keeps it. Nothing that
was kept is a type msgspec can encode, so encoding stops at it as well, and only then the slow way is taken.
"""

import operator
from collections.abc import Mapping
from functools import reduce
from typing import Annotated, Any, Final, TypeAlias, TypeVar, overload

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from dragoman.errors import INVALID_PARAMS, PARSE_ERROR, PeerMistake, echo

T = TypeVar("T")
# Any JSON value as msgspec reads it: None, bool, int, float, str, list, dict.
Json: TypeAlias = Any
JsonObject: TypeAlias = Mapping[str, Any]


class RawExtras:
    """Fields of a known object that we do not know, as they stood in the message."""

    __slots__ = ("fields",)

    def __init__(self, fields: Mapping[str, Raw]) -> None:
        self.fields: Final = fields

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RawExtras):
            return NotImplemented
        return self.fields.keys() == other.fields.keys() and all(
            same_json(raw, other.fields[name]) for name, raw in self.fields.items()
        )

    def __hash__(self) -> int:
        return hash(frozenset(self.fields))

    def __repr__(self) -> str:
        return f"Extras({', '.join(sorted(self.fields))})"


class UnknownVariant:
    """A variant that we do not know: `tag` is what it calls itself, `raw` the whole object."""

    __slots__ = ("raw", "tag")
    __match_args__ = ("tag", "raw")

    def __init__(self, tag: str, raw: Raw) -> None:
        self.tag: Final = tag
        self.raw: Final = raw

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UnknownVariant):
            return NotImplemented
        return self.tag == other.tag and same_json(self.raw, other.raw)

    def __hash__(self) -> int:
        return hash(self.tag)

    def __repr__(self) -> str:
        return f"Unknown({self.tag!r})"


# `forbid_unknown_fields` makes the two ways possible: a field that is not in the schema is an error for msgspec and not
# something to skip, so no unknown field is ever lost on the fast way.
class Wire(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """An object of the protocol. `extras` is never on the wire under that name."""

    extras: RawExtras | UnsetType = UNSET


# A value of the protocol that can be encoded, known or not: what stands where the schema has a union.
WireValue: TypeAlias = Wire | UnknownVariant


class MetaWire(Wire, frozen=True, kw_only=True):
    """An object with `_meta`."""

    meta: JsonObject | None | UnsetType = field(default=UNSET, name="_meta")


@overload
def decode(data: bytes | Raw, kind: type[T]) -> T: ...
@overload
def decode(data: bytes | Raw, kind: object) -> Any: ...
def decode(data: bytes | Raw, kind: object) -> Any:
    """Decode a value of a class, or of a union (annotate where it is assigned); raise only `PeerMistake`."""
    fast = _DECODERS_BY_ID.get(id(kind)) or decoder(kind)
    try:
        return fast.decode(data)
    except msgspec.ValidationError:
        pass
    except (ValueError, RecursionError, OverflowError) as error:
        raise mistake(error) from None
    # Here and not at the top: most runs never need it. The lenient reader comes second although it could read
    # everything: it is many times slower, and only a message that msgspec refuses can have anything unknown.
    from dragoman.wire import lenient

    try:
        return lenient.read(data, kind)
    except (ValueError, RecursionError, OverflowError) as error:
        raise mistake(error) from None


def encode(value: object) -> bytes:
    """Encode a value as JSON on one line."""
    try:
        return _ENCODER.encode(value)
    except _Kept:
        # The message carries something unknown: msgspec has no place for it, so it is encoded from plain dicts.
        from dragoman.wire import lenient

        return _ENCODER.encode(lenient.merged(value))


def decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """Return the fast decoder of a type, made once."""
    # By identity first: to hash a union takes longer than to decode a short message. An id stays true, because the
    # other table keeps the type that it was made for.
    found = _DECODERS_BY_ID.get(id(kind))
    if found is None:
        found = _DECODERS.get(kind)
        if found is None:
            found = _DECODERS[kind] = _DECODERS_BY_ID[id(kind)] = msgspec.json.Decoder(kind, dec_hook=_refuse)
    return found


class Invalid(ValueError):
    """A value that its type does not allow; `path` is where it stands, `reason` is safe to repeat."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path


class Exhausted(ValueError):
    """More unknown and invalid things in one message than are worth reading."""


def mistake(error: Exception) -> PeerMistake:
    """Return the error for the peer: where its message is wrong and why, but never what it sent."""
    match error:
        case Invalid():
            # The path consists of the peer's own keys, so it is shortened and made printable like any other echo.
            path = echo(f"${error.path}")
            return PeerMistake(INVALID_PARAMS, f"Invalid params at {path}: {error.reason}", {"path": path})
        case Exhausted():
            return PeerMistake(INVALID_PARAMS, "Invalid params: too much that is unknown or invalid")
        case RecursionError():
            return PeerMistake(INVALID_PARAMS, "Invalid params: nested too deeply")
        case UnicodeDecodeError():
            return PeerMistake(PARSE_ERROR, "Parse error: not valid UTF-8")
        case msgspec.DecodeError():
            return PeerMistake(PARSE_ERROR, "Parse error: not valid JSON")
        case _:
            return PeerMistake(INVALID_PARAMS, "Invalid params: a value out of range")


# For the generated modules


class VariantChoice:
    """How to find a variant: by its tag, by a second one beside it (`nested`), or without any (`bare`)."""

    __slots__ = ("bare", "members", "nested", "tag_field")

    def __init__(
        self,
        tag_field: str,
        members: tuple[type[Wire], ...],
        bare: type[Wire] | None,
        nested: tuple[str, dict[str, type[Wire]]] | None,
    ) -> None:
        self.tag_field = tag_field
        self.members = members
        self.bare = bare
        self.nested = nested


class FirstOf:
    """The first of these types that fits; if none does, a tag that none of them has makes it unknown."""

    __slots__ = ("kinds", "tag_field")

    def __init__(self, kinds: tuple[Any, ...], tag_field: str | None) -> None:
        self.kinds = kinds
        self.tag_field = tag_field


def choice(
    tag_field: str,
    *members: type[Wire],
    bare: type[Wire] | None = None,
    nested: tuple[str, dict[str, type[Wire]]] | None = None,
) -> Any:
    """Make a tagged union. msgspec reads `bare` alone if there is one, else the members."""
    if bare is not None:
        fast: Any = bare
    elif len(members) > 1:
        fast = reduce(operator.or_, members)
    else:
        # Alone, a struct may come without its tag; beside another it may not.
        fast = members[0] | msgspec.defstruct("Sealed", [("seal", RawExtras)], tag_field=tag_field, tag="")
    return Annotated[fast, VariantChoice(tag_field, members, bare, nested)]


def first_of(*kinds: Any, tag_field: str | None = None) -> Any:
    """Make an untagged union. msgspec reads the first one."""
    return Annotated[kinds[0], FirstOf(kinds, tag_field)]


def at_least_one(*values: object) -> None:
    if all(value is UNSET for value in values):
        raise Invalid("a field is missing")


def exactly_one(*values: object) -> None:
    if sum(value is not UNSET for value in values) != 1:
        raise Invalid("fields that exclude each other")


def same_json(one: Raw, other: Raw) -> bool:
    """Return whether two texts mean the same JSON: spacing, key order and the form of a number do not count."""
    if bytes(one) == bytes(other):
        return True
    try:
        return _same(msgspec.json.decode(one), msgspec.json.decode(other))
    except (ValueError, RecursionError, OverflowError):
        return False


def _same(one: Json, other: Json) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    # In Python True is 1; in JSON it is not.
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


class _Kept(Exception):
    """The encoder met something that was kept."""


def _stop(value: object) -> object:
    if isinstance(value, (RawExtras, UnknownVariant)):
        raise _Kept
    raise TypeError(f"{type(value).__name__} is not a wire value")


def _refuse(kind: type, value: object) -> object:
    raise ValueError


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_stop)
_DECODERS: Final[dict[Any, msgspec.json.Decoder[Any]]] = {}
_DECODERS_BY_ID: Final[dict[int, msgspec.json.Decoder[Any]]] = {}
