"""A report as one page that can be sent on: no script, nothing loaded, the frames of each row under it. Pure.

Rows unfold by `<details>`, so a keyboard and a screen reader need nothing more. A verdict is a word, its colour only
repeats it. All text was made harmless and is escaped here; the policy of the page forbids scripts and requests.
"""

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from dragoman.conformance.frames import Frame
from dragoman.conformance.report import frame_line, verdict_line
from dragoman.conformance.run import CheckReport, RowResult
from dragoman.conformance.verdicts import Verdict
from dragoman.host.text import harmless_line
from dragoman.version import VERSION

STYLE: Final = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}
table{border-collapse:collapse;margin:1rem 0}
th,td{border:1px solid #8888;padding:.2rem .6rem;text-align:left;vertical-align:top}
td.number{text-align:right;font-variant-numeric:tabular-nums}
summary{cursor:pointer;overflow-wrap:anywhere;padding:.15rem .4rem;border-left:.35rem solid #8888}
details.fail>summary{border-left-color:#c33}
details.pass>summary{border-left-color:#2a7}
details.blocked>summary{border-left-color:#c80}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#8881;padding:.5rem;margin:.2rem 0 .6rem}
.counts{font-weight:bold}
"""
_HEADINGS: Final = {
    Verdict.FAIL: "Failed",
    Verdict.BLOCKED: "Blocked",
    Verdict.NOT_TESTED: "Not tested",
    Verdict.PASS: "Passed",
}


def as_html(report: CheckReport, *, strict: bool = False) -> str:
    """Return the page."""
    return "".join(_parts(report, strict=strict))


def head(title: str) -> str:
    """Return the start of a page without scripts, up to its first heading."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{line(title)}</title><style>{STYLE}</style></head>\n<body><main><h1>{line(title)}</h1>\n"
    )


def line(text: str) -> str:
    """Return text for a page, on one line."""
    return escape(harmless_line(text))


def _parts(report: CheckReport, *, strict: bool) -> Iterator[str]:
    yield head(f"dragoman check: {report.subject}")
    yield f"<p><strong>{line(verdict_line(report, strict=strict))}</strong></p>\n"
    if report.obstacle:
        yield f"<p>{line(report.obstacle)}</p>\n"
    yield from _table(report)
    for error in report.harness_errors:
        yield f"<p>A fault of dragoman check, no verdict: {line(error)}</p>\n"
    for verdict, heading in _HEADINGS.items():
        results = [one for one in report.results if one.verdict is verdict]
        if results:
            yield f"<h2>{heading} ({len(results)})</h2>\n"
            yield from (_row(one, strict=strict) for one in results)
    yield f"<p>Written by dragoman {VERSION}.</p></main></body></html>\n"


def _table(report: CheckReport) -> Iterator[str]:
    if not report.hellos:
        return
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("version", *(one.value for one in Verdict)))
    yield f"<table><caption>Rows by version and verdict</caption><thead><tr>{heads}</tr></thead><tbody>\n"
    for version in report.hellos:
        counts = Counter(one.verdict for one in report.results if one.version == version)
        cells = "".join(f'<td class="number">{counts[verdict]}</td>' for verdict in Verdict)
        yield f'<tr><th scope="row">{version}</th>{cells}</tr>\n'
    yield "</tbody></table>\n"


def _row(result: RowResult, *, strict: bool) -> str:
    row = result.row
    mark = ' <span class="counts">does not conform</span>' if result.counts(strict=strict) else ""
    parts = [f"<p>{line(result.reason)}</p>" if result.reason else ""]
    parts.append(f"<p>Next: {line(result.next_step)}</p>" if result.next_step else "")
    parts.append(_frames("What shows it", result.frames))
    if result.exchange != result.frames:
        parts.append(_frames("All frames", result.exchange))
    parts.append(f"<p>Source: {line(row.source())}</p>")
    kind = result.verdict.value.replace(" ", "-")
    return (
        f'<details class="{kind}"><summary>{result.verdict.value}: <b>{row.id}</b> version {result.version}, '
        f"{row.tier}: {line(row.sentence)}{mark}</summary>{''.join(parts)}</details>\n"
    )


def _frames(title: str, frames: Sequence[Frame]) -> str:
    if not frames:
        return ""
    return f"<h3>{title}</h3><pre>{escape(chr(10).join(frame_line(one).strip() for one in frames))}</pre>"
