"""The rows: what a conforming program does, as data, loaded from `*_rows.toml` beside this file and checked at load.

A row that is not as it must be stops the program at the first load, so our own suite sees it before a user does.
Where a requirement is the one of acp-tck, the row has its id; ids of our own have numbers from 501 on.
"""

import tomllib
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal, NamedTuple, get_args

Role = Literal["agent", "client", "server"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
Tier = Literal["must", "must-if-advertised", "should", "note"]
RowTransport = Literal["stdio", "http", "websocket"]
TRANSPORTS: Final[tuple[RowTransport, ...]] = get_args(RowTransport)
_FIELDS: Final = {"id", "versions", "tier", "sentence", "citation", "broken", "capability", "transports", "dispute"} | {
    "scenario"
}
_REQUIRED: Final = _FIELDS - {"capability", "transports", "dispute", "scenario"}
# The files of a role, in the order in which their rows are told.
_FILES: Final[dict[Role, tuple[str, ...]]] = {
    "agent": ("agent_rows", "durability_rows", "fault_rows"),
    "client": ("client_rows",),
    "server": ("server_rows",),
}


class RowsInvalid(ValueError):
    """A table of rows that cannot be used; the text names the row and what is wrong with it."""


class Requirement(NamedTuple):
    """A row. `broken` is the switch that makes the peer of `peer.py` break it, `dispute` another reading of it."""

    id: str
    role: Role
    versions: tuple[int, ...]
    tier: Tier
    sentence: str
    citation: str
    revision: str
    transports: tuple[RowTransport, ...]
    broken: str
    # What the subject must advertise before it is asked; empty: every subject has it.
    capability: str
    dispute: str
    # Of a row of a client: what the scripted agent does while the row is judged.
    scenario: str = ""

    def source(self) -> str:
        """Return the citation with the revision of the schema it was read in."""
        return f"{self.citation} (schema {self.revision})"


@cache
def load_rows(role: Role) -> tuple[Requirement, ...]:
    """Return the rows of a role in the order of their file; raise `RowsInvalid`."""
    rows = [row for name in _FILES[role] for row in parse_rows(read_table(name), role)]
    _check_unique(rows)
    return tuple(rows)


def read_table(name: str) -> dict[str, Any]:
    """Return a table that stands beside this file."""
    return tomllib.loads(files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def parse_rows(table: dict[str, Any], role: Role) -> tuple[Requirement, ...]:
    """Return the rows of a table that was read; raise `RowsInvalid`."""
    revision = table.get("revision")
    if not isinstance(revision, str) or not revision:
        raise RowsInvalid(f"the rows of role {role} name no revision of the schema")
    rows = tuple(_row(one, role, revision) for one in table.get("row", []))
    _check_unique(rows)
    return rows


def _check_unique(rows: Iterable[Requirement]) -> None:
    seen = Counter((row.id, version) for row in rows for version in row.versions)
    for (id, version), count in seen.items():
        if count > 1:
            raise RowsInvalid(f"{id}: stands {count} times for version {version}")


def _row(one: dict[str, Any], role: Role, revision: str) -> Requirement:
    name = one.get("id", "a row without an id")
    if missing := sorted(field for field in _REQUIRED if not one.get(field)):
        raise RowsInvalid(f"{name}: lacks {', '.join(missing)}")
    if unknown := sorted(one.keys() - _FIELDS):
        raise RowsInvalid(f"{name}: {', '.join(unknown)} is no field of a row")
    _check_member(name, "tier", [one["tier"]], get_args(Tier))
    _check_member(name, "transport", one.get("transports", ()), TRANSPORTS)
    _check_member(name, "version", one["versions"], (1, 2))
    if one["tier"] == "must-if-advertised" and not one.get("capability"):
        raise RowsInvalid(f"{name}: is a must if advertised, and names no capability")
    return Requirement(
        id=name,
        role=role,
        versions=tuple(one["versions"]),
        tier=one["tier"],
        sentence=one["sentence"],
        citation=one["citation"],
        revision=revision,
        transports=tuple(one.get("transports", TRANSPORTS)),
        broken=one["broken"],
        capability=one.get("capability", ""),
        dispute=one.get("dispute", ""),
        scenario=one.get("scenario", ""),
    )


def _check_member(name: str, what: str, given: Iterable[Any], known: tuple[Any, ...]) -> None:
    for value in given:
        if value not in known:
            raise RowsInvalid(f"{name}: {value!r} is no {what}; there are {', '.join(map(str, known))}")
