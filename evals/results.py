"""What attempts came to: a line of JSON each, so that a run that was stopped goes on where it was."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from evals.transcript import Entry

Verdict = Literal["pass", "fail", "error", "not run"]
# What says nothing about the agent, and is tried again by the next run.
UNGRADED: Final = ("error", "not run")
LINE_BYTES = 8 << 20


class Attempt(msgspec.Struct, omit_defaults=True):
    """One task tried once. `error` and `not run` are verdicts about the run and not about the agent."""

    task: str
    digest: str
    kind: str
    language: str
    number: int
    agent: str
    model: str
    verdict: Verdict
    reason: str = ""
    stop_reason: str = ""
    seconds: float = 0.0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None
    requests: int = 0
    tool_calls: int = 0
    asked: int = 0
    denied: int = 0
    questions: int = 0
    isolated: bool = True
    began: str = ""
    changed: list[str] = []
    answer: str = ""
    diff: str = ""
    transcript: list[Entry] = []

    @property
    def key(self) -> tuple[str, str, int]:
        """What makes it the same attempt in a run that goes on."""
        return (self.task, self.digest, self.number)


class ResultFile:
    """`results.jsonl` of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> list[Attempt]:
        """Return the attempts, the last of each; a line that was cut off by a kill is left out."""
        found: dict[tuple[str, str, int], Attempt] = {}
        if self.path.exists():
            for line in self.path.read_bytes().splitlines():
                try:
                    attempt = msgspec.json.decode(line, type=Attempt)
                except msgspec.DecodeError:
                    continue
                found[attempt.key] = attempt
        return list(found.values())

    def append(self, attempt: Attempt) -> None:
        """Add an attempt; the line is on disk when this returns. A line that a kill has cut off is ended first."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            if file.tell():
                file.seek(-1, 2)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write(msgspec.json.encode(attempt) + b"\n")


class Row(NamedTuple):
    """One line of the table: a kind of task, or all of them."""

    name: str
    attempts: int
    passed: int
    errors: int
    not_run: int
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    seconds: float
    requests: int
    tool_calls: int
    asked: int
    questions: int


def rows(attempts: Sequence[Attempt]) -> list[Row]:
    """Return a row for each kind, and one for all."""
    kinds = sorted({attempt.kind for attempt in attempts})
    return [_row(kind, [one for one in attempts if one.kind == kind]) for kind in kinds] + [_row("all", attempts)]


def _row(name: str, attempts: Sequence[Attempt]) -> Row:
    return Row(
        name,
        len(attempts),
        sum(one.verdict == "pass" for one in attempts),
        sum(one.verdict == "error" for one in attempts),
        sum(one.verdict == "not run" for one in attempts),
        _total(one.input_tokens for one in attempts),
        _total(one.output_tokens for one in attempts),
        _sum(one.cost for one in attempts),
        sum(one.seconds for one in attempts),
        sum(one.requests for one in attempts),
        sum(one.tool_calls for one in attempts),
        sum(one.asked for one in attempts),
        sum(one.questions for one in attempts),
    )


def _total(values: Iterable[int | None]) -> int | None:
    """Return the sum of what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


HEADINGS = (
    *("kind", "passed", "rate", "errors", "not run", "tokens in", "out", "cost", "time", "requests", "calls", "asked"),
    "qu.",
)


def cells(row: Row) -> list[str]:
    """Return a row as words; what no agent reported is a dash."""
    graded = row.attempts - row.errors - row.not_run
    return [
        row.name,
        f"{row.passed}/{graded}",
        f"{100 * row.passed / graded:.0f} %" if graded else "-",
        str(row.errors),
        str(row.not_run),
        "-" if row.input_tokens is None else f"{row.input_tokens:,}",
        "-" if row.output_tokens is None else f"{row.output_tokens:,}",
        "-" if row.cost is None else f"${row.cost:.3f}",
        f"{row.seconds:.0f} s",
        str(row.requests),
        str(row.tool_calls),
        str(row.asked),
        str(row.questions),
    ]


def table(attempts: Sequence[Attempt]) -> str:
    """Return the table as text."""
    lines = [list(HEADINGS), *(cells(row) for row in rows(attempts))]
    widths = [max(len(line[at]) for line in lines) for at in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def slug(text: str) -> str:
    """Return a name for a folder."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-")[:80] or "run"
