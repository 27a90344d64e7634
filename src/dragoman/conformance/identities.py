"""Real editors and agents that `check` can pass for: what each says of itself, as data with its source."""

import json
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple, get_args

IdentityRole = Literal["client", "agent"]
Origin = Literal["recorded", "taken"]


class CheckIdentity(NamedTuple):
    """Params of `initialize` of a client, or the result of an agent.

    `origin` says whether they were recorded on a wire or taken from a published source; `source` says where.
    """

    name: str
    role: IdentityRole
    version: int
    origin: Origin
    source: str
    params: Mapping[str, Any]


@cache
def load_identities() -> tuple[CheckIdentity, ...]:
    """Return all identities. Raise `ValueError` for one that says of itself less than it must."""
    table = tomllib.loads(files(__package__).joinpath("identities.toml").read_text(encoding="utf-8"))
    return tuple(_identity(one) for one in table["identity"])


def _identity(one: dict[str, Any]) -> CheckIdentity:
    if one["origin"] not in get_args(Origin) or one["role"] not in get_args(IdentityRole) or not one["source"]:
        raise ValueError(f"identity {one.get('name')}: its origin, role or source is missing")
    params = json.loads(one["params"])
    return CheckIdentity(one["name"], one["role"], one["version"], one["origin"], one["source"], params)


def names_of(role: IdentityRole) -> list[str]:
    """Return the names that a role has."""
    return list(dict.fromkeys(one.name for one in load_identities() if one.role == role))


def find_identities(name: str, role: IdentityRole) -> tuple[CheckIdentity, ...]:
    """Return the identities of a name, one for each version that it speaks."""
    return tuple(one for one in load_identities() if one.name == name and one.role == role)
