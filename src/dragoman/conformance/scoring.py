"""What counts of a run: rows that are frozen for a revision of the schema, and failures that were expected.

A kit that grows must not fail a program that has not changed. So the rows that count for a revision stand in a frozen
set (`frozen/REVISION.toml`), which is never changed once it was released; other rows are judged, shown, and not scored.

Failures that are known stand in a file of the user: a row in each line, with a version behind `@` if only that is
meant, and a reason behind `#`. A row in it that holds makes the run fail, so the file never says more than is true.
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from dragoman.conformance.rows import ROLES, Role
from dragoman.conformance.run import CheckReport, RowResult
from dragoman.conformance.verdicts import Verdict

_LINE: Final = re.compile(r"(ACP-[A-Z0-9]+-[0-9]{3})(?:@([12]))?\s*(?:#.*)?")
ADDED_LATER: Final = "it is younger than the set of rows of this revision"


class BaselineInvalid(ValueError):
    """A file of expected failures that cannot be read; the text names the line."""


class FrozenSet(NamedTuple):
    """The rows that count for a revision, by role, and why others do not."""

    revision: str
    rows: Mapping[Role, frozenset[str]]
    not_scored: Mapping[str, str]

    def reason(self, role: Role, id: str) -> str:
        """Return why a row does not count; empty if it does."""
        if id in self.not_scored:
            return self.not_scored[id]
        return "" if id in self.rows[role] else ADDED_LATER


class ExpectedFailure(NamedTuple):
    """A row that is known to fail; `version` is 0 for all of them."""

    id: str
    version: int


def revisions() -> list[str]:
    """Return the revisions that have a frozen set, oldest first."""
    found = [one.name.removesuffix(".toml") for one in files(__package__).joinpath("frozen").iterdir()]
    return sorted((one for one in found if one[0].isdigit()), key=lambda one: [int(part) for part in one.split(".")])


@cache
def frozen_set(revision: str) -> FrozenSet:
    """Return the set of a revision that `revisions` has."""
    text = files(__package__).joinpath("frozen", f"{revision}.toml").read_text(encoding="utf-8")
    table: dict[str, Any] = tomllib.loads(text)
    rows = {role: frozenset(table[role]) for role in ROLES}
    return FrozenSet(revision, rows, table.get("not_scored", {}))


def parse_baseline(text: str) -> tuple[ExpectedFailure, ...]:
    """Read a file of expected failures. Raise `BaselineInvalid`."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.strip().startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise BaselineInvalid(f"line {number}: {line.strip()!r} is no row, such as ACP-INIT-001@2 # why")
        found.append(ExpectedFailure(match[1], int(match[2] or 0)))
    return tuple(found)


def scored(report: CheckReport, frozen: FrozenSet, baseline: tuple[ExpectedFailure, ...] = ()) -> CheckReport:
    """Return a report in which rows that are not scored and failures that were expected do not count."""
    results = tuple(_scored(one, frozen, baseline) for one in report.results)
    stale = tuple(_name(one) for one in baseline if _is_stale(one, results))
    return report._replace(results=results, stale=stale)


def _scored(result: RowResult, frozen: FrozenSet, baseline: tuple[ExpectedFailure, ...]) -> RowResult:
    is_expected = any(one.id == result.row.id and one.version in (0, result.version) for one in baseline)
    return result._replace(not_scored=frozen.reason(result.row.role, result.row.id), is_expected=is_expected)


def _is_stale(expected: ExpectedFailure, results: tuple[RowResult, ...]) -> bool:
    """Return whether a row was judged and does not fail; a row that was not judged says nothing."""
    about = [one for one in results if one.row.id == expected.id and expected.version in (0, one.version)]
    return bool(about) and all(one.verdict is Verdict.PASS or one.is_unadvertised for one in about)


def _name(expected: ExpectedFailure) -> str:
    return f"{expected.id}@{expected.version}" if expected.version else expected.id
