"""`dragoman`: reads the command line and hands over to one file a command."""

import argparse
import sys
from collections.abc import Sequence

from dragoman.cli import acp, demo
from dragoman.version import VERSION

_DESCRIPTION = (
    "Agents and clients for the Agent Client Protocol: a coding agent for every editor, a client for every agent."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    parser = argparse.ArgumentParser(prog="dragoman", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"dragoman {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in (acp, demo):
        added = command.add(commands)
        added.add_argument("--version", action="version", version=f"dragoman {VERSION}")
        added.add_argument("--protocol", type=int, choices=(1, 2), help="speak only this version of the protocol")
        added.add_argument("--trace", metavar="FILE", help="write every message to FILE as JSON lines, without secrets")
        added.set_defaults(run=command.run)
    arguments = parser.parse_args(argv)
    try:
        code: int = arguments.run(arguments)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        sys.stderr.close()
        return 0
    return code


if __name__ == "__main__":
    sys.exit(main())
