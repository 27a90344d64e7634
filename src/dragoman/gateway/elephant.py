"""The HTTP of elephant.ai, beside `/acp` where it was asked for: two paths, and an id the client chooses.

| request | answer |
|---|---|
| POST `/acp/rpc?client_id=ID`, a request or a notification | 202; all answers are on the stream, `initialize`'s too |
| the same, an answer to what we have asked | 204 |
| GET `/acp/sse?client_id=ID` | 200, the one stream of this client; an older one of it ends |

400 no client_id or none that can be one, no message, a response to no request of ours; 405, 413, 408, 501, 503 as
elsewhere.

Promises
- What is spoken is the elephant dialect, whatever the agent behind speaks; a refusal in it is a refusal.
- A client that is gone for a while misses nothing it was not sent, up to `HELD_BYTES`; then the oldest go first, and
  the gap is reported. An id without a reader and without a message for as long as the hub keeps connections is
  forgotten.
- Of one id there is one connection; `initialize` said again begins anew, as a client that was started again does. What
  the old one had begun goes on, and can be loaded.
- An id is a name and no secret: of two clients admitted by the same token, or both without one, each can read the
  stream of the other's id.
"""

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qsl

from dragoman import limits
from dragoman.dialects.vendors.named import nearest_version
from dragoman.gateway.anonymous import ANONYMOUS, needs_no_token
from dragoman.gateway.client_side import ClientSide
from dragoman.gateway.connections import Connections
from dragoman.gateway.elephant_stream import stream
from dragoman.gateway.guard import Guard
from dragoman.gateway.headers import Headers, value_of
from dragoman.gateway.host_check import Refusal
from dragoman.gateway.http_replies import Bodies, Stop, answer, message_in
from dragoman.gateway.idle_sockets import SocketPeer
from dragoman.gateway.peer_user import is_own
from dragoman.gateway.session_streams import Full
from dragoman.gateway.streaming import Receive, Send
from dragoman.gateway.token_types import TokenIdentity

if TYPE_CHECKING:
    from starlette.types import Scope

RPC: Final = "/acp/rpc"
SSE: Final = "/acp/sse"
# As the system itself has it.
BODY_BYTES: Final = 4 * limits.MIB
# Ids of all clients together. When there are more, the one that was without a stream for longest is forgotten.
CLIENTS: Final = 128
# What waits for one client; with all of them, a quarter of a gibibyte.
HELD_BYTES: Final = 2 * limits.MIB
# A uuid has 36 characters; the rest is room for other kinds of ids.
_ID_LENGTH: Final = 128
# In a query of ours there is one.
_FIELDS: Final = 16
_NOT_OURS: Final = (
    "Without a token only programs of the user that runs this server are let in, and this one is not known to be one. "
    "Show a token: Authorization: Bearer TOKEN."
)


class _Client(NamedTuple):
    """A client id, and by what right it is used: two that came in differently never meet."""

    token_identity: TokenIdentity
    id: str


