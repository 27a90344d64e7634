"""The slow way to read and write: for messages with unknown fields, unknown variants or malformed lenient fields.

It owns the rules of tolerance. A field marked in the schema may be malformed, then it is its default; a marked array
drops its invalid items; null may stand for the default; an unknown field goes to `extras`, a variant with an unknown
tag becomes `UnknownVariant`. Everything else that is malformed is refused, a known variant above all.

What is kept is copied, since a slice would hold a whole frame in memory, and put on one line, since a frame is a line.
Readers are made from the annotations of the generated classes when they are first needed. Each tries msgspec first, so
only the way down to the unknown is slow; a budget bounds that way, so no message can hold a link for long.
"""

import re
import sys
from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.wire.types import Exhausted, FirstOf, Invalid, RawExtras, UnknownVariant, VariantChoice, Wire, decoder

T = TypeVar("T")
# Objects read slowly, fields kept and items dropped in one message. One costs about 10 µs, so this is half a second;
# real messages stay under a hundred, a long session list of a peer with fields of its own needs some thousands.
SLOW_READS: Final = 50_000

# Fields by which permissions are judged. Where something of one was dropped, the field stands among the extras as it
# came: who judges must know that there was more. It is sent to no peer, since a known field is no extra one.
_JUDGED: Final = {
    "ToolCall": frozenset({"content", "locations"}),
    "ToolCallUpdate": frozenset({"content", "locations"}),
    "SessionUpdateToolCallUpdate": frozenset({"content", "locations"}),
    "Diff": frozenset({"changes", "patch"}),
}


class SlowReadBudget:
    """What is left of `SLOW_READS` while one message is read."""

    __slots__ = ("left", "lost")

    def __init__(self) -> None:
        self.left = SLOW_READS
        self.lost = 0  # items that were dropped, and fields that were replaced by their default

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Exhausted


Reader: TypeAlias = Callable[[Raw, SlowReadBudget], Any]


def read(data: bytes | Raw, kind: Any) -> Any:
    """Read a value of `kind` as tolerantly as the schema allows; raise `ValueError` or `RecursionError`."""
    return reader(kind)(data if isinstance(data, Raw) else Raw(data), SlowReadBudget())


def merged(value: object) -> object:
    """Return the value as plain dicts and lists, with `extras` and unknown variants back in their places.

    For `types.encode`, where msgspec has stopped at something that it cannot encode.
    """
    match value:
        case Wire():
            return _merged_fields(value)
        case UnknownVariant():
            return value.raw
        case list() | tuple():
            return [merged(item) for item in value]
        case Mapping():
            return {key: merged(item) for key, item in value.items()}
        case _:
            return value


def _merged_fields(value: Wire) -> dict[str, object]:
    config = value.__struct_config__
    fields: dict[str, object] = {config.tag_field: config.tag} if config.tag_field else {}
    for attribute, name in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
        held = getattr(value, attribute)
        if held is not UNSET and attribute != "extras":
            fields[name] = merged(held)
    # A known field wins over an unknown one of its name: the second can only be what `_JUDGED` has kept.
    return {**value.extras.fields, **fields} if isinstance(value.extras, RawExtras) else fields


@cache
def reader(kind: Any, skip: bool = False) -> Reader:
    """Return the reader of one JSON text as `kind`; `skip`: it drops the invalid items of an array."""
    # Below structs nothing can be unknown: a wrong text or number is just wrong.
    if not skip and not _holds_structs(kind):
        return _leaf(kind)
    return _fast_first(kind, _slow_reader(kind, skip))


def _slow_reader(kind: Any, skip: bool) -> Reader:
    marks = getattr(kind, "__metadata__", ())
    for mark in marks:
        if isinstance(mark, VariantChoice):
            return _choice(mark)
        if isinstance(mark, FirstOf):
            return _first_of(mark)
    if marks:
        (bounds,) = marks
        return _items(get_args(get_args(kind)[0])[0], skip, bounds.min_length or 0)
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _nullable(kind, skip)
    if origin is tuple:
        return _items(get_args(kind)[0], skip, 0)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(get_args(kind)[1])
    return lambda raw, budget: _struct(kind, _object(raw), budget)


def _holds_structs(kind: Any) -> bool:
    if isinstance(kind, type) and issubclass(kind, Struct):
        return True
    return any(isinstance(mark, (VariantChoice, FirstOf)) for mark in getattr(kind, "__metadata__", ())) or any(
        _holds_structs(inner) for inner in get_args(kind)
    )


