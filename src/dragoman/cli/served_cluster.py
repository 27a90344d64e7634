"""`dragoman serve --store …`: sessions in a database, and with `--node` this server as one of several."""

import argparse
import ipaddress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from dragoman.cli.common_options import database_url
from dragoman.cli.errors import CommandError, print_warning

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.cluster.member import ClusterMember
    from dragoman.cluster.node_secret import NodeSecret
    from dragoman.cluster.shared_sessions import OrderedWork
    from dragoman.cluster.shared_tokens import PostgresTokens
    from dragoman.cluster.shared_traffic import PostgresPositions
    from dragoman.gateway.monitor import Monitor
    from dragoman.gateway.places import SessionPlaces
    from dragoman.gateway.shared_state import SharedAgentState, SharedState
    from dragoman.store.postgres.node_lease import LeaseState
    from dragoman.store.postgres.store import PostgresStore

_LEASE_SECONDS: Final = 15.0
_SHORTEST_LEASE: Final = 1.0
_LONGEST_LEASE: Final = 600.0


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a server whose sessions are in a database."""
    group = parser.add_argument_group("several machines (docs: how-to/cluster)")
    group.add_argument(
        "--store",
        metavar="URL",
        type=database_url,
        help="keep sessions in this database, postgresql://…, and not in files of this user",
    )
    group.add_argument("--node", metavar="NAME", help="what this server is called among those on the same database")
    group.add_argument("--node-url", metavar="URL", help="where the other nodes reach this one, https://… or http://…")
    group.add_argument(
        "--node-secret-file", metavar="F", help="a file with the secret by which the nodes know each other"
    )
    group.add_argument(
        "--node-ca", metavar="F", default="", help="the authorities that the nodes' certificates are checked by"
    )
    group.add_argument(
        "--home",
        choices=("node", "shared"),
        default="node",
        help="where new sessions may be worked on: node (the default), where their folder is; shared: at every node, "
        "because all have the same folders",
    )
    group.add_argument(
        "--lease",
        metavar="S",
        type=_lease,
        default=_LEASE_SECONDS,
        help="so long after its last word a node is taken for dead; 15, if not given",
    )


class ServedCluster:
    """The database of a server, and this server as a node, if it is one. Made from a checked command line.

    A watchdog stops what the agents have started when the lease is not renewed in time (`host.watchdog`).
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        from dragoman.cli.home import open_database
        from dragoman.host.watchdog import Watchdog

        # Before any agent is made: what those start is marked by the environment that they read.
        self._watchdog: Final = Watchdog()
        self.name: Final[str] = arguments.node or ""
        self.url: Final[str] = arguments.node_url or ""
        self._ca_file: Final[str] = arguments.node_ca
        self.secret: Final = _read_secret(arguments) if self.name else None
        self.store: Final[PostgresStore] = open_database(
            arguments.store,
            node=self.name,
            node_url=self.url,
            home=arguments.home,
            lease_seconds=arguments.lease,
            on_lease=self._on_lease,
            on_renewal=self._watchdog.renew,
            on_takeover=self._on_takeover,
            on_loss=self._on_loss,
        )
        self.member: ClusterMember | None = None
        self._tokens: PostgresTokens | None = None
        self._positions: PostgresPositions | None = None
        self._background: OrderedWork | None = None
        # Called when an operator drains this node, and with each session that was taken from it.
        self.on_drain: Callable[[], None] = lambda: None
        self.on_loss: Callable[[str], None] = lambda session_id: None

    def __repr__(self) -> str:
        return f"<ServedCluster {self.name!r} {self.store!r}>"

    @property
    def host(self) -> str:
        """Return the name by which other nodes call this one; empty if there are none."""
        return urlsplit(self.url).hostname or ""

    def open(self) -> "PostgresStore":
        """Return the store: one for the whole process, so that it has one lease."""
        return self.store

    def prepare(self) -> None:
        """Make the member, inside a running loop."""
        if self.name and self.member is None:
            from dragoman.cluster.member import ClusterMember
            from dragoman.cluster.shared_sessions import OrderedWork
            from dragoman.cluster.shared_tokens import PostgresTokens
            from dragoman.cluster.shared_traffic import PostgresPositions

            self._tokens = PostgresTokens(self.store.database)
            self._positions = PostgresPositions(self.store.database, lambda: self.store.lease)
            self._background = OrderedWork()
            self.member = ClusterMember(self.store, self.name, on_drain=self._on_drained)

    def places(self, path: str, agent: str, report: "Callable[[Exception], None]") -> "SessionPlaces | None":
        """Return where the sessions of the agent at `path` are, by its name (empty: our own); None if this server is no
        node."""
        if self.member is None or self.secret is None:
            return None
        from dragoman.cluster.history_agent import history_agent
        from dragoman.cluster.places import ClusterPlaces
        from dragoman.gateway.agent_source import AgentSource, in_process

        history = AgentSource(in_process(history_agent(self.store).serve, report))
        return ClusterPlaces(self.member, self.secret, history, agent=agent, path=path, ca_file=self._ca_file)

    @property
    def tokens(self) -> "PostgresTokens | None":
        """Return the tokens of all nodes; None if this server is no node, and has its own."""
        return self._tokens

    def state(self) -> "SharedState | None":
        """Return what the nodes share whichever agent is asked for; None if this server is no node."""
        if self.member is None or self._tokens is None or self._positions is None:
            return None
        from dragoman.cluster.shared_logins import PostgresGrants, PostgresLogins
        from dragoman.cluster.shared_webhooks import PostgresNodes, PostgresWebhooks
        from dragoman.gateway.shared_state import SharedState

        database, positions = self.store.database, self._positions
        return SharedState(
            self._tokens,
            PostgresLogins(database),
            PostgresGrants(database),
            positions,
            positions.rates,
            token_keeper=self._tokens,
            webhooks=PostgresWebhooks(database),
            nodes=PostgresNodes(database),
        )

    def agent_state(self, agent: str) -> "SharedAgentState | None":
        """Return what the nodes share of one agent, by its name (empty: our own); None if this server is no node."""
        if self.member is None or self._background is None:
            return None
        from dragoman.cluster.shared_sessions import PostgresDirectory, PostgresOperations, PostgresQuestions
        from dragoman.gateway.shared_state import SharedAgentState

        database, background = self.store.database, self._background
        return SharedAgentState(
            PostgresDirectory(database, agent, self.name),
            PostgresOperations(database, background),
            PostgresQuestions(database, agent, lambda: self.store.lease, background),
        )

    def measure(self, monitor: "Monitor") -> None:
        """Have the metrics of the server tell about this node."""
        if self.member is not None:
            from dragoman.cluster.metrics import ClusterMetrics

            monitor.metrics.registry.register(ClusterMetrics(self.member))

    async def start(self) -> None:
        """Become the node. Wait for the database; raise `CommandError` if that does not answer, or has the node."""
        from dragoman.store.contract import StoreFailed

        try:
            if self.member is None:
                _ = await self.store.ids("-")  # whether it can be reached, and is of this release
            else:
                await self.member.start()
        except StoreFailed as error:
            raise CommandError(f"{error}") from error

    async def stop(self) -> None:
        """Give the sessions and the lease back. What agents have started has ended."""
        if self._background is not None:
            await self._background.close()
        if self.member is not None:
            others = [row.name for row in self.member.nodes.values() if row.name != self.name]
            await self.member.close()
            await self.store.release_lease()
            await self.member.bus.wake(*others)
        await self.store.close()
        self._watchdog.close()

    def _on_lease(self, state: "LeaseState") -> None:
        from dragoman.store.postgres.node_lease import LeaseState

        # LATE is the watchdog's own: it also freezes for a server that hangs.
        if state is LeaseState.LOST:
            self._watchdog.say_lost()

    def _on_loss(self, session_id: str) -> None:
        self.on_loss(session_id)

    def _on_drained(self) -> None:
        self.on_drain()

    def _on_takeover(self, node: str) -> None:
        if self.member is not None:
            self.member.on_takeover(node)


