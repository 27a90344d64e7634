"""MCP over ACP: servers that the client lends to our agent over its own connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.client.client import Client
from dragoman.client.conversation import Conversation
from dragoman.client.lent_servers import McpCall
from dragoman.errors import RequestFailed, UsageError
from dragoman.vocabulary.asking import Extension
from dragoman.vocabulary.events import Notice
from dragoman.vocabulary.requests import McpAcp
from dragoman.vocabulary.services import Elicit
from tests.support.scripted_turns import RecordingModel
from tests.support.waiting import until
from tests.support.whole_agent import User, ends, events_of, text, whole

CALL = [{"call": "mcp__tools__echo", "input": {"text": "hi"}}, {"say": "."}]
TOOL = {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}
DISCOVERED = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "tools", "version": "1"},
}


class Echo:
    """A server written by hand, and what it was asked."""

    def __init__(self) -> None:
        self.calls: list[McpCall] = []
        self.called = asyncio.Event()
        self.hangs = False
        self.was_cancelled = False

    async def __call__(self, call: McpCall) -> object:
        self.calls.append(call)
        match call.method:
            case "server/discover":
                return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **DISCOVERED}
            case "tools/list":
                return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [TOOL]}
            case "tools/call" if self.hangs:
                self.called.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    self.was_cancelled = True
            case "tools/call":
                arguments: Any = call.params["arguments"]
                return {"resultType": "complete", "content": [{"type": "text", "text": f"echo {arguments['text']}"}]}
        raise RequestFailed(-32601, "Method not found")


@asynccontextmanager
async def lending(
    folder: Path, model: RecordingModel, server: object, user: User | None = None, **more: Any
) -> AsyncIterator[tuple[Client, Conversation, McpAcp]]:
    """A session whose client lends it a server."""
    more = {"mode": "full-access" if user is None else "ask"} | more
    async with whole(folder, model.make, user=user, **more) as (client, _):
        lent = client.lend_mcp("tools", server)
        yield client, await client.new_session(str(folder), mcp_servers=[lent]), lent


@pytest.mark.requirement("MCP7")
@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_server_that_the_client_lends_is_called_over_the_connection(tmp_path: Path, protocol: int) -> None:
    model, server, user = RecordingModel(CALL), Echo(), User("allow_once")
    async with lending(tmp_path, model, server, user, protocol=protocol) as (_, session, _lent):
        events = await events_of(session)
    assert ends(events) == [("mcp__tools__echo", "completed")]
    assert model.results == ["echo hi"]
    assert [question.title for question in user.asked] == ["tools: echo"]
    assert [call.method for call in server.calls if call.method != "subscriptions/listen"] == [
        "server/discover",
        "tools/list",
        "tools/call",
    ]
    assert len({call.request_id for call in server.calls}) == len(server.calls)


@pytest.mark.requirement("MCP7")
async def test_a_cancel_reaches_the_server_and_nothing_is_left(tmp_path: Path) -> None:
    model, server = RecordingModel(CALL), Echo()
    server.hangs = True
    async with lending(tmp_path, model, server) as (_, session, _lent):
        turn = session.prompt("go")
        following = asyncio.ensure_future(_drain(turn))
        await server.called.wait()
        await turn.cancel()
        await following
        await until(lambda: server.was_cancelled)


@pytest.mark.requirement("MCP7")
async def test_a_server_that_is_lent_no_longer_is_told_of_and_the_session_goes_on(tmp_path: Path) -> None:
    model, outside = RecordingModel(CALL), []  # type: tuple[RecordingModel, list[Any]]
    hear: dict[str, Any] = {"on_event": lambda conversation, event: outside.append(event)}
    async with lending(tmp_path, model, Echo(), **hear) as (client, session, lent):
        assert text(await events_of(session, "/mcp")) == "- tools: connected, 1 tools\n"
        client.end_mcp(lent)
        events = await events_of(session)
        assert ends(events) == [("mcp__tools__echo", "failed")]
        assert model.results == ["The MCP server went away during the call."]
        notice = "MCP server tools: is not lent by the client any more"
        await until(lambda: notice in [one.title for one in [*events, *outside] if isinstance(one, Notice)])


async def test_a_server_of_the_official_sdk_is_lent_as_it_is(tmp_path: Path) -> None:
    from tests.coder.mcp.sdk_server import make_server

    async def answer(request: Elicit) -> dict[str, object]:
        return {"city": "Oslo"}

    model = RecordingModel(
        [
            {"call": "mcp__tools__add", "input": {"a": 2, "b": 3}},
            {"call": "mcp__tools__book", "input": {}},
            {"say": "."},
        ],
        [{"call": "mcp__tools__redefine", "input": {"text": "Other words."}}, {"say": "."}],
        [{"say": "."}],
    )
    async with lending(tmp_path, model, make_server(), elicitation=answer) as (_, session, _lent):
        await events_of(session)
        assert model.results == ["5", "to Oslo"]
        await events_of(session)
        events = await events_of(session, "see @tools:docs://page/7")
        assert ends(events) == [("mcp__tools__@resource", "completed")]
        assert "Page 7." in str(model.prompts)
        assert "mcp__tools__add" in text(await events_of(session, "/mcp"))  # a change that a subscription has told of


async def test_an_agent_is_told_why_there_is_no_answer_of_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(call: McpCall) -> object:
        raise ValueError("canary")

    reasons: dict[str, tuple[int, str]] = {}
    bugs: list[Exception] = []
    async with whole(tmp_path, RecordingModel(CALL).make) as (client, _):
        lent = client.lend_mcp("tools", fails)
        monkeypatch.setattr(client._connection.lent, "_on_bug", bugs.append)
        services = client._connection._services
        for name, params in {
            "odd": {"serverId": lent.server_id},
            "unknown": {"serverId": "none", "requestId": "1", "method": "ping"},
            "failing": {"serverId": lent.server_id, "requestId": "1", "method": "ping"},
        }.items():
            with pytest.raises(RequestFailed) as failed:
                await services.answer(Extension("mcp/message", params))
            reasons[name] = (failed.value.code, failed.value.message)
    assert [str(bug) for bug in bugs] == ["canary"]
    assert reasons == {
        "odd": (-32602, "Invalid params: serverId, requestId and method are texts"),
        "unknown": (-33001, "There is no such MCP server here"),
        "failing": (-33002, "The MCP server has failed"),
    }


async def test_what_is_no_server_is_not_lent(tmp_path: Path) -> None:
    async with whole(tmp_path, RecordingModel(CALL).make) as (client, _):
        for server in (5, object(), lambda call: None):
            with pytest.raises(UsageError):
                client.lend_mcp("tools", server)


async def _drain(turn: Any) -> None:
    async for _ in turn:
        pass
