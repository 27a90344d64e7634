"""`dragoman acp`: the agent on stdin and stdout, for editors."""

import argparse
from typing import TYPE_CHECKING

from dragoman.cli.complain import complain

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add(commands: "_SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """Declare the command."""
    parser = commands.add_parser(
        "acp",
        help="the agent on stdin and stdout, for editors",
        description="Serve an agent on stdin and stdout. Editors start this; stdout carries the protocol and nothing else.",
    )
    parser.add_argument(
        "--model",
        metavar="MODEL",
        required=True,
        help="what answers: script:FILE plays the turns of a JSON script",
    )
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Serve until the editor is gone."""
    # Everything behind this line is paid for by the editor's user at every start: import as little as possible.
    from dragoman.coder.brain import scripted_agent
    from dragoman.coder.models.script import ScriptError, load

    kind, _, path = arguments.model.partition(":")
    if kind != "script" or not path:
        return complain(f"unknown model {arguments.model!r}; this release plays script:FILE")
    try:
        script = load(path)
    except ScriptError as error:
        return complain(f"{path}: {error}")
    trace = None
    if arguments.trace:
        from dragoman.cli.trace import open_trace

        try:
            trace = open_trace(arguments.trace)
        except OSError as error:
            return complain(f"cannot write the trace: {error.strerror}: {arguments.trace}")
    scripted_agent(script, protocol=arguments.protocol).run(trace=trace)
    return 0
