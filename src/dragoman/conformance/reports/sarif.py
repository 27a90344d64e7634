"""A report as SARIF 2.1.0, which code scanning and editors read. Pure.

Each row is a rule. What failed is a result of kind `fail`; a row that must hold and was not judged is `open`, one that
a login or a version stands before is `review`: SARIF has no level for either.
"""

from collections.abc import Mapping
from typing import Any, Final

from dragoman.conformance.report import frame_line
from dragoman.conformance.rows import Requirement
from dragoman.conformance.run import CheckReport, RowResult
from dragoman.conformance.verdicts import Verdict
from dragoman.host.text import harmless_line
from dragoman.version import VERSION

Json = Mapping[str, Any]
SARIF_VERSION: Final = "2.1.0"
_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {"must": "error", "must-if-advertised": "error", "should": "warning", "note": "note"}
_KINDS: Final = {Verdict.FAIL: "fail", Verdict.NOT_TESTED: "open", Verdict.BLOCKED: "review"}


def as_sarif(report: CheckReport, *, strict: bool = False) -> Json:
    """Return the report as an object for JSON."""
    rules = list({one.row.id: one.row for one in report.results}.values())
    places = {row.id: at for at, row in enumerate(rules)}
    found = [one for one in report.results if one.verdict is Verdict.FAIL or one.counts(strict=strict)]
    driver = {"name": "dragoman check", "semanticVersion": VERSION, "rules": [_rule(row) for row in rules]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(one, places[one.row.id], report.subject, strict=strict) for one in found],
        "invocations": [_invocation(report)],
    }
    return {"$schema": _SCHEMA, "version": SARIF_VERSION, "runs": [run]}


def _rule(row: Requirement) -> Json:
    return {
        "id": row.id,
        "shortDescription": {"text": row.sentence},
        "fullDescription": {"text": f"{row.sentence} Source: {row.source()}."},
        "help": {"text": f"dragoman check --explain {row.id}"},
        "defaultConfiguration": {"level": _LEVELS[row.tier]},
        "properties": {"tier": row.tier, "versions": list(row.versions)},
    }


def _result(result: RowResult, place: int, subject: str, *, strict: bool) -> Json:
    is_failed = result.verdict is Verdict.FAIL
    level = "error" if result.counts(strict=strict) else _LEVELS[result.row.tier]
    lines = [f"Version {result.version}: {harmless_line(result.reason)}", *map(frame_line, result.frames)]
    if result.next_step:
        lines.append(f"Next: {harmless_line(result.next_step)}")
    return {
        "ruleId": result.row.id,
        "ruleIndex": place,
        "kind": _KINDS[result.verdict],
        "level": level if is_failed else "none",
        "message": {"text": "\n".join(lines)},
        "locations": [_location(result, subject)],
        "partialFingerprints": {"acpRow/v1": f"{result.row.id}/{result.version}"},
    }


def _location(result: RowResult, subject: str) -> Json:
    # No line of a file is to blame; code scanning shows no result without a file, so the role stands there.
    return {
        "physicalLocation": {"artifactLocation": {"uri": f"dragoman-check/{result.row.role}"}},
        "logicalLocations": [{"name": harmless_line(subject), "kind": "module"}],
    }


def _invocation(report: CheckReport) -> Json:
    notes = [report.obstacle] if report.obstacle else []
    told = [{"level": "error", "message": {"text": harmless_line(one)}} for one in (*notes, *report.harness_errors)]
    return {"executionSuccessful": report.could_test(), "toolExecutionNotifications": told}
