"""`dragoman trace redact`: a copy of a trace without its secrets, or without its content."""

import argparse
import os
import sys
from contextlib import ExitStack

from dragoman.cli.errors import NOT_DONE, CommandError, print_error, print_notice


def run(arguments: argparse.Namespace) -> int:
    """Write the copy, and return the exit code."""
    from dragoman.host.private_file import replaced_file
    from dragoman.trace.reader import read_trace
    from dragoman.trace.records import TraceFault
    from dragoman.trace.redacted_copy import copy_lines
    from dragoman.trace.redaction import secrets_of

    for name in arguments.secret:
        if not os.environ.get(name):
            raise CommandError(f"--secret {name}: there is no such variable")
    known = [*(os.environ[name] for name in arguments.secret), *secrets_of(os.environ)]
    if arguments.output != "-" and os.path.lexists(arguments.output):
        raise CommandError(f"{arguments.output}: is there already")
    try:
        trace = read_trace(arguments.file)
    except TraceFault as fault:
        return print_error(str(fault), NOT_DONE)
    changed = 0
    try:
        with ExitStack() as stack:
            whole = arguments.output == "-"
            file = (
                sys.stdout.buffer if whole else stack.enter_context(replaced_file(os.path.realpath(arguments.output)))
            )
            for line, is_changed in copy_lines(trace, known, content=arguments.content):
                file.write(line)
                changed += is_changed
    except OSError as error:
        raise CommandError(f"{arguments.output}: cannot write the copy: {error.strerror}") from None
    print_notice(f"{changed} records were changed. Look through the copy before you show it to others all the same.")
    return 0
