"""The report options of `dragoman check`, for every role: which there are, and how their files are written."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TextIO

from dragoman.cli.errors import CommandError

if TYPE_CHECKING:
    from dragoman.conformance.run import CheckReport

_OPTIONS: Final[Mapping[str, str]] = {
    "json": "write the report as JSON to F; - is stdout",
    "junit": "write the report as JUnit XML to F; - is stdout",
    "sarif": "write the report as SARIF 2.1.0 to F; - is stdout",
    "markdown": "write the report as a comment for a pull request to F; - is stdout",
    "html": "write the report as one page with the frames of each row to F; - is stdout",
    "badge": "write a badge for a README to F, an SVG; - is stdout",
}


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group("reports")
    for name, text in _OPTIONS.items():
        group.add_argument(f"--{name}", metavar="F", help=text)
    group.add_argument("--json-schema", action="store_true", help="print the schema of the JSON report, check nothing")


def print_json_schema() -> int:
    """Print the schema of the JSON report; return the exit code."""
    from dragoman.conformance.reports import json_schema

    sys.stdout.write(json_schema())
    return 0


def write_reports(arguments: argparse.Namespace, report: "CheckReport") -> None:
    """Print the report, and write the files that were asked for. Text goes to stderr if stdout has another one."""
    from dragoman.conformance.report import report_lines

    strict: bool = arguments.strict
    wanted = {name: getattr(arguments, name) for name in _OPTIONS if getattr(arguments, name) is not None}
    stream: TextIO = sys.stderr if "-" in wanted.values() else sys.stdout
    for line in report_lines(report, strict=strict):
        print(line, file=stream)
    for name, path in wanted.items():
        _write(path, _writers()[name](report, strict))


def _writers() -> Mapping[str, "Callable[[CheckReport, bool], str]"]:
    """Return what makes the text of each report."""
    from dragoman.conformance.exports import as_json, as_junit
    from dragoman.conformance.reports.badge import badge
    from dragoman.conformance.reports.html_page import as_html
    from dragoman.conformance.reports.markdown import as_markdown
    from dragoman.conformance.reports.sarif import as_sarif

    return {
        "json": lambda report, strict: json.dumps(as_json(report, strict=strict), indent=1) + "\n",
        "junit": lambda report, strict: as_junit(report, strict=strict) + "\n",
        "sarif": lambda report, strict: json.dumps(as_sarif(report, strict=strict), indent=1) + "\n",
        "markdown": lambda report, strict: as_markdown(report, strict=strict),
        "html": lambda report, strict: as_html(report, strict=strict),
        "badge": lambda report, strict: badge(report, strict=strict),
    }


def _write(path: str, text: str) -> None:
    if path == "-":
        sys.stdout.write(text)
        return
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise CommandError(f"{path}: cannot write the report: {error.strerror}") from None
