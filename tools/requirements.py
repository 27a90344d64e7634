"""Read the tables of `tests/requirements/` that pages and tests share: compatibility, vendor programs, losses.

Each `*.toml` file has `[[row]]` entries with an `id`, a `sentence`, a `source` and `tests`. They are data of the
repository and not part of the wheel: nothing at run time reads them.
"""

import tomllib
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

FOLDER: Final = Path(__file__).resolve().parent.parent / "tests" / "requirements"
SYSTEMS: Final = ("iac-code", "v2-june", "elephant", "agentao", "simse")

RowClass = Literal["T", "A", "P", "-"]
Direction = Literal["same", "v1→v2", "v2→v1"]


class CompatibilityRow(NamedTuple):
    """One difference between a documented system and the protocol."""

    id: str
    system: str
    row_class: RowClass
    where: str
    differs: str
    ours: str
    tests: tuple[str, ...]


class VendorFinding(NamedTuple):
    """One difference between a vendor's program and its own document."""

    id: str
    program: str
    does: str
    ours: str
    tests: tuple[str, ...]


class Loss(NamedTuple):
    """One thing that a version of the protocol cannot carry, and what is sent instead."""

    id: str
    direction: Direction
    what: str
    instead: str
    tests: tuple[str, ...]


def _rows(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads((FOLDER / name).read_text(encoding="utf-8"))["row"]
    return [{**row, "tests": tuple(row["tests"])} for row in rows]


ROWS: Final = tuple(
    CompatibilityRow(
        *(row[name] for name in ("id", "source", "class", "where", "sentence", "ours", "tests")),
    )
    for row in _rows("compatibility.toml")
)
FINDINGS: Final = tuple(
    VendorFinding(*(row[name] for name in ("id", "source", "sentence", "ours", "tests")))
    for row in _rows("vendor_programs.toml")
)
LOSSES: Final = tuple(
    Loss(*(row[name] for name in ("id", "direction", "sentence", "instead", "tests"))) for row in _rows("losses.toml")
)
