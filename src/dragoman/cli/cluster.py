"""`dragoman cluster`: the nodes on one database, and taking one out of service."""

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from dragoman.cli.common_options import Commands, add_action, add_command, database_url
from dragoman.cli.errors import NOT_DONE, CommandError, print_error

if TYPE_CHECKING:
    from dragoman.store.postgres.nodes import NodeRow, Standby
    from dragoman.store.postgres.store import PostgresStore

_DESCRIPTION = """\
The servers that share one database (`dragoman serve --store … --node …`): which
of them are alive, and how many sessions each works on.
"""
_EPILOG = """\
  dragoman cluster status --store postgresql://db.example.org/dragoman
  dragoman cluster drain node-2 --store postgresql://db.example.org/dragoman

A node that is drained lets its turns end, hands its sessions over and stops, as
at SIGTERM; what supervises it may start it again.
"""
_CHECK_SECONDS: Final = 0.2
_PATIENCE: Final = 120.0
_COLUMNS: Final = ("node", "state", "sessions", "lease", "incarnation", "address")


def add(commands: Commands) -> argparse.ArgumentParser:
    """Declare the command."""
    parser = add_command(commands, "cluster", "the servers that share one database", _DESCRIPTION, epilog=_EPILOG)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
    status = add_action(actions, "status", "the nodes, their leases and sessions", as_json="the nodes as a JSON object")
    drain = add_action(actions, "drain", "have a node hand its sessions over and stop, and wait for that")
    drain.add_argument("node", metavar="NAME", help="the node, as `status` shows it")
    drain.add_argument(
        "--timeout",
        metavar="S",
        type=_seconds,
        default=_PATIENCE,
        help=f"wait for so long; {_PATIENCE:g}, if not given",
    )
    for action in (status, drain):
        action.add_argument(
            "--store", metavar="URL", type=database_url, required=True, help="the database, postgresql://…"
        )
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from dragoman import background
    from dragoman.cli.home import open_database
    from dragoman.store.contract import StoreFailed

    actions: dict[str, Callable[[argparse.Namespace, PostgresStore], Awaitable[int]]] = {
        "status": _status,
        "drain": _drain,
    }

    async def work() -> int:
        store = open_database(arguments.store)
        try:
            return await actions[arguments.action](arguments, store)
        finally:
            await store.close()

    try:
        return background.run(work())
    except StoreFailed as error:
        return print_error(str(error), NOT_DONE)


async def _status(arguments: argparse.Namespace, store: "PostgresStore") -> int:
    from dragoman.store.postgres.nodes import list_nodes, list_standbys

    nodes, standbys = await list_nodes(store.database), await list_standbys(store.database)
    if arguments.json:
        print(
            json.dumps({"nodes": [_as_json(node) for node in nodes], "standbys": [one._asdict() for one in standbys]})
        )
        return 0
    if not nodes:
        print("there are no nodes; `dragoman serve --store … --node …` begins one")
        return 0
    for line in _table([_COLUMNS, *map(_cells, nodes)]):
        print(line)
    for standby in standbys:
        print(_standby_line(standby))
    return 0


async def _drain(arguments: argparse.Namespace, store: "PostgresStore") -> int:
    from dragoman.cluster.bus import PostgresBus
    from dragoman.store.postgres.nodes import list_nodes, set_draining

    before = {node.name: node for node in await list_nodes(store.database)}.get(arguments.node)
    if before is None:
        raise CommandError(f"there is no node {arguments.node!r}; `dragoman cluster status` lists them")
    if not before.is_alive:
        print(f"{arguments.node} is not alive")
        return 0
    async with store.database.transaction() as connection:
        await set_draining(connection, arguments.node, draining=True)
    await PostgresBus(store.database, "").wake(arguments.node)
    try:
        async with asyncio.timeout(arguments.timeout):
            while True:
                now = {node.name: node for node in await list_nodes(store.database)}.get(arguments.node)
                if now is None or not now.is_alive or now.incarnation != before.incarnation:
                    print(f"{arguments.node} has handed its sessions over")
                    return 0
                await asyncio.sleep(_CHECK_SECONDS)
    except TimeoutError:
        return print_error(f"{arguments.node} still has turns that run; it stops when they have ended", NOT_DONE)


def _as_json(node: "NodeRow") -> dict[str, Any]:
    is_given_back = node.seconds_left is None
    return {
        "name": node.name,
        "url": node.url,
        "incarnation": node.incarnation,
        "alive": node.is_alive,
        "expires": None if is_given_back else node.expires.isoformat(),
        "sessions": node.sessions,
        "draining": node.is_draining,
    }


def _cells(node: "NodeRow") -> tuple[str, ...]:
    state = "away" if not node.is_alive else "draining" if node.is_draining else "alive"
    lease = "given back" if node.seconds_left is None else f"{node.seconds_left:+.0f} s"
    return node.name, state, str(node.sessions), lease, str(node.incarnation), node.url


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    from dragoman.cli.text_width import pad, width
    from dragoman.host.text import harmless_line

    shown = [[harmless_line(cell) for cell in row] for row in rows]
    widths = [max(width(row[column]) for row in shown) for column in range(len(_COLUMNS))]
    return ["  ".join(pad(cell, columns) for cell, columns in zip(row, widths, strict=True)).rstrip() for row in shown]


def _standby_line(standby: "Standby") -> str:
    from dragoman.host.text import harmless_line

    lag = "no lag known" if standby.lag_seconds is None else f"{standby.lag_seconds:.1f} s behind"
    return f"standby {harmless_line(standby.name)}: {standby.sync}, {lag}"


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError("it must be seconds, up to 86400")
    return seconds
