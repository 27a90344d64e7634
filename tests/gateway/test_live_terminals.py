"""Display terminals of one agent for several clients: each is sent what it can draw."""

import json
from pathlib import Path

import pytest

from dragoman.agent.agent import Agent
from dragoman.agent.session import Prompt, Session
from tests.support.gateway import gateway, raw_http
from tests.support.messages import hello, prompt

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("spoken", [1, 2])
async def test_of_two_clients_of_a_session_each_is_sent_what_it_can_draw(spoken: int, tmp_path: Path) -> None:
    """The agent is not told of terminals that only one of its clients draws."""
    declared: list[object] = []
    agent = Agent("shell")

    @agent.prompt
    async def run(session: Session, prompt: Prompt) -> None:
        declared.append(session.client.meta)
        async with session.tool("make", kind="execute") as call, session.terminal("make") as terminal:
            await call.update(content=[terminal.item])
            await terminal.write("x" * 2000)

    asked = hello(1)
    asked["params"]["clientCapabilities"] = {"_meta": {"terminal_output": True, "jetbrains": {"air": {}}, "mine": 1}}
    async with gateway(agent, tmp_path, versions=(spoken,)) as served, raw_http(served, 1, greet=False) as raw:
        raw.connection = (await raw.post(asked)).headers["Acp-Connection-Id"]
        assert await raw.open() == 200
        session_id = await raw.session()
        await raw.post(prompt(2, session_id), session_id)
        await raw.answer(2)
    assert declared == [{"mine": 1}]
    live = "terminal_output" in json.dumps(raw.heard)
    # An agent of version 2 sends a terminal as such, and what the client draws is decided here, for each client.
    assert live is (spoken == 2)
    assert "x" * 2000 in json.dumps(raw.heard)
