"""Reads the ACP JSON schemas and says what Python has to be written for them.

It owns every decision about shape: which definition is a struct, an alias or a union, what a variant is called, how
objects that the schema composes (`allOf`, properties beside `anyOf`) become flat. It knows nothing about layout;
`generate_wire.py` writes the text. An unknown construct stops it, since a guess would be wrong on the wire.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.shapes import Alias, Either, Item, Module, Property, Struct, Union

Json = dict[str, Any]

# JSON-RPC envelopes: `wire/jsonrpc.py` is the one place that knows them.
ENVELOPES = frozenset(
    f"{side}{kind}" for side in ("Agent", "Client", "Proxy") for kind in ("Request", "Response", "Notification")
)
# Bounds of `format`. msgspec holds bounds in an int64, so uint64 keeps only its minimum.
INTEGERS: dict[str, tuple[int | None, int | None]] = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, None),
}
DEFAULT_ON_ERROR = "x-deserialize-default-on-error"
SKIP_INVALID_ITEMS = "x-deserialize-skip-invalid-items"
DEFAULT_ON_NULL = "x-deserialize-default-on-null"


def read(folder: Path) -> Module:
    """The module for the schemas in `folder`: all of the unstable one, with the stable one to tell them apart."""
    unstable: Json = json.loads((folder / "schema.unstable.json").read_bytes())["$defs"]
    stable: Json = json.loads((folder / "schema.json").read_bytes())["$defs"]
    return _Reader(unstable, stable).module()


def pascal(tag: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[_\-]", tag))


class _Reader:
    def __init__(self, definitions: Json, stable: Json) -> None:
        self.definitions = {name: schema for name, schema in definitions.items() if name not in ENVELOPES}
        self.stable_definitions = stable
        self.uses = Counter(ref for schema in self.definitions.values() for ref in _references(schema))
        self.items: dict[str, Item] = {}
        self.stable: set[str] = set()
        self.flattened: set[str] = set()

    def module(self) -> Module:
        for name, schema in self.definitions.items():
            self.define(name, schema)
        for name in self.flattened:
            del self.items[name]
        for name, item in self.items.items():
            if name in self.stable_definitions and name not in self.stable:
                self.stable.add(name)
            assert item.name == name
        methods, notifications = self.methods()
        return Module(
            self.in_order(), sorted(self.stable & set(self.items)), sorted(self.flattened), methods, notifications
        )

    def define(self, name: str, schema: Json) -> None:
        if name in self.items:
            return
        branches = schema.get("anyOf") or schema.get("oneOf")
        if not branches:
            if schema.get("type") == "object":
                self.add(self.struct(name, [schema], stable=self.stable_properties(name)))
            else:
                self.add(Alias(name, self.type_of(schema)))
        elif all("const" in b or b.get("type") in ("string", "integer") for b in branches if b.get("type") != "null"):
            self.add(Alias(name, _scalars(branches)))
        elif any(_tag(b) for b in branches):
            self.define_tagged(name, schema, branches)
        elif schema.get("properties"):
            self.add(self.mixed(name, schema, branches))
        else:
            self.define_untagged(name, branches)

    def add(self, item: Item) -> None:
        assert item.name not in self.items, f"two things are called {item.name}"
        self.items[item.name] = item

    # Structs

    def struct(
        self, name: str, parts: list[Json], *, without: str | None = None, stable: set[str] | None = None
    ) -> Struct:
        """One flat struct of all `parts`; `without` is the tag, which is not an attribute."""
        properties: dict[str, Property] = {}
        meta = False
        for part in parts:
            unknown = set(part) - {"type", "properties", "required", "description", "title", "allOf", "anyOf", "oneOf"}
            assert not {k for k in unknown if not k.startswith("x-")} - {"additionalProperties", "discriminator"}, (
                unknown
            )
            for wire, schema in part.get("properties", {}).items():
                if wire == "_meta":
                    assert schema.get(DEFAULT_ON_ERROR) and schema["type"] == ["object", "null"]
                    meta = True
                elif wire != without:
                    required = wire in part.get("required", [])
                    properties[wire] = self.property(wire, schema, required, stable is None or wire in stable)
        return Struct(name, list(properties.values()), meta)

    def property(self, wire: str, schema: Json, required: bool, stable: bool) -> Property:
        kind, nullable = self.nullable_type(schema)
        marks = ((DEFAULT_ON_ERROR, "e"), (SKIP_INVALID_ITEMS, "s"), (DEFAULT_ON_NULL, "n"))
        lenient = "".join(letter for mark, letter in marks if schema.get(mark))
        default = json.dumps(schema["default"], separators=(",", ":")) if "default" in schema else None
        assert not (required and set(lenient) & {"e", "n"}) or kind.startswith(("tuple", "Annotated[tuple")), wire
        return Property(wire, kind, required, nullable, lenient, default, stable=stable)

    def mixed(self, name: str, schema: Json, branches: list[Json]) -> Struct:
        """Properties beside refs to plain objects: one struct with all attributes, and a check which are there."""
        parts = [self.definitions[_reference(branch)] for branch in branches]
        self.flattened.update(_reference(branch) for branch in branches)
        item = self.struct(name, [schema])
        names = {p.wire for p in item.properties}
        keys: list[str] = []
        for part in parts:
            more = [p for p in self.struct(name, [part]).properties if p.wire not in names]
            keys += [p.attribute for p in more if p.required]
            item.properties += [_optional(p) for p in more]
        assert len(keys) == len(parts)
        item.check = ("exactly_one" if "oneOf" in schema else "at_least_one", keys)
        return item

    # Unions

    def define_tagged(self, name: str, schema: Json, branches: list[Json]) -> None:
        tag_field = next(t for t in map(_tag, branches) if t)[0]
        if tag_field in schema.get("properties", {}):
            self.add(self.merged(name, schema, branches, tag_field))
            return
        is_open = any(_is_open(b, tag_field) for b in branches)
        union = Union(name, tag_field)
        shared = [schema] if schema.get("properties") else []
        for branch in branches:
            if found := _tag(branch):
                self.variant(union, shared, branch, found[1])
            elif not _is_open(branch, tag_field):
                self.bare_variant(union, shared, branch, is_open)
        if union.bare and union.bare in union.members:
            self.add(Either(name, [union.bare, *(m for m in union.members if m != union.bare)], tag_field))
        else:
            self.add(union)

    def merged(self, name: str, schema: Json, branches: list[Json], tag_field: str) -> Struct:
        """The discriminator is an attribute as well (`stopReason`): one struct, what a variant adds is optional."""
        item = self.struct(name, [schema], stable=self.stable_properties(name))
        for branch in branches:
            parts = [branch, *(self.definitions[r] for r in _payloads(branch))]
            self.flattened.update(_payloads(branch))
            item.properties += [
                _optional(p) for p in self.struct(name, [_plain(p) for p in parts], without=tag_field).properties
            ]
        return item

    def variant(self, union: Union, shared: list[Json], branch: Json, tag: str) -> None:
        payloads = _payloads(branch)
        name = f"{union.name}{pascal(tag)}"
        if len(payloads) == 1 and not shared and set(branch["properties"]) == {union.tag_field}:
            payload = payloads[0]
            self.define(payload, self.definitions[payload])
            item = self.items[payload]
            if isinstance(item, Union):
                self.nested_variant(union, item, name, tag)
            elif self.uses[payload] == 1:
                assert isinstance(item, Struct)
                item.tag_field, item.tag = union.tag_field, tag
                union.members.append(payload)
            else:
                assert isinstance(item, Struct)
                self.add_variant(union, Struct(name, [], base=payload, tag_field=union.tag_field, tag=tag), payload)
            return
        item = self.flat(name, [*shared, branch], payloads, union.tag_field)
        item.tag_field, item.tag = union.tag_field, tag
        self.add_variant(union, item, *payloads)

    def flat(self, name: str, parts: list[Json], payloads: list[str], tag_field: str) -> Struct:
        """All parts and payloads in one struct; payloads that are themselves mixed bring their check along."""
        item = self.struct(name, [_plain(p) for p in parts], without=tag_field)
        for payload in payloads:
            self.define(payload, self.definitions[payload])
            part = self.items[payload]
            assert isinstance(part, Struct)
            self.flattened.add(payload)
            item.properties += part.properties
            item.meta = item.meta or part.meta
            item.check = part.check or item.check
        return item

    def nested_variant(self, union: Union, inner: Union, name: str, tag: str) -> None:
        by_tag: dict[str, str] = {}
        for member in inner.members:
            struct = self.items[member]
            assert isinstance(struct, Struct) and struct.tag
            second = Property(inner.tag_field, f'Literal["{struct.tag}"]', constant=struct.tag)
            sub = Struct(f"{name}{pascal(struct.tag)}", [second], base=member, tag_field=union.tag_field, tag=tag)
            self.add_variant(union, sub, inner.name, member, listed=False)
            by_tag[struct.tag] = sub.name
        union.nested.append((inner.tag_field, by_tag))

    def add_variant(self, union: Union, item: Struct, *sources: str, listed: bool = True) -> None:
        self.add(item)
        tags = [_tag(b) for b in _branches(self.stable_definitions.get(union.name, {}))]
        if (union.tag_field, item.tag) in tags and all(s in self.stable_definitions for s in sources):
            self.stable.add(item.name)
        if listed:
            union.members.append(item.name)

    def bare_variant(self, union: Union, shared: list[Json], branch: Json, is_open: bool) -> None:
        title = branch["title"]
        if payloads := _payloads(branch):
            (payload,) = payloads
            self.define(payload, self.definitions[payload])
            item = self.items[payload]
            assert isinstance(item, Struct)
            # In a closed union the untagged variant may be named as well: `type: "stdio"`.
            if not is_open:
                item.properties.append(Property(union.tag_field, f'Literal["{title}"]', required=False))
            union.bare = payload
            return
        # The tag does not choose here, the type of a value does; what the tag says is kept.
        item = self.flat(f"{union.name}{pascal(title)}", [*shared, branch], [], union.tag_field)
        item.properties.append(Property(union.tag_field, "str", required=False))
        self.add(item)
        self.stable.update({item.name} if union.name in self.stable_definitions else ())
        union.bare = item.name
        union.members.append(item.name)

    def define_untagged(self, name: str, branches: list[Json]) -> None:
        types: list[str] = []
        for branch in branches:
            if set(branch) <= {"title", "description"}:
                self.add(Alias(name, "Json"))
                return
            if branch.get("type") == "object":
                item = self.struct(f"{name}{pascal(branch['title'])}", [branch])
                self.add(item)
                types.append(item.name)
            else:
                types.append(self.type_of(branch))
        if all(re.match(r"[A-Z]\w+$|(Annotated\[)?tuple\[[A-Z]", t) for t in types) and len(types) > 1:
            self.add(Either(name, types))
        else:
            self.add(Alias(name, _any_number(types)))

    # Types

    def nullable_type(self, schema: Json) -> tuple[str, bool]:
        if isinstance(schema.get("type"), list):
            (kind,) = (k for k in schema["type"] if k != "null")
            return self.type_of({**schema, "type": kind}), True
        branches = schema.get("anyOf")
        if branches and {"type": "null"} in branches:
            (other,) = (b for b in branches if b != {"type": "null"})
            return self.type_of(other), True
        return self.type_of(schema), False

    def type_of(self, schema: Json) -> str:
        if ref := _reference(schema, default=""):
            return ref
        match schema.get("type"):
            case None:
                assert not {"anyOf", "oneOf", "not", "properties"} & set(schema), schema
                return "Json"
            case "string":
                return _bounded("str", {"min_length": schema.get("minLength")})
            case "boolean":
                return "bool"
            case "integer":
                low, high = INTEGERS[schema["format"]]
                return _bounded("int", {"ge": schema.get("minimum", low), "le": schema.get("maximum", high)})
            case "number":
                return _bounded("float", {"ge": schema.get("minimum"), "le": schema.get("maximum")})
            case "array":
                items = self.type_of(schema["items"])
                return _bounded(f"tuple[{items}, ...]", {"min_length": schema.get("minItems")})
            case "object":
                values = schema["additionalProperties"]
                return "JsonObject" if values is True else f"Mapping[str, {self.type_of(values)}]"
        raise AssertionError(schema)

    # Tables

    def stable_properties(self, name: str) -> set[str] | None:
        schema = self.stable_definitions.get(name)
        return None if schema is None else set(schema.get("properties", {}))

    def methods(self) -> tuple[dict[tuple[str, str], tuple[str | None, str | None]], dict[tuple[str, str], str]]:
        methods: dict[tuple[str, str], tuple[str | None, str | None]] = {}
        notifications: dict[tuple[str, str], str] = {}
        for name, schema in self.definitions.items():
            if "x-method" not in schema:
                continue
            key = (schema["x-side"], schema["x-method"])
            if name.endswith("Notification"):
                notifications[key] = name
            else:
                params, result = methods.get(key, (None, None))
                methods[key] = (name, result) if name.endswith("Request") else (params, name)
        return methods, notifications

    def in_order(self) -> list[Item]:
        done: dict[str, Item] = {}

        def visit(name: str, trail: tuple[str, ...]) -> None:
            assert name not in trail, f"types that need each other: {trail}"
            if name in self.items and name not in done:
                for need in sorted(self.items[name].needs()):
                    visit(need, (*trail, name))
                done[name] = self.items[name]

        for name in self.items:
            visit(name, ())
        return list(done.values())


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref":
                yield value.rsplit("/", 1)[1]
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def _reference(schema: Json, default: str | None = None) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[1]
    match schema.get("allOf"):
        case [{"$ref": str(ref)}] if not schema.get("properties"):
            return ref.rsplit("/", 1)[1]
    assert default is not None, schema
    return default


def _payloads(branch: Json) -> list[str]:
    return [_reference(part) for part in branch.get("allOf", [])]


def _branches(schema: Json) -> list[Json]:
    return list(schema.get("anyOf") or schema.get("oneOf") or [])


def _plain(schema: Json) -> Json:
    return {k: v for k, v in schema.items() if k in ("type", "properties", "required")}


def _tag(branch: Json) -> tuple[str, str] | None:
    for name, schema in branch.get("properties", {}).items():
        if "const" in schema:
            return name, schema["const"]
    return None


def _is_open(branch: Json, tag_field: str) -> bool:
    return bool(branch.get("title") == "other" and tag_field in branch.get("properties", {}))


def _optional(p: Property) -> Property:
    return Property(p.wire, p.type, False, p.nullable, p.lenient, p.default, p.constant, p.stable)


def _scalars(branches: list[Json]) -> str:
    """Constants, with or without room for others; and ids, which are a number, a string or null."""
    values = [b["const"] for b in branches if "const" in b]
    rest = [b for b in branches if "const" not in b]
    if values and isinstance(values[0], int):
        return _bounded("int", dict(zip(("ge", "le"), INTEGERS["int32"], strict=True)))
    kinds = [f"Literal[{', '.join(json.dumps(v) for v in values)}]"] if values else []
    order = {"integer": 0, "string": 1, "null": 2}
    for branch in sorted(rest, key=lambda b: order[b["type"]]):
        low_high = dict(zip(("ge", "le"), INTEGERS[branch.get("format", "int64")], strict=True))
        kinds.append({"integer": _bounded("int", low_high), "string": "str", "null": "None"}[branch["type"]])
    return " | ".join(kinds)


def _any_number(types: list[str]) -> str:
    """Beside `float` an integer has no bounds: one outside them is still a number."""
    return " | ".join("int" if t.startswith("Annotated[int") and "float" in types else t for t in types)


def _bounded(kind: str, bounds: dict[str, Any]) -> str:
    given = ", ".join(f"{name}={value}" for name, value in bounds.items() if value is not None)
    return f"Annotated[{kind}, Meta({given})]" if given else kind
