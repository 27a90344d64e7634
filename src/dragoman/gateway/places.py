"""Where a session is worked on, in a cluster: here, at another node, or nowhere because its node is away.

The interface that a gateway asks; `dragoman.cluster` answers it from the database. A server without a cluster has none,
and every session is here.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from dragoman.errors import NODE_AWAY, RequestFailed
from dragoman.gateway.agent_source import AgentSource


class NodePlace(NamedTuple):
    """A node, by name; empty: this one. `is_away`: only it may work on the session, and it does not answer."""

    node: str = ""
    incarnation: int = 0
    is_away: bool = False

    @property
    def is_here(self) -> bool:
        """Return whether this node works on the session, or may begin to."""
        return not self.node


# Also for a session that is not known: whatever there is to say about it is said here.
HERE: Final = NodePlace()


class SessionPlaces(Protocol):
    """Where the sessions of one agent are."""

    async def find(self, session_id: str) -> NodePlace:
        """Return where a session is now, `HERE` for one that is not known. Raise `RequestFailed` while that cannot be
        known."""

    def source(self, node: str) -> AgentSource:
        """Return the same agent at another node: a stream to it, by the right of a node."""

    def history(self) -> AgentSource:
        """Return an agent that opens sessions whose node is away: it replays them, and refuses prompts."""

    def is_current(self, place: NodePlace) -> bool:
        """Return whether what was found before still holds, as far as this node knows: the node is alive in the same
        incarnation, or, if it was away, it still is."""

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call back whenever a node has come, gone or got another incarnation."""


def node_away(node: str) -> RequestFailed:
    """Return the error for a session that can be worked on at this node only, which does not answer."""
    return RequestFailed(
        NODE_AWAY,
        f"The session's files are at the node {node}, which is away; its history can be read and forked here",
        {"reason": "node_away", "node": node},
    )
