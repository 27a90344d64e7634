"""A remote agent over Streamable HTTP: messages to it are posted, messages from it come on event streams.

There is a stream for the connection and one for each session. A stream that breaks is opened again behind its last
event; a message whose post failed is posted again under its number, so that the server handles it once.
"""

import asyncio
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from dragoman import limits
from dragoman.errors import UsageError, how_to_install
from dragoman.host.tls import verify_for
from dragoman.sse import EventReader
from dragoman.transports.message_head import read_head, session_in
from dragoman.transports.remote import (
    FIRST_SECONDS,
    OPEN_SECONDS,
    OURS,
    RETURN_SECONDS,
    RemoteTransport,
    ServerRefused,
    attempts,
    plain_reason,
)
from dragoman.transports.token import TokenFile

if TYPE_CHECKING:
    import httpx2

# A server of ours sends a comment every 15 seconds; a stream that is silent for longer is dead.
_SILENT_SECONDS: Final = 60.0
_POST_SECONDS: Final = 60.0
# To open the stream of a session before something is asked of it.
_OPEN_SECONDS: Final = 10.0
# Before a stream that broke is opened again: a server that ends each at once must not be called in a tight loop.
_PAUSE_SECONDS: Final = 0.02
# Requests of the agent whose session is remembered until we have answered.
_REMEMBERED_REQUESTS: Final = 4096


