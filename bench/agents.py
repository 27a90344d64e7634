"""`python -m bench.agents`: our coding agent beside others, each as a process against one model server of ours.

What the harness around a model costs: how long until the model is asked, until its words reach the client, from a tool
call to the next request; how much is sent; how much of it a provider's cache can use again; memory and CPU of the
process tree. Agents take turns within a repetition, each with a new home, and the medians are printed. Exit status: 0,
or 1 if one that was asked for by name could not run.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from bench.agent_roster import CONTENDERS, OURS, Contender
from bench.agent_session import DELTAS, Figures, measure
from dragoman.errors import DragomanError
from tools.peers import Missing

REPETITIONS: Final = 5
SECONDS: Final = 240.0
ROWS: Final = {
    "initialize": ("spawn to initialize answered", "ms"),
    "session": ("session/new answered", "ms"),
    "rest_cpu": ("CPU from the start until it rests after session/new", "s"),
    "hurried": ("without pauses: spawn to the model's first request", "ms"),
    "first_request": ("first prompt to the model's first request", "ms"),
    "later_request": ("later prompt to the model's request", "ms"),
    "first_word": ("model's byte to the client, first", "ms"),
    "later_word": ("model's byte to the client, later", "ms"),
    "deltas_cpu": (f"CPU for 1,000 deltas, of {DELTAS:,} at once", "s"),
    "chunks": ("chunks out of 1,000 deltas", ""),
    "read": ("read a file to the next request", "ms"),
    "read_again": ("read a file to the next request, second time", "ms"),
    "run": ("run `true` to the next request", "ms"),
    "run_again": ("run `true` to the next request, second time", "ms"),
    "requests_first": ("requests for the first prompt", ""),
    "requests_later": ("requests for a later prompt", ""),
    "first_size": ("size of the first request", "KiB"),
    "prefix": ("prefix that stays equal", "%"),
    "memory": ("memory of the process tree (PSS)", "MiB"),
    "resident": ("memory of the process tree (RSS)", "MB"),
    "cpu": ("CPU of seven prompts and the start", "s"),
    "cancel": ("session/cancel to the end of the turn", "ms"),
    "load": ("session/load in a new process after kill -9", "ms"),
    "told": ("the model is told then, of reply, prompt and half a reply", ""),
}
PROMISES: Final[dict[str, float | None]] = {
    "hurried": None,
    "first_word": 5,
    "later_word": 1,
    "deltas_cpu": 0.06,
    "rest_cpu": 0.5,
    "session": 40,
    "read_again": 10,
    "run_again": 20,
    "resident": 90,
    "requests_first": 1,
    "requests_later": 1,
    "initialize": None,
    "cancel": None,
    "load": None,
}
"""What ours must not exceed; None: the best of the others in the same run."""
LEAST: Final = {"prefix": 100.0, "chunks": 1000.0, "told": 3.0}
"""What ours must reach."""


def main(words: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="bench.agents", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--agents", default="", metavar="NAME,...", help=f"of {', '.join(CONTENDERS)}; all")
    parser.add_argument("--repeat", type=int, default=REPETITIONS, metavar="N", help=f"repetitions; {REPETITIONS}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every repetition here")
    options = parser.parse_args(words)
    chosen = options.agents.split(",") if options.agents else list(CONTENDERS)
    if unknown := set(chosen) - CONTENDERS.keys():
        parser.error(f"{', '.join(sorted(unknown))} is none of {', '.join(CONTENDERS)}")
    measured, missing = measure_all([CONTENDERS[name] for name in chosen], options.repeat)
    print(table(measured))
    print("\n".join(verdicts(measured)))
    for name, reason in missing.items():
        print(f"{name} could not run: {reason}")
    if options.json is not None:
        options.json.write_text(json.dumps({"figures": measured, "missing": missing}, indent=1) + "\n")
    return 1 if missing and options.agents else 0


def measure_all(chosen: Sequence[Contender], repeat: int) -> tuple[dict[str, list[Figures]], dict[str, str]]:
    """Return the figures of each agent, and why others have none. One that fails once is left out."""
    measured: dict[str, list[Figures]] = {}
    missing: dict[str, str] = {}
    for number in range(repeat + 1):  # the first is off the record: it writes caches of bytecode
        for agent in chosen:
            if agent.name in missing:
                continue
            print(f"\r\033[K{number}/{repeat} {agent.name}", end="", file=sys.stderr, flush=True)
            try:
                if number == 0:
                    agent.prepare()
                figures = asyncio.run(asyncio.wait_for(measure(agent), SECONDS))
            except (Missing, DragomanError, OSError, TimeoutError, LookupError, ValueError) as error:
                missing[agent.name] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
                measured.pop(agent.name, None)
                continue
            if number:
                measured.setdefault(agent.name, []).append(figures)
    print("\r\033[K", end="", file=sys.stderr, flush=True)
    return measured, missing


def table(measured: dict[str, list[Figures]]) -> str:
    """Return the medians, an agent in each column."""
    lines = [["", *measured]]
    for row, (title, unit) in ROWS.items():
        figures = (_median(runs, row) for runs in measured.values())
        cells = ["-" if figure is None else f"{figure:.{_digits(row)}f}" for figure in figures]
        lines.append([f"{title}, {unit}" if unit else title, *cells])
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) if at == 0 else cell.rjust(width) for at, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(line, widths, strict=True)) for line in lines)
    )


def verdicts(measured: dict[str, list[Figures]]) -> Iterator[str]:
    """Yield what was promised of ours, and by which of our agents each promise is met or missed."""
    medians = {name: {row: _median(runs, row) for row in ROWS} for name, runs in measured.items()}
    for row in [*PROMISES, *LEAST]:
        bound = LEAST.get(row, PROMISES.get(row))
        if bound is None:
            others = [found[row] for name, found in medians.items() if name not in OURS]
            bound = min((figure for figure in others if figure is not None), default=None)
        if bound is None:
            continue
        sign = -1 if row in LEAST else 1
        for name, found in medians.items():
            if name in OURS:
                figure = found[row]
                met = figure is not None and sign * round(figure, _digits(row)) <= sign * round(bound, _digits(row))
                shown = "-" if figure is None else f"{figure:.{_digits(row)}f}"
                limit = f"{'at least' if row in LEAST else 'at most'} {bound:.{_digits(row)}f}"
                yield f"{'met   ' if met else 'MISSED'}  {name}: {ROWS[row][0]}: {shown}, {limit}"


def _median(runs: Sequence[Figures], row: str) -> float | None:
    """Return the median of the repetitions that have the figure; None: none has."""
    found = [one[row] for one in runs if row in one]
    return median(found) if found else None


def _digits(row: str) -> int:
    whole = ("memory", "resident", "requests_first", "requests_later", "chunks", "told")
    return 0 if row in whole else {"cpu": 2, "rest_cpu": 2, "deltas_cpu": 3}.get(row, 1)


if __name__ == "__main__":
    sys.exit(main())
