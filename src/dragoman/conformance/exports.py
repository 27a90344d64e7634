"""The result of a run for programs: one JSON object, and JUnit XML as CI servers read it. Pure: report in, text out.

Frames stand in both as they came, cut at `frames.KEPT_BYTES`.
"""

import re
from collections.abc import Mapping
from typing import Any, Final
from xml.etree import ElementTree

from dragoman.conformance.frames import Frame
from dragoman.conformance.run import CheckReport, RowResult
from dragoman.conformance.schema import REVISION
from dragoman.conformance.verdicts import Verdict
from dragoman.version import VERSION

# Raised with every change that a reader of the old form would not survive.
FORMAT: Final = 1
# What XML cannot hold, however it is escaped.
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_json(report: CheckReport, *, strict: bool = False) -> Mapping[str, Any]:
    """Return the report as an object for JSON."""
    return {
        "format": FORMAT,
        "dragoman": VERSION,
        "schema": REVISION,
        "subject": report.subject,
        "conforms": report.could_test() and report.conforms(strict=strict),
        "couldTest": report.could_test(),
        "obstacle": report.obstacle,
        "versions": {str(version): hello for version, hello in report.hellos.items()},
        "rows": [_row(one, strict=strict) for one in report.results],
        "ownErrors": list(report.harness_errors),
        "stale": list(report.stale),
    }


def _row(result: RowResult, *, strict: bool) -> Mapping[str, Any]:
    row = result.row
    return {
        "id": row.id,
        "version": result.version,
        "tier": row.tier,
        "sentence": row.sentence,
        "source": row.source(),
        "verdict": result.verdict.value,
        "counts": result.counts(strict=strict),
        "expected": result.is_expected,
        "notScored": result.not_scored,
        "reason": result.reason,
        "next": result.next_step,
        "seconds": round(result.seconds, 3),
        "frames": [_frame(one) for one in result.frames],
        "ownFaults": [_frame(one) for one in result.own_faults],
    }


def _frame(frame: Frame) -> Mapping[str, Any]:
    text = frame.head.decode(errors="replace")
    return {"sender": frame.sender, "text": text, "bytes": frame.size, "fault": frame.fault, "intent": frame.intent}


def as_junit(report: CheckReport, *, strict: bool = False) -> str:
    """Return the report as JUnit XML: a suite for each version, a case for each row."""
    root = ElementTree.Element("testsuites", name=_xml(f"dragoman check {report.subject}"))
    for version in report.hellos:
        results = [one for one in report.results if one.version == version]
        suite = ElementTree.SubElement(root, "testsuite", name=f"acp.v{version}", tests=str(len(results)))
        suite.set("failures", str(sum(one.counts(strict=strict) for one in results)))
        for result in results:
            _add_case(suite, result, strict=strict)
    if report.stale:
        suite = ElementTree.SubElement(root, "testsuite", name="acp.expected", tests=str(len(report.stale)))
        suite.set("failures", str(len(report.stale)))
        for name in report.stale:
            case = ElementTree.SubElement(suite, "testcase", classname="acp.expected", name=name)
            ElementTree.SubElement(case, "failure", message="expected to fail, and does not")
    if report.obstacle or report.harness_errors:
        suite = ElementTree.SubElement(root, "testsuite", name="acp", tests="1", errors="1")
        case = ElementTree.SubElement(suite, "testcase", classname="acp", name="could not test")
        text = "\n".join([report.obstacle, *report.harness_errors]).strip()
        ElementTree.SubElement(case, "error", message=_xml(text))
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _add_case(suite: ElementTree.Element, result: RowResult, *, strict: bool) -> None:
    row = result.row
    name = f"{row.id} {row.sentence}"
    case = ElementTree.SubElement(suite, "testcase", classname=f"acp.v{result.version}.{row.tier}", name=name)
    case.set("time", f"{result.seconds:.3f}")
    if result.counts(strict=strict):
        element = ElementTree.SubElement(case, "failure", message=_xml(f"{result.verdict.value}: {result.reason}"))
        element.text = _xml("\n".join([row.source(), result.next_step, *(_shown(one) for one in result.frames)]))
    elif result.verdict is not Verdict.PASS:
        ElementTree.SubElement(case, "skipped", message=_xml(f"{result.verdict.value}: {result.reason}"))


def _shown(frame: Frame) -> str:
    return f"{frame.sender}: {frame.text()}"


def _xml(text: str) -> str:
    return _NOT_XML.sub("�", text)
