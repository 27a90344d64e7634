"""`dragoman serve`: an agent behind HTTP and WebSocket."""

import argparse
import atexit
import os
import sys
from contextlib import suppress

from dragoman import background
from dragoman.cli.common_options import Commands, add_command, add_thinking
from dragoman.cli.errors import print_error
from dragoman.cli.issuer_options import add_issuer_options
from dragoman.cli.principal_options import add_principal_options
from dragoman.cli.served_cluster import add_cluster_options
from dragoman.cli.server_token_options import add_token_options, change_tokens, wants_change

_DESCRIPTION = """\
Serve an agent over the network: Streamable HTTP and WebSocket at /acp, with
tokens, and sessions that outlive the connection. Without --agent it is our own.
"""
_EPILOG = """\
The first start on this machine makes a token and prints it once; it has every
scope. For other people and other devices:

  dragoman tokens create phone --scopes read
  dragoman tokens create bob --max-mode safe --workspace /srv/bob
  dragoman tokens revoke phone

A token without the scope admin works in confined modes only, and may neither
leave the confinement nor log in or out. `dragoman tokens create --help` has
the rest. --max-mode and --workspace here hold for every token.
"""


# The largest `--grace`, in seconds.
_LONGEST_GRACE = 3600.0


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    help, usage = "an agent behind HTTP and WebSocket", "dragoman serve [options] [-- CMD ...]"
    parser = add_command(commands, "serve", help, _DESCRIPTION, epilog=_EPILOG, usage=usage)
    parser.add_argument("--host", default="127.0.0.1", help="where to listen; this machine only, if not given")
    parser.add_argument("--port", type=_port, default=8790, help="8790, if not given")
    parser.add_argument(
        "--allowed-host", metavar="NAME", action="append", default=[], help="a name we answer to, as behind a proxy"
    )
    parser.add_argument("--certificate", metavar="FILE", help="TLS: the certificate chain")
    parser.add_argument("--key", metavar="FILE", help="TLS: its private key")
    parser.add_argument(
        "--insecure", action="store_true", help="do not warn that others can read what is sent without TLS"
    )
    parser.add_argument(
        "--agent",
        metavar="NAME",
        action="append",
        default=[],
        help="serve this agent of `dragoman agents` in place of our own (dragoman); several are at /acp/NAME, and the "
        "first at /acp as well",
    )
    parser.add_argument("-m", "--model", metavar="M", help="model to use: provider/name, demo, script:FILE")
    parser.add_argument("--mode", metavar="MODE", help="what it may do without asking; ask is the default")
    add_thinking(parser)
    parser.add_argument(
        "--elephant",
        action="store_true",
        help="serve clients of elephant.ai too, at /acp/rpc and /acp/sse; programs of your user need no token there",
    )
    parser.add_argument("--token-file", metavar="F", help="where the hashes of the tokens are kept")
    ceilings = parser.add_argument_group("for every token of this server")
    ceilings.add_argument("--max-mode", metavar="MODE", help="no mode that reaches further than this one")
    ceilings.add_argument(
        "--workspace",
        metavar="DIR",
        action="append",
        default=[],
        help="the only folders in which sessions may be opened; can be given several times",
    )
    _add_console(parser)
    add_principal_options(parser)
    add_issuer_options(parser)
    add_cluster_options(parser)
    _add_running(parser)
    add_token_options(parser)
    return parser


def _add_console(parser: argparse.ArgumentParser) -> None:
    console = parser.add_argument_group("what people may do on the page")
    console.add_argument(
        "--no-sharing", action="store_true", help="no links by which people without a token read a session"
    )
    console.add_argument(
        "--webhook-origin",
        metavar="ORIGIN",
        action="append",
        default=[],
        help="webhooks may go here too, as http://10.0.0.5:9000, whatever its address is; without it they go to public "
        "https:// addresses alone. Can be given several times",
    )


def _add_running(parser: argparse.ArgumentParser) -> None:
    running = parser.add_argument_group("running it")
    running.add_argument(
        "--log-level",
        choices=("error", "info", "debug"),
        help="what is told on stderr, a JSON object a line: failures; comings and goings; every request. Never what is "
        "said. Without it: info, or error on a terminal",
    )
    running.add_argument(
        "-v", "--verbose", dest="log_level", action="store_const", const="info", help="as --log-level info"
    )
    running.add_argument(
        "--audit-content",
        action="store_true",
        help="write into the decision log of each session also what was decided about: commands, paths, rules",
    )
    running.add_argument("-q", "--quiet", action="store_true", help="tell failures, and nothing else but a new token")
    running.add_argument(
        "--grace",
        metavar="S",
        type=_seconds,
        default=10.0,
        help="turns may end for so long at a stop; 10, if not given",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal comes."""
    from dragoman.cli.served_gateway import prepare, serve
    from dragoman.cli.server_output import open_logbook
    from dragoman.cli.tokens import open_token_store
    from dragoman.errors import DragomanError, how_to_install

    tokens = open_token_store(arguments.token_file)
    try:
        if wants_change(arguments):
            return change_tokens(arguments, tokens)
        log = open_logbook(arguments)
        try:
            background.run(serve(prepare(arguments, tokens, log), tokens, arguments))
        finally:
            log.close()
    except DragomanError as error:
        return print_error(str(error))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return print_error(f"{where}{(error.strerror or str(error)).lower()}", 1)
    except ImportError as error:
        return print_error(f"serving needs an extra ({error.name}): {how_to_install('serve')}")
    _leave()
    return 0


def _leave() -> None:
    """End the process, with everything written and without Python's own end."""
    # A thread of the server library that is woken by a lost socket while Python is being taken down would abort the
    # process, and a stop that went well would look like a crash.
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(0)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 0 < int(text) < 65536):
        raise argparse.ArgumentTypeError("a port is a number from 1 to 65535")
    return int(text)


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number <= _LONGEST_GRACE:
        raise argparse.ArgumentTypeError(f"it must be seconds, from 0 to {_LONGEST_GRACE:g}")
    return number
