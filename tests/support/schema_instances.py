"""Random instances of the official JSON schemas, as a second reading of them that shares no code with the generator.

`instances("v1").of("PromptRequest")` is a hypothesis strategy of valid JSON values. `vendor` adds unknown fields to
every object, `foreign` adds variants that no schema knows. `validator("v1", "PromptRequest")` judges, by jsonschema-rs.
"""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
from hypothesis import strategies as st

REPOSITORY = Path(__file__).resolve().parents[2]
PLACES = (REPOSITORY.parent / "shared/schema", REPOSITORY / ".peers/node_modules/@agentclientprotocol/sdk/schema")
INTEGERS = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
TEXT = st.text(max_size=8)
SCALAR = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXT
)
# Levels written out: `st.recursive` draws the same, and takes three times as long to do it.
INNER = SCALAR | st.lists(SCALAR, max_size=2) | st.dictionaries(TEXT, SCALAR, max_size=2)
JSON = SCALAR | st.lists(INNER, max_size=3) | st.dictionaries(TEXT, INNER, max_size=3)
# Names no definition has, some of them close to ones that we use ourselves.
VENDOR_FIELDS = st.dictionaries(
    st.sampled_from(["extras", "meta", "fields", "raw", "tag", "session_id", "x-vendor", "vendorField", "ü", ""]),
    JSON,
    max_size=2,
)
FOREIGN_TAGS = st.sampled_from(["_vendor/thing", "hologram", "", "Text", "stateUpdate"])


def schema_folder() -> Path | None:
    return next((place for place in PLACES if (place / "v1/schema.unstable.json").is_file()), None)


@cache
def definitions(version: str, name: str = "schema.unstable.json") -> dict[str, Any]:
    folder = schema_folder()
    if folder is None:
        return {}
    found: dict[str, Any] = json.loads((folder / version / name).read_bytes())["$defs"]
    return found


@cache
def validator(version: str, name: str) -> Any:
    """Of one definition, with those that it needs: the whole schema takes longer to read than all that it judges."""
    known, needed = definitions(version), {name}
    new = needed
    while new:
        new = {found for one in new for found in _references(known[one])} - needed
        needed |= new
    return jsonschema_rs.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": {one: known[one] for one in needed}})


def _references(schema: Any) -> Iterator[str]:
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    if isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
        yield _name(schema)
    for part in inner:
        yield from _references(part)


# Made once for all tests: making a strategy takes longer than drawing from it.
@cache
def instances(version: str, *, vendor: bool = False, foreign: bool = False) -> "Instances":
    return Instances(definitions(version), vendor=vendor, foreign=foreign)


class Instances:
    def __init__(self, known: dict[str, Any], *, vendor: bool = False, foreign: bool = False) -> None:
        self.known = known
        self.vendor = vendor
        self.foreign = foreign
        self.made: dict[str, st.SearchStrategy[Any]] = {}
        self.made_fields: dict[str, st.SearchStrategy[dict[str, Any]]] = {}

    def of(self, name: str) -> st.SearchStrategy[Any]:
        if name not in self.made:
            self.made[name] = self.value(self.known[name])
        return self.made[name]

    def value(self, schema: dict[str, Any]) -> st.SearchStrategy[Any]:
        if "const" in schema:
            return st.just(schema["const"])
        if isinstance(schema.get("type"), list):
            return st.one_of(*(self.value({**schema, "type": kind}) for kind in schema["type"]))
        if _is_object(schema, self.known):
            return self.object(schema)
        if "$ref" in schema:
            return self.of(_name(schema))
        for key in ("anyOf", "oneOf", "allOf"):
            if key in schema:
                return st.one_of(*(self.value(branch) for branch in schema[key]))
        return self.scalar(schema)

    def scalar(self, schema: dict[str, Any]) -> st.SearchStrategy[Any]:
        match schema.get("type"):
            case "null":
                return st.none()
            case "boolean":
                return st.booleans()
            case "string":
                return st.text(min_size=schema.get("minLength", 0), max_size=8)
            case "integer":
                low, high = INTEGERS[schema["format"]]
                return st.integers(schema.get("minimum", low), schema.get("maximum", high))
            case "number":
                bounds = schema.get("minimum"), schema.get("maximum")
                return st.floats(*bounds, allow_nan=False, allow_infinity=False)
            case "array":
                return st.lists(self.value(schema["items"]), min_size=schema.get("minItems", 0), max_size=3)
            case "object":
                values = schema.get("additionalProperties", True)
                return st.dictionaries(TEXT, JSON if values is True else self.value(values), max_size=2)
        return JSON

    def object(self, schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
        """Its own properties, those of everything it is composed of, and those of one branch of each choice."""
        parts = [self.fields(schema)]
        if self.vendor:
            parts.insert(0, VENDOR_FIELDS)
        return st.tuples(*parts).map(lambda found: {k: v for part in found for k, v in part.items()})

    def fields(self, schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
        if "$ref" in schema:
            name = _name(schema)
            if name not in self.made_fields:
                self.made_fields[name] = self.fields(self.known[name])
            return self.made_fields[name]
        properties = {name: self.property(name, part, schema) for name, part in schema.get("properties", {}).items()}
        required = set(schema.get("required", []))
        own = st.fixed_dictionaries(
            {name: made for name, made in properties.items() if name in required},
            optional={name: made for name, made in properties.items() if name not in required},
        )
        parts: list[st.SearchStrategy[dict[str, Any]]] = [own]
        parts += [self.fields(part) for part in schema.get("allOf", [])]
        for key in ("anyOf", "oneOf"):
            if key in schema:
                parts.append(st.one_of(*self.branches(schema[key])))
        return st.tuples(*parts).map(lambda found: {k: v for part in found for k, v in part.items()})

    def property(self, name: str, part: dict[str, Any], owner: dict[str, Any]) -> st.SearchStrategy[Any]:
        """The tag of an open variant is one that `not` does not name."""
        others = owner.get("not", {}).get("anyOf", [])
        return FOREIGN_TAGS if any(name in other["properties"] for other in others) else self.value(part)

    def branches(self, branches: list[dict[str, Any]]) -> list[st.SearchStrategy[dict[str, Any]]]:
        found = [self.fields(branch) for branch in branches]
        tags = [n for b in branches for n, p in b.get("properties", {}).items() if "const" in p]
        if self.foreign and tags:
            body = st.dictionaries(st.sampled_from(["text", "value", "name", "b", "_meta"]), JSON, max_size=2)
            found.append(st.tuples(FOREIGN_TAGS, body).map(lambda both: {**both[1], tags[0]: both[0]}))
        return found


def _name(schema: dict[str, Any]) -> str:
    return str(schema["$ref"]).rsplit("/", 1)[1]


def _is_object(schema: dict[str, Any], known: dict[str, Any]) -> bool:
    """Whether every instance is an object with properties of its own."""
    if "$ref" in schema:
        return _is_object(known[_name(schema)], known)
    if "properties" in schema:
        return True
    branches = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf") or []
    if branches:
        return all(_is_object(branch, known) for branch in branches)
    return schema.get("type") == "object" and "additionalProperties" not in schema
