"""`dragoman serve`: an agent behind HTTP and WebSocket."""

import argparse
import asyncio
import atexit
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman import background
from dragoman.cli.errors import CommandError, print_error
from dragoman.cli.home import home

if TYPE_CHECKING:
    from argparse import _SubParsersAction
    from collections.abc import Callable

    from dragoman.cli.served_agent import ServedAgent
    from dragoman.gateway.ceilings import Ceilings
    from dragoman.gateway.logbook import Logbook
    from dragoman.gateway.open_questions import OnPermission
    from dragoman.gateway.server import GatewayServer
    from dragoman.gateway.token_store import TokenStore
    from dragoman.gateway.token_types import TokenLimits

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


def add(commands: "_SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """Declare the command."""
    parser = commands.add_parser(
        "serve",
        help="an agent behind HTTP and WebSocket",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--host", default="127.0.0.1", help="where to listen; this machine only, if not given")
    parser.add_argument("--port", type=_port, default=8790, help="8790, if not given")
    parser.add_argument(
        "--allowed-host", metavar="NAME", action="append", default=[], help="a name we answer to, as behind a proxy"
    )
    parser.add_argument("--certificate", metavar="FILE", help="TLS: the certificate chain")
    parser.add_argument("--key", metavar="FILE", help="TLS: its private key")
    parser.add_argument("--agent", metavar="NAME", action="append", default=[], help="an agent of the fleet")
    parser.add_argument(
        "--model", metavar="M", help="model to use: provider/name, offline, local:FILE.gguf, script:FILE"
    )
    parser.add_argument("--mode", metavar="MODE", help="what it may do without asking; ask is the default")
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
    _add_running(parser)
    _add_old_token_options(parser)
    return parser


def _add_running(parser: argparse.ArgumentParser) -> None:
    running = parser.add_argument_group("running it")
    running.add_argument(
        "--log-level",
        choices=("error", "info", "debug"),
        help="what is told on stderr, a JSON object a line: failures; comings and goings; every request. Never what is "
        "said. Without it: info, or error on a terminal",
    )
    running.add_argument(
        "--audit-content",
        action="store_true",
        help="write into the decision log of each session also what was decided about: commands, paths, rules",
    )
    running.add_argument("--quiet", action="store_true", help="tell failures, and nothing else but a new token")
    running.add_argument(
        "--grace",
        metavar="S",
        type=_seconds,
        default=10.0,
        help="turns may end for so long at a stop; 10, if not given",
    )


def _add_old_token_options(parser: argparse.ArgumentParser) -> None:
    tokens = parser.add_argument_group("tokens, for one more release; now: dragoman tokens")
    tokens.add_argument("--new-token", metavar="NAME", help="as: dragoman tokens create NAME")
    tokens.add_argument("--scopes", default="read,prompt", help="of the new token: read, prompt, admin")
    tokens.add_argument(
        "--principal", default="", help="the principal it belongs to; the name of the token, if not given"
    )
    tokens.add_argument("--revoke-token", metavar="NAME", help="as: dragoman tokens revoke NAME")


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal comes."""
    from dragoman.cli.tokens import opened
    from dragoman.errors import DragomanError, how_to_install

    tokens = opened(arguments.token_file)
    try:
        if arguments.new_token is not None or arguments.revoke_token is not None:
            return _change_tokens(arguments, tokens)
        log = _logbook(arguments)
        try:
            background.run(_serve(_prepared(arguments, tokens, log), tokens, arguments))
        finally:
            log.close()
    except (CommandError, DragomanError) as error:
        return print_error(str(error))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return print_error(f"{where}{(error.strerror or str(error)).lower()}", 1)
    except ImportError as error:
        return print_error(f"serving needs an extra ({error.name}): {how_to_install('serve')}")
    _leave()
    return 0


def _leave() -> None:
    """End here, with everything written: a thread of the server library that hears of a lost socket while Python is
    being taken down would abort the process, and a stop that went well would look like a crash."""
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(0)


def _change_tokens(arguments: argparse.Namespace, tokens: "TokenStore") -> int:
    from dragoman.gateway.token_types import scopes_of

    now = "revoke" if arguments.revoke_token is not None else "create"
    _say(f"this option goes with the next release; use: dragoman tokens {now} NAME")
    if arguments.revoke_token is not None:
        if not tokens.revoke(arguments.revoke_token):
            return print_error(f"there is no token {arguments.revoke_token!r}", 1)
        return 0
    try:
        scopes = scopes_of(arguments.scopes)
    except ValueError as error:
        raise CommandError(f"--scopes: {error}") from None
    limits = _limits(arguments)
    print(tokens.make(arguments.new_token, scopes, arguments.principal, limits=limits))
    return 0


class _Prepared:
    """Everything that can be wrong on a command line is known; the rest needs a loop."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        tokens: "TokenStore",
        log: "Logbook",
        served: "ServedAgent",
        ceilings: "Ceilings",
    ) -> None:
        self._arguments = arguments
        self._tokens = tokens
        self._log = log
        self._served = served
        self._ceilings = ceilings

    def server(self) -> "GatewayServer":
        """The server, inside a running loop."""
        from dragoman.gateway.hub import Hub
        from dragoman.gateway.server import GatewayServer
        from dragoman.gateway.session_directory import SessionDirectory

        directory = SessionDirectory(home() / "gateway" / "owners.jsonl", agent="".join(self._arguments.agent))
        hub = Hub(
            self._served.agents,
            directory=directory,
            is_stored=self._served.is_stored,
            folder_of=self._served.folder_of,
            report=_reporter(self._log),
            log=self._log,
            ceilings=self._ceilings,
            on_permission=_recorder(self._arguments),
        )
        given = self._arguments
        return GatewayServer(
            hub,
            self._tokens,
            host=given.host,
            port=given.port,
            allowed_hosts=tuple(given.allowed_host),
            certificate=_path(given.certificate),
            key=_path(given.key),
            elephant=given.elephant,
            logins=home() / "gateway",
        )


def _prepared(arguments: argparse.Namespace, tokens: "TokenStore", log: "Logbook") -> _Prepared:
    from dragoman.cli.key_variables import hide_keys
    from dragoman.cli.served_agent import fleet_agent, our_agent
    from dragoman.cli.settings import SettingsError
    from dragoman.gateway.ceilings import Ceilings
    from dragoman.gateway.host_check import is_loopback

    try:
        hide_keys()
    except SettingsError as error:
        raise CommandError(str(error)) from None
    if (arguments.certificate is None) != (arguments.key is None):
        raise CommandError("TLS needs both --certificate and --key")
    if arguments.certificate is not None:
        _check_tls(Path(arguments.certificate).expanduser(), Path(arguments.key).expanduser())
    if not is_loopback(arguments.host) and not tokens.valid():
        raise CommandError(
            f"without a token the server answers only this machine: make one with "
            f"`dragoman tokens create NAME`, then serve on {arguments.host}"
        )
    if len(arguments.agent) > 1:
        raise CommandError("one server serves one agent; start another on another --port")
    _check_home(arguments, tokens)
    limits = _limits(arguments)
    if arguments.agent:
        served = fleet_agent(arguments.agent[0])
    else:
        served = our_agent(arguments, _private(arguments, tokens), _reporter(log))
    return _Prepared(arguments, tokens, log, served, Ceilings(limits, served.modes))


def _limits(arguments: argparse.Namespace) -> "TokenLimits":
    """What no token of this server may exceed."""
    from dragoman.cli.token_fields import checked_limits

    if arguments.agent and arguments.max_mode:
        raise CommandError("--max-mode is for our own agent; other agents have modes of their own")
    return checked_limits(arguments.max_mode, arguments.workspace)


def _check_tls(certificate: Path, key: Path) -> None:
    from dragoman.cli.certificate import CertificateError, check_pair

    try:
        check_pair(certificate, key)
    except CertificateError as error:
        raise CommandError(str(error)) from None


def _check_home(arguments: argparse.Namespace, tokens: "TokenStore") -> None:
    """Whose session it is has to be kept, and so have tokens, and the sessions of our own agent."""
    from dragoman.cli.home import why_unwritable

    folders = [home() / "gateway", tokens.path.parent, *([] if arguments.agent else [home() / "sessions"])]
    for folder in folders:
        trouble = why_unwritable(str(folder))
        if trouble is not None:
            raise CommandError(trouble)


def _private(arguments: argparse.Namespace, tokens: "TokenStore") -> list[str]:
    """What is the server's own, and no agent's to read or write, wherever it was put."""
    key = _path(arguments.key)
    return [str(path) for path in (home(), tokens.path, key) if path is not None]


async def _serve(prepared: _Prepared, tokens: "TokenStore", arguments: argparse.Namespace) -> None:
    stop = asyncio.Event()
    say = _say_nothing if arguments.quiet else _say
    loop = asyncio.get_running_loop()

    def told() -> None:
        stop.set()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
            # A second one ends us at once, by the kernel: an exception in the loop would end in a traceback. Children
            # are ended by the guardian, and what clients saw is committed.
            signal.signal(number, signal.SIG_DFL)

    server = prepared.server()
    await server.start()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told)
    if tokens.never_made:
        token = tokens.make("default")
        _say(f"a token was made, and is shown this once: {token}")
        _say(f"in a browser: {server.url.removesuffix('acp')}#token={token}")
    elif not tokens.valid():
        _say("every token was revoked; make one with `dragoman tokens create NAME`")
    else:
        say(f"in a browser: {server.url.removesuffix('acp')}")
    say(f"listening on {server.url}")
    for name in arguments.agent:
        say(f"{name} is confined by nothing of ours: every token that may prompt is a shell of this user")
    if server.open_to_own_user:
        say(_who_needs_no_token())
    try:
        await stop.wait()
    finally:
        say("stopping; turns may end first")
        await server.stop(arguments.grace)


def _who_needs_no_token() -> str:
    """What `--elephant` means on this machine."""
    from dragoman.gateway.peer_user import can_be_known

    if can_be_known():
        return "clients of elephant.ai need no token if they run as the same user as this server; others need one"
    return "clients of elephant.ai need a token: this system does not say which user a program runs as"


def _say(sentence: str) -> None:
    _write(f"dragoman: {sentence}\n".encode())


def _say_nothing(sentence: str) -> None:
    """Print nothing: `--quiet`."""


def _logbook(arguments: argparse.Namespace) -> "Logbook":
    """For people who watch a server, JSON is noise; for what collects its lines, sentences are."""
    from dragoman.gateway.logbook import Level, Logbook

    level: Level = "error" if arguments.quiet or sys.stderr.isatty() else "info"
    return Logbook(_write, arguments.log_level or level)


def _write(lines: bytes) -> None:
    """Whole lines at once: the log is written by a thread of its own."""
    sys.stderr.buffer.write(lines)
    sys.stderr.buffer.flush()


def _reporter(log: "Logbook") -> "Callable[[Exception], None]":
    """Return a callback that logs an internal failure: its place and exception type, never content."""

    def report(error: Exception) -> None:
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = "" if place is None else f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}"
        log.error("failure", kind=type(error).__name__, where=where)

    return report


def _recorder(arguments: argparse.Namespace) -> "OnPermission | None":
    """Return what records the answers to an agent of the fleet; our own records them with its sessions."""
    if not arguments.agent:
        return None
    from dragoman.cli.served_decisions import ServedDecisionRecorder
    from dragoman.cli.settings import read_settings

    content = arguments.audit_content or read_settings().flag("audit_content")
    return ServedDecisionRecorder(arguments.agent[0], content=content).record


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name).expanduser()


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
