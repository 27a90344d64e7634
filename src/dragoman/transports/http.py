"""A remote agent over Streamable HTTP: messages are posted, what the agent says comes on event streams.

There is a stream for the connection and one for each session. A stream that breaks is opened again behind its last
event; a message whose post failed is posted again under its number, and heard once.
"""

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dragoman.errors import UsageError, how_to_install
from dragoman.host.tls import verify_for
from dragoman.transports.remote import (
    FIRST_SECONDS,
    OPEN_SECONDS,
    RETURN_SECONDS,
    RemoteTransport,
    ServerRefused,
    attempts,
    plainly,
)
from dragoman.transports.sse import EventReader

if TYPE_CHECKING:
    import httpx2

# A server of ours sends a comment every 15 seconds; a stream that is silent for longer is dead.
_SILENT_SECONDS: Final = 60.0
_POST_SECONDS: Final = 60.0
# To open the stream of a session before something is asked of it.
_OPEN_SECONDS: Final = 10.0
# Before a stream that broke is opened again: a server that ends each at once is not asked without a breath.
_PAUSE_SECONDS: Final = 0.02
# Questions of the agent whose answers we may still have to give.
_ASKED: Final = 4096


class _Params(msgspec.Struct):
    sessionId: object = None


class _Message(msgspec.Struct):
    id: object = None
    method: str = ""
    params: msgspec.Raw = msgspec.Raw(b"")
    result: msgspec.Raw = msgspec.Raw(b"")


