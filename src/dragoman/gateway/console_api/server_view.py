"""How the server does, for administrators: its agents, the nodes of its cluster, its limits. Counts and names only."""

from collections.abc import Mapping, Sequence

from dragoman.gateway import connections, shared_session
from dragoman.gateway.guard import BURST, MESSAGE_RATE, RATE
from dragoman.gateway.hub import Hub
from dragoman.gateway.logbook import principal_name
from dragoman.gateway.open_questions import ALONE_SECONDS
from dragoman.gateway.principal_usage import PrincipalUsage
from dragoman.gateway.shared_state import NodeState, SharedNodes
from dragoman.gateway.token_types import TokenLimits
from dragoman.version import VERSION


def agents_of(hubs: Mapping[str, Hub]) -> list[dict[str, object]]:
    """Return the agents of a server and what they do now."""
    return [_agent(name, hub) for name, hub in hubs.items()]


async def nodes_of(nodes: SharedNodes | None) -> dict[str, object]:
    """Return the nodes of a cluster; none where this server is alone. Raise `StoreFailed`."""
    found: Sequence[NodeState] = [] if nodes is None else await nodes.nodes()
    return {"isCluster": nodes is not None, "nodes": [_node(one) for one in found]}


def principals_of(usage: PrincipalUsage) -> list[dict[str, object]]:
    """Return what each principal uses now, and its limits (0, of dollars null: there is none)."""
    return [
        {
            "name": principal_name(use.principal),
            "sessions": use.sessions,
            "turns": use.turns,
            "spentToday": round(use.spent, 4),
            "limits": use.limits,
        }
        for use in usage.in_use()
    ]


def limits_of(server: TokenLimits) -> dict[str, object]:
    """Return the limits that hold for every token of a server."""
    return {
        "version": VERSION,
        "maxMode": server.max_mode,
        "workspaces": server.workspaces,
        "requestsPerSecond": RATE,
        "requestsAtOnce": BURST,
        "messagesPerSecond": MESSAGE_RATE,
        "connections": connections.CONNECTIONS,
        "connectionsOfPrincipal": connections.CONNECTIONS_EACH,
        "connectionsOfLink": connections.CONNECTIONS_SHARE,
        "subscribers": shared_session.SUBSCRIBERS,
        "subscribersOfLinks": shared_session.SHARE_SUBSCRIBERS,
        "keptSeconds": connections.KEPT_SECONDS,
        "questionSeconds": ALONE_SECONDS,
    }


def _agent(name: str, hub: Hub) -> dict[str, object]:
    source = hub.agents.source
    sides = [side for side in hub.agents if not side.is_of_other_node]
    infos = [side.agent.info for side in sides if side.agent.info is not None]
    return {
        "name": name,
        "isOurs": hub.access.ceilings.trusted,
        "title": (infos[-1].title or infos[-1].name) if infos else "",
        "version": infos[-1].version if infos else "",
        "processes": hub.agents.processes,
        "mostProcesses": source.most,
        "asleep": len(sides) - hub.agents.processes,
        "states": sorted(side.state.value for side in sides),
        "sessions": len(hub.sessions),
        "turns": len(hub.sessions.running()),
        "questions": sum(shared.has_questions for shared in hub.sessions.values()),
        "connections": len(hub.connections),
        "idleSeconds": source.idle_seconds,
        "isStopping": hub.is_stopping,
    }


def _node(node: NodeState) -> dict[str, object]:
    return {
        "name": node.name,
        "url": node.url,
        "isAlive": node.is_alive,
        "isDraining": node.is_draining,
        "sessions": node.sessions,
        "leaseSeconds": node.lease_seconds,
    }
