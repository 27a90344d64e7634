"""`dragoman trace diff`: what is different between two recordings, without ids, times and the sizes of pieces."""

import argparse
import json
import sys
from itertools import islice
from typing import TYPE_CHECKING

from dragoman.cli.errors import CommandError, print_error, print_notice

if TYPE_CHECKING:
    from dragoman.trace.exchanges import Exchange
    from dragoman.trace.normal_form import NormalMessage

EQUAL, DIFFERENT, NOT_RUN = 0, 1, 3


def run(arguments: argparse.Namespace) -> int:
    """Print the differences, and return the exit code."""
    from dragoman.trace.comparison import compare
    from dragoman.trace.records import TraceFault

    try:
        sides = [_messages(file, arguments) for file in (arguments.a, arguments.b)]
    except TraceFault as fault:
        return print_error(str(fault), NOT_RUN)
    found = list(islice(compare(*sides), arguments.most + 1))
    for one in found[: arguments.most]:
        print(json.dumps(one.as_json()) if arguments.json else str(one))
    if len(found) > arguments.most:
        print_notice(f"there are more than {arguments.most} differences; --most N shows N of them")
    if not found and not arguments.json:
        print(f"equal: {len(sides[0])} messages")
    sys.stdout.flush()
    return DIFFERENT if found else EQUAL


def _messages(file: str, arguments: argparse.Namespace) -> "list[NormalMessage]":
    from dragoman.trace.normal_form import normal_messages

    return normal_messages(
        recorded_exchanges(file, arguments.connection),
        ignored_fields=arguments.ignore_field,
        ignored_methods=arguments.ignore,
    )


def recorded_exchanges(file: str, connection: str) -> "list[Exchange]":
    """Return the messages of one connection of a trace: the one that is named, or the only one.

    Raise `TraceFault` for a file that cannot be read, `CommandError` if it is not said which connection is meant.
    """
    from dragoman.trace.exchanges import exchanges_of
    from dragoman.trace.reader import read_trace

    frames = read_trace(file).frames()
    numbers = list(dict.fromkeys(frame.connection for frame in frames))
    if connection and connection not in numbers:
        raise CommandError(f"{file}: there is no connection {connection}; there are {', '.join(numbers) or 'none'}")
    if not connection and len(numbers) > 1:
        raise CommandError(f"{file}: which of its connections? --connection with one of {', '.join(numbers)}")
    return exchanges_of(frame for frame in frames if connection in ("", frame.connection))