def _fast_first(kind: Any, slow: Reader) -> Reader:
    def read_fast_first(raw: Raw, budget: SlowReadBudget) -> Any:
        # At every level again: of a list with one odd item, the other items are read at msgspec's speed.
        try:
            return decoder(kind).decode(raw)
        except msgspec.ValidationError:
            budget.spend()
            return slow(raw, budget)

    return read_fast_first


def _leaf(kind: Any) -> Reader:
    def read_leaf(raw: Raw, budget: SlowReadBudget) -> Any:
        try:
            return decoder(kind).decode(raw)
        except msgspec.ValidationError as error:
            raise _explained(error) from None

    return read_leaf


def _nullable(kind: Any, skip: bool) -> Reader:
    """Return the reader of a value that may be null or absent: msgspec has read those, so only the value is left."""
    inner = [arg for arg in get_args(kind) if arg not in (NoneType, UnsetType)]
    return reader(Union[tuple(inner)], skip)  # noqa: UP007 - `|` does not take a tuple


def _items(kind: Any, skip: bool, at_least: int) -> Reader:
    read_item = reader(kind)

    def read_items(raw: Raw, budget: SlowReadBudget) -> Any:
        texts = _as(_RAW_ITEMS, raw)
        items = []
        for index, text in enumerate(texts):
            try:
                items.append(read_item(text, budget))
            except Invalid as error:
                budget.spend()
                budget.lost += 1
                if not skip:
                    error.path = f"[{index}]{error.path}"
                    raise
        if len(items) < at_least:
            raise Invalid("expected an item")
        return tuple(items)

    return read_items


def _mapping(kind: Any) -> Reader:
    read_value = reader(kind)

    def read_mapping(raw: Raw, budget: SlowReadBudget) -> Any:
        values = {}
        for name, text in _object(raw).items():
            try:
                values[name] = read_value(text, budget)
            except Invalid as error:
                error.path = f"[...]{error.path}"
                raise
        return values

    return read_mapping


def _first_of(mark: FirstOf) -> Reader:
    readers = [(reader(kind), getattr(kind, "__struct_config__", None)) for kind in mark.kinds]
    tags = {config.tag for _, config in readers if config is not None}

    def read_first(raw: Raw, budget: SlowReadBudget) -> Any:
        problems = []
        for read_kind, config in readers:
            try:
                # Alone, msgspec takes a struct without its tag.
                if config is not None and config.tag_field is not None:
                    _text(_object(raw), config.tag_field)
                return read_kind(raw, budget)
            except Invalid as error:
                problems.append(error)
        if mark.tag_field is not None and mark.tag_field in (fields := _object(raw)):
            tag = _text(fields, mark.tag_field)
            if tag not in tags:
                return UnknownVariant(tag, _kept(raw))
        # The one that came furthest says best what is wrong.
        raise max(problems, key=lambda problem: len(problem.path))

    return read_first


def _choice(mark: VariantChoice) -> Reader:
    by_tag = {member.__struct_config__.tag: member for member in mark.members}
    nested_field, by_nested_tag = mark.nested or ("", {})
    nested_tags = {member.__struct_config__.tag for member in by_nested_tag.values()}

    def read_variant(raw: Raw, budget: SlowReadBudget) -> Any:
        # The order matters. Version 1's stdio server has no tag, its siblings have one: a variant without a tag is
        # looked for first. Then two tags in one object (`sessionUpdate` and `state` in version 2): the second decides
        # where the first is shared. Only a tag that no variant has makes an unknown one; a known variant that is
        # malformed fails in `_struct`, because to pass it on as unknown would hide the mistake.
        fields = _object(raw)
        if mark.bare is not None and _is_bare(mark.bare, mark.tag_field, fields):
            return _struct(mark.bare, fields, budget)
        tag = _text(fields, mark.tag_field)
        if tag in nested_tags:
            tag = _text(fields, nested_field)
            kind = by_nested_tag.get(tag)
        else:
            kind = by_tag.get(tag)
        return UnknownVariant(tag, _kept(raw)) if kind is None else _struct(kind, fields, budget)

    return read_variant


def _is_bare(bare: type[Wire], tag_field: str, fields: dict[str, Raw]) -> bool:
    """Return whether there is no tag, or it is the name of the variant that needs none."""
    raw = fields.get(tag_field)
    known = _plan(bare).fields.get(tag_field)
    if raw is None or known is None:
        return raw is None
    try:
        known.read(raw, SlowReadBudget())
    except Invalid:
        return False
    return True


class Field(NamedTuple):
    """How one attribute of a struct is read."""

    attribute: str
    read: Reader
    required: bool
    lenient: str
    default: Callable[[], Any]


class Plan(NamedTuple):
    """How a struct is read."""

    tag_field: str | None
    tag: Any
    fields: dict[str, Field]
    required: frozenset[str]