class HttpTransport(RemoteTransport):
    """A `Transport` to an agent behind `http://` or `https://`."""

    def __init__(self, url: str, token: str | TokenFile | None = None, ca_file: str = "") -> None:
        super().__init__(url, token, ca_file)
        self._client: httpx2.AsyncClient | None = None
        self._connection_id: str | None = None
        self._number = 0
        self._streams: dict[str | None, asyncio.Event] = {}
        self._errors: tuple[type[Exception], ...] = ()  # with which a connection breaks
        self._sessions_by_request: dict[tuple[str, str], str | None] = {}

    async def _run(self) -> None:
        try:
            import httpx2
        except ImportError:
            raise UsageError(f"HTTP needs an extra: {how_to_install('serve')}") from None
        self._errors = (httpx2.HTTPError, httpx2.StreamError, OSError, *_http2_errors(self.url))
        self._client = httpx2.AsyncClient(
            event_hooks={"request": [self._add_token]},
            http2=_has_h2(),
            verify=verify_for(self.url, self.ca_file),
            timeout=httpx2.Timeout(_POST_SECONDS, read=_SILENT_SECONDS, connect=OPEN_SECONDS),
            limits=httpx2.Limits(max_connections=None),
            follow_redirects=False,
        )
        while True:
            await self._post(await self.next_message())
            self.on_sent()

    async def _add_token(self, request: Any) -> None:
        request.headers.update(self.token_headers())

    # -- sending -------------------------------------------------------------------------------------------------------

    async def _post(self, body: bytes) -> None:
        message = read_head(body)
        session_id = session_in(message.params)
        if not message.method:
            session_id = self._sessions_by_request.pop(message.key, None)
        elif session_id is not None and self._connection_id is not None:
            await self._open_before_post(session_id)
        self._number += 1
        headers = {"Content-Type": "application/json", "Acp-Message-Number": str(self._number)}
        if self._connection_id is not None:
            headers["Acp-Connection-Id"] = self._connection_id
            if session_id is not None:
                headers["Acp-Session-Id"] = session_id
        response = await self._post_until_accepted(headers, body)
        if self._connection_id is None:
            self._connection_id = response.headers.get("Acp-Connection-Id")
            if self._connection_id is not None:
                self._open(None)
            await self.deliver(response.content)
        elif response.status_code == 200 and response.content:
            await self.deliver(response.content)

    async def _post_until_accepted(self, headers: dict[str, str], body: bytes) -> Any:
        assert self._client is not None
        problem = "no answer"
        extensions = {"trace": self._on_trace} if self._connection_id is None else None
        async for _ in attempts(FIRST_SECONDS if self._connection_id is None else RETURN_SECONDS):
            try:
                response = await self._client.post(self.url, headers=headers, content=body, extensions=extensions)
            except self._errors as error:
                problem = plain_reason(error)
                self.on_attempt_failed(problem)
                continue
            if response.status_code in (200, 202, 204):
                self.on_reached()
                return response
            problem = self.refusal(response.status_code)
            if self.is_final(response.status_code, connected=self._connection_id is not None):
                if self._connection_id is not None and response.status_code in (400, 409, 413, 415):
                    await self._reply_for_server(body, response.status_code)
                    return response
                raise ServerRefused(problem)
        raise self.unreachable(problem, ever=self._connection_id is not None)

    async def _on_trace(self, name: str, info: object) -> None:
        """Watch the steps of the first request: once it is on its way, the server may have made a connection for us."""
        if name.endswith(".send_request_headers.started"):
            self.on_sending()

    async def _reply_for_server(self, body: bytes, status: int) -> None:
        """Deliver an error reply for a request that the server refused with `status`; the connection stays open."""
        message = read_head(body)
        if message.is_request:
            error = {"code": -32603, "message": f"The server refused the message ({status})"}
            await self.deliver(msgspec.json.encode({"jsonrpc": "2.0", "id": message.id, "error": error}))

    # -- receiving -----------------------------------------------------------------------------------------------------

    def _open(self, session_id: str | None) -> asyncio.Event:
        ready = self._streams.get(session_id)
        if ready is None:
            ready = self._streams[session_id] = asyncio.Event()
            self.spawn(self._read_stream(session_id, ready))
        return ready

    async def _open_before_post(self, session_id: str) -> None:
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                await self._open(session_id).wait()
        except TimeoutError:
            pass  # its messages wait for the stream

    async def _read_stream(self, session_id: str | None, ready: asyncio.Event) -> None:
        """Read one stream, and open it again behind its last event, for as long as the server has it."""
        assert self._client is not None and self._connection_id is not None
        headers = {"Accept": "text/event-stream", "Acp-Connection-Id": self._connection_id, **OURS}
        if session_id is not None:
            headers["Acp-Session-Id"] = session_id
        while True:
            await asyncio.sleep(_PAUSE_SECONDS if ready.is_set() else 0)
            is_open = False
            problem = "no answer"
            async for _ in attempts(RETURN_SECONDS):
                try:
                    async with self._client.stream("GET", self.url, headers=headers) as response:
                        if response.status_code != 200:
                            if not self._is_retried(session_id, response.status_code):
                                self._streams.pop(session_id, None)
                                ready.set()
                                return
                            continue
                        ready.set()
                        is_open = True
                        self.on_reached()
                        # From here on a broken stream is continued, and not begun anew.
                        headers.setdefault("Last-Event-ID", "0")
                        await self._receive_events(response, session_id, headers)
                        break
                except self._errors as error:
                    if is_open:
                        break
                    problem = plain_reason(error)
                    self.on_attempt_failed(problem)
            else:
                raise self.unreachable(problem, ever=True)

    def _is_retried(self, session_id: str | None, status: int) -> bool:
        """Return whether a refused stream is opened again. Raise `ServerRefused` for that of the connection."""
        if status == 409 or not self.is_final(status, connected=True):
            return True
        if session_id is None:
            raise ServerRefused(self.refusal(status))
        return False

    async def _receive_events(self, response: Any, session_id: str | None, headers: dict[str, str]) -> None:
        events = EventReader()
        async for data in response.aiter_bytes():
            for event in events.feed(data):
                message = read_head(event.data)
                if message.is_request:
                    self._sessions_by_request[message.key] = session_id or session_in(message.params)
                    limits.evict_oldest(self._sessions_by_request, _REMEMBERED_REQUESTS)
                opened = session_in(message.result)
                if opened is not None:
                    self._open(opened)
                await self.deliver(event.data)
                if event.id:
                    headers["Last-Event-ID"] = event.id

    # -- the end -----------------------------------------------------------------------------------------------------

    async def _send_goodbye(self) -> None:
        if self._client is not None and self._connection_id is not None:
            await self._client.delete(self.url, headers={"Acp-Connection-Id": self._connection_id})

    async def _free(self) -> None:
        if self._client is not None:
            await self._client.aclose()


def _http2_errors(url: str) -> tuple[type[Exception], ...]:
    """Return what the HTTP/2 library raises, which httpx2 passes on as it is.

    Its states end with the GOAWAY by which a server says that it takes no more; what comes behind that is a mistake to
    it, and to us a connection that is over.
    """
    if urlsplit(url).scheme != "https" or not _has_h2():
        return ()  # only TLS can choose HTTP/2
    from h2.exceptions import H2Error

    return (H2Error,)


def _has_h2() -> bool:
    from importlib.util import find_spec

    return find_spec("h2") is not None
