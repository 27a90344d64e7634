"""The report: one HTML file without anything from elsewhere. What an agent wrote is text in it and never markup."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from evals.results import HEADINGS, Attempt, cells, rows
from evals.transcript import Entry

_STYLE: Final = """
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; }
tr:last-child td { font-weight: 600; }
details { border-bottom: 1px solid #8884; padding: .3rem 0; }
summary { cursor: pointer; }
pre { overflow-x: auto; white-space: pre-wrap; background: #8881; padding: .5rem; margin: .3rem 0; }
.pass { color: #1a7f37; } .fail { color: #cf222e; } .open { color: #9a6700; }
.add { color: #1a7f37; } .del { color: #cf222e; } .quiet { opacity: .7; }
"""
# The class of a verdict: neither an error nor what was not run says anything about the agent.
_CLASSES: Final = {"pass": "pass", "fail": "fail", "error": "open", "not run": "open"}
# A page may load nothing and run nothing, whatever an agent has written.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def report(attempts: Sequence[Attempt]) -> str:
    """Return the page."""
    who = sorted({f"{one.agent} {one.model}".strip() for one in attempts})
    title = f"Evaluation: {', '.join(who)}"
    ordered = sorted(attempts, key=lambda one: (one.verdict == "pass", one.kind, one.task, one.number))
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            _isolation(attempts),
            _table(attempts),
            "<h2>Attempts</h2>",
            *map(_attempt, ordered),
            "</body></html>\n",
        ]
    )


def _isolation(attempts: Sequence[Attempt]) -> str:
    if all(one.isolated for one in attempts):
        return ""
    return "<p><strong>Without bubblewrap: the agent could find the graders.</strong></p>"


def _table(attempts: Sequence[Attempt]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in HEADINGS)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells(row))}</tr>\n" for row in rows(attempts))
    return f"<table><tr>{head}</tr>\n{body}</table>"


def _attempt(one: Attempt) -> str:
    number = f" #{one.number}" if one.number > 1 else ""
    facts = f"{one.kind}, {one.language}, {one.seconds:.1f} s, {one.tool_calls} calls, {one.asked} asked"
    reason = f"<p>{escape(one.reason)}</p>" if one.reason else ""
    return (
        f'<details><summary><span class="{_CLASSES[one.verdict]}">{one.verdict}</span> '
        f'<strong>{escape(one.task)}</strong>{number} <span class="quiet">{escape(facts)}</span></summary>\n{reason}'
        f"<h3>Answer</h3><pre>{escape(one.answer)}</pre>\n"
        f"<h3>Changes</h3><pre>{_diff(one.diff)}</pre>\n"
        f"<h3>Transcript</h3>{''.join(_entries(one.transcript))}</details>"
    )


def _diff(text: str) -> str:
    return "\n".join(_diff_line(line) for line in text.splitlines()) or "none"


def _diff_line(line: str) -> str:
    kind = {"+": "add", "-": "del"}.get(line[:1])
    return f'<span class="{kind}">{escape(line)}</span>' if kind else escape(line)


def _entries(entries: Iterable[Entry]) -> Iterable[str]:
    for entry in entries:
        status = f" ({entry.status})" if entry.status else ""
        detail = f"\n{entry.detail}" if entry.detail else ""
        yield f'<p class="quiet">{escape(entry.what + status)}</p><pre>{escape(entry.text + detail)}</pre>\n'
