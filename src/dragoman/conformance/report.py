"""The result of a run as lines for a terminal: what failed, with the frames that show it, then what was not judged.

Pure: a report in, text out. What an agent sent is made harmless where its frames are shown (`Frame.text`).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from dragoman.conformance.frames import Frame, Sender
from dragoman.conformance.rows import Requirement
from dragoman.conformance.run import CheckReport, RowResult
from dragoman.conformance.verdicts import Verdict
from dragoman.host.text import harmless_line

_SENDERS: Final[Mapping[Sender, str]] = {
    "check": "  check → ",
    "agent": "  agent ← ",
    "client": "  client ← ",
    "server": "  server ← ",
}
_TIERS: Final = {"must": 0, "must-if-advertised": 1, "should": 2, "note": 3}


def report_lines(report: CheckReport, *, strict: bool = False) -> Iterator[str]:
    """Return the report of a run."""
    if report.obstacle:
        yield f"Nothing could be tested: {harmless_line(report.obstacle)}"
        return
    failed = _with(report, Verdict.FAIL)
    for result in sorted(failed, key=lambda one: _TIERS[one.row.tier]):
        yield from _failure_lines(result)
    yield from _unjudged_lines(_with(report, Verdict.BLOCKED), "Blocked")
    missing = _with(report, Verdict.NOT_TESTED)
    yield from _unjudged_lines([one for one in missing if not one.is_unadvertised], "Not tested")
    yield from _unadvertised_lines([one for one in missing if one.is_unadvertised])
    yield from _harness_lines(report)
    yield from _uncounted_lines(report)
    for version, hello in report.hellos.items():
        yield f"version {version}: {_counts(one for one in report.results if one.version == version)}{_named(hello)}"
    yield verdict_line(report, strict=strict)


def verdict_line(report: CheckReport, *, strict: bool = False) -> str:
    """Return the last line: the verdict on the subject."""
    if not report.could_test():
        return "COULD NOT TEST: something stands before the rows; see above"
    counted = report.failures(strict=strict)
    if report.conforms(strict=strict):
        return "CONFORMS to every row that counts"
    failed = sum(one.verdict is Verdict.FAIL for one in counted)
    rest = len(counted) - failed
    if rest and not failed and not report.stale:
        return f"NOT SHOWN TO CONFORM: none failed, {rest} that must hold could not be judged"
    parts = [f"{failed} failed"] if counted else []
    parts += [f"{rest} that must hold could not be judged"] if rest else []
    parts += [f"{len(report.stale)} expected to fail does not"] if report.stale else []
    return f"DOES NOT CONFORM: {', '.join(parts)}"


def row_lines(rows: Iterable[Requirement]) -> Iterator[str]:
    """Return a line for each row, for `--list`."""
    for row in rows:
        versions = ",".join(map(str, row.versions))
        yield f"{row.id:19} {versions:4} {row.tier:19} {row.sentence}"


def explanation_lines(row: Requirement, exchange: Iterable[Frame]) -> Iterator[str]:
    """Return what there is to say about a row, with the frames of a correct exchange."""
    yield f"{row.id}: {row.sentence}"
    yield f"  tier        {row.tier}, versions {', '.join(map(str, row.versions))}"
    yield f"  source      {row.source()}"
    yield f"  transports  {', '.join(row.transports)}"
    if row.scenario:
        yield f"  scenario    {row.scenario}"
    if row.capability:
        yield f"  asks for    {row.capability}"
    if row.dispute:
        yield f"  dispute     {row.dispute}"
    yield f"  proven by   a peer with the switch {row.broken}, which fails it"
    yield f"A correct exchange, in version {row.versions[-1]}:"
    yield from map(frame_line, exchange)


def frame_line(frame: Frame) -> str:
    """Return a frame as a line, with what is wrong with it."""
    remark = frame.fault or (f"on purpose: {frame.intent}" if frame.intent else "")
    return f"{_SENDERS[frame.sender]}{frame.text()}{f'   [{harmless_line(remark)}]' if remark else ''}"


def _with(report: CheckReport, verdict: Verdict) -> list[RowResult]:
    return [one for one in report.results if one.verdict is verdict]


def _uncounted_lines(report: CheckReport) -> Iterator[str]:
    """Return what does not count, and the expected failures that are none."""
    failed = [one for one in _with(report, Verdict.FAIL) if one.not_scored]
    for reason, results in _by(failed, lambda one: one.not_scored).items():
        yield f"Failed and not scored: {', '.join(dict.fromkeys(one.row.id for one in results))}: {reason}"
    for name in report.stale:
        yield f"{name} was expected to fail, and does not: strike it out of the file of expected failures"


def _by(results: Iterable[RowResult], key: Callable[[RowResult], str]) -> dict[str, list[RowResult]]:
    groups: dict[str, list[RowResult]] = {}
    for result in results:
        groups.setdefault(key(result), []).append(result)
    return groups


def _failure_lines(result: RowResult) -> Iterator[str]:
    row = result.row
    mark = ", expected" if result.is_expected else ""
    yield f"FAIL {row.id} (version {result.version}, {row.tier}{mark}): {row.sentence}"
    yield f"  {harmless_line(result.reason)}"
    yield from map(frame_line, result.frames)
    yield f"  source: {row.source()}; more: dragoman check --explain {row.id}"
    yield ""


def _unjudged_lines(results: list[RowResult], title: str) -> Iterator[str]:
    """Return rows that could not be judged, those with the same reason together."""
    groups: dict[tuple[str, str], list[RowResult]] = {}
    for result in results:
        groups.setdefault((result.reason, result.next_step), []).append(result)
    for (reason, step), group in groups.items():
        names = ", ".join(dict.fromkeys(one.row.id for one in group))
        yield f"{title}: {harmless_line(reason)}"
        yield f"  {names}"
        if step:
            yield f"  next: {harmless_line(step)}"
        yield ""


def _unadvertised_lines(results: list[RowResult]) -> Iterator[str]:
    reasons = Counter(one.reason for one in results)
    for reason, count in reasons.items():
        yield f"Does not apply to {count} rows: {harmless_line(reason)}"
    if reasons:
        yield ""


def _harness_lines(report: CheckReport) -> Iterator[str]:
    """Return what went wrong in us, which is no verdict on the subject."""
    for error in report.harness_errors:
        yield f"A fault of dragoman check, no verdict: {harmless_line(error)}"
    for result in report.results:
        for frame in result.own_faults:
            yield f"A fault of dragoman check: {result.row.id} sent what the schema does not allow"
            yield frame_line(frame)


def _counts(results: Iterable[RowResult]) -> str:
    found = Counter(one.verdict for one in results)
    return ", ".join(f"{found[verdict]} {verdict.value}" for verdict in Verdict if found[verdict]) or "no row"


def _named(hello: Any) -> str:
    info = hello.get("agentInfo") or hello.get("clientInfo") or hello.get("info")
    if not isinstance(info, dict):
        return ""
    return " " + harmless_line(f"({info.get('name', '?')} {info.get('version', '?')})")
