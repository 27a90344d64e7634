"""`dragoman trace follow`: the timeline of a trace while it is written."""

import argparse
import sys
import time
from typing import TYPE_CHECKING, Final

from dragoman.cli.errors import NOT_DONE, print_error, print_notice

if TYPE_CHECKING:
    from dragoman.trace.exchanges import Exchanges
    from dragoman.trace.records import Record

# Files have no way to call back that works everywhere; a person does not see the difference.
_LOOK_SECONDS: Final = 0.2


def run(arguments: argparse.Namespace) -> int:
    """Show what comes until Ctrl-C, or until the file is no trace."""
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
