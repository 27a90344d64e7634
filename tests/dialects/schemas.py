"""The official schemas as oracles: random messages out of them, and whether what we said is valid.

Everything about JSON here is written apart from the package, so that both cannot be wrong in the same way.
"""

import json
from functools import cache
from types import NoneType
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from msgspec import Raw

from tests.support.schema_instances import definitions, instances, validator

# There are hundreds of these tests; each takes its share of the profile's examples.
SHARE = settings(
    max_examples=settings().max_examples // 7,
    # Explaining a failure takes minutes where messages are this large.
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def assert_valid(version: int, name: str, value: Any) -> None:
    problems = [
        f"{list(error.instance_path)}: {error.message}" for error in validator(f"v{version}", name).iter_errors(value)
    ]
    assert problems == [], value


@cache
def messages(version: int, name: str, *, vendor: bool = True, foreign: bool = False) -> st.SearchStrategy[Any]:
    """Valid messages of a definition; with `foreign`, variants in them that no schema knows."""
    return instances(f"v{version}", vendor=vendor, foreign=foreign).of(name).map(grounded)


@cache
def updates(version: int, tag: str, *, vendor: bool = True, foreign: bool = False) -> st.SearchStrategy[dict[str, Any]]:
    """The params of `session/update` with one kind of update."""
    schema = definitions(f"v{version}")["SessionUpdate"]
    (branch,) = (
        b for b in schema.get("anyOf") or schema["oneOf"] if b["properties"]["sessionUpdate"].get("const") == tag
    )
    made = instances(f"v{version}", vendor=vendor, foreign=foreign)
    carrier = definitions(f"v{version}")["SessionNotification" if version == 1 else "UpdateSessionNotification"]
    around = made.object(
        {
            **carrier,
            "properties": {k: v for k, v in carrier["properties"].items() if k != "update"},
            "required": ["sessionId"],
        }
    )
    return st.tuples(around, made.object(branch)).map(lambda both: grounded({**both[0], "update": both[1]}))


def update_tags(version: int) -> list[str]:
    schema = definitions(f"v{version}").get("SessionUpdate", {"anyOf": []})
    found = [b["properties"]["sessionUpdate"].get("const") for b in schema.get("anyOf") or schema.get("oneOf", [])]
    return [tag for tag in found if tag is not None]


def grounded(value: Any) -> Any:
    """The message with every path absolute and every `_meta` an object, as a receiver may insist on."""
    if isinstance(value, list):
        return [grounded(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {k: _path(k, inner) for k, inner in value.items() if k != "_meta" or isinstance(inner, dict | NoneType)}


def _path(key: str, value: Any) -> Any:
    if key in ("cwd", "path", "oldPath") and isinstance(value, str):
        return "/" + value.replace("\0", "0")
    if key == "additionalDirectories" and isinstance(value, list):
        return ["/" + inner.replace("\0", "0") if isinstance(inner, str) else inner for inner in value]
    return value if key == "_meta" else grounded(value)


def text(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def meaning(value: Any) -> Any:
    """The value with every number in one spelling, and apart from booleans, which Python takes for numbers."""
    if isinstance(value, dict):
        return {key: meaning(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [meaning(inner) for inner in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return ("number", value)
    return value


def raw(value: Any) -> Raw:
    return Raw(text(value))


def read(value: Raw | bytes | None) -> Any:
    return None if value is None else json.loads(bytes(value))
