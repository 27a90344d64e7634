"""`dragoman trace follow`: the timeline of a trace while it is written, or of a session of a server."""

import argparse
import os
import sys
import time
from typing import TYPE_CHECKING, Final

from dragoman.cli.errors import NOT_DONE, CommandError, print_error, print_notice, warn_about_plain_http

if TYPE_CHECKING:
    from dragoman.trace.exchanges import Exchanges
    from dragoman.trace.records import Record

# Files have no way to call back that works everywhere; a person does not see the difference.
_LOOK_SECONDS: Final = 0.2


def run(arguments: argparse.Namespace) -> int:
    """Show what comes until Ctrl-C, until the file is no trace, or until the session has ended."""
    if ("://" in arguments.file) != (arguments.of_session is not None):
        raise CommandError("which? A FILE alone, or the URL of a server and a SESSION that is open there")
    return _follow_file(arguments) if arguments.of_session is None else _follow_session(arguments)


def _follow_file(arguments: argparse.Namespace) -> int:
    from dragoman.trace.exchanges import Exchanges
    from dragoman.trace.follower import TraceFollower
    from dragoman.trace.records import TraceFault

    follower = TraceFollower(arguments.file, from_start=arguments.from_start)
    joined = Exchanges()
    is_told = False
    try:
        while True:
            _show(arguments, joined, follower.read())
            if not follower.is_open and not is_told:
                is_told = True
                print_notice(f"{arguments.file} is not there yet; waiting for it")
            time.sleep(_LOOK_SECONDS)
    except TraceFault as fault:
        return print_error(str(fault), NOT_DONE)
    finally:
        follower.close()


def _follow_session(arguments: argparse.Namespace) -> int:
    from dragoman import background
    from dragoman.cli.given_address import given_token
    from dragoman.errors import LinkClosed, UsageError

    try:
        given = given_token(arguments)
        token = given or "" if isinstance(given, str | None) else given.current()
        if token:
            warn_about_plain_http(arguments.file, insecure=arguments.insecure)
        background.run(_read_session(arguments, token))
    except UsageError as error:
        raise CommandError(str(error)) from None
    except LinkClosed as closed:
        return print_error(str(closed), NOT_DONE)
    return 0


async def _read_session(arguments: argparse.Namespace, token: str) -> None:
    from dragoman.trace.exchanges import Exchanges
    from dragoman.trace.records import TraceFault, decode_header, decode_record
    from dragoman.transports.live_trace import live_lines

    joined = Exchanges()
    ca_file = os.path.expanduser(arguments.ca_file or "")
    number = 0
    async for lines in live_lines(arguments.file, arguments.of_session, token, ca_file):
        records = []
        for line in lines:
            number += 1
            try:
                if number == 1:
                    decode_header(line)
                else:
                    records.append(decode_record(line, number))
            except TraceFault as fault:
                raise CommandError(f"what the server sends is no trace: {fault}") from None
        _show(arguments, joined, records)


def _show(arguments: argparse.Namespace, joined: "Exchanges", records: "list[Record]") -> None:
    import shutil

    from dragoman.cli.trace_view import chosen_filter, json_line
    from dragoman.trace.records import TraceFrame
    from dragoman.trace.timeline import frame_text, row_text, rows_of

    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    pairs = [(record, joined.add(record) if isinstance(record, TraceFrame) else None) for record in records]
    for row in rows_of(pairs, {}, chosen_filter(arguments)):
        if arguments.json:
            sys.stdout.write(json_line(row))
            continue
        print(row_text(row, columns, live=True))
        for frame in row.frames if arguments.wire else ():
            print(f"{'':12}{frame_text(frame)}")
    sys.stdout.flush()
