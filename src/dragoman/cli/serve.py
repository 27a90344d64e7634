"""`dragoman serve`: an agent behind HTTP and WebSocket."""

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.complain import complain
from dragoman.cli.home import home, open_store

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from dragoman.gateway.back import Agents
    from dragoman.gateway.hub import Knows
    from dragoman.gateway.server import Server
    from dragoman.gateway.tokens import Tokens

_DESCRIPTION = """\
Serve an agent over the network: Streamable HTTP and WebSocket at /acp, with
tokens, and sessions that outlive the connection. Without --agent it is our own.
"""
_EPILOG = """\
The first start on this machine makes a token and prints it once. Another one:

  dragoman serve --new-token phone --scopes read
  dragoman serve --revoke-token phone

Scopes are read (watch), prompt (work) and admin (metrics, and sessions that were
made here without a gateway). Tokens of one --principal share their sessions.
"""


class Wrong(Exception):
    """The command line cannot be done; the text says why."""


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
    parser.add_argument("--model", metavar="M", help="who thinks: provider/name, offline, local:FILE.gguf, script:FILE")
    parser.add_argument("--mode", metavar="MODE", help="what it may do without asking; ask is the default")
    parser.add_argument("--token-file", metavar="F", help="where the hashes of the tokens are kept")
    tokens = parser.add_argument_group("tokens")
    tokens.add_argument("--new-token", metavar="NAME", help="make a token, print it once, and end")
    tokens.add_argument("--scopes", default="read,prompt", help="of the new token: read, prompt, admin")
    tokens.add_argument("--principal", default="", help="whose it is; its name, if not given")
    tokens.add_argument("--revoke-token", metavar="NAME", help="forget a token, and end")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal comes."""
    from dragoman.errors import DragomanError
    from dragoman.gateway.tokens import Tokens

    file = Path(arguments.token_file).expanduser() if arguments.token_file else home() / "gateway" / "tokens.json"
    tokens = Tokens(file)
    try:
        if arguments.new_token is not None or arguments.revoke_token is not None:
            return _change_tokens(arguments, tokens)
        server_of = _prepared(arguments, tokens)
        asyncio.run(_serve(server_of, tokens))
    except (Wrong, DragomanError) as error:
        return complain(str(error))
    except ImportError as error:
        return complain(f"serving needs an extra ({error.name}): pip install 'dragoman[serve]'")
    return 0


def _change_tokens(arguments: argparse.Namespace, tokens: "Tokens") -> int:
    from dragoman.gateway.guard import scopes_of

    if arguments.revoke_token is not None:
        if not tokens.revoke(arguments.revoke_token):
            return complain(f"there is no token {arguments.revoke_token!r}", 1)
        return 0
    try:
        scopes = scopes_of(arguments.scopes)
    except ValueError as error:
        raise Wrong(f"--scopes: {error}") from None
    print(tokens.make(arguments.new_token, scopes, arguments.principal))
    return 0


class _Prepared:
    """Everything that can be wrong on a command line is known; the rest needs a loop."""

    def __init__(
        self, arguments: argparse.Namespace, tokens: "Tokens", agents: "Agents", knows: "Knows | None"
    ) -> None:
        self._arguments = arguments
        self._tokens = tokens
        self._agents = agents
        self._knows = knows

    def server(self) -> "Server":
        """The server, inside a running loop."""
        from dragoman.gateway.hub import Hub
        from dragoman.gateway.owners import Owners
        from dragoman.gateway.server import Server

        owners = Owners(home() / "gateway" / "owners.jsonl")
        hub = Hub(self._agents, owners=owners, knows=self._knows, report=_report)
        given = self._arguments
        return Server(
            hub,
            self._tokens,
            host=given.host,
            port=given.port,
            allowed_hosts=tuple(given.allowed_host),
            certificate=_path(given.certificate),
            key=_path(given.key),
        )


def _prepared(arguments: argparse.Namespace, tokens: "Tokens") -> _Prepared:
    from dragoman.gateway.guard import is_loopback

    if (arguments.certificate is None) != (arguments.key is None):
        raise Wrong("TLS needs both --certificate and --key")
    if not is_loopback(arguments.host) and not tokens.valid():
        raise Wrong(
            f"without a token nobody but this machine is served: make one with "
            f"`dragoman serve --new-token NAME`, then serve on {arguments.host}"
        )
    if len(arguments.agent) > 1:
        raise Wrong("one server serves one agent; start another on another --port")
    if arguments.agent:
        return _Prepared(arguments, tokens, _fleet_agent(arguments.agent[0]), None)
    agents, knows = _our_agent(arguments)
    return _Prepared(arguments, tokens, agents, knows)


def _our_agent(arguments: argparse.Namespace) -> "tuple[Agents, Knows]":
    from dragoman.cli import ours
    from dragoman.coder.brain import coding_agent
    from dragoman.gateway.back import Agents
    from dragoman.gateway.local import in_process
    from dragoman.store.contract import StoreFailed

    try:
        setup = ours.our_setup(arguments.model, arguments.mode)
    except ours.Wrong as error:
        raise Wrong(str(error)) from None
    agent = coding_agent(setup, store=open_store, protocol=arguments.protocol)

    async def knows(session_id: str) -> bool:
        assert agent.store is not None
        try:
            await agent.store.look(session_id)
        except StoreFailed:
            return False
        return True

    return Agents(in_process(agent.serve, _report), agent.spoken), knows


def _fleet_agent(name: str) -> "Agents":
    from dragoman.client.fleet import Fleet
    from dragoman.gateway.back import Agents
    from dragoman.gateway.local import spawned

    entry = Fleet.read(home(), environment=os.environ, folder=".").entry(name).expanded(os.environ)
    return Agents(spawned([entry.command, *entry.args], cwd=entry.cwd or None, env=entry.env), ())


async def _serve(prepared: _Prepared, tokens: "Tokens") -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def told() -> None:
        stop.set()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)  # a second one ends us at once

    server = prepared.server()
    await server.start()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told)
    if not tokens.valid():
        token = tokens.make("default")
        _say(f"a token was made, and is shown this once: {token}")
    _say(f"listening on {server.url}")
    try:
        await stop.wait()
    finally:
        _say("stopping; turns may end first")
        await server.stop()


def _say(sentence: str) -> None:
    print(f"dragoman: {sentence}", file=sys.stderr, flush=True)


def _report(error: Exception) -> None:
    """A failure of ours, for whoever runs the server: where, and what kind; not what was being said."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = "" if place is None else f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}"
    line = {"time": round(time.time(), 3), "event": "failure", "kind": type(error).__name__, "where": where}
    print(json.dumps(line), file=sys.stderr, flush=True)


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name).expanduser()


def _port(text: str) -> int:
    number = int(text)
    if not 0 < number < 65536:
        raise ValueError
    return number
