"""A gateway on a real socket, and raw clients for it."""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx2

from dragoman.agent.agent import Agent
from dragoman.gateway.agent_source import AgentSource, in_process
from dragoman.gateway.ceilings import Ceilings
from dragoman.gateway.console_api.routes import ConsoleSettings
from dragoman.gateway.hub import Hub
from dragoman.gateway.issuer_settings import IssuerSettings
from dragoman.gateway.logbook import Logbook
from dragoman.gateway.open_questions import OnPermission
from dragoman.gateway.principal_usage import PrincipalUsage
from dragoman.gateway.server import GatewayServer
from dragoman.gateway.session_access import FolderOf
from dragoman.gateway.session_directory import SessionDirectory
from dragoman.gateway.shared_state import SharedAgentState
from dragoman.gateway.token_store import TokenStore
from dragoman.gateway.token_types import SCOPES, Scope
from dragoman.sse import EventReader
from tests.support.messages import Message, hello
from tests.support.waiting import until


class Served(NamedTuple):
    """A gateway that runs."""

    server: GatewayServer
    tokens: TokenStore
    token: str
    bugs: list[Exception]

    @property
    def hub(self) -> Hub:
        return self.server.hub

    @property
    def http(self) -> str:
        return f"http://127.0.0.1:{self.server.port}/acp"

    @property
    def ws(self) -> str:
        return f"ws://127.0.0.1:{self.server.port}/acp"

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    async def forget(self, connection_id: str) -> None:
        """So much time passes that a connection that is not read is ended; see `_often_swept`."""
        kept, self.hub.connections.kept_seconds = self.hub.connections.kept_seconds, 0.0
        await until(lambda: connection_id not in self.hub.connections, "the end of the connection")
        self.hub.connections.kept_seconds = kept

    def token_of(self, name: str, scopes: tuple[Scope, ...] = SCOPES, principal: str = "") -> str:
        return self.tokens.make(name, scopes, principal)


@asynccontextmanager
async def gateway(
    agent: Agent | AgentSource,
    folder: Path,
    *,
    log: Logbook | None = None,
    folder_of: FolderOf | None = None,
    grace: float = 0.2,
    proxy_port: int = 0,
    versions: tuple[int, ...] = (1, 2),
    elephant: bool = False,
    host: str = "127.0.0.1",
    logins: Path | None = None,
    ceilings: Ceilings | None = None,
    on_permission: OnPermission | None = None,
    beside: Mapping[str, Agent] | None = None,
    certificate: tuple[Path, Path] | tuple[None, None] = (None, None),
    issuer: IssuerSettings | None = None,
    state: SharedAgentState | None = None,
    console: ConsoleSettings | None = None,
    usage: PrincipalUsage | None = None,
) -> AsyncIterator[Served]:
    """The agent behind a gateway; with others `beside` it, by their names, it is called `main`."""
    tokens = TokenStore(folder / "tokens.json")
    token = tokens.make("default")
    bugs: list[Exception] = []
    hub = Hub(
        agent if isinstance(agent, AgentSource) else AgentSource(in_process(agent.serve, bugs.append), versions),
        state=state or SharedAgentState(SessionDirectory(folder / "owners.jsonl")),
        folder_of=folder_of,
        report=bugs.append,
        log=log,
        ceilings=ceilings,
        on_permission=on_permission,
        usage=usage,
    )
    allowed = (f"127.0.0.1:{proxy_port}",)
    hubs = {"main": hub}
    for name, other in (beside or {}).items():
        state = SharedAgentState(SessionDirectory(folder / "owners.jsonl", name))
        hubs[name] = Hub(AgentSource(in_process(other.serve, bugs.append), versions), state=state, beside=hub)
    server = GatewayServer(
        hub if beside is None else hubs,
        tokens,
        port=free_port(),
        elephant=elephant,
        logins=logins,
        host=host,
        allowed_hosts=allowed,
        certificate=certificate[0],
        key=certificate[1],
        issuer=issuer,
        console=console,
    )
    await server.start()
    try:
        yield Served(server, tokens, token, bugs)
        assert bugs == [], bugs
    finally:
        await server.stop(grace)


