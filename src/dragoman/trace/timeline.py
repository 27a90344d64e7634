"""A trace as a person reads it: a row for each message, pieces of one text joined, filters, and text for a terminal.

`TimelineRow` is what the terminal and the page both show. Everything that came from a peer is made harmless here, once.
"""

import fnmatch
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from dragoman.host.text import harmless_line
from dragoman.trace.exchanges import Exchange, Exchanges
from dragoman.trace.records import TO_AGENT, Record, TraceFrame, TraceNote
from dragoman.trace.summary import chunk_text, summary

# Of one line, of the text that stands for several pieces, and of a frame that is shown whole.
_WORDS: Final = 200
_JOINED: Final = 2_000
SHOWN_FRAME: Final = 16 * 1024


class TraceFinding(NamedTuple):
    """What a judge has against the frame in one line of a file."""

    line: int
    id: str
    sentence: str


class TraceFilter(NamedTuple):
    """Which messages are shown; empty: all. `slow`: requests that took so many seconds, and unanswered ones."""

    session: str = ""
    methods: Sequence[str] = ()
    connection: str = ""
    direction: str = ""
    slow: float = 0.0
    errors: bool = False
    findings: bool = False

    def takes(self, exchange: Exchange, findings: Sequence[TraceFinding]) -> bool:
        """Return whether a message is shown."""
        frame = exchange.frame
        # A prefix of a session is enough: they are long.
        if self.session and not exchange.session.startswith(self.session):
            return False
        if self.connection and frame.connection != self.connection:
            return False
        if self.direction and frame.direction != self.direction:
            return False
        if self.methods and not any(_matches(exchange, pattern) for pattern in self.methods):
            return False
        if self.errors and "error" not in exchange.message and exchange.kind != "unreadable":
            return False
        if self.slow and not _is_slow(exchange, self.slow):
            return False
        return bool(findings) or not self.findings


EVERYTHING: Final = TraceFilter()


class TimelineRow(NamedTuple):
    """One row: of one message, or of the `pieces` of one text. `words` is harmless, and one line."""

    exchange: Exchange | None
    note: TraceNote | None
    words: str
    pieces: int
    findings: Sequence[TraceFinding]
    frames: Sequence[TraceFrame]

    @property
    def elapsed(self) -> float:
        """Return when it was, in seconds since its connection was opened."""
        if self.note is not None:
            value = self.note.fields.get("elapsed", 0.0)
            return float(value) if isinstance(value, int | float) else 0.0
        return self.frames[0].elapsed

    @property
    def connection(self) -> str:
        """Return the number of its connection."""
        return harmless_line(self.note.connection if self.note else self.frames[0].connection)


def timeline(
    records: Iterable[Record], findings: Iterable[TraceFinding] = (), chosen: TraceFilter = EVERYTHING
) -> Iterator[TimelineRow]:
    """Yield the rows of records. A request knows its response only if `records` were joined before it is shown."""
    found = _by_line(findings)
    joined = Exchanges()
    exchanges = [(record, joined.add(record) if isinstance(record, TraceFrame) else None) for record in records]
    yield from rows_of(exchanges, found, chosen)


def rows_of(
    exchanges: Iterable[tuple[Record, Exchange | None]],
    findings: Mapping[int, Sequence[TraceFinding]],
    chosen: TraceFilter,
) -> Iterator[TimelineRow]:
    """Yield the rows of messages that were joined already."""
    pieces: list[Exchange] = []
    for record, exchange in exchanges:
        if isinstance(record, TraceNote):
            if chosen == EVERYTHING:
                yield from _joined_row(pieces)
                yield TimelineRow(None, record, _note_words(record), 1, (), ())
            continue
        if exchange is None or not chosen.takes(exchange, findings.get(record.line, ())):
            continue
        against = findings.get(record.line, ())
        if chunk_text(exchange) is not None and not against:
            if pieces and not _continues(pieces[-1], exchange):
                yield from _joined_row(pieces)
            pieces.append(exchange)
            continue
        yield from _joined_row(pieces)
        yield TimelineRow(exchange, None, harmless_line(summary(exchange)[:_JOINED]), 1, against, (exchange.frame,))
    yield from _joined_row(pieces)


