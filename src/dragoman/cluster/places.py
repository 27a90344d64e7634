"""Where the sessions of one agent are, for its gateway; a `gateway.places.SessionPlaces` on the database."""

from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from dragoman.cluster.member import ClusterMember
from dragoman.cluster.node_secret import NodeSecret
from dragoman.errors import UsageError
from dragoman.gateway.agent_source import AgentSource
from dragoman.gateway.places import NodePlace, node_away
from dragoman.transports.remote import transport_for

# Between nodes one version is spoken: the one that has words for everything that the others have.
_VERSIONS: Final = (2,)


class ClusterPlaces:
    """The places of an agent's sessions. `agent` is its name (empty: our own, whose sessions are in the database),
    `path` that in addresses (empty: it is the only one), `history` the agent for sessions whose node is away, `ca_file`
    has the authorities that the nodes' certificates are checked by."""

    def __init__(
        self,
        member: ClusterMember,
        secret: NodeSecret,
        history: AgentSource,
        *,
        agent: str = "",
        path: str = "",
        ca_file: str = "",
    ) -> None:
        self._member = member
        self._token: Final = secret.token_of(member.name)
        self._history: Final = history
        self._agent: Final = agent
        self._path: Final = path
        self._ca_file: Final = ca_file

    def __repr__(self) -> str:
        return f"<ClusterPlaces {self._path!r} of {self._member!r}>"

    async def find(self, session_id: str) -> NodePlace:
        """Return where a session is now; see `SessionPlaces`. Raise `RequestFailed` for one of another agent whose node
        is away: its history is that agent's own, at that node."""
        if not self._agent:
            return await self._member.find(session_id)
        place = await self._member.find_made(self._agent, session_id)
        if place.is_away:
            raise node_away(place.node)
        return place

    def source(self, node: str) -> AgentSource:
        """Return the same agent at another node. Raise `RequestFailed` for a node without an address."""
        url = self._member.url_of(node)
        if not url:
            raise node_away(node)
        address = socket_address(url, self._path)
        # Not started again by the gateway: the transport comes back by itself, and a node that is gone is not waited
        # for.
        return AgentSource(
            lambda principal: transport_for(address, self._token, ca_file=self._ca_file), _VERSIONS, restarts=0
        )

    def history(self) -> AgentSource:
        """Return the agent for sessions whose node is away."""
        return self._history

    def is_current(self, place: NodePlace) -> bool:
        """Return whether a place that was found before still holds; see `SessionPlaces`."""
        return self._member.is_current(place)

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call back after each change of a node."""
        self._member.on_change(callback)


def socket_address(url: str, path: str = "") -> str:
    """Return where the WebSocket of an agent is at a node. Raise `UsageError` if `url` is no address of a node."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise UsageError(f"{url!r} is no address of a node; it begins with https:// or http://")
    scheme = "wss" if parts.scheme == "https" else "ws"
    return f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}/acp{f'/{path}' if path else ''}"