def _struct(kind: type[Wire], texts: dict[str, Raw], budget: SlowReadBudget) -> Wire:
    plan = _plan(kind)
    # First, since keeping a large field of another variant would be in vain.
    if missing := plan.required - texts.keys():
        raise Invalid(f"missing field `{min(missing)}`")
    values: dict[str, Any] = {}
    extras: dict[str, Raw] = {}
    for name, raw in texts.items():
        found = plan.fields.get(name)
        if found is not None:
            lost = budget.lost
            value = _value(found, name, raw, budget)
            if value is not UNSET:
                values[found.attribute] = value
            # What was dropped may be what matters: a diff of a file that a permission policy would have refused.
            if budget.lost > lost and name in _JUDGED.get(kind.__name__, ()) and not _is_null(raw):
                extras[name] = _kept(raw)
        elif name != plan.tag_field:
            budget.spend()
            extras[name] = _kept(raw)
        elif _text(texts, name) != plan.tag:
            raise Invalid("another variant", f".{name}")
    if extras:
        values["extras"] = RawExtras(extras)
    return kind(**values)


def _value(found: Field, name: str, raw: Raw, budget: SlowReadBudget) -> Any:
    # The marks of the generated modules, from the schema: "n" null means the default, "e" an error does
    # (`x-deserialize-default-on-error`), "s" invalid items are skipped (`x-deserialize-skip-invalid-items`).
    if "n" in found.lenient and _is_null(raw):
        return found.default()
    try:
        return found.read(raw, budget)
    except Invalid as error:
        if "e" in found.lenient:
            budget.lost += 1
            return found.default()
        error.path = f".{name}{error.path}"
        raise


@cache
def _plan(kind: Any) -> Plan:
    lenient: dict[str, str] = {"_meta": "e"}
    defaults: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        module = sys.modules[owner.__module__]
        lenient |= getattr(module, "LENIENT", {}).get(owner.__name__, {})
        defaults |= getattr(module, "DEFAULTS", {}).get(owner.__name__, {})
    annotations = get_type_hints(kind, include_extras=True)
    fields = {}
    for info in msgspec.structs.fields(kind):
        if info.name != "extras":
            name, annotation = info.encode_name, annotations[info.name]
            marks = lenient.get(name, "")
            default = _default(annotation, info.required, defaults.get(name))
            fields[name] = Field(info.name, reader(annotation, "s" in marks), info.required, marks, default)
    config = kind.__struct_config__
    return Plan(config.tag_field, config.tag, fields, frozenset(n for n, found in fields.items() if found.required))


def _default(annotation: Any, required: bool, text: str | None) -> Callable[[], Any]:
    """Return the maker of a default: the schema's; else an empty array where one is required, or absence."""
    if text is not None:
        return lambda: read(text.encode(), annotation)
    return tuple if required else lambda: UNSET


def _object(raw: Raw) -> dict[str, Raw]:
    return _as(_RAW_FIELDS, raw)


def _as(kind: "msgspec.json.Decoder[T]", raw: Raw) -> T:
    try:
        return kind.decode(raw)
    except msgspec.ValidationError as error:
        raise _explained(error) from None


def _text(fields: dict[str, Raw], name: str) -> str:
    if name not in fields:
        raise Invalid(f"missing field `{name}`")
    try:
        return _as(_TEXT, fields[name])
    except Invalid as error:
        error.path = f".{name}"
        raise


def _is_null(raw: Raw) -> bool:
    return len(memoryview(raw)) == len(b"null") and bytes(raw) == b"null"


def _kept(raw: Raw) -> Raw:
    # A copy: a `Raw` is a view of the whole frame and would keep it alive as long as the unknown field lives.
    text = bytes(raw)
    text.decode()  # msgspec does not look inside what it skips
    return Raw(msgspec.json.format(text, indent=-1) if b"\n" in text or b"\r" in text else text)


def _explained(error: msgspec.ValidationError) -> Invalid:
    """Return msgspec's error as ours, without words that repeat the value."""
    reason, _, path = str(error).partition(" - at `$")
    return Invalid(f"e{reason[1:]}" if _SAFE.match(reason) else "invalid value", path.rstrip("`"))


_SAFE = re.compile(r"Expected `[a-z |]+`[^'\"]*$")
_RAW_FIELDS: "msgspec.json.Decoder[dict[str, Raw]]" = msgspec.json.Decoder(dict[str, Raw])
_RAW_ITEMS: "msgspec.json.Decoder[list[Raw]]" = msgspec.json.Decoder(list[Raw])
_TEXT: "msgspec.json.Decoder[str]" = msgspec.json.Decoder(str)
