"""MCP servers that clients lend to an agent behind the gateway: each is reached at its own client and at no other."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dragoman import Agent, Prompt, Session, connect
from dragoman.client.lent_servers import McpCall
from dragoman.errors import RequestFailed
from dragoman.gateway.client_side import ClientSide
from dragoman.gateway.lenders import Lenders
from dragoman.vocabulary.asking import ExtensionNote
from dragoman.vocabulary.events import AgentMessageChunk
from dragoman.vocabulary.hello import AgentCapabilities
from dragoman.vocabulary.requests import McpAcp
from tests.support.gateway import gateway

TOLD: dict[str, object] = {"level": "info"}


def borrower() -> Agent:
    """An agent that asks the server of its session for its name, and says what came of it."""
    agent = Agent("borrower", capabilities=AgentCapabilities(mcp_acp=True))

    @agent.prompt
    async def prompt(session: Session, prompt: Prompt) -> None:
        (server,) = session.mcp_servers
        assert isinstance(server, McpAcp)
        heard: list[str] = []
        try:
            result = await session.mcp_call(
                server.server_id, prompt.text, {"a": 1}, on_notification=lambda method, params: heard.append(method)
            )
            await session.say(f"{result} {heard}")
        except RequestFailed as failed:
            await session.say(f"{failed.code} {failed.message}")

    return agent


def server_called(name: str) -> Any:
    async def serve(call: McpCall) -> object:
        if call.method == "fail":
            raise RequestFailed(-32603, f"{name} cannot")
        await call.notify("notifications/message", TOLD)
        return {"name": name, "given": call.params}

    return serve


async def said(conversation: Any, prompt: str) -> str:
    events = [event async for event in conversation.prompt(prompt)]
    return "".join(event.text for event in events if isinstance(event, AgentMessageChunk))


@pytest.mark.requirement("MCP7")
@pytest.mark.parametrize("protocol", [1, 2])
async def test_each_client_of_an_agent_is_asked_for_its_own_server(tmp_path: Path, protocol: int) -> None:
    async with gateway(borrower(), tmp_path) as served:
        target: dict[str, Any] = {"token": served.token, "protocol": protocol}
        async with connect(served.ws, **target) as one, connect(served.ws, **target) as two:
            first = await one.new_session(str(tmp_path), mcp_servers=[one.lend_mcp("x", server_called("first"))])
            second = await two.new_session(str(tmp_path), mcp_servers=[two.lend_mcp("x", server_called("second"))])
            assert await said(first, "name") == "{'name': 'first', 'given': {'a': 1}} ['notifications/message']"
            assert await said(second, "name") == "{'name': 'second', 'given': {'a': 1}} ['notifications/message']"
            assert await said(second, "fail") == "-32603 second cannot"


@pytest.mark.requirement("MCP7")
async def test_a_client_that_joins_uses_the_server_of_the_first_and_cannot_speak_for_it(tmp_path: Path) -> None:
    gate, called = asyncio.Event(), asyncio.Event()

    async def waits(call: McpCall) -> object:
        called.set()
        await gate.wait()
        return call.request_id

    async with (
        gateway(borrower(), tmp_path) as served,
        connect(served.ws, token=served.token) as one,
        connect(served.ws, token=served.token) as two,
    ):
        lent = one.lend_mcp("x", waits)
        session = await one.new_session(str(tmp_path), mcp_servers=[lent])
        joined = await two.resume_session(session.id, str(tmp_path))
        saying = asyncio.ensure_future(said(joined, "name"))
        await called.wait()
        (request_id,) = one._connection.lent._open[lent.server_id]
        told = {"serverId": lent.server_id, "requestId": request_id, "method": "notifications/forged"}
        await two._connection.link.send_notification(ExtensionNote("mcp/message", told))
        await two.list_sessions()  # behind it
        gate.set()
        assert await saying == f"{request_id} []"


async def test_a_server_that_is_lent_no_longer_is_not_there(tmp_path: Path) -> None:
    async with gateway(borrower(), tmp_path) as served, connect(served.ws, token=served.token) as one:
        lent = one.lend_mcp("x", server_called("first"))
        session = await one.new_session(str(tmp_path), mcp_servers=[lent])
        assert "first" in await said(session, "name")
        one.end_mcp(lent)
        assert await said(session, "name") == "-33001 There is no such MCP server here"


async def test_two_clients_of_one_agent_cannot_lend_under_one_id(tmp_path: Path) -> None:
    lenders = Lenders()
    one, two = cast(ClientSide, SimpleNamespace(is_closed=False)), cast(ClientSide, SimpleNamespace(is_closed=False))
    lenders.declare([McpAcp("x", "id")], one)
    lenders.declare([McpAcp("x", "id")], one)
    with pytest.raises(RequestFailed, match="Another client lends an MCP server with this serverId"):
        lenders.declare([McpAcp("y", "id")], two)
    note = ExtensionNote("mcp/message", {"serverId": "id", "requestId": "1", "method": "m"})
    assert (lenders.is_lent_by(one, note), lenders.is_lent_by(two, note)) == (True, False)
    one.is_closed = True
    lenders.declare([McpAcp("y", "id")], two)
    assert lenders.is_lent_by(two, note)


def test_a_server_that_is_lent_already_needs_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.gateway.lenders.SERVERS", 1)
    lenders, client_side = Lenders(), cast(ClientSide, SimpleNamespace(is_closed=False))
    for _ in range(2):  # as when a session is opened again
        lenders.declare([McpAcp("x", "id")], client_side)
    with pytest.raises(RequestFailed, match="at most 1 MCP servers"):
        lenders.declare([McpAcp("y", "other")], client_side)
