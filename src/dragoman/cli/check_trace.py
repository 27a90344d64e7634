"""`dragoman check trace FILE`: a recording is judged, and neither side of it is asked anything."""

import argparse
from typing import TYPE_CHECKING

from dragoman.cli.errors import CommandError

if TYPE_CHECKING:
    from dragoman.conformance.rows import Requirement
    from dragoman.conformance.run import CheckReport


def judge_file(arguments: argparse.Namespace) -> "CheckReport":
    """Return the report on the recording that was named; raise `CommandError` if there is none, or no such row."""
    from dragoman.conformance.run import CheckReport
    from dragoman.conformance.trace_report import trace_report
    from dragoman.trace.reader import read_trace
    from dragoman.trace.records import TraceFault

    if arguments.url is None or arguments.command_given is not None:
        raise CommandError("which recording? Write: dragoman check trace FILE")
    only = [row.id for row in chosen_trace_rows(arguments.only)] if arguments.only else []
    try:
        return trace_report(arguments.url, read_trace(arguments.url).frames(), only)
    except TraceFault as fault:
        return CheckReport(arguments.url, {}, (), obstacle=str(fault))


def chosen_trace_rows(only: list[str]) -> "list[Requirement]":
    """Return the rows of `--only`, or all. Raise `CommandError` for an id that no row has."""
    from dragoman.conformance.passive import trace_rows

    rows = trace_rows()
    wanted = {id.strip() for part in only for id in part.split(",") if id.strip()}
    for id in sorted(wanted - {row.id for row in rows}):
        raise CommandError(f"no recording is judged by a row {id}; dragoman check trace --list shows all of them")
    return [row for row in rows if not wanted or row.id in wanted]
