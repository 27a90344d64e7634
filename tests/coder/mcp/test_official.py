"""Servers made with the official SDK: on pipes, over HTTP, over SSE, of both generations. And bad ones behind a URL."""

import asyncio
import gzip
import logging
import socket
import sys
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.coder.mcp import Config
from dragoman.coder.mcp.settings import NoQuestions
from dragoman.vocabulary.content import Resource, Text, TextResource
from dragoman.vocabulary.requests import HttpHeader, McpHttp, McpSse, McpStdio
from dragoman.vocabulary.services import ElicitationAnswer, Form, Url
from tests.support.mcp_servers import BOUNDS, LONG, NO_DESK, NOT_SHOWN, Bench, running

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

CANARY = "canary-94d0e2"
SDK_SERVER = str(Path(__file__).parent / "sdk_server.py")


@asynccontextmanager
async def served(app: ASGIApp, port: int = 0) -> AsyncIterator[int]:
    """The app on a port of this machine."""
    import uvicorn  # collecting tests does not wait for it

    listener = socket.create_server(("127.0.0.1", port))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1, ws="none"))
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        # A stream that is held open is not waited for.
        server.force_exit = True
        await serving
        listener.close()


def make_server() -> "MCPServer":
    """A server of the SDK's, which takes half a second to import."""
    from tests.coder.mcp.sdk_server import make_server

    return make_server()


async def check(bench: Bench, name: str = "official") -> None:
    """It works, and notices a change."""
    assert [tool.name for tool in bench.servers.tools()] == [
        f"mcp__{name}__{tool}" for tool in ("add", "headers", "redefine", "large", "hang", "book")
    ]
    assert bench.tool(f"mcp__{name}__add").description == "Add two numbers."
    outcome = await bench.call(f"mcp__{name}__add", a=2, b=3)
    assert (outcome.text, outcome.failed, outcome.raw) == ("5", False, {"result": 5})
    wrong = await bench.call(f"mcp__{name}__add", a="two")
    assert wrong.failed
    assert not (await bench.call(f"mcp__{name}__redefine", text="Take two numbers.")).failed
    await bench.until(lambda: bench.tool(f"mcp__{name}__add").description == "Take two numbers.")


@pytest.mark.slow
async def test_a_server_on_pipes() -> None:
    async with running(McpStdio("official", sys.executable, [SDK_SERVER])) as bench:
        await check(bench)


@pytest.mark.parametrize("json_response", [False, True])
async def test_a_server_over_http(json_response: bool) -> None:
    async with served(make_server().streamable_http_app(json_response=json_response)) as port:
        headers = [HttpHeader("Authorization", f"Bearer {CANARY}")]
        async with running(McpHttp("official", f"http://127.0.0.1:{port}/mcp", headers)) as bench:
            assert f"authorization: Bearer {CANARY}" in (await bench.call("mcp__official__headers")).text
            large = await bench.call("mcp__official__large", size=9_000_000)
            assert large.failed
            assert CANARY not in large.text
            await check(bench)


async def test_a_server_over_sse() -> None:
    async with (
        served(make_server().sse_app()) as port,
        running(McpSse("official", f"http://me:p%40ss@127.0.0.1:{port}/sse")) as bench,
    ):
        basic = b64encode(b"me:p@ss").decode()
        assert f"authorization: Basic {basic}" in (await bench.call("mcp__official__headers")).text
        await check(bench)


@pytest.mark.parametrize("newer", [False, True])
async def test_a_call_that_hangs_behind_a_url_can_be_cancelled(newer: bool) -> None:
    app = make_server().streamable_http_app()
    async with (
        served(without_initialize(app) if newer else app) as port,
        running(McpHttp("official", f"http://127.0.0.1:{port}/mcp")) as bench,
    ):
        call = asyncio.ensure_future(bench.call("mcp__official__hang"))
        await asyncio.wait([call], timeout=0.2)
        began = time.monotonic()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert time.monotonic() - began < LONG / 2
        assert (await bench.call("mcp__official__add", a=1, b=1)).text == "2"


async def test_a_server_that_speaks_only_the_newer_protocol() -> None:
    async with (
        served(without_initialize(make_server().streamable_http_app())) as port,
        running(McpHttp("official", f"http://127.0.0.1:{port}/mcp")) as bench,
    ):
        await check(bench)


class Traveller(NoQuestions):
    """A user who always wants to go to Oslo."""

    async def ask(self, server: str, message: str, mode: Form | Url) -> ElicitationAnswer:
        assert (server, message) == ("official", "Where to?")
        return ElicitationAnswer("accept", {"city": "Oslo"})


