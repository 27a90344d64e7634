"""A trace as one page that can be sent to a colleague: no script, nothing loaded, nothing for its content to act on.

Frames unfold by `<details>`, which needs no script. All text was made harmless and is escaped here, and the page's own
policy forbids scripts, requests and foreign styles should either ever fail. The page is bounded: of a long trace it has
the first and the last rows, and says how many are left out.
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final

from dragoman.host.text import harmless_line
from dragoman.trace.records import TO_AGENT, TraceHeader
from dragoman.trace.timeline import TimelineRow, finding_text, frame_text, label

# Rows at the start and at the end of a long trace, and frames that one row unfolds.
_SHOWN_ROWS: Final = 5_000
_FRAMES_OF_ROW: Final = 50
_STYLE: Final = """
:root{color-scheme:light dark}
body{font:14px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:76rem;padding:0 1rem}
summary{cursor:pointer;overflow-wrap:anywhere;padding:.1rem .4rem;border-left:.3rem solid #8888}
details.agent>summary{border-left-color:#2a7}
details.client>summary{border-left-color:#37c}
details.error>summary,.finding{color:#c33}
.at,.note{color:#888;font-variant-numeric:tabular-nums}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#8881;padding:.5rem;margin:.2rem 0 .6rem 1rem}
.finding{margin:0 0 .2rem 1rem}
"""


def page(title: str, header: TraceHeader, rows: Iterable[TimelineRow]) -> str:
    """Return the whole page."""
    return "".join(_parts(title, header, list(rows)))


def _parts(title: str, header: TraceHeader, rows: Sequence[TimelineRow]) -> Iterator[str]:
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    name = _text(title)
    yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
    yield f"<title>{name}</title><style>{_STYLE}</style></head>\n<body><h1>{name}</h1>\n"
    state = "secrets of a known form were taken out" if header.is_redacted else "nothing was taken out"
    findings = sum(len(row.findings) for row in rows)
    yield f'<p class="note">{len(rows)} rows, {findings} findings. Written by {_text(header.program)}; {state}. '
    yield "It holds prompts, file contents and output of tools.</p>\n"
    left_out = len(rows) - 2 * _SHOWN_ROWS
    if left_out <= 0:
        yield from map(_row, rows)
    else:
        yield from map(_row, rows[:_SHOWN_ROWS])
        yield f'<p class="finding">{left_out} rows are left out here.</p>\n'
        yield from map(_row, rows[-_SHOWN_ROWS:])
    yield "</body></html>\n"


def _row(row: TimelineRow) -> str:
    at = f'<span class="at">{row.elapsed:.3f} {_text(row.connection)}</span>'
    if row.note is not None:
        return f'<p class="note">{at} {_text(row.note.kind)} {escape(row.words)}</p>\n'
    exchange = row.exchange
    assert exchange is not None
    sender = "client" if exchange.frame.direction == TO_AGENT else "agent"
    kind = f"{sender} error" if "error" in exchange.message or exchange.kind == "unreadable" else sender
    arrow = "&rarr;" if sender == "client" else "&larr;"
    frames = "\n".join(frame_text(frame) for frame in row.frames[:_FRAMES_OF_ROW])
    if len(row.frames) > _FRAMES_OF_ROW:
        frames += f"\n… and {len(row.frames) - _FRAMES_OF_ROW} more"
    against = "".join(f'<p class="finding">{escape(finding_text(one).strip())}</p>' for one in row.findings)
    return (
        f'<details class="{kind}"><summary>{at} {arrow} <b>{escape(label(row))}</b> {escape(row.words)}</summary>'
        f"<pre>{escape(frames)}</pre></details>{against}\n"
    )


def _text(text: str) -> str:
    return escape(harmless_line(text))