class Elephant:
    """The two paths. `open_to_own_user`: programs of the user that runs this server need no token, which is for
    loopback addresses only."""

    def __init__(self, connections: Connections, guard: Guard, *, open_to_own_user: bool) -> None:
        self._connections = connections
        self._guard = guard
        self._open_to_own_user = open_to_own_user
        self.bodies: Final = Bodies()
        self._connection_ids: dict[_Client, str] = {}

    async def authenticate(
        self, headers: Headers, client: SocketPeer, server: SocketPeer, method: str
    ) -> TokenIdentity | Refusal:
        """Return the identity of a client that has sent a token or needs none; `client` and `server` are the two ends
        of its socket."""
        may_have_none = self._open_to_own_user and needs_no_token(headers, client.address)
        # Asked of the kernel for each request: the port of a program that has ended may belong to another user now.
        if may_have_none and is_own(client, server):
            return await self._guard.admit(ANONYMOUS)
        entered = await self._guard.authenticate(headers, client.address, method)
        if may_have_none and isinstance(entered, Refusal) and entered.status == 401:
            return Refusal(401, _NOT_OURS)
        return entered

    async def rpc(self, scope: "Scope", receive: Receive, send: Send) -> None:
        """Receive a message of a client: POST `/acp/rpc`."""
        client = _client_of(scope)
        async with self.bodies.read(scope, receive, BODY_BYTES) as body:
            status = await self._receive(client, body)
        await answer(send, status)

    async def _receive(self, client: _Client, body: bytes) -> int:
        message = message_in(body)
        if message.method:
            is_initialize = message.method == "initialize" and message.is_request
            client_side = await self._for_initialize(client) if is_initialize else self._client_side(client)
        else:
            asker = self._find(client)
            if asker is None or not asker.connection.was_sent(message.id):
                raise Stop(400, "No request with this id was sent to this client.")
            client_side = asker
        connection = client_side.connection
        # Their clients post without reading, at the start for instance: a connection that is spoken to is not idle.
        connection.alone_since = asyncio.get_running_loop().time()
        await connection.feed(body)
        return 202 if message.method else 204

    async def sse(self, scope: "Scope", receive: Receive, send: Send) -> None:
        """Answer with the stream of a client, for as long as it reads; a connection that replaces it goes on in it."""
        client = _client_of(scope)

        def following(client_side: ClientSide) -> ClientSide | None:
            """Return the connection that has replaced `client_side`, if it has no reader; else None."""
            new = self._find(client)
            return new if new is not None and new is not client_side and new.connection.main.reader is None else None

        after = value_of(scope["headers"], b"last-event-id")
        await stream(self._client_side(client), following, after, receive, send)

    # -- who is who --------------------------------------------------------------------------------------------------

    def _find(self, client: _Client) -> ClientSide | None:
        client_side = self._connections.get(self._connection_ids.get(client, ""))
        return None if client_side is None or client_side.is_closed else client_side

    def _client_side(self, client: _Client) -> ClientSide:
        """Return the connection of a client; a new one where there is none."""
        return self._find(client) or self._new(client)

    async def _for_initialize(self, client: _Client) -> ClientSide:
        """Return the connection for an `initialize`: a new one, where the client was initialized before."""
        old = self._find(client)
        if old is None or old.link.hellos is None:
            return old or self._new(client)
        # Both exist for a moment: the stream of the old one follows to the new one (`sse`) before the old one is
        # closed.
        new = self._new(client)
        await self._connections.close(old, with_work=False)
        return new

    def _new(self, client: _Client) -> ClientSide:
        # Connections end by themselves too (`Connections.close_expired`), and their ids are dropped here.
        alive = {known: id for known, id in self._connection_ids.items() if self._find(known) is not None}
        self._connection_ids = alive
        if client not in alive and len(alive) >= CLIENTS:
            self._evict_one()
        client_side = self._connections.open("elephant", client.token_identity)
        client_side.connection.version = nearest_version("elephant")
        # A share of its own: a client id costs nothing, so many of them must not hold much each.
        client_side.connection.main.limit = HELD_BYTES
        self._connection_ids[client] = client_side.connection.id
        return client_side

    def _evict_one(self) -> None:
        """Close the connection that has been without a reader for longest. Raise `Full` where every client reads."""
        clients = [self._connections[id] for id in self._connection_ids.values()]
        alone = [client_side for client_side in clients if not client_side.connection.readers]
        if not alone:
            raise Full
        longest = min(alone, key=lambda client_side: client_side.connection.alone_since)
        self._connection_ids = {who: id for who, id in self._connection_ids.items() if id != longest.connection.id}
        self._connections.close_soon(longest)


def _client_of(scope: "Scope") -> _Client:
    """Return the client that the query names. Raise `Stop` (400) if `client_id` is missing, given twice, too long or
    not printable."""
    try:
        query = scope["query_string"].decode("ascii")
        fields = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=_FIELDS)
    except ValueError:
        raise Stop(400, "The query cannot be read.") from None
    # Their own clients send the id once; two would be a way to smuggle one past a proxy that checks the other.
    named = [value.strip() for name, value in fields if name == "client_id"]
    if len(named) != 1 or not named[0]:
        raise Stop(400, "Name yourself once: ?client_id=ID.")
    if len(named[0]) > _ID_LENGTH or not named[0].isprintable():
        raise Stop(400, f"A client_id has at most {_ID_LENGTH} characters, and all of them can be printed.")
    return _Client(scope["identity"], named[0])
