"""Who may use elephant.ai's paths: a program of the server's own user without a token, every other client with one."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from dragoman.agent.agent import Agent
from dragoman.gateway.anonymous import ANONYMOUS, needs_no_token, only_this_machine
from dragoman.gateway.guard import BURST
from dragoman.gateway.host_check import Refusal
from dragoman.gateway.hub import Hub
from dragoman.gateway.server import GatewayServer
from dragoman.gateway.token_store import TokenStore
from dragoman.gateway.token_types import SCOPES, Token, TokenIdentity, digest_of
from dragoman.store.sqlite import SqliteStore
from tests.support.gateway import Served, counting, gateway, http_client, raw_http
from tests.support.guards import ImmediateGuard
from tests.support.messages import hello, prompt, texts
from tests.support.waiting import until

from .elephants import elephant

pytestmark = pytest.mark.anyio


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    agent = Agent("counting", store=SqliteStore(tmp_path / "store"))

    @agent.prompt
    async def reply(session: object, prompt: object) -> None:
        await session.say("mine")  # type: ignore[attr-defined]

    async with gateway(agent, tmp_path, elephant=True) as running:
        yield running


async def status(served: Served, headers: dict[str, str]) -> int:
    """What both paths say to a request with these headers; they never differ."""
    async with http_client() as client:
        posted = await client.post(f"{served.http}/rpc?client_id=x", json=hello(1), headers=headers)
        async with client.stream("GET", f"{served.http}/sse?client_id=x", headers=headers) as opened:
            pass
    assert posted.status_code == {200: 202}.get(opened.status_code, opened.status_code)
    return posted.status_code


@pytest.mark.requirement("8.3.2")
async def test_without_a_token_it_works_here_and_only_on_these_paths(served: Served) -> None:
    assert await status(served, {}) == 202
    async with http_client() as client:
        root = served.http.removesuffix("/acp")
        for path in ("/acp", "/metrics", "/acp/rpc/", "/acp/sse/x", "/acp/other"):
            assert (await client.get(root + path)).status_code == 401
        kind = {"Content-Type": "application/json"}
        assert (await client.post(served.http, json=hello(1), headers=kind)).status_code == 401


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": ""}, 401),
        # What a page of another site can have a browser send without an Origin.
        ({"Sec-Fetch-Site": "cross-site"}, 401),
        ({"Sec-Fetch-Site": "same-site"}, 401),
        ({"Sec-Fetch-Site": "none"}, 202),
        ({"Sec-Fetch-Site": "same-origin"}, 202),
        # Another user, who came through a proxy.
        ({"X-Forwarded-For": "192.0.2.1"}, 401),
        ({"Forwarded": "for=192.0.2.1"}, 401),
        ({"X-Real-IP": "192.0.2.1"}, 401),
        ({"Via": "1.1 proxy"}, 401),
        ({"X-Forwarded-Proto": "https"}, 401),
        ({"X-Forwarded-Anything": ""}, 401),
        ({"CF-Connecting-IP": "192.0.2.1"}, 401),
        ({"CF-Ray": "1"}, 401),
        ({"True-Client-IP": "192.0.2.1"}, 401),
    ],
)
async def test_what_a_browser_or_a_proxy_sends_needs_a_token(
    served: Served, headers: dict[str, str], expected: int
) -> None:
    assert await status(served, headers) == expected
    if expected != 202:
        assert not served.hub.connections


async def test_where_the_system_does_not_say_who_connects_a_token_is_needed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(socket, "AF_NETLINK")
    assert await status(served, {}) == 401
    assert await status(served, served.headers) == 202
    assert await status(served, {"Authorization": "Bearer wrong"}) == 401


@pytest.mark.parametrize("host", ["::1", "127.0.0.7"])
async def test_our_own_user_is_known_on_every_address_of_this_machine(host: str, tmp_path: Path) -> None:
    async with gateway(counting(1), tmp_path, elephant=True, host=host) as served, http_client() as client:
        posted = await client.post(f"{served.server.url}/rpc?client_id=x", json=hello(1))
        assert posted.status_code == 202, posted.text


async def test_every_request_of_a_connection_that_is_kept_is_judged(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with http_client(limits=httpx2.Limits(max_connections=1)) as client:
        url = f"{served.http}/rpc?client_id=x"
        assert (await client.post(url, json=hello(1))).status_code == 202
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert (await client.post(url, json=hello(1))).status_code == 401


async def test_a_right_token_works_here_too_and_is_its_own_client(served: Served) -> None:
    async with elephant(served) as anonymous, elephant(served, anonymous.id, served.token) as with_token:
        await anonymous.begin()
        await with_token.begin()
        assert len(served.hub.connections) == 2
        assert {one.principal for one in served.hub.connections.values()} == {ANONYMOUS.principal, "default"}
        assert anonymous._streams[0].done() is with_token._streams[0].done() is False


async def test_a_client_without_a_token_sees_no_session_of_another_and_no_other_sees_its_own(
    served: Served, tmp_path: Path
) -> None:
    async with raw_http(served) as theirs, elephant(served) as anonymous, elephant(served, "other") as another:
        their_session = await theirs.session()
        await theirs.post(prompt(2, their_session), their_session)
        await theirs.answer(2)
        own = await anonymous.begin()
        await anonymous.prompt(own)
        await anonymous.answer(2)
        opening = {"cwd": str(Path.cwd()), "mcpServers": []}
        unknown = await anonymous.ask(10, "session/load", sessionId="sess_" + "0" * 32, **opening)
        foreign = await anonymous.ask(11, "session/load", sessionId=their_session, **opening)
        assert foreign["error"]["code"] == unknown["error"]["code"] == -32602
        assert foreign["error"]["message"] == unknown["error"]["message"]
        for number, method in enumerate(("session/set_mode", "_any/extension"), 20):
            asked = await anonymous.ask(number, method, sessionId=their_session, modeId="full")
            assert asked["error"]["code"] == -32602
        assert await anonymous.prompt(their_session, 30) == 202
        assert (await anonymous.answer(30))["error"]["code"] == -32602
        await anonymous.post({"method": "session/cancel", "params": {"sessionId": their_session}})
        assert their_session not in str([m for m in anonymous.heard if "method" in m])
        # Its own are for all who come without a token, and for no client with one, an administrator neither.
        await another.begin()
        assert "error" not in await another.ask(40, "session/load", sessionId=own, **opening)
        assert another.texts == ["mine"]
        await theirs.post({"id": 50, "method": "session/load", "params": {"sessionId": own, **opening}})
        assert "error" in await theirs.answer(50)
        await theirs.post({"id": 51, "method": "session/list", "params": {}})
        listed = (await theirs.answer(51))["result"]["sessions"]
        assert [info["sessionId"] for info in listed] == [their_session]
        assert texts(theirs.heard) == ["mine"]


async def test_its_sessions_stay_its_own_over_a_restart(tmp_path: Path) -> None:
    def agent() -> Agent:
        made = Agent("stored", store=SqliteStore(tmp_path / "store"))

        @made.prompt
        async def reply(session: object, prompt: object) -> None:
            await session.say("mine")  # type: ignore[attr-defined]

        return made

    opening = {"cwd": str(Path.cwd()), "mcpServers": []}
    async with gateway(agent(), tmp_path, elephant=True) as served, elephant(served) as anonymous:
        own = await anonymous.begin()
        await anonymous.prompt(own)
        await anonymous.answer(2)
    (tmp_path / "tokens.json").unlink()
    async with (
        gateway(agent(), tmp_path, elephant=True) as served,
        elephant(served) as anonymous,
        elephant(served, "x", served.token) as with_token,
    ):
        await anonymous.begin()
        await with_token.begin()
        assert "error" in await with_token.ask(9, "session/load", sessionId=own, **opening)
        assert "error" not in await anonymous.ask(9, "session/load", sessionId=own, **opening)


async def test_no_token_can_have_the_name_of_the_anonymous_principal(served: Served) -> None:
    token = served.token_of("nobody", SCOPES, "nobody")
    async with elephant(served) as anonymous, elephant(served, "x", token) as named:
        own = await anonymous.begin()
        await named.begin()
        opening = {"cwd": str(Path.cwd()), "mcpServers": []}
        assert "error" in await named.ask(9, "session/load", sessionId=own, **opening)
    assert not ANONYMOUS.principal.isprintable()
    assert not ANONYMOUS.may("admin")


async def test_a_revoked_token_ends_its_stream_and_no_anonymous_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.gateway.hub._SWEEP_SECONDS", 0.1)
    async with (
        gateway(counting(1), tmp_path, elephant=True) as served,
        elephant(served) as anonymous,
        elephant(served, "x", served.token) as with_token,
    ):
        await anonymous.begin()
        await with_token.begin()
        served.tokens.revoke("default")
        async with asyncio.timeout(30):
            await with_token._streams[0]
        assert len(served.hub.connections) == 1
        assert not anonymous._streams[0].done()


async def test_a_reader_s_token_reads_and_does_not_prompt_under_the_same_id(served: Served) -> None:
    reading = served.token_of("reader", ("read",), "default")
    async with elephant(served, "x", served.token) as full, elephant(served, "x", reading) as reader:
        session_id = await full.begin()
        await reader.open()
        await reader.post(hello(1))
        await reader.answer(0)
        await reader.prompt(session_id, 5)
        assert (await reader.answer(5))["error"]["code"] == -32600
        assert not full._streams[0].done()


def test_the_anonymous_principal_has_a_rate_like_every_other() -> None:
    keeper = ImmediateGuard(list, ["localhost"], 1, lambda: 0.0)
    admitted = [keeper.admit(ANONYMOUS) for _ in range(int(BURST) + 1)]
    assert admitted[:-1] == [ANONYMOUS] * int(BURST)
    assert isinstance(admitted[-1], Refusal) and admitted[-1].status == 429
    other = Token("t", "p", SCOPES, digest_of(b"right"))
    keeper = ImmediateGuard(lambda: [other], ["localhost"], 1, time.monotonic)
    assert isinstance(keeper.authenticate([(b"authorization", b"Bearer right")], "a"), TokenIdentity)


@pytest.mark.parametrize(
    ("host", "allowed", "open_to_own_user"),
    [
        ("127.0.0.1", (), True),
        ("localhost", (), True),
        ("::1", (), True),
        ("127.0.0.1", ("localhost:80",), True),
        ("127.0.0.1", ("agents.example",), False),  # behind a proxy
        ("0.0.0.0", (), False),
        ("::", (), False),
        ("192.0.2.7", (), False),
    ],
)
async def test_only_a_server_that_no_other_machine_reaches_is_open(
    host: str, allowed: tuple[str, ...], open_to_own_user: bool, tmp_path: Path
) -> None:
    from dragoman.gateway.agent_source import AgentSource, in_process

    agents = AgentSource(in_process(counting(1).serve, lambda _: None), (1, 2))
    server = GatewayServer(
        Hub(agents), TokenStore(tmp_path / "t.json"), host=host, allowed_hosts=allowed, elephant=True
    )
    assert server.open_to_own_user is open_to_own_user
    assert only_this_machine((host, *allowed)) is open_to_own_user


@pytest.mark.requirement("8.3.2")
async def test_elsewhere_a_token_is_needed(tmp_path: Path) -> None:
    """A server on every address: from this machine too, and under its loopback name."""
    from dragoman.gateway.agent_source import AgentSource, in_process
    from tests.support.gateway import free_port

    tokens = TokenStore(tmp_path / "tokens.json")
    token = tokens.make("default")
    hub = Hub(AgentSource(in_process(counting(1).serve, lambda _: None), (1, 2)))
    server = GatewayServer(hub, tokens, host="0.0.0.0", port=free_port(), elephant=True)
    await server.start()
    try:
        running = Served(server, tokens, token, [])
        assert await status(running, {}) == 401
        assert await status(running, running.headers) == 202
    finally:
        await server.stop(0.1)


@pytest.mark.parametrize("address", ["192.0.2.1", "", "::ffff:192.0.2.1", "10.0.0.1"])
def test_an_address_of_another_machine_needs_a_token(address: str) -> None:
    assert needs_no_token([(b"host", b"localhost:8790")], "127.0.0.1")
    assert not needs_no_token([(b"host", b"localhost:8790")], address)
    assert not needs_no_token([(b"host", b"agents.example")], "127.0.0.1")


async def test_many_ids_with_garbage_harm_nothing(served: Served) -> None:
    async with elephant(served) as client, http_client() as bare:
        session_id = await client.begin()
        for number in range(70):
            body = b'{"id":%d,"method":"x","params":%b}' % (number, b"[" * 2_000)
            await bare.post(f"{served.http}/rpc?client_id=%F0%9F%90%98{number}", content=body)
            await bare.post(f"{served.http}/rpc?client_id=..%2F{number}", content=b'{"id":1,"method":"session/new"}')
        await client.prompt(session_id)
        await client.answer(2)
        await until(lambda: len(served.hub.connections) <= 129)
