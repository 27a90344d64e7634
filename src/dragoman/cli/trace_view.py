"""`dragoman trace view`: a trace as a timeline, as JSON, or as a page to be sent to others."""

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from dragoman.cli.errors import NOT_DONE, CommandError, print_error, print_notice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.trace.reader import RecordedTrace
    from dragoman.trace.timeline import TimelineRow, TraceFilter, TraceFinding


def run(arguments: argparse.Namespace) -> int:
    """Show it, and return the exit code."""
    from dragoman.trace.reader import read_trace
    from dragoman.trace.records import TraceFault
    from dragoman.trace.timeline import timeline

    try:
        trace = read_trace(arguments.file, forgives=True)
    except TraceFault as fault:
        return print_error(str(fault), NOT_DONE)
    for damage in trace.damage:
        print_notice(f"{arguments.file}: {damage}")
    findings = () if arguments.no_findings else trace_findings(trace)
    rows = list(timeline(trace.records, findings, chosen_filter(arguments)))
    if arguments.html is not None:
        _write_page(arguments, trace, rows)
    elif arguments.json:
        for row in rows:
            sys.stdout.write(json_line(row))
    else:
        _print_rows(rows, wire=arguments.wire)
        if trace.header.continued and not _is_filtered(arguments):
            print_notice(f"the part before this one is in {arguments.file}.1")
    return 0


def chosen_filter(arguments: argparse.Namespace) -> "TraceFilter":
    """Return what the options leave to be shown."""
    from dragoman.trace.records import TO_AGENT, TO_CLIENT
    from dragoman.trace.timeline import TraceFilter

    directions = {"client": TO_AGENT, "agent": TO_CLIENT, "": ""}
    return TraceFilter(
        arguments.session,
        tuple(arguments.method),
        arguments.connection,
        directions[arguments.sender],
        arguments.slow,
        arguments.errors,
        arguments.findings,
    )


def trace_findings(trace: "RecordedTrace") -> "list[TraceFinding]":
    """Return what `check` has against the messages of a trace that was read."""
    from dragoman.conformance.passive import judge_trace
    from dragoman.trace.timeline import TraceFinding

    return [TraceFinding(one.line, one.row.id, one.reason) for one in judge_trace(trace.frames()).findings]


def _is_filtered(arguments: argparse.Namespace) -> bool:
    from dragoman.trace.timeline import EVERYTHING

    return chosen_filter(arguments) != EVERYTHING


def _print_rows(rows: "Sequence[TimelineRow]", *, wire: bool) -> None:
    import shutil

    from dragoman.trace.timeline import finding_text, frame_text, row_text

    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for row in rows:
        print(row_text(row, columns))
        for frame in row.frames if wire else ():
            print(f"{'':12}{frame_text(frame)}")
        for finding in row.findings:
            print(finding_text(finding))


def json_line(row: "TimelineRow") -> str:
    """Return a row as a line of JSON."""
    import json

    return json.dumps(_as_json(row)) + "\n"


def _as_json(row: "TimelineRow") -> dict[str, Any]:
    at: dict[str, Any] = {"elapsed": row.elapsed, "connection": row.connection}
    if row.note is not None:
        return {**at, "kind": row.note.kind, "line": row.note.line, "words": row.words}
    exchange = row.exchange
    assert exchange is not None
    found = {
        **at,
        "kind": exchange.kind,
        "direction": exchange.frame.direction,
        "line": exchange.frame.line,
        "method": exchange.method,
        "update": exchange.update,
        "session": exchange.session,
        "id": exchange.message.get("id"),
        "seconds": exchange.seconds,
        "words": row.words,
        "count": row.pieces,
        "findings": [{"id": one.id, "sentence": one.sentence} for one in row.findings],
    }
    return {name: value for name, value in found.items() if value not in ("", None, [])}


def _write_page(arguments: argparse.Namespace, trace: "RecordedTrace", rows: "Sequence[TimelineRow]") -> None:
    from dragoman.host.private_file import replaced_file
    from dragoman.trace.page import page

    text = page(os.path.basename(arguments.file), trace.header, rows)
    if arguments.html == "-":
        sys.stdout.write(text)
        return
    try:
        with replaced_file(os.path.realpath(arguments.html)) as file:
            file.write(text.encode())
    except OSError as error:
        raise CommandError(f"{arguments.html}: cannot write the page: {error.strerror}") from None