# No test of ours meets an authority, and reading the list of them takes longer than most of the tests.
_NO_CERTIFICATES: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def http_client(**settings: Any) -> httpx2.AsyncClient:
    """A client of HTTP without TLS."""
    return httpx2.AsyncClient(verify=_NO_CERTIFICATES, **{"timeout": 30, **settings})


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RawHttp:
    """A client in raw JSON over Streamable HTTP, which reads what it opened."""

    def __init__(self, served: Served, client: httpx2.AsyncClient, token: str = "") -> None:
        self.served = served
        self.client = client
        self.connection = ""
        self.heard: list[Message] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self.by_stream: dict[str, list[tuple[str, Message]]] = {}
        self._headers = {"Authorization": f"Bearer {token or served.token}"}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def post(self, message: Message, session: str = "", **more: str) -> httpx2.Response:
        headers = self._headers | ({"Acp-Connection-Id": self.connection} if self.connection else {})
        if session:
            headers["Acp-Session-Id"] = session
        return await self.client.post(
            self.served.http,
            json={"jsonrpc": "2.0", **message},
            headers=headers | {k.replace("_", "-"): v for k, v in more.items()},
        )

    async def hello(self, version: int) -> Message:
        answer = await self.post(hello(version))
        assert answer.status_code == 200, answer.text
        self.connection = answer.headers["Acp-Connection-Id"]
        body: Message = answer.json()
        return body

    async def open(self, session: str = "", *, after: str | None = None) -> int:
        """Open a stream and read it from now on; its status."""
        headers = self._headers | {"Accept": "text/event-stream", "Acp-Connection-Id": self.connection}
        if session:
            headers["Acp-Session-Id"] = session
        if after is not None:
            headers["Last-Event-ID"] = after
        status: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def read() -> None:
            async with self.client.stream("GET", self.served.http, headers=headers) as response:
                status.set_result(response.status_code)
                events = EventReader()
                async for data in response.aiter_bytes():
                    await self.reads.wait()
                    for event in events.feed(data):
                        message = msgspec_decode(event.data)
                        self.heard.append(message)
                        self.by_stream.setdefault(session, []).append((event.id, message))

        task = asyncio.create_task(_quiet(read(), status))
        code = await status
        if code == 200:
            self._tasks[session] = task
        return code

    async def drop(self, session: str = "") -> None:
        """Close the socket of a stream."""
        task = self._tasks.pop(session)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def answer(self, id: int) -> Message:
        """The answer to a request, from whichever stream."""
        found: list[Message] = []

        def look() -> bool:
            found[:] = [m for m in self.heard if m.get("id") == id and "method" not in m]
            return bool(found)

        await until(look)
        return found[0]

    async def session(self, id: int = 1, *, stream: bool = True) -> str:
        """A new session, with its stream."""
        posted = await self.post({"id": id, "method": "session/new", "params": {"cwd": os.getcwd(), "mcpServers": []}})
        assert posted.status_code == 202, posted.text
        answer = await self.answer(id)
        assert "result" in answer, answer
        session_id: str = answer["result"]["sessionId"]
        if stream:
            assert await self.open(session_id) == 200
        return session_id

    async def leave(self) -> None:
        for session in list(self._tasks):
            await self.drop(session)


async def _quiet(work: Any, status: "asyncio.Future[int]") -> None:
    try:
        await work
    except (httpx2.HTTPError, OSError) as error:
        if not status.done():
            status.set_exception(error)


def msgspec_decode(data: bytes) -> Message:
    import msgspec

    decoded: Message = msgspec.json.decode(data)
    return decoded


@asynccontextmanager
async def raw_http(served: Served, version: int = 1, *, token: str = "", greet: bool = True) -> AsyncIterator[RawHttp]:
    """A raw client that was greeted and reads its connection's stream."""
    async with http_client(limits=httpx2.Limits(max_connections=None)) as client:
        raw = RawHttp(served, client, token)
        try:
            if greet:
                await raw.hello(version)
                assert await raw.open() == 200
            yield raw
        finally:
            await raw.leave()


def counting(count: int, pause: Callable[[], Any] | None = None) -> Agent:
    """An agent that says so many numbers."""
    agent = Agent("counting")

    @agent.prompt
    async def reply(session: Any, prompt: Any) -> None:
        for number in range(count):
            await session.say(f"{number} ")
            if pause is not None:
                await pause()

    return agent
