"""The gateway that `dragoman serve` runs: made from the command line, and run until a signal comes.

In two steps, because most mistakes can be seen before there is an event loop: `prepare` checks everything that can be
wrong on a command line and raises `CommandError`, `serve` opens the socket.
"""

import argparse
import asyncio
import os
import re
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from dragoman.cli.errors import CommandError, print_warning
from dragoman.cli.home import open_store, own_file, own_folders
from dragoman.cli.served_cluster import served_cluster
from dragoman.cli.server_output import error_reporter, print_line, print_nothing
from dragoman.coder.model_registry import DEMO
from dragoman.errors import UsageError

if TYPE_CHECKING:
    from dragoman.cli.served_agent import ServedAgent
    from dragoman.cli.served_cluster import ServedCluster
    from dragoman.gateway.console_api.routes import ConsoleSettings
    from dragoman.gateway.hub import Hub
    from dragoman.gateway.issuer_settings import IssuerSettings
    from dragoman.gateway.logbook import Logbook
    from dragoman.gateway.open_questions import OnPermission
    from dragoman.gateway.principal_limits import LimitTable
    from dragoman.gateway.principal_usage import PrincipalUsage
    from dragoman.gateway.server import GatewayServer
    from dragoman.gateway.token_store import TokenStore
    from dragoman.gateway.token_types import TokenLimits
    from dragoman.store.contract import Store


# The name of our own agent among those of `acp.json`.
OURS: Final = "dragoman"


class PreparedGateway(NamedTuple):
    """A gateway whose command line is checked; the rest needs a loop."""

    arguments: argparse.Namespace
    tokens: "TokenStore"
    log: "Logbook"
    served: "Sequence[ServedAgent]"  # at least one; the first is that of `/acp`
    limits: "TokenLimits"
    usage: "PrincipalUsage"
    issuer: "IssuerSettings | None" = None
    cluster: "ServedCluster | None" = None

    @property
    def is_demo(self) -> bool:
        """Return whether no language model answers in a new session of our own agent."""
        return any(one.model == DEMO for one in self.served)

    def _report_recording(self, sentence: str) -> None:
        self.log.error("recording_failed", reason=sentence)

    def server(self) -> "GatewayServer":
        """Return the server. Call it inside a running loop."""
        from dragoman.gateway.server import GatewayServer

        if self.cluster is not None:
            self.cluster.prepare()
        hubs: dict[str, Hub] = {}
        for one in self.served:
            hubs[one.path] = self._hub(one, next(iter(hubs.values()), None))
            if self.cluster is not None and not one.recorded_as:
                self.cluster.on_loss = hubs[one.path].lose_session
        given = self.arguments
        return GatewayServer(
            hubs,
            self.tokens,
            host=given.host,
            port=given.port,
            allowed_hosts=(*given.allowed_host, *self._node_hosts()),
            certificate=_path(given.certificate),
            key=_path(given.key),
            elephant=given.elephant,
            logins=own_file("gateway"),
            issuer=self.issuer,
            state=None if self.cluster is None else self.cluster.state(),
            node_of=None if self.cluster is None or self.cluster.secret is None else self.cluster.secret.node_of,
            console=self._console(),
        )

    def _console(self) -> "ConsoleSettings":
        from dragoman.cli.console_decisions import RecentDecisions
        from dragoman.cli.token_fields import checked_limits
        from dragoman.gateway.console_api.routes import ConsoleSettings
        from dragoman.gateway.token_types import TokenLimits

        def check_limits(
            max_mode: str, workspaces: Sequence[str], allow_unconfined: bool, allow_mcp_programs: bool
        ) -> TokenLimits:
            try:
                return checked_limits(
                    max_mode or None,
                    workspaces,
                    allow_unconfined=allow_unconfined,
                    allow_mcp_programs=allow_mcp_programs,
                )
            except UsageError as error:  # in the words of the command line
                raise UsageError(str(error).removeprefix("--workspace ")) from None

        given = self.arguments
        has_ours = any(not one.recorded_as for one in self.served)
        store = open_store if self.cluster is None else self.cluster.open
        return ConsoleSettings(
            private=_private(given, self.tokens),
            sharing=not given.no_sharing,
            webhook_origins=given.webhook_origin,
            check_limits=check_limits,
            find_decisions=RecentDecisions(store if has_ours else None).find,
        )

    def _node_hosts(self) -> list[str]:
        return [self.cluster.host] if self.cluster is not None and self.cluster.host else []

    def _hub(self, one: "ServedAgent", beside: "Hub | None") -> "Hub":
        from dragoman.cli.recordings import recordings_of
        from dragoman.gateway.ceilings import Ceilings
        from dragoman.gateway.hub import Hub
        from dragoman.gateway.session_directory import SessionDirectory
        from dragoman.gateway.shared_state import SharedAgentState

        state = None if self.cluster is None else self.cluster.agent_state(one.recorded_as)
        report = error_reporter(self.log)
        return Hub(
            one.agents,
            state=state
            or SharedAgentState(SessionDirectory(own_file("gateway", "owners.jsonl"), agent=one.recorded_as)),
            folder_of=one.folder_of,
            report=report,
            log=self.log,
            ceilings=Ceilings(self.limits, one.modes),
            on_permission=_recorder(one.recorded_as, self.arguments),
            recordings=recordings_of(one.recorded_as, self._report_recording),
            beside=beside,
            places=None if self.cluster is None else self.cluster.places(one.path, one.recorded_as, report),
            usage=self.usage,
        )


