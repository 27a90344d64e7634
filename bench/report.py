"""Tables for people and one JSON object for machines."""

import os
import platform
import subprocess
from collections.abc import Mapping, Sequence

from bench.benchmarks import Figure
from bench.limits import Sizes
from bench.promises import Promise
from bench.results import Result, Verdict
from bench.roster import PEERS

REFERENCE = "py"
"""Every peer is also compared to the official Python SDK, as performance.md does."""


def surroundings() -> dict[str, object]:
    """The machine as far as it matters to a figure."""
    return {
        "python": platform.python_version(),
        "node": _node_version(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
    }


def heading() -> str:
    """The machine in one line, and a word of caution when others use it too."""
    load = os.getloadavg()[0]
    line = "  ".join(f"{name} {value}" for name, value in surroundings().items())
    busy = load > (os.cpu_count() or 1) / 2
    return line + ("\nother jobs are running: trust ratios, and CPU before wall time" if busy else "")


def table(result: Result, sizes: Sizes) -> str:
    """One benchmark: a row a peer, its medians, its spread, and the ratios of the first figure."""
    benchmark, lead = result.benchmark, result.benchmark.figures[0]
    head = ["peer", *(figure.title for figure in benchmark.figures), "min .. max", "x official-py", "ours is"]
    rows = [_row(result, peer, lead) for peer in result.runs]
    lines = [f"{benchmark.name}: {benchmark.title} ({benchmark.repetitions(sizes)} repetitions, medians)"]
    lines += _aligned([head, *rows])
    lines += [f"  {PEERS[peer].title}: {reason}" for peer, reason in result.failures.items()]
    return "\n".join(lines) + "\n"


def verdict_table(verdicts: Sequence[Verdict]) -> str:
    rows = [["promise", "against", "figure", "measured", "by CPU", "verdict"]]
    for each in verdicts:
        promise = each.promise
        figures = [promise.words, measured(promise, each.ratio), measured(promise, each.cpu_ratio)]
        rows.append([promise.benchmark, PEERS[promise.peer].title, *figures, each.word])
    return "\n".join(["promised figures", *_aligned(rows)]) + "\n"


def measured(promise: Promise, ratio: float | None) -> str:
    if ratio is not None and promise.times < 1 and ratio < 1:
        return f"{1 / ratio:.2f}x slower"
    return _times(ratio)


def as_json(results: Mapping[str, Result], verdicts: Sequence[Verdict], sizes: Sizes) -> dict[str, object]:
    """Every repetition, so that another reader can judge the noise."""
    return {
        "surroundings": surroundings(),
        "sizes": vars(sizes),
        "benchmarks": {name: _result_json(result) for name, result in results.items()},
        "verdicts": [
            vars(each.promise) | {"ratio": each.ratio, "cpu_ratio": each.cpu_ratio, "verdict": each.word.lower()}
            for each in verdicts
        ],
    }


def _result_json(result: Result) -> dict[str, object]:
    lead = result.benchmark.figures[0]
    return {
        "lead": lead.key,
        "runs": result.runs,
        "ours_is": {peer: result.ratio("ours", peer, lead) for peer in result.runs if peer != "ours"},
        "failures": result.failures,
    }


def _row(result: Result, peer: str, lead: Figure) -> list[str]:
    low, high = result.spread(peer, lead.key)
    return [
        PEERS[peer].title,
        *(_number(result.median(peer, figure.key), figure) for figure in result.benchmark.figures),
        f"{_number(low, lead)} .. {_number(high, lead)}",
        _times(result.ratio(peer, REFERENCE, lead)),
        "" if peer == "ours" else _times(result.ratio("ours", peer, lead)),
    ]


def _number(value: float, figure: Figure) -> str:
    return f"{value:,.{figure.decimals}f}"


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}x"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """First column to the left, the rest to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *rest in rows:
        cells = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  " + "  ".join([first.ljust(widths[0]), *cells]))
    return lines


def _node_version() -> str | None:
    try:
        return subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
