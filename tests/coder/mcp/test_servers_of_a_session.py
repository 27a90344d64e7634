"""MCP servers of a session of the whole agent."""

from pathlib import Path
from typing import Any

from dragoman.vocabulary.events import (
    AnyEvent,
    Notice,
)
from dragoman.vocabulary.requests import (
    McpStdio,
)
from tests.support.mcp_servers import raw
from tests.support.whole_agent import User, ends, events_of, scripted, text, until_server, whole


async def test_a_server_of_the_client_is_a_tool_that_asks(tmp_path: Path) -> None:
    user = User("allow_always")
    server = raw("good")
    model = scripted([{"call": "mcp__raw__act", "input": {}}])
    async with whole(tmp_path, model, user=user, mcp_servers=[server]) as (_, session):
        events = await events_of(session)  # the first prompt waits for the server
    assert ends(events) == [("mcp__raw__act", "completed")]
    assert len(user.asked) == 1


async def test_a_server_that_is_dead_is_told_of_once_and_the_session_works(tmp_path: Path) -> None:
    server = McpStdio("gone", "/nonexistent/program", [])
    outside: list[AnyEvent] = []
    model = scripted([{"say": "fine"}])
    hear: dict[str, Any] = {"on_event": lambda conversation, event: outside.append(event)}
    async with whole(tmp_path, model, mcp_servers=[server], **hear) as (_, session):
        events = await events_of(session)
        assert text(events) == "fine"
        events += await until_server("gone: failed", session)
        events += await events_of(session)
    notices = [event for event in [*events, *outside] if isinstance(event, Notice)]
    assert len(notices) == 1, (text(events), outside)