class HttpTransport(RemoteTransport):
    """A `Transport`."""

    def __init__(self, url: str, token: str | None = None) -> None:
        super().__init__(url, token)
        self._client: httpx2.AsyncClient | None = None
        self._connection_id: str | None = None
        self._number = 0
        self._streams: dict[str | None, asyncio.Event] = {}
        self._asked: dict[object, str | None] = {}

    async def _run(self) -> None:
        try:
            import httpx2
        except ImportError:
            raise UsageError(f"HTTP needs an extra: {how_to_install('serve')}") from None
        self._errors = (httpx2.HTTPError, httpx2.StreamError, OSError)
        self._client = httpx2.AsyncClient(
            headers=self._headers,
            http2=_has_h2(),
            verify=verify_for(self.url),
            timeout=httpx2.Timeout(_POST_SECONDS, read=_SILENT_SECONDS, connect=OPEN_SECONDS),
            limits=httpx2.Limits(max_connections=None),
            follow_redirects=False,
        )
        while True:
            await self._post(await self.next_message())
            self.sent()

    # -- what we say -------------------------------------------------------------------------------------------------

    async def _post(self, body: bytes) -> None:
        message = _read(body)
        session_id = _session(message.params)
        if not message.method:
            session_id = self._asked.pop(_key(message.id), None)
        elif session_id is not None and self._connection_id is not None:
            await self._open_first(session_id)
        self._number += 1
        headers = {"Content-Type": "application/json", "Acp-Message-Number": str(self._number)}
        if self._connection_id is not None:
            headers["Acp-Connection-Id"] = self._connection_id
            if session_id is not None:
                headers["Acp-Session-Id"] = session_id
        response = await self._sent_once(headers, body)
        if self._connection_id is None:
            self._connection_id = response.headers.get("Acp-Connection-Id")
            if self._connection_id is not None:
                self._open(None)
            await self.deliver(response.content)
        elif response.status_code == 200 and response.content:
            await self.deliver(response.content)

    async def _sent_once(self, headers: dict[str, str], body: bytes) -> Any:
        assert self._client is not None
        problem = "no answer"
        extensions = {"trace": self._traced} if self._connection_id is None else None
        async for _ in attempts(FIRST_SECONDS if self._connection_id is None else RETURN_SECONDS):
            try:
                response = await self._client.post(self.url, headers=headers, content=body, extensions=extensions)
            except self._errors as error:
                problem = plainly(error)
                self.missed(problem)
                continue
            if response.status_code in (200, 202, 204):
                self.reached()
                return response
            problem = self.why(response.status_code)
            if response.status_code < 500 and response.status_code not in (408, 429):
                if self._connection_id is not None and response.status_code in (400, 409, 413, 415):
                    await self._answer_for(body, response.status_code)
                    return response
                raise ServerRefused(problem)
        raise self.unreachable(problem, ever=self._connection_id is not None)

    async def _traced(self, name: str, info: object) -> None:
        """The steps of the first request. Once it has left, a server may have made a connection for us."""
        if name.endswith(".send_request_headers.started"):
            self.speaking()

    async def _answer_for(self, body: bytes, status: int) -> None:
        """Deliver an error reply for a request that the server refused with `status`; the connection stays open."""
        message = _read(body)
        if message.method and message.id is not None:
            error = {"code": -32603, "message": f"The server refused the message ({status})"}
            await self.deliver(msgspec.json.encode({"jsonrpc": "2.0", "id": message.id, "error": error}))

    # -- what we hear ------------------------------------------------------------------------------------------------

    def _open(self, session_id: str | None) -> asyncio.Event:
        ready = self._streams.get(session_id)
        if ready is None:
            ready = self._streams[session_id] = asyncio.Event()
            self.spawn(self._listen(session_id, ready))
        return ready

    async def _open_first(self, session_id: str) -> None:
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                await self._open(session_id).wait()
        except TimeoutError:
            pass  # its messages wait for the stream

    async def _listen(self, session_id: str | None, ready: asyncio.Event) -> None:
        """One stream, opened again behind its last event for as long as the server has it."""
        assert self._client is not None and self._connection_id is not None
        headers = {"Accept": "text/event-stream", "Acp-Connection-Id": self._connection_id}
        if session_id is not None:
            headers["Acp-Session-Id"] = session_id
        while True:
            await asyncio.sleep(_PAUSE_SECONDS if ready.is_set() else 0)
            came = False
            problem = "no answer"
            async for _ in attempts(RETURN_SECONDS):
                try:
                    async with self._client.stream("GET", self.url, headers=headers) as response:
                        if response.status_code != 200:
                            if not self._goes_on(session_id, response.status_code):
                                self._streams.pop(session_id, None)
                                ready.set()
                                return
                            continue
                        ready.set()
                        came = True
                        self.reached()
                        headers.setdefault("Last-Event-ID", "0")  # from here on we take over what is ours
                        await self._hear(response, session_id, headers)
                        break
                except self._errors as error:
                    if came:
                        break
                    problem = plainly(error)
                    self.missed(problem)
            else:
                raise self.unreachable(problem, ever=True)

    def _goes_on(self, session_id: str | None, status: int) -> bool:
        """Whether a stream that was refused is asked for again."""
        if status >= 500 or status in (408, 409, 429):
            return True
        if session_id is None:
            raise ServerRefused(self.why(status))
        return False

    async def _hear(self, response: Any, session_id: str | None, headers: dict[str, str]) -> None:
        events = EventReader()
        async for data in response.aiter_bytes():
            for event in events.feed(data):
                message = _read(event.data)
                if message.method and message.id is not None:
                    self._asked[_key(message.id)] = session_id or _session(message.params)
                    if len(self._asked) > _ASKED:
                        del self._asked[next(iter(self._asked))]
                opened = _session(message.result)
                if opened is not None:
                    self._open(opened)
                await self.deliver(event.data)
                if event.id:
                    headers["Last-Event-ID"] = event.id

    # -- the end -----------------------------------------------------------------------------------------------------

    async def _say_goodbye(self) -> None:
        if self._client is not None and self._connection_id is not None:
            await self._client.delete(self.url, headers={"Acp-Connection-Id": self._connection_id})

    async def _free(self) -> None:
        if self._client is not None:
            await self._client.aclose()


def _read(body: bytes) -> _Message:
    """A glance at a message; whatever cannot be read is for the other side to refuse."""
    try:
        return msgspec.json.decode(body, type=_Message)
    except (ValueError, RecursionError):
        return _Message()


def _session(params: msgspec.Raw) -> str | None:
    try:
        found = msgspec.json.decode(params, type=_Params).sessionId if params else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, str) else None


def _key(id: object) -> object:
    return (type(id).__name__, str(id))


def _has_h2() -> bool:
    from importlib.util import find_spec

    return find_spec("h2") is not None
