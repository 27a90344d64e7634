"""How a request names its connection, its session and its position: in headers, or in the query where a browser cannot
set those."""

from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from dragoman.gateway.client_side import ClientSide
from dragoman.gateway.connections import Connections
from dragoman.gateway.headers import Headers, value_of
from dragoman.gateway.http_replies import Stop

if TYPE_CHECKING:
    from starlette.types import Scope

CONNECTION: Final = b"acp-connection-id"
SESSION: Final = b"acp-session-id"
LAST_EVENT: Final = b"last-event-id"
# Two are known.
_QUERY_FIELDS: Final = 8


def with_query(scope: "Scope") -> Headers:
    """Return the headers, with those two that a browser has to put in the query."""
    try:
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"), max_num_fields=_QUERY_FIELDS)
    except ValueError:
        raise Stop(400, "The query has too much in it.") from None
    # A header counts before the query: a proxy that logs addresses has seen the query.
    for name, header in (("connection", CONNECTION), ("after", LAST_EVENT)):
        if name in query and value_of(scope["headers"], header) is None:
            scope["headers"] = [*scope["headers"], (header, query[name][0].encode("latin-1", "replace"))]
    return list(scope["headers"])


def client_side_of(scope: "Scope", connections: Connections, connection_id: str | None = None) -> ClientSide:
    """Return the client of the connection that a request names, by its header if not by `connection_id`. Raise `Stop`:
    400 where it names none, 404 where there is none for its principal."""
    connection_id = connection_id or value_of(scope["headers"], CONNECTION)
    if connection_id is None:
        raise Stop(400, "Acp-Connection-Id is missing.")
    client_side = connections.find(connection_id, scope["identity"])
    if client_side is None:
        raise Stop(404, "There is no such connection.")
    # A browser that was logged in again has another cookie; the newest one decides how long the connection lives.
    connection, newest = client_side.connection, scope["identity"]
    if newest.cookie:
        connection.token_identity = connection.token_identity._replace(cookie=newest.cookie)
    # So does the newest token of an issuer: a program gets another every few minutes.
    if newest.is_granted and connection.token_identity.is_granted:
        connection.token_identity = connection.token_identity._replace(digest=newest.digest)
    return client_side