def _by_line(findings: Iterable[TraceFinding]) -> dict[int, list[TraceFinding]]:
    found: dict[int, list[TraceFinding]] = {}
    for one in findings:
        found.setdefault(one.line, []).append(one)
    return found


def _joined_row(pieces: list[Exchange]) -> Iterator[TimelineRow]:
    """Yield one row for the pieces of a text, and forget them."""
    if not pieces:
        return
    text = "".join(chunk_text(piece) or "" for piece in pieces)
    words = f"{pieces[0].update} {text[:_JOINED]}"
    yield TimelineRow(pieces[0], None, harmless_line(words), len(pieces), (), tuple(piece.frame for piece in pieces))
    pieces.clear()


def _continues(before: Exchange, after: Exchange) -> bool:
    return (before.update, before.session, before.frame.connection) == (
        after.update,
        after.session,
        after.frame.connection,
    )


def _matches(exchange: Exchange, pattern: str) -> bool:
    return fnmatch.fnmatchcase(exchange.method, pattern) or fnmatch.fnmatchcase(exchange.update, pattern)


def _is_slow(exchange: Exchange, seconds: float) -> bool:
    took = exchange.seconds
    return exchange.kind in ("request", "response") and (took is None or took >= seconds)


def _note_words(note: TraceNote) -> str:
    fields = note.fields
    if note.kind == "stderr":
        return harmless_line(str(fields.get("text", ""))[:_JOINED])
    shown = " ".join(f"{name} {value}" for name, value in fields.items() if name != "elapsed")
    return harmless_line(shown[:_JOINED])


# -- for a terminal ----------------------------------------------------------------------------------------------------


def row_text(row: TimelineRow, columns: int | None = None, *, live: bool = False) -> str:
    """Return a row as a line: when, whose connection, which way, what, and how long its response took.

    `live`: the response to a request may still come, so how long it took stands at the response.
    """
    start = f"{row.elapsed:9.3f} {row.connection:>2} "
    if row.note is not None:
        return _fitted(f"{start}   {row.note.kind:<10} {row.words}", columns)
    exchange = row.exchange
    assert exchange is not None
    arrow = "->" if exchange.frame.direction == TO_AGENT else "<-"
    return _fitted(f"{start}{arrow} {label(row, live=live)}{row.words and ' '}{row.words}", columns)


def label(row: TimelineRow, *, live: bool = False) -> str:
    """Return the method of a row with what its place is: asked, answered after some time, or never answered."""
    exchange = row.exchange
    assert exchange is not None
    id = harmless_line(str(exchange.message.get("id", ""))[:40])
    match exchange.kind:
        case "request":
            took = exchange.seconds
            wait = "no answer" if took is None else _duration(took)
            return f"{harmless_line(exchange.method[:80])} #{id}{'' if live else f' ({wait})'}"
        case "response":
            name = harmless_line(exchange.method[:80]) or "an unknown request"
            took = exchange.seconds
            return f"= {name} #{id}{f' ({_duration(took)})' if live and took is not None else ''}"
        case "notification":
            name = "update" if exchange.update else harmless_line(exchange.method[:80])
            return f"{name} x{row.pieces}" if row.pieces > 1 else name
        case "unreadable":
            return "no message:"


def finding_text(finding: TraceFinding) -> str:
    """Return the line below a row for what a judge has against it."""
    return f"{'':12}!! {finding.id}: {harmless_line(finding.sentence)}"


def frame_text(frame: TraceFrame) -> str:
    """Return a whole frame on one line, up to a bound."""
    shown = harmless_line(frame.data[:SHOWN_FRAME].decode(errors="replace"))
    return shown if len(frame.data) <= SHOWN_FRAME else f"{shown} … ({len(frame.data)} bytes)"


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _fitted(text: str, columns: int | None) -> str:
    limit = _WORDS if columns is None else max(40, columns)
    return text if len(text) <= limit else text[: limit - 1] + "…"
