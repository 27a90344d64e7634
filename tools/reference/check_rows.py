"""The page of the rows of `dragoman check`, made from their tables."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from dragoman.conformance.passive import trace_rows
from dragoman.conformance.rows import ROLES, Requirement, Role, load_rows
from dragoman.conformance.schema import REVISION
from tools.reference.markdown import cell

_TITLES: Final[Mapping[Role, str]] = {"agent": "Agents", "client": "Clients", "server": "Servers"}


def check_rows_page() -> str:
    """Return the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Rows of `dragoman check`\n"
    yield f"What [`dragoman check`](../how-to/check.md) judges by, read in revision {REVISION} of the schema. "
    yield "`dragoman check --explain ID` has more of each, with the frames of a correct exchange.\n"
    for role in ROLES:
        rows = load_rows(role)
        yield from _table(_TITLES[role], rows)
    yield from _table("Recordings", trace_rows())


def _table(title: str, rows: tuple[Requirement, ...]) -> Iterator[str]:
    tiers = Counter(row.tier for row in rows)
    counted = ", ".join(f"{count} {tier}" for tier, count in tiers.items())
    yield f"## {title}\n"
    yield f"{len({row.id for row in rows})} rows: {counted}.\n"
    yield "| row | versions | tier | sentence | source |"
    yield "|---|---|---|---|---|"
    for row in rows:
        sentence = row.sentence + (f" *Disputed*: {row.dispute}" if row.dispute else "")
        versions = ", ".join(map(str, row.versions))
        yield f"| {row.id} | {versions} | {row.tier} | {cell(sentence)} | {cell(row.citation)} |"
    yield ""
