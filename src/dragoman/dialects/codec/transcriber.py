"""Wire values to vocabulary and back, by tables of pairs.

Most of a dialect is names: a struct of the wire stands for a class of the vocabulary, field by field. Those are pairs
in a table; `Transcriber` turns the table into two functions. What is more than names is a small function beside it.
Unknown fields and unknown variants go along in both directions. Two things never do: an unknown field whose name means
something where it would be sent, and a null where the wire allows none.

How: for each pair of classes a plan is made once, from the fields of both, and a function is closed over it. A message
then costs one call of such a function for each object in it, and plain values are copied without a call.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman import limits
from dragoman.errors import INVALID_PARAMS, PeerMistake
from dragoman.vocabulary.word import Extras, Unknown, Word
from dragoman.wire import types as wire

Decode = Callable[[Any], Any]
Encode = Callable[[Any], Any]
# What an unknown variant in a place becomes: its tag and its whole object are given.
DecodeUnknown = Callable[[str, dict[str, object]], Word]
Renames = dict[str, str]
T = TypeVar("T")
W = TypeVar("W", bound=wire.Wire)
# Uses of a pair after which a function of its own is made for it.
_HOT: Final = 100
# What is the same on every wire and in the vocabulary; asked for first, as most values are one of these.
_PLAIN: Final = frozenset({str, int, float, bool, NoneType, dict, UnsetType})


class Transcriber:
    """The pairs of one dialect. `renames` of a pair maps wire attribute to vocabulary attribute where they differ."""

    def __init__(
        self,
        pairs: Iterable[tuple[type[wire.Wire], type[Word]] | tuple[type[wire.Wire], type[Word], Renames]],
        *,
        decode: dict[type[wire.Wire], Decode] | None = None,
        encode: dict[type[Word], Encode] | None = None,
        decode_unknown: dict[type[Unknown], DecodeUnknown] | None = None,
    ) -> None:
        self._unknown_decoders: Final = dict(decode_unknown or {})
        self._decoders: Final = dict(decode or {})
        self._encoders: Final = dict(encode or {})
        # By the two classes, for places where the table has another pair for the wire class, or none: params and
        # results are named by their method, and one class of the vocabulary may stand for several of them.
        self._placed_decoders: Final[dict[tuple[type, type], Decode]] = {}
        self._placed_encoders: Final[dict[tuple[type, type], Callable[[Word, dict[str, object]], Any]]] = {}
        self._words: Final[dict[type, tuple[type[Word], Renames]]] = {}
        self._wires: Final[dict[type, tuple[type[wire.Wire], Renames]]] = {}
        for pair in pairs:
            wired, word = pair[0], pair[1]
            renames = pair[2] if len(pair) == 3 else {}
            self._words[wired] = (word, renames)
            # Two wire classes may have one class of the vocabulary; it is encoded as the first of them.
            self._wires.setdefault(word, (wired, {mine: theirs for theirs, mine in renames.items()}))

    def decode(self, value: Any, unknown: type[Unknown] | None = None) -> Any:
        """Decode a wire value of any type; `unknown` is the class that an unknown variant in this place becomes."""
        kind = value.__class__
        decoder = self._decoders.get(kind)
        if decoder is not None:
            return decoder(value)
        if kind is tuple:
            # Each item becomes a Python object of many times its bytes on the wire.
            if len(value) > limits.LIST_ITEMS:
                raise PeerMistake(INVALID_PARAMS, f"Invalid params: a list of more than {limits.LIST_ITEMS} items")
            return [self.decode(item, unknown) for item in value]
        if isinstance(value, wire.Wire):
            decoder = self._decoders[kind] = self._decoder_of(kind)
            return decoder(value)
        if isinstance(value, wire.UnknownVariant):
            if unknown is None:  # the place has a closed list
                raise PeerMistake(INVALID_PARAMS, "Invalid params: an unknown variant")
            return self._unknown_decoders.get(unknown, unknown)(value.tag, plain(value.raw))
        return value

    def encode(self, value: Any) -> Any:
        """Encode a value of the vocabulary, by the table."""
        kind = value.__class__
        encoder = self._encoders.get(kind)
        if encoder is not None:
            return encoder(value)
        if isinstance(value, list):
            return tuple([self.encode(item) for item in value])
        if isinstance(value, Word):
            encoder = self._encoders[kind] = self._encoder_of(kind)
            return encoder(value)
        return value

    def decode_as(self, value: wire.Wire, word: type[T], renames: Renames | None = None, /) -> T:
        """Decode a wire value as the class `word`: its place says which one it is, not its type."""
        key = (type(value), word)
        decoder = self._placed_decoders.get(key)
        if decoder is None:
            become = partial(self._placed_decoders.__setitem__, key)
            decoder = self._placed_decoders[key] = self._decoder_to(type(value), word, renames or {}, become)
        return decoder(value)  # type: ignore[no-any-return]

    def encode_as(self, value: Word, kind: type[W], renames: Renames | None = None, /, **more: object) -> W:
        """Encode a value as the wire class `kind`, in a place where the table has another; `more` fields win."""
        key = (type(value), kind)
        encoder = self._placed_encoders.get(key)
        if encoder is None:
            become = partial(self._placed_encoders.__setitem__, key)
            encoder = self._placed_encoders[key] = self._encoder_to(type(value), kind, renames or {}, become)
        return encoder(value, more)  # type: ignore[no-any-return]

    def _decoder_of(self, kind: type[wire.Wire]) -> Decode:
        if kind not in self._words:
            raise LookupError(f"no word for {kind.__name__}")
        return self._decoder_to(kind, *self._words[kind], partial(self._decoders.__setitem__, kind))

    def _decoder_to(
        self, kind: type[wire.Wire], word: type[Any], renames: Renames, become: Callable[[Decode], None]
    ) -> Decode:
        """Return the decoder of a pair. After `_HOT` uses it calls `become` with a faster one that does the same."""
        # A field of the wire that the vocabulary does not have is known and has no meaning here, so it is dropped;
        # docs/losses.md lists such fields.
        there = frozenset(word.__struct_fields__)
        hints = {field.name: _unknown_in(field.type) for field in msgspec.structs.fields(word)}
        names = [(name, renames.get(name, name)) for name in kind.__struct_fields__ if name != "extras"]
        plan = [(theirs, mine, hints.get(mine)) for theirs, mine in names if mine in there]
        has_meta = "meta" in kind.__struct_fields__

        decode = self.decode
        uses = 0

        def read(value: wire.Wire) -> Any:
            nonlocal uses
            uses += 1
            if uses == _HOT:
                become(_compiled_decoder(kind, word, plan, decode, self._decoders, read))
            found = {}
            for theirs, mine, unknown in plan:
                item = getattr(value, theirs)
                if item.__class__ not in _PLAIN:
                    item = decode(item, unknown)
                # Absent stays absent, and null stays null: to a patch they are two things.
                if item is not UNSET:
                    found[mine] = item
            if value.extras is not UNSET:
                extras = decode_extras(value)
                found |= {"extras": extras} if has_meta else {"extras": extras} | _lifted_meta(extras)
            return word(**found)

        return read

    def _encoder_of(self, kind: type[Word]) -> Encode:
        if issubclass(kind, Unknown):
            return encode_unknown
        if kind not in self._wires:
            raise LookupError(f"this dialect cannot say {kind.__name__}")
        wired, renames = self._wires[kind]
        write = self._encoder_to(kind, wired, renames, partial(self._encoders.__setitem__, kind))
        return lambda value: write(value, {})

    def _encoder_to(
        self, kind: type[Word], wired: type[wire.Wire], renames: Renames, become: Callable[[Any], None]
    ) -> Callable[..., Any]:
        """Return the encoder of a pair. After `_HOT` uses it calls `become` with a faster one that does the same."""
        # A null that this wire does not allow would make the peer refuse the whole message; left out, it only keeps
        # what it should have cleared (docs/losses.md).
        nullable = {field.name: _takes_null(field.type) for field in msgspec.structs.fields(wired)}
        names = [(name, renames.get(name, name)) for name in kind.__struct_fields__ if name != "extras"]
        plan = [(mine, theirs, nullable[theirs]) for mine, theirs in names if theirs in nullable]

        encode = self.encode
        no_meta = "meta" not in wired.__struct_fields__
        uses = 0

        def write(value: Word, more: dict[str, object]) -> Any:
            nonlocal uses
            uses += 1
            if uses == _HOT:
                become(_compiled_encoder(kind, wired, plan, encode, self._encoders, write, no_meta=no_meta))
            found = {}
            for mine, theirs, null in plan:
                item = getattr(value, mine)
                if item is not UNSET and (null or item is not None) and theirs not in more:
                    found[theirs] = item if item.__class__ in _PLAIN else encode(item)
            if more:
                found |= more
            if value.extras is not UNSET or (no_meta and value.meta is not UNSET):
                found["extras"] = encode_extras(value, wired)
            return wired(**found)

        return write


# -- hot pairs -------------------------------------------------------------------------------------------------------
#
# An attribute that the source of a function names is read ten times faster than one whose name is a value. So a pair
# that is used often gets a function with its names in it, made of the same plan. What is rare in a message (unknown
# fields, an absent field whose class has another default) goes to the general function, which remains the rule.
# Not at once: to make it takes as long as a hundred uses, and most pairs are used only a few times in a process.


def _compiled_decoder(
    kind: type[wire.Wire],
    word: type[Any],
    plan: list[tuple[str, str, Any]],
    decode: Callable[..., Any],
    decoders: dict[type[wire.Wire], Decode],
    general: Decode,
) -> Decode:
    lines = ["def read(value):", " if value.extras is not UNSET: return general(value)"]
    names: dict[str, Any] = {"UNSET": UNSET, "PLAIN": _PLAIN, "general": general, "decode": decode, "word": word}
    names |= {"DECODERS": decoders, "LIST_ITEMS": limits.LIST_ITEMS}
    given = _fields_that_may_be_unset(word)
    hints = _hints(kind)
    arguments = []
    for at, (theirs, mine, unknown) in enumerate(plan):
        parts = _parts(hints[theirs])
        steps = []
        if not parts <= _PLAIN:
            # A list of objects, as most are, without a call for the list and one more for each of them.
            known = "DECODERS[of](one) if (of := one.__class__) in DECODERS"
            steps.append(f" if a{at}.__class__ is tuple and len(a{at}) <= LIST_ITEMS:")
            steps.append(f"  a{at} = [{known} else decode(one, u{at}) for one in a{at}]")
            steps.append(f" elif a{at}.__class__ not in PLAIN: a{at} = decode(a{at}, u{at})")
            names[f"u{at}"] = unknown
        if mine not in given and UnsetType in parts:
            steps.append(f" if a{at} is UNSET: return general(value)")
        arguments.append(f"{mine}=a{at}" if steps else f"{mine}=value.{theirs}")
        lines += [f" a{at} = value.{theirs}", *steps] if steps else []
    return _compiled([*lines, f" return word({', '.join(arguments)})"], "read", names)


def _compiled_encoder(
    kind: type[Word],
    wired: type[Any],
    plan: list[tuple[str, str, bool]],
    encode: Callable[[Any], Any],
    encoders: dict[type[Word], Encode],
    general: Callable[..., Any],
    *,
    no_meta: bool,
) -> Callable[..., Any]:
    rare = "more or value.extras is not UNSET" + (" or value.meta is not UNSET" if no_meta else "")
    lines = ["def write(value, more=None):", f" if {rare}: return general(value, more or {{}})"]
    names: dict[str, Any] = {"UNSET": UNSET, "PLAIN": _PLAIN, "general": general, "encode": encode, "wired": wired}
    names["ENCODERS"] = encoders
    given = _fields_that_may_be_unset(wired)
    hints = _hints(kind)
    arguments = []
    for at, (mine, theirs, null) in enumerate(plan):
        parts = _parts(hints[mine])
        steps = []
        if not null and NoneType in parts:
            steps.append(f" if a{at} is None: a{at} = UNSET")
        if theirs not in given and UnsetType in parts:
            steps.append(f" if a{at} is UNSET: return general(value, {{}})")
        if not parts <= _PLAIN:
            known = "ENCODERS[of](one) if (of := one.__class__) in ENCODERS"
            steps.append(f" if a{at}.__class__ is list: a{at} = tuple([{known} else encode(one) for one in a{at}])")
            steps.append(f" elif a{at}.__class__ not in PLAIN: a{at} = encode(a{at})")
        arguments.append(f"{theirs}=a{at}" if steps else f"{theirs}=value.{mine}")
        lines += [f" a{at} = value.{mine}", *steps] if steps else []
    return _compiled([*lines, f" return wired({', '.join(arguments)})"], "write", names)


def _hints(kind: type[Any]) -> dict[str, Any]:
    """Return the type of each field of a class."""
    return {field.name: field.type for field in msgspec.structs.fields(kind)}


# What a field may hold of which its type does not tell the class.
_ANYTHING: Final = frozenset({object, NoneType, UnsetType})


def _parts(hint: Any) -> frozenset[Any]:
    """Return the classes that a value of this type can have, null and absent among them."""
    origin = get_origin(hint)
    if origin is Annotated:
        inner, *notes = get_args(hint)
        # A union has more members than msgspec reads: see `wire.first_of` and `wire.choice`.
        return _ANYTHING if any(isinstance(one, (wire.FirstOf, wire.VariantChoice)) for one in notes) else _parts(inner)
    if origin is Literal:
        return frozenset(map(type, get_args(hint)))
    if origin in (Union, UnionType):
        return frozenset().union(*map(_parts, get_args(hint)))
    if hint in (Any, object):
        return _ANYTHING
    # A list counts as `tuple` or `list`, an object as the class that msgspec reads it to.
    return frozenset({dict if origin is Mapping else origin or hint})


def _compiled(lines: list[str], name: str, names: dict[str, Any]) -> Callable[..., Any]:
    # Every name in the source is an attribute of a class of ours; nothing of a message is in it.
    exec("\n".join(lines), names)  # noqa: S102
    made: Callable[..., Any] = names[name]
    return made


def _fields_that_may_be_unset(kind: type[Any]) -> frozenset[str]:
    """Return the fields whose default is UNSET: to pass UNSET for one of these is the same as to leave it out."""
    return frozenset(field.name for field in msgspec.structs.fields(kind) if field.default is UNSET)


def plain(raw: Raw) -> Any:
    """Decode a JSON text into plain values; `PeerMistake` where that fails."""
    try:
        return msgspec.json.decode(raw)
    # The envelope was checked to be JSON, but not to have numbers that Python can hold, nor the depth of this stack.
    except (ValueError, RecursionError, OverflowError) as error:
        raise PeerMistake(INVALID_PARAMS, "Invalid params: a value out of range") from error


def decode_extras(value: wire.Wire) -> Any:
    """Return the unknown fields of a wire value, as plain values."""
    if value.extras is UNSET:
        return UNSET
    return Extras({name: plain(raw) for name, raw in value.extras.fields.items()})


def encode_extras(value: Word, kind: type[wire.Wire]) -> Any:
    """Return the unknown fields of a value, for an object of class `kind`."""
    fields: dict[str, object] = value.extras.fields if value.extras is not UNSET else {}
    if value.meta is not UNSET and "meta" not in kind.__struct_fields__:
        # The schema of this version gives this object no `_meta`; readers take it as one more unknown field.
        fields = {**fields, "_meta": value.meta}
    if not fields:
        return UNSET
    # A name that is unknown in one version may mean something in the other: sent, it would be read as that.
    known = _names(kind)
    unknown = {name: Raw(msgspec.json.encode(item)) for name, item in fields.items() if name not in known}
    return wire.RawExtras(unknown) if unknown else UNSET


def decode_outer(carrier: Any, event: T) -> T:
    """Return the event with `_meta` and the unknown fields of the notification that carried it, in `outer`."""
    if carrier.extras is UNSET and carrier.meta is UNSET:
        return event
    fields = {} if carrier.extras is UNSET else decode_extras(carrier).fields
    meta = {} if carrier.meta is UNSET else {"_meta": carrier.meta}
    return msgspec.structs.replace(event, outer=Extras(fields | meta))  # type: ignore[type-var]


def encode_outer(event: Any) -> dict[str, Any]:
    """Return `meta` and `extras` for the notification that carries the event."""
    if event.outer is UNSET:
        return {}
    fields = dict(event.outer.fields)
    meta = fields.pop("_meta", UNSET)
    extras = (
        wire.RawExtras({name: Raw(msgspec.json.encode(item)) for name, item in fields.items()}) if fields else UNSET
    )
    return {"meta": meta, "extras": extras}


def encode_unknown(value: Unknown) -> wire.UnknownVariant:
    """Encode an unknown variant whole, as it came."""
    return wire.UnknownVariant(value.kind, Raw(msgspec.json.encode(value.fields)))


@cache
def _names(kind: type[wire.Wire]) -> frozenset[str]:
    tag_field = kind.__struct_config__.tag_field
    return frozenset(kind.__struct_encode_fields__) - {"extras"} | ({tag_field} if tag_field else set())


def _lifted_meta(extras: Any) -> dict[str, Any]:
    """Return `meta` of an object that has no `_meta` in its schema, and the extras without it."""
    if extras is UNSET or not isinstance(extras.fields.get("_meta", UNSET), (dict, NoneType)):
        return {}
    rest = {name: item for name, item in extras.fields.items() if name != "_meta"}
    return {"meta": extras.fields["_meta"], "extras": Extras(rest) if rest else UNSET}


def _takes_null(hint: Any) -> bool:
    return hint is Any or hint is NoneType or any(map(_takes_null, get_args(hint)))


def _unknown_in(hint: Any) -> type[Unknown] | None:
    if isinstance(hint, type):
        return hint if issubclass(hint, Unknown) else None
    for part in get_args(hint):
        found = _unknown_in(part)
        if found is not None:
            return found
    return None