def prepare(arguments: argparse.Namespace, tokens: "TokenStore", log: "Logbook") -> PreparedGateway:
    """Check a command line and choose the agent. Raise `CommandError` or `UsageError` for what is wrong."""
    from dragoman.cli.issuer_options import issuer_settings
    from dragoman.cli.key_variables import hide_keys
    from dragoman.cli.principal_options import limit_table
    from dragoman.cli.token_fields import server_limits
    from dragoman.gateway.day_spend import DaySpend
    from dragoman.gateway.host_check import is_loopback
    from dragoman.gateway.principal_usage import PrincipalUsage

    hide_keys()
    if (arguments.certificate is None) != (arguments.key is None):
        raise CommandError("TLS needs both --certificate and --key")
    if arguments.certificate is not None:
        from dragoman.cli.certificate import check_pair

        check_pair(Path(arguments.certificate).expanduser(), Path(arguments.key).expanduser())
    issuer = issuer_settings(arguments)
    # Of a node they are in the database, which is asked when it starts.
    if not arguments.node and not is_loopback(arguments.host) and not tokens.valid() and issuer is None:
        raise CommandError(
            f"without a token the server answers only this machine: make one with "
            f"`dragoman tokens create NAME`, then serve on {arguments.host}"
        )
    if not is_loopback(arguments.host) and arguments.certificate is None and not arguments.insecure:
        print_warning(
            f"without TLS others on the network of {arguments.host} can read tokens and conversations. Give it "
            "--certificate and --key, or let a proxy on this machine do that; --insecure silences this."
        )
    _check_names(arguments)
    _check_origins(arguments)
    _check_home(arguments, tokens)
    limits = server_limits(arguments)
    cluster = served_cluster(arguments)
    table = limit_table(arguments)
    served = _served(arguments, tokens, log, table, None if cluster is None else cluster.open)
    usage = PrincipalUsage(table, DaySpend(own_file("gateway", "spent.json")))
    return PreparedGateway(arguments, tokens, log, served, limits, usage, issuer, cluster)


def _served(
    arguments: argparse.Namespace,
    tokens: "TokenStore",
    log: "Logbook",
    table: "LimitTable",
    open_database: "Callable[[], Store] | None",
) -> "list[ServedAgent]":
    """Return the agents of the command line; a path of its own has each of several."""
    from dragoman.cli.served_agent import our_agent, registry_agent

    found: list[ServedAgent] = []
    for name in arguments.agent or [OURS]:
        if name == OURS:
            private = _private(arguments, tokens)
            found.append(our_agent(arguments, private, error_reporter(log), open_database, table, log))
        else:
            found.append(registry_agent(name))
    found = _traced(arguments, found)
    if len(found) == 1:
        return found
    return [one._replace(path=name) for name, one in zip(arguments.agent, found, strict=True)]


def _traced(arguments: argparse.Namespace, found: "list[ServedAgent]") -> "list[ServedAgent]":
    """Return the agents with every frame between them and the gateway written to `--trace FILE`, if that is given."""
    from dragoman.cli.trace_file import trace_writer

    writer = trace_writer(arguments)
    if writer is None:
        return found
    from dragoman.trace.recorder import traced_opener

    return [one._replace(agents=one.agents._replace(open=traced_opener(writer, one.agents.open))) for one in found]


def _check_names(arguments: argparse.Namespace) -> None:
    """Raise `CommandError` for agents that could not be told apart in a path."""
    names: list[str] = arguments.agent
    if len(set(names)) < len(names):
        raise CommandError("--agent names an agent twice")
    if len(names) < 2:
        return
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            raise CommandError(f"{name!r} cannot be part of an address: rename it in acp.json to serve it with others")
        if arguments.elephant and name in ("rpc", "sse"):
            raise CommandError(f"with --elephant, /acp/{name} is a path of elephant.ai's: rename that agent")


def _check_origins(arguments: argparse.Namespace) -> None:
    """Raise `CommandError` for an origin of webhooks that is none."""
    from dragoman.host.address import UrlRefused, origin_of

    for origin in arguments.webhook_origin:
        try:
            origin_of(origin)
        except UrlRefused as error:
            raise CommandError(f"--webhook-origin {origin}: {error} Write it as http://10.0.0.5:9000") from None


