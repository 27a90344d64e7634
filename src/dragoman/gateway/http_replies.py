"""HTTP in a few words: read a body within bounds, answer, refuse. Plain ASGI; of the protocol it knows the envelope.

A handler that cannot go on raises `Stop`; `Gateway` replies with its status, and its reason as JSON.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

import msgspec

from dragoman import limits
from dragoman.gateway.budget import ByteBudget, ByteBudgets
from dragoman.gateway.envelope import Batched, Envelope, NotAMessage, peek
from dragoman.gateway.headers import Headers, number_in, value_of
from dragoman.gateway.precheck import precheck
from dragoman.gateway.streaming import Receive, Send

if TYPE_CHECKING:
    from starlette.types import Scope

# For the whole of a body; the largest in this time is what a telephone can do.
BODY_SECONDS: Final = 30.0
# Bodies that were read and are not handed on yet: of one principal, of all. A few of the largest at once.
BODIES_EACH_BYTES: Final = 64 * limits.MIB
BODIES_ALL_BYTES: Final = 256 * limits.MIB
# Of a body that is too large so much is read and thrown away, and for so long; less if nothing comes.
_DISCARD_BYTES: Final = 32 * limits.MIB
_DISCARD_SECONDS: Final = 5.0
_SILENT_SECONDS: Final = 0.2
# A name that is longer is none of ours, and is not kept.
_SESSION_LENGTH: Final = 256
_CLOSE_CODES: Final = {400: 4400, 404: 4404, 503: 1013}


Handle = Callable[["Scope", Receive, Send], Awaitable[None]]


class Stop(Exception):
    """A request ends here, with this status. `allow`: the methods there are, where the status is 405."""

    def __init__(self, status: int, reason: str, *, allow: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.allow = allow


class RouteEndpoint:
    """A function of a request as an ASGI application; starlette takes a plain function for something else.

    A request with a method that is none of `methods` is refused; empty: it is a WebSocket, which has none.
    """

    def __init__(self, handle: Handle, methods: str = "") -> None:
        self._handle = handle
        self._methods = methods

    async def __call__(self, scope: "Scope", receive: Receive, send: Send) -> None:
        if self._methods and scope["method"] not in self._methods.split(", "):
            raise Stop(405, f"Use {self._methods}.", allow=self._methods)
        await self._handle(scope, receive, send)


class Bodies:
    """Read bodies, and bound those that are read or worked on now, of each principal and of all."""

    def __init__(self) -> None:
        self._budgets = ByteBudgets(BODIES_EACH_BYTES, BODIES_ALL_BYTES)

    @asynccontextmanager
    async def read(self, scope: "Scope", receive: Receive, most: int) -> AsyncIterator[bytes]:
        """Yield the body of a request, and count its bytes while the block runs. Raise `Stop`: 413 past `most` bytes,
        503 while there are too many."""
        share = _Share(self._budgets.of(scope["identity"].principal))
        try:
            yield await _read_body(scope["headers"], receive, most, share)
        finally:
            # In every case, also where the client has hung up: the budget is the principal's, and lives longer than the
            # request.
            share.release()


class _Share:
    """What one body uses of a budget."""

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget
        self._taken = 0

    def acquire(self, amount: int) -> None:
        self._taken += amount
        if self._budget.add(amount):
            raise Stop(503, "Too many large bodies at once. Try again later.")

    def release(self) -> None:
        self._budget.add(-self._taken)
        self._taken = 0


async def _read_body(headers: Headers, receive: Receive, most: int, share: _Share) -> bytes:
    too_large = Stop(413, f"The body has more than {most} bytes.")
    length = number_in(value_of(headers, b"content-length"))
    if length is not None and length > most:
        if value_of(headers, b"expect") is None:  # who asks first has not sent anything
            await _discard(receive)
        raise too_large
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                event = await receive()
                if event["type"] != "http.request":
                    raise Stop(400, "The body ended early.")
                parts.append(event.get("body", b""))
                size += len(parts[-1])
                # Counted while it arrives, so that many bodies at once cannot be sent beside the budget.
                share.acquire(len(parts[-1]))
                if size > most:
                    await _discard(receive)
                    raise too_large
                if not event.get("more_body"):
                    return b"".join(parts)
    except TimeoutError:
        raise Stop(408, f"The body did not come within {BODY_SECONDS:g} seconds.") from None


async def _discard(receive: Receive) -> None:
    """Let what is on its way arrive: a client that is cut off in the middle of it never reads our answer."""
    size = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_DISCARD_SECONDS):
            while size < _DISCARD_BYTES:
                async with asyncio.timeout(_SILENT_SECONDS):
                    event = await receive()
                size += len(event.get("body", b""))
                if not event.get("more_body"):
                    return


def message_in(body: bytes) -> Envelope:
    """Return the envelope of the message that a body is. Raise `Stop` (400, 413, 501) if it is none."""
    rejected = precheck(body)
    # Before it is decoded: sixteen mebibytes of empty lists would hold the loop for seconds.
    if rejected is not None:
        raise Stop(rejected.status, rejected.reason)
    try:
        message = peek(body)
    except Batched:
        raise Stop(501, "Batches are not supported.") from None
    except NotAMessage:
        raise Stop(400, "The body is no JSON-RPC message.") from None
    if message.session_id is not None and len(message.session_id) > _SESSION_LENGTH:
        raise Stop(400, "That is no name of a session.")
    return message


async def answer(
    send: Send,
    status: int,
    body: bytes = b"",
    more: list[tuple[bytes, bytes]] | None = None,
    *,
    kind: bytes = b"application/json",
) -> None:
    """Send a whole response."""
    headers = [
        *([] if status == 204 else [(b"content-length", b"%d" % len(body))]),  # RFC 9110 8.6
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        *([(b"content-type", kind)] if body else []),
        *(more or []),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def refuse(scope: "Scope", send: Send, status: int, reason: str, *, allow: str = "") -> None:
    """Send a status and a sentence, on HTTP and on a WebSocket that was not accepted yet."""
    body = msgspec.json.encode({"error": reason})
    more = [(b"www-authenticate", b"Bearer")] if status == 401 else []
    if allow and status == 405:
        more = [(b"allow", allow.encode())]
    if status in (400, 408, 413, 421, 431):
        # The rest of the body may still be on its way, and would be read as the next request.
        more.append((b"connection", b"close"))
    if scope["type"] == "http":
        if scope.get("http_version") != "1.1":
            more = [header for header in more if header[0] != b"connection"]
        await answer(send, status, body, more)
        return
    headers = [(b"content-type", b"application/json"), (b"x-content-type-options", b"nosniff"), *more]
    if "websocket.http.response" in (scope.get("extensions") or {}):
        await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": body})
    else:
        await send({"type": "websocket.close", "code": _CLOSE_CODES.get(status, 4000 + status)})