@pytest.mark.parametrize("newer", [False, True])
async def test_prompts_resources_and_questions_of_both_generations(newer: bool) -> None:
    app = make_server().streamable_http_app()
    async with (
        served(without_initialize(app) if newer else app) as port,
        running(McpHttp("official", f"http://127.0.0.1:{port}/mcp"), questions=Traveller()) as bench,
    ):
        assert bench.only.prompts == ["/mcp__official__review"]
        assert bench.only.resources == ["@official:docs://guide", "@official:docs://page/{number}"]
        (prompt,) = bench.servers.typed_prompts()
        assert (prompt.prompt.description, prompt.prompt.hint) == ("Review a file.", "<file> [style]")
        read, fetch = bench.servers.typed_tools()
        page = await read.run(await bench.approve(read, {"uri": "docs://page/7"}), NOT_SHOWN, NO_DESK)
        assert page.content == [Resource(TextResource("Page 7.", "docs://page/7", "text/plain"))]
        given = {"prompt": "review", "arguments": "a.py long"}
        fetched = await fetch.run(await bench.approve(fetch, given), NOT_SHOWN, NO_DESK)
        assert fetched.content == [Text("Review a.py, long.")]
        booked = await bench.call("mcp__official__book")
        assert booked.text == "to Oslo"


async def test_a_server_that_was_restarted_is_connected_again() -> None:
    async with served(make_server().streamable_http_app()) as port:
        config = McpHttp("official", f"http://127.0.0.1:{port}/mcp")
        bounds = BOUNDS._replace(pauses=(0.01, 0.2, 0.2))
        bench_running = running(config, bounds=bounds)
        bench = await bench_running.__aenter__()
    try:
        async with served(make_server().streamable_http_app(), port):
            await bench.call("mcp__official__add", a=1, b=1)
            await bench.until(lambda: bench.only.state != "connected")
            await bench.until_state("connected")
            assert (await bench.call("mcp__official__add", a=1, b=1)).text == "2"
    finally:
        await bench_running.__aexit__(None, None, None)
    assert bench.notices == []


async def refuses(request: Request) -> Response:
    return Response(CANARY, status_code=401)


async def floods(request: Request) -> Response:
    async def body() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 1_000_000

    return StreamingResponse(body(), media_type="application/json")


async def packs(request: Request) -> Response:
    return Response(
        gzip.compress(b" " * 20_000_000), media_type="application/json", headers={"content-encoding": "gzip"}
    )


async def turns_away(request: Request) -> Response:
    return Response(status_code=307, headers={"location": "http://127.0.0.1:1/elsewhere"})


async def chats(request: Request) -> Response:
    return JSONResponse({"hello": "world"})


@pytest.fixture
def log() -> Iterator[StringIO]:
    """What a program that logs everything would have in its log."""
    root, text = logging.getLogger(), StringIO()
    handler, level = logging.StreamHandler(text), root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield text
    root.setLevel(level)
    root.removeHandler(handler)


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (refuses, "answered with HTTP status 401"),
        (floods, "sent an answer larger than 8 MiB, which was thrown away"),
        (packs, "failed (DecodingError)"),
        (turns_away, "not followed"),
        (chats, "answered with something that is not MCP"),
        (None, "cannot be reached"),
    ],
)
@pytest.mark.parametrize("kind", [McpHttp, McpSse])
async def test_a_bad_server_behind_a_url_is_reported_once_and_without_secrets(
    behaviour: Callable[[Request], Awaitable[Response]] | None,
    reason: str,
    kind: type[McpHttp] | type[McpSse],
    log: StringIO,
) -> None:
    app = Starlette(routes=[Route("/mcp", behaviour, methods=["GET", "POST"])] if behaviour else [])
    async with served(app) as port:
        url = f"http://me:{CANARY}@127.0.0.1:{port if behaviour else 1}/mcp?key={CANARY}"
        config: Config = kind("bad", url, [HttpHeader("X-Key", CANARY)])
        async with running(config, connected=False) as bench:
            await bench.until(lambda: bench.notices)
            (notice,) = bench.notices
            assert notice.startswith("MCP server bad: ")
            if kind is McpHttp:
                assert reason in notice
            assert CANARY not in notice + repr(bench.servers.status()) + log.getvalue()


def without_initialize(app: ASGIApp) -> ASGIApp:
    """A server that knows no handshake."""

    async def only_newer(scope: Scope, receive: Receive, send: Send) -> None:
        first = await receive()
        if scope["type"] == "http" and b'"initialize"' in first.get("body", b""):
            data = {"supported": ["2026-07-28"], "requested": "2025-11-25"}
            error = {"code": -32022, "message": "Unsupported protocol version", "data": data}
            await JSONResponse({"jsonrpc": "2.0", "id": 1, "error": error}, status_code=400)(scope, receive, send)
            return
        left = [first]
        await app(scope, lambda: _given(left.pop()) if left else receive(), send)

    return only_newer


async def _given(message: Message) -> Message:
    return message
