"""An editor on the TypeScript SDK and MCP servers: prompts, resources, questions, and servers that it lends."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import connect
from dragoman.vocabulary.events import AgentMessageChunk
from dragoman.vocabulary.requests import McpAcp
from tests.support.editor import turns
from tests.support.mcp_servers import RAW_SERVER
from tests.support.needs import need, need_typescript_sdk
from tests.support.sdk_peers import PROGRAMS
from tests.support.ts_editor import calls, new_session, of_kind, played, said

LIBRARY = {"name": "docs", "command": sys.executable, "args": [*RAW_SERVER, "library"], "env": []}
both_versions = pytest.mark.parametrize("version", [1, pytest.param(2, marks=pytest.mark.slow)])


def library(folder: Path, version: int) -> dict[str, Any]:
    """The step that opens a session with the server `docs`."""
    return new_session(folder, mcpServers=[LIBRARY | ({"type": "stdio"} if version == 2 else {})])


@pytest.mark.requirement("MCP7")
@both_versions
def test_a_server_that_the_editor_lends_is_used_by_our_agent(tmp_path: Path, version: int) -> None:
    script = turns([{"call": "mcp__lent__echo", "input": {"text": "hi"}}, {"say": "Done."}])
    opening = new_session(tmp_path, mcpServers=["$lent"])
    lines = played(version, tmp_path, script, opening, {"prompt": "go", "permission": "allow_once"})
    (hello,) = of_kind(lines, "initialize")
    able = hello["agentCapabilities"]["mcpCapabilities"] if version == 1 else hello["capabilities"]["session"]["mcp"]
    assert able["acp"] == (True if version == 1 else {})
    methods = [one for one in of_kind(lines, "mcp") if one[0] != "subscriptions/listen"]
    assert methods == [[method, "dragoman"] for method in ("server/discover", "tools/list", "tools/call")]
    assert (calls(lines), said(lines)) == ([("lent: echo", "completed")], "Done.")
    assert "echo hi" in str(of_kind(lines, "update"))
    assert of_kind(lines, "exit") == [0]


@both_versions
def test_prompts_and_resources_of_a_server_are_used_from_the_editor(tmp_path: Path, version: int) -> None:
    lines = played(
        version,
        tmp_path,
        turns([{"say": "Read."}]),
        library(tmp_path, version),
        {"prompt": "/mcp__docs__review a.py", "permission": "allow_once"},
        {"prompt": "see @docs:docs://guide", "permission": "reject_once"},
    )
    assert calls(lines) == [("docs: review a.py", "completed"), ("docs: docs://guide", "failed")]
    menus = [update for update in of_kind(lines, "update") if update["sessionUpdate"] == "available_commands_update"]
    commands = {one["name"]: one for one in menus[-1]["availableCommands"]}
    assert commands["mcp__docs__review"]["input"]["hint"] == "<file> [style]"
    assert ["docs:docs://guide", "guide"] in commands["mcp"]["_meta"]["dragoman/mentions"]


@both_versions
def test_a_question_of_a_server_is_answered_in_the_editor(tmp_path: Path, version: int) -> None:
    script = turns([{"call": "mcp__docs__form", "input": {}}, {"call": "mcp__docs__page", "input": {}}, {"say": "."}])
    lines = played(
        version,
        tmp_path,
        script,
        library(tmp_path, version),
        {"prompt": "go", "form": {"city": "Oslo"}},
        mode="full-access",
    )
    form, page = of_kind(lines, "elicitation")
    assert (form["mode"], form["message"]) == ("form", "The MCP server docs asks: Where \\x1b[2Jto?")
    assert (page["mode"], page["url"]) == ("url", "https://example.org/pay")
    assert of_kind(lines, "complete") == [{"elicitationId": "e1"}]
    assert "Oslo" in str(of_kind(lines, "update"))


@pytest.mark.requirement("MCP7")
@both_versions
async def test_a_server_that_our_client_lends_is_used_by_an_agent_of_theirs(tmp_path: Path, version: int) -> None:
    from tests.coder.mcp.sdk_server import make_server

    need_typescript_sdk()
    command = [need("node"), str(PROGRAMS / "borrower.mjs"), str(version)]
    async with connect(command, protocol=version) as client:
        session = await client.new_session(str(tmp_path), mcp_servers=[client.lend_mcp("tools", make_server())])

        async def asked(prompt: str) -> Any:
            events = [event async for event in session.prompt(prompt)]
            return json.loads("".join(event.text for event in events if isinstance(event, AgentMessageChunk)))

        listed = await asked("tools/list")
        assert [tool["name"] for tool in listed["result"]["tools"]][:2] == ["add", "headers"]
        added = await asked('tools/call add {"a": 2, "b": 3}')
        assert added["result"]["structuredContent"] == {"result": 5}
        assert (await asked("no/such"))["error"]["code"] == -32601
        redefined = await asked('tools/call redefine {"text": "x"}')
        assert "result" in redefined
        for server_id in list(client._connection.lent._handlers):
            client.end_mcp(McpAcp("tools", server_id))
        assert (await asked("tools/list"))["failed"] == {"code": -33001, "message": "There is no such MCP server here"}