def served_cluster(arguments: argparse.Namespace) -> ServedCluster | None:
    """Return what the command line says about a database; None: sessions are files. Raise `CommandError`."""
    given = [option for option in ("node", "node_url", "node_secret_file") if getattr(arguments, option)]
    if arguments.store is None:
        if given:
            raise CommandError(f"--{given[0].replace('_', '-')} goes with --store postgresql://…")
        return None
    if given and len(given) < 3:
        raise CommandError("a node needs all of --node, --node-url and --node-secret-file")
    if given:
        if arguments.token_file:
            raise CommandError("--token-file does not go with --node: nodes have their tokens in the database")
        _check_node(arguments)
    return ServedCluster(arguments)


def _check_node(arguments: argparse.Namespace) -> None:
    from dragoman.cluster.node_secret import check_node_name
    from dragoman.cluster.places import socket_address

    check_node_name(arguments.node)
    socket_address(arguments.node_url)
    parts = urlsplit(arguments.node_url)
    if parts.scheme == "http" and not _is_loopback(parts.hostname or "") and not arguments.insecure:
        print_warning(
            f"nodes call {arguments.node_url} without TLS: others on that network can read conversations and act as a "
            "node. Give it an https:// address; --insecure silences this."
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _read_secret(arguments: argparse.Namespace) -> "NodeSecret":
    from dragoman.cluster.node_secret import NodeSecret

    return NodeSecret(arguments.node_secret_file)


def _lease(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not _SHORTEST_LEASE <= seconds <= _LONGEST_LEASE:
        raise argparse.ArgumentTypeError(f"it must be seconds, from {_SHORTEST_LEASE:g} to {_LONGEST_LEASE:g}")
    return seconds
