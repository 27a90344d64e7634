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
    parser.add_argument(
        "--mode", metavar="MODE", help="what it may do without asking; ask is the default. `full` is full-access"
    )
    parser.add_argument(
        "--resume",
        metavar="ID",
        nargs="?",
        const="",
        help="the first new session goes on with session ID, or with the newest of its folder",
    )
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Serve until the editor is gone."""
    # Everything behind this line is paid for by the editor's user at every start: import as little as possible.
    import os

    from dragoman.cli.home import home, open_store
    from dragoman.coder.brain import coding_agent
    from dragoman.coder.coder import Setup
    from dragoman.coder.models.script import ScriptError, ScriptModel, load
    from dragoman.coder.permissions import DEFAULT_MODE, MODES

    kind, _, path = arguments.model.partition(":")
    if kind != "script":
        return complain(f"unknown model {arguments.model!r}; this release plays script:FILE")
    if not path:
        return complain("which script? --model script:FILE")
    try:
        script = load(path)
    except ScriptError as error:
        return complain(f"{path}: {error}")
    mode = arguments.mode or DEFAULT_MODE
    mode = "full-access" if mode == "full" else mode
    if mode not in MODES:
        return complain(f"unknown mode {mode!r}; there are {', '.join(MODES)}")
    trace = None
    if arguments.trace is not None:
        from dragoman.cli.trace import open_trace

        try:
            trace = open_trace(arguments.trace)
        except OSError as error:
            return complain(f"{arguments.trace}: cannot write the trace: {error.strerror}")
    setup = Setup(lambda name: ScriptModel(script), os.environ, home=home())
    agent = coding_agent(
        setup, "script", mode=mode, store=open_store, resume=arguments.resume, protocol=arguments.protocol
    )
    agent.run(trace=trace)
    return 0
