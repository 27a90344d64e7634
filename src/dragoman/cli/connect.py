"""`dragoman connect`: a remote agent for editors that can only start a program."""

import argparse
import os
import sys
from pathlib import Path

from dragoman import background
from dragoman.cli.common_options import Commands, add_command, add_trust
from dragoman.cli.errors import print_error, warn_about_plain_http

_DESCRIPTION = """\
Speak to an editor on stdin and stdout, and to an agent behind URL: https://,
http://, wss:// or ws://. It comes back by itself when the connection drops, and
the session goes on where it was.
"""
_EPILOG = """\
The token comes from --token-file or from DRAGOMAN_TOKEN, never from the command
line, where others could read it.

  dragoman connect https://agents.example.org --token-file ~/.dragoman-token
"""


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    parser = add_command(
        commands, "connect", "a remote agent on stdin and stdout, for editors", _DESCRIPTION, epilog=_EPILOG
    )
    parser.add_argument("url", metavar="URL", help="where `dragoman serve` listens; without a path it is /acp")
    parser.add_argument("--token-file", metavar="F", help="a file with the token; only you may be able to read it")
    add_trust(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Pass messages on until the editor is gone."""
    from importlib.util import find_spec

    from dragoman.cli.stdio_relay import relay_stdio
    from dragoman.cli.trace_file import trace_writer
    from dragoman.errors import UsageError, how_to_install
    from dragoman.host.process_privacy import blank_secrets
    from dragoman.transports.remote import remote_opener
    from dragoman.transports.token import TokenFile

    blank_secrets()
    try:
        if arguments.token_file is not None:
            token: str | TokenFile | None = TokenFile(Path(arguments.token_file).expanduser())
        else:
            token = os.environ.get("DRAGOMAN_TOKEN") or None
        ca_file = os.path.expanduser(arguments.ca_file or "")
        open_agent = remote_opener(arguments.url, token, _tell, ca_file=ca_file)
    except UsageError as error:
        return print_error(str(error))
    if token is not None:
        warn_about_plain_http(arguments.url, insecure=arguments.insecure)
    for library in ("httpx2", "websockets"):
        if find_spec(library) is None:
            return print_error(f"connecting needs {library}, which is not installed: {how_to_install('serve')}")
    if os.isatty(0):
        _tell(f"waiting for an editor on stdin; for a person: dragoman chat --agent {arguments.url}")
    writer = trace_writer(arguments)
    reason = background.run(relay_stdio(open_agent, _tell, None if writer is None else writer.connect()))
    return 0 if reason is None else print_error(reason, 1)


def _tell(sentence: str) -> None:
    print(f"dragoman: {sentence}", file=sys.stderr)
