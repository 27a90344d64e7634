"""What a server answers: `/acp` for the first of its agents, `/acp/NAME` for each, the page, health and metrics.

A client chooses its agent by the path, or by the header `Dragoman-Agent` at `/acp`; without either it is the first one.
A connection stays with its agent: at `/acp` it is found by its id alone. `/acp/rpc` and `/acp/sse` are there only where
they were asked for (`elephant`). The guard stands before all of it.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from dragoman.errors import LinkClosed
from dragoman.gateway.connection_names import CONNECTION, with_query
from dragoman.gateway.console_api.routes import Console
from dragoman.gateway.elephant import RPC, SSE, Elephant
from dragoman.gateway.endpoint import AcpEndpoint
from dragoman.gateway.guard import Guard, bearer_in
from dragoman.gateway.headers import Headers, value_of
from dragoman.gateway.host_check import Refusal
from dragoman.gateway.http_replies import Bodies, RouteEndpoint, Stop, answer, refuse
from dragoman.gateway.hub import Hub
from dragoman.gateway.idle_sockets import IdleSockets, peer_of
from dragoman.gateway.issuer_login import IssuerLogin
from dragoman.gateway.issuer_settings import IssuerAway, NotAccepted
from dragoman.gateway.live_traces import FOLLOWERS, TraceFollowing
from dragoman.gateway.metrics import metrics_of
from dragoman.gateway.pages import Pages
from dragoman.gateway.session_streams import Full
from dragoman.gateway.streaming import STREAM, Event, Receive, Send, Stream, part, wait_until_gone
from dragoman.gateway.token_types import TokenIdentity, TokenLimits

if TYPE_CHECKING:
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Scope

OPEN_PATHS: Final = ("/health", "/ready")
# Which agent a request at `/acp` is for.
AGENT: Final = b"dragoman-agent"
_METHODS: Final = "GET, POST, DELETE"
# A trace on which nothing passes gets an empty line so often.
_TRACE_SECONDS: Final = 15.0


class Gateway:
    """The ASGI application of one server. `hubs` are its agents by name, at least one; the first is that of `/acp`.
    `issuer` lets people of an OpenID issuer in, beside tokens; `console` is what the page asks beside ACP."""

    def __init__(
        self,
        hubs: Mapping[str, Hub],
        guard: Guard,
        elephant: Elephant | None = None,
        issuer: IssuerLogin | None = None,
        console: Console | None = None,
    ) -> None:
        self._hubs = hubs
        first = next(iter(hubs.values()))
        self._monitor = first.monitor
        self._guard = guard
        self._elephant = elephant
        self._issuer = issuer
        self._console = console
        self._pages = Pages(hubs, first.access.ceilings, guard, issuer=issuer)
        bodies = Bodies() if elephant is None else elephant.bodies
        self._endpoints = {name: AcpEndpoint(hub, guard, bodies) for name, hub in hubs.items()}
        self.idle_sockets: Final = IdleSockets(time.monotonic)
        self._routes = self._make_routes()

    def __repr__(self) -> str:
        return f"<Gateway {dict(self._hubs)!r}>"

    async def __call__(self, scope: "Scope", receive: Receive, send: Send) -> None:
        # Lifespan events are not for us: the server starts and stops the hub itself.
        if scope["type"] in ("http", "websocket"):
            with self.idle_sockets.request(scope.get("client")):
                await self._answer(scope, receive, send)
                # Here and not where it was found out what to stream: thousands of streams are open and silent, and what
                # is on the way to there would stay in memory for each of them.
                stream: Stream | None = scope.pop(STREAM, None)
                if stream is not None:
                    scope.clear()
                    await self._stream(stream, receive, send)

    async def _stream(self, stream: Stream, receive: Receive, send: Send) -> None:
        try:
            await stream(receive, send)
        except Exception as error:
            self._monitor.report(error)

    async def _answer(self, scope: "Scope", receive: Receive, send: Send) -> None:
        headers: Headers = scope["headers"]
        scheme = "https" if scope["scheme"] in ("https", "wss") else "http"
        # Host and Origin before the token: a page of another origin must not even learn whether a token is right.
        refusal = self._guard.refusal(headers, scheme)
        if refusal is None and scope["path"] not in OPEN_PATHS and not self._pages.is_open(scope["path"]):
            entered = await self._admit(scope) or await self._authenticate(scope)
            if isinstance(entered, Refusal):
                refusal = entered
            else:
                scope["identity"] = entered
        if refusal is not None:
            await self._refuse(scope, send, refusal.status, refusal.reason)
            return
        # A handler may fail after it has begun to answer, a stream most likely: then there is no status left to send,
        # and the broken response itself tells the client.
        has_begun = False

        async def send_and_note(event: Event) -> None:
            nonlocal has_begun
            has_begun = True
            await send(event)

        try:
            await self._routes(scope, receive, send_and_note)
        except Stop as stop:
            await self._refuse(scope, send, stop.status, stop.reason, allow=stop.allow)
        except Full:
            await self._refuse(scope, send, 503, "The server is full. Try again later.")
        # The connection was found and has ended before its message was handed on: for the client that is one that is
        # gone.
        except LinkClosed:
            await self._refuse(scope, send, 404, "There is no such connection.")
        except Exception as error:
            self._monitor.report(error)
            if not has_begun:
                await self._refuse(scope, send, 500, "Something went wrong here.")

    async def _admit(self, scope: "Scope") -> Refusal | None:
        """Have a bearer token of the issuer looked at, if it is one; return why it does not count."""
        shown = None if self._issuer is None else bearer_in(scope["headers"])
        if self._issuer is None or shown is None:
            return None
        try:
            await self._issuer.admit(shown)
        except NotAccepted as error:
            address = (scope.get("client") or ("",))[0]
            return await self._guard.refuse(address, f"The token does not count here: {error}.")
        except IssuerAway as error:
            return Refusal(503, str(error))
        return None

    async def _authenticate(self, scope: "Scope") -> TokenIdentity | Refusal:
        client, server = scope.get("client") or ("", 0), scope.get("server") or ("", 0)
        method = scope.get("method", "GET")
        # Only these two paths may be used without a token, by programs of our own user.
        if self._elephant is not None and scope["path"] in (RPC, SSE):
            return await self._elephant.authenticate(scope["headers"], peer_of(*client), peer_of(*server), method)
        return await self._guard.authenticate(scope["headers"], client[0], method)

    async def _refuse(self, scope: "Scope", send: Send, status: int, reason: str, *, allow: str = "") -> None:
        address = (scope.get("client") or ("",))[0]
        self._monitor.on_refusal(status, scope.get("method", "WEBSOCKET"), scope["path"], address)
        await refuse(scope, send, status, reason, allow=allow)

    def _make_routes(self) -> "ASGIApp":
        from starlette.routing import Route, Router, WebSocketRoute

        async def nothing(scope: "Scope", receive: Receive, send: Send) -> None:
            raise Stop(404, "There is nothing here.")

        return Router(
            [
                Route("/acp", RouteEndpoint(self._http, _METHODS)),
                WebSocketRoute("/acp", RouteEndpoint(self._websocket)),
                *(route for name, endpoint in self._endpoints.items() if name for route in _routes_of(name, endpoint)),
                Route("/health", RouteEndpoint(self._health, "GET, HEAD")),
                Route("/ready", RouteEndpoint(self._ready, "GET, HEAD")),
                Route("/metrics", RouteEndpoint(self._metrics, "GET, HEAD")),
                Route("/trace/{session}", RouteEndpoint(self._trace, "GET")),
                *self._pages.routes(),
                *([] if self._console is None else self._console.routes()),
                *([] if self._elephant is None else _elephant_routes(self._elephant)),
            ],
            redirect_slashes=False,
            default=nothing,
        )

    # -- `/acp`: of which agent it is ---------------------------------------------------------------------------------

    async def _http(self, scope: "Scope", receive: Receive, send: Send) -> None:
        await self._endpoint_of(scope).http(scope, receive, send)

    async def _websocket(self, scope: "Scope", receive: Receive, send: Send) -> None:
        await self._endpoint_of(scope).websocket(scope, receive, send)

    def _endpoint_of(self, scope: "Scope") -> AcpEndpoint:
        """Return the endpoint that a request at `/acp` is for. Raise `Stop` (404) for an agent that is not here."""
        headers = with_query(scope) if scope["type"] == "websocket" else scope["headers"]
        name = value_of(headers, AGENT)
        if name is not None:
            if name not in self._endpoints:
                raise Stop(404, "There is no such agent here.")
            return self._endpoints[name]
        connection_id = value_of(headers, CONNECTION)
        for found, hub in self._hubs.items():
            if connection_id in hub.connections:
                return self._endpoints[found]
        return next(iter(self._endpoints.values()))

    # -- operations --------------------------------------------------------------------------------------------------

    async def _health(self, scope: "Scope", receive: Receive, send: Send) -> None:
        await answer(send, 200, b'{"status":"ok"}')

    async def _ready(self, scope: "Scope", receive: Receive, send: Send) -> None:
        if any(hub.is_stopping for hub in self._hubs.values()):
            raise Stop(503, "The server is stopping.")
        await answer(send, 200, b'{"status":"ready"}')

    async def _metrics(self, scope: "Scope", receive: Receive, send: Send) -> None:
        if not scope["identity"].may("admin"):
            raise Stop(403, "This token may not read the metrics.")
        await answer(send, 200, metrics_of(self._hubs.values(), self._monitor), kind=b"text/plain; version=0.0.4")

    async def _trace(self, scope: "Scope", receive: Receive, send: Send) -> None:
        """Send what passes in an open session as the lines of a trace, until the reader leaves or the session ends."""
        identity: TokenIdentity = scope["identity"]
        if not identity.may("admin") or identity.limits != TokenLimits() or identity.share or identity.node:
            raise Stop(403, "This token may not follow sessions: it needs admin, and no limits.")
        session_id = scope["path_params"]["session"]
        if not any(session_id in hub.sessions for hub in self._hubs.values()):
            raise Stop(404, "There is no such session open here.")
        live = self._monitor.live
        if live.followers >= FOLLOWERS:
            raise Full
        gone = asyncio.ensure_future(wait_until_gone(receive))
        try:
            with live.follow(session_id) as follower:
                headers = [(b"content-type", b"application/x-ndjson"), (b"cache-control", b"no-store")]
                headers += [(b"x-accel-buffering", b"no"), (b"x-content-type-options", b"nosniff")]
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                await _send_lines(follower, gone, send)
        finally:
            gone.cancel()


async def _send_lines(follower: TraceFollowing, gone: "asyncio.Future[None]", send: Send) -> None:
    while not gone.done():
        reading = asyncio.ensure_future(follower.read())
        try:
            waited: list[asyncio.Future[Any]] = [reading, gone]
            await asyncio.wait(waited, timeout=_TRACE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                await send(part(b"\n"))  # an empty line, which keeps proxies from giving up
                continue
            lines = reading.result()
            await send(part(lines or b"", more=lines is not None))
            if lines is None:
                return
        finally:
            reading.cancel()


def _elephant_routes(elephant: Elephant) -> "list[BaseRoute]":
    from starlette.routing import Route

    return [Route(RPC, RouteEndpoint(elephant.rpc, "POST")), Route(SSE, RouteEndpoint(elephant.sse, "GET"))]


def _routes_of(name: str, endpoint: AcpEndpoint) -> "list[BaseRoute]":
    from starlette.routing import Route, WebSocketRoute

    path = f"/acp/{name}"
    return [
        Route(path, RouteEndpoint(endpoint.http, _METHODS)),
        WebSocketRoute(path, RouteEndpoint(endpoint.websocket)),
    ]
