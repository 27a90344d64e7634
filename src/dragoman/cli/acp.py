"""`dragoman acp`: the agent on stdin and stdout, for editors."""

import argparse
from typing import TYPE_CHECKING

from dragoman.cli.complain import complain

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_DESCRIPTION = """\
Serve an agent on stdin and stdout, for an editor that starts it. stdout carries
the protocol and nothing else. The version of the protocol (1 or 2) and the
framing (lines or Content-Length) are the editor's choice.
"""
_EPILOG = """\
A script is a JSON file; each prompt plays its next turn:

  {"turns": [
    {"steps": [{"think": "Hm."}, {"say": "Hi. ", "repeat": 3, "delay_ms": 99}]},
    {"steps": [{"fail": "network", "times": 2}, {"stop": "max_tokens"}]}
  ]}
"""


def add(commands: "_SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """Declare the command."""
    parser = commands.add_parser(
        "acp",
        help="the agent on stdin and stdout, for editors",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--model", required=True, help="what answers: script:FILE plays the turns of a script")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Serve until the editor is gone."""
    # Everything behind this line is paid for by the editor's user at every start: import as little as possible.
    from dragoman.coder.brain import scripted_agent
    from dragoman.coder.models.script import ScriptError, load

    kind, _, path = arguments.model.partition(":")
    if kind != "script":
        return complain(f"unknown model {arguments.model!r}; this release plays script:FILE")
    if not path:
        return complain("which script? --model script:FILE")
    try:
        script = load(path)
    except ScriptError as error:
        return complain(f"{path}: {error}")
    trace = None
    if arguments.trace is not None:
        from dragoman.cli.trace import open_trace

        try:
            trace = open_trace(arguments.trace)
        except OSError as error:
            return complain(f"{arguments.trace}: cannot write the trace: {error.strerror}")
    scripted_agent(script, protocol=arguments.protocol).run(trace=trace)
    return 0
