"""Which client lends an MCP server to an agent over its connection: messages of a server go between these two.

A server is known by the id that its client has made, which no other client may use beside it. It is lent as long as the
client is connected; a client that comes back lends it anew with the sessions that it opens.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from dragoman.errors import INVALID_PARAMS, LinkClosed, RequestFailed
from dragoman.vocabulary.asking import Extension, ExtensionNote, Reply
from dragoman.vocabulary.mcp_messages import SERVER_UNAVAILABLE, read_envelope
from dragoman.vocabulary.requests import McpAcp, McpServer

if TYPE_CHECKING:
    from dragoman.gateway.client_side import ClientSide

# Servers that are lent to one agent. A session has at most 32.
SERVERS: Final = 1_024


class Lenders:
    """The clients that lend servers to one agent, by the servers' ids."""

    def __init__(self) -> None:
        self._clients: dict[str, ClientSide] = {}

    def __repr__(self) -> str:
        return f"<Lenders {len(self._clients)} servers>"

    def declare(self, servers: Iterable[McpServer], client_side: "ClientSide") -> None:
        """Notice the servers that a client names. Raises `RequestFailed` for an id that another client uses."""
        for server in servers:
            if not isinstance(server, McpAcp):
                continue
            lender = self._of(server.server_id)
            if lender is not None and lender is not client_side:
                raise RequestFailed(INVALID_PARAMS, "Another client lends an MCP server with this serverId")
            if lender is client_side:
                continue  # declared with every session that is opened again, and needs no room of its own
            # Entries of clients that have gone stay until there is no room.
            if len(self._clients) >= SERVERS:
                self._clients = {id: one for id, one in self._clients.items() if not one.is_closed}
            if len(self._clients) >= SERVERS:
                raise RequestFailed(INVALID_PARAMS, f"An agent is lent at most {SERVERS} MCP servers")
            # Nothing removes it with its session: the entry stays until its client is gone. So one connection that
            # makes an id for each session comes to `SERVERS` in the end, and has to connect anew.
            self._clients[server.server_id] = client_side

    def is_lent_by(self, client_side: "ClientSide", note: ExtensionNote) -> bool:
        """Return whether a notification of a server comes from the client that lends it."""
        envelope = read_envelope(note.params)
        return envelope is not None and self._of(envelope.server_id) is client_side

    async def ask(self, request: Extension) -> Reply:
        """Pass a request for a server to its client. Raises `RequestFailed` where that is not there any more."""
        envelope = read_envelope(request.params)
        if envelope is None:
            raise RequestFailed(INVALID_PARAMS, "Invalid params: serverId, requestId and method are texts")
        client_side = self._of(envelope.server_id)
        if client_side is not None and client_side.may("prompt"):
            try:
                return await client_side.ask(request)
            except LinkClosed:
                pass
        raise RequestFailed(SERVER_UNAVAILABLE, "No client lends this MCP server any more")

    def _of(self, server_id: str) -> "ClientSide | None":
        client_side = self._clients.get(server_id)
        return None if client_side is None or client_side.is_closed else client_side
