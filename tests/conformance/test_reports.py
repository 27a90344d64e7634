"""Each form of report says the same: the verdict, what failed with its frames, nothing that a subject could act by."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import jsonschema_rs
import pytest

from dragoman.conformance.exports import as_json, as_junit
from dragoman.conformance.frames import Frame
from dragoman.conformance.reports import json_schema
from dragoman.conformance.reports.badge import badge
from dragoman.conformance.reports.html_page import as_html
from dragoman.conformance.reports.markdown import as_markdown
from dragoman.conformance.reports.sarif import as_sarif
from dragoman.conformance.rows import load_rows
from dragoman.conformance.run import CheckReport, RowResult
from dragoman.conformance.verdicts import Verdict
from tests.support.command import call
from tests.support.traces import write_trace

from .broken_traces import broken

MUST, OTHER, SHOULD = (
    next(row for row in load_rows("agent") if row.tier == tier and 1 in row.versions and row.id != other)
    for tier, other in (("must", ""), ("must", "ACP-INIT-001"), ("should", ""))
)
HOSTILE = "</pre><script>alert(1)</script> ```` @someone ![x](http://x) | \x1b[31m"
FRAME = Frame(0.0, "agent", HOSTILE.encode(), len(HOSTILE), fault="not JSON")
HELLO = {"protocolVersion": 1, "agentInfo": {"name": HOSTILE, "version": "1"}}


def report(*results: RowResult, obstacle: str = "") -> CheckReport:
    return CheckReport(f"agent {HOSTILE}", {} if obstacle else {1: HELLO}, results, obstacle=obstacle)


PASSED = RowResult(MUST, 1, Verdict.PASS, exchange=(FRAME,))
FAILED = RowResult(OTHER, 1, Verdict.FAIL, f"broken {HOSTILE}", frames=(FRAME,), exchange=(FRAME, FRAME))
WEAK = RowResult(SHOULD, 1, Verdict.FAIL, "weak")
UNJUDGED = RowResult(MUST, 1, Verdict.NOT_TESTED, "nothing happened", "do something")
BROKEN = report(PASSED, FAILED, WEAK, UNJUDGED)
WALLED = report(obstacle="it does not start")


@pytest.mark.requirement("CK4")
@pytest.mark.parametrize("given", [BROKEN, report(PASSED), WALLED], ids=["broken", "conforming", "walled"])
def test_the_json_report_is_as_its_published_schema_says(given: CheckReport) -> None:
    schema = json.loads(json_schema())
    jsonschema_rs.meta.validate(schema)
    jsonschema_rs.validate(schema, json.loads(json.dumps(as_json(given))))


def test_sarif_has_a_rule_for_each_row_and_a_result_for_what_failed_or_was_not_judged() -> None:
    (run,) = as_sarif(BROKEN)["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    found = [(one["ruleId"], one["kind"], one["level"]) for one in run["results"]]
    assert found == [(OTHER.id, "fail", "error"), (SHOULD.id, "fail", "warning"), (MUST.id, "open", "none")]
    assert [rules[one["ruleIndex"]] for one in run["results"]] == [one["ruleId"] for one in run["results"]]
    assert as_sarif(BROKEN, strict=True)["runs"][0]["results"][1]["level"] == "error"


def test_sarif_says_that_nothing_could_be_tested() -> None:
    (invocation,) = as_sarif(WALLED)["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"][0]["message"]["text"] == "it does not start"


def test_a_comment_has_the_verdict_and_frames_in_a_fence_that_they_cannot_end() -> None:
    text = as_markdown(BROKEN)
    assert "**DOES NOT CONFORM\\: 1 failed, 1 that must hold could not be judged**" in text
    assert "**NOT SHOWN TO CONFORM\\: none failed, 1 that must hold could not be judged**" in as_markdown(
        report(UNJUDGED)
    )
    fence = re.search(r"^(`{3,})text\n(.*)\n\1$", text, re.MULTILINE)
    assert fence is not None
    assert len(fence[1]) == 5
    outside = text.replace(fence[0], "")
    assert not re.search(r"(?<!\\)@someone|(?<!\\)!\[x|(?<!\\)<script", outside)
    assert "\x1b" not in text


def test_a_comment_is_no_longer_than_a_comment_may_be() -> None:
    large = FRAME._replace(head=b"x" * 300)
    text = as_markdown(report(*[FAILED._replace(frames=(large,) * 40)] * 300))
    assert len(text) < 65_536
    assert text.endswith("The rest is left out; the JSON and HTML reports have all of it.\n")


def test_the_page_is_well_formed_loads_nothing_and_has_the_frames_of_every_row() -> None:
    text = as_html(BROKEN)
    body = text[text.index("<main>") : text.index("</main>") + len("</main>")]
    page = ElementTree.fromstring(body)
    assert len(page.findall("details")) == 4
    assert len(page.findall(".//pre")) == 3
    assert [one.text for one in page.findall("h2")] == ["Failed (2)", "Not tested (1)", "Passed (1)"]
    assert not re.search(r"<script|<img|<link|src=|href=", text)
    assert "default-src &#x27;none&#x27;" in text


@pytest.mark.parametrize(
    ("given", "name"),
    [(report(PASSED), "ACP: v1 1/1"), (BROKEN, "ACP: v1 1/3"), (WALLED, "ACP: not tested")],
    ids=["conforming", "broken", "walled"],
)
def test_a_badge_says_in_words_what_its_colour_says(given: CheckReport, name: str) -> None:
    picture = ElementTree.fromstring(badge(given))
    assert (picture.get("role"), picture.get("aria-label")) == ("img", name)


def test_junit_counts_what_does_not_conform() -> None:
    (suite,) = ElementTree.fromstring(as_junit(BROKEN)).findall("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("4", "2")


def test_the_command_writes_every_report(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t", *broken("after_the_end", 1))
    checks: dict[str, Callable[[str], object]] = {
        "json": json.loads,
        "junit": ElementTree.fromstring,
        "sarif": json.loads,
        "markdown": lambda text: text.index("ACP-PROMPT-502"),
        "html": lambda text: text.index("ACP-PROMPT-502"),
        "badge": ElementTree.fromstring,
    }
    options = [word for name in checks for word in (f"--{name}", str(tmp_path / name))]
    assert call("check", "trace", str(trace), *options).code == 1
    for name, is_readable in checks.items():
        is_readable((tmp_path / name).read_text(encoding="utf-8"))


def test_the_command_prints_the_schema() -> None:
    assert json.loads(call("check", "--json-schema").out) == json.loads(json_schema())


def test_junit_has_a_failure_for_what_counts_and_skips_the_rest() -> None:
    suite = ElementTree.fromstring(as_junit(BROKEN))[0]
    cases = {str(case.get("name")).split()[0]: [one.tag for one in case] for case in suite}
    assert cases == {MUST.id: ["failure"], OTHER.id: ["failure"], SHOULD.id: ["skipped"]}
    assert (suite.get("tests"), suite.get("failures")) == ("4", "2")
