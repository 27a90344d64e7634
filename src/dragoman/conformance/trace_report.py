"""What was found in a recording as a report of `check`, so every form of report is one for recordings too. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dragoman.conformance.frames import KEPT_BYTES, Frame, Sender
from dragoman.conformance.passive import PassiveFinding, PassiveReport, judge_trace, trace_rows
from dragoman.conformance.rows import Requirement
from dragoman.conformance.run import CheckReport, RowResult
from dragoman.conformance.verdicts import Verdict
from dragoman.trace.exchanges import exchanges_of
from dragoman.trace.records import TO_AGENT, TraceFrame

# Frames that a row shows; a mistake is often made a thousand times.
_SHOWN: Final = 3


def trace_report(name: str, frames: Sequence[TraceFrame], only: Iterable[str] = ()) -> CheckReport:
    """Judge a recording by all rows, or by those of `only`."""
    hellos = _hellos(frames)
    if not hellos:
        return CheckReport(name, {}, (), obstacle="no initialize in it was answered with a version that is known")
    report = judge_trace(frames)
    wanted = set(only)
    results = [
        _result(row, version, report)
        for version in hellos
        for row in trace_rows()
        if version in row.versions and (not wanted or row.id in wanted)
    ]
    more = (f"{report.more} more findings are left out",) if report.more else ()
    return CheckReport(name, hellos, tuple(results), harness_errors=more)


def _hellos(frames: Iterable[TraceFrame]) -> dict[int, Mapping[str, Any]]:
    hellos: dict[int, Mapping[str, Any]] = {}
    for exchange in exchanges_of(frames):
        version = exchange.result.get("protocolVersion")
        if exchange.method == "initialize" and version in (1, 2) and not isinstance(version, bool):
            hellos.setdefault(version, exchange.result)
    return dict(sorted(hellos.items()))


def _result(row: Requirement, version: int, report: PassiveReport) -> RowResult:
    found = [one for one in report.findings if one.row.id == row.id]
    if found:
        more = f", and {len(found) - 1} more" if len(found) > 1 else ""
        reason = f"line {found[0].line}: {found[0].reason}{more}"
        frames = tuple(_frame(one) for one in found[:_SHOWN])
        return RowResult(row, version, Verdict.FAIL, reason, frames=frames)
    if row.id in report.seen:
        return RowResult(row, version, Verdict.PASS)
    return RowResult(row, version, Verdict.NOT_TESTED, "nothing in the recording is about them", is_unadvertised=True)


def _frame(finding: PassiveFinding) -> Frame:
    frame = finding.frame
    sender: Sender = "check" if frame.direction == TO_AGENT else "agent"
    return Frame(frame.elapsed, sender, frame.data[:KEPT_BYTES], len(frame.data), fault=finding.reason)