def _check_home(arguments: argparse.Namespace, tokens: "TokenStore") -> None:
    """Raise `CommandError` if the owners of sessions, the tokens or our own agent's sessions cannot be written."""
    from dragoman.cli.home import why_unwritable

    folders = [own_file("gateway"), tokens.path.parent]
    if OURS in (arguments.agent or [OURS]):
        folders.append(own_file("sessions"))
    for folder in folders:
        trouble = why_unwritable(str(folder))
        if trouble is not None:
            raise CommandError(trouble)


def _private(arguments: argparse.Namespace, tokens: "TokenStore") -> list[str]:
    """Return the paths that are the server's own, and no agent's to read or write."""
    from dragoman.cli.issuer_options import secret_file

    given = [_path(arguments.key), _path(secret_file(arguments) or None), _path(arguments.node_secret_file)]
    return [str(path) for path in (*own_folders(), tokens.path, *given) if path is not None]


async def serve(prepared: PreparedGateway, tokens: "TokenStore", arguments: argparse.Namespace) -> None:
    """Serve until SIGINT or SIGTERM, then let turns end within `--grace` and stop. Prints where it listens."""
    from dragoman.gateway.tracing import traces_of

    stop = asyncio.Event()
    say = print_nothing if arguments.quiet else print_line
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        stop.set()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
            # A second one ends us at once, by the kernel: an exception in the loop would end in a traceback. Children
            # are ended by the guardian, and what clients saw is committed.
            signal.signal(number, signal.SIG_DFL)

    server = prepared.server()
    if prepared.cluster is not None:
        prepared.cluster.on_drain = stop.set
        prepared.cluster.measure(server.hub.monitor)
    server.hub.monitor.traces = traces_of(os.environ, print_warning)
    if prepared.cluster is not None:
        await prepared.cluster.start()
    await server.start()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    token, is_open = await _first_token(prepared, tokens)
    if token:
        print_line(f"a token was made, and is shown this once: {token}")
        print_line(f"in a browser: {server.url.removesuffix('acp')}#token={token}")
    elif not is_open:
        print_line("every token was revoked; make one with `dragoman tokens create NAME`")
    else:
        say(f"in a browser: {server.url.removesuffix('acp')}")
    say(f"listening on {server.url}")
    if prepared.cluster is not None and prepared.cluster.member is not None:
        say(f"node {prepared.cluster.name}, for other nodes at {prepared.cluster.url}")
    if prepared.issuer is not None:
        say(_who_may_come_in(prepared.issuer))
    if prepared.is_demo:
        from dragoman.coder.models.demo import introduction

        say(await introduction())
    for one in prepared.served:
        if one.path:
            say(f"  {one.path} at {server.url}/{one.path}")
    for name in (one.recorded_as for one in prepared.served if one.recorded_as):
        say(f"{name} is confined by nothing of ours: every token that may prompt is a shell of this user")
    if server.open_to_own_user:
        say(_who_needs_no_token())
    try:
        await stop.wait()
    finally:
        say("stopping; turns may end first")
        await server.stop(arguments.grace)
        if prepared.cluster is not None:
            await prepared.cluster.stop()


async def _first_token(prepared: PreparedGateway, tokens: "TokenStore") -> tuple[str, bool]:
    """Return a token, if none was ever made before, and whether there is a valid one."""
    shared = None if prepared.cluster is None else prepared.cluster.tokens
    if shared is not None:
        token = await shared.make("default", is_first=True)
        return token, bool(token or await shared.valid())
    token = tokens.make("default") if tokens.never_made else ""
    return token, bool(token or tokens.valid())


def _who_may_come_in(issuer: "IssuerSettings") -> str:
    """Return what an issuer means for this server: who could come in that the administrator has not thought of."""
    everyone = f"everyone there may: {', '.join(issuer.default_scopes)}" if issuer.default_scopes else "by rules alone"
    return f"people of {issuer.issuer} may log in; {everyone}"


def _who_needs_no_token() -> str:
    """Return what `--elephant` means on this machine."""
    from dragoman.gateway.peer_user import can_be_known

    if can_be_known():
        return "clients of elephant.ai need no token if they run as the same user as this server; others need one"
    return "clients of elephant.ai need a token: this system does not say which user a program runs as"


def _recorder(agent: str, arguments: argparse.Namespace) -> "OnPermission | None":
    """Return what records the answers to an agent of the registry; our own records them with its sessions."""
    if not agent:
        return None
    from dragoman.cli.served_decisions import ServedDecisionRecorder
    from dragoman.cli.settings import read_settings

    content = arguments.audit_content or read_settings().flag("audit_content")
    return ServedDecisionRecorder(agent, content=content).record


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name).expanduser()
